/*
 * vec_avx512.h: 16 lanes as one zmm register (F, BW, VL, DQ). What each operation means:
 * vec_scalar.h.
 */
#ifndef SN_SIMD_VEC_H
#define SN_SIMD_VEC_H

#include "base.h"

#include <immintrin.h>

#define VF_TILE 8
#define VQ_TILE 8
#define VF_PANELS 2
#define VQ_PANELS 2
#define VF_NEAR 4
#define VF_HAS_PARTS /* masked moves neither read nor fault where the mask is off */
#define VF_HAS_STREAM
#define VF_HAS_ACROSS
#define SN_UNROLL _Pragma("GCC unroll 8") /* loops over tiles, panels and code words */

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

SN_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
SN_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
SN_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
SN_INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
SN_INLINE void vf_stream(float *p, vf a) { _mm512_stream_ps(p, a); }
SN_INLINE void stream_end(void) { _mm_sfence(); }
SN_INLINE vm vm_first(size_t n) { return (vm)((1u << n) - 1); }
SN_INLINE vf vf_load_part(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}
SN_INLINE void vf_store_part(float *p, vf a, size_t n) {
    _mm512_mask_storeu_ps(p, vm_first(n), a);
}

SN_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SN_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
SN_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SN_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
SN_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SN_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
SN_INLINE vi vi_of_bits(vf a) { return _mm512_castps_si512(a); }
SN_INLINE vf vf_of_bits(vi a) { return _mm512_castsi512_ps(a); }
SN_INLINE vf vf_abs(vf a) {
    return vf_of_bits(_mm512_and_si512(vi_of_bits(a), _mm512_set1_epi32(0x7fffffff)));
}
SN_INLINE vf vf_neg(vf a) {
    return vf_of_bits(_mm512_xor_si512(vi_of_bits(a), vi_of_bits(_mm512_set1_ps(-0.0f))));
}
SN_INLINE vm vf_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SN_INLINE vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }

SN_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
SN_INLINE vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
SN_INLINE void vi_store(void *p, vi a) { _mm512_storeu_si512(p, a); }
SN_INLINE vi vi_load_u8(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
SN_INLINE vi vi_load_i8(const uint8_t *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
SN_INLINE void vi_store_i8(int8_t *p, vi a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a));
}
SN_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
SN_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
SN_INLINE vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
SN_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
SN_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
SN_INLINE vi vi_shl(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
SN_INLINE vi vi_shr(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
SN_INLINE vf vf_of_int(vi a) { return _mm512_cvtepi32_ps(a); }

SN_INLINE vf vf_load_f16(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
SN_INLINE vf vf_load_bf16(const uint8_t *p) {
    __m256i h = _mm256_loadu_si256((const __m256i *)p);
    return vf_of_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

SN_INLINE float vf_hsum(vf a) {
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

SN_INLINE float vf_hmax(vf a) {
    __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_shuffle_ps(m2, m2, 1)));
}
SN_INLINE int32_t vi_hsum(vi a) {
    __m256i s8 = _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti32x8_epi32(a, 1));
    __m128i s4 = _mm_add_epi32(_mm256_castsi256_si128(s8), _mm256_extracti128_si256(s8, 1));
    __m128i s2 = _mm_add_epi32(s4, _mm_shuffle_epi32(s4, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s2, _mm_shuffle_epi32(s2, 0xb1)));
}

SN_INLINE void prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

#endif
