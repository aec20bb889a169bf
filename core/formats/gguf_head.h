/*
 * gguf_head.h: the header of a GGUF version 3 file that is being made: metadata, then tensor
 * infos with the places of their data. Serves the file writer and files that only stream.
 */
#ifndef SN_FORMATS_GGUF_HEAD_H
#define SN_FORMATS_GGUF_HEAD_H

#include "gguf.h"

typedef struct sn_gguf_head {
    const char *name; /* of the file, for error texts; borrowed */
    uint8_t *bytes;   /* keys, then infos; complete after sn_gguf_head_finish() */
    size_t n_bytes, capacity;
    size_t *items; /* where each key and each tensor name (its length) begins in bytes */
    size_t items_capacity;
    uint64_t *ends; /* [n_tensors] of each tensor's data, from the data section's start */
    size_t ends_capacity;
    uint64_t n_keys, n_tensors;
    uint64_t alignment;
    bool finished;
} sn_gguf_head;

sn_status sn_gguf_head_init(sn_gguf_head *head, const char *name);
void sn_gguf_head_free(sn_gguf_head *head); /* also of a zeroed struct */

/* Metadata, before the first tensor. */
sn_status sn_gguf_head_put_number(sn_gguf_head *head, const char *key, sn_gguf_kind kind,
                                  uint64_t bits);
sn_status sn_gguf_head_put_text(sn_gguf_head *head, const char *key, sn_span text);
/* n numbers of 32 bits, as their bits. */
sn_status sn_gguf_head_put_words(sn_gguf_head *head, const char *key, sn_gguf_kind kind,
                                 const uint32_t *words, uint64_t n);
sn_status sn_gguf_head_put_texts(sn_gguf_head *head, const char *key, const sn_span *texts,
                                 uint64_t n);
/* A value as another file holds it, byte for byte. */
sn_status sn_gguf_head_put_value(sn_gguf_head *head, const sn_gguf_value *value);
bool sn_gguf_head_has(const sn_gguf_head *head, const char *key);

/* Declares a tensor; dims fastest first. Data follows in the order of declaration. */
sn_status sn_gguf_head_declare(sn_gguf_head *head, const char *name, uint32_t type,
                               uint32_t n_dims, const uint64_t *dims, uint64_t bytes);

/* Sets the counts, pads to the data section and refuses keys and names that occur twice. */
sn_status sn_gguf_head_finish(sn_gguf_head *head);

/* Where the data of the first tensor at or after `offset` of the data section begins. */
static inline uint64_t sn_gguf_head_align(const sn_gguf_head *head, uint64_t offset) {
    return (offset + head->alignment - 1) / head->alignment * head->alignment;
}

#endif
