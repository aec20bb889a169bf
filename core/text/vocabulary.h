/*
 * vocabulary.h: the inside of a tokenizer: what every kind has (the bytes, the text and the role
 * of each id) and what a kind adds (its encoder).
 */
#ifndef SN_TEXT_VOCABULARY_H
#define SN_TEXT_VOCABULARY_H

#include "bpe.h"
#include "buffer.h"
#include "tokenizer.h"

typedef enum sn_token_role {
    SN_TOKEN_TEXT,
    SN_TOKEN_CONTROL, /* may be generated, has no bytes, is made from text only where asked */
    SN_TOKEN_UNUSED,  /* padding or a gap: never generated either */
    SN_TOKEN_BYTE,    /* stands for one byte; its own text means nothing */
    SN_TOKEN_ADDED    /* cut out of texts; whether the encoder knows it as well, the merges tell */
} sn_token_role;

/* Where a piece of text gets a space in front before it is encoded. */
typedef enum sn_prepend {
    SN_PREPEND_NEVER,
    SN_PREPEND_EACH,   /* every piece between added tokens */
    SN_PREPEND_ALWAYS, /* the same, but for those that begin with one */
    SN_PREPEND_FIRST   /* the same, and only at the beginning of the whole text */
} sn_prepend;

/* One call of encode. */
typedef struct sn_encoding {
    const sn_tokenizer *tokenizer;
    int32_t *ids; /* [n], room for more */
    size_t n, room;
    sn_bpe bpe;           /* for the kinds that merge */
    sn_buffer normalized; /* the piece of text that is encoded now, */
    sn_buffer prepared;   /* and what the kind is given */
    sn_buffer spelled;    /* a piece as it would stand in the file */
} sn_encoding;

sn_status sn_encoding_add(sn_encoding *encoding, int32_t id);

/* Adds what the symbols of encoding->bpe have become. */
sn_status sn_encoding_add_symbols(sn_encoding *encoding);

typedef struct sn_vocabulary_kind {
    const char *name;
    /* Adds the ids of a text without added tokens, 1 to 2^31 - 1 bytes. */
    sn_status (*encode)(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_encoding *encoding);
    void (*free_encoder)(void *encoder); /* NULL included */
} sn_vocabulary_kind;

struct sn_tokenizer {
    const sn_vocabulary_kind *kind;
    void *encoder;   /* of the kind */
    int32_t n_ids;
    int32_t bos, eos, eot, unknown; /* -1: none */
    bool add_bos, add_eos;  /* what belongs at the ends of a text */
    sn_prepend prepend;
    bool marks_spaces;      /* spaces are U+2581 in tokens */
    bool single_bytes;      /* a stream replaces broken bytes one by one */
    struct sn_nfc *nfc;     /* NULL: no normalization */
    struct sn_added *added; /* NULL: none */
    size_t longest;  /* bytes of the longest token */
    uint32_t *at;    /* [n_ids + 1]: token id has the bytes at[id] to at[id + 1] */
    uint8_t *roles;  /* [n_ids] sn_token_role */
    uint8_t *bytes;  /* all tokens one after the other */
    uint32_t *text_at; /* the same for the texts as they stand in the file; NULL: they are the */
    uint8_t *texts;    /* bytes */
    char advice[200]; /* one line, "" if there is none */
};

/*
 * An empty vocabulary of n_ids (1 to 2^31 - 1) with room for `bytes` bytes of tokens and `texts`
 * bytes of texts (0: the texts are the bytes), each at most SN_VOCABULARY_BYTES_MAX. Fill it
 * with sn_vocabulary_add() in the order of ids, each exactly once. `name` is the file, for the
 * error text.
 */
#define SN_VOCABULARY_BYTES_MAX ((uint64_t)1 << 30)
sn_status sn_vocabulary_new(const sn_vocabulary_kind *kind, const char *name, uint64_t n_ids,
                            uint64_t bytes, uint64_t texts, sn_tokenizer **tokenizer);

/* Where the bytes of token `id` go, when all before it are there. */
static inline uint8_t *sn_vocabulary_room(sn_tokenizer *tokenizer, int32_t id) {
    return tokenizer->bytes + tokenizer->at[id];
}

/* Closes token `id`, of which `length` bytes have been written. */
void sn_vocabulary_add(sn_tokenizer *tokenizer, int32_t id, size_t length, sn_token_role role);

static inline const uint8_t *sn_vocabulary_token(const sn_tokenizer *tokenizer, int32_t id,
                                                 size_t *length) {
    *length = tokenizer->at[id + 1] - tokenizer->at[id];
    return tokenizer->bytes + tokenizer->at[id];
}

