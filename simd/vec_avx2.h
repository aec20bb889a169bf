/*
 * vec_avx2.h: 16 lanes as two ymm registers. What each operation means: vec_scalar.h.
 */
#ifndef SN_SIMD_VEC_H
#define SN_SIMD_VEC_H

#include "base.h"

#include <immintrin.h>

#define VF_TILE 6   /* 12 of 16 registers hold sums */
#define VQ_TILE 4
#define VF_FEW 3    /* float_panels() reaches as much with four */
#define VF_PANELS 4 /* from memory a fifth faster than two */
#define VQ_PANELS 2
#define VF_NEAR 4
#define VF_HAS_PARTS /* masked loads neither read nor fault where the mask is off */
#define VF_HAS_STREAM
#define VF_HAS_ACROSS
#define SN_UNROLL _Pragma("GCC unroll 8") /* loops over tiles, panels and code words */

typedef struct { __m256 lo, hi; } vf;
typedef struct { __m256i lo, hi; } vi;
typedef struct { __m256 lo, hi; } vm;

#define VF_PAIR(f) (vf){ f(a.lo, b.lo), f(a.hi, b.hi) }
#define VI_PAIR(f) (vi){ f(a.lo, b.lo), f(a.hi, b.hi) }

SN_INLINE vf vf_set1(float x) { __m256 r = _mm256_set1_ps(x); return (vf){ r, r }; }
SN_INLINE vf vf_zero(void) { __m256 r = _mm256_setzero_ps(); return (vf){ r, r }; }
SN_INLINE vf vf_load(const float *p) {
    return (vf){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}
SN_INLINE void vf_store(float *p, vf a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}

SN_INLINE void vf_stream(float *p, vf a) {
    _mm256_stream_ps(p, a.lo);
    _mm256_stream_ps(p + 8, a.hi);
}
SN_INLINE void stream_end(void) { _mm_sfence(); }

SN_INLINE vi first_lanes(size_t n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i count = _mm256_set1_epi32((int)n);
    return (vi){ _mm256_cmpgt_epi32(count, index),
                 _mm256_cmpgt_epi32(count, _mm256_add_epi32(index, _mm256_set1_epi32(8))) };
}
SN_INLINE vf vf_load_part(const float *p, size_t n) {
    vi m = first_lanes(n);
    return (vf){ _mm256_maskload_ps(p, m.lo), _mm256_maskload_ps(p + 8, m.hi) };
}
/* By halves, which processors are quick at; AMD's take some 20 cycles for a masked store. */
SN_INLINE void vf_store_part(float *p, vf a, size_t n) {
    if (n & 16) {
        vf_store(p, a);
        return;
    }
    if (n & 8) {
        _mm256_storeu_ps(p, a.lo);
        a.lo = a.hi, p += 8;
    }
    __m128 left = _mm256_castps256_ps128(a.lo);
    if (n & 4) {
        _mm_storeu_ps(p, left);
        left = _mm256_extractf128_ps(a.lo, 1), p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, left);
        left = _mm_movehl_ps(left, left), p += 2;
    }
    if (n & 1) _mm_store_ss(p, left);
}

SN_INLINE vf vf_add(vf a, vf b) { return VF_PAIR(_mm256_add_ps); }
SN_INLINE vf vf_sub(vf a, vf b) { return VF_PAIR(_mm256_sub_ps); }
SN_INLINE vf vf_mul(vf a, vf b) { return VF_PAIR(_mm256_mul_ps); }
SN_INLINE vf vf_div(vf a, vf b) { return VF_PAIR(_mm256_div_ps); }
SN_INLINE vf vf_max(vf a, vf b) { return VF_PAIR(_mm256_max_ps); }
SN_INLINE vf vf_min(vf a, vf b) { return VF_PAIR(_mm256_min_ps); }

