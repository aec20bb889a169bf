/*
 * gla.c: gated linear attention, Yang et al. 2024, "Gated Linear Attention Transformers with
 * Hardware-Efficient Training". Checked against float64 goldens of an independent reference
 * (tests/family-golden.test.mjs). Names of keys and tensors: docs/formats.md.
 *
 * H heads of K keys and V values; key and value heads may be fewer (G) and are then shared.
 * State per layer, float32: inputs of the convolutions of q, k, v, if the model has them,
 * [taps - 1][width], oldest first; S[H][K keys][V values].
 */
#include "fla.h"

#include <float.h>

typedef struct layer {
    sn_fla_layer frame;
    sn_fla_projection q, k, v;       /* (H K, D), (G K, D), (G V, D) */
    sn_matrix decay_a, decay_b;      /* (rank, D), (G K, rank) */
    const float *decay_bias;         /* [G K] */
    sn_matrix gate, out;             /* (H V, D) or none, (D, H V) */
    const float *head_norm;          /* [V] */
} layer;

typedef struct weights {
    sn_fla frame;
    int32_t G;
    float normalizer, clamp_min;
    bool clamps;
    layer layers[];
} weights;

typedef struct work {
    sn_fla_work fla;
    const weights *W;
    size_t H, G, K, V;
    float *q, *k, *v;   /* [T][H K], [T][G K], [T][G V] */
    float *rank, *decay; /* [T][rank], [T][G K] */
    float *y, *gate;    /* [T][H V] */
} work;

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_layer(sn_binder *b, const void *of, void *to) {
    const weights *W = of;
    layer *l = to;
    const uint64_t D = (uint64_t)b->model->n_embd, H = (uint64_t)W->frame.H;
    const uint64_t G = (uint64_t)W->G, K = (uint64_t)W->frame.K, V = (uint64_t)W->frame.V;
    uint64_t rank, width;
    SN_TRY(sn_fla_bind_projection(b, "attn_q", H * K, &l->q));
    SN_TRY(sn_fla_bind_projection(b, "attn_k", G * K, &l->k));
    SN_TRY(sn_fla_bind_projection(b, "attn_v", G * V, &l->v));
    SN_TRY(sn_bind_shape(b, "attn_decay_a.weight", &rank, &width));
    SN_TRY(sn_bind_matrix(b, "attn_decay_a.weight", rank, D, &l->decay_a));
    SN_TRY(sn_bind_matrix(b, "attn_decay_b.weight", G * K, rank, &l->decay_b));
    SN_TRY(sn_bind_vector(b, "attn_decay_b.bias", G * K, &l->decay_bias));
    SN_TRY(sn_bind_vector(b, "attn_head_norm.weight", V, &l->head_norm));
    SN_TRY(sn_bind_matrix_or(b, "attn_gate.weight", H * V, D, &l->gate));
    return sn_bind_matrix(b, "attn_output.weight", D, H * V, &l->out);
}

static sn_status bind_keys(sn_binder *b, void *to) {
    weights *W = to;
    W->normalizer = 16.0f;
    W->G = W->frame.H;
    SN_TRY(sn_bind_size_or(b, "attention.head_count_kv", 1 << 16, &W->G));
    if (W->frame.H % W->G)
        return sn_bind_fail(b, "attention.head_count_kv", "does not divide the heads");
    SN_TRY(sn_bind_epsilon(b, "gate_normalizer", &W->normalizer));
    W->clamps = sn_bind_has_key(b, "clamp_min");
    return sn_bind_range(b, "clamp_min", -FLT_MAX, 0.0f, &W->clamp_min);
}

static size_t max_rank(const sn_model *m) {
    const weights *W = m->weights;
    size_t rank = 0;
    for (int32_t l = 0; l < m->n_layers; l++)
        if (W->layers[l].decay_a.rows > rank) rank = W->layers[l].decay_a.rows;
    return rank;
}

