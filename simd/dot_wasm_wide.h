/*
 * dot_wasm_wide.h: integer dots with i32x4.dot_i16x8_s on codes and activations widened to int16,
 * and the lookup of codes, for both WebAssembly back ends.
 */
#ifndef SN_SIMD_DOT_WASM_WIDE_H
#define SN_SIMD_DOT_WASM_WIDE_H

#include "dot_nibbles_wasm.h"

/* Of rows 4i .. 4i+3: int32, and int16 pairs not yet widened (codes of up to 6 bits). */
typedef struct { v128_t total[4], run[4]; } vdot;

SN_INLINE vdot dot_start(void) {
    const v128_t z = wasm_i32x4_splat(0);
    return (vdot){ { z, z, z, z }, { z, z, z, z } };
}

/* The even codes of each row, then the odd ones, times their activations: masked or shifted they
 * are 16 bits wide where they stand, and both sums of a row fall in its lane. */
SN_INLINE void wide_add(vdot *a, vi w, int32_t x4) {
    const v128_t x = wasm_i32x4_splat(x4);
    const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl(x, 8), 8), odd = wasm_i16x8_shr(x, 8);
    for (int i = 0; i < 4; i++) {
        const v128_t low = wasm_v128_and(w.q[i], wasm_i16x8_splat(0xff));
        const v128_t high = wasm_u16x8_shr(w.q[i], 8);
        a->total[i] = wasm_i32x4_add(a->total[i], wasm_i32x4_dot_i16x8(low, even));
        a->total[i] = wasm_i32x4_add(a->total[i], wasm_i32x4_dot_i16x8(high, odd));
    }
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const v128_t t = wasm_v128_load(table);
#define E(i) wasm_i8x16_swizzle(t, codes.q[i])
    return (vi)V_EACH(E);
#undef E
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    (void)bits;
    return vi_add((vi){ { a->total[0], a->total[1], a->total[2], a->total[3] } }, vi_set1(bias));
}

#endif