/* The text of a token as it stands in the file. */
static inline const uint8_t *sn_vocabulary_text(const sn_tokenizer *tokenizer, int32_t id,
                                                size_t *length) {
    if (!tokenizer->text_at) return sn_vocabulary_token(tokenizer, id, length);
    *length = tokenizer->text_at[id + 1] - tokenizer->text_at[id];
    return tokenizer->texts + tokenizer->text_at[id];
}

/* True if an encoder may make the token from text. */
static inline bool sn_vocabulary_is_text(const sn_tokenizer *tokenizer, int32_t id) {
    return id >= 0 && tokenizer->roles[id] == SN_TOKEN_TEXT;
}

/* The same for a single character, or where there are no merges: added tokens, too. */
static inline bool sn_vocabulary_has_text(const sn_tokenizer *tokenizer, int32_t id) {
    return sn_vocabulary_is_text(tokenizer, id) ||
           (id >= 0 && tokenizer->roles[id] == SN_TOKEN_ADDED);
}

/* 0 to 15; -1 if the character is no hexadecimal digit. */
static inline int sn_hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* A space in the tokens of the "llama" kind: U+2581. */
#define SN_SPACE_MARK "\xe2\x96\x81"
#define SN_SPACE_MARK_BYTES ((size_t)3)

/* ---- from GGUF (vocabulary.c) ------------------------------------------------------- */

/* The types of tokenizer.ggml.token_type. */
typedef enum sn_token_type {
    SN_TYPE_NORMAL = 1, SN_TYPE_UNKNOWN, SN_TYPE_CONTROL, SN_TYPE_USER, SN_TYPE_UNUSED,
    SN_TYPE_BYTE
} sn_token_type;

/* The keys of a tokenizer that all kinds have, checked. */
typedef struct sn_vocabulary_keys {
    const sn_gguf *gguf;
    const char *name;            /* the file, for error texts */
    const sn_gguf_value *tokens; /* texts, at least one */
    const sn_gguf_value *types;  /* integers, as many; NULL: all are normal */
} sn_vocabulary_keys;

sn_status sn_vocabulary_read_keys(const sn_gguf *gguf, sn_vocabulary_keys *keys);

/* The bytes that the text of a token stands for, at most as many as it has itself; *role is what
 * the type says and may be changed. */
typedef sn_status (*sn_token_decoder)(const sn_vocabulary_keys *keys, int32_t id, sn_span text,
                                      uint8_t *out, size_t *length, sn_token_role *role);

/*
 * The vocabulary of the keys: bytes and texts, roles, special ids, added tokens, normalization.
 * Its encoder is left to the kind, and with it what the kind takes for granted: prepend,
 * marks_spaces, add_bos, unknown as given here hold where the file does not say.
 */
typedef struct sn_vocabulary_defaults {
    sn_token_decoder decode;
    sn_prepend prepend;
    bool marks_spaces, add_bos;
    bool cuts_user_tokens; /* tokens the user defined are cut out of texts first */
    int32_t bos, eos, unknown; /* -1: none; ids that the file does not have: none */
} sn_vocabulary_defaults;

sn_status sn_vocabulary_from_keys(const sn_vocabulary_kind *kind, const sn_vocabulary_keys *keys,
                                  const sn_vocabulary_defaults *defaults,
                                  sn_tokenizer **tokenizer);

/* Copies a text with spaces for U+2581; returns its length. */
size_t sn_vocabulary_unmark_spaces(const uint8_t *text, size_t bytes, uint8_t *out);

/* An array of integers (texts) under `key` with `count` elements (any number if UINT64_MAX).
 * *array becomes NULL if it is absent and not required. */
sn_status sn_vocabulary_get_array(const sn_vocabulary_keys *keys, const char *key, bool texts,
                                  uint64_t count, bool required, const sn_gguf_value **array);

/* ---- the kinds: each builds from GGUF what sn_tokenizer_from_gguf() promises -------- */

sn_status sn_rwkv_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer);
sn_status sn_gpt2_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer);
sn_status sn_llama_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer);
sn_status sn_character_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer);

/* rwkv_file.c: reads a whole vocabulary file; the caller closes it. */
sn_status sn_rwkv_read(sn_input *input, sn_tokenizer **tokenizer);

/* rwkv.c, for rwkv_file.c: the kind, and the encoder of a vocabulary that is filled. */
extern const sn_vocabulary_kind sn_rwkv_kind;
sn_status sn_rwkv_prepare(sn_tokenizer *tokenizer);

#endif
