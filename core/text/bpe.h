/*
 * bpe.h: byte-pair encoding: of all neighbouring pairs that can be merged the one of the lowest
 * rank is, the leftmost of several, again and again until none can be. O(n log n) in the number
 * of symbols: the pairs wait in a heap, and a merge adds at most two.
 */
#ifndef SN_TEXT_BPE_H
#define SN_TEXT_BPE_H

#include "../memory.h"

#define SN_BPE_NONE UINT32_MAX

typedef struct sn_symbol {
    int32_t id;
    uint32_t at, length;     /* its bytes in the text; length 0: merged into one on its left */
    uint32_t previous, next; /* neighbours, SN_BPE_NONE at the ends */
} sn_symbol;

typedef struct sn_waiting { /* one that waits */
    uint64_t order; /* rank << 32 | place of the left symbol */
    int32_t id;     /* what the two become */
} sn_waiting;

/* What one text needs while it is encoded; zeroed at first, used again for the next. */
typedef struct sn_bpe {
    const uint8_t *text; /* what the symbols' bytes are of */
    sn_symbol *symbols;
    size_t n, room;
    sn_waiting *heap;
    size_t waiting, heap_room;
} sn_bpe;

/* What two symbols can be merged to: false if they cannot. A pure function of their ids and
 * bytes. */
typedef bool (*sn_bpe_find)(const void *context, const sn_bpe *bpe, const sn_symbol *left,
                            const sn_symbol *right, uint32_t *rank, int32_t *id);

/* Begins with no symbols. */
static inline void sn_bpe_begin(sn_bpe *bpe, const uint8_t *text) {
    bpe->text = text;
    bpe->n = 0;
}

/* Appends one; at most 2^31 - 1. */
sn_status sn_bpe_add(sn_bpe *bpe, int32_t id, size_t at, size_t length);

/* Afterwards the symbols are those reached from symbols[0] by `next`. */
sn_status sn_bpe_merge(sn_bpe *bpe, sn_bpe_find find, const void *context);

void sn_bpe_free(sn_bpe *bpe);

#endif
