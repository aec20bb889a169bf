/*
 * dot_wasm_relaxed.h: integer dots with i16x8.relaxed_dot_i8x16_i7x16_s, which adds two products in
 * 16 bits and is exact where its second operand has 7 bits and the sum fits, so that saturating and
 * wrapping engines agree: codes of up to 6 bits. Ranges as in dot_avx2.h (|x| <= 127):
 *   4 bits: 8 groups x 2 x 15 x 127 = 30,480 fit 16 bits; widened once per block
 *   2, 3 bits: 4 groups x 2 x 7 x 127 = 7,112         5 bits: 4 groups x 2 x 31 x 127 = 31,496
 *   6 bits: 2 groups x 2 x 63 x 127 = 32,004
 * The instruction that also adds up in 32 bits is one instead of two where the engine maps it to
 * VNNI, and six elsewhere. Codes of 8 bits would take two of either; they go the wide way.
 * Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_wasm_wide.h"

#define DOT_UNROLLS(bits) ((bits) < 8) /* few registers a token: the words of a block at once */
#define DOT_UNROLLS_TILE DOT_UNROLLS

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    if (bits == 8) {
        wide_add(a, w, x4);
        return;
    }
    const int groups = bits == 4 ? 8 : bits == 6 ? 2 : 4;
    const v128_t x = wasm_i32x4_splat(x4);
    for (int i = 0; i < 4; i++) {
        v128_t pairs = wasm_i16x8_relaxed_dot_i8x16_i7x16(x, w.q[i]);
        if (g % groups) pairs = wasm_i16x8_add(a->run[i], pairs);
        a->run[i] = pairs;
        if (g % groups == groups - 1)
            a->total[i] = wasm_i32x4_add(a->total[i], wasm_i32x4_extadd_pairwise_i16x8(pairs));
    }
}

#endif
