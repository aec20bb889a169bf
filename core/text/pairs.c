#include "pairs.h"

#include "../hash.h"

sn_status sn_pairs_new(size_t capacity, sn_pairs *pairs) {
    size_t slots = sn_slots_for(capacity);
    pairs->pairs = sn_alloc_array(capacity, sizeof(sn_pair));
    pairs->slots = sn_alloc_array(slots, sizeof(uint32_t));
    pairs->mask = slots - 1;
    pairs->n = 0;
    if (pairs->pairs && pairs->slots) return SN_OK;
    sn_pairs_free(pairs);
    return SN_E_NOMEM;
}

void sn_pairs_free(sn_pairs *pairs) {
    sn_free(pairs->pairs);
    sn_free(pairs->slots);
    *pairs = (sn_pairs){ .pairs = NULL };
}

/* The slot that holds the pair or is free for it; NULL after too many others. */
static uint32_t *slot_of(const sn_pairs *pairs, uint32_t left, uint32_t right) {
    size_t at = (size_t)sn_hash_mix((uint64_t)left << 32 | right) & pairs->mask;
    for (int probe = 0; probe < SN_PROBES_MAX; probe++) {
        uint32_t *slot = &pairs->slots[at];
        if (*slot == 0) return slot;
        const sn_pair *pair = &pairs->pairs[*slot - 1];
        if (pair->left == left && pair->right == right) return slot;
        at = (at + 1) & pairs->mask;
    }
    return NULL;
}

bool sn_pairs_set(sn_pairs *pairs, uint32_t left, uint32_t right, uint32_t value) {
    uint32_t *slot = slot_of(pairs, left, right);
    if (!slot) return false;
    pairs->pairs[pairs->n] = (sn_pair){ .left = left, .right = right, .value = value };
    *slot = (uint32_t)++pairs->n;
    return true;
}

int64_t sn_pairs_find(const sn_pairs *pairs, uint32_t left, uint32_t right) {
    const uint32_t *slot = slot_of(pairs, left, right);
    return slot ? (int64_t)*slot - 1 : -1;
}
