/*
 * rwkv.c: the tokenizer of the RWKV "world" models: at every position of the text, seen as bytes,
 * the longest token that fits. Here: encoding, and the vocabulary as GGUF files carry it.
 *
 * Reference: rwkv_tokenizer.py of the PyPI package rwkv. Different from it, and from loaders that
 * match every entry of a GGUF list: control and unused entries are never found in a text, so that
 * a user who types "<s>" gets the characters, not the token.
 */
#include "trie.h"

#include <inttypes.h>

static sn_status encode(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_id_list *out) {
    for (size_t at = 0; at < bytes;) {
        int32_t id;
        size_t length = sn_trie_longest(tokenizer->encoder, text + at, bytes - at, &id);
        if (length == 0)
            return sn_fail(SN_E_INVAL, "encode: no token begins with byte 0x%02x, at offset %zu "
                           "of the text", text[at], at);
        sn_id_list_add(out, id);
        at += length;
    }
    return SN_OK;
}

static void free_encoder(void *encoder) {
    sn_trie_free(encoder);
}

const sn_vocabulary_kind sn_rwkv_kind = {
    .name = "rwkv", .encode = encode, .free_encoder = free_encoder
};

static bool has_every_byte(const sn_trie *trie) {
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text = (uint8_t)byte;
        int32_t id;
        if (sn_trie_longest(trie, &text, 1, &id) == 0) return false;
    }
    return true;
}

sn_status sn_rwkv_prepare(sn_tokenizer *tokenizer) {
    sn_trie *trie = NULL;
    SN_TRY(sn_trie_new(tokenizer, &trie));
    tokenizer->encoder = trie;
    tokenizer->complete = has_every_byte(trie);
    return SN_OK;
}

/* ---- GGUF --------------------------------------------------------------------------- */

/* The byte that the escape at *from stands for (past the backslash); -1 if it is malformed. */
static int unescape_one(const char **from, const char *end) {
    if (*from == end) return -1;
    char c = *(*from)++;
    if (c == 't') return '\t';
    if (c == 'n') return '\n';
    if (c == 'r') return '\r';
    if (c != 'x') return (unsigned char)c;
    if (end - *from < 2) return -1;
    int high = sn_hex_digit((uint8_t)(*from)[0]), low = sn_hex_digit((uint8_t)(*from)[1]);
    *from += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Tokens stand in the file as Python would print their bytes. False if an escape is malformed. */
static bool unescape(sn_span escaped, uint8_t *out, size_t *length) {
    const char *from = escaped.data, *end = from + escaped.size;
    size_t n = 0;
    while (from < end) {
        int byte = (unsigned char)*from++;
        if (byte == '\\') byte = unescape_one(&from, end);
        if (byte < 0) return false;
        out[n++] = (uint8_t)byte;
    }
    *length = n;
    return true;
}

/* Values of tokenizer.ggml.token_type: normal, unknown, control, user-defined, unused, byte. */
static sn_status role_of(const sn_gguf *gguf, const sn_gguf_value *types, int32_t id,
                         sn_token_role *role) {
    int64_t type = types ? sn_gguf_int_at(types, (uint64_t)id) : 1;
    if (type < 1 || type > 6)
        return sn_fail(SN_E_FORMAT, "%.300s: token %" PRId32 " has the unknown type %" PRId64,
                       sn_gguf_name(gguf), id, type);
    *role = type == 5 ? SN_TOKEN_UNUSED : type == 2 || type == 3 ? SN_TOKEN_CONTROL
                                                                : SN_TOKEN_TEXT;
    /* The world vocabulary knows no text for 0, its end of text, whatever a file writes there. */
    if (id == 0) *role = SN_TOKEN_CONTROL;
    return SN_OK;
}

static sn_status fill(const sn_gguf *gguf, const sn_gguf_value *tokens,
                      const sn_gguf_value *types, sn_tokenizer *tokenizer) {
    for (int32_t id = 0; id < tokenizer->n_ids; id++) {
        sn_token_role role = SN_TOKEN_TEXT;
        size_t length = 0;
        SN_TRY(role_of(gguf, types, id, &role));
        if (role == SN_TOKEN_TEXT &&
            !unescape(sn_gguf_string_at(tokens, (uint64_t)id), sn_vocabulary_room(tokenizer, id),
                      &length))
            return sn_fail(SN_E_FORMAT, "%.300s: token %" PRId32 " has a malformed escape",
                           sn_gguf_name(gguf), id);
        /* A token without text would be a step that says nothing: it is padding. */
        if (role == SN_TOKEN_TEXT && length == 0) role = SN_TOKEN_UNUSED;
        sn_vocabulary_add(tokenizer, id, length, role);
    }
    return SN_OK;
}

static sn_status special_id(const sn_gguf *gguf, const char *key, int32_t n_ids, int32_t *id) {
    uint32_t value = UINT32_MAX; /* absent; some files write it for "none" */
    SN_TRY(sn_gguf_get_u32(gguf, key, false, &value));
    if (value == UINT32_MAX) return SN_OK;
    if (value >= (uint32_t)n_ids)
        return sn_fail(SN_E_FORMAT, "%.300s: %s is %" PRIu32 ", outside the vocabulary of %"
                       PRId32, sn_gguf_name(gguf), key, value, n_ids);
    *id = (int32_t)value;
    return SN_OK;
}

static sn_status finish(const sn_gguf *gguf, const sn_gguf_value *tokens,
                        const sn_gguf_value *types, sn_tokenizer *tokenizer) {
    int32_t n_ids = tokenizer->n_ids;
    SN_TRY(special_id(gguf, "tokenizer.ggml.bos_token_id", n_ids, &tokenizer->bos));
    SN_TRY(special_id(gguf, "tokenizer.ggml.eos_token_id", n_ids, &tokenizer->eos));
    SN_TRY(special_id(gguf, "tokenizer.ggml.eot_token_id", n_ids, &tokenizer->eot));
    SN_TRY(fill(gguf, tokens, types, tokenizer));
    return sn_rwkv_prepare(tokenizer);
}

static bool is_integer(sn_gguf_kind kind) {
    return kind <= SN_GGUF_I32 || kind == SN_GGUF_U64 || kind == SN_GGUF_I64;
}

sn_status sn_rwkv_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    const char *name = sn_gguf_name(gguf);
    const sn_gguf_value *tokens = sn_gguf_find(gguf, "tokenizer.ggml.tokens");
    const sn_gguf_value *types = sn_gguf_find(gguf, "tokenizer.ggml.token_type");
    if (!tokens || tokens->kind != SN_GGUF_ARRAY || tokens->element != SN_GGUF_STRING)
        return sn_fail(SN_E_FORMAT, "%.300s: tokenizer.ggml.tokens is no array of texts", name);
    if (types && (types->kind != SN_GGUF_ARRAY || !is_integer(types->element)))
        return sn_fail(SN_E_FORMAT, "%.300s: tokenizer.ggml.token_type is no array of integers",
                       name);
    if (types && types->count != tokens->count)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " tokens, but %" PRIu64 " token types",
                       name, tokens->count, types->count);
    sn_tokenizer *made = NULL;
    /* No escape is shorter than what it stands for. */
    SN_TRY(sn_vocabulary_new(&sn_rwkv_kind, name, tokens->count, tokens->bytes, &made));
    sn_status status = finish(gguf, tokens, types, made);
    if (status == SN_OK)
        *tokenizer = made;
    else
        sn_tokenizer_destroy(made);
    return status;
}
