/*
 * layout.h: where everything lies in a blob that is to be written. A model comes as a stream whose
 * order is its own, so the blob is laid out first, item after item, and written at the places
 * where its tensors belong while the model is read once.
 */
#ifndef SN_EXPORT_LAYOUT_H
#define SN_EXPORT_LAYOUT_H

#include "../formats/gguf.h"
#include "../quant/packed.h"

/* How a tensor of `rows` rows of `k` elements lies there: as float32, row by row or transposed, or
 * as INT4: the codes of all rows, k / 2 bytes each, then the k / 64 float32 scales of all rows. */
typedef enum sn_place_form { SN_PLACE_ROWS, SN_PLACE_COLUMNS, SN_PLACE_INT4 } sn_place_form;

typedef struct sn_place {
    uint64_t tensor; /* its index */
    uint64_t offset, rows, k;
    sn_place_form form;
    size_t next; /* of the same tensor, plus 1; 0: none */
} sn_place;

typedef struct sn_blob_layout {
    const sn_gguf *gguf;
    bool int4; /* matrices become INT4 where the kind of blob says so */
    sn_packed packed;
    uint64_t size;  /* bytes so far: where the next item goes */
    size_t *first;  /* for each tensor its first place, plus 1; 0: it is not in the blob */
    sn_place *places;
    size_t n_places, place_capacity;
    struct sn_layout_word {
        uint64_t offset;
        uint32_t bits;
    } *words;
    size_t n_words, word_capacity;
} sn_blob_layout;

sn_status sn_layout_init(sn_blob_layout *layout, const sn_gguf *gguf, bool int4);
void sn_layout_free(sn_blob_layout *layout); /* also of a zeroed struct */

/* ---- items, in the order of the blob ---- */
/* SN_E_UNSUPPORTED above 2^31 - 1. */
sn_status sn_layout_int(sn_blob_layout *layout, uint64_t value);
sn_status sn_layout_float(sn_blob_layout *layout, float value);
sn_status sn_layout_zeros(sn_blob_layout *layout, uint64_t n); /* floats */

/* n floats, whatever the tensor's dimensions. */
sn_status sn_layout_vector(sn_blob_layout *layout, const char *name, uint64_t n);

/* A matrix of `rows` outputs and `k` inputs as rows, transposed, as (k, rows), or as INT4, for
 * which k must be a multiple of 64. */
sn_status sn_layout_rows(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k);
sn_status sn_layout_columns(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k);
sn_status sn_layout_int4(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k);

/* The logical shape of a tensor that must be there. */
sn_status sn_layout_shape(const sn_blob_layout *layout, const char *name, uint64_t *rows,
                          uint64_t *k);

/* A number under `key` that must be there and lie in 1..limit. */
sn_status sn_layout_size(const sn_blob_layout *layout, const char *key, uint32_t limit,
                         uint32_t *out);

/* ---- and then (write.c) ---- */

/* Writes the file, which appears under its name only when it is whole. */
sn_status sn_layout_write(const sn_blob_layout *layout, const char *path, sn_progress_fn progress,
                          void *user);

/* ---- the kinds ---- */
sn_status sn_layout_sunnynet(sn_blob_layout *layout);
sn_status sn_layout_rwkv7(sn_blob_layout *layout);

#endif
