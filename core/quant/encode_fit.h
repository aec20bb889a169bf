/*
 * encode_fit.h: the search for scales and minima that leave the smallest squared error. A value x
 * is stood for by scale * code + offset, with codes from a grid. Private to quant/.
 *
 * Everything is float32 in the order written, so that every target finds the same numbers. Values
 * may be any finite ones: where a sum overflows, comparisons fail and the plain start stands, whose
 * scale is then infinite as a half, which sn_type.finite() sees.
 */
#ifndef SN_QUANT_ENCODE_FIT_H
#define SN_QUANT_ENCODE_FIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_grid {
    float low, high; /* the smallest and the largest code */
    float step;      /* by which the extreme value's code is varied in the search */
    bool book;       /* codes are the 16 of the IQ4 types; else all integers from low to high */
} sn_grid;

/* What n values leave when each takes the code nearest to it. */
typedef struct sn_sums {
    float error;     /* sum of (x - scale * code - offset)^2 */
    float c, cc, xc; /* sums of code, code^2, x * code */
} sn_sums;

/* n is a multiple of 16, at most 32, here and below. */
sn_sums sn_fit_measure(const float *x, int n, const sn_grid *grid, float scale, float offset);

/* The codes themselves; those of a book as places in it, the others less grid->low. */
void sn_fit_codes(const float *x, int n, const sn_grid *grid, float scale, float offset,
                  uint8_t *codes);

/* The best scale without an offset; 0 for zeros. */
float sn_fit_scale(const float *x, int n, const sn_grid *grid);

/* Scale and offset for codes from 0; `below`: the offset may not be above 0. */
typedef struct sn_line {
    float scale, offset;
} sn_line;
sn_line sn_fit_line(const float *x, int n, const sn_grid *grid, bool below);

/* The first value of the largest magnitude; +0 for zeros. */
float sn_fit_extreme(const float *x, int n);

/* Nearest integer within the bounds, which are below 2^22; a NaN gives `low`. */
static inline float sn_fit_nearest(float x, float low, float high) {
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

static inline float sn_fit_magnitude(float x) {
    return x < 0 ? -x : x;
}

/* 1 / d, but 0 where that overflows: such a scale is 0 as a half, whatever the codes. */
static inline float sn_fit_inverse(float d) {
    return sn_fit_magnitude(d) > 0x1p-128f ? 1.0f / d : 0.0f;
}

#endif
