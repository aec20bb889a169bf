/*
 * oracle.h: what the tests of the scalar kernels against written definitions share. All back ends
 * share one source, so that they agree (core/selftest.c) says nothing about what they compute;
 * these tests do.
 *
 * Where the definition is one rounded operation after another, results must be equal. For sums
 * the tolerance is the forward bound of Higham, "Accuracy and Stability of Numerical Algorithms",
 * section 3.1: n additions of products are off by at most about (n + 1) u sum |terms|, u = 2^-24.
 */
#ifndef SN_TESTS_ORACLE_H
#define SN_TESTS_ORACLE_H

#include "check.h"
#include "simd.h"

#include <math.h>
#include <stdbool.h>

#define U 0x1p-24   /* half an ulp of 1: the relative error of one rounded operation */
#define TINY 0x1p-149 /* and the absolute one of a product that becomes subnormal, doubled */

static const sn_simd *simd;
static check_random rng = { 1 };

static inline float number(float scale) {
    return check_float(&rng) * scale;
}

static inline void fill(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = number(scale);
}

static inline bool same(float a, float b) {
    return memcmp(&a, &b, 4) == 0;
}

static inline void check_near(const char *what, size_t at, float got, double want,
                              double tolerance) {
    CHECK(fabs((double)got - want) <= tolerance, "%s[%zu]: %.9g, expected %.9g within %.2g", what,
          at, (double)got, want, tolerance);
}

static inline void check_same(const char *what, size_t at, float got, float want) {
    CHECK(same(got, want), "%s[%zu]: %a, expected %a", what, at, (double)got, (double)want);
}

/*
 * One rounded operation on float32, by way of float64: sums, products and quotients of two float32
 * and roots of one are exact there, or their second rounding is innocuous (Figueroa, "When is
 * double rounding innocuous?", 1995).
 */
static inline float plus(float a, float b) { return (float)((double)a + (double)b); }
static inline float minus(float a, float b) { return (float)((double)a - (double)b); }
static inline float times(float a, float b) { return (float)((double)a * (double)b); }
static inline float over(float a, float b) { return (float)((double)a / (double)b); }
static inline float root(float a) { return (float)sqrt((double)a); }

#endif
