#include "merges.h"

#include <inttypes.h>
#include <string.h>

#define KEY "tokenizer.ggml.merges"
#define KEY_IDS "sunnynet.tokenizer.merges"

static sn_status bad(const sn_vocabulary_keys *keys, uint64_t rank, const char *reason) {
    return sn_fail(SN_E_FORMAT, "%.300s: merge %" PRIu64 ": %s", keys->name, rank, reason);
}

static sn_status make(const sn_vocabulary_keys *keys, uint64_t count, sn_pairs *merges) {
    if (count > INT32_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %" PRIu64 " merges", keys->name, count);
    return sn_pairs_new((size_t)count, merges);
}

static sn_status set(const sn_vocabulary_keys *keys, uint64_t rank, sn_pair merge,
                     sn_pairs *merges) {
    if (sn_pairs_set(merges, merge.left, merge.right, merge.value)) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: too many merges collide, merge %" PRIu64
                   " for one", keys->name, rank);
}

/* ---- by texts ----------------------------------------------------------------------- */

/* The space is the first one that has something in front of it: a side may begin with one. */
static bool split(sn_span merge, sn_span *left, sn_span *right) {
    const char *space = merge.size < 3 ? NULL : memchr(merge.data + 1, ' ', merge.size - 2);
    if (!space) return false;
    *left = (sn_span){ .data = merge.data, .size = (size_t)(space - merge.data) };
    *right = (sn_span){ .data = space + 1, .size = merge.size - left->size - 1 };
    return true;
}

static sn_status read_one(const sn_vocabulary_keys *keys, const sn_words *words,
                          sn_tokenizer *vocabulary, uint64_t rank, sn_span text,
                          sn_pairs *merges) {
    sn_span left, right;
    if (!split(text, &left, &right)) return bad(keys, rank, "not two texts with a space between");
    int32_t a = sn_words_find(words, (const uint8_t *)left.data, left.size);
    int32_t b = sn_words_find(words, (const uint8_t *)right.data, right.size);
    int32_t c = sn_words_find_joined(words, left, right);
    if (a < 0) return bad(keys, rank, "its left side is not in the vocabulary");
    if (b < 0) return bad(keys, rank, "its right side is not in the vocabulary");
    if (c < 0) return bad(keys, rank, "what it makes is not in the vocabulary");
    /* Control tokens are never made from text. */
    if (!sn_vocabulary_has_text(vocabulary, c)) return SN_OK;
    vocabulary->roles[c] = SN_TOKEN_TEXT;
    return set(keys, rank, (sn_pair){ (uint32_t)a, (uint32_t)b, (uint32_t)c }, merges);
}

sn_status sn_merges_read(const sn_vocabulary_keys *keys, const sn_words *words,
                         sn_tokenizer *vocabulary, bool *present, sn_pairs *merges) {
    const sn_gguf_value *list;
    SN_TRY(sn_vocabulary_get_array(keys, KEY, true, UINT64_MAX, present == NULL, &list));
    if (present) *present = list != NULL;
    if (!list) return SN_OK;
    SN_TRY(make(keys, list->count, merges));
    for (uint64_t rank = 0; rank < list->count; rank++)
        SN_TRY(read_one(keys, words, vocabulary, rank, sn_gguf_string_at(list, rank), merges));
    return SN_OK;
}

/* ---- by ids ------------------------------------------------------------------------- */

static bool makes(const sn_tokenizer *t, sn_pair merge) {
    size_t a_length, b_length, c_length;
    const uint8_t *a = sn_vocabulary_token(t, (int32_t)merge.left, &a_length);
    const uint8_t *b = sn_vocabulary_token(t, (int32_t)merge.right, &b_length);
    const uint8_t *c = sn_vocabulary_token(t, (int32_t)merge.value, &c_length);
    return c_length == a_length + b_length && memcmp(c, a, a_length) == 0 &&
           memcmp(c + a_length, b, b_length) == 0;
}

static bool is_text(const sn_tokenizer *t, int64_t id) {
    return id >= 0 && id < t->n_ids && t->roles[id] == SN_TOKEN_TEXT;
}

sn_status sn_merges_read_ids(const sn_vocabulary_keys *keys, const sn_tokenizer *vocabulary,
                             sn_pairs *merges) {
    const sn_gguf_value *list;
    SN_TRY(sn_vocabulary_get_array(keys, KEY_IDS, false, UINT64_MAX, true, &list));
    if (list->count % 3)
        return sn_fail(SN_E_FORMAT, "%.300s: %s: %" PRIu64 " numbers are not three for each merge",
                       keys->name, KEY_IDS, list->count);
    SN_TRY(make(keys, list->count / 3, merges));
    for (uint64_t rank = 0; rank < list->count / 3; rank++) {
        int64_t a = sn_gguf_int_at(list, 3 * rank), b = sn_gguf_int_at(list, 3 * rank + 1);
        int64_t c = sn_gguf_int_at(list, 3 * rank + 2);
        if (!is_text(vocabulary, a) || !is_text(vocabulary, b) || !is_text(vocabulary, c))
            return bad(keys, rank, "one of its ids is no token with a text");
        sn_pair merge = { (uint32_t)a, (uint32_t)b, (uint32_t)c };
        if (!makes(vocabulary, merge)) return bad(keys, rank, "its parts are not what it makes");
        SN_TRY(set(keys, rank, merge, merges));
    }
    return SN_OK;
}

/* ---- finding ------------------------------------------------------------------------ */

bool sn_merges_find(const void *merges, const sn_bpe *bpe, const sn_symbol *left,
                    const sn_symbol *right, uint32_t *rank, int32_t *id) {
    const sn_pairs *pairs = merges;
    (void)bpe;
    int64_t found = sn_pairs_find(pairs, (uint32_t)left->id, (uint32_t)right->id);
    if (found < 0) return false;
    *rank = (uint32_t)found;
    *id = (int32_t)pairs->pairs[found].value;
    return true;
}