SN_INLINE vi vi_of_bits(vf a) {
    return (vi){ _mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi) };
}
SN_INLINE vf vf_of_bits(vi a) {
    return (vf){ _mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi) };
}
SN_INLINE vf vf_abs(vf a) {
    const vf b = vf_set1(float_of(0x7fffffffu));
    return VF_PAIR(_mm256_and_ps);
}
SN_INLINE vf vf_neg(vf a) {
    const vf b = vf_set1(-0.0f);
    return VF_PAIR(_mm256_xor_ps);
}

SN_INLINE vm vf_less(vf a, vf b) {
    return (vm){ _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ) };
}
SN_INLINE vm vm_first(size_t n) {
    vi m = first_lanes(n);
    return (vm){ _mm256_castsi256_ps(m.lo), _mm256_castsi256_ps(m.hi) };
}
SN_INLINE vf vf_select(vm m, vf a, vf b) {
    return (vf){ _mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi) };
}

SN_INLINE vi vi_set1(int32_t x) { __m256i r = _mm256_set1_epi32(x); return (vi){ r, r }; }
SN_INLINE vi vi_load(const void *p) {
    const __m256i *q = (const __m256i *)p;
    return (vi){ _mm256_loadu_si256(q), _mm256_loadu_si256(q + 1) };
}
SN_INLINE void vi_store(void *p, vi a) {
    _mm256_storeu_si256((__m256i *)p, a.lo);
    _mm256_storeu_si256((__m256i *)p + 1, a.hi);
}
SN_INLINE vi vi_load_u8(const uint8_t *p) {
    return (vi){ _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)),
                 _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))) };
}
SN_INLINE vi vi_load_i8(const uint8_t *p) {
    return (vi){ _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)),
                 _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))) };
}
SN_INLINE void vi_store_i8(int8_t *p, vi a) {
    __m256i words = _mm256_packs_epi32(a.lo, a.hi); /* lanes 0-3 8-11 4-7 12-15 */
    words = _mm256_permute4x64_epi64(words, 0xd8);  /* in order */
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words),
                                    _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)p, bytes);
}
SN_INLINE vi vi_add(vi a, vi b) { return VI_PAIR(_mm256_add_epi32); }
SN_INLINE vi vi_sub(vi a, vi b) { return VI_PAIR(_mm256_sub_epi32); }
SN_INLINE vi vi_mul(vi a, vi b) { return VI_PAIR(_mm256_mullo_epi32); }
SN_INLINE vi vi_and(vi a, vi b) { return VI_PAIR(_mm256_and_si256); }
SN_INLINE vi vi_or(vi a, vi b) { return VI_PAIR(_mm256_or_si256); }
SN_INLINE vi vi_shl(vi a, int n) {
    return (vi){ _mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n) };
}
SN_INLINE vi vi_shr(vi a, int n) {
    return (vi){ _mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n) };
}
SN_INLINE vf vf_of_int(vi a) {
    return (vf){ _mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi) };
}

SN_INLINE vf vf_load_f16(const uint8_t *p) {
    const __m128i *q = (const __m128i *)p;
    return (vf){ _mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1)) };
}
SN_INLINE __m256 widen_bf16(const __m128i *p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
SN_INLINE vf vf_load_bf16(const uint8_t *p) {
    const __m128i *q = (const __m128i *)p;
    return (vf){ widen_bf16(q), widen_bf16(q + 1) };
}

SN_INLINE float vf_hsum(vf a) {
    __m256 s8 = _mm256_add_ps(a.lo, a.hi);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

SN_INLINE float vf_hmax(vf a) {
    __m256 m8 = _mm256_max_ps(a.lo, a.hi);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_shuffle_ps(m2, m2, 1)));
}
SN_INLINE int32_t vi_hsum(vi a) {
    __m256i s8 = _mm256_add_epi32(a.lo, a.hi);
    __m128i s4 = _mm_add_epi32(_mm256_castsi256_si128(s8), _mm256_extracti128_si256(s8, 1));
    __m128i s2 = _mm_add_epi32(s4, _mm_shuffle_epi32(s4, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s2, _mm_shuffle_epi32(s2, 0xb1)));
}

SN_INLINE void prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

#endif
