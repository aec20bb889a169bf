/*
 * blob.h: what the readers of packed blobs share: a cursor that walks through the file once and
 * declares what it passes. Every length is compared with the bytes that are left, and at the end
 * none may be left: a file that is not exactly what its header says is refused.
 */
#ifndef SN_IMPORT_BLOB_H
#define SN_IMPORT_BLOB_H

#include "import.h"

typedef struct sn_blob {
    const sn_file *file; /* the store's */
    sn_store *store;
    sn_build *build;
    uint64_t at; /* the next byte */
    char name[96]; /* of the tensor at hand */
} sn_blob;

/* "blk.<layer>.<tensor>", in blob->name. */
const char *sn_blob_name(sn_blob *blob, uint32_t layer, const char *tensor);

/* ---- header words ---- */
sn_status sn_blob_ints(sn_blob *blob, size_t n, int32_t *values);
sn_status sn_blob_floats(sn_blob *blob, const char *what, size_t n, float *values);

/* A header field that must lie in low..high. */
sn_status sn_blob_check(const sn_blob *blob, const char *field, int32_t value, int32_t low,
                        int32_t high);

/* A header field, or a small number beside the tensors, that must be finite and above zero. */
sn_status sn_blob_positive(const sn_blob *blob, const char *field, float value);

/* ---- tensors, each moves the cursor behind it ---- */

typedef enum sn_blob_layout {
    SN_BLOB_ROWS,   /* (out, in): a row for each output */
    SN_BLOB_COLUMNS /* (in, out) */
} sn_blob_layout;

/* An fp32 matrix of `rows` outputs and `k` inputs. */
sn_status sn_blob_matrix(sn_blob *blob, const char *name, uint64_t rows, uint64_t k,
                         sn_blob_layout layout);

/* A matrix behind its tag: 0 fp32 in `layout`, 1 INT4 in groups of 64 inputs, which becomes one of
 * type I4 (blob_int4.h). */
sn_status sn_blob_tagged(sn_blob *blob, const char *name, uint64_t rows, uint64_t k,
                         sn_blob_layout layout);

/* An fp32 array; dims fastest first. */
sn_status sn_blob_array(sn_blob *blob, const char *name, uint32_t n_dims, const uint64_t *dims);
sn_status sn_blob_vector(sn_blob *blob, const char *name, uint64_t n);

/* What is not needed: `n` floats, a matrix behind its tag. */
sn_status sn_blob_skip(sn_blob *blob, const char *name, uint64_t n);
sn_status sn_blob_skip_tagged(sn_blob *blob, const char *name, uint64_t rows, uint64_t k);

/* The file must end here. */
sn_status sn_blob_end(const sn_blob *blob);

/* ---- the kinds; blob->at is 0 and the magic right ---- */
sn_status sn_blob_read_sunnynet(sn_blob *blob);
sn_status sn_blob_read_rwkv7(sn_blob *blob);
sn_status sn_blob_read_mamba2(sn_blob *blob);
sn_status sn_blob_read_deltanet(sn_blob *blob);
sn_status sn_blob_read_gla(sn_blob *blob);
sn_status sn_blob_read_hgrn2(sn_blob *blob);

#endif
