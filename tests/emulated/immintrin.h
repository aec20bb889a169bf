/*
 * immintrin.h: the x86 vector intrinsics that simd/ uses, as plain C loops over lanes.
 *
 * Found before the compiler's own header, it lets the AVX2, AVX-512 and VNNI back ends compile
 * unchanged for a CPU that has none of these, so that their code can be run and compared with
 * the scalar back end everywhere. Each function follows the "Operation" section of its
 * instruction in Intel's Software Developer's Manual, volume 2 (the instruction is named where
 * the intrinsic's name does not tell); it shares nothing with simd/vec_scalar.h. Vectors are
 * little-endian views of one another, as in a register; memory needs no alignment, and lanes
 * that a mask switches off are neither read nor written.
 */
#ifndef SN_EMULATED_IMMINTRIN_H
#define SN_EMULATED_IMMINTRIN_H

#include <stdint.h>
#include <string.h>

typedef uint16_t __mmask16;
typedef uint64_t __mmask64;

/* A register as all of its element types. */
#define VECTOR(BITS)                                                                          \
    union {                                                                                   \
        float f32[(BITS) / 32];                                                               \
        uint64_t u64[(BITS) / 64];                                                            \
        int32_t i32[(BITS) / 32];                                                             \
        uint32_t u32[(BITS) / 32];                                                            \
        int16_t i16[(BITS) / 16];                                                             \
        uint16_t u16[(BITS) / 16];                                                            \
        int8_t i8[(BITS) / 8];                                                                \
        uint8_t u8[(BITS) / 8];                                                               \
    }
typedef uint64_t __m64;
typedef VECTOR(128) __m128;
typedef VECTOR(128) __m128i;
typedef VECTOR(256) __m256;
typedef VECTOR(256) __m256i;
typedef VECTOR(512) __m512;
typedef VECTOR(512) __m512i;
#undef VECTOR

#define EMULATED static inline
#define LANES(N) for (int l = 0; l < (N); l++)

#define _CMP_LT_OQ 0x11 /* less than, ordered: false for a NaN */
#define _MM_HINT_T0 3

/* ---- pieces -------------------------------------------------------------------------------- */

EMULATED int16_t emulated_to_i16(int32_t x) { /* signed saturation */
    return (int16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
}

EMULATED int8_t emulated_to_i8(int16_t x) { /* signed saturation */
    return (int8_t)(x < -128 ? -128 : x > 127 ? 127 : x);
}

EMULATED uint32_t emulated_u32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

EMULATED float emulated_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* VCVTPH2PS: exact, subnormals kept, a signalling NaN made quiet. */
EMULATED float emulated_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half >> 15) << 31;
    uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0x1f) return emulated_f32(sign | 0x7f800000 | fraction << 13 |
                                              (fraction ? 0x400000u : 0));
    if (exponent == 0 && fraction == 0) return emulated_f32(sign);
    exponent += 127 - 15;
    if ((half & 0x7c00) == 0) { /* subnormal: shift until the leading one is the hidden one */
        for (exponent++; !(fraction & 0x400); exponent--) fraction <<= 1;
        fraction &= 0x3ff;
    }
    return emulated_f32(sign | exponent << 23 | fraction << 13);
}

/* VPDPBUSD, one lane: a + four products of unsigned w with signed x, modulo 2^32. */
EMULATED uint32_t emulated_dpbusd(uint32_t a, const uint8_t *w, const int8_t *x) {
    for (int j = 0; j < 4; j++) a += (uint32_t)((int32_t)w[j] * (int32_t)x[j]);
    return a;
}

/* VPMADDUBSW, one lane: two products of unsigned w with signed x, added with saturation. */
EMULATED int16_t emulated_maddubs(const uint8_t *w, const int8_t *x) {
    return emulated_to_i16((int32_t)w[0] * x[0] + (int32_t)w[1] * x[1]);
}

/* VPMADDWD, one lane: two products added modulo 2^32 (only four times -32768 wraps). */
EMULATED uint32_t emulated_madd(const int16_t *a, const int16_t *b) {
    return (uint32_t)((int32_t)a[0] * b[0]) + (uint32_t)((int32_t)a[1] * b[1]);
}

/* ---- operations of one shape ----------------------------------------------------------------- */

