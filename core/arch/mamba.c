/*
 * mamba.c: Mamba (S6), Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective
 * State Spaces". Checked against float64 goldens of an independent reference
 * (tests/family-golden.test.mjs). Tensor names are those of GGUF files.
 *
 * D model width, E inner width, N states a channel, R rank of the time step, K taps.
 *
 * State per layer, float32: conv[K - 1][E], inputs of the convolution, oldest first;
 * S[N states][E channels] (state-major).
 */
#include "bind.h"
#include "pass.h"

typedef struct layer {
    const float *norm;                  /* [D] */
    sn_matrix in, x, dt, out;           /* (2E, D): x, z; (R + 2N, E); (E, R); (D, E) */
    const float *in_bias, *out_bias;    /* NULL: none */
    const float *conv, *conv_bias;      /* [K][E], [E] or NULL */
    const float *dt_bias, *A, *skip;    /* [E]; A < 0 is [N][E]; skip is the paper's D */
} layer;

typedef struct weights {
    sn_rows embedding;
    sn_matrix head;
    const float *norm_f;
    int32_t E, N, R, K;
    layer layers[];
} weights;

typedef struct work {
    sn_pass pass;
    const weights *W;
    size_t E, N, R;
    float *h;          /* [T][D] */
    float *in;         /* [T][2E]: x, z */
    float *u, *dt, *dx, *y; /* [T][E]; u after the convolution */
    float *xbc;        /* [T][R + 2N]: delta, B, C */
    float *delta;      /* [T][R] */
    const layer *layer;
} work;

/* ---- loading ----------------------------------------------------------------------------- */

/* FalconMamba's and Jamba's extra norms of delta, B and C. */
static sn_status refuse_norms(sn_binder *b) {
    bool norms = false;
    SN_TRY(sn_bind_flag(b, "ssm.dt_b_c_rms", &norms));
    if (!norms) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: key '%s': norms of dt, B and C are not supported",
                   sn_gguf_name(sn_loader_gguf(b->loader)), b->name);
}

static sn_status bind_keys(sn_binder *b, weights *W) {
    sn_model *m = b->model;
    m->norm_eps = 1e-5f;
    SN_TRY(sn_bind_size(b, "ssm.inner_size", 1 << 22, &W->E));
    SN_TRY(sn_bind_size(b, "ssm.state_size", 1 << 14, &W->N));
    SN_TRY(sn_bind_size(b, "ssm.time_step_rank", 1 << 20, &W->R));
    SN_TRY(sn_bind_size(b, "ssm.conv_kernel", SN_MAX_TAPS, &W->K));
    SN_TRY(sn_bind_epsilon(b, "attention.layer_norm_rms_epsilon", &m->norm_eps));
    m->n_heads = W->E; /* each channel is a head of its own */
    m->head_size = 1;
    return refuse_norms(b);
}

static sn_status bind_layer(sn_binder *b, const weights *W, layer *l) {
    const uint64_t D = (uint64_t)b->model->n_embd, E = (uint64_t)W->E, N = (uint64_t)W->N;
    const uint64_t R = (uint64_t)W->R;
    SN_TRY(sn_bind_vector(b, "attn_norm.weight", D, &l->norm));
    SN_TRY(sn_bind_matrix(b, "ssm_in.weight", 2 * E, D, &l->in));
    SN_TRY(sn_bind_vector_or(b, "ssm_in.bias", 2 * E, &l->in_bias));
    SN_TRY(sn_bind_transposed(b, "ssm_conv1d.weight", E, (uint64_t)W->K, &l->conv));
    SN_TRY(sn_bind_vector_or(b, "ssm_conv1d.bias", E, &l->conv_bias));
    SN_TRY(sn_bind_matrix(b, "ssm_x.weight", R + 2 * N, E, &l->x));
    SN_TRY(sn_bind_matrix(b, "ssm_dt.weight", E, R, &l->dt));
    SN_TRY(sn_bind_vector(b, "ssm_dt.bias", E, &l->dt_bias));
    SN_TRY(sn_bind_transposed(b, "ssm_a", E, N, &l->A));
    SN_TRY(sn_bind_vector(b, "ssm_d", E, &l->skip));
    SN_TRY(sn_bind_matrix(b, "ssm_out.weight", D, E, &l->out));
    return sn_bind_vector_or(b, "ssm_out.bias", D, &l->out_bias);
}

