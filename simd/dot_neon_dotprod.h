/*
 * dot_neon_dotprod.h: integer dots with FEAT_DotProd's sdot: four s8 x s8 products added to an
 * int32. Contract: dot_scalar.h.
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
        a->q[i] = vdotq_s32(a->q[i], vreinterpretq_s8_u8(code), x);
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
