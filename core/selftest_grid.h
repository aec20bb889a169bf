/*
 * selftest_grid.h: rows of outputs with gaps between them, for the self-tests of kernels over time:
 * what is inside must equal, what is outside must be untouched.
 */
#ifndef SN_CORE_SELFTEST_GRID_H
#define SN_CORE_SELFTEST_GRID_H

#include "selftest.h"

/* Vectors of corner cases soon make everything a NaN, tiny ones make products subnormal. */
typedef enum kind { PLAIN, TINY, CORNERS, N_KINDS } kind;

static inline void fill_kind(tester *t, float *x, size_t n, kind what) {
    fill(t, x, n, what == CORNERS);
    if (what == TINY)
        for (size_t i = 0; i < n; i++) x[i] *= 0x1p-73f;
}

/* ---- rows with gaps between them ----------------------------------------------------------- */

typedef struct grid {
    float *at;
    size_t rows, width, stride;
} grid;

static inline size_t grid_size(const grid *g) {
    return g->rows * g->stride + GUARD;
}

static inline void paint(const grid *g) {
    memset(g->at, GUARD_BYTE, grid_size(g) * sizeof(float));
}

static inline void copy_grid(const grid *to, const float *from, size_t from_stride) {
    for (size_t r = 0; r < to->rows; r++)
        memcpy(to->at + r * to->stride, from + r * from_stride, to->width * sizeof(float));
}

/* Equal rows, and canaries everywhere else. */
static inline sn_status compare_grid(const tester *t, const char *kernel, const grid *got,
                                     const float *want) {
    for (size_t i = 0; i < grid_size(got); i++) {
        const bool inside = i < got->rows * got->stride && i % got->stride < got->width;
        if (inside ? !same_float(got->at[i], want[i]) : !is_guard(got->at + i))
            return differ(t, kernel, got->width, i);
    }
    return SN_OK;
}

/* The sequence from token `first` on. */
static inline sn_sequence from_token(sn_sequence s, size_t first) {
    if (s.at) s.at += first * s.stride;
    return s;
}

/* Moves a sequence into the output, which it may share. */
static inline sn_sequence into_output(const grid *y, sn_sequence s) {
    copy_grid(y, s.at, s.stride);
    return (sn_sequence){ y->at, y->stride };
}

#endif
