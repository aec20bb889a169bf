/*
 * tokenizer.c: the public functions that look at a tokenizer, and which kind a file has.
 */
#include "added.h"
#include "nfc.h"

#include <inttypes.h>
#include <string.h>

static bool span_is(sn_span span, const char *text) {
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

sn_status sn_tokenizer_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    const char *key = "tokenizer.ggml.model";
    sn_span kind = { .size = 0 };
    if (!sn_gguf_find(gguf, key)) {
        sn_span problem = { .size = 0 }; /* why the importer could not bring one along */
        SN_TRY(sn_gguf_get_text(gguf, "sunnynet.tokenizer.problem", false, &problem));
        if (problem.size)
            return sn_fail(SN_E_UNSUPPORTED, "%.*s",
                           problem.size < 500 ? (int)problem.size : 500, problem.data);
        *tokenizer = NULL;
        return SN_OK;
    }
    SN_TRY(sn_gguf_get_text(gguf, key, true, &kind));
    if (span_is(kind, "rwkv")) return sn_rwkv_from_gguf(gguf, tokenizer);
    if (span_is(kind, "gpt2")) return sn_gpt2_from_gguf(gguf, tokenizer);
    if (span_is(kind, "llama")) return sn_llama_from_gguf(gguf, tokenizer);
    if (span_is(kind, "sunnynet")) return sn_character_from_gguf(gguf, tokenizer);
    int shown = kind.size < 60 ? (int)kind.size : 60;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: tokenizers of the kind '%.*s' are not supported "
                   "(%s = gpt2, llama, rwkv and sunnynet are)", sn_gguf_name(gguf), shown,
                   kind.data, key);
}

void sn_tokenizer_destroy(sn_tokenizer *tokenizer) {
    if (!tokenizer) return;
    tokenizer->kind->free_encoder(tokenizer->encoder);
    sn_added_free(tokenizer->added);
    sn_nfc_free(tokenizer->nfc);
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

int32_t sn_tokenizer_special(const sn_tokenizer *tokenizer, int32_t id) {
    return tokenizer && id >= 0 && id < tokenizer->n_ids &&
           tokenizer->roles[id] == SN_TOKEN_CONTROL;
}

const char *sn_tokenizer_advice(const sn_tokenizer *tokenizer) {
    return tokenizer->advice;
}

static sn_status check_id(const sn_tokenizer *tokenizer, int32_t id, const char **bytes,
                          const size_t *length) {
    if (!tokenizer || !bytes || !length)
        return sn_fail(SN_E_INVAL, "token: tokenizer, bytes or length is NULL");
    if (id < 0 || id >= tokenizer->n_ids)
        return sn_fail(SN_E_INVAL, "token: id %" PRId32 " is outside the vocabulary of %" PRId32,
                       id, tokenizer->n_ids);
    return SN_OK;
}

sn_status sn_tokenizer_token(const sn_tokenizer *tokenizer, int32_t id, const char **bytes,
                             size_t *length) {
    SN_TRY(check_id(tokenizer, id, bytes, length));
    *bytes = (const char *)sn_vocabulary_token(tokenizer, id, length);
    return SN_OK;
}

sn_status sn_tokenizer_text(const sn_tokenizer *tokenizer, int32_t id, const char **bytes,
                            size_t *length) {
    SN_TRY(check_id(tokenizer, id, bytes, length));
    *bytes = (const char *)sn_vocabulary_text(tokenizer, id, length);
    return SN_OK;
}
