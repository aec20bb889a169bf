/*
 * bind.h: how an architecture takes hyperparameters and tensors out of a file: keys are
 * "ARCHITECTURE.key", tensors of a layer "blk.N.tensor" (docs/formats.md). On top of loader.h.
 */
#ifndef SN_ARCH_BIND_H
#define SN_ARCH_BIND_H

#include "../loader.h"

typedef struct sn_binder {
    sn_loader *loader;
    sn_model *model;
    int32_t layer; /* -1: tensors outside the layers */
    char name[96]; /* of the tensor or key at hand */
} sn_binder;

/* A norm with or without bias. */
typedef struct sn_norm {
    const float *weight, *bias;
} sn_norm;

sn_binder sn_binder_of(sn_loader *loader, sn_model *model);

/* ---- keys ---- */

/* A number from 1 to `limit`. _or: *out keeps its value if the key is absent. */
sn_status sn_bind_size(sn_binder *b, const char *key, uint32_t limit, int32_t *out);
sn_status sn_bind_size_or(sn_binder *b, const char *key, uint32_t limit, int32_t *out);
bool sn_bind_has_key(sn_binder *b, const char *key);
sn_status sn_bind_flag(sn_binder *b, const char *key, bool *out); /* kept if absent */
sn_status sn_bind_f32(sn_binder *b, const char *key, float *out); /* kept if absent */
/* The same for the norms' epsilon: a positive number. */
sn_status sn_bind_epsilon(sn_binder *b, const char *key, float *out);
/* The same for any number from `low` to `high`. */
sn_status sn_bind_range(sn_binder *b, const char *key, float low, float high, float *out);
/* A range above 0: *any says if the file has a limit, an absent one is 0 or infinity. */
sn_status sn_bind_limits(sn_binder *b, const char *low_key, const char *high_key, bool *any,
                         float *low, float *high);
/* Which of `choices` (ended by NULL) the text under `key` is; *out is kept if absent. */
sn_status sn_bind_choice(sn_binder *b, const char *key, const char *const *choices, int *out);
/* block_count and embedding_length, which all have. */
sn_status sn_bind_common(sn_binder *b);

/* ---- tensors ---- */

bool sn_bind_has(sn_binder *b, const char *tensor);
sn_status sn_bind_shape(sn_binder *b, const char *tensor, uint64_t *rows, uint64_t *k);
sn_status sn_bind_vector(sn_binder *b, const char *tensor, uint64_t n, const float **out);
/* *out stays NULL if the file has none. */
sn_status sn_bind_vector_or(sn_binder *b, const char *tensor, uint64_t n, const float **out);
/* (rows, k) in the file, [k][rows] in memory: convolutions, so that lanes are channels. */
sn_status sn_bind_transposed(sn_binder *b, const char *tensor, uint64_t rows, uint64_t k,
                             const float **out);
sn_status sn_bind_matrix(sn_binder *b, const char *tensor, uint64_t rows, uint64_t k,
                         sn_matrix *out);
/* out->rows stays 0 if the file has none. */
sn_status sn_bind_matrix_or(sn_binder *b, const char *tensor, uint64_t rows, uint64_t k,
                            sn_matrix *out);
/* "STEM.weight" and "STEM.bias" */
sn_status sn_bind_norm(sn_binder *b, const char *stem, uint64_t n, sn_norm *out);

/*
 * token_embd.weight and output.weight: if there is no output, it is the embedding, which is kept
 * once. Sets model->vocab, so it comes before the weights struct exists: `embedding` and `head` are
 * filled in by sn_bind_ends() afterwards.
 */
sn_status sn_bind_vocabulary(sn_binder *b);
sn_status sn_bind_ends(sn_binder *b, sn_rows *embedding, sn_matrix *head);

/* Sets model->state_floats to n_layers times `layer_floats`, checked. */
sn_status sn_bind_state(sn_binder *b, uint64_t layer_floats);

/* SN_E_FORMAT for a key that does not fit the others: "NAME: key 'A.key': reason". */
sn_status sn_bind_fail(sn_binder *b, const char *key, const char *reason);

#endif
