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
    bool spoiled;         /* an activation was a NaN or infinite */
    double weight_bytes;  /* read so far */
    size_t max_tokens;
    float *scratch; /* the architecture's, max_tokens times its scratch floats per token */
    /* int8 activations of max_tokens rows (sn_q8_rows), and the last, partial panel's outputs */
    int8_t *q;
    float *q_scale;
    int32_t *q_sum;
    size_t q_stride;
    float *tail;
    const struct sn_probe *probe; /* NULL, or who looks into the pass (arch/pass.h) */
} sn_exec;

/* Bytes of scratch for the given sizes; max_k of the matrices that take int8 activations. */
sn_status sn_exec_size(size_t max_tokens, size_t scratch_floats, size_t max_k, size_t *bytes);

/* Carves the scratch out of `memory` (64-byte aligned, sn_exec_size bytes). */
void sn_exec_init(sn_exec *exec, const sn_simd *simd, sn_pool *pool, bool f32_activations,
                  size_t max_tokens, size_t scratch_floats, size_t max_k, void *memory);

/* y[t] = W x[t] for n_tokens tokens in one pass over W. x is [n_tokens][k], y [n_tokens][rows]
 * with row distance y_stride. Sets exec->spoiled where int8 activations meet a NaN. */
void sn_linear(sn_exec *exec, const sn_matrix *w, float *y, size_t y_stride, const float *x,
               size_t n_tokens);

/* True if no value is a NaN or infinite. */
bool sn_all_finite(const float *x, size_t n);

/* y = row `id` as float32. */
void sn_embed(const sn_rows *rows, int32_t id, float *y);

#endif
