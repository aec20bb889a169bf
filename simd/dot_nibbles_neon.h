/*
 * dot_nibbles_neon.h: the dot products of dot_nibbles_scalar.h with baseline AdvSIMD. Eight
 * products are added in 16 bits: 8 x 15 x 127 = 15,240 fits.
 */
#ifndef SN_SIMD_DOT_NIBBLES_H
#define SN_SIMD_DOT_NIBBLES_H

typedef int32x4_t nibble_sum;

SN_INLINE nibble_sum nibbles_start(void) { return vdupq_n_s32(0); }

SN_INLINE int16x8_t add_products(int16x8_t sum, uint8x16_t code, const int8_t *x) {
    const int8x16_t q = vreinterpretq_s8_u8(code), a = vld1q_s8(x);
    return vmlal_high_s8(vmlal_s8(sum, vget_low_s8(q), vget_low_s8(a)), q, a);
}

SN_INLINE nibble_sum nibbles_add(nibble_sum sum, const uint8_t *codes, const int8_t *x) {
    int16x8_t products = vdupq_n_s16(0);
    for (int i = 0; i < 2; i++) {
        const uint8x16_t both = vld1q_u8(codes + 16 * i);
        products = add_products(products, vandq_u8(both, vdupq_n_u8(15)), x + 16 * i);
        products = add_products(products, vshrq_n_u8(both, 4), x + 32 + 16 * i);
    }
    return vpadalq_s16(sum, products);
}

SN_INLINE void nibbles_totals(int32_t total[4], const nibble_sum *sum) {
    vst1q_s32(total, vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3])));
}

#endif
