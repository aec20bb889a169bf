/*
 * dot_avx512_vnni.h: integer dots with AVX-512 VNNI's dpbusd: four u8 x s8 products added to an
 * int32 without saturation. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_avx2.h"

typedef vi vdot;

#define DOT_NEAR(bits) 1
SN_INLINE vdot dot_start_at(int32_t bias) { return vi_set1(bias); }

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    (void)bits, (void)g;
    *a = _mm512_dpbusd_epi32(*a, w, _mm512_set1_epi32(x4));
}

/* gcc 12 loads and repeats the activations in an instruction of its own, where dpbusd can do it. */
#ifdef SN_HAS_ASM
#define DOT_HAS_ADD_AT
typedef struct __attribute__((packed, may_alias)) { int32_t x4; } dot_word;

SN_INLINE void dot_add_at(vdot *a, int bits, int g, vi w, const int8_t *x) {
    (void)bits, (void)g;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*a) : "v"(w), "m"(*(const dot_word *)x));
}
#endif

SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    const __m128i t = _mm_loadu_si128((const __m128i *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), codes);
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    (void)bits;
    return vi_add(*a, vi_set1(bias));
}

#endif