static void take_arrays(work *w, const sn_model *m) {
    const weights *W = w->W = m->weights;
    w->E = (size_t)W->E;
    w->N = (size_t)W->N;
    w->R = (size_t)W->R;
    w->h = sn_pass_take(&w->pass, (size_t)m->n_embd);
    w->in = sn_pass_take(&w->pass, 2 * w->E);
    w->u = sn_pass_take(&w->pass, w->E);
    w->dt = sn_pass_take(&w->pass, w->E);
    w->dx = sn_pass_take(&w->pass, w->E);
    w->y = sn_pass_take(&w->pass, w->E);
    w->xbc = sn_pass_take(&w->pass, w->R + 2 * w->N);
    w->delta = sn_pass_take(&w->pass, w->R);
}

static uint64_t layer_state_floats(const weights *W) {
    return (uint64_t)W->E * (uint64_t)(W->K - 1 + W->N);
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

/* dt = softplus(W_dt delta + dt_bias); dx = dt u */
static void step_sizes(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t o = begin * w->E, n = (end - begin) * w->E;
    w->pass.simd->softplus(w->dt + o, w->dt + o, n);
    w->pass.simd->mul(w->dx + o, w->dt + o, w->u + o, n);
}

static void discretise(work *w) {
    const sn_pass *pass = &w->pass;
    const size_t width = w->R + 2 * w->N;
    for (size_t t = 0; t < pass->T; t++)
        for (size_t i = 0; i < w->R; i++) w->delta[t * w->R + i] = w->xbc[t * width + i];
    sn_pass_affine(pass, &w->layer->dt, w->layer->dt_bias, w->dt, w->delta);
    sn_pass_tokens(pass, step_sizes, w);
}

#define CHANNELS 64 /* of one piece of work */

/* Pieces [begin, end) of all segments: S <- exp(dt A) S + dx B; y = S C + skip u. */
static void recur_channels(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t E = w->E, N = w->N, width = w->R + 2 * N;
    const size_t pieces = (E + CHANNELS - 1) / CHANNELS;
    for (size_t i = begin; i < end; i++) {
        const size_t s = i / pieces, c = i % pieces * CHANNELS;
        const size_t first = w->pass.segments[s].first, count = w->pass.segments[s].count;
        const size_t n = E - c < CHANNELS ? E - c : CHANNELS, o = first * E + c;
        const float *xbc = w->xbc + first * width;
        float *S = sn_pass_state(&w->pass, s) + (size_t)(w->W->K - 1) * E + c;
        w->pass.simd->selective_scan(&(sn_selective_scan){
            .y = w->y + o, .y_stride = E, .S = S, .A = w->layer->A + c, .row = E, .n_states = N,
            .n_channels = n, .n_tokens = count, .dt = { w->dt + o, E }, .x = { w->dx + o, E },
            .B = { xbc + w->R, width }, .C = { xbc + w->R + N, width } });
        for (size_t t = 0; t < count; t++) {
            float *y = w->y + o + t * E;
            w->pass.simd->mla(y, w->layer->skip + c, w->u + o + t * E, y, n);
        }
    }
}

/* y = y silu(z) */
static void gate(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t E = w->E;
    for (size_t t = begin; t < end; t++)
        w->pass.simd->mul_silu(w->y + t * E, w->y + t * E, w->in + (2 * t + 1) * E, E);
}

static void mix(work *w) {
    const layer *l = w->layer;
    const sn_pass *pass = &w->pass;
    const size_t E = w->E;
    sn_pass_rms(pass, w->h, pass->x, l->norm, pass->D, pass->model->norm_eps);
    sn_pass_affine(pass, &l->in, l->in_bias, w->in, w->h);
    sn_pass_conv(pass, w->u, w->in, 2 * E, l->conv, l->conv_bias, (size_t)w->W->K, E, 0);
    sn_pass_map(pass, pass->simd->silu, w->u, E);
    sn_pass_linear(pass, &l->x, w->xbc, w->u);
    discretise(w);
    sn_run(pass->exec, pass->n_segments * ((E + CHANNELS - 1) / CHANNELS),
                recur_channels, w);
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
    for (int32_t l = 0; l < m->n_layers; l++) {
        w.layer = &W->layers[l];
        w.pass.state_offset = (size_t)l * (size_t)layer_state_floats(W);
        mix(&w);
    }
    if (logits) sn_pass_rms(&w.pass, w.h, w.pass.x, W->norm_f, w.pass.D, m->norm_eps);
    sn_pass_end(&w.pass, &W->head, w.h, logits, first_logits);
}

const sn_arch sn_arch_mamba = { .name = "mamba", .bind = bind, .forward = forward };
