/*
 * llama.c: BPE over characters as SentencePiece has it and Llama, Mistral and their kin use it:
 * spaces are U+2581, texts are not split, and what the vocabulary does not have becomes bytes.
 * Two ways to merge: by the ranks of tokenizer.ggml.merges, as the package `tokenizers` does; or,
 * without that key, by the scores of the tokens, as SentencePiece does.
 */
#include "merges.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* No piece is longer; it bounds the time that merging by score takes. */
#define SCORED_BYTES_MAX 1024

typedef struct llama {
    bool by_score, ignore_merges;
    int32_t of_ascii[128]; /* -1: none */
    int32_t of_byte[256];  /* tokens such as <0x0A>; -1: none */
    int32_t unknown;       /* -1: none */
    size_t longest;        /* text of a token, bytes */
    sn_words words;
    sn_pairs merges;
    uint32_t *rank;        /* [n_ids] by score: 0 would be the highest one */
} llama;

/* ---- merging ------------------------------------------------------------------------ */

/* Of two neighbours that make a token together, those that make the one of the highest score. */
static bool find_scored(const void *context, const sn_bpe *bpe, const sn_symbol *left,
                        const sn_symbol *right, uint32_t *rank, int32_t *id) {
    const llama *l = context;
    size_t length = (size_t)left->length + right->length;
    if (length > l->longest) return false;
    int32_t found = sn_words_find(&l->words, bpe->text + left->at, length);
    if (!sn_vocabulary_has_text(l->words.vocabulary, found)) return false;
    *rank = l->rank[found];
    *id = found;
    return true;
}

static int32_t find_character(const llama *l, uint32_t code_point, const uint8_t *text,
                              size_t length) {
    if (code_point < 128) return l->of_ascii[code_point];
    int32_t id = sn_words_find(&l->words, text, length);
    return sn_vocabulary_has_text(l->words.vocabulary, id) ? id : -1;
}

static bool has_bytes(const llama *l, const uint8_t *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (l->of_byte[text[i]] < 0) return false;
    return true;
}

static sn_status no_token(const uint8_t *text, size_t length) {
    return sn_fail(SN_E_INVAL, "encode: the vocabulary has no token for the character '%.*s', and "
                   "none for what is unknown", (int)length, (const char *)text);
}

/*
 * The symbols to begin with, when merging by ranks: what is unknown has become bytes by then, or
 * the one token for a run of unknown characters. As in the package, bytes do not end such a run.
 */
static sn_status add_characters(const llama *l, const uint8_t *text, size_t bytes, sn_bpe *bpe) {
    bool unknown = false;
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code_point = sn_utf8_next(text + at, bytes - at, &length);
        int32_t id = find_character(l, code_point, text + at, length);
        if (id >= 0) {
            if (unknown) SN_TRY(sn_bpe_add(bpe, l->unknown, at, 1));
            unknown = false;
            SN_TRY(sn_bpe_add(bpe, id, at, length));
        } else if (has_bytes(l, text + at, length)) {
            for (size_t i = at; i < at + length; i++)
                SN_TRY(sn_bpe_add(bpe, l->of_byte[text[i]], i, 1));
        } else if (l->unknown < 0) {
            return no_token(text + at, length);
        } else {
            unknown = true;
        }
    }
    return unknown ? sn_bpe_add(bpe, l->unknown, bytes - 1, 1) : SN_OK;
}

static sn_status encode_ranked(const llama *l, const uint8_t *text, size_t bytes,
                               sn_encoding *e) {
    sn_bpe_begin(&e->bpe, text);
    SN_TRY(add_characters(l, text, bytes, &e->bpe));
    SN_TRY(sn_bpe_merge(&e->bpe, sn_merges_find, &l->merges));
    return sn_encoding_add_symbols(e);
}

