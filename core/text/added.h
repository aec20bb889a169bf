/*
 * added.h: tokens that are cut out of a text before the rest of it is encoded, as the package
 * `tokenizers` does it: first those that are looked for in the text as it is, then, in the
 * normalized pieces between them, those that are normalized too; each time the leftmost one, the
 * longest of those that begin there.
 */
#ifndef SN_TEXT_ADDED_H
#define SN_TEXT_ADDED_H

#include "vocabulary.h"

/* sunnynet.tokenizer.added_flags. */
#define SN_ADDED_SPECIAL 1     /* a control token: only where special tokens are asked for */
#define SN_ADDED_NORMALIZED 2  /* looked for after normalization */
#define SN_ADDED_LSTRIP 4      /* takes the white space in front with it */
#define SN_ADDED_RSTRIP 8      /* and that behind */
#define SN_ADDED_SINGLE_WORD 16 /* not beside a letter, digit or the like */
#define SN_ADDED_TOKEN 32      /* not in files: the id is an added token */

/* No real one is longer; it bounds the time that a search may take. */
#define SN_ADDED_BYTES_MAX 1024

typedef struct sn_added sn_added;

/* flags[id]: see above. *added becomes NULL if there is none. */
sn_status sn_added_new(const sn_tokenizer *tokenizer, const char *name, const uint8_t *flags,
                       sn_added **added);
void sn_added_free(sn_added *added);

/* The first step of normalization: form C, and spaces where the tokenizer wants them changed
 * before added tokens are looked for. Replaces what is in `out`. */
sn_status sn_added_normalize(const sn_tokenizer *tokenizer, const uint8_t *text, size_t bytes,
                             sn_buffer *out);

/* Appends the text with U+2581 for each space. */
sn_status sn_added_mark_spaces(const uint8_t *text, size_t bytes, sn_buffer *out);

/* A walk through a text. */
typedef struct sn_cutter {
    const struct sn_added_pass *pass; /* NULL: nothing is cut */
    bool special;
    const uint8_t *text;
    size_t bytes;
    size_t at;   /* the search goes on here */
    size_t done; /* what has been handed out ends here */
    int32_t id;  /* a token that was found and comes next, -1 if none was; */
    size_t start, end; /* it stands here */
    size_t white, white_end; /* white space that was looked through last */
} sn_cutter;

/* `normalized`: the second search. */
sn_cutter sn_cut(const sn_added *added, bool normalized, bool special, const uint8_t *text,
                 size_t bytes);

typedef struct sn_cut_piece {
    size_t start, end;
    int32_t id; /* -1: text between the tokens */
} sn_cut_piece;

bool sn_cut_next(sn_cutter *cutter, sn_cut_piece *piece);

#endif
