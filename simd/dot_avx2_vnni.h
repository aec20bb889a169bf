/*
 * dot_avx2_vnni.h: integer dots with AVX-VNNI's dpbusd: four u8 x s8 products added to an int32
 * without saturation. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_avx2.h"

typedef vi vdot;

#define DOT_NEAR(bits) 1
SN_INLINE vdot dot_start_at(int32_t bias) { return vi_set1(bias); }

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    const __m256i x = _mm256_set1_epi32(x4);
    (void)bits, (void)g;
    a->lo = _mm256_dpbusd_avx_epi32(a->lo, w.lo, x);
    a->hi = _mm256_dpbusd_avx_epi32(a->hi, w.hi, x);
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (vi){ _mm256_shuffle_epi8(t, codes.lo), _mm256_shuffle_epi8(t, codes.hi) };
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    (void)bits;
    return vi_add(*a, vi_set1(bias));
}

#endif
