/*
 * fla.h: the frame that GLA, DeltaNet, Gated DeltaNet and HGRN2 share, as the
 * flash-linear-attention library lays them out:
 *
 *   x = E[token];  per layer:  x += mix(RMSNorm(x));  x += W_down (silu(W_gate h) W_up h),
 *   h = RMSNorm(x);  logits = head RMSNorm(x)
 *
 * An architecture brings `mix`. Its weights and its work begin with the structs below.
 */
#ifndef SN_ARCH_FLA_H
#define SN_ARCH_FLA_H

#include "bind.h"
#include "pass.h"

/* Sizes of a model: H heads of K keys and V values; taps 0: no short convolutions. */
typedef struct sn_fla {
    sn_rows embedding;
    sn_matrix head;
    const float *norm;
    int32_t H, K, V, taps;
} sn_fla;

typedef struct sn_fla_layer {
    const float *mix_norm, *ffn_norm; /* [D] */
    sn_matrix gate, up, down;         /* (F, D), (F, D), (D, F) */
} sn_fla_layer;

/* A projection that may go through a short causal convolution. */
typedef struct sn_fla_projection {
    sn_matrix W;
    const float *conv, *bias; /* [taps][rows] or NULL, [rows] or NULL */
} sn_fla_projection;

typedef struct sn_fla_work {
    sn_pass pass;
    const sn_fla *model;
    float *h;         /* [T][D], RMSNorm(x) */
    float *out;       /* [T][D], what is added to x */
    float *gate, *up; /* [T][F] */
    float *raw;       /* [T][all projections], before their convolutions */
    size_t history;   /* floats of the layer's state taken by convolutions so far */
} sn_fla_work;

typedef struct sn_fla_kind sn_fla_kind;

/* "STEM.weight" (rows, D) and, if the model has short convolutions, "STEM_conv.weight". */
sn_status sn_fla_bind_projection(sn_binder *b, const char *stem, uint64_t rows,
                                 sn_fla_projection *out);

/* Floats of state that the convolution of a projection of this width takes. */
uint64_t sn_fla_history(const sn_fla *f, uint64_t width);

/* Scratch arrays; `rows` is the number of rows of all projections of a layer. */
void sn_fla_take_arrays(sn_fla_work *w, const sn_model *m, size_t rows);

/* A projection and where its values go, [T][rows]. */
typedef struct sn_fla_projected {
    const sn_fla_projection *projection;
    float *y;
} sn_fla_projected;

/* y = conv(W h) or W h for the three projections of a layer, and y = W h for others whose input is
 * h too, in one pass over the weights. */
void sn_fla_project(sn_fla_work *w, const sn_fla_projected projected[3], const sn_product *others,
                    size_t n_others);

/*
 * Gated linear attention, of GLA and HGRN2: S <- diag(decay) S + k v^T; y = S^T q K^(-1/2). There
 * may be fewer heads of keys and values (G) than H: head h uses number h / (H / G) of them.
 */
typedef struct sn_fla_attention {
    float *q;               /* [T][H K]; becomes q K^(-1/2) */
    const float *k, *decay; /* [T][G K] */
    const float *v;         /* [T][G V] */
    float *y;               /* [T][H V] */
    size_t G;
} sn_fla_attention;

/* The state S[H][K][V] stands behind the layer's convolutions. */
void sn_fla_attend(const sn_fla_work *w, const sn_fla_attention *a);

/* y = y / rms(y) weight for each piece of `width` of [T][total], then y silu(gate) unless gate,
 * [T][total], is NULL. */
void sn_fla_norm_and_gate(const sn_fla_work *w, float *y, const float *weight, size_t width,
                          size_t total, float eps, const float *gate);

/*
 * What an architecture is made of. Its weights are a struct that begins with an sn_fla and ends
 * with its layers, each of which begins with an sn_fla_layer; its work begins with an sn_fla_work.
 */
struct sn_fla_kind {
    size_t weights_bytes, layer_bytes; /* of the weights without layers; of one layer */
    size_t work_bytes;
    sn_status (*bind_keys)(sn_binder *b, void *weights);
    sn_status (*bind_layer)(sn_binder *b, const void *weights, void *layer);
    uint64_t (*layer_state)(const void *weights); /* floats */
    void (*take_arrays)(sn_fla_work *w, const sn_model *m);
    /* writes mix(w->h) to w->out */
    void (*mix)(sn_fla_work *w, const void *layer);
};

sn_status sn_fla_bind(const sn_fla_kind *kind, sn_loader *loader, sn_model *m);

/* A forward pass (model.h) in `w`, the beginning of the architecture's own work, zeroed. */
void sn_fla_forward(const sn_fla_kind *kind, sn_fla_work *w, const sn_model *m, sn_exec *exec,
                    const int32_t *tokens, size_t n_tokens, const sn_segment *segments,
                    size_t n_segments, float *logits, size_t first_logits);

#endif
