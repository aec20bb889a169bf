/*
 * gpt2.c: byte-level BPE, from GPT-2 over GPT-NeoX (Mamba) to Llama 3 and Qwen. Pieces of text
 * (split.h) are merged within, starting from their bytes. In the file each byte is written as a
 * character that can be seen: those of Latin-1 that can be stand for themselves, the other 68
 * follow from U+0100 on.
 */
#include "merges.h"
#include "split.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct gpt2 {
    sn_split_rule rule;
    bool ignore_merges;   /* a piece that is a token as a whole becomes it at once */
    int32_t of_byte[256]; /* -1: none */
    size_t longest;       /* text of a token, bytes */
    sn_words words;
    sn_pairs merges;
} gpt2;

/* ---- bytes that can be seen --------------------------------------------------------- */

static bool is_visible(uint32_t byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 255 && byte != 173);
}

static uint32_t spell(uint8_t byte) {
    if (is_visible(byte)) return byte;
    return byte <= 32 ? 256u + byte : byte <= 160 ? 256u + 33 + (byte - 127u) : 256 + 67;
}

/* -1: no byte is written so. */
static int unspell(uint32_t code_point) {
    if (code_point < 256) return is_visible(code_point) ? (int)code_point : -1;
    uint32_t place = code_point - 256;
    if (place <= 32) return (int)place;
    if (place <= 66) return (int)(place - 33 + 127);
    return place == 67 ? 173 : -1;
}

/* A text that is not written so stands for itself. */
static sn_status decode(const sn_vocabulary_keys *keys, int32_t id, sn_span text, uint8_t *out,
                        size_t *length, sn_token_role *role) {
    const uint8_t *from = (const uint8_t *)text.data;
    size_t n = 0, size;
    (void)keys;
    (void)id;
    *role = SN_TOKEN_TEXT;
    for (size_t at = 0; at < text.size; at += size) {
        int byte = unspell(sn_utf8_next(from + at, text.size - at, &size));
        if (byte < 0) {
            memcpy(out, from, text.size);
            n = text.size;
            break;
        }
        out[n++] = (uint8_t)byte;
    }
    *length = n;
    return SN_OK;
}

/* ---- encoding ----------------------------------------------------------------------- */

/* The token that is the whole piece, -1 if there is none. */
static sn_status find_whole(const gpt2 *g, const uint8_t *piece, size_t bytes,
                            sn_buffer *spelled, int32_t *id) {
    *id = -1;
    if (bytes > g->longest) return SN_OK;
    spelled->size = 0;
    SN_TRY(sn_buffer_reserve(spelled, 2 * bytes));
    for (size_t i = 0; i < bytes; i++)
        spelled->size += sn_utf8_put(spell(piece[i]), spelled->data + spelled->size);
    int32_t found = sn_words_find(&g->words, spelled->data, spelled->size);
    if (sn_vocabulary_is_text(g->words.vocabulary, found)) *id = found;
    return SN_OK;
}

static sn_status encode_piece(const gpt2 *g, const uint8_t *piece, size_t bytes,
                              sn_encoding *e) {
    int32_t whole = -1;
    if (g->ignore_merges) SN_TRY(find_whole(g, piece, bytes, &e->spelled, &whole));
    if (whole >= 0) return sn_encoding_add(e, whole);
    sn_bpe_begin(&e->bpe, piece);
    for (size_t i = 0; i < bytes; i++) {
        int32_t id = g->of_byte[piece[i]];
        if (id < 0)
            return sn_fail(SN_E_INVAL, "encode: the vocabulary has no token for byte 0x%02x",
                           piece[i]);
        SN_TRY(sn_bpe_add(&e->bpe, id, i, 1));
    }
    SN_TRY(sn_bpe_merge(&e->bpe, sn_merges_find, &g->merges));
    return sn_encoding_add_symbols(e);
}

static sn_status encode(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_encoding *e) {
    const gpt2 *g = tokenizer->encoder;
    sn_splitter splitter = sn_split(g->rule, text, bytes);
    for (size_t start, end; sn_split_next(&splitter, &start, &end);)
        SN_TRY(encode_piece(g, text + start, end - start, e));
    return SN_OK;
}

static void free_encoder(void *encoder) {
    gpt2 *g = encoder;
    if (!g) return;
    sn_words_free(&g->words);
    sn_pairs_free(&g->merges);
    sn_free(g);
}

