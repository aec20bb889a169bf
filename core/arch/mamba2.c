/*
 * mamba2.c: Mamba-2, Dao and Gu 2024, "Transformers are SSMs". Checked against float64 goldens of
 * an independent reference (tests/family-golden.test.mjs). Tensor names are those of GGUF files.
 *
 * D model width, E inner width, H heads of P = E / H channels, N states a channel, G groups of
 * heads that share B and C, K taps; X = E + 2 G N channels go through the convolution.
 *
 * State per layer, float32: conv[K - 1][X], inputs of the convolution, oldest first;
 * S[H][N states][P channels] (state-major).
 */
#include "bind.h"
#include "pass.h"

typedef struct layer {
    const float *norm;       /* [D] */
    sn_matrix in, out;       /* (2E + 2GN + H, D): z, x, B, C, dt; (D, E) */
    const float *in_bias, *out_bias;    /* NULL: none */
    const float *conv, *conv_bias;      /* [K][X], [X] or NULL */
    const float *dt_bias, *A, *skip;    /* [H]; A < 0; skip is the paper's D */
    const float *gated_norm;            /* [E] */
} layer;

typedef struct weights {
    sn_rows embedding;
    sn_matrix head;
    const float *norm_f;
    int32_t E, N, H, G, K;
    bool clamps_dt;
    float dt_min, dt_max;
    layer layers[];
} weights;

typedef struct work {
    sn_pass pass;
    const weights *W;
    size_t E, N, H, G, P, X;
    size_t in_width; /* 2E + 2GN + H */
    float *h;        /* [T][D] */
    float *in;       /* [T][in_width] */
    float *u;        /* [T][X], after the convolution: x, B, C */
    float *dt, *decay; /* [T][H] */
    float *dx, *y;   /* [T][E] */
    const layer *layer;
} work;

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_keys(sn_binder *b, weights *W) {
    sn_model *m = b->model;
    m->norm_eps = 1e-5f;
    W->G = 1;
    SN_TRY(sn_bind_size(b, "ssm.inner_size", 1 << 22, &W->E));
    SN_TRY(sn_bind_size(b, "ssm.state_size", 1 << 14, &W->N));
    SN_TRY(sn_bind_size(b, "ssm.time_step_rank", 1 << 16, &W->H)); /* the heads, so named */
    SN_TRY(sn_bind_size_or(b, "ssm.group_count", 1 << 16, &W->G));
    SN_TRY(sn_bind_size(b, "ssm.conv_kernel", SN_MAX_TAPS, &W->K));
    SN_TRY(sn_bind_epsilon(b, "attention.layer_norm_rms_epsilon", &m->norm_eps));
    SN_TRY(sn_bind_limits(b, "sunnynet.dt_min", "sunnynet.dt_max", &W->clamps_dt, &W->dt_min,
                          &W->dt_max));
    if (W->E % W->H) return sn_bind_fail(b, "ssm.time_step_rank", "does not divide the inner size");
    if (W->H % W->G) return sn_bind_fail(b, "ssm.group_count", "does not divide the heads");
    m->n_heads = W->H;
    m->head_size = W->E / W->H;
    return SN_OK;
}

static sn_status bind_layer(sn_binder *b, const weights *W, layer *l) {
    const uint64_t D = (uint64_t)b->model->n_embd, E = (uint64_t)W->E, H = (uint64_t)W->H;
    const uint64_t X = E + 2 * (uint64_t)W->G * (uint64_t)W->N;
    SN_TRY(sn_bind_vector(b, "attn_norm.weight", D, &l->norm));
    SN_TRY(sn_bind_matrix(b, "ssm_in.weight", E + X + H, D, &l->in));
    SN_TRY(sn_bind_vector_or(b, "ssm_in.bias", E + X + H, &l->in_bias));
    SN_TRY(sn_bind_transposed(b, "ssm_conv1d.weight", X, (uint64_t)W->K, &l->conv));
    SN_TRY(sn_bind_vector_or(b, "ssm_conv1d.bias", X, &l->conv_bias));
    SN_TRY(sn_bind_vector(b, "ssm_dt.bias", H, &l->dt_bias));
    SN_TRY(sn_bind_vector(b, "ssm_a", H, &l->A));
    SN_TRY(sn_bind_vector(b, "ssm_d", H, &l->skip));
    SN_TRY(sn_bind_vector(b, "ssm_norm.weight", E, &l->gated_norm));
    SN_TRY(sn_bind_matrix(b, "ssm_out.weight", D, E, &l->out));
    return sn_bind_vector_or(b, "ssm_out.bias", D, &l->out_bias);
}

static void take_arrays(work *w, const sn_model *m) {
    const weights *W = w->W = m->weights;
    w->E = (size_t)W->E;
    w->N = (size_t)W->N;
    w->H = (size_t)W->H;
    w->G = (size_t)W->G;
    w->P = w->E / w->H;
    w->X = w->E + 2 * w->G * w->N;
    w->in_width = w->E + w->X + w->H;
    w->h = sn_pass_take(&w->pass, (size_t)m->n_embd);
    w->in = sn_pass_take(&w->pass, w->in_width);
    w->u = sn_pass_take(&w->pass, w->X);
    w->dt = sn_pass_take(&w->pass, w->H);
    w->decay = sn_pass_take(&w->pass, w->H);
    w->dx = sn_pass_take(&w->pass, w->E);
    w->y = sn_pass_take(&w->pass, w->E);
}

static uint64_t layer_state_floats(const weights *W) {
    const uint64_t E = (uint64_t)W->E, N = (uint64_t)W->N;
    return (uint64_t)(W->K - 1) * (E + 2 * (uint64_t)W->G * N) + E * N;
}

