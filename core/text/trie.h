/*
 * trie.h: finds the longest token at the beginning of a text.
 */
#ifndef SN_TEXT_TRIE_H
#define SN_TEXT_TRIE_H

#include "vocabulary.h"

typedef struct sn_trie sn_trie;

/* Holds the tokens of role SN_TOKEN_TEXT; of several with the same bytes the lowest id. */
sn_status sn_trie_new(const sn_tokenizer *vocabulary, sn_trie **trie);
void sn_trie_free(sn_trie *trie);

/* Bytes of the longest token that `text` begins with, and its id; 0 if there is none. */
size_t sn_trie_longest(const sn_trie *trie, const uint8_t *text, size_t bytes, int32_t *id);

#endif
