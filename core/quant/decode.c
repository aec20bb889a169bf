/*
 * Exact decoding: every product and sum is one float32 operation in the order written, so the
 * values equal those of the reference decoder bit for bit. Layouts: docs/formats.md.
 */
#include "codecs.h"

#include "bytes.h"
#include "types.h"

static float load_f16(const uint8_t *p) {
    return sn_f16_to_f32(sn_load16(p));
}

/* ---- plain floats ---------------------------------------------------------------------- */

void sn_decode_f32(const uint8_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = sn_float_of(sn_load32(src + 4 * i));
}

void sn_decode_f16(const uint8_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = load_f16(src + 2 * i);
}

void sn_decode_bf16(const uint8_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = sn_bf16_to_f32(sn_load16(src + 2 * i));
}

/* ---- blocks of 32: low nibbles are the first half, high nibbles the second -------------- */

void sn_decode_q4_0(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 18, dst += 32) {
        float d = load_f16(src);
        for (int j = 0; j < 16; j++) {
            dst[j] = (float)((src[2 + j] & 15) - 8) * d;
            dst[j + 16] = (float)((src[2 + j] >> 4) - 8) * d;
        }
    }
}

void sn_decode_q4_1(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 20, dst += 32) {
        float d = load_f16(src), m = load_f16(src + 2);
        for (int j = 0; j < 16; j++) {
            dst[j] = (float)(src[4 + j] & 15) * d + m;
            dst[j + 16] = (float)(src[4 + j] >> 4) * d + m;
        }
    }
}

/* 5-bit codes 0..31: bit i of `high` is the fifth bit of element i */
static void codes5(const uint8_t *nibbles, uint32_t high, int code[32]) {
    for (int j = 0; j < 16; j++) {
        code[j] = (nibbles[j] & 15) | (int)(high >> j & 1) << 4;
        code[j + 16] = nibbles[j] >> 4 | (int)(high >> (j + 16) & 1) << 4;
    }
}

void sn_decode_q5_0(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 22, dst += 32) {
        float d = load_f16(src);
        int code[32];
        codes5(src + 6, sn_load32(src + 2), code);
        for (int j = 0; j < 32; j++)
            dst[j] = (float)(code[j] - 16) * d;
    }
}

void sn_decode_q5_1(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 24, dst += 32) {
        float d = load_f16(src), m = load_f16(src + 2);
        int code[32];
        codes5(src + 8, sn_load32(src + 4), code);
        for (int j = 0; j < 32; j++)
            dst[j] = (float)code[j] * d + m;
    }
}

void sn_decode_q8_0(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 34, dst += 32) {
        float d = load_f16(src);
        for (int j = 0; j < 32; j++)
            dst[j] = (float)(int8_t)src[2 + j] * d;
    }
}

const int8_t sn_iq4_book[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};

/* Those of MXFP4, doubled: sign, two bits of exponent, one of fraction. */
static const int8_t mxfp4_book[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void decode_book(const int8_t book[16], float scale, const uint8_t *nibbles, float *dst) {
    for (int j = 0; j < 16; j++) {
        dst[j] = scale * (float)book[nibbles[j] & 15];
        dst[j + 16] = scale * (float)book[nibbles[j] >> 4];
    }
}

void sn_decode_iq4_nl(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 18, dst += 32)
        decode_book(sn_iq4_book, load_f16(src), src + 2, dst);
}

/* The scale byte e means 2^(e - 127), here halved for the doubled codes; 0 and 1 are subnormal. */
void sn_decode_mxfp4(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 32, src += 17, dst += 32) {
        uint32_t e = src[0];
        float scale = sn_float_of(e < 2 ? 0x00200000u << e : (e - 1) << 23);
        decode_book(mxfp4_book, scale, src + 1, dst);
    }
}

/* ---- the seed's block of 64: low nibbles are the first half, high nibbles the second ------ */

void sn_decode_i4(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 64, src += 36, dst += 64) {
        const float scale = sn_float_of(sn_load32(src + 32));
        for (int j = 0; j < 32; j++) {
            dst[j] = (float)((src[j] & 15) - 8) * scale;
            dst[j + 32] = (float)((src[j] >> 4) - 8) * scale;
        }
    }
}

/* ---- super-blocks of 256: eight groups of 32 -------------------------------------------- */

/* Of group g: bits 2 (g % 4).. of the 32 bytes that four groups share. */
static int code2(const uint8_t *quants, int g, int l) {
    return quants[32 * (g / 4) + l] >> 2 * (g % 4) & 3;
}