static sn_status bind(sn_loader *loader, sn_model *m) {
    sn_binder b = sn_binder_of(loader, m);
    SN_TRY(sn_bind_common(&b));
    SN_TRY(sn_bind_vocabulary(&b));
    SN_TRY(sn_loader_weights(loader, sizeof(weights) + (size_t)m->n_layers * sizeof(layer)));
    weights *W = m->weights;
    SN_TRY(bind_keys(&b, W));
    SN_TRY(sn_bind_ends(&b, &W->embedding, &W->head));
    SN_TRY(sn_bind_vector(&b, "output_norm.weight", (uint64_t)m->n_embd, &W->norm_f));
    for (b.layer = 0; b.layer < m->n_layers; b.layer++)
        SN_TRY(bind_layer(&b, W, &W->layers[b.layer]));
    SN_TRY(sn_bind_state(&b, layer_state_floats(W)));
    work w = { .pass = { .taken = (size_t)m->n_embd } };
    take_arrays(&w, m);
    m->scratch_floats = w.pass.taken;
    return SN_OK;
}

/* ---- computing ---------------------------------------------------------------------------- */

/* dt = clamp(softplus(dt + dt_bias)); decay = exp(dt A); dx = dt x */
static void discretise(void *context, size_t begin, size_t end) {
    const work *w = context;
    const sn_simd *simd = w->pass.simd;
    const layer *l = w->layer;
    const size_t H = w->H, P = w->P;
    for (size_t t = begin; t < end; t++) {
        float *dt = w->dt + t * H, *decay = w->decay + t * H;
        simd->add(dt, w->in + t * w->in_width + w->E + w->X, l->dt_bias, H);
        simd->softplus(dt, dt, H);
        if (w->W->clamps_dt) simd->clamp(dt, dt, w->W->dt_min, w->W->dt_max, H);
        simd->mul(decay, dt, l->A, H);
        simd->exp(decay, decay, H);
        for (size_t h = 0; h < H; h++)
            simd->scale(w->dx + t * w->E + h * P, dt[h], w->u + t * w->X + h * P, P);
    }
}

/* Heads [begin, end) of all segments: S <- decay S + B dx^T; y = C S + skip x. */
static void recur_heads(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t X = w->X, E = w->E, P = w->P, N = w->N;
    for (size_t i = begin; i < end; i++) {
        const size_t s = i / w->H, h = i % w->H, g = h / (w->H / w->G);
        const size_t first = w->pass.segments[s].first, count = w->pass.segments[s].count;
        const float *u = w->u + first * X;
        float *y = w->y + first * E + h * P;
        float *S = sn_pass_state(&w->pass, s) + (size_t)(w->W->K - 1) * X + h * N * P;
        w->pass.simd->outer_scan(&(sn_matrix_scan){
            .y = y, .y_stride = E, .S = S, .row = P, .n_keys = N, .n_values = P,
            .n_tokens = count, .decay = SN_DECAY_HEAD, .d = { w->decay + first * w->H + h, w->H },
            .k = { u + E + g * N, X }, .r = { u + E + (w->G + g) * N, X },
            .v = { w->dx + first * E + h * P, E } });
        for (size_t t = 0; t < count; t++)
            w->pass.simd->axpy(y + t * E, w->layer->skip[h], u + t * X + h * P, P);
    }
}

/* y = RMSNorm per group(y silu(z)): the gate comes first. */
static void gate(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t E = w->E, width = E / w->G;
    for (size_t t = begin; t < end; t++) {
        float *y = w->y + t * E;
        w->pass.simd->mul_silu(y, y, w->in + t * w->in_width, E);
        for (size_t c = 0; c < E; c += width)
            w->pass.simd->rms_norm(y + c, y + c, w->layer->gated_norm + c, width,
                                   w->pass.model->norm_eps);
    }
}

static void mix(work *w) {
    const layer *l = w->layer;
    const sn_pass *pass = &w->pass;
    sn_pass_rms(pass, w->h, pass->x, l->norm, pass->D, pass->model->norm_eps);
    sn_pass_affine(pass, &l->in, l->in_bias, w->in, w->h);
    sn_pass_conv(pass, w->u, w->in + w->E, w->in_width, l->conv, l->conv_bias, (size_t)w->W->K,
                 w->X, 0);
    sn_pass_map(pass, pass->simd->silu, w->u, w->X);
    sn_pass_tokens(pass, discretise, w);
    sn_run(pass->exec, pass->n_segments * w->H, recur_heads, w);
    sn_pass_tokens(pass, gate, w);
    sn_pass_affine(pass, &l->out, l->out_bias, w->h, w->y);
    sn_pass_add(pass, w->h);
}

static void forward(const sn_model *m, sn_exec *exec, const int32_t *tokens, size_t n_tokens,
                    const sn_segment *segments, size_t n_segments, float *logits,
                    size_t first_logits) {
    const weights *W = m->weights;
    work w = { .pass = sn_pass_begin(m, exec, &W->embedding, tokens, n_tokens, segments,
                                     n_segments) };
    take_arrays(&w, m);
    for (int32_t l = sn_pass_first_layer(&w.pass); l < sn_pass_end_layer(&w.pass); l++) {
        w.layer = &W->layers[l];
        w.pass.state_offset = (size_t)l * (size_t)layer_state_floats(W);
        mix(&w);
    }
    if (logits) sn_pass_rms(&w.pass, w.h, w.pass.x, W->norm_f, w.pass.D, m->norm_eps);
    sn_pass_end(&w.pass, &W->head, w.h, logits, first_logits);
}

const sn_arch sn_arch_mamba2 = { .name = "mamba2", .bind = bind, .forward = forward };
