#include "added.h"

#include "nfc.h"
#include "trie.h"
#include "unicode.h"
#include "utf8.h"

#include <inttypes.h>
#include <string.h>

typedef struct sn_added_pass {
    sn_trie *trie;      /* NULL: there are no tokens */
    uint8_t begins[256]; /* 1 if a token begins with the byte */
    const uint8_t *flags; /* of each id */
} sn_added_pass;

struct sn_added {
    sn_added_pass passes[2]; /* as it is, normalized */
    uint8_t *flags;          /* [n_ids] */
};

/* ---- normalization ------------------------------------------------------------------ */

sn_status sn_added_mark_spaces(const uint8_t *text, size_t bytes, sn_buffer *out) {
    for (size_t at = 0; at < bytes;) {
        const uint8_t *space = memchr(text + at, ' ', bytes - at);
        size_t plain = space ? (size_t)(space - text) - at : bytes - at;
        SN_TRY(sn_buffer_append(out, text + at, plain));
        at += plain;
        if (!space) break;
        SN_TRY(sn_buffer_append(out, SN_SPACE_MARK, SN_SPACE_MARK_BYTES));
        at++;
    }
    return SN_OK;
}

static sn_status mark_each(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                           sn_buffer *out) {
    SN_TRY(sn_buffer_append(out, SN_SPACE_MARK, SN_SPACE_MARK_BYTES));
    if (!tokenizer->nfc) return sn_added_mark_spaces(text, bytes, out);
    sn_buffer composed = { .data = NULL };
    sn_status status = sn_nfc_append(tokenizer->nfc, text, bytes, &composed);
    if (status == SN_OK) status = sn_added_mark_spaces(composed.data, composed.size, out);
    sn_buffer_free(&composed);
    return status;
}

sn_status sn_added_normalize(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                             sn_buffer *out) {
    out->size = 0;
    if (tokenizer->prepend == SN_PREPEND_EACH) return mark_each(tokenizer, text, bytes, out);
    if (tokenizer->nfc) return sn_nfc_append(tokenizer->nfc, text, bytes, out);
    return sn_buffer_append(out, text, bytes);
}

/* ---- building ----------------------------------------------------------------------- */

typedef struct list {
    const sn_tokenizer *tokenizer;
    const char *name;
    const uint8_t *flags;
    sn_word *words; /* [n] */
    size_t n;
    sn_buffer texts; /* normalized, one after the other */
} list;

/* The words of one pass; those of the second are normalized. A padding entry is no token. */
static sn_status collect(list *l, bool normalized) {
    sn_buffer one = { .data = NULL };
    sn_status status = SN_OK;
    l->n = l->texts.size = 0;
    for (int32_t id = 0; id < l->tokenizer->n_ids && status == SN_OK; id++) {
        size_t length;
        const uint8_t *text = sn_vocabulary_text(l->tokenizer, id, &length);
        bool belongs = l->flags[id] && !(l->flags[id] & SN_ADDED_NORMALIZED) == !normalized;
        if (!belongs || length == 0 || l->tokenizer->roles[id] == SN_TOKEN_UNUSED) continue;
        if (length > SN_ADDED_BYTES_MAX) {
            status = sn_fail(SN_E_UNSUPPORTED, "%.300s: added token %" PRId32 " has %zu bytes, at "
                             "most %d are supported", l->name, id, length, SN_ADDED_BYTES_MAX);
            break;
        }
        if (normalized) {
            status = sn_added_normalize(l->tokenizer, text, length, &one);
            length = one.size;
            if (status == SN_OK) status = sn_buffer_append(&l->texts, one.data, one.size);
        }
        l->words[l->n++] = (sn_word){ .bytes = text, .length = (uint32_t)length, .id = id };
    }
    sn_buffer_free(&one);
    /* Only now that the buffer has stopped growing do its texts have a place. */
    for (size_t i = 0, at = 0; normalized && status == SN_OK && i < l->n; i++) {
        l->words[i].bytes = l->texts.data + at;
        at += l->words[i].length;
    }
    return status;
}

static sn_status make_pass(list *l, bool normalized, sn_added_pass *pass) {
    SN_TRY(collect(l, normalized));
    if (l->n == 0) return SN_OK;
    for (size_t i = 0; i < l->n; i++) pass->begins[l->words[i].bytes[0]] = 1;
    pass->flags = l->flags;
    return sn_trie_new(l->words, l->n, &pass->trie);
}

static sn_status build(list *l, sn_added *added) {
    l->words = sn_alloc_array((size_t)l->tokenizer->n_ids, sizeof(sn_word));
    if (!l->words) return SN_E_NOMEM;
    sn_status status = make_pass(l, false, &added->passes[0]);
    if (status == SN_OK) status = make_pass(l, true, &added->passes[1]);
    sn_free(l->words);
    sn_buffer_free(&l->texts);
    return status;
}

