/*
 * character.c: SunnyNet's own tokenizer: BPE over characters within pieces of one kind. What the
 * vocabulary does not have becomes <unk>, which has no text: such a text does not come back whole.
 */
#include "merges.h"
#include "unicode.h"
#include "utf8.h"

#include <inttypes.h>

#define UNKNOWN_ID 1
#define PIECE_MAX 48 /* characters */

typedef struct character_bpe {
    sn_words words;
    sn_pairs merges;
} character_bpe;

/* ---- pieces ------------------------------------------------------------------------- */

enum { LETTER = 1, DIGIT = 2, IDEOGRAPH = 4, SPACE = 8, ASCII_DIGIT = 16 };

static bool in(uint32_t c, uint32_t first, uint32_t last) {
    return c >= first && c <= last;
}

/* White space as Python has it: the four separators of ASCII are. */
static unsigned kind_of(uint32_t c) {
    unsigned class = sn_unicode_class(c), kind = 0;
    if (in(c, 'a', 'z') || in(c, 'A', 'Z')) kind |= LETTER;
    if (class & SN_UNICODE_DECIMAL) kind |= DIGIT;
    if (in(c, '0', '9')) kind |= ASCII_DIGIT;
    if (in(c, 0x3400, 0x4dbf) || in(c, 0x4e00, 0x9fff) || in(c, 0xf900, 0xfaff)) kind |= IDEOGRAPH;
    if (class & SN_UNICODE_SPACE || in(c, 0x1c, 0x1f)) kind |= SPACE;
    return kind;
}

static uint32_t kind_at(const uint8_t *text, size_t bytes, size_t at, size_t *length) {
    return kind_of(sn_utf8_next(text + at, bytes - at, length));
}

/* The end of the piece that begins at `at`: a run of the first kind that fits, of letters, digits,
 * ideographs, or else of anything that is none of these (only digits of ASCII end it) and no white
 * space, or else of white space. */
static size_t piece_end(const uint8_t *text, size_t bytes, size_t at) {
    const unsigned others = LETTER | ASCII_DIGIT | IDEOGRAPH | SPACE;
    size_t length, n = 0;
    unsigned first = kind_at(text, bytes, at, &length);
    unsigned wanted = first & LETTER ? LETTER : first & DIGIT ? DIGIT
                    : first & IDEOGRAPH ? IDEOGRAPH : first & SPACE ? SPACE : 0;
    while (at < bytes && n < PIECE_MAX) {
        unsigned kind = kind_at(text, bytes, at, &length);
        if (wanted ? !(kind & wanted) : (kind & others) != 0) break;
        at += length;
        n++;
    }
    return at;
}

/* ---- encoding ----------------------------------------------------------------------- */

static sn_status encode_piece(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                              sn_encoding *e) {
    const character_bpe *c = tokenizer->encoder;
    sn_bpe_begin(&e->bpe, text);
    for (size_t at = 0, length; at < bytes; at += length) {
        sn_utf8_next(text + at, bytes - at, &length);
        int32_t id = sn_words_find(&c->words, text + at, length);
        if (!sn_vocabulary_has_text(tokenizer, id)) id = tokenizer->unknown;
        if (id < 0)
            return sn_fail(SN_E_INVAL, "encode: the vocabulary has no token for the character "
                           "'%.*s', and none for what is unknown", (int)length,
                           (const char *)text + at);
        SN_TRY(sn_bpe_add(&e->bpe, id, at, length));
    }
    SN_TRY(sn_bpe_merge(&e->bpe, sn_merges_find, &c->merges));
    return sn_encoding_add_symbols(e);
}

static sn_status encode(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_encoding *e) {
    for (size_t at = 0; at < bytes;) {
        size_t end = piece_end(text, bytes, at);
        SN_TRY(encode_piece(tokenizer, text + at, end - at, e));
        at = end;
    }
    return SN_OK;
}

static void free_encoder(void *encoder) {
    character_bpe *c = encoder;
    if (!c) return;
    sn_words_free(&c->words);
    sn_pairs_free(&c->merges);
    sn_free(c);
}

static const sn_vocabulary_kind kind = {
    .name = "sunnynet", .encode = encode, .free_encoder = free_encoder
};

/* ---- GGUF --------------------------------------------------------------------------- */

static sn_status decode(const sn_vocabulary_keys *keys, int32_t id, sn_span text, uint8_t *out,
                        size_t *length, sn_token_role *role) {
    (void)keys;
    (void)id;
    *role = SN_TOKEN_TEXT;
    if (text.size) memcpy(out, text.data, text.size);
    *length = text.size;
    return SN_OK;
}

static sn_status prepare(const sn_vocabulary_keys *keys, sn_tokenizer *t) {
    character_bpe *c = t->encoder = sn_alloc(sizeof(character_bpe));
    if (!c) return SN_E_NOMEM;
    /* Two ways to merge may lead to one text: then it is there twice. */
    SN_TRY(sn_words_new(t, keys->name, false, &c->words));
    return sn_merges_read_ids(keys, t, &c->merges);
}

sn_status sn_character_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer) {
    sn_vocabulary_keys keys;
    const sn_vocabulary_defaults usual = { .decode = decode, .cuts_user_tokens = true, .bos = -1,
                                           .eos = -1, .unknown = UNKNOWN_ID };
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
