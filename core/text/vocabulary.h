/*
 * vocabulary.h: the inside of a tokenizer: what every kind has (the bytes and the role of each
 * id) and what a kind adds (its encoder).
 */
#ifndef SN_TEXT_VOCABULARY_H
#define SN_TEXT_VOCABULARY_H

#include "tokenizer.h"

typedef enum sn_token_role {
    SN_TOKEN_TEXT,
    SN_TOKEN_CONTROL, /* may be generated, has no bytes, is never made from text */
    SN_TOKEN_UNUSED   /* padding or a gap: never generated either */
} sn_token_role;

/* Where an encoder puts its ids: n counts all of them, the first `capacity` are stored. */
typedef struct sn_id_list {
    int32_t *ids;
    int32_t capacity;
    int32_t n;
} sn_id_list;

static inline void sn_id_list_add(sn_id_list *list, int32_t id) {
    if (list->n < list->capacity) list->ids[list->n] = id;
    list->n++;
}

typedef struct sn_vocabulary_kind {
    const char *name;
    /* At most 2^31 - 1 bytes; appends at most one id per byte. */
    sn_status (*encode)(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                        sn_id_list *out);
    void (*free_encoder)(void *encoder); /* NULL included */
} sn_vocabulary_kind;

struct sn_tokenizer {
    const sn_vocabulary_kind *kind;
    void *encoder;   /* of the kind */
    int32_t n_ids;
    int32_t bos, eos, eot; /* -1: none */
    bool complete;   /* there is no text that cannot be encoded */
    size_t longest;  /* bytes of the longest token */
    uint32_t *at;    /* [n_ids + 1]: token id has the bytes at[id] to at[id + 1] */
    uint8_t *roles;  /* [n_ids] sn_token_role */
    uint8_t *bytes;  /* all tokens one after the other */
};

/*
 * An empty vocabulary of n_ids (1 to 2^31 - 1) with room for `bytes` (at most
 * SN_VOCABULARY_BYTES_MAX) bytes of tokens. Fill it with sn_vocabulary_add() in the order of
 * ids, each exactly once. `name` is the file, for the error text.
 */
#define SN_VOCABULARY_BYTES_MAX ((uint64_t)1 << 30)
sn_status sn_vocabulary_new(const sn_vocabulary_kind *kind, const char *name, uint64_t n_ids,
                            uint64_t bytes, sn_tokenizer **tokenizer);

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

/* 0 to 15; -1 if the character is no hexadecimal digit. */
static inline int sn_hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The kinds: each builds from GGUF what sn_tokenizer_from_gguf() promises. */
sn_status sn_rwkv_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer);

/* rwkv_file.c: reads a whole vocabulary file; the caller closes it. */
sn_status sn_rwkv_read(sn_input *input, sn_tokenizer **tokenizer);

/* rwkv.c, for rwkv_file.c: the kind, and the encoder of a vocabulary that is filled. */
extern const sn_vocabulary_kind sn_rwkv_kind;
sn_status sn_rwkv_prepare(sn_tokenizer *tokenizer);

#endif
