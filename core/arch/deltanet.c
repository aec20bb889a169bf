/*
 * deltanet.c: DeltaNet, Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule
 * over Sequence Length". Checked against float64 goldens of an independent reference and against
 * the explicit form of the recurrence (tests/family-golden.test.mjs, recurrence-forms.test.mjs).
 * Names of keys and tensors: docs/formats.md.
 *
 * H heads of K keys and V values. State per layer, float32: inputs of the convolutions of q, k, v
 * (if the model has them), [taps - 1][width], oldest first; S[H][K keys][V values].
 */
#include "delta.h"
#include "fla.h"

typedef struct layer {
    sn_fla_layer frame;
    sn_fla_projection q, k, v;  /* (H K, D) twice, (H V, D) */
    sn_matrix beta;             /* (H, D); none: beta is constant */
    sn_matrix gate, out;        /* (H V, D) or none, (D, H V) */
    const float *head_norm;     /* [V] */
} layer;

enum { SILU, RELU, ELU, IDENTITY }; /* as in the key */

typedef struct weights {
    sn_fla frame;
    int activation; /* of q and k */
    int by_sum;     /* q and k are divided by their sum, not by their L2 norm */
    float beta_scale;
    layer layers[];
} weights;

typedef struct work {
    sn_fla_work fla;
    const weights *W;
    size_t H, K, V;
    float *q, *k, *b;    /* [T][H K] */
    float *v, *y, *gate; /* [T][H V] */
    float *beta;         /* [T][H] */
} work;

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_keys(sn_binder *b, void *to) {
    weights *W = to;
    static const char *const activations[] = { "silu", "relu", "elu", "identity", NULL };
    static const char *const norms[] = { "l2", "sum", NULL };
    W->beta_scale = 1.0f;
    SN_TRY(sn_bind_choice(b, "qk_activation", activations, &W->activation));
    SN_TRY(sn_bind_choice(b, "qk_norm", norms, &W->by_sum));
    return sn_bind_epsilon(b, "beta_scale", &W->beta_scale);
}

static sn_status bind_layer(sn_binder *b, const void *of, void *to) {
    const weights *W = of;
    layer *l = to;
    const uint64_t D = (uint64_t)b->model->n_embd, H = (uint64_t)W->frame.H;
    const uint64_t keys = H * (uint64_t)W->frame.K, values = H * (uint64_t)W->frame.V;
    SN_TRY(sn_fla_bind_projection(b, "attn_q", keys, &l->q));
    SN_TRY(sn_fla_bind_projection(b, "attn_k", keys, &l->k));
    SN_TRY(sn_fla_bind_projection(b, "attn_v", values, &l->v));
    SN_TRY(sn_bind_matrix_or(b, "attn_beta.weight", H, D, &l->beta));
    SN_TRY(sn_bind_vector(b, "attn_head_norm.weight", (uint64_t)W->frame.V, &l->head_norm));
    SN_TRY(sn_bind_matrix_or(b, "attn_gate.weight", values, D, &l->gate));
    return sn_bind_matrix(b, "attn_output.weight", D, values, &l->out);
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
    w->b = sn_pass_take(&fla->pass, keys);
    w->v = sn_pass_take(&fla->pass, values);
    w->y = sn_pass_take(&fla->pass, values);
    w->gate = sn_pass_take(&fla->pass, values);
    w->beta = sn_pass_take(&fla->pass, w->H);
}

static uint64_t layer_state(const void *of) {
    const weights *W = of;
    const uint64_t H = (uint64_t)W->frame.H, K = (uint64_t)W->frame.K, V = (uint64_t)W->frame.V;
    return sn_fla_history(&W->frame, H * (2 * K + V)) + H * K * V;
}

/* ---- computing ---------------------------------------------------------------------------- */

static void activate(const sn_pass *pass, int which, float *x, size_t width) {
    switch (which) {
    case SILU: sn_pass_map(pass, pass->simd->silu, x, width); break;
    case RELU: sn_pass_map(pass, pass->simd->relu, x, width); break;
    case ELU: sn_pass_map(pass, pass->simd->elu_plus_one, x, width); break;
    default: break; /* IDENTITY */
    }
}

static void strengths(work *w, const layer *l) {
    const sn_pass *pass = &w->fla.pass;
    const size_t n = pass->T * w->H;
    if (l->beta.rows) {
        sn_delta_strength(pass, w->beta, w->W->beta_scale, n);
        return;
    }
    for (size_t i = 0; i < n; i++) w->beta[i] = w->W->beta_scale;
}

static void mix(sn_fla_work *fla, const void *of) {
    work *w = (work *)(void *)fla; /* its first member */
    const layer *l = of;
    const sn_pass *pass = &fla->pass;
    const size_t H = w->H, K = w->K, V = w->V;
    const sn_product others[] = { { &l->beta, w->beta, fla->h }, { &l->gate, w->gate, fla->h } };
    sn_fla_project(fla, (sn_fla_projected[]){ { &l->q, w->q }, { &l->k, w->k }, { &l->v, w->v } },
                   others, 2);
    activate(pass, w->W->activation, w->q, H * K);
    activate(pass, w->W->activation, w->k, H * K);
    sn_pass_map(pass, pass->simd->silu, w->v, H * V);
    sn_delta_normalize(pass, w->q, w->k, H, K, w->W->by_sum);
    strengths(w, l);
    sn_delta_rule(&(sn_delta){ .pass = pass, .H = H, .Hv = H, .K = K, .V = V,
                               .state = fla->history, .q = w->q, .k = w->k, .beta = w->beta,
                               .v = w->v, .b = w->b, .y = w->y });
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

const sn_arch sn_arch_deltanet = { .name = "deltanet", .bind = bind, .forward = forward };
