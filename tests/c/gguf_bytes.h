/*
 * gguf_bytes.h: headers of GGUF files with a tokenizer, put together byte by byte.
 */
#ifndef SN_TESTS_GGUF_BYTES_H
#define SN_TESTS_GGUF_BYTES_H

#include "check.h"

#include "formats/gguf.h"
#include "text/tokenizer.h"

typedef struct gguf_bytes { /* a header without tensors */
    uint8_t data[1 << 18];
    size_t n;
    uint64_t n_keys;
} gguf_bytes;

static inline void put(gguf_bytes *g, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) g->data[g->n++] = (uint8_t)(value >> 8 * i);
}

static inline void put_string(gguf_bytes *g, const char *text, size_t bytes) {
    put(g, bytes, 8);
    if (bytes) memcpy(g->data + g->n, text, bytes);
    g->n += bytes;
}

static inline void put_key(gguf_bytes *g, const char *key, sn_gguf_kind kind) {
    put_string(g, key, strlen(key));
    put(g, kind, 4);
    g->n_keys++;
}

static inline void put_array(gguf_bytes *g, const char *key, sn_gguf_kind element,
                             uint64_t count) {
    put_key(g, key, SN_GGUF_ARRAY);
    put(g, element, 4);
    put(g, count, 8);
}

static inline void put_text(gguf_bytes *g, const char *key, const char *text) {
    put_key(g, key, SN_GGUF_STRING);
    put_string(g, text, strlen(text));
}

static inline void put_flag(gguf_bytes *g, const char *key, bool value) {
    put_key(g, key, SN_GGUF_BOOL);
    put(g, value, 1);
}

static inline void put_id(gguf_bytes *g, const char *key, uint32_t id) {
    put_key(g, key, SN_GGUF_U32);
    put(g, id, 4);
}

static inline void begin(gguf_bytes *g, const char *kind) {
    g->n = g->n_keys = 0;
    put(g, 0x46554747, 4);
    put(g, 3, 4);
    put(g, 0, 8);
    put(g, 0, 8); /* number of keys, see open_bytes */
    if (kind) put_text(g, "tokenizer.ggml.model", kind);
}

static inline void put_list(gguf_bytes *g, const char *key, const char *const *texts, size_t n) {
    put_array(g, key, SN_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) put_string(g, texts[i], strlen(texts[i]));
}

static inline void put_texts(gguf_bytes *g, const char *const *tokens, size_t n) {
    put_list(g, "tokenizer.ggml.tokens", tokens, n);
}

static inline void put_numbers(gguf_bytes *g, const char *key, const uint32_t *numbers,
                               size_t n) {
    put_array(g, key, SN_GGUF_U32, n);
    for (size_t i = 0; i < n; i++) put(g, numbers[i], 4);
}

static inline void put_types(gguf_bytes *g, const char *digits) {
    put_array(g, "tokenizer.ggml.token_type", SN_GGUF_I32, strlen(digits));
    for (; *digits; digits++) put(g, (uint64_t)(*digits - '0'), 4);
}

static inline bool open_bytes(gguf_bytes *g, sn_gguf *gguf, sn_memory_cursor *cursor) {
    sn_input input;
    size_t end = g->n;
    g->n = 16;
    put(g, g->n_keys, 8);
    g->n = end;
    sn_input_from_memory(&input, "m.gguf", g->data, g->n, cursor);
    return sn_gguf_read(&input, gguf) == SN_OK;
}

static inline sn_status from_bytes(gguf_bytes *g, sn_tokenizer **tokenizer) {
    sn_memory_cursor cursor;
    sn_gguf gguf = { 0 };
    sn_status status = SN_E_FORMAT;
    if (open_bytes(g, &gguf, &cursor)) status = sn_tokenizer_from_gguf(&gguf, tokenizer);
    sn_gguf_close(&gguf);
    return status;
}

#endif
