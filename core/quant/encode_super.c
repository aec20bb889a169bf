/*
 * Encoding of super-blocks: 256 values in groups of 16 or 32, each with an integer scale (and
 * minimum) times a half that all groups share. Groups are fitted alone first (encode_fit.h); then
 * the shared halves and the groups' integers are improved in turn, as codes and scales are there:
 * integers by trying the neighbours, halves by least squares over all 256.
 */
#include "codecs.h"

#include "bytes.h"
#include "encode_fit.h"
#include "types.h"

#include <string.h>

#define ROUNDS 2 /* of integers and halves in turn */

static float as_half(float x) {
    return sn_f16_to_f32(sn_f32_to_f16(x));
}

/* The half nearest to top / limit, or the one above where top would be out of reach: halves are
 * coarse near zero. */
static float shared_half(float top, float limit) {
    if (top == 0.0f) return 0.0f;
    const uint16_t half = sn_f32_to_f16(top / limit);
    const float reach = sn_f16_to_f32(half) * (limit + (limit < 0 ? -0.5f : 0.5f));
    if (sn_fit_magnitude(top) <= sn_fit_magnitude(reach) || (half & 0x7fff) >= 0x7bff)
        return sn_f16_to_f32(half);
    return sn_f16_to_f32((uint16_t)(half + 1));
}

/* ---- signed scales ------------------------------------------------------------------------ */

typedef struct signed_block {
    float d;
    int8_t scales[16];
    float error;   /* of the whole */
    float xc, cc;  /* sums for the best d: of x * scale * code and of (scale * code)^2 */
} signed_block;

typedef struct signed_shape {
    int group;
    float low, high; /* of the scales */
    sn_grid grid;
} signed_shape;

/* The integer scale next to `wanted` that leaves the group the least error. */
static void choose_scale(const float *x, const signed_shape *shape, float wanted, int g,
                         signed_block *block) {
    const float near = sn_fit_nearest(wanted, shape->low, shape->high);
    sn_sums best = {0};
    float scale = near;
    for (int t = 0; t < 3; t++) {
        const float s = t == 0 ? near : t == 1 ? near - 1.0f : near + 1.0f;
        if (s < shape->low || s > shape->high) continue;
        const sn_sums sums = sn_fit_measure(x, shape->group, &shape->grid, block->d * s, 0.0f);
        if (t > 0 && !(sums.error < best.error)) continue;
        best = sums;
        scale = s;
    }
    block->scales[g] = (int8_t)scale;
    block->error += best.error;
    block->xc += best.xc * scale;
    block->cc += best.cc * scale * scale;
}

static signed_block with_shared(const float *x, const signed_shape *shape, float d,
                                const float *fitted) {
    signed_block block = {.d = d};
    const float inverse = sn_fit_inverse(d);
    for (int g = 0; g < 256 / shape->group; g++)
        choose_scale(x + g * shape->group, shape, fitted[g] * inverse, g, &block);
    return block;
}

static signed_block solve_signed(const float *x, const signed_shape *shape, uint8_t codes[256]) {
    const int groups = 256 / shape->group, n = shape->group;
    float fitted[16];
    for (int g = 0; g < groups; g++)
        fitted[g] = sn_fit_scale(x + g * n, n, &shape->grid);
    const float top = sn_fit_extreme(fitted, groups);
    signed_block best = with_shared(x, shape, shared_half(top, shape->low), fitted);
    for (int i = 0; i < ROUNDS && best.cc > 0; i++) {
        const signed_block next = with_shared(x, shape, as_half(best.xc / best.cc), fitted);
        if (!(next.error < best.error)) break;
        best = next;
    }
    for (int g = 0; g < groups; g++)
        sn_fit_codes(x + g * n, n, &shape->grid, best.d * (float)best.scales[g], 0.0f,
                     codes + g * n);
    return best;
}

/* ---- scales and minima -------------------------------------------------------------------- */

typedef struct min_block {
    float d, dmin;
    uint8_t scales[16], minima[16];
    float error;
    float aa, ab, bb, xa, xb; /* a = scale * code, b = minimum: sums of their products and x's */
} min_block;

typedef struct min_shape {
    int group;
    float limit; /* the largest scale and minimum */
    sn_grid grid;
} min_shape;

