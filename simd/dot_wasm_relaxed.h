/*
 * dot_wasm_relaxed.h: integer dots with i32x4.relaxed_dot_i8x16_i7x16_add_s, which is exact where
 * its second operand has 7 bits: codes of up to 6 bits. Inside, the instruction adds two products
 * in int16, and 2 x 127 x 63 = 16,002 fits, so that saturating and wrapping engines agree.
 * Codes of 8 bits would take two of them, which lost a third of the speed where the engine has no
 * VNNI to map them to; they go the wide way. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_wasm_wide.h"

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    (void)g;
    if (bits == 8) {
        wide_add(a, w, x4);
        return;
    }
    const v128_t x = wasm_i32x4_splat(x4);
    for (int i = 0; i < 4; i++)
        a->low[i] = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, w.q[i], a->low[i]);
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    const vi relaxed = { { a->low[0], a->low[1], a->low[2], a->low[3] } };
    return vi_add(bits == 8 ? wide_total(a) : relaxed, vi_set1(bias));
}

#endif