/* Bytes, or one token for neighbours that are all unknown. */
static sn_status add_unknown(const llama *l, const uint8_t *text, size_t length, bool *unknown,
                             sn_encoding *e) {
    if (!has_bytes(l, text, length)) {
        bool goes_on = *unknown;
        *unknown = true;
        if (l->unknown < 0) return no_token(text, length);
        return goes_on ? SN_OK : sn_encoding_add(e, l->unknown);
    }
    *unknown = false;
    for (size_t i = 0; i < length; i++) SN_TRY(sn_encoding_add(e, l->of_byte[text[i]]));
    return SN_OK;
}

/* By scores, characters that the vocabulary does not have may still merge to one that it has. */
static sn_status encode_scored(const llama *l, const uint8_t *text, size_t bytes,
                               sn_encoding *e) {
    bool unknown = false;
    sn_bpe_begin(&e->bpe, text);
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code_point = sn_utf8_next(text + at, bytes - at, &length);
        int32_t id = find_character(l, code_point, text + at, length);
        SN_TRY(sn_bpe_add(&e->bpe, id, at, length));
    }
    SN_TRY(sn_bpe_merge(&e->bpe, find_scored, l));
    for (uint32_t i = 0; i != SN_BPE_NONE; i = e->bpe.symbols[i].next) {
        sn_symbol symbol = e->bpe.symbols[i];
        if (symbol.id < 0) {
            SN_TRY(add_unknown(l, text + symbol.at, symbol.length, &unknown, e));
            continue;
        }
        unknown = false;
        SN_TRY(sn_encoding_add(e, symbol.id));
    }
    return SN_OK;
}

static sn_status encode(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_encoding *e) {
    const llama *l = tokenizer->encoder;
    if (l->ignore_merges && bytes <= l->longest) {
        int32_t id = sn_words_find(&l->words, text, bytes);
        if (sn_vocabulary_is_text(tokenizer, id)) return sn_encoding_add(e, id);
    }
    return l->by_score ? encode_scored(l, text, bytes, e) : encode_ranked(l, text, bytes, e);
}

static void free_encoder(void *encoder) {
    llama *l = encoder;
    if (!l) return;
    sn_words_free(&l->words);
    sn_pairs_free(&l->merges);
    sn_free(l->rank);
    sn_free(l);
}

static const sn_vocabulary_kind kind = {
    .name = "llama", .encode = encode, .free_encoder = free_encoder
};

/* ---- GGUF --------------------------------------------------------------------------- */

/* The byte that a text such as <0x0A> names, -1 if it does not look so. */
static int byte_named(sn_span text) {
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
    int high = sn_hex_digit((uint8_t)text.data[3]), low = sn_hex_digit((uint8_t)text.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static sn_status decode(const sn_vocabulary_keys *keys, int32_t id, sn_span text, uint8_t *out,
                        size_t *length, sn_token_role *role) {
    int byte = byte_named(text);
    if (!keys->types && byte >= 0) *role = SN_TOKEN_BYTE;
    *length = 1;
    if (*role == SN_TOKEN_BYTE && byte < 0)
        return sn_fail(SN_E_FORMAT, "%.300s: token %" PRId32 " is to be a byte, but its text is "
                       "not like <0x0A>", keys->name, id);
    if (*role == SN_TOKEN_BYTE)
        out[0] = (uint8_t)byte;
    else
        *length = sn_vocabulary_unmark_spaces((const uint8_t *)text.data, text.size, out);
    return SN_OK;
}

/* Floats in the order of their bits, the highest first. */
static uint32_t rank_of(float score) {
    uint32_t bits;
    score += 0.0f; /* there is but one zero */
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? bits : ~(bits | 0x80000000u);
}

static sn_status read_scores(const sn_vocabulary_keys *keys, llama *l) {
    const char *key = "tokenizer.ggml.scores";
    const sn_gguf_value *scores = sn_gguf_find(keys->gguf, key);
    if (!scores)
        return sn_fail(SN_E_FORMAT, "%.300s: there are neither tokenizer.ggml.merges nor %s",
                       keys->name, key);
    bool floats = scores->kind == SN_GGUF_ARRAY && scores->element == SN_GGUF_F32;
    if (!floats && (scores->kind != SN_GGUF_ARRAY || scores->element != SN_GGUF_I32))
        return sn_fail(SN_E_FORMAT, "%.300s: %s is no array of numbers", keys->name, key);
    if (scores->count != keys->tokens->count)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " tokens, but %" PRIu64 " scores",
                       keys->name, keys->tokens->count, scores->count);
    l->rank = sn_alloc_array((size_t)scores->count, sizeof(uint32_t));
    if (!l->rank) return SN_E_NOMEM;
    for (uint64_t id = 0; id < scores->count; id++) {
        float score = floats ? (float)sn_gguf_float_at(scores, id)
                             : (float)sn_gguf_int_at(scores, id);
        if (score != score)
            return sn_fail(SN_E_FORMAT, "%.300s: the score of token %" PRIu64 " is no number",
                           keys->name, id);
        l->rank[id] = rank_of(score);
    }
    return SN_OK;
}

static sn_status check_lengths(const sn_vocabulary_keys *keys, const sn_tokenizer *t) {
    size_t length;
    for (int32_t id = 0; id < t->n_ids; id++) {
        sn_vocabulary_text(t, id, &length);
        if (length > SCORED_BYTES_MAX && sn_vocabulary_has_text(t, id))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: token %" PRId32 " has %zu bytes, at most %d "
                           "are supported", keys->name, id, length, SCORED_BYTES_MAX);
    }
    return SN_OK;
}

