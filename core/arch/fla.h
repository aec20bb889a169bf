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
    float *raw;       /* [T][widest projection], before its convolution */
    size_t history;   /* floats of the layer's state taken by convolutions so far */
} sn_fla_work;

/* Keys and tensors outside the layers; `m->weights` exists and begins with an sn_fla. */
sn_status sn_fla_bind(sn_binder *b);
sn_status sn_fla_bind_layer(sn_binder *b, sn_fla_layer *layer);

/* "STEM.weight" (rows, D) and, if the model has short convolutions, "STEM_conv.weight". */
sn_status sn_fla_bind_projection(sn_binder *b, const char *stem, uint64_t rows,
                                 sn_fla_projection *out);

/* Floats of state that the convolution of a projection of this width takes. */
uint64_t sn_fla_history(const sn_fla *f, uint64_t width);

/* Scratch arrays; `widest` is the number of rows of the widest projection. */
void sn_fla_take_arrays(sn_fla_work *w, const sn_model *m, size_t widest);

/* y = conv(W h) or W h. Convolutions of a layer must be called in the same order each time. */
void sn_fla_project(sn_fla_work *w, const sn_fla_projection *p, float *y);

/* y = y / rms(y) weight for each piece of `width` of [T][total], then y silu(W h) if there is a
 * gate (its values go to `gate`, [T][total]). */
void sn_fla_norm_and_gate(sn_fla_work *w, float *y, const float *weight, size_t width,
                          size_t total, float eps, const sn_matrix *gate_matrix, float *gate);

/* Forward pass. `mix` writes mix(w->h) to w->out for layer number `layer`. */
typedef void (*sn_fla_mix)(sn_fla_work *w, int32_t layer);
void sn_fla_forward(sn_fla_work *w, const sn_fla_layer *(*layer_of)(const sn_model *, int32_t),
                    size_t layer_state, sn_fla_mix mix, float *logits, size_t first_logits);

#endif
