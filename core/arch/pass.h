/*
 * pass.h: one forward pass over T tokens of one or several sequences: what every architecture
 * has around its equations. Arrays are [T][width], row after row.
 */
#ifndef SN_ARCH_PASS_H
#define SN_ARCH_PASS_H

#include "../model.h"

#define SN_MAX_TAPS 16 /* of a convolution */

typedef struct sn_pass {
    const sn_model *model;
    sn_exec *exec;
    const sn_simd *simd;
    size_t T, D;
    const sn_segment *segments;
    size_t n_segments;
    size_t state_offset; /* of the layer at hand, within a state */
    float *x;            /* [T][D] residual stream */
    float *scratch;      /* NULL while widths are counted */
    size_t taken;        /* floats per token handed out so far */
} sn_pass;

/*
 * An architecture names its scratch arrays once, in a function that calls sn_pass_take() for each.
 * While binding it runs on a pass of zeros: `taken` is then the model's scratch_floats.
 */
float *sn_pass_take(sn_pass *pass, size_t width);

/*
 * Looks into a pass, for the debugging calls of the seed's libraries: only layers [first, end) are
 * computed, and see() gets arrays of each by name, `width` floats a token, and at the end the
 * residual stream as "x".
 */
typedef struct sn_probe {
    int32_t first, end;
    void (*see)(void *user, const char *name, const float *values, size_t width);
    void *user;
} sn_probe;

static inline void sn_pass_show(const sn_pass *pass, const char *name, const float *values,
                                size_t width) {
    const sn_probe *probe = pass->exec->probe;
    if (probe) probe->see(probe->user, name, values, width);
}

/* The layers to compute: all of the model without a probe. */
static inline int32_t sn_pass_first_layer(const sn_pass *pass) {
    return pass->exec->probe ? pass->exec->probe->first : 0;
}
static inline int32_t sn_pass_end_layer(const sn_pass *pass) {
    return pass->exec->probe ? pass->exec->probe->end : pass->model->n_layers;
}

/* A pass whose x holds the tokens' embedding rows. */
sn_pass sn_pass_begin(const sn_model *model, sn_exec *exec, const sn_rows *embedding,
                      const int32_t *tokens, size_t n_tokens, const sn_segment *segments,
                      size_t n_segments);

/* The head for tokens first_logits .. T-1 of `normed`, [T][D]; none if logits is NULL. Marks the
 * pass as spoiled if x or a logit is not finite. */
void sn_pass_end(const sn_pass *pass, const sn_matrix *head, const float *normed, float *logits,
                 size_t first_logits);

/* Calls work(context, begin, end) for ranges of the tokens, on several threads where that pays: for
 * what is done to each token apart from the others. */
void sn_pass_tokens(const sn_pass *pass, sn_work work, void *context);

/* Products that read one another's inputs but not outputs, with one meeting of the threads (ops.h):
 * sn_pass_multiply(pass, { &l->A, y, x }, { &l->B, z, x }); */
void sn_pass_products(const sn_pass *pass, const sn_product *products, size_t n);
#define sn_pass_multiply(pass, ...)                                                           \
    sn_pass_products(pass, (const sn_product[]){ __VA_ARGS__ },                               \
                     sizeof((const sn_product[]){ __VA_ARGS__ }) / sizeof(sn_product))

/* y[t] = W x[t]; y is [T][W->rows] */
void sn_pass_linear(const sn_pass *pass, const sn_matrix *W, float *y, const float *x);

/* The same, with W's bias if there is one. */
void sn_pass_affine(const sn_pass *pass, const sn_matrix *W, const float *bias, float *y,
                    const float *x);

/* y[t] += bias, of `width` numbers a token; none if bias is NULL */
void sn_pass_bias(const sn_pass *pass, float *y, const float *bias, size_t width);

/* y[t] = f(y[t]), and y[t] = y[t] silu(gate[t]), of `width` numbers a token */
void sn_pass_map(const sn_pass *pass, sn_map f, float *y, size_t width);
void sn_pass_gate(const sn_pass *pass, float *y, const float *gate, size_t width);

/* x += y */
void sn_pass_add(const sn_pass *pass, const float *y);

/* y[t] = RMSNorm(x[t]) weight, of `width` numbers a token */
void sn_pass_rms(const sn_pass *pass, float *y, const float *x, const float *weight, size_t width,
                 float eps);

/* The same of each piece of `width` of the `total` numbers of a token, say of each head; weight is
 * [width], for all of them. */
void sn_pass_rms_pieces(const sn_pass *pass, float *y, const float *x, const float *weight,
                        size_t width, size_t total, float eps);

/* y[t] = LayerNorm(x[t]) */
void sn_pass_norm(const sn_pass *pass, float *y, const float *x, const float *weight,
                  const float *bias, size_t width, float eps);

/* Where a segment's state of the layer at hand begins. */
float *sn_pass_state(const sn_pass *pass, size_t segment);

/*
 * Causal depthwise convolution with `taps` taps over each sequence: w is [taps][width], the last
 * tap is the current token's. x has x_stride floats a token, y `width`; y may not be x. The
 * taps - 1 inputs before a segment's first token stand `history` floats into the layer's state,
 * [taps - 1][width], oldest first, and the last ones are kept there.
 */
void sn_pass_conv(const sn_pass *pass, float *y, const float *x, size_t x_stride, const float *w,
                  const float *bias, size_t taps, size_t width, size_t history);

#endif
