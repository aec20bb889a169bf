/*
 * weights.h: where a model's weights lie in memory: in a block of our own or in mapped files. What
 * can be told of them as plain bytes: the fingerprint, the pages they lie on, how fast they are
 * read. A model holds one by pointer, as the fingerprint is found when it is first asked for.
 */
#ifndef SN_CORE_WEIGHTS_H
#define SN_CORE_WEIGHTS_H

#include "threads.h"

#include <stdatomic.h>

typedef struct sn_region {
    const uint8_t *data;
    size_t bytes;
} sn_region;

typedef struct sn_weights {
    uint8_t *pages; /* sn_platform_pages() */
    size_t page_bytes;
    sn_region *maps; /* whole files, one for each part of the model; none if not mapped */
    size_t n_maps;
    sn_region *tensors; /* in the order in which the architecture binds them */
    size_t n_tensors;
    _Atomic uint64_t fingerprint;
    atomic_bool known; /* the fingerprint is */
} sn_weights;

void sn_weights_free(sn_weights *weights); /* NULL is fine */

/*
 * A hash over the weights as used. The order of binding names the tensors, so files that hold the
 * same weights in another order, or as panels, have the same one (docs/state-format.md). Reads
 * everything, the first time.
 */
uint64_t sn_weights_fingerprint(sn_weights *weights);

/* Bytes in mapped files; bytes on huge pages, -1 if the system does not tell. */
double sn_weights_mapped_bytes(const sn_weights *weights);
double sn_weights_huge_bytes(const sn_weights *weights);

/* Reads all memory with weights once; how many bytes that was. */
double sn_weights_read(const sn_weights *weights, sn_pool *pool);

#endif
