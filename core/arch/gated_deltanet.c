/*
 * gated_deltanet.c: Yang, Kautz and Hatamizadeh 2025, "Gated Delta Networks: Improving Mamba2 with
 * Delta Rule". Checked against float64 goldens of an independent reference
 * (tests/family-golden.test.mjs). Names of keys and tensors: docs/formats.md.
 *
 * H heads of K keys, Hv heads of V values; value head i uses q and k of head i / (Hv / H).
 * State per layer, float32: inputs of the convolutions of q, k, v (if the model has them),
 * [taps - 1][width], oldest first; S[Hv][K keys][V values].
 */
#include "delta.h"
#include "fla.h"

typedef struct layer {
    sn_fla_layer frame;
    sn_fla_projection q, k, v;    /* (H K, D) twice, (Hv V, D) */
    sn_matrix alpha, beta;        /* (Hv, D) */
    const float *A, *dt_bias;     /* [Hv]; A < 0 */
    sn_matrix gate, out;          /* (Hv V, D) or none, (D, Hv V) */
    const float *head_norm;       /* [V] */
} layer;

typedef struct weights {
    sn_fla frame;
    int32_t Hv;
    float beta_scale;
    layer layers[];
} weights;

typedef struct work {
    sn_fla_work fla;
    const weights *W;
    size_t H, Hv, K, V;
    float *q, *k;         /* [T][H K] */
    float *u, *b;         /* [T][Hv K] */
    float *v, *y, *gate;  /* [T][Hv V] */
    float *alpha, *beta;  /* [T][Hv] */
} work;

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_keys(sn_binder *b, void *to) {
    weights *W = to;
    W->beta_scale = 1.0f;
    W->Hv = W->frame.H;
    SN_TRY(sn_bind_size_or(b, "attention.head_count_v", 1 << 16, &W->Hv));
    if (W->Hv % W->frame.H)
        return sn_bind_fail(b, "attention.head_count_v", "is no multiple of the heads");
    return sn_bind_epsilon(b, "beta_scale", &W->beta_scale);
}

static sn_status bind_layer(sn_binder *b, const void *of, void *to) {
    const weights *W = of;
    layer *l = to;
    const uint64_t D = (uint64_t)b->model->n_embd, Hv = (uint64_t)W->Hv;
    const uint64_t keys = (uint64_t)W->frame.H * (uint64_t)W->frame.K;
    const uint64_t values = Hv * (uint64_t)W->frame.V;
    SN_TRY(sn_fla_bind_projection(b, "attn_q", keys, &l->q));
    SN_TRY(sn_fla_bind_projection(b, "attn_k", keys, &l->k));
    SN_TRY(sn_fla_bind_projection(b, "attn_v", values, &l->v));
    SN_TRY(sn_bind_matrix(b, "attn_alpha.weight", Hv, D, &l->alpha));
    SN_TRY(sn_bind_matrix(b, "attn_beta.weight", Hv, D, &l->beta));
    SN_TRY(sn_bind_vector(b, "ssm_a", Hv, &l->A));
    SN_TRY(sn_bind_vector(b, "ssm_dt.bias", Hv, &l->dt_bias));
    SN_TRY(sn_bind_vector(b, "attn_head_norm.weight", (uint64_t)W->frame.V, &l->head_norm));
    SN_TRY(sn_bind_matrix_or(b, "attn_gate.weight", values, D, &l->gate));
    return sn_bind_matrix(b, "attn_output.weight", D, values, &l->out);
}

static void take_arrays(sn_fla_work *fla, const sn_model *m) {
    work *w = (work *)(void *)fla; /* its first member */
    const weights *W = w->W = m->weights;
    w->H = (size_t)W->frame.H;
    w->Hv = (size_t)W->Hv;
    w->K = (size_t)W->frame.K;
    w->V = (size_t)W->frame.V;
    const size_t keys = w->H * w->K, values = w->Hv * w->V;
    sn_fla_take_arrays(fla, m, 2 * keys + values);
    w->q = sn_pass_take(&fla->pass, keys);
    w->k = sn_pass_take(&fla->pass, keys);
    w->u = sn_pass_take(&fla->pass, w->Hv * w->K);
    w->b = sn_pass_take(&fla->pass, w->Hv * w->K);
    w->v = sn_pass_take(&fla->pass, values);
    w->y = sn_pass_take(&fla->pass, values);
    w->gate = sn_pass_take(&fla->pass, values);
    w->alpha = sn_pass_take(&fla->pass, w->Hv);
    w->beta = sn_pass_take(&fla->pass, w->Hv);
}

static uint64_t layer_state(const void *of) {
    const weights *W = of;
    const uint64_t H = (uint64_t)W->frame.H, Hv = (uint64_t)W->Hv;
    const uint64_t K = (uint64_t)W->frame.K, V = (uint64_t)W->frame.V;
    return sn_fla_history(&W->frame, 2 * H * K + Hv * V) + Hv * K * V;
}

/* ---- computing ---------------------------------------------------------------------------- */

/* alpha = exp(A softplus(W_a h + dt_bias)); beta = sigmoid(W_b h), scaled; both hold W h before */
static void decays_and_strengths(work *w, const layer *l) {
    const sn_pass *pass = &w->fla.pass;
    const sn_simd *simd = pass->simd;
    const size_t n = pass->T * w->Hv;
    sn_pass_bias(pass, w->alpha, l->dt_bias, w->Hv);
    simd->softplus(w->alpha, w->alpha, n);
    for (size_t i = 0; i < n; i += w->Hv) simd->mul(w->alpha + i, w->alpha + i, l->A, w->Hv);
    simd->exp(w->alpha, w->alpha, n);
    sn_delta_strength(pass, w->beta, w->W->beta_scale, n);
}

static void mix(sn_fla_work *fla, const void *of) {
    work *w = (work *)(void *)fla; /* its first member */
    const layer *l = of;
    const sn_pass *pass = &fla->pass;
    const size_t H = w->H, Hv = w->Hv, K = w->K, V = w->V;
    const sn_product others[] = { { &l->alpha, w->alpha, fla->h }, { &l->beta, w->beta, fla->h },
                                  { &l->gate, w->gate, fla->h } };
    sn_fla_project(fla, (sn_fla_projected[]){ { &l->q, w->q }, { &l->k, w->k }, { &l->v, w->v } },
                   others, 3);
    sn_pass_map(pass, pass->simd->silu, w->q, H * K);
    sn_pass_map(pass, pass->simd->silu, w->k, H * K);
    sn_pass_map(pass, pass->simd->silu, w->v, Hv * V);
    sn_delta_normalize(pass, w->q, w->k, H, K, false);
    decays_and_strengths(w, l);
    sn_delta_rule(&(sn_delta){ .pass = pass, .H = H, .Hv = Hv, .K = K, .V = V,
                               .state = fla->history, .q = w->q, .k = w->k, .beta = w->beta,
                               .alpha = w->alpha, .v = w->v, .u = w->u, .b = w->b, .y = w->y });
    sn_fla_norm_and_gate(fla, w->y, l->head_norm, V, Hv * V, pass->model->norm_eps,
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

const sn_arch sn_arch_gated_deltanet = { .name = "gated-deltanet", .bind = bind,
                                         .forward = forward };
