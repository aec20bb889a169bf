#include "words.h"

#include "../hash.h"
#include "pairs.h"

#include <inttypes.h>
#include <string.h>

/* The hash goes on from the one of what stands before (FNV-1a, spread by a finisher). */
#define HASH_START 0xcbf29ce484222325u

static uint64_t hash_on(uint64_t hash, const void *text, size_t length) {
    const uint8_t *bytes = text;
    for (size_t i = 0; i < length; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static bool is_joined(const sn_words *words, int32_t id, sn_span left, sn_span right) {
    size_t length;
    const uint8_t *text = sn_vocabulary_text(words->vocabulary, id, &length);
    return length == left.size + right.size && memcmp(text, left.data, left.size) == 0 &&
           memcmp(text + left.size, right.data, right.size) == 0;
}

/* The slot that holds the text or is free for it; NULL after too many others. */
static uint32_t *slot_of(const sn_words *words, sn_span left, sn_span right) {
    uint64_t hash = hash_on(hash_on(HASH_START, left.data, left.size), right.data, right.size);
    size_t at = (size_t)sn_hash_mix(hash) & words->mask;
    for (int probe = 0; probe < SN_PROBES_MAX; probe++) {
        uint32_t *slot = &words->slots[at];
        if (*slot == 0 || is_joined(words, (int32_t)(*slot - 1), left, right)) return slot;
        at = (at + 1) & words->mask;
    }
    return NULL;
}

static sn_status add(sn_words *words, const char *name, bool unique, int32_t id) {
    size_t length;
    const uint8_t *text = sn_vocabulary_text(words->vocabulary, id, &length);
    sn_span whole = { .data = (const char *)text, .size = length }, empty = { .data = "" };
    uint32_t *slot = slot_of(words, whole, empty);
    if (!slot)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: the texts of too many tokens collide, token %"
                       PRId32 " for one", name, id);
    if (*slot == 0) {
        *slot = (uint32_t)id + 1;
        return SN_OK;
    }
    if (!unique) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tokens %" PRIu32 " and %" PRId32 " are both '%.*s'", name,
                   *slot - 1, id, length < 60 ? (int)length : 60, (const char *)text);
}

sn_status sn_words_new(const sn_tokenizer *vocabulary, const char *name, bool unique,
                       sn_words *words) {
    size_t slots = sn_slots_for((size_t)vocabulary->n_ids);
    words->vocabulary = vocabulary;
    words->mask = slots - 1;
    words->slots = sn_alloc_array(slots, sizeof(uint32_t));
    if (!words->slots) return SN_E_NOMEM;
    for (int32_t id = 0; id < vocabulary->n_ids; id++) {
        if (vocabulary->roles[id] == SN_TOKEN_UNUSED) continue;
        sn_status status = add(words, name, unique, id);
        if (status != SN_OK) {
            sn_words_free(words);
            return status;
        }
    }
    return SN_OK;
}

void sn_words_free(sn_words *words) {
    sn_free(words->slots);
    *words = (sn_words){ .slots = NULL };
}

int32_t sn_words_find_joined(const sn_words *words, sn_span left, sn_span right) {
    const uint32_t *slot = slot_of(words, left, right);
    return slot ? (int32_t)*slot - 1 : -1;
}

int32_t sn_words_find(const sn_words *words, const uint8_t *text, size_t length) {
    sn_span whole = { .data = (const char *)text, .size = length }, empty = { .data = "" };
    return sn_words_find_joined(words, whole, empty);
}
