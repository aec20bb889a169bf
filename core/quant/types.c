#include "types.h"

#include "bytes.h"
#include "codecs.h"

/* ---- 16-bit floats, in integers, so that every compiler and mode gives the same bits ---- */

float sn_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 31) {
        uint32_t quiet = fraction ? 0x400000u : 0;
        return sn_float_of(sign | 0x7f800000u | quiet | fraction << 13);
    }
    if (exponent == 0) { /* fraction * 2^-24: move the leading one up to the implicit bit */
        if (fraction == 0) return sn_float_of(sign);
        for (exponent = 1; !(fraction & 0x400u); exponent--)
            fraction <<= 1;
        fraction &= 0x3ffu;
    }
    /* biases 127 and 15; exponent may have gone below zero and wraps back here */
    return sn_float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t sn_f32_to_f16(float value) {
    uint32_t bits = sn_bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
        half = 0x7e00u | (magnitude >> 13 & 0x3ffu); /* quiet NaN */
    } else if (magnitude >= 0x47800000u) {           /* 2^16 and above */
        half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) { /* 2^-14: normal; a carry may make it infinite */
        half = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    } else if (magnitude > 0x33000000u) { /* above 2^-25: subnormal, in units of 2^-24 */
        uint32_t shift = 126 - (magnitude >> 23); /* 14..24 */
        uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
        half = (fraction + (1u << (shift - 1)) - 1 + (fraction >> shift & 1u)) >> shift;
    } else {
        half = 0;
    }
    return (uint16_t)(sign | half);
}

float sn_bf16_to_f32(uint16_t half) {
    return sn_float_of((uint32_t)half << 16);
}

uint16_t sn_f32_to_bf16(float value) {
    uint32_t bits = sn_bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* ---- is everything a number? ----------------------------------------------------------- */

/* As sn_halves_finite(). */
static bool f32_finite(const uint8_t *src, size_t n) {
    uint32_t sums = 0;
    for (size_t i = 0; i < n; i++) sums |= (sn_load32(src + 4 * i) & 0x7f800000u) + 0x00800000u;
    return !(sums & 0x80000000u);
}

/* `count` f16 scales, `stride` bytes apart */
static bool scales_finite(const uint8_t *src, size_t count, size_t stride) {
    uint32_t sums = 0;
    for (size_t i = 0; i < count; i++)
        sums |= (sn_load16(src + i * stride) & (uint32_t)SN_F16_EXPONENT) + 0x400u;
    return !(sums & 0x8000u);
}

static bool f16_finite(const uint8_t *src, size_t n) {
    return sn_halves_finite(src, n, SN_F16_EXPONENT);
}

static bool bf16_finite(const uint8_t *src, size_t n) {
    return sn_halves_finite(src, n, SN_BF16_EXPONENT);
}

/* A name, the block's elements and bytes, and the places of its one or two f16 scales. */
#define SCALES_FINITE(name, block, bytes, first, last)                                        \
    static bool name##_finite(const uint8_t *src, size_t n) {                                 \
        size_t blocks = n / (block);                                                          \
        return scales_finite(src + (first), blocks, bytes) &&                                 \
               ((first) == (last) || scales_finite(src + (last), blocks, bytes));             \
    }

SCALES_FINITE(q4_0, 32, 18, 0, 0)
SCALES_FINITE(q4_1, 32, 20, 0, 2)
SCALES_FINITE(q5_0, 32, 22, 0, 0)
SCALES_FINITE(q5_1, 32, 24, 0, 2)
SCALES_FINITE(q8_0, 32, 34, 0, 0)
SCALES_FINITE(q2_k, 256, 84, 80, 82)
SCALES_FINITE(q3_k, 256, 110, 108, 108)
SCALES_FINITE(q4_k, 256, 144, 0, 2)
SCALES_FINITE(q5_k, 256, 176, 0, 2)
SCALES_FINITE(q6_k, 256, 210, 208, 208)
SCALES_FINITE(iq4_nl, 32, 18, 0, 0)
SCALES_FINITE(iq4_xs, 256, 136, 0, 0)
SCALES_FINITE(tq1_0, 256, 54, 52, 52)
SCALES_FINITE(tq2_0, 256, 66, 64, 64)

/* A scale of 255 is no number; from 253 on, the largest codes overflow. */
static bool mxfp4_finite(const uint8_t *src, size_t n) {
    bool finite = true;
    for (size_t b = 0; b < n / 32; b++)
        finite &= src[17 * b] < 253;
    return finite;
}

/* The codes reach 8 scales: beyond 2^125 it depends on them whether a value is one. */
static bool i4_finite(const uint8_t *src, size_t n) {
    float values[64];
    for (size_t b = 0; b < n / 64; b++) {
        const uint8_t *block = src + 36 * b;
        if ((sn_load32(block + 32) & 0x7f800000u) < 0x7e000000u) continue;
        sn_decode_i4(block, values, 64);
        for (int i = 0; i < 64; i++)
            if ((sn_bits_of(values[i]) & 0x7f800000u) == 0x7f800000u) return false;
    }
    return true;
}