static bool has_any(const uint8_t *flags, int32_t n) {
    for (int32_t id = 0; id < n; id++)
        if (flags[id]) return true;
    return false;
}

sn_status sn_added_new(const sn_tokenizer *tokenizer, const char *name, const uint8_t *flags,
                       sn_added **added) {
    size_t n = (size_t)tokenizer->n_ids;
    if (!has_any(flags, tokenizer->n_ids)) return SN_OK;
    sn_added *made = sn_alloc(sizeof(sn_added) + n);
    if (!made) return SN_E_NOMEM;
    made->flags = (uint8_t *)(made + 1);
    for (size_t id = 0; id < n; id++) {
        bool control = tokenizer->roles[id] == SN_TOKEN_CONTROL && flags[id];
        made->flags[id] = flags[id] | (control ? SN_ADDED_SPECIAL : 0);
    }
    list l = { .tokenizer = tokenizer, .name = name, .flags = made->flags };
    sn_status status = build(&l, made);
    if (status == SN_OK)
        *added = made;
    else
        sn_added_free(made);
    return status;
}

void sn_added_free(sn_added *added) {
    if (!added) return;
    sn_trie_free(added->passes[0].trie);
    sn_trie_free(added->passes[1].trie);
    sn_free(added);
}

/* ---- cutting ------------------------------------------------------------------------ */

sn_cutter sn_cut(const sn_added *added, bool normalized, bool special, const uint8_t *text,
                 size_t bytes) {
    const sn_added_pass *pass = added ? &added->passes[normalized] : NULL;
    return (sn_cutter){ .pass = pass && pass->trie ? pass : NULL, .special = special,
                        .text = text, .bytes = bytes, .id = -1 };
}

/* The beginning of the character that ends at `end`, if it is one. */
static size_t character_before(const uint8_t *text, size_t end, unsigned *class) {
    size_t start = end - 1, length;
    while (start > 0 && end - start < SN_UTF8_MAX && (text[start] & 0xc0) == 0x80) start--;
    uint32_t code_point = sn_utf8_next(text + start, end - start, &length);
    *class = length == end - start ? sn_unicode_class(code_point) : 0;
    return start;
}

static unsigned class_behind(const sn_cutter *c, size_t at, size_t *length) {
    *length = 0;
    if (at == c->bytes) return 0;
    return sn_unicode_class(sn_utf8_next(c->text + at, c->bytes - at, length));
}

static bool is_single_word(const sn_cutter *c) {
    unsigned before = 0;
    size_t length;
    if (c->start > 0) character_before(c->text, c->start, &before);
    return !((before | class_behind(c, c->end, &length)) & SN_UNICODE_WORD);
}

/* Not back into what has been handed out. */
static void strip_left(sn_cutter *c) {
    while (c->start > c->done) {
        unsigned class;
        size_t start = character_before(c->text, c->start, &class);
        if (!(class & SN_UNICODE_SPACE)) break;
        c->start = start;
    }
    if (c->start < c->done) c->start = c->done;
}

static void strip_right(sn_cutter *c) {
    size_t length;
    if (c->end < c->white || c->end > c->white_end) {
        c->white = c->white_end = c->end;
        while (class_behind(c, c->white_end, &length) & SN_UNICODE_SPACE) c->white_end += length;
    }
    c->end = c->white_end;
}

/* Finds the next token that may be cut out. What is passed over stays text, all of it. */
static bool find(sn_cutter *c) {
    while (c->pass && c->at < c->bytes) {
        int32_t id;
        size_t length = 0;
        if (c->pass->begins[c->text[c->at]])
            length = sn_trie_longest(c->pass->trie, c->text + c->at, c->bytes - c->at, &id);
        c->start = c->at;
        c->end = c->at += length ? length : 1;
        if (length == 0) continue;
        unsigned flags = c->pass->flags[id];
        if (flags & SN_ADDED_SPECIAL && !c->special) continue;
        if (flags & SN_ADDED_SINGLE_WORD && !is_single_word(c)) continue;
        if (flags & SN_ADDED_LSTRIP) strip_left(c);
        if (flags & SN_ADDED_RSTRIP) strip_right(c);
        c->id = id;
        return true;
    }
    return false;
}

/*
 * White space that one token has taken may still be searched for the next, so that a token of
 * spaces behind it is found within it; such a token begins before `done`, and what follows it is
 * text again. The package has it so.
 */
bool sn_cut_next(sn_cutter *c, sn_cut_piece *piece) {
    if (c->id < 0 && !find(c)) {
        *piece = (sn_cut_piece){ .start = c->done, .end = c->bytes, .id = -1 };
        c->done = c->bytes;
        return piece->start < piece->end;
    }
    if (c->done < c->start) {
        *piece = (sn_cut_piece){ .start = c->done, .end = c->start, .id = -1 };
        c->done = c->start;
        return true;
    }
    *piece = (sn_cut_piece){ .start = c->start, .end = c->end, .id = c->id };
    c->done = c->end;
    c->id = -1;
    return true;
}
