/*
 * rwkv.c: the tokenizer of the RWKV "world" models: at every position of the text, seen as bytes,
 * the longest token that fits. Here: encoding, and the vocabulary as GGUF files carry it.
 *
 * Reference: rwkv_tokenizer.py of the PyPI package rwkv. Different from it, and from loaders that
 * match every entry of a GGUF list: control and unused entries are not found in a text unless that
 * is asked for, so that a user who types "<s>" gets the characters, not the token.
 */
#include "trie.h"
#include "vocabulary.h"

#include <inttypes.h>

static sn_status encode(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_encoding *encoding) {
    for (size_t at = 0; at < bytes;) {
        int32_t id;
        size_t length = sn_trie_longest(tokenizer->encoder, text + at, bytes - at, &id);
        if (length == 0)
            return sn_fail(SN_E_INVAL, "encode: no token begins with byte 0x%02x, at offset %zu "
                           "of the text", text[at], at);
        SN_TRY(sn_encoding_add(encoding, id));
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

static size_t collect(const sn_tokenizer *tokenizer, sn_word *words) {
    size_t n = 0;
    for (int32_t id = 0; id < tokenizer->n_ids; id++) {
        size_t length;
        const uint8_t *bytes = sn_vocabulary_token(tokenizer, id, &length);
        if (tokenizer->roles[id] != SN_TOKEN_TEXT || length == 0) continue;
        words[n++] = (sn_word){ .bytes = bytes, .length = (uint32_t)length, .id = id };
    }
    return n;
}

sn_status sn_rwkv_prepare(sn_tokenizer *tokenizer) {
    sn_trie *trie = NULL;
    sn_word *words = sn_alloc_array((size_t)tokenizer->n_ids, sizeof(sn_word));
    if (!words) return SN_E_NOMEM;
    sn_status status = sn_trie_new(words, collect(tokenizer, words), &trie);
    sn_free(words);
    tokenizer->encoder = trie;
    return status;
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

static sn_status decode(const sn_vocabulary_keys *keys, int32_t id, sn_span text, uint8_t *out,
                        size_t *length, sn_token_role *role) {
    /* Bytes have tokens as all other texts have. */
    *role = SN_TOKEN_TEXT;
    /* The world vocabulary knows no text for 0, its end of text, whatever a file writes there. */
    if (id == 0) *role = SN_TOKEN_CONTROL;
    if (id == 0 || unescape(text, out, length)) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: token %" PRId32 " has a malformed escape", keys->name,
                   id);
}

sn_status sn_rwkv_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    sn_vocabulary_keys keys;
    const sn_vocabulary_defaults usual = { .decode = decode, .bos = -1, .eos = -1, .unknown = -1 };
    sn_tokenizer *made = NULL;
    SN_TRY(sn_vocabulary_read_keys(gguf, &keys));
    SN_TRY(sn_vocabulary_from_keys(&sn_rwkv_kind, &keys, &usual, &made));
    sn_status status = sn_rwkv_prepare(made);
    if (status == SN_OK)
        *tokenizer = made;
    else
        sn_tokenizer_destroy(made);
    return status;
}