static float sum_of(const float *x, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* Scale and minimum next to the wanted ones that leave the group the least error. */
static void choose_pair(const float *x, const min_shape *shape, float scale, float minimum, int g,
                        min_block *block) {
    static const int8_t moves[9][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1},
                                       {-1, -1}, {1, 1}, {-1, 1}, {1, -1}};
    const float near_s = sn_fit_nearest(scale, 0, shape->limit);
    const float near_m = sn_fit_nearest(minimum, 0, shape->limit);
    sn_sums best = {0};
    float s = near_s, m = near_m;
    for (int t = 0; t < 9; t++) {
        const float try_s = near_s + (float)moves[t][0], try_m = near_m + (float)moves[t][1];
        if (try_s < 0 || try_s > shape->limit || try_m < 0 || try_m > shape->limit) continue;
        const sn_sums sums = sn_fit_measure(x, shape->group, &shape->grid, block->d * try_s,
                                            -(block->dmin * try_m));
        if (t > 0 && !(sums.error < best.error)) continue;
        best = sums;
        s = try_s;
        m = try_m;
    }
    block->scales[g] = (uint8_t)s;
    block->minima[g] = (uint8_t)m;
    block->error += best.error;
    block->aa += best.cc * s * s;
    block->ab += best.c * s * m;
    block->bb += (float)shape->group * m * m;
    block->xa += best.xc * s;
    block->xb += sum_of(x, shape->group) * m;
}

static min_block with_pair(const float *x, const min_shape *shape, float d, float dmin,
                           const sn_line *fitted) {
    min_block block = {.d = d, .dmin = dmin};
    const float inverse = sn_fit_inverse(d), inverse_min = sn_fit_inverse(dmin);
    for (int g = 0; g < 256 / shape->group; g++)
        choose_pair(x + g * shape->group, shape, fitted[g].scale * inverse,
                    -fitted[g].offset * inverse_min, g, &block);
    return block;
}

/* The least squares of x = d a - dmin b; false if a and b do not determine them. */
static bool refit(const min_block *block, float *d, float *dmin) {
    const float det = block->aa * block->bb - block->ab * block->ab;
    if (!(det > 0)) return false;
    *d = as_half((block->xa * block->bb - block->xb * block->ab) / det);
    *dmin = as_half((block->xa * block->ab - block->xb * block->aa) / det);
    return *d >= 0 && *dmin >= 0;
}

static min_block solve_min(const float *x, const min_shape *shape, uint8_t codes[256]) {
    const int groups = 256 / shape->group, n = shape->group;
    sn_line fitted[16];
    float top = 0.0f, bottom = 0.0f, d, dmin;
    for (int g = 0; g < groups; g++) {
        fitted[g] = sn_fit_line(x + g * n, n, &shape->grid, true);
        top = fitted[g].scale > top ? fitted[g].scale : top;
        bottom = -fitted[g].offset > bottom ? -fitted[g].offset : bottom;
    }
    min_block best = with_pair(x, shape, shared_half(top, shape->limit),
                               shared_half(bottom, shape->limit), fitted);
    for (int i = 0; i < ROUNDS && refit(&best, &d, &dmin); i++) {
        const min_block next = with_pair(x, shape, d, dmin, fitted);
        if (!(next.error < best.error)) break;
        best = next;
    }
    for (int g = 0; g < groups; g++)
        sn_fit_codes(x + g * n, n, &shape->grid, best.d * (float)best.scales[g],
                     -(best.dmin * (float)best.minima[g]), codes + g * n);
    return best;
}

/* ---- the bytes (docs/formats.md): eight groups of 32 --------------------------------------- */

/* The lower two bits of each code: four groups share 32 bytes. */
static void store_pairs(uint8_t *dst, const uint8_t codes[256]) {
    memset(dst, 0, 64);
    for (int i = 0; i < 256; i++)
        dst[32 * (i / 128) + i % 32] |= (uint8_t)((codes[i] & 3) << 2 * (i / 32 % 4));
}

/* Bit `bit` of each code: that of group g is bit g of 32 bytes. */
static void store_bits(uint8_t *dst, const uint8_t codes[256], int bit) {
    memset(dst, 0, 32);
    for (int i = 0; i < 256; i++)
        dst[i % 32] |= (uint8_t)((codes[i] >> bit & 1) << i / 32);
}

/* Groups 2c and 2c + 1 share 32 bytes. */
static void store_nibbles(uint8_t *dst, const uint8_t codes[256]) {
    for (int i = 0; i < 128; i++) {
        const uint8_t *low = codes + i / 32 * 64 + i % 32;
        dst[i] = (uint8_t)((low[0] & 15) | low[32] << 4);
    }
}