/* ---- the table ------------------------------------------------------------------------- */

static const sn_type types[] = {
    {SN_TYPE_F32, "F32", 1, 4, sn_decode_f32, sn_encode_f32, f32_finite},
    {SN_TYPE_F16, "F16", 1, 2, sn_decode_f16, sn_encode_f16, f16_finite},
    {SN_TYPE_Q4_0, "Q4_0", 32, 18, sn_decode_q4_0, sn_encode_q4_0, q4_0_finite},
    {SN_TYPE_Q4_1, "Q4_1", 32, 20, sn_decode_q4_1, sn_encode_q4_1, q4_1_finite},
    {SN_TYPE_Q5_0, "Q5_0", 32, 22, sn_decode_q5_0, sn_encode_q5_0, q5_0_finite},
    {SN_TYPE_Q5_1, "Q5_1", 32, 24, sn_decode_q5_1, sn_encode_q5_1, q5_1_finite},
    {SN_TYPE_Q8_0, "Q8_0", 32, 34, sn_decode_q8_0, sn_encode_q8_0, q8_0_finite},
    {SN_TYPE_Q2_K, "Q2_K", 256, 84, sn_decode_q2_k, sn_encode_q2_k, q2_k_finite},
    {SN_TYPE_Q3_K, "Q3_K", 256, 110, sn_decode_q3_k, sn_encode_q3_k, q3_k_finite},
    {SN_TYPE_Q4_K, "Q4_K", 256, 144, sn_decode_q4_k, sn_encode_q4_k, q4_k_finite},
    {SN_TYPE_Q5_K, "Q5_K", 256, 176, sn_decode_q5_k, sn_encode_q5_k, q5_k_finite},
    {SN_TYPE_Q6_K, "Q6_K", 256, 210, sn_decode_q6_k, sn_encode_q6_k, q6_k_finite},
    {SN_TYPE_IQ4_NL, "IQ4_NL", 32, 18, sn_decode_iq4_nl, sn_encode_iq4_nl, iq4_nl_finite},
    {SN_TYPE_IQ4_XS, "IQ4_XS", 256, 136, sn_decode_iq4_xs, sn_encode_iq4_xs, iq4_xs_finite},
    {SN_TYPE_BF16, "BF16", 1, 2, sn_decode_bf16, sn_encode_bf16, bf16_finite},
    {SN_TYPE_I4, "I4", 64, 36, sn_decode_i4, sn_encode_i4, i4_finite},
    /* decoded, so that convert and vectors can take them, but without panels */
    {SN_TYPE_TQ1_0, "TQ1_0", 256, 54, sn_decode_tq1_0, NULL, tq1_0_finite},
    {SN_TYPE_TQ2_0, "TQ2_0", 256, 66, sn_decode_tq2_0, NULL, tq2_0_finite},
    {SN_TYPE_MXFP4, "MXFP4", 32, 17, sn_decode_mxfp4, NULL, mxfp4_finite},
    /* known by name and size, so that a file that holds them can be described and copied */
    {15, "Q8_K", 256, 292, NULL, NULL, NULL},
    {16, "IQ2_XXS", 256, 66, NULL, NULL, NULL},
    {17, "IQ2_XS", 256, 74, NULL, NULL, NULL},
    {18, "IQ3_XXS", 256, 98, NULL, NULL, NULL},
    {19, "IQ1_S", 256, 50, NULL, NULL, NULL},
    {21, "IQ3_S", 256, 110, NULL, NULL, NULL},
    {22, "IQ2_S", 256, 82, NULL, NULL, NULL},
    {SN_TYPE_I8, "I8", 1, 1, NULL, NULL, NULL},
    {25, "I16", 1, 2, NULL, NULL, NULL},
    {26, "I32", 1, 4, NULL, NULL, NULL},
    {27, "I64", 1, 8, NULL, NULL, NULL},
    {28, "F64", 1, 8, NULL, NULL, NULL},
    {29, "IQ1_M", 256, 56, NULL, NULL, NULL},
};

#define N_TYPES (sizeof types / sizeof types[0])

const sn_type *sn_type_find(uint32_t id) {
    for (size_t i = 0; i < N_TYPES; i++)
        if (types[i].id == id) return &types[i];
    return NULL;
}

/* ASCII only: the C library's would follow the locale */
static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool sn_type_same_name(const char *a, const char *b) {
    for (; lower(*a) == lower(*b); a++, b++)
        if (!*a) return true;
    return false;
}

const sn_type *sn_type_by_name(const char *name) {
    for (size_t i = 0; name && i < N_TYPES; i++)
        if (sn_type_same_name(types[i].name, name)) return &types[i];
    return NULL;
}
