/*
 * ops.h: what architectures compute with: matrices in panels, embedding rows, and the context
 * a computation runs in. Element-wise kernels are called through `simd` directly.
 */
#ifndef SN_CORE_OPS_H
#define SN_CORE_OPS_H

#include "memory.h"
#include "quant/panel.h"
#include "simd.h"
#include "threads.h"

#include <stdatomic.h>

/* The kernels' name for a type's panels; the type must have them (sn_panel_supports). */
sn_layout sn_layout_of(const sn_type *type);

/* A weight matrix, logical (rows, k): y = W x. */
typedef struct sn_matrix {
    const uint8_t *panels;
    const sn_type *type;
    sn_layout layout;
    size_t rows, k;
    size_t n_panels, panel_bytes;
} sn_matrix;

/* Embedding rows: as the file holds them, or in the panels of a matrix that is also the head. */
typedef struct sn_rows {
    const uint8_t *data;    /* NULL if tied */
    const sn_matrix *tied;
    const sn_type *type;
    size_t n, k, row_bytes;
} sn_rows;

/* What one computation runs on; belongs to a state or a batch. */
typedef struct sn_exec {
    const sn_simd *simd;
    sn_pool *pool;
    bool f32_activations; /* multiply quantised matrices by floats */
    atomic_bool spoiled;  /* an activation was a NaN or infinite */
    double weight_bytes;  /* read so far */
    uint64_t meetings;    /* of the threads, so far: each piece of work they share is one */
    size_t max_tokens;
    float *scratch; /* the architecture's, max_tokens times its scratch floats per token */
    /* int8 activations (sn_q8_rows), q_bytes of them for each token; the outputs of last, partial
     * panels, [SN_MOST_PRODUCTS][max_tokens][SN_PANEL_ROWS] */
    int8_t *q;
    float *q_scale;
    int32_t *q_sum;
    size_t q_bytes;
    float *tail;
    const struct sn_probe *probe; /* NULL, or who looks into the pass (arch/pass.h) */
} sn_exec;

/* How large the scratch of a computation is. */
typedef struct sn_exec_sizes {
    size_t max_tokens;
    size_t scratch_floats; /* of the architecture, per token */
    size_t max_k;          /* longest input that becomes int8; 0: none does */
    size_t width;          /* of the inputs that products share a pass with, n_embd */
} sn_exec_sizes;

sn_status sn_exec_size(const sn_exec_sizes *sizes, size_t *bytes);

/* Carves the scratch out of `memory` (64-byte aligned, sn_exec_size bytes). */
void sn_exec_init(sn_exec *exec, const sn_simd *simd, sn_pool *pool, bool f32_activations,
                  const sn_exec_sizes *sizes, void *memory);

/* y[t] = W x[t]. x is [n_tokens][W->k], y [n_tokens][W->rows]. A W without rows is left out. */
typedef struct sn_product {
    const sn_matrix *W;
    float *y;
    const float *x;
} sn_product;

#define SN_MOST_PRODUCTS 8

/*
 * The products of n_tokens tokens with up to SN_MOST_PRODUCTS matrices, in one pass over each and
 * with one meeting of the threads for all: none may read what another writes. Sets exec->spoiled
 * where int8 activations meet a NaN.
 */
void sn_multiply(sn_exec *exec, const sn_product *products, size_t n, size_t n_tokens);

/* Runs work over [0, n), shared among threads (threads.h). */
void sn_run(sn_exec *exec, size_t n, sn_work work, void *context);

/*
 * Runs work over the tokens [0, n_tokens), shared among threads where that is worth a meeting of
 * them: for what is done to each token apart from the others.
 */
#define SN_TOKENS_WORTH_SHARING 8
void sn_run_tokens(sn_exec *exec, size_t n_tokens, sn_work work, void *context);

/* True if no value is a NaN or infinite. */
bool sn_all_finite(const float *x, size_t n);

/* y = row `id` as float32. */
void sn_embed(const sn_rows *rows, int32_t id, float *y);

#endif
