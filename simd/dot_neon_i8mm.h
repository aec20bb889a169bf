/*
 * dot_neon_i8mm.h: integer dots with FEAT_I8MM's usdot: four u8 x s8 products added to an int32,
 * so that codes of 8 bits need no change of sign. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_neon.h"

typedef vi vdot;

SN_INLINE vdot dot_start(void) { return vi_set1(0); }

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(x4));
    (void)bits, (void)g;
    for (int i = 0; i < 4; i++)
        a->q[i] = vusdotq_s32(a->q[i], vreinterpretq_u8_s32(w.q[i]), x);
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const uint8x16_t t = vld1q_u8(table);
#define E(i) vreinterpretq_s32_u8(vqtbl1q_u8(t, vreinterpretq_u8_s32(codes.q[i])))
    return VI_EACH(E);
#undef E
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    (void)bits;
    return vi_add(*a, vi_set1(bias));
}

#endif
