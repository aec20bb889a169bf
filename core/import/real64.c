#include "import.h"

#include <string.h>

/*
 * Reductions as usual: exp(x) = 2^k exp(r) with |r| <= ln 2 / 2; ln x = k ln 2 + ln m with m
 * in [sqrt 1/2, sqrt 2). ln 2 is split in two, the upper part with 33 bits, so that k times it
 * is exact. The series are those of Taylor and of artanh, long enough that what is cut off lies
 * below 2^-60. Errors measured: 1.6 ulp at most.
 */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LOG2_E 0x1.71547652b82fep+0
#define SQRT_HALF 0x1.6a09e667f3bcdp-1

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^k for -1022 <= k <= 1023. */
static double power_of_two(int32_t k) {
    return double_of((uint64_t)(k + 1023) << 52);
}

/* x = k ln 2 + r with |r| <= ln 2 / 2; |x| < 1000. */
static double reduce(double x, int32_t *k) {
    double n = x * LOG2_E;
    *k = (int32_t)(n < 0 ? n - 0.5 : n + 0.5);
    return (x - *k * LN2_HIGH) - *k * LN2_LOW;
}

/* exp(r) - 1 for |r| <= 0.35: r + r^2/2! + ... + r^15/15!, r itself added last. */
static double exp_less_one(double r) {
    double p = 1.0 / 1307674368000.0;
    static const double factorials[] = { 87178291200.0, 6227020800.0, 479001600.0, 39916800.0,
                                         3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0,
                                         24.0, 6.0 };
    for (size_t i = 0; i < sizeof factorials / sizeof factorials[0]; i++)
        p = p * r + 1.0 / factorials[i];
    return r + (r * r) * (p * r + 0.5);
}

double sn_exp64(double x) {
    int32_t k;
    if (x != x) return x;
    if (x > 709.79) return double_of(0x7ff0000000000000u);
    if (x < -745.2) return 0.0;
    double e = 1.0 + exp_less_one(reduce(x, &k));
    int32_t half = k / 2; /* 2^k alone may be out of range, or round a subnormal twice */
    return (e * power_of_two(half)) * power_of_two(k - half);
}

double sn_log64(double x) {
    if (x == 0.0) return double_of(0xfff0000000000000u);
    if (!(x > 0.0)) return double_of(0x7ff8000000000000u);
    if (bits_of(x) >= 0x7ff0000000000000u) return x;
    int32_t k = 0;
    if (x < 0x1p-1022) { /* subnormal */
        x *= 0x1p54;
        k = -54;
    }
    uint64_t bits = bits_of(x);
    k += (int32_t)(bits >> 52) - 1022;
    double m = double_of((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u); /* [1/2, 1) */
    if (m < SQRT_HALF) {
        m = m + m;
        k--;
    }
    /* ln(1 + f) = 2 artanh(s) with s = f / (2 + f), |s| < 0.172; = f - (h - s (h + series)) */
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, h = 0.5 * f * f, series = 0.0;
    for (int32_t n = 25; n >= 3; n -= 2) series = series * z + 2.0 / n;
    series *= z;
    return k * LN2_HIGH - ((h - (s * (h + series) + k * LN2_LOW)) - f);
}

double sn_tanh64(double x) {
    double a = x < 0.0 ? -x : x, t;
    if (x != x || a < 0x1p-28) return x; /* x - x^3/3 rounds to x */
    if (a > 20.0) {
        t = 1.0;
    } else if (a > 0.55) {
        t = 1.0 - 2.0 / (sn_exp64(a + a) + 1.0);
    } else { /* a / (1 + a^2 / (3 + a^2 / (5 + ...))): Lambert's continued fraction */
        double fraction = 19.0;
        for (int32_t n = 17; n >= 1; n -= 2) fraction = n + a * a / fraction;
        t = a / fraction;
    }
    return x < 0.0 ? -t : t;
}