/* result lane l = EXPRESSION of a and b */
#define BINARY(TYPE, NAME, MEMBER, N, EXPRESSION)                                             \
    EMULATED TYPE NAME(TYPE a, TYPE b) {                                                      \
        TYPE r;                                                                               \
        LANES(N) r.MEMBER[l] = (EXPRESSION);                                                  \
        return r;                                                                             \
    }
#define UNARY(TYPE, NAME, FROM, MEMBER, N, EXPRESSION)                                        \
    EMULATED TYPE NAME(FROM a) {                                                              \
        TYPE r;                                                                               \
        LANES(N) r.MEMBER[l] = (EXPRESSION);                                                  \
        return r;                                                                             \
    }
/* The same bits under another type, or the low part of them. */
#define CAST(TYPE, NAME, FROM)                                                                \
    EMULATED TYPE NAME(FROM a) {                                                              \
        TYPE r;                                                                               \
        memcpy(&r, &a, sizeof r);                                                             \
        return r;                                                                             \
    }
#define LOAD(TYPE, NAME, POINTER)                                                             \
    EMULATED TYPE NAME(const POINTER *p) {                                                    \
        TYPE r;                                                                               \
        memcpy(&r, (const void *)p, sizeof r);                                                \
        return r;                                                                             \
    }
#define STORE(TYPE, NAME, POINTER)                                                            \
    EMULATED void NAME(POINTER *p, TYPE a) { memcpy((void *)p, &a, sizeof a); }
/* Faults where the address is not a multiple of the width. */
#define ALIGNED_STORE(TYPE, NAME, POINTER)                                                    \
    EMULATED void NAME(POINTER *p, TYPE a) {                                                  \
        if ((uintptr_t)p % sizeof a) __builtin_trap();                                        \
        memcpy((void *)p, &a, sizeof a);                                                      \
    }

/* What AVX2 and AVX-512 have alike: W is the width, V and VI the types, N the number of floats.
 * Maximum and minimum: the second operand if either is a NaN, or both are zeros (VMAXPS). */