/* A byte of scales serves 16 elements: the scale's nibble, then the minimum's. */
void sn_decode_q2_k(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 84, dst += 256) {
        float d = load_f16(src + 80), dmin = load_f16(src + 82);
        for (int i = 0; i < 256; i++) {
            uint8_t pair = src[i / 16];
            float scale = d * (float)(pair & 15), minimum = dmin * (float)(pair >> 4);
            dst[i] = scale * (float)code2(src + 16, i / 32, i % 32) - minimum;
        }
    }
}

/* Bit g of byte l is the third bit of element l of group g. */
void sn_decode_q3_k(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 110, dst += 256) {
        float d = load_f16(src + 108);
        int8_t scales[16];
        sn_unpack_q3_k_scales(src + 96, scales);
        for (int i = 0; i < 256; i++) {
            int g = i / 32, l = i % 32;
            int code = code2(src + 32, g, l) | (src[l] >> g & 1) << 2;
            dst[i] = d * (float)scales[i / 16] * (float)(code - 4);
        }
    }
}

/* Groups 2c and 2c + 1 share the bytes 32c..; high (Q5_K) may be NULL: bit g is for group g. */
static void decode_k45(const uint8_t *src, const uint8_t *nibbles, const uint8_t *high,
                       float *dst) {
    float d = load_f16(src), dmin = load_f16(src + 2);
    uint8_t pair[16];
    sn_unpack_pairs(src + 4, pair);
    for (int g = 0; g < 8; g++) {
        const uint8_t *bytes = nibbles + 32 * (g / 2);
        float scale = d * (float)pair[2 * g], minimum = dmin * (float)pair[2 * g + 1];
        for (int l = 0; l < 32; l++) {
            int code = bytes[l] >> 4 * (g & 1) & 15;
            if (high) code |= (high[l] >> g & 1) << 4;
            dst[32 * g + l] = scale * (float)code - minimum;
        }
    }
}

void sn_decode_q4_k(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 144, dst += 256)
        decode_k45(src, src + 16, NULL, dst);
}

void sn_decode_q5_k(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 176, dst += 256)
        decode_k45(src, src + 48, src + 16, dst);
}

/* Group g: quarter g % 4 of half g / 4; a scale serves 16 elements. */
static void decode_k6_group(const uint8_t *src, int g, float d, float *dst) {
    int half = g / 4, quarter = g % 4;
    const uint8_t *low = src + 64 * half + 32 * (quarter & 1);
    const uint8_t *high = src + 128 + 32 * half;
    const uint8_t *scales = src + 192 + 2 * g;
    for (int l = 0; l < 32; l++) {
        int code = (low[l] >> 4 * (quarter >> 1) & 15) | (high[l] >> 2 * quarter & 3) << 4;
        dst[l] = d * (float)(int8_t)scales[l / 16] * (float)(code - 32);
    }
}

void sn_decode_q6_k(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 210, dst += 256) {
        float d = load_f16(src + 208);
        for (int g = 0; g < 8; g++)
            decode_k6_group(src, g, d, dst + 32 * g);
    }
}

void sn_decode_iq4_xs(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 136, dst += 256) {
        float d = load_f16(src);
        int8_t scales[8];
        sn_unpack_iq4_xs_scales(src + 2, scales);
        for (int g = 0; g < 8; g++)
            decode_book(sn_iq4_book, d * (float)scales[g], src + 8 + 16 * g, dst + 32 * g);
    }
}

/* ---- ternary: codes 0, 1, 2 stand for -1, 0, 1 ------------------------------------------- */

/* A byte is five digits to the base 3 as a fraction of 256: the first is the whole part of 3 v. */
static float *decode_digits(const uint8_t *src, int bytes, int digits, float d, float *dst) {
    for (int i = 0, power = 1; i < digits; i++, power *= 3)
        for (int m = 0; m < bytes; m++)
            *dst++ = (float)((int)((src[m] * power & 255) * 3 >> 8) - 1) * d;
    return dst;
}

void sn_decode_tq1_0(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 54) {
        float d = load_f16(src + 52);
        dst = decode_digits(src, 32, 5, d, dst);
        dst = decode_digits(src + 32, 16, 5, d, dst);
        dst = decode_digits(src + 48, 4, 4, d, dst);
    }
}

void sn_decode_tq2_0(const uint8_t *src, float *dst, size_t n) {
    for (; n; n -= 256, src += 66, dst += 256) {
        float d = load_f16(src + 64);
        for (int i = 0; i < 256; i++)
            dst[i] = (float)(code2(src, i / 32, i % 32) - 1) * d;
    }
}
