/*
 * dot_avx2.h: integer dots with maddubs, which adds two u8 x s8 products in 16 bits and
 * saturates there, so ranges matter (|x| <= 127). Contract: dot_scalar.h.
 *   4 bits: 8 groups x 2 x 15 x 127 = 30,480 fit 16 bits; widened once per block
 *   2, 3 bits: 4 groups x 2 x 7 x 127 = 7,112; widened once per half, for halves are summed apart
 *   5 bits: 4 groups x 2 x 31 x 127 = 31,496      6 bits: 2 groups x 2 x 63 x 127 = 32,004
 *   8 bits: |q| as the unsigned side and x with q's sign: 2 x 128 x 127 = 32,512
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_avx2.h"

typedef struct { vi total, run; } vdot; /* int32, and int16 pairs not yet widened */

/* Fastest from memory, by trial: four for codes that are stored as they are, two for nibbles, one
 * for what takes more unpacking. */
#define DOT_PANELS(traits) ((traits).bits == 8 ? 4 : (traits).dot_bits == 4 ? 2 : 1)
#define DOT_NEAR(bits) ((bits) < 8) /* 8 bits have no bias that could be saved */
SN_INLINE vdot dot_start_at(int32_t bias) {
    return (vdot){ vi_set1(bias), vi_set1(0) };
}

SN_INLINE __m256i dot_pairs(int bits, __m256i w, __m256i x) {
    if (bits < 8) return _mm256_maddubs_epi16(w, x);
    w = _mm256_xor_si256(w, _mm256_set1_epi8(-128)); /* back to q */
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    const int groups = bits == 4 ? 8 : bits <= 5 ? 4 : bits == 6 ? 2 : 1;
    const __m256i x = _mm256_set1_epi32(x4), ones = _mm256_set1_epi16(1);
    vi pairs = { dot_pairs(bits, w.lo, x), dot_pairs(bits, w.hi, x) };
    if (g % groups) {
        pairs.lo = _mm256_add_epi16(a->run.lo, pairs.lo);
        pairs.hi = _mm256_add_epi16(a->run.hi, pairs.hi);
    }
    if (g % groups == groups - 1) {
        a->total.lo = _mm256_add_epi32(a->total.lo, _mm256_madd_epi16(pairs.lo, ones));
        a->total.hi = _mm256_add_epi32(a->total.hi, _mm256_madd_epi16(pairs.hi, ones));
        SN_KEEP(a->total.lo), SN_KEEP(a->total.hi);
    } else {
        SN_KEEP(pairs.lo), SN_KEEP(pairs.hi);
        a->run = pairs;
    }
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (vi){ _mm256_shuffle_epi8(t, codes.lo), _mm256_shuffle_epi8(t, codes.hi) };
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    return bits == 8 ? a->total : vi_add(a->total, vi_set1(bias)); /* 8 bits: q, no offset */
}

#endif
