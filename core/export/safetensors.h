/*
 * safetensors.h: writes the tensors of a store as float32, in the order of their names. The header
 * is JSON with sorted keys and without spaces, so that the same tensors give the same bytes.
 */
#ifndef SN_EXPORT_SAFETENSORS_H
#define SN_EXPORT_SAFETENSORS_H

#include "../formats/store.h"

/* One text of the metadata; the list comes sorted by key. */
typedef struct sn_meta {
    const char *key, *text;
} sn_meta;

/* Leaves out the tensor called `without` (NULL: none). */
sn_status sn_safetensors_write(const sn_store *store, const char *without, const sn_meta *meta,
                               size_t n_meta, const char *path);

#endif
