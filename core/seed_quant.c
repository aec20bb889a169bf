/*
 * seed_quant.c: the seed's quantised arrays: int8 in blocks along a row, the last possibly short,
 * and 4-bit codes in groups of an even number of values. A value is code x scale, the scale chosen
 * so that the largest one of its block takes the largest code.
 */
#include "recurrence.h"

/* 1.5 x 2^23: added and subtracted, it rounds |x| < 2^22 to an integer, half to even. */
#define ROUND_MAGIC 12582912.0f

/* A NaN is no magnitude: it cannot be the largest. */
static float scale_of(const float *x, size_t n, float levels) {
    float largest = 0.0f;
    for (size_t i = 0; i < n; i++) {
        const float magnitude = x[i] < 0.0f ? -x[i] : x[i];
        if (magnitude > largest) largest = magnitude;
    }
    return largest > 0.0f ? largest / levels : 1.0f;
}

/* The values are multiplied by the reciprocal, not divided: the codes depend on it. A scale that
 * underflowed to nothing makes every code nothing. */
static float factor_of(float scale) {
    return scale > 0.0f ? 1.0f / scale : 0.0f;
}

/* Nearest integer of x factor, ties to even, in [low, high]; 0 where that is a NaN. */
static int code_of(float x, float factor, float low, float high) {
    float v = x * factor;
    if (v != v) return 0;
    v = v < low ? low : v > high ? high : v;
    return (int)((v + ROUND_MAGIC) - ROUND_MAGIC);
}

/* ---- int8 ------------------------------------------------------------------------------------ */

/* A row's blocks, the last one short; block = 0 is the whole row. */
static size_t block_of(size_t n, size_t block) {
    return block ? block : n;
}

void sn_seed_quant_i8(const float *x, int8_t *q, float *scale, size_t rows, size_t n,
                      size_t block) {
    block = block_of(n, block);
    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at < n; at += block, scale++) {
            const size_t count = n - at < block ? n - at : block;
            const float *from = x + row * n + at;
            *scale = scale_of(from, count, 127.0f);
            const float factor = factor_of(*scale);
            for (size_t i = 0; i < count; i++)
                q[row * n + at + i] = (int8_t)code_of(from[i], factor, -127.0f, 127.0f);
        }
}

void sn_seed_dequant_i8(const int8_t *q, const float *scale, float *x, size_t rows, size_t n,
                        size_t block) {
    block = block_of(n, block);
    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at < n; at += block, scale++) {
            const size_t end = n - at < block ? n : at + block;
            for (size_t i = at; i < end; i++) x[row * n + i] = (float)q[row * n + i] * *scale;
        }
}

/* ---- 4 bits ---------------------------------------------------------------------------------- */

/* Codes are stored plus 8, two in a byte: k of a group in its low bits, k + half in its high. */
static uint8_t pair_of(float low, float high, float factor) {
    const int a = code_of(low, factor, -8.0f, 7.0f) + 8;
    const int b = code_of(high, factor, -8.0f, 7.0f) + 8;
    return (uint8_t)(a | b << 4);
}

void sn_seed_quant_i4(const float *x, uint8_t *q, float *scale, size_t rows, size_t n,
                      size_t block) {
    block = block_of(n, block);
    const size_t half = block / 2, groups = n ? rows * (n / block) : 0;
    for (size_t g = 0; g < groups; g++, x += block, q += half) {
        scale[g] = scale_of(x, block, 7.0f);
        const float factor = factor_of(scale[g]);
        for (size_t k = 0; k < half; k++) q[k] = pair_of(x[k], x[k + half], factor);
    }
}

void sn_seed_dequant_i4(const uint8_t *q, const float *scale, float *x, size_t rows, size_t n,
                        size_t block) {
    block = block_of(n, block);
    const size_t half = block / 2, groups = n ? rows * (n / block) : 0;
    for (size_t g = 0; g < groups; g++, x += block, q += half)
        for (size_t k = 0; k < half; k++) {
            x[k] = (float)((q[k] & 15) - 8) * scale[g];
            x[k + half] = (float)((q[k] >> 4) - 8) * scale[g];
        }
}