static void take_arrays(sn_fla_work *fla, const sn_model *m) {
    work *w = (work *)(void *)fla; /* its first member */
    const weights *W = w->W = m->weights;
    w->H = (size_t)W->frame.H;
    w->G = (size_t)W->G;
    w->K = (size_t)W->frame.K;
    w->V = (size_t)W->frame.V;
    const size_t keys = w->H * w->K, values = w->H * w->V;
    sn_fla_take_arrays(fla, m, keys + w->G * (w->K + w->V));
    w->q = sn_pass_take(&fla->pass, keys);
    w->k = sn_pass_take(&fla->pass, w->G * w->K);
    w->v = sn_pass_take(&fla->pass, w->G * w->V);
    w->rank = sn_pass_take(&fla->pass, max_rank(m));
    w->decay = sn_pass_take(&fla->pass, w->G * w->K);
    w->y = sn_pass_take(&fla->pass, values);
    w->gate = sn_pass_take(&fla->pass, values);
}

static uint64_t layer_state(const void *of) {
    const weights *W = of;
    const uint64_t H = (uint64_t)W->frame.H, K = (uint64_t)W->frame.K, V = (uint64_t)W->frame.V;
    const uint64_t width = H * K + (uint64_t)W->G * (K + V);
    return sn_fla_history(&W->frame, width) + H * K * V;
}

/* ---- computing ---------------------------------------------------------------------------- */

/* decay = exp(max(log sigmoid(W_b W_a h + b) / normalizer, clamp_min)), for each key channel; rank
 * holds W_a h */
static void decays(work *w, const layer *l) {
    const sn_pass *pass = &w->fla.pass;
    const size_t n = pass->T * w->G * w->K;
    sn_pass_affine(pass, &l->decay_b, l->decay_bias, w->decay, w->rank);
    pass->simd->log_sigmoid(w->decay, w->decay, n);
    pass->simd->scale(w->decay, 1.0f / w->W->normalizer, w->decay, n);
    if (w->W->clamps) pass->simd->clamp(w->decay, w->decay, w->W->clamp_min, 0.0f, n);
    pass->simd->exp(w->decay, w->decay, n);
}

static void mix(sn_fla_work *fla, const void *of) {
    work *w = (work *)(void *)fla; /* its first member */
    const layer *l = of;
    const sn_pass *pass = &fla->pass;
    const size_t H = w->H, K = w->K, V = w->V;
    const sn_product others[] = { { &l->decay_a, w->rank, fla->h },
                                  { &l->gate, w->gate, fla->h } };
    sn_fla_project(fla, (sn_fla_projected[]){ { &l->q, w->q }, { &l->k, w->k }, { &l->v, w->v } },
                   others, 2);
    if (l->q.conv) {
        sn_pass_map(pass, pass->simd->silu, w->q, H * K);
        sn_pass_map(pass, pass->simd->silu, w->k, w->G * K);
        sn_pass_map(pass, pass->simd->silu, w->v, w->G * V);
    }
    sn_pass_show(pass, "q", w->q, H * K);
    sn_pass_show(pass, "k", w->k, w->G * K);
    sn_pass_show(pass, "v", w->v, w->G * V);
    decays(w, l);
    sn_pass_show(pass, "decay", w->decay, w->G * K);
    sn_fla_attend(fla, &(sn_fla_attention){ .q = w->q, .k = w->k, .decay = w->decay, .v = w->v,
                                            .y = w->y, .G = w->G });
    sn_pass_show(pass, "y", w->y, H * V);
    sn_fla_norm_and_gate(fla, w->y, l->head_norm, V, H * V, pass->model->norm_eps,
                         l->gate.rows ? w->gate : NULL);
    sn_pass_linear(pass, &l->out, fla->out, w->y);
}

/* ---- the architecture --------------------------------------------------------------------- */

static const sn_fla_kind kind = {
    .weights_bytes = offsetof(weights, layers), .layer_bytes = sizeof(layer),
    .work_bytes = sizeof(work),
    .bind_keys = bind_keys, .bind_layer = bind_layer, .layer_state = layer_state,
    .take_arrays = take_arrays, .mix = mix,
};

static sn_status bind(sn_loader *loader, sn_model *m) {
    return sn_fla_bind(&kind, loader, m);
}

static void forward(const sn_model *m, sn_exec *exec, const int32_t *tokens, size_t n_tokens,
                    const sn_segment *segments, size_t n_segments, float *logits,
                    size_t first_logits) {
    work w = { .fla = { .model = NULL } };
    sn_fla_forward(&kind, &w.fla, m, exec, tokens, n_tokens, segments, n_segments, logits,
                   first_logits);
}

const sn_arch sn_arch_gla = { .name = "gla", .bind = bind, .forward = forward };
