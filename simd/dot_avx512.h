/*
 * dot_avx512.h: integer dots for AVX-512 BW without VNNI; ranges as in dot_avx2.h. Contract:
 * dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_avx2.h"

typedef struct { vi total, run; } vdot; /* int32, and int16 pairs not yet widened */

#define DOT_NEAR(bits) ((bits) < 8) /* 8 bits have no bias that could be saved */
SN_INLINE vdot dot_start_at(int32_t bias) {
    return (vdot){ vi_set1(bias), vi_set1(0) };
}

SN_INLINE vi dot_pairs(int bits, vi w, vi x) {
    if (bits < 8) return _mm512_maddubs_epi16(w, x);
    w = _mm512_xor_si512(w, _mm512_set1_epi8(-128)); /* back to q */
    vi signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x);
}

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    const int groups = bits == 4 ? 8 : bits <= 5 ? 4 : bits == 6 ? 2 : 1;
    vi pairs = dot_pairs(bits, w, _mm512_set1_epi32(x4));
    if (g % groups) pairs = _mm512_add_epi16(a->run, pairs);
    if (g % groups == groups - 1) {
        a->total = vi_add(a->total, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
        SN_KEEP(a->total);
    } else {
        SN_KEEP(pairs);
        a->run = pairs;
    }
}

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const __m128i t = _mm_loadu_si128((const __m128i *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), codes);
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    return bits == 8 ? a->total : vi_add(a->total, vi_set1(bias)); /* 8 bits: q, no offset */
}

#endif
