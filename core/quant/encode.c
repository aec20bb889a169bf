/*
 * Encoding of floats and of blocks of 32. Q8_0 and Q4_0 choose scale and rounding as ggml's
 * reference quantiser does and I4 as the seed's, so that files agree byte for byte with theirs; the
 * others search for the smallest squared error (encode_fit.h). Super-blocks of 256: encode_super.c.
 */
#include "codecs.h"

#include "bytes.h"
#include "encode_fit.h"
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

/* ---- the references' rounding ----------------------------------------------------------- */

/* Nearest integer, halves away from zero; |x| is at most 127 and a little. */
static int round_away(float x) {
    float size = sn_fit_magnitude(x);
    int whole = (int)size;
    if (size - (float)whole >= 0.5f) whole++;
    return x < 0 ? -whole : whole;
}

void sn_encode_q8_0(const float *src, uint8_t *dst, size_t n) {
    for (; n; n -= 32, src += 32, dst += 34) {
        float d = sn_fit_magnitude(sn_fit_extreme(src, 32)) / 127.0f;
        float id = sn_fit_inverse(d);
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
        float d = sn_fit_extreme(src, 32) / -8.0f;
        float id = sn_fit_inverse(d);
        sn_store16(dst, sn_f32_to_f16(d));
        for (int j = 0; j < 16; j++)
            dst[2 + j] = (uint8_t)(code4(src[j], id) | code4(src[j + 16], id) << 4);
    }
}

static int code_i4(float x, float inverse) {
    return (int)sn_fit_nearest(x * inverse, -8.0f, 7.0f) + 8;
}

/* The seed: scale = amax / 7 (1 for zeros), code = x (1 / scale) to nearest even, clamped. Where
 * 1 / scale overflows, below 2^-128, it has no codes; ours are those of zero. */
void sn_encode_i4(const float *src, uint8_t *dst, size_t n) {
    for (; n; n -= 64, src += 64, dst += 36) {
        float largest = 0.0f;
        for (int j = 0; j < 64; j++) {
            const float size = sn_fit_magnitude(src[j]);
            largest = size > largest ? size : largest;
        }
        const float scale = largest > 0.0f ? largest / 7.0f : 1.0f;
        const float inverse = sn_fit_inverse(scale);
        for (int j = 0; j < 32; j++)
            dst[j] = (uint8_t)(code_i4(src[j], inverse) | code_i4(src[j + 32], inverse) << 4);
        sn_store32(dst + 32, sn_bits_of(scale));
    }
}

/* ---- the smallest error ------------------------------------------------------------------ */

static float as_half(float x) {
    return sn_f16_to_f32(sn_f32_to_f16(x));
}

/* The better one of the search's scale and the plain one, as the halves that are stored. */
static float half_scale(const float *src, const sn_grid *grid) {
    const float extreme = sn_fit_extreme(src, 32);
    if (extreme == 0.0f) return 0.0f;
    const float plain = as_half(extreme / grid->low);
    const float found = as_half(sn_fit_scale(src, 32, grid));
    const float error = sn_fit_measure(src, 32, grid, plain, 0.0f).error;
    return sn_fit_measure(src, 32, grid, found, 0.0f).error < error ? found : plain;
}

/* The same with an offset, where plain is from the smallest to the largest value. */
static sn_line half_line(const float *src, const sn_grid *grid) {
    float low = src[0], high = src[0];
    for (int i = 1; i < 32; i++) {
        low = src[i] < low ? src[i] : low;
        high = src[i] > high ? src[i] : high;
    }
    const sn_line plain = {as_half((high - low) / grid->high), as_half(low)};
    const sn_line fit = sn_fit_line(src, 32, grid, false);
    const sn_line found = {as_half(fit.scale), as_half(fit.offset)};
    const float error = sn_fit_measure(src, 32, grid, plain.scale, plain.offset).error;
    const float new_error = sn_fit_measure(src, 32, grid, found.scale, found.offset).error;
    return new_error < error ? found : plain;
}

static void store_nibbles(uint8_t *dst, const uint8_t codes[32]) {
    for (int j = 0; j < 16; j++)
        dst[j] = (uint8_t)((codes[j] & 15) | codes[j + 16] << 4);
}

static void store_fifth_bits(uint8_t *dst, const uint8_t codes[32]) {
    uint32_t bits = 0;
    for (int j = 0; j < 32; j++)
        bits |= (uint32_t)(codes[j] >> 4) << j;
    sn_store32(dst, bits);
}

void sn_encode_q4_1(const float *src, uint8_t *dst, size_t n) {
    static const sn_grid grid = {0, 15, 0.5f, false};
    for (; n; n -= 32, src += 32, dst += 20) {
        const sn_line line = half_line(src, &grid);
        uint8_t codes[32];
        sn_fit_codes(src, 32, &grid, line.scale, line.offset, codes);
        sn_store16(dst, sn_f32_to_f16(line.scale));
        sn_store16(dst + 2, sn_f32_to_f16(line.offset));
        store_nibbles(dst + 4, codes);
    }
}

void sn_encode_q5_0(const float *src, uint8_t *dst, size_t n) {
    static const sn_grid grid = {-16, 15, 0.5f, false};
    for (; n; n -= 32, src += 32, dst += 22) {
        const float scale = half_scale(src, &grid);
        uint8_t codes[32];
        sn_fit_codes(src, 32, &grid, scale, 0.0f, codes);
        sn_store16(dst, sn_f32_to_f16(scale));
        store_fifth_bits(dst + 2, codes);
        store_nibbles(dst + 6, codes);
    }
}

void sn_encode_q5_1(const float *src, uint8_t *dst, size_t n) {
    static const sn_grid grid = {0, 31, 0.5f, false};
    for (; n; n -= 32, src += 32, dst += 24) {
        const sn_line line = half_line(src, &grid);
        uint8_t codes[32];
        sn_fit_codes(src, 32, &grid, line.scale, line.offset, codes);
        sn_store16(dst, sn_f32_to_f16(line.scale));
        sn_store16(dst + 2, sn_f32_to_f16(line.offset));
        store_fifth_bits(dst + 4, codes);
        store_nibbles(dst + 8, codes);
    }
}

void sn_encode_iq4_nl(const float *src, uint8_t *dst, size_t n) {
    static const sn_grid grid = {-127, 113, 6, true};
    for (; n; n -= 32, src += 32, dst += 18) {
        const float scale = half_scale(src, &grid);
        uint8_t codes[32];
        sn_fit_codes(src, 32, &grid, scale, 0.0f, codes);
        sn_store16(dst, sn_f32_to_f16(scale));
        store_nibbles(dst + 2, codes);
    }
}
