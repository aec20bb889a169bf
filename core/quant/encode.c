/*
 * Encoding of the types that convert writes. The quantised ones choose scale and rounding as
 * ggml's reference quantiser does, so that files agree byte for byte with its.
 */
#include "codecs.h"

#include "bytes.h"
#include "types.h"

void sn_encode_f32(const float *src, uint8_t *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        sn_store32(dst + 4 * i, sn_bits_of(src[i]));
}

void sn_encode_f16(const float *src, uint8_t *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        sn_store16(dst + 2 * i, sn_f32_to_f16(src[i]));
}

void sn_encode_bf16(const float *src, uint8_t *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        sn_store16(dst + 2 * i, sn_f32_to_bf16(src[i]));
}

static float magnitude(float x) {
    return x < 0 ? -x : x;
}

/* The first of 32 values with the largest magnitude; +0 for a block of zeros. */
static float extreme(const float *src) {
    float best = 0.0f;
    for (int j = 0; j < 32; j++)
        if (magnitude(src[j]) > magnitude(best)) best = src[j];
    return best;
}

/* 1 / d, but 0 where that overflows: such a scale is 0 as a half, whatever the codes. */
static float inverse(float d) {
    return magnitude(d) > 0x1p-128f ? 1.0f / d : 0.0f;
}

/* Nearest integer, halves away from zero; |x| is at most 127 and a little. */
static int round_away(float x) {
    float size = magnitude(x);
    int whole = (int)size;
    if (size - (float)whole >= 0.5f) whole++;
    return x < 0 ? -whole : whole;
}

void sn_encode_q8_0(const float *src, uint8_t *dst, size_t n) {
    for (; n; n -= 32, src += 32, dst += 34) {
        float d = magnitude(extreme(src)) / 127.0f;
        float id = inverse(d);
        sn_store16(dst, sn_f32_to_f16(d));
        for (int j = 0; j < 32; j++)
            dst[2 + j] = (uint8_t)round_away(src[j] * id);
    }
}

/* x id is in [-8, 8]: code 8 is zero, and the extreme value itself gets code 0. */
static int code4(float x, float id) {
    int code = (int)(x * id + 8.5f);
    return code < 15 ? code : 15;
}

void sn_encode_q4_0(const float *src, uint8_t *dst, size_t n) {
    for (; n; n -= 32, src += 32, dst += 18) {
        float d = extreme(src) / -8.0f;
        float id = inverse(d);
        sn_store16(dst, sn_f32_to_f16(d));
        for (int j = 0; j < 16; j++)
            dst[2 + j] = (uint8_t)(code4(src[j], id) | code4(src[j + 16], id) << 4);
    }
}
