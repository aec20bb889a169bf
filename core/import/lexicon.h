/*
 * lexicon.h: a vocabulary on its way from a foreign tokenizer file to the keys of a GGUF: the
 * text and type of each id, the ids with a role, and a search for texts.
 */
#ifndef SN_IMPORT_LEXICON_H
#define SN_IMPORT_LEXICON_H

#include "../text/vocabulary.h"
#include "import.h"

#define SN_TYPE_NONE 0 /* beside sn_token_type: nobody has claimed the id, it is padding */

#define SN_LEXICON_IDS_MAX ((uint64_t)1 << 24)

typedef struct sn_lexicon {
    const char *name;  /* of the tokenizer's file, for error texts */
    uint32_t n;        /* ids, padding included */
    sn_span *tokens;   /* [n] borrowed texts */
    int32_t *types;    /* [n] sn_token_type or SN_TYPE_NONE */
    uint64_t *hashes;  /* [n] of the texts; NULL: there is no index */
    uint32_t *by_hash; /* [n] ids in the order of (hash, text) */
    int64_t bos, eos, eot, unknown, pad; /* ids; -1: none */
    int add_bos, add_eos;                /* 1, 0; -1: the files do not say */
} sn_lexicon;

/*
 * Room for the ids 0..highest, or for n_vocab of them (a model's embedding rows; 0: none given).
 * `entries` is how many tokens the file lists: far fewer than ids would be a file that asks for
 * much more memory than it has bytes. Refuses a highest id beyond n_vocab.
 */
sn_status sn_lexicon_new(const char *name, uint64_t highest, uint64_t entries, uint64_t n_vocab,
                         sn_lexicon *lexicon);
void sn_lexicon_free(sn_lexicon *lexicon); /* also of a zeroed struct */

/* The id must be in range (sn_lexicon_new() has seen the highest) and still be free. */
sn_status sn_lexicon_put(sn_lexicon *lexicon, uint64_t id, sn_span text, int32_t type);

/* Makes the texts searchable; refuses two ids of one text. Called once, if at all. */
sn_status sn_lexicon_index(sn_lexicon *lexicon);
int64_t sn_lexicon_find(const sn_lexicon *lexicon, sn_span text); /* -1: absent, or no index */

/*
 * The keys that every kind has: model, tokens, token_type and the ids with a role. Ids that nobody
 * claimed become padding.
 */
sn_status sn_lexicon_declare(const sn_lexicon *lexicon, const char *model, sn_build *build);

/* A merge of two tokens into a third. */
typedef struct sn_lexicon_merge {
    uint32_t left, right, result;
    bool repeated; /* a later merge has the same pair */
} sn_lexicon_merge;

/* Finds the repeated ones. Where the files come from, merges are put into a dictionary one after
 * the other: of several with one pair, the last one counts. */
sn_status sn_lexicon_find_repeated(sn_lexicon_merge *merges, uint32_t n);

/* "<0x0A>": the token of a byte in SentencePiece's kind. */
bool sn_is_byte_token(sn_span text);

/* ---- the kinds of files. Each fills the lexicon and declares what only its kind has ---- */

/* What a reader is given, and what it must keep alive until the lexicon is declared. */
typedef struct sn_tokenizer_file {
    const char *path;
    const char *bytes; /* the whole file */
    size_t size;
    char *owned;       /* the same, if it is to be freed */
    uint64_t n_vocab;
    sn_build *build;
    sn_lexicon lexicon;
    const char *model; /* set by the reader: tokenizer.ggml.model */
    sn_json_document *document;
    void *texts;         /* made by the reader, freed with sn_free() */
    sn_tokenizer *world; /* an RWKV vocabulary */
} sn_tokenizer_file;

sn_status sn_tokenizer_read_json(sn_tokenizer_file *file);      /* Hugging Face's schema */
sn_status sn_tokenizer_read_sunnynet(sn_tokenizer_file *file);  /* the origin's schema */
sn_status sn_tokenizer_read_protobuf(sn_tokenizer_file *file);  /* sentencepiece */
sn_status sn_tokenizer_read_rwkv(sn_tokenizer_file *file);      /* lines: id, literal, length */

bool sn_tokenizer_smells_protobuf(const sn_tokenizer_file *file);

/* sn_import_tokenizer_file() for bytes in memory; `name` is for error texts. */
sn_status sn_import_tokenizer_bytes(const char *name, const void *bytes, size_t size,
                                    uint64_t n_vocab, sn_build *build);

/* ---- for the readers of JSON ---- */

static inline sn_span sn_json_span(const sn_json *text) {
    return (sn_span){ .data = text->text, .size = text->size };
}

static inline bool sn_json_is_text(const sn_json *value) {
    return value && value->kind == SN_JSON_STRING;
}

static inline bool sn_json_is_null(const sn_json *value) { /* absent counts as null */
    return !value || value->kind == SN_JSON_NULL;
}

/* The highest id of a {text: id} object; refuses values that are no ids. */
sn_status sn_json_highest_id(const char *name, const sn_json *vocab, uint64_t *highest);

/* An id in [0, 2^24); false if the value is something else. */
bool sn_json_id(const sn_json *value, uint64_t *id);

#endif
