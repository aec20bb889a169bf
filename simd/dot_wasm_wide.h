/*
 * dot_wasm_wide.h: integer dots with i32x4.dot_i16x8_s on codes and activations widened to int16,
 * and the lookup of codes, for both WebAssembly back ends.
 */
#ifndef SN_SIMD_DOT_WASM_WIDE_H
#define SN_SIMD_DOT_WASM_WIDE_H

#include "dot_nibbles_wasm.h"

/* Of rows 4i .. 4i+3: in low[i] row 4i (k 0,1; k 2,3), then 4i+1; in high[i] the other two. */
typedef struct { v128_t low[4], high[4]; } vdot;

SN_INLINE vdot dot_start(void) {
    const v128_t z = wasm_i32x4_splat(0);
    return (vdot){ { z, z, z, z }, { z, z, z, z } };
}

SN_INLINE void wide_add(vdot *a, vi w, int32_t x4) {
    const v128_t x = wasm_i16x8_extend_low_i8x16(wasm_i32x4_splat(x4)); /* x 0..3 twice */
    for (int i = 0; i < 4; i++) {
        const v128_t low = wasm_u16x8_extend_low_u8x16(w.q[i]);
        const v128_t high = wasm_u16x8_extend_high_u8x16(w.q[i]);
        a->low[i] = wasm_i32x4_add(a->low[i], wasm_i32x4_dot_i16x8(low, x));
        a->high[i] = wasm_i32x4_add(a->high[i], wasm_i32x4_dot_i16x8(high, x));
    }
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const v128_t t = wasm_v128_load(table);
#define E(i) wasm_i8x16_swizzle(t, codes.q[i])
    return (vi)V_EACH(E);
#undef E
}

SN_INLINE vi wide_total(const vdot *a) {
    vi total;
    for (int i = 0; i < 4; i++) {
        const v128_t even = wasm_i32x4_shuffle(a->low[i], a->high[i], 0, 2, 4, 6);
        const v128_t odd = wasm_i32x4_shuffle(a->low[i], a->high[i], 1, 3, 5, 7);
        total.q[i] = wasm_i32x4_add(even, odd);
    }
    return total;
}

#endif
