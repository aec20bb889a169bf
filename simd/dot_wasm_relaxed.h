/*
 * dot_wasm_relaxed.h: integer dots with i32x4.relaxed_dot_i8x16_i7x16_add_s, which is exact where
 * its second operand has 7 bits. Codes of up to 6 bits are that operand; codes of 8 bits go in
 * two halves of 4. Contract: dot_scalar.h. Inside, the instruction adds two products in int16:
 * 2 x 127 x 63 = 16,002 fits, so saturating and wrapping engines agree.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

typedef struct { vi low, high; } vdot; /* high: sums of u >> 4, for 8 bits */

SN_INLINE vdot dot_start(void) {
    return (vdot){ vi_set1(0), vi_set1(0) };
}

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    const v128_t x = wasm_i32x4_splat(x4);
    (void)g;
    for (int i = 0; i < 4; i++) {
        v128_t low = w.q[i];
        if (bits == 8) {
            const v128_t high = wasm_u8x16_shr(low, 4);
            a->high.q[i] = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, high, a->high.q[i]);
            low = wasm_v128_and(low, wasm_i8x16_splat(15));
        }
        a->low.q[i] = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, low, a->low.q[i]);
    }
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    const vi total = bits == 8 ? vi_add(a->low, vi_shl(a->high, 4)) : a->low;
    return vi_add(total, vi_set1(bias));
}

#endif
