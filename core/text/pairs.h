/*
 * pairs.h: a table of ordered pairs of numbers, each with a value and with its rank: the place
 * in which it was set. Merges of a byte-pair encoding are such, and the compositions of Unicode.
 */
#ifndef SN_TEXT_PAIRS_H
#define SN_TEXT_PAIRS_H

#include "../memory.h"

typedef struct sn_pair {
    uint32_t left, right, value;
} sn_pair;

typedef struct sn_pairs {
    sn_pair *pairs; /* [n], by rank */
    size_t n;
    uint32_t *slots; /* [mask + 1]: rank + 1, 0 if free; open addressing, linear probing */
    size_t mask;
} sn_pairs;

/* Room for `capacity` pairs (below 2^31). */
sn_status sn_pairs_new(size_t capacity, sn_pairs *pairs);
void sn_pairs_free(sn_pairs *pairs); /* also of a zeroed struct */

/* Gives the pair the next rank; set again, it has the later one. False: so many pairs collide
 * that they must have been made up for that. */
bool sn_pairs_set(sn_pairs *pairs, uint32_t left, uint32_t right, uint32_t value);

/* The pair's rank, -1 if it is not there. */
int64_t sn_pairs_find(const sn_pairs *pairs, uint32_t left, uint32_t right);

/*
 * Half-filled tables that are hashed well have runs of a few dozen slots at most; anything
 * beyond this was made up to slow us down.
 */
#define SN_PROBES_MAX 1000

/* Slots for n entries: a power of two, at least twice as many. */
static inline size_t sn_slots_for(size_t n) {
    size_t slots = 16;
    while (slots / 2 < n) slots *= 2;
    return slots;
}

#endif
