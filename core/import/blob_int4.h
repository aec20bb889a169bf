/*
 * blob_int4.h: INT4 matrices of packed blobs. A blob has the codes of all (out, in) rows first,
 * in / 2 bytes each, and behind them in / 64 fp32 scales for each row; the type I4 (quant/types.h)
 * has both together, group by group. A view brings them into that order while it is read.
 */
#ifndef SN_IMPORT_BLOB_INT4_H
#define SN_IMPORT_BLOB_INT4_H

#include "../formats/store.h"

#define SN_INT4_GROUP 64 /* inputs that share a scale */
#define SN_INT4_CODE_BYTES (SN_INT4_GROUP / 2)

typedef struct sn_int4 {
    const sn_file *file; /* the store's */
    uint64_t codes, scales; /* offsets; both lie inside the file */
    uint64_t rows, k;       /* k is a multiple of SN_INT4_GROUP */
} sn_int4;

/* A (rows, k) matrix of type I4 that lives as long as the store; *view has no name of its own. */
sn_status sn_int4_view(sn_store *store, const sn_int4 *matrix, sn_view *view);

#endif
