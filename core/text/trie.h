/*
 * trie.h: finds the longest of many words at the beginning of a text.
 */
#ifndef SN_TEXT_TRIE_H
#define SN_TEXT_TRIE_H

#include "../memory.h"

typedef struct sn_word {
    const uint8_t *bytes; /* borrowed while the trie is built */
    uint32_t length;      /* at least 1 */
    int32_t id;           /* at least 0 */
} sn_word;

typedef struct sn_trie sn_trie;

/* Holds n words (below 2^32); of several with the same bytes the first one. */
sn_status sn_trie_new(const sn_word *words, size_t n, sn_trie **trie);
void sn_trie_free(sn_trie *trie);

/* Bytes of the longest word that `text` begins with, and its id; 0 if there is none. */
size_t sn_trie_longest(const sn_trie *trie, const uint8_t *text, size_t bytes, int32_t *id);

#endif