static const sn_vocabulary_kind kind = {
    .name = "gpt2", .encode = encode, .free_encoder = free_encoder
};

/* ---- GGUF --------------------------------------------------------------------------- */

/*
 * Files without a name for the way to split texts: llama.cpp then has an old way of its own,
 * which is right for hardly any model. Mamba's files, made when there was no such key, have the
 * vocabulary of GPT-NeoX, which splits as GPT-2 does.
 */
static const sn_split_name *unnamed(const sn_gguf *gguf, const char *named, char *advice,
                                    size_t room) {
    sn_span architecture = { .size = 0 };
    if (sn_gguf_find(gguf, "general.architecture") &&
        sn_gguf_get_text(gguf, "general.architecture", true, &architecture) != SN_OK)
        architecture.size = 0;
    bool mamba = architecture.size >= 5 && memcmp(architecture.data, "mamba", 5) == 0;
    snprintf(advice, room, "tokenizer.ggml.pre is %s: texts are split as %s", named,
             mamba ? "GPT-2 does, as Mamba's vocabulary wants it"
                   : "llama.cpp's old default does, which may not be what the model learned");
    return mamba ? sn_split_find("gpt-2", 5) : sn_split_find("default", 7);
}

static sn_status find_split(const sn_gguf *gguf, char *advice, size_t room,
                            const sn_split_name **split) {
    const char *key = "tokenizer.ggml.pre";
    sn_span name = { .size = 0 };
    if (sn_gguf_find(gguf, key)) SN_TRY(sn_gguf_get_text(gguf, key, true, &name));
    bool is_default = name.size == 7 && memcmp(name.data, "default", 7) == 0;
    *split = name.size == 0 ? unnamed(gguf, "missing", advice, room)
           : is_default ? unnamed(gguf, "'default'", advice, room)
                        : sn_split_find(name.data, name.size);
    if (*split) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s = '%.*s' is not supported", sn_gguf_name(gguf),
                   key, name.size < 60 ? (int)name.size : 60, name.data);
}

static void find_bytes(const sn_tokenizer *t, gpt2 *g) {
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[SN_UTF8_MAX];
        int32_t id = sn_words_find(&g->words, text, sn_utf8_put(spell((uint8_t)byte), text));
        g->of_byte[byte] = sn_vocabulary_has_text(t, id) ? id : -1;
    }
}

static size_t longest_text(const sn_tokenizer *t) {
    size_t longest = 0, length;
    for (int32_t id = 0; id < t->n_ids; id++) {
        sn_vocabulary_text(t, id, &length);
        if (length > longest) longest = length;
    }
    return longest;
}

static sn_status prepare(const sn_vocabulary_keys *keys, const sn_split_name *split,
                         sn_tokenizer *t) {
    gpt2 *g = t->encoder = sn_alloc(sizeof(gpt2));
    if (!g) return SN_E_NOMEM;
    g->rule = split->rule;
    g->ignore_merges = split->ignore_merges;
    g->longest = longest_text(t);
    SN_TRY(sn_gguf_get_bool(keys->gguf, "sunnynet.tokenizer.ignore_merges", false,
                            &g->ignore_merges));
    SN_TRY(sn_words_new(t, keys->name, true, &g->words));
    find_bytes(t, g);
    return sn_merges_read(keys, &g->words, t, NULL, &g->merges);
}

sn_status sn_gpt2_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    sn_vocabulary_keys keys;
    const sn_split_name *split;
    sn_vocabulary_defaults usual = { .decode = decode, .cuts_user_tokens = true, .bos = -1,
                                     .eos = -1, .unknown = -1 };
    char advice[sizeof(((sn_tokenizer *)0)->advice)] = "";
    sn_tokenizer *made = NULL;
    SN_TRY(find_split(gguf, advice, sizeof advice, &split));
    SN_TRY(sn_vocabulary_read_keys(gguf, &keys));
    usual.add_bos = split->add_bos;
    SN_TRY(sn_vocabulary_from_keys(&kind, &keys, &usual, &made));
    memcpy(made->advice, advice, sizeof advice);
    sn_status status = prepare(&keys, split, made);
    if (status == SN_OK)
        *tokenizer = made;
    else
        sn_tokenizer_destroy(made);
    return status;
}