static void find_single(const sn_tokenizer *t, llama *l) {
    for (unsigned i = 0; i < 128; i++) {
        uint8_t character = (uint8_t)i;
        int32_t id = sn_words_find(&l->words, &character, 1);
        l->of_ascii[i] = sn_vocabulary_has_text(t, id) ? id : -1;
    }
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", i);
        int32_t id = sn_words_find(&l->words, (const uint8_t *)text, 6);
        l->of_byte[i] = id >= 0 && t->roles[id] == SN_TOKEN_BYTE ? id : -1;
    }
    for (int32_t id = 0; id < t->n_ids; id++) {
        size_t length;
        sn_vocabulary_text(t, id, &length);
        if (length > l->longest) l->longest = length;
    }
}

static sn_status prepare(const sn_vocabulary_keys *keys, sn_tokenizer *t) {
    llama *l = t->encoder = sn_alloc(sizeof(llama));
    bool ranked = false;
    if (!l) return SN_E_NOMEM;
    t->single_bytes = true;
    l->unknown = t->unknown;
    SN_TRY(sn_gguf_get_bool(keys->gguf, "sunnynet.tokenizer.ignore_merges", false,
                            &l->ignore_merges));
    SN_TRY(sn_words_new(t, keys->name, true, &l->words));
    find_single(t, l);
    SN_TRY(sn_merges_read(keys, &l->words, t, &ranked, &l->merges));
    l->by_score = !ranked;
    if (ranked) return SN_OK;
    SN_TRY(check_lengths(keys, t));
    return read_scores(keys, l);
}

sn_status sn_llama_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    sn_vocabulary_keys keys;
    /* What other programs take for granted where such a file does not say. */
    const sn_vocabulary_defaults usual = { .decode = decode, .prepend = SN_PREPEND_EACH,
                                           .marks_spaces = true, .add_bos = true,
                                           .cuts_user_tokens = true, .bos = 1, .eos = 2,
                                           .unknown = 0 };
    sn_tokenizer *made = NULL;
    SN_TRY(sn_vocabulary_read_keys(gguf, &keys));
    SN_TRY(sn_vocabulary_from_keys(&kind, &keys, &usual, &made));
    sn_status status = prepare(&keys, made);
    if (status == SN_OK)
        *tokenizer = made;
    else
        sn_tokenizer_destroy(made);
    return status;
}
