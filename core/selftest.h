/*
 * selftest.h: what the parts of the self-test share: its generator of numbers, the comparison of
 * outputs bit by bit, and canaries where nothing may be written. A part takes a tester whose
 * `other` is one back end, and says one line a kernel.
 */
#ifndef SN_CORE_SELFTEST_H
#define SN_CORE_SELFTEST_H

#include "fpenv.h"
#include "ops.h"

#include <stdio.h>
#include <string.h>

#define MOST 4096 /* elements of the longest vector */
#define GUARD 32  /* elements after each output that must survive */
#define GUARD_BYTE 0xa5

typedef struct tester {
    const sn_simd *scalar, *other;
    uint64_t random;
    float *in[8], *want, *got;
    sn_log_fn line;
    void *user;
    long cases;
} tester;

sn_status sn_selftest_vectors(tester *t);
sn_status sn_selftest_scans(tester *t);
sn_status sn_selftest_recurrence(tester *t);

/* ---- numbers ------------------------------------------------------------------------------- */

static inline uint64_t next(tester *t) { /* splitmix64 */
    uint64_t z = t->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline float from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* In [-4, 4). */
static inline float number(tester *t) {
    const int32_t mantissa = (int32_t)(next(t) >> 40) - (1 << 23);
    return (float)mantissa / (float)(1 << 21);
}

/* One value in eight is a corner case. */
static inline float value(tester *t) {
    static const uint32_t corners[] = {
        0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, /* zeros, subnormals */
        0x7f800000, 0xff800000, 0x7f7fffff, 0xc2d20000, 0x42b20000, /* infinities, exp's ends */
        0x3f000000, 0xbf800000, 0x7fc00000, 0x3f800001, 0x4b400000
    };
    const uint64_t r = next(t);
    if (r % 8) return number(t);
    return from_bits(corners[(r >> 8) % (sizeof corners / sizeof corners[0])]);
}

static inline void fill(tester *t, float *x, size_t n, bool corners) {
    for (size_t i = 0; i < n; i++) x[i] = corners ? value(t) : number(t);
}

/* ---- outputs ------------------------------------------------------------------------------- */

/* A NaN equals any NaN: processors make them with different signs. */
static inline bool same_float(float a, float b) {
    uint32_t x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    return x == y || (a != a && b != b);
}

static inline bool is_guard(const float *x) {
    static const uint8_t untouched[4] = { GUARD_BYTE, GUARD_BYTE, GUARD_BYTE, GUARD_BYTE };
    return memcmp(x, untouched, 4) == 0;
}

static inline sn_status differ(const tester *t, const char *kernel, size_t n, size_t at) {
    return sn_fail(SN_E_NUMERIC, "selftest: %s: %s of size %zu differs from scalar at %zu",
                   t->other->name, kernel, n, at);
}

static inline void guard(tester *t, size_t n) {
    memset(t->want, 0, n * sizeof(float));
    memset(t->got, 0, n * sizeof(float));
    memset(t->want + n, GUARD_BYTE, GUARD * sizeof(float));
    memset(t->got + n, GUARD_BYTE, GUARD * sizeof(float));
}

static inline sn_status compare(tester *t, const char *kernel, size_t n) {
    t->cases++;
    for (size_t i = 0; i < n; i++)
        if (!same_float(t->want[i], t->got[i])) return differ(t, kernel, n, i);
    for (size_t i = n; i < n + GUARD; i++)
        if (!is_guard(t->got + i)) return differ(t, kernel, n, i);
    return SN_OK;
}

/* ---- what is said -------------------------------------------------------------------------- */

/* The callback may change the floating-point environment; the next test must not see it. */
static inline void tell(const tester *t, const char *text) {
    if (!t->line) return;
    const sn_fpenv ours = sn_fpenv_enter();
    t->line(t->user, text);
    sn_fpenv_leave(ours);
}

static inline void say(tester *t, const char *kernel) {
    char text[160];
    snprintf(text, sizeof text, "%-12s %-16s %6ld cases equal scalar", t->other->name, kernel,
             t->cases);
    tell(t, text);
    t->cases = 0;
}

#endif
