/*
 * check.h: what the C test programs share. A program runs its checks, prints nothing that
 * passes, and ends with exit code 1 if one failed. check_report() prints the closing count.
 */
#ifndef SN_TESTS_CHECK_H
#define SN_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_done, check_failed;

#define CHECK(condition, ...)                                                                 \
    do {                                                                                      \
        check_done++;                                                                         \
        if (!(condition)) {                                                                   \
            check_failed++;                                                                   \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                   \
            fprintf(stderr, __VA_ARGS__);                                                     \
            fputc('\n', stderr);                                                              \
        }                                                                                     \
    } while (0)

static inline int check_report(const char *name) {
    printf("%s: %d checks, %d failed\n", name, check_done, check_failed);
    return check_failed ? 1 : 0;
}

/* A seeded generator (splitmix64): the same numbers on every machine. */
typedef struct check_random {
    uint64_t state;
} check_random;

static inline uint64_t check_next(check_random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [0, n). */
static inline uint32_t check_below(check_random *random, uint32_t n) {
    return (uint32_t)((check_next(random) >> 32) * n >> 32);
}

/* In [-1, 1). */
static inline float check_float(check_random *random) {
    return (float)((int32_t)(check_next(random) >> 40) - (1 << 23)) / (float)(1 << 23);
}

#endif
