/*
 * card.h: the card of a release: what the model is, and its files with sizes and SHA-256. JSON
 * with sorted keys, two spaces a level.
 */
#ifndef SN_EXPORT_CARD_H
#define SN_EXPORT_CARD_H

#include "../formats/gguf.h"
#include "../formats/store.h"
#include "sha256.h"
#include "text.h"

typedef struct sn_card_entry {
    bool present;
    uint64_t bytes;
    char sha256[SN_SHA256_HEX];
} sn_card_entry;

typedef struct sn_card {
    const char *name, *publisher, *license;
    const sn_json *config, *summary;
    sn_card_entry checkpoint, safetensors, blob, tokenizer;
    bool tied, clamped;
    uint64_t tensors;               /* in the safetensors file */
    uint64_t params, embed_params;  /* trained ones; those of embedding and untied head */
    uint64_t vocab, dim, inner, rank, taps, layers; /* of the blob */
    char no_blob[256];              /* why there is none */
} sn_card;

/* Counts tensors and parameters; without the head where it is tied. */
void sn_card_count(sn_card *card, const sn_store *store, bool tied);

/* Notes size and hash of a file that is complete. */
sn_status sn_card_file(sn_card_entry *entry, const char *path);

/* Notes the shape of the model whose blob has been written. */
sn_status sn_card_blob(sn_card *card, const sn_gguf *gguf);

sn_status sn_card_write(const sn_card *card, const char *path);

#endif
