/*
 * merges.h: the merges of a byte-pair encoding as GGUF has them.
 */
#ifndef SN_TEXT_MERGES_H
#define SN_TEXT_MERGES_H

#include "pairs.h"
#include "words.h"

/*
 * tokenizer.ggml.merges: "left right", each a token's text. The value of a pair is what it
 * becomes; an added token that a merge makes is known to be an ordinary one as well. *present
 * (NULL: it must be) tells whether the file has such a key.
 */
sn_status sn_merges_read(const sn_vocabulary_keys *keys, const sn_words *words,
                         sn_tokenizer *vocabulary, bool *present, sn_pairs *merges);

/* sunnynet.tokenizer.merges: left id, right id, resulting id. */
sn_status sn_merges_read_ids(const sn_vocabulary_keys *keys, const sn_tokenizer *vocabulary,
                             sn_pairs *merges);

/* An sn_bpe_find; its context are merges (const sn_pairs *). */
bool sn_merges_find(const void *merges, const sn_bpe *bpe, const sn_symbol *left,
                    const sn_symbol *right, uint32_t *rank, int32_t *id);

#endif
