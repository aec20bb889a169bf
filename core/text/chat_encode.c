/*
 * chat_encode.c: the ids of a message between the texts of a chat format.
 *
 * All of it is one text, as the programs that train on it have it: tokens may reach across the
 * joints. Only the control tokens of the format may become ids, though, so the text is encoded
 * with all of them, and if the message has made or spoilt one, once more part by part.
 */
#include "buffer.h"

typedef struct id_array { /* zeroed: empty */
    int32_t *at;
    size_t n;
} id_array;

/* Appends. */
static sn_status encode(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                        int32_t flags, id_array *ids) {
    int32_t n = 0;
    size_t size;
    if (bytes == 0) return SN_OK;
    SN_TRY(sn_tokenizer_encode_with(tokenizer, text, bytes, flags, NULL, 0, &n));
    if (!sn_mul_size(ids->n + (size_t)n, sizeof(int32_t), &size))
        return sn_fail(SN_E_NOMEM, "out of memory: %zu ids", ids->n + (size_t)n);
    int32_t *grown = sn_grow(ids->at, ids->n * sizeof(int32_t), size);
    if (!grown) return SN_E_NOMEM;
    ids->at = grown;
    SN_TRY(sn_tokenizer_encode_with(tokenizer, text, bytes, flags, ids->at + ids->n, n, &n));
    ids->n += (size_t)n;
    return SN_OK;
}

typedef struct parts {
    const sn_tokenizer *tokenizer;
    const char *before, *message, *after;
    size_t before_bytes, message_bytes, after_bytes;
} parts;

/* Each for itself; *with_control tells whether the format's texts hold control tokens. */
static sn_status encode_parts(const parts *p, id_array *ids, bool *with_control) {
    const sn_tokenizer *t = p->tokenizer;
    *with_control = false;
    SN_TRY(encode(t, p->before, p->before_bytes, SN_ENCODE_SPECIAL, ids));
    for (size_t i = 0; i < ids->n; i++)
        *with_control |= sn_tokenizer_special(t, ids->at[i]) != 0;
    SN_TRY(encode(t, p->message, p->message_bytes, 0, ids));
    size_t start = ids->n;
    SN_TRY(encode(t, p->after, p->after_bytes, SN_ENCODE_SPECIAL, ids));
    for (size_t i = start; i < ids->n; i++)
        *with_control |= sn_tokenizer_special(t, ids->at[i]) != 0;
    return SN_OK;
}

static sn_status encode_whole(const parts *p, int32_t flags, id_array *ids) {
    sn_buffer text = { .data = NULL };
    sn_status status = sn_buffer_append(&text, p->before, p->before_bytes);
    if (status == SN_OK) status = sn_buffer_append(&text, p->message, p->message_bytes);
    if (status == SN_OK) status = sn_buffer_append(&text, p->after, p->after_bytes);
    if (status == SN_OK)
        status = encode(p->tokenizer, (const char *)text.data, text.size, flags, ids);
    sn_buffer_free(&text);
    return status;
}

static bool next_control(const sn_tokenizer *tokenizer, const id_array *ids, size_t *at) {
    while (*at < ids->n && !sn_tokenizer_special(tokenizer, ids->at[*at])) ++*at;
    return *at < ids->n;
}

static bool same_control(const sn_tokenizer *tokenizer, const id_array *a, const id_array *b) {
    for (size_t i = 0, k = 0;; i++, k++) {
        bool more = next_control(tokenizer, a, &i);
        if (more != next_control(tokenizer, b, &k)) return false;
        if (!more) return true;
        if (a->at[i] != b->at[k]) return false;
    }
}

/* The ids are in *apart or in *whole; the other is not needed. */
static sn_status encode_message(const parts *p, id_array *apart, id_array *whole,
                                const id_array **ids) {
    bool with_control;
    SN_TRY(encode_parts(p, apart, &with_control));
    SN_TRY(encode_whole(p, with_control ? SN_ENCODE_SPECIAL : 0, whole));
    *ids = !with_control || same_control(p->tokenizer, apart, whole) ? whole : apart;
    return SN_OK;
}

sn_status sn_chat_encode(const sn_tokenizer *tokenizer, const char *before, const char *message,
                         size_t bytes, const char *after, int32_t *ids, int32_t capacity,
                         int32_t *n) {
    if (!tokenizer || !n) return sn_fail(SN_E_INVAL, "chat: tokenizer or n is NULL");
    if (!message && bytes) return sn_fail(SN_E_INVAL, "chat: message is NULL");
    if (capacity < 0 || (!ids && capacity))
        return sn_fail(SN_E_INVAL, "chat: ids is NULL or its capacity negative");
    parts p = { .tokenizer = tokenizer, .before = before ? before : "", .message = message,
                .after = after ? after : "", .message_bytes = bytes };
    p.before_bytes = strlen(p.before);
    p.after_bytes = strlen(p.after);
    id_array apart = { .at = NULL }, whole = { .at = NULL };
    const id_array *made;
    sn_status status = encode_message(&p, &apart, &whole, &made);
    if (status == SN_OK && made->n > INT32_MAX)
        status = sn_fail(SN_E_NOMEM, "chat: %zu ids", made->n);
    if (status == SN_OK) {
        size_t stored = made->n < (size_t)capacity ? made->n : (size_t)capacity;
        if (stored) memcpy(ids, made->at, stored * sizeof(int32_t));
        *n = (int32_t)made->n;
    }
    sn_free(apart.at);
    sn_free(whole.at);
    return status;
}
