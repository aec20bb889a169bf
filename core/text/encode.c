/*
 * encode.c: from a text to ids. Added tokens are cut out, the pieces between them normalized,
 * searched for added tokens once more, given a space in front where the tokenizer wants one, and
 * then encoded as the kind does it.
 */
#include "added.h"

#include <inttypes.h>
#include <string.h>

sn_status sn_encoding_add(sn_encoding *e, int32_t id) {
    if (e->n == INT32_MAX)
        return sn_fail(SN_E_INVAL, "encode: a text of more than %" PRId32 " ids", INT32_MAX);
    if (e->n == e->room) {
        size_t room = e->room ? 2 * e->room : 64, bytes;
        if (!sn_mul_size(room, sizeof(int32_t), &bytes))
            return sn_fail(SN_E_NOMEM, "out of memory: %zu ids", room);
        int32_t *grown = sn_grow(e->ids, e->n * sizeof(int32_t), bytes);
        if (!grown) return SN_E_NOMEM;
        e->ids = grown;
        e->room = room;
    }
    e->ids[e->n++] = id;
    return SN_OK;
}

sn_status sn_encoding_add_symbols(sn_encoding *e) {
    if (e->bpe.n == 0) return SN_OK;
    for (uint32_t i = 0; i != SN_BPE_NONE; i = e->bpe.symbols[i].next)
        SN_TRY(sn_encoding_add(e, e->bpe.symbols[i].id));
    return SN_OK;
}

static bool begins_with_space(const uint8_t *text, size_t bytes, bool marks) {
    if (text[0] == ' ') return true;
    return marks && bytes >= SN_SPACE_MARK_BYTES &&
           memcmp(text, SN_SPACE_MARK, SN_SPACE_MARK_BYTES) == 0;
}

/* The text as the kind wants it: spaces marked, one put in front. */
static sn_status prepare(const sn_tokenizer *t, const uint8_t *text, size_t bytes, bool first,
                         sn_buffer *out) {
    bool wanted = t->prepend == SN_PREPEND_ALWAYS || (t->prepend == SN_PREPEND_FIRST && first);
    out->size = 0;
    if (wanted && !begins_with_space(text, bytes, t->marks_spaces))
        SN_TRY(t->marks_spaces ? sn_buffer_append(out, SN_SPACE_MARK, SN_SPACE_MARK_BYTES)
                               : sn_buffer_append(out, " ", 1));
    return t->marks_spaces ? sn_added_mark_spaces(text, bytes, out)
                           : sn_buffer_append(out, text, bytes);
}

/* A text without added tokens; `first`: it stands at the beginning of all. */
static sn_status encode_plain(sn_encoding *e, const uint8_t *text, size_t bytes, bool first) {
    const sn_tokenizer *t = e->tokenizer;
    bool prepared = t->prepend == SN_PREPEND_EACH || /* and then already normalized so */
                    (t->prepend == SN_PREPEND_NEVER && !t->marks_spaces);
    if (!prepared) {
        SN_TRY(prepare(t, text, bytes, first, &e->prepared));
        text = e->prepared.data;
        bytes = e->prepared.size;
    }
    if (bytes > INT32_MAX)
        return sn_fail(SN_E_INVAL, "encode: a text of %zu bytes, at most %" PRId32
                       " can be encoded at once", bytes, INT32_MAX);
    return t->kind->encode(t, text, bytes, e);
}

/* A text between two added tokens of the first search. */
static sn_status encode_between(sn_encoding *e, int32_t flags, const uint8_t *text, size_t bytes,
                                bool first) {
    const sn_tokenizer *t = e->tokenizer;
    if (t->nfc || t->prepend == SN_PREPEND_EACH) {
        SN_TRY(sn_added_normalize(t, text, bytes, &e->normalized));
        text = e->normalized.data;
        bytes = e->normalized.size;
    }
    sn_cutter cutter = sn_cut(t->added, true, flags & SN_ENCODE_SPECIAL, text, bytes);
    for (sn_cut_piece piece; sn_cut_next(&cutter, &piece);)
        SN_TRY(piece.id >= 0 ? sn_encoding_add(e, piece.id)
                             : encode_plain(e, text + piece.start, piece.end - piece.start,
                                            first && piece.start == 0));
    return SN_OK;
}

static sn_status encode_all(sn_encoding *e, int32_t flags, const uint8_t *text, size_t bytes) {
    const sn_tokenizer *t = e->tokenizer;
    bool ends = flags & SN_ENCODE_ENDS;
    if ((ends || flags & SN_ENCODE_BEGIN) && t->add_bos) SN_TRY(sn_encoding_add(e, t->bos));
    sn_cutter cutter = sn_cut(t->added, false, flags & SN_ENCODE_SPECIAL, text, bytes);
    for (sn_cut_piece piece; sn_cut_next(&cutter, &piece);)
        SN_TRY(piece.id >= 0 ? sn_encoding_add(e, piece.id)
                             : encode_between(e, flags, text + piece.start,
                                              piece.end - piece.start, piece.start == 0));
    return ends && t->add_eos ? sn_encoding_add(e, t->eos) : SN_OK;
}

static void encoding_free(sn_encoding *e) {
    sn_free(e->ids);
    sn_bpe_free(&e->bpe);
    sn_buffer_free(&e->normalized);
    sn_buffer_free(&e->prepared);
    sn_buffer_free(&e->spelled);
}

static sn_status check(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                       int32_t flags, const int32_t *ids, int32_t capacity, const int32_t *n) {
    if (!tokenizer || !n) return sn_fail(SN_E_INVAL, "encode: tokenizer or n is NULL");
    if (!text && bytes) return sn_fail(SN_E_INVAL, "encode: text is NULL");
    if (capacity < 0 || (!ids && capacity))
        return sn_fail(SN_E_INVAL, "encode: ids is NULL or its capacity %" PRId32 " negative",
                       capacity);
    if (flags & ~(SN_ENCODE_SPECIAL | SN_ENCODE_ENDS | SN_ENCODE_BEGIN))
        return sn_fail(SN_E_INVAL, "encode: unknown flags %" PRId32, flags);
    if (bytes > INT32_MAX)
        return sn_fail(SN_E_INVAL, "encode: a text of %zu bytes, at most %" PRId32
                       " can be encoded at once", bytes, INT32_MAX);
    return SN_OK;
}

sn_status sn_tokenizer_encode_with(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                                   int32_t flags, int32_t *ids, int32_t capacity, int32_t *n) {
    SN_TRY(check(tokenizer, text, bytes, flags, ids, capacity, n));
    sn_encoding e = { .tokenizer = tokenizer };
    sn_status status = encode_all(&e, flags, (const uint8_t *)text, bytes);
    if (status == SN_OK) {
        size_t stored = e.n < (size_t)capacity ? e.n : (size_t)capacity;
        if (stored) memcpy(ids, e.ids, stored * sizeof(int32_t));
        *n = (int32_t)e.n;
    }
    encoding_free(&e);
    return status;
}

sn_status sn_tokenizer_encode(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                              int32_t *ids, int32_t capacity, int32_t *n) {
    return sn_tokenizer_encode_with(tokenizer, text, bytes, 0, ids, capacity, n);
}
