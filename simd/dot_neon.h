/*
 * dot_neon.h: integer dots with baseline AdvSIMD: products of two int8 fit int16 (|q| <= 128,
 * |x| <= 127), pairs are added in int32. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_neon.h"

typedef vi vdot;

SN_INLINE vdot dot_start(void) { return vi_set1(0); }

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(x4));
    (void)g;
    for (int i = 0; i < 4; i++) {
        uint8x16_t code = vreinterpretq_u8_s32(w.q[i]);
        if (bits == 8) code = veorq_u8(code, vdupq_n_u8(0x80)); /* back to q */
        const int8x16_t q = vreinterpretq_s8_u8(code);
        const int32x4_t lo = vpaddlq_s16(vmull_s8(vget_low_s8(q), vget_low_s8(x)));
        const int32x4_t hi = vpaddlq_s16(vmull_high_s8(q, x));
        a->q[i] = vaddq_s32(a->q[i], vpaddq_s32(lo, hi));
    }
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const uint8x16_t t = vld1q_u8(table);
#define E(i) vreinterpretq_s32_u8(vqtbl1q_u8(t, vreinterpretq_u8_s32(codes.q[i])))
    return VI_EACH(E);
#undef E
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    return bits == 8 ? *a : vi_add(*a, vi_set1(bias)); /* 8 bits: q, no offset */
}

#endif
