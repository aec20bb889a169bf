/*
 * words.h: finds the id of a token by its text as it stands in the file.
 */
#ifndef SN_TEXT_WORDS_H
#define SN_TEXT_WORDS_H

#include "vocabulary.h"

typedef struct sn_words {
    const sn_tokenizer *vocabulary;
    uint32_t *slots; /* [mask + 1]: id + 1, 0 if free; open addressing, linear probing */
    size_t mask;
} sn_words;

/*
 * Holds every token with a text but the unused ones. Of several with one text the lowest id
 * counts; `unique` refuses them. `name` is the file, for the error text.
 */
sn_status sn_words_new(const sn_tokenizer *vocabulary, const char *name, bool unique,
                       sn_words *words);
void sn_words_free(sn_words *words); /* also of a zeroed struct */

/* -1 if there is no such token. */
int32_t sn_words_find(const sn_words *words, const uint8_t *text, size_t length);

/* The same for what stands before and behind each other: the text of a merged pair. */
int32_t sn_words_find_joined(const sn_words *words, sn_span left, sn_span right);

#endif
