/*
 * tokenizer.c: the public tokenizer functions, and what all kinds share.
 */
#include "vocabulary.h"

#include <inttypes.h>
#include <string.h>

sn_status sn_vocabulary_new(const sn_vocabulary_kind *kind, const char *name, uint64_t n_ids,
                            uint64_t bytes, sn_tokenizer **tokenizer) {
    if (n_ids < 1 || n_ids > INT32_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: a vocabulary of %" PRIu64 " tokens", name, n_ids);
    if (bytes > SN_VOCABULARY_BYTES_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: a vocabulary of %" PRIu64 " bytes, at most %"
                       PRIu64 " are supported", name, bytes, SN_VOCABULARY_BYTES_MAX);
    size_t ids = (size_t)n_ids;
    size_t offsets, head, total;
    if (!sn_mul_size(ids + 1, sizeof(uint32_t), &offsets) ||
        !sn_add_size(sizeof(sn_tokenizer) + ids, offsets, &head) ||
        !sn_add_size(head, (size_t)bytes, &total))
        return sn_fail(SN_E_NOMEM, "%.300s: a vocabulary of %" PRIu64 " tokens does not fit "
                       "into memory", name, n_ids);
    sn_tokenizer *made = sn_alloc(total);
    if (!made) return SN_E_NOMEM;
    made->kind = kind;
    made->n_ids = (int32_t)n_ids;
    made->bos = made->eos = made->eot = -1;
    made->at = (uint32_t *)(made + 1);
    made->roles = (uint8_t *)(made->at + ids + 1);
    made->bytes = made->roles + ids;
    *tokenizer = made;
    return SN_OK;
}

void sn_vocabulary_add(sn_tokenizer *tokenizer, int32_t id, size_t length, sn_token_role role) {
    tokenizer->at[id + 1] = tokenizer->at[id] + (uint32_t)length;
    tokenizer->roles[id] = (uint8_t)role;
    if (length > tokenizer->longest) tokenizer->longest = length;
}

static bool span_is(sn_span span, const char *text) {
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

sn_status sn_tokenizer_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    const char *key = "tokenizer.ggml.model";
    sn_span kind = { .size = 0 };
    if (!sn_gguf_find(gguf, key)) {
        *tokenizer = NULL;
        return SN_OK;
    }
    SN_TRY(sn_gguf_get_text(gguf, key, true, &kind));
    if (span_is(kind, "rwkv")) return sn_rwkv_from_gguf(gguf, tokenizer);
    int shown = kind.size < 60 ? (int)kind.size : 60;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: tokenizers of the kind '%.*s' are not supported "
                   "(%s = rwkv is)", sn_gguf_name(gguf), shown, kind.data, key);
}

void sn_tokenizer_destroy(sn_tokenizer *tokenizer) {
    if (!tokenizer) return;
    tokenizer->kind->free_encoder(tokenizer->encoder);
    sn_free(tokenizer);
}

void sn_tokenizer_free(sn_tokenizer *tokenizer) {
    sn_tokenizer_destroy(tokenizer);
}

bool sn_tokenizer_usable(const sn_tokenizer *tokenizer, int32_t id) {
    return id >= 0 && id < tokenizer->n_ids && tokenizer->roles[id] != SN_TOKEN_UNUSED;
}

int32_t sn_tokenizer_vocab(const sn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->n_ids : 0;
}

const char *sn_tokenizer_kind(const sn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->kind->name : "";
}

int32_t sn_tokenizer_bos(const sn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->bos : -1;
}

int32_t sn_tokenizer_eos(const sn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->eos : -1;
}

int32_t sn_tokenizer_eot(const sn_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->eot : -1;
}

sn_status sn_tokenizer_encode(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                              int32_t *ids, int32_t capacity, int32_t *n) {
    if (!tokenizer || !n) return sn_fail(SN_E_INVAL, "encode: tokenizer or n is NULL");
    if (!text && bytes) return sn_fail(SN_E_INVAL, "encode: text is NULL");
    if (capacity < 0 || (!ids && capacity))
        return sn_fail(SN_E_INVAL, "encode: ids is NULL or its capacity %" PRId32 " negative",
                       capacity);
    if (bytes > INT32_MAX)
        return sn_fail(SN_E_INVAL, "encode: a text of %zu bytes, at most %" PRId32
                       " can be encoded at once", bytes, INT32_MAX);
    const uint8_t *from = (const uint8_t *)text;
    sn_id_list list = { .ids = ids };
    /* Where encoding can fail, it fails before the first id is stored. */
    if (!tokenizer->complete) SN_TRY(tokenizer->kind->encode(tokenizer, from, bytes, &list));
    list.capacity = capacity;
    list.n = 0;
    SN_TRY(tokenizer->kind->encode(tokenizer, from, bytes, &list));
    *n = list.n;
    return SN_OK;
}

sn_status sn_tokenizer_token(const sn_tokenizer *tokenizer, int32_t id, const char **bytes,
                             size_t *length) {
    if (!tokenizer || !bytes || !length)
        return sn_fail(SN_E_INVAL, "token: tokenizer, bytes or length is NULL");
    if (id < 0 || id >= tokenizer->n_ids)
        return sn_fail(SN_E_INVAL, "token: id %" PRId32 " is outside the vocabulary of %" PRId32,
                       id, tokenizer->n_ids);
    *bytes = (const char *)sn_vocabulary_token(tokenizer, id, length);
    return SN_OK;
}