#define COMMON(W, V, VI, N)                                                                   \
    UNARY(V, _mm##W##_set1_ps, float, f32, N, a)                                              \
    UNARY(VI, _mm##W##_set1_epi32, int, i32, N, a)                                            \
    UNARY(VI, _mm##W##_set1_epi16, short, i16, 2 * (N), a)                                    \
    UNARY(VI, _mm##W##_set1_epi8, char, u8, 4 * (N), (uint8_t)a)                              \
    EMULATED V _mm##W##_setzero_ps(void) { return (V){ .u64 = { 0 } }; }                      \
    LOAD(V, _mm##W##_loadu_ps, float)                                                         \
    STORE(V, _mm##W##_storeu_ps, float)                                                       \
    BINARY(V, _mm##W##_add_ps, f32, N, a.f32[l] + b.f32[l])                                   \
    BINARY(V, _mm##W##_sub_ps, f32, N, a.f32[l] - b.f32[l])                                   \
    BINARY(V, _mm##W##_mul_ps, f32, N, a.f32[l] * b.f32[l])                                   \
    BINARY(V, _mm##W##_div_ps, f32, N, a.f32[l] / b.f32[l])                                   \
    BINARY(V, _mm##W##_max_ps, u32, N, a.f32[l] > b.f32[l] ? a.u32[l] : b.u32[l])             \
    BINARY(V, _mm##W##_min_ps, u32, N, a.f32[l] < b.f32[l] ? a.u32[l] : b.u32[l])             \
    BINARY(VI, _mm##W##_and_si##W, u32, N, a.u32[l] & b.u32[l])                               \
    BINARY(VI, _mm##W##_or_si##W, u32, N, a.u32[l] | b.u32[l])                                \
    BINARY(VI, _mm##W##_xor_si##W, u32, N, a.u32[l] ^ b.u32[l])                               \
    BINARY(VI, _mm##W##_add_epi32, u32, N, a.u32[l] + b.u32[l])                               \
    BINARY(VI, _mm##W##_sub_epi32, u32, N, a.u32[l] - b.u32[l])                               \
    BINARY(VI, _mm##W##_mullo_epi32, u32, N, a.u32[l] * b.u32[l])                             \
    BINARY(VI, _mm##W##_add_epi16, u16, 2 * (N), (uint16_t)(a.u16[l] + b.u16[l]))             \
    BINARY(VI, _mm##W##_maddubs_epi16, i16, 2 * (N), emulated_maddubs(a.u8 + 2 * l, b.i8 + 2 * l)) \
    BINARY(VI, _mm##W##_madd_epi16, u32, N, emulated_madd(a.i16 + 2 * l, b.i16 + 2 * l))      \
    UNARY(VI, _mm##W##_abs_epi8, VI, u8, 4 * (N), (uint8_t)(a.i8[l] < 0 ? -a.i8[l] : a.i8[l])) \
    /* VPSHUFB: a byte of the same 128 bits of a, or 0 where the index has its top bit set */  \
    BINARY(VI, _mm##W##_shuffle_epi8, u8, 4 * (N),                                            \
           b.u8[l] & 0x80 ? 0 : a.u8[(l & ~15) + (b.u8[l] & 15)])                             \
    UNARY(V, _mm##W##_cvtepi32_ps, VI, f32, N, (float)a.i32[l])                               \
    CAST(VI, _mm##W##_castps_si##W, V)                                                        \
    CAST(V, _mm##W##_castsi##W##_ps, VI)

COMMON(256, __m256, __m256i, 8)
COMMON(512, __m512, __m512i, 16)

/* ---- SSE ----------------------------------------------------------------------------------- */

BINARY(__m128, _mm_add_ps, f32, 4, a.f32[l] + b.f32[l])
BINARY(__m128, _mm_add_ss, f32, 4, l == 0 ? a.f32[0] + b.f32[0] : a.f32[l])
BINARY(__m128, _mm_max_ps, u32, 4, a.f32[l] > b.f32[l] ? a.u32[l] : b.u32[l])
BINARY(__m128, _mm_max_ss, u32, 4, l > 0 || a.f32[l] > b.f32[l] ? a.u32[l] : b.u32[l])
BINARY(__m128, _mm_movehl_ps, u32, 4, l < 2 ? b.u32[l + 2] : a.u32[l])
BINARY(__m128i, _mm_packs_epi16, i8, 16, emulated_to_i8(l < 8 ? a.i16[l] : b.i16[l - 8]))
LOAD(__m128i, _mm_loadu_si128, __m128i)
EMULATED __m128i _mm_loadl_epi64(const __m128i *p) {
    __m128i r = { .u8 = { 0 } };
    memcpy(&r, p, 8);
    return r;
}
STORE(__m128i, _mm_storeu_si128, __m128i)
STORE(__m128, _mm_storeu_ps, float)

BINARY(__m128i, _mm_add_epi32, u32, 4, a.u32[l] + b.u32[l])

EMULATED float _mm_cvtss_f32(__m128 a) { return a.f32[0]; }
EMULATED int _mm_cvtsi128_si32(__m128i a) { return a.i32[0]; }

/* pshufd */
EMULATED __m128i _mm_shuffle_epi32(__m128i a, int control) {
    __m128i r;
    LANES(4) r.u32[l] = a.u32[control >> 2 * l & 3];
    return r;
}
EMULATED void _mm_storel_pi(__m64 *p, __m128 a) { memcpy(p, &a, 8); }
EMULATED void _mm_store_ss(float *p, __m128 a) { memcpy(p, &a, 4); }

EMULATED __m128 _mm_shuffle_ps(__m128 a, __m128 b, unsigned select) { /* two of a, two of b */
    __m128 r;
    LANES(4) r.u32[l] = (l < 2 ? a : b).u32[select >> (2 * l) & 3];
    return r;
}

EMULATED void _mm_prefetch(const char *p, int hint) { (void)p, (void)hint; }
EMULATED void _mm_sfence(void) {}

/* ---- AVX, AVX2, F16C, AVX-VNNI -------------------------------------------------------------- */

CAST(__m128, _mm256_castps256_ps128, __m256)
CAST(__m128i, _mm256_castsi256_si128, __m256i)
LOAD(__m256i, _mm256_loadu_si256, __m256i)
STORE(__m256i, _mm256_storeu_si256, __m256i)
ALIGNED_STORE(__m256, _mm256_stream_ps, float)
BINARY(__m256, _mm256_and_ps, u32, 8, a.u32[l] & b.u32[l])
BINARY(__m256, _mm256_xor_ps, u32, 8, a.u32[l] ^ b.u32[l])
/* VPHADDD: two sums of neighbours in a, then two in b, in either 128 bits */
BINARY(__m256i, _mm256_hadd_epi32, u32, 8,
       (l & 2 ? b : a).u32[(l & 4) + (l & 1) * 2] + (l & 2 ? b : a).u32[(l & 4) + (l & 1) * 2 + 1])
BINARY(__m256i, _mm256_cmpgt_epi32, u32, 8, a.i32[l] > b.i32[l] ? ~0u : 0)
BINARY(__m256i, _mm256_sign_epi8, u8, 32,
       (uint8_t)(b.i8[l] < 0 ? -a.i8[l] : b.i8[l] ? a.i8[l] : 0))
/* VPACKSSDW: within each 128-bit half, four of a, then four of b. */
BINARY(__m256i, _mm256_packs_epi32, i16, 16,
       emulated_to_i16((l & 4 ? b : a).i32[(l & 3) + (l & 8) / 2]))
UNARY(__m256i, _mm256_broadcastsi128_si256, __m128i, u64, 4, a.u64[l & 1])
UNARY(__m256i, _mm256_cvtepi8_epi32, __m128i, i32, 8, a.i8[l])
UNARY(__m256i, _mm256_cvtepu8_epi32, __m128i, i32, 8, a.u8[l])
UNARY(__m256i, _mm256_cvtepu16_epi32, __m128i, i32, 8, a.u16[l])
UNARY(__m256, _mm256_cvtph_ps, __m128i, f32, 8, emulated_half(a.u16[l]))

EMULATED __m256i _mm256_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h) {
    return (__m256i){ .i32 = { a, b, c, d, e, f, g, h } };
}

EMULATED __m256 _mm256_cmp_ps(__m256 a, __m256 b, int predicate) {
    __m256 r;
    LANES(8) r.u32[l] = predicate == _CMP_LT_OQ && a.f32[l] < b.f32[l] ? ~0u : 0;
    return r;
}

/* VBLENDVPS, VMASKMOVPS: the sign bits of the mask count. */
EMULATED __m256 _mm256_blendv_ps(__m256 a, __m256 b, __m256 mask) {
    __m256 r;
    LANES(8) r.u32[l] = mask.i32[l] < 0 ? b.u32[l] : a.u32[l];
    return r;
}

EMULATED __m256 _mm256_maskload_ps(const float *p, __m256i mask) {
    __m256 r = _mm256_setzero_ps();
    LANES(8) if (mask.i32[l] < 0) memcpy(&r.f32[l], p + l, 4);
    return r;
}

EMULATED void _mm256_maskstore_ps(float *p, __m256i mask, __m256 a) {
    LANES(8) if (mask.i32[l] < 0) memcpy(p + l, &a.f32[l], 4);
}

/* Counts above 31 clear the lane. */
EMULATED __m256i _mm256_slli_epi32(__m256i a, int count) {
    LANES(8) a.u32[l] = (unsigned)count > 31 ? 0 : a.u32[l] << count;
    return a;
}

EMULATED __m256i _mm256_srli_epi32(__m256i a, int count) {
    LANES(8) a.u32[l] = (unsigned)count > 31 ? 0 : a.u32[l] >> count;
    return a;
}

EMULATED __m256i _mm256_permute4x64_epi64(__m256i a, unsigned select) {
    __m256i r;
    LANES(4) r.u64[l] = a.u64[select >> (2 * l) & 3];
    return r;
}

EMULATED __m128 _mm256_extractf128_ps(__m256 a, int half) {
    __m128 r;
    memcpy(&r, a.f32 + 4 * (half & 1), sizeof r);
    return r;
}

EMULATED __m128i _mm256_extracti128_si256(__m256i a, int half) {
    __m128i r;
    memcpy(&r, a.i32 + 4 * (half & 1), sizeof r);
    return r;
}

EMULATED __m256i _mm256_dpbusd_avx_epi32(__m256i a, __m256i w, __m256i x) {
    LANES(8) a.u32[l] = emulated_dpbusd(a.u32[l], w.u8 + 4 * l, x.i8 + 4 * l);
    return a;
}

/* ---- AVX-512 F, BW, DQ, VNNI ---------------------------------------------------------------- */

CAST(__m256, _mm512_castps512_ps256, __m512)
CAST(__m256i, _mm512_castsi512_si256, __m512i)
LOAD(__m512i, _mm512_loadu_si512, void)
STORE(__m512i, _mm512_storeu_si512, void)
UNARY(__m512i, _mm512_broadcast_i32x4, __m128i, u64, 8, a.u64[l & 1])
UNARY(__m512i, _mm512_cvtepi8_epi32, __m128i, i32, 16, a.i8[l])
UNARY(__m512i, _mm512_cvtepu8_epi32, __m128i, i32, 16, a.u8[l])
UNARY(__m512i, _mm512_cvtepu16_epi32, __m256i, i32, 16, a.u16[l])
UNARY(__m512, _mm512_cvtph_ps, __m256i, f32, 16, emulated_half(a.u16[l]))
UNARY(__m128i, _mm512_cvtepi32_epi8, __m512i, u8, 16, (uint8_t)a.u32[l]) /* VPMOVDB truncates */

EMULATED __m512i _mm512_setzero_si512(void) { return (__m512i){ .u64 = { 0 } }; }

EMULATED __m512 _mm512_maskz_loadu_ps(__mmask16 k, const void *p) {
    __m512 r = _mm512_setzero_ps();
    LANES(16) if (k >> l & 1) memcpy(&r.f32[l], (const uint8_t *)p + 4 * l, 4);
    return r;
}

ALIGNED_STORE(__m512, _mm512_stream_ps, void)
EMULATED void _mm512_mask_storeu_ps(void *p, __mmask16 k, __m512 a) {
    LANES(16) if (k >> l & 1) memcpy((uint8_t *)p + 4 * l, &a.f32[l], 4);
}

EMULATED __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int predicate) {
    unsigned k = 0;
    LANES(16) k |= (unsigned)(predicate == _CMP_LT_OQ && a.f32[l] < b.f32[l]) << l;
    return (__mmask16)k;
}

EMULATED __m512 _mm512_mask_blend_ps(__mmask16 k, __m512 a, __m512 b) { /* b where k */
    __m512 r;
    LANES(16) r.u32[l] = k >> l & 1 ? b.u32[l] : a.u32[l];
    return r;
}

EMULATED __mmask64 _mm512_movepi8_mask(__m512i a) { /* the sign bits */
    uint64_t k = 0;
    LANES(64) k |= (uint64_t)(a.u8[l] >> 7) << l;
    return k;
}

EMULATED __m512i _mm512_mask_sub_epi8(__m512i source, __mmask64 k, __m512i a, __m512i b) {
    LANES(64) if (k >> l & 1) source.u8[l] = (uint8_t)(a.u8[l] - b.u8[l]);
    return source;
}

/* Counts above 31 clear the lane. */
EMULATED __m512i _mm512_slli_epi32(__m512i a, unsigned count) {
    LANES(16) a.u32[l] = count > 31 ? 0 : a.u32[l] << count;
    return a;
}

EMULATED __m512i _mm512_srli_epi32(__m512i a, unsigned count) {
    LANES(16) a.u32[l] = count > 31 ? 0 : a.u32[l] >> count;
    return a;
}

EMULATED __m256i _mm512_extracti32x8_epi32(__m512i a, int half) {
    __m256i r;
    memcpy(&r, a.u32 + 8 * (half & 1), sizeof r);
    return r;
}

EMULATED __m256 _mm512_extractf32x8_ps(__m512 a, int half) {
    __m256 r;
    memcpy(&r, a.f32 + 8 * (half & 1), sizeof r);
    return r;
}

EMULATED __m512i _mm512_dpbusd_epi32(__m512i a, __m512i w, __m512i x) {
    LANES(16) a.u32[l] = emulated_dpbusd(a.u32[l], w.u8 + 4 * l, x.i8 + 4 * l);
    return a;
}

#undef COMMON
#undef STORE
#undef LOAD
#undef CAST
#undef UNARY
#undef BINARY
#undef LANES
#undef EMULATED

#endif
