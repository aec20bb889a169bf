/*
 * hgrn2.c: Qin et al. 2024, "HGRN2: Gated Linear RNNs with State Expansion". Checked against
 * float64 goldens of an independent reference (tests/family-golden.test.mjs). Names of keys and
 * tensors: docs/formats.md.
 *
 * H heads of K keys and V values. State per layer, float32: inputs of the convolutions of q, f, v
 * (if the model has them), [taps - 1][width], oldest first; S[H][K keys][V values].
 */
#include "fla.h"

typedef struct layer {
    sn_fla_layer frame;
    sn_fla_projection q, forget, v; /* (H K, D) twice, (H V, D) */
    const float *lower_bound;       /* [H K] or NULL: lambda */
    const float *out_norm;          /* [H V] */
    sn_matrix out;                  /* (D, H V) */
} layer;

typedef struct weights {
    sn_fla frame;
    float out_norm_eps;
    layer layers[];
} weights;

typedef struct work {
    sn_fla_work fla;
    const weights *W;
    size_t H, K, V;
    float *q, *k, *decay; /* [T][H K] */
    float *v, *y;         /* [T][H V] */
} work;

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_keys(sn_binder *b, void *to) {
    weights *W = to;
    W->out_norm_eps = 1e-5f;
    return sn_bind_epsilon(b, "attention.group_norm_epsilon", &W->out_norm_eps);
}

static sn_status bind_layer(sn_binder *b, const void *of, void *to) {
    const weights *W = of;
    layer *l = to;
    const uint64_t H = (uint64_t)W->frame.H;
    const uint64_t keys = H * (uint64_t)W->frame.K, values = H * (uint64_t)W->frame.V;
    SN_TRY(sn_fla_bind_projection(b, "attn_q", keys, &l->q));
    SN_TRY(sn_fla_bind_projection(b, "attn_forget", keys, &l->forget));
    SN_TRY(sn_fla_bind_projection(b, "attn_v", values, &l->v));
    SN_TRY(sn_bind_vector_or(b, "attn_lower_bound.weight", keys, &l->lower_bound));
    SN_TRY(sn_bind_vector(b, "attn_out_norm.weight", values, &l->out_norm));
    return sn_bind_matrix(b, "attn_output.weight", (uint64_t)b->model->n_embd, values, &l->out);
}

static void take_arrays(sn_fla_work *fla, const sn_model *m) {
    work *w = (work *)(void *)fla; /* its first member */
    const weights *W = w->W = m->weights;
    w->H = (size_t)W->frame.H;
    w->K = (size_t)W->frame.K;
    w->V = (size_t)W->frame.V;
    const size_t keys = w->H * w->K, values = w->H * w->V;
    sn_fla_take_arrays(fla, m, 2 * keys + values);
    w->q = sn_pass_take(&fla->pass, keys);
    w->k = sn_pass_take(&fla->pass, keys);
    w->decay = sn_pass_take(&fla->pass, keys);
    w->v = sn_pass_take(&fla->pass, values);
    w->y = sn_pass_take(&fla->pass, values);
}

static uint64_t layer_state(const void *of) {
    const weights *W = of;
    const uint64_t H = (uint64_t)W->frame.H, K = (uint64_t)W->frame.K, V = (uint64_t)W->frame.V;
    return sn_fla_history(&W->frame, H * (2 * K + V)) + H * K * V;
}

/* ---- computing ---------------------------------------------------------------------------- */

/* decay = lambda + (1 - lambda) sigmoid(f), as sigmoid(f) + lambda (1 - sigmoid(f));
 * k = 1 - decay. */
static void decays_and_keys(work *w, const layer *l) {
    const sn_pass *pass = &w->fla.pass;
    const sn_simd *simd = pass->simd;
    const size_t n = w->H * w->K;
    simd->sigmoid(w->decay, w->decay, pass->T * n);
    if (l->lower_bound) {
        simd->one_minus(w->k, w->decay, pass->T * n);
        for (size_t i = 0; i < pass->T * n; i += n)
            simd->mla(w->decay + i, w->k + i, l->lower_bound, w->decay + i, n);
    }
    simd->one_minus(w->k, w->decay, pass->T * n);
}

static void mix(sn_fla_work *fla, const void *of) {
    work *w = (work *)(void *)fla; /* its first member */
    const layer *l = of;
    const sn_pass *pass = &fla->pass;
    const size_t keys = w->H * w->K, values = w->H * w->V;
    sn_fla_project(fla, (sn_fla_projected[]){ { &l->q, w->q }, { &l->forget, w->decay },
                                              { &l->v, w->v } }, NULL, 0);
    sn_pass_show(pass, "f", w->decay, keys);
    sn_pass_show(pass, "v", w->v, values);
    pass->simd->silu(w->q, w->q, pass->T * keys);
    sn_pass_show(pass, "q", w->q, keys);
    decays_and_keys(w, l);
    sn_pass_show(pass, "decay", w->decay, keys);
    sn_pass_show(pass, "k", w->k, keys);
    sn_fla_attend(fla, &(sn_fla_attention){ .q = w->q, .k = w->k, .decay = w->decay, .v = w->v,
                                            .y = w->y, .G = w->H });
    sn_pass_show(pass, "y", w->y, values);
    sn_pass_rms(pass, w->y, w->y, l->out_norm, values, w->W->out_norm_eps);
    sn_pass_show(pass, "normed", w->y, values);
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

const sn_arch sn_arch_hgrn2 = { .name = "hgrn2", .bind = bind, .forward = forward };
