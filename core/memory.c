#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h> /* on Windows with _aligned_malloc */
#include <string.h>

/* Test hooks (memory.h). Atomic only so that threads that allocate at once are no race. */
static atomic_long allocations, fail_countdown;

void sn_alloc_fail_at(long n) {
    atomic_store(&fail_countdown, n);
}

long sn_alloc_count(void) {
    return atomic_load(&allocations);
}

static bool must_fail(void) {
    atomic_fetch_add(&allocations, 1);
    return atomic_load(&fail_countdown) > 0 && atomic_fetch_sub(&fail_countdown, 1) == 1;
}

#if defined(_WIN32)

static void *raw_alloc(size_t bytes) {
    return _aligned_malloc(bytes, SN_ALIGNMENT);
}

static void raw_free(void *block) {
    _aligned_free(block);
}

#else

static void *raw_alloc(size_t bytes) {
    return aligned_alloc(SN_ALIGNMENT, bytes);
}

static void raw_free(void *block) {
    free(block);
}

#endif

void *sn_alloc(size_t bytes) {
    void *block = NULL;
    /* Beyond PTRDIFF_MAX pointers into the block could not be subtracted. */
    bool possible = bytes <= PTRDIFF_MAX - SN_ALIGNMENT;
    if (!must_fail() && possible) {
        size_t rounded = sn_round_up(bytes ? bytes : 1, SN_ALIGNMENT);
        block = raw_alloc(rounded);
        if (block) memset(block, 0, rounded);
    }
    if (!block) sn_set_error("out of memory: %zu bytes", bytes);
    return block;
}

void *sn_alloc_array(size_t count, size_t size) {
    size_t bytes;
    if (!sn_mul_size(count, size, &bytes)) {
        sn_set_error("out of memory: %zu items of %zu bytes", count, size);
        return NULL;
    }
    return sn_alloc(bytes);
}

void *sn_grow(void *block, size_t old_bytes, size_t bytes) {
    void *grown = sn_alloc(bytes);
    if (!grown) return NULL;
    size_t kept = old_bytes < bytes ? old_bytes : bytes;
    if (block && kept) memcpy(grown, block, kept);
    sn_free(block);
    return grown;
}

void sn_free(void *block) {
    raw_free(block);
}
