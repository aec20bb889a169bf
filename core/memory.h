/*
 * memory.h: allocation with overflow checks. All memory of the library comes from here.
 */
#ifndef SN_CORE_MEMORY_H
#define SN_CORE_MEMORY_H

#include "status.h"

#include <stdbool.h>

#define SN_ALIGNMENT 64

/*
 * 64-byte aligned, zeroed; NULL if memory cannot be had, with the text for sn_last_error() set
 * (return SN_E_NOMEM then). bytes = 0 gives a valid pointer.
 */
void *sn_alloc(size_t bytes);

/* count * size bytes; also fails if the product does not fit size_t. */
void *sn_alloc_array(size_t count, size_t size);

/* Keeps the first min(old_bytes, bytes) bytes; on failure the old block stays valid. */
void *sn_grow(void *block, size_t old_bytes, size_t bytes);

void sn_free(void *block);

/* Tests: fail the n-th allocation from now (0: never), count allocations. */
void sn_alloc_fail_at(long n);
long sn_alloc_count(void);

/* *out = a * b, a + b; false if it does not fit. */
static inline bool sn_mul_size(size_t a, size_t b, size_t *out) {
    if (b && a > (size_t)-1 / b) return false;
    *out = a * b;
    return true;
}

static inline bool sn_add_size(size_t a, size_t b, size_t *out) {
    if (a > (size_t)-1 - b) return false;
    *out = a + b;
    return true;
}

static inline bool sn_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    if (b && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

static inline size_t sn_round_up(size_t n, size_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

#endif
