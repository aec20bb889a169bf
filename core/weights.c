#include "weights.h"

#include "hash.h"
#include "memory.h"
#include "platform.h"

#include <string.h>

void sn_weights_free(sn_weights *w) {
    if (!w) return;
    if (w->pages) sn_platform_pages_free(w->pages, w->page_bytes);
    for (size_t i = 0; i < w->n_maps; i++)
        if (w->maps[i].data) sn_platform_unmap(w->maps[i].data, w->maps[i].bytes);
    sn_free(w->maps);
    sn_free(w->tensors);
    sn_free(w);
}

/* ---- the fingerprint ------------------------------------------------------------------------ */

static uint64_t hash_tensors(const sn_weights *w) {
    uint64_t h = 0;
    for (size_t i = 0; i < w->n_tensors; i++)
        h = sn_hash(w->tensors[i].data, w->tensors[i].bytes, sn_hash_mix(h + i));
    return h;
}

/* Threads that ask at the same time do the same work and find the same value. */
uint64_t sn_weights_fingerprint(sn_weights *w) {
    if (atomic_load_explicit(&w->known, memory_order_acquire))
        return atomic_load_explicit(&w->fingerprint, memory_order_relaxed);
    const uint64_t h = hash_tensors(w);
    atomic_store_explicit(&w->fingerprint, h, memory_order_relaxed);
    atomic_store_explicit(&w->known, true, memory_order_release);
    return h;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static bool lies_in(const sn_region *inner, const sn_region *outer) {
    return outer->data && inner->data >= outer->data && inner->data < outer->data + outer->bytes;
}

double sn_weights_mapped_bytes(const sn_weights *w) {
    double bytes = 0.0;
    for (size_t i = 0; i < w->n_tensors; i++)
        for (size_t k = 0; k < w->n_maps; k++)
            if (lies_in(&w->tensors[i], &w->maps[k])) bytes += (double)w->tensors[i].bytes;
    return bytes;
}

double sn_weights_huge_bytes(const sn_weights *w) {
    double bytes = sn_platform_huge_bytes(w->pages, w->page_bytes);
    for (size_t i = 0; i < w->n_maps && bytes >= 0.0; i++)
        if (w->maps[i].data) bytes += sn_platform_huge_bytes(w->maps[i].data, w->maps[i].bytes);
    return bytes;
}

/* ---- reading, for measurements --------------------------------------------------------------- */

#define LINE 64
#define STREAMS 4  /* one alone keeps too few lines on their way from memory: a tenth slower */
#define AHEAD 2048 /* bytes: the hardware's own prefetch ends at a page */

#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)(p))
#endif

typedef struct reading {
    const uint8_t *data;
    _Atomic uint64_t sum; /* keeps the reads from being left out */
} reading;

/* One word of each line, which comes whole. */
static uint64_t word_of(const uint8_t *line) {
    uint64_t word;
    memcpy(&word, line, sizeof word);
    return word;
}

static void read_lines(void *context, size_t begin, size_t end) {
    reading *r = context;
    const size_t n = (end - begin) / STREAMS;
    const uint8_t *start = r->data + begin * LINE;
    uint64_t sums[STREAMS] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < STREAMS; k++) {
            const uint8_t *line = start + (k * n + i) * LINE;
            PREFETCH(line + AHEAD);
            sums[k] ^= word_of(line);
        }
    }
    for (size_t i = begin + STREAMS * n; i < end; i++) sum ^= word_of(r->data + i * LINE);
    for (size_t k = 0; k < STREAMS; k++) sum ^= sums[k];
    atomic_fetch_xor_explicit(&r->sum, sum, memory_order_relaxed);
}

static double read_region(const uint8_t *data, size_t bytes, sn_pool *pool) {
    reading r = { .data = data };
    sn_pool_run(pool, bytes / LINE, read_lines, &r);
    return (double)(bytes / LINE * LINE);
}

double sn_weights_read(const sn_weights *w, sn_pool *pool) {
    double bytes = read_region(w->pages, w->page_bytes, pool);
    for (size_t i = 0; i < w->n_maps; i++)
        if (w->maps[i].data) bytes += read_region(w->maps[i].data, w->maps[i].bytes, pool);
    return bytes;
}