void sn_encode_q2_k(const float *src, uint8_t *dst, size_t n) {
    static const min_shape shape = {16, 15, {0, 3, 0.5f, false}};
    uint8_t codes[256];
    for (; n; n -= 256, src += 256, dst += 84) {
        const min_block block = solve_min(src, &shape, codes);
        for (int g = 0; g < 16; g++)
            dst[g] = (uint8_t)(block.scales[g] | block.minima[g] << 4);
        store_pairs(dst + 16, codes);
        sn_store16(dst + 80, sn_f32_to_f16(block.d));
        sn_store16(dst + 82, sn_f32_to_f16(block.dmin));
    }
}

void sn_encode_q3_k(const float *src, uint8_t *dst, size_t n) {
    static const signed_shape shape = {16, -32, 31, {-4, 3, 0.5f, false}};
    uint8_t codes[256];
    for (; n; n -= 256, src += 256, dst += 110) {
        const signed_block block = solve_signed(src, &shape, codes);
        store_bits(dst, codes, 2);
        store_pairs(dst + 32, codes);
        sn_pack_q3_k_scales(block.scales, dst + 96);
        sn_store16(dst + 108, sn_f32_to_f16(block.d));
    }
}

/* What Q4_K and Q5_K begin with. */
static void store_heads(uint8_t *dst, const min_block *block) {
    uint8_t pair[16];
    for (int g = 0; g < 8; g++) {
        pair[2 * g] = block->scales[g];
        pair[2 * g + 1] = block->minima[g];
    }
    sn_store16(dst, sn_f32_to_f16(block->d));
    sn_store16(dst + 2, sn_f32_to_f16(block->dmin));
    sn_pack_pairs(pair, dst + 4);
}

void sn_encode_q4_k(const float *src, uint8_t *dst, size_t n) {
    static const min_shape shape = {32, 63, {0, 15, 0.5f, false}};
    uint8_t codes[256];
    for (; n; n -= 256, src += 256, dst += 144) {
        const min_block block = solve_min(src, &shape, codes);
        store_heads(dst, &block);
        store_nibbles(dst + 16, codes);
    }
}

void sn_encode_q5_k(const float *src, uint8_t *dst, size_t n) {
    static const min_shape shape = {32, 63, {0, 31, 0.5f, false}};
    uint8_t codes[256];
    for (; n; n -= 256, src += 256, dst += 176) {
        const min_block block = solve_min(src, &shape, codes);
        store_heads(dst, &block);
        store_bits(dst + 16, codes, 4);
        store_nibbles(dst + 48, codes);
    }
}

/* Groups 0 and 2 of each half share the nibbles of 32 bytes, 1 and 3 those of the next 32. */
static void store_q6_codes(uint8_t *dst, const uint8_t codes[256]) {
    memset(dst, 0, 192);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, quarter = i / 32 % 4, l = i % 32;
        dst[64 * half + 32 * (quarter & 1) + l] |=
            (uint8_t)((codes[i] & 15) << 4 * (quarter >> 1));
        dst[128 + 32 * half + l] |= (uint8_t)(codes[i] >> 4 << 2 * quarter);
    }
}

void sn_encode_q6_k(const float *src, uint8_t *dst, size_t n) {
    static const signed_shape shape = {16, -128, 127, {-32, 31, 0.5f, false}};
    uint8_t codes[256];
    for (; n; n -= 256, src += 256, dst += 210) {
        const signed_block block = solve_signed(src, &shape, codes);
        store_q6_codes(dst, codes);
        memcpy(dst + 192, block.scales, 16);
        sn_store16(dst + 208, sn_f32_to_f16(block.d));
    }
}

void sn_encode_iq4_xs(const float *src, uint8_t *dst, size_t n) {
    static const signed_shape shape = {32, -32, 31, {-127, 113, 6, true}};
    uint8_t codes[256];
    for (; n; n -= 256, src += 256, dst += 136) {
        const signed_block block = solve_signed(src, &shape, codes);
        sn_store16(dst, sn_f32_to_f16(block.d));
        sn_pack_iq4_xs_scales(block.scales, dst + 2);
        for (int g = 0; g < 8; g++)
            for (int j = 0; j < 16; j++)
                dst[8 + 16 * g + j] =
                    (uint8_t)(codes[32 * g + j] | codes[32 * g + j + 16] << 4);
    }
}
