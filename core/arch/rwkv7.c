/*
 * rwkv7.c: RWKV-7 "Goose" (x070), Peng et al. 2025, "RWKV-7 'Goose' with Expressive Dynamic
 * State Evolution". Checked against float64 goldens of an independent reference and against
 * llama.cpp (tests/golden.test.mjs). Tensor names are those of GGUF files; capital letters are
 * matrices, D model width, N head size, H = D / N heads, F channel-mix width.
 *
 * State per layer, float32: shift_a[D], shift_f[D], S[H][N keys][N values] (key-major).
 */
#include "bind.h"
#include "pass.h"

#include <stdio.h>
#include <string.h>

#define GROUP_NORM_EPS 64e-5f /* unless the file says otherwise: of every published RWKV-7 */
#define KEY_NORM_FLOOR 1e-12f

/* x -> B f(A x) + bias: A (rank, D), B (D, rank) */
typedef struct low_rank {
    sn_matrix A, B;
    const float *bias; /* NULL for the gate */
} low_rank;

enum { MIX_R, MIX_W, MIX_K, MIX_V, MIX_A, MIX_G, MIX_COUNT }; /* order in time_mix_lerp_fused */

typedef struct layer {
    sn_norm ln1, ln2, ln_x;
    const float *mu;            /* [MIX_COUNT][D] */
    sn_matrix R, K, V, O;       /* (D, D) */
    low_rank w, a, v, g;        /* decay, in-context rate, value residual, gate */
    const float *k_k, *k_a, *r_k;
    const float *mu_f;
    sn_matrix F_K, F_V;         /* (F, D), (D, F) */
} layer;

typedef struct weights {
    sn_rows embedding;
    sn_norm ln0, ln_out;
    sn_matrix head;
    float group_norm_eps;
    layer layers[];
} weights;

/* One forward pass; arrays are [T][D] unless noted. */
typedef struct work {
    sn_pass pass;
    size_t D, N, H;
    float *xn, *mixed[MIX_COUNT], *r, *w, *k, *v, *a, *g, *kappa, *b, *y, *v_first;
    float *rank_w, *rank_a, *rank_v, *rank_g; /* [T][rank] */
    float *hidden;                            /* [T][F] */
    const layer *layer;
} work;

/* ---- loading ----------------------------------------------------------------------------- */

/* The rank is the file's; both factors must agree on it. `letter` is w, a, v or g. */
static sn_status bind_low_rank(sn_binder *b, char letter, bool has_bias, low_rank *out) {
    const uint64_t D = (uint64_t)b->model->n_embd;
    uint64_t rank, k;
    char tensor[32];
    if (has_bias) {
        snprintf(tensor, sizeof tensor, "time_mix_%c0.weight", letter);
        SN_TRY(sn_bind_vector(b, tensor, D, &out->bias));
    }
    snprintf(tensor, sizeof tensor, "time_mix_%c1.weight", letter);
    SN_TRY(sn_bind_shape(b, tensor, &rank, &k));
    SN_TRY(sn_bind_matrix(b, tensor, rank, D, &out->A));
    snprintf(tensor, sizeof tensor, "time_mix_%c2.weight", letter);
    return sn_bind_matrix(b, tensor, D, rank, &out->B);
}

static sn_status bind_layer(sn_binder *b, layer *l) {
    const uint64_t D = (uint64_t)b->model->n_embd, F = (uint64_t)b->model->n_ffn;
    SN_TRY(sn_bind_norm(b, "attn_norm", D, &l->ln1));
    SN_TRY(sn_bind_norm(b, "attn_norm_2", D, &l->ln2));
    SN_TRY(sn_bind_norm(b, "time_mix_ln", D, &l->ln_x));
    SN_TRY(sn_bind_vector(b, "time_mix_lerp_fused.weight", MIX_COUNT * D, &l->mu));
    SN_TRY(sn_bind_matrix(b, "time_mix_receptance.weight", D, D, &l->R));
    SN_TRY(sn_bind_matrix(b, "time_mix_key.weight", D, D, &l->K));
    SN_TRY(sn_bind_matrix(b, "time_mix_value.weight", D, D, &l->V));
    SN_TRY(sn_bind_matrix(b, "time_mix_output.weight", D, D, &l->O));
    SN_TRY(bind_low_rank(b, 'w', true, &l->w));
    SN_TRY(bind_low_rank(b, 'a', true, &l->a));
    if (b->layer > 0) /* layer 0's are dummies, if present at all */
        SN_TRY(bind_low_rank(b, 'v', true, &l->v));
    SN_TRY(bind_low_rank(b, 'g', false, &l->g));
    SN_TRY(sn_bind_vector(b, "time_mix_k_k.weight", D, &l->k_k));
    SN_TRY(sn_bind_vector(b, "time_mix_k_a.weight", D, &l->k_a));
    SN_TRY(sn_bind_vector(b, "time_mix_r_k.weight", D, &l->r_k));
    SN_TRY(sn_bind_vector(b, "channel_mix_lerp_k.weight", D, &l->mu_f));
    SN_TRY(sn_bind_matrix(b, "channel_mix_key.weight", F, D, &l->F_K));
    return sn_bind_matrix(b, "channel_mix_value.weight", D, F, &l->F_V);
}

static sn_status bind_keys(sn_binder *b) {
    sn_model *m = b->model;
    int32_t shifts = 2;
    m->norm_eps = 1e-5f;
    SN_TRY(sn_bind_common(b));
    SN_TRY(sn_bind_size(b, "feed_forward_length", 1 << 22, &m->n_ffn));
    SN_TRY(sn_bind_size(b, "wkv.head_size", 1 << 16, &m->head_size));
    SN_TRY(sn_bind_epsilon(b, "attention.layer_norm_epsilon", &m->norm_eps));
    SN_TRY(sn_bind_size_or(b, "token_shift_count", 1 << 16, &shifts));
    if (shifts != 2)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: key '%s': %d, only 2 is supported",
                       sn_gguf_name(sn_loader_gguf(b->loader)), b->name, (int)shifts);
    if (m->n_embd % m->head_size)
        return sn_fail(SN_E_FORMAT, "%.300s: key 'rwkv7.wkv.head_size': %d does not divide the "
                       "model width %d", sn_gguf_name(sn_loader_gguf(b->loader)),
                       (int)m->head_size, (int)m->n_embd);
    m->n_heads = m->n_embd / m->head_size;
    return SN_OK;
}

static uint64_t layer_state_floats(const sn_model *m) {
    return (uint64_t)m->n_embd * (2 + (uint64_t)m->head_size);
}

static size_t widest(const sn_model *m, size_t part) {
    const weights *W = m->weights;
    size_t rank = 0;
    for (int32_t l = 0; l < m->n_layers; l++) {
        const low_rank *parts[] = { &W->layers[l].w, &W->layers[l].a, &W->layers[l].v,
                                    &W->layers[l].g };
        if (parts[part]->A.rows > rank) rank = parts[part]->A.rows;
    }
    return rank;
}

static void take_arrays(work *w, const sn_model *m) {
    float **arrays[] = { &w->xn, &w->r, &w->w, &w->k, &w->v, &w->a, &w->g, &w->kappa, &w->b,
                         &w->y, &w->v_first };
    float **ranks[] = { &w->rank_w, &w->rank_a, &w->rank_v, &w->rank_g };
    w->D = (size_t)m->n_embd;
    w->N = (size_t)m->head_size;
    w->H = (size_t)m->n_heads;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        *arrays[i] = sn_pass_take(&w->pass, w->D);
    for (int i = 0; i < MIX_COUNT; i++) w->mixed[i] = sn_pass_take(&w->pass, w->D);
    for (size_t i = 0; i < 4; i++) *ranks[i] = sn_pass_take(&w->pass, widest(m, i));
    w->hidden = sn_pass_take(&w->pass, (size_t)m->n_ffn);
}

static sn_status bind(sn_loader *loader, sn_model *m) {
    sn_binder b = sn_binder_of(loader, m);
    SN_TRY(bind_keys(&b));
    const uint64_t D = (uint64_t)m->n_embd;
    SN_TRY(sn_bind_vocabulary(&b));
    SN_TRY(sn_loader_weights(loader, sizeof(weights) + (size_t)m->n_layers * sizeof(layer)));
    weights *W = m->weights;
    W->group_norm_eps = GROUP_NORM_EPS;
    SN_TRY(sn_bind_epsilon(&b, "sunnynet.group_norm_epsilon", &W->group_norm_eps));
    /* The order of binding makes the fingerprint of saved states. The head is never tied. */
    SN_TRY(sn_loader_rows(loader, "token_embd.weight", (uint64_t)m->vocab, D, &W->embedding));
    SN_TRY(sn_bind_norm(&b, "token_embd_norm", D, &W->ln0));
    SN_TRY(sn_bind_norm(&b, "output_norm", D, &W->ln_out));
    SN_TRY(sn_loader_matrix(loader, "output.weight", (uint64_t)m->vocab, D, &W->head));
    for (b.layer = 0; b.layer < m->n_layers; b.layer++)
        SN_TRY(bind_layer(&b, &W->layers[b.layer]));
    SN_TRY(sn_bind_state(&b, layer_state_floats(m)));
    work w = { .pass = { .taken = (size_t)m->n_embd } };
    take_arrays(&w, m);
    m->scratch_floats = w.pass.taken;
    return SN_OK;
}

/* ---- computing ---------------------------------------------------------------------------- */

static float *shift_a(const work *w, size_t segment) {
    return sn_pass_state(&w->pass, segment);
}
static float *shift_f(const work *w, size_t segment) {
    return shift_a(w, segment) + w->D;
}
static float *matrix_state(const work *w, size_t segment, size_t head) {
    return shift_a(w, segment) + 2 * w->D + head * w->N * w->N;
}

static void layer_norms(const work *w, const sn_norm *n, float *y, const float *x) {
    sn_pass_norm(&w->pass, y, x, n->weight, n->bias, w->D, w->pass.model->norm_eps);
}

/* x_c = xn + mu_c (previous xn - xn) for the tokens [begin, end) and `count` rows of mu, each into
 * an array of its own; before a segment's first token stands its shift state. */
static void shift_tokens(const work *w, const float *mu, int count,
                         float *(*shift)(const work *, size_t), size_t begin, size_t end) {
    const size_t D = w->D;
    for (size_t s = 0; s < w->pass.n_segments; s++) {
        const size_t first = w->pass.segments[s].first, last = first + w->pass.segments[s].count;
        for (size_t t = first > begin ? first : begin; t < last && t < end; t++) {
            const float *previous = t == first ? shift(w, s) : w->xn + (t - 1) * D;
            for (int c = 0; c < count; c++)
                w->pass.simd->lerp(w->mixed[c] + t * D, w->xn + t * D, previous,
                                   mu + (size_t)c * D, D);
        }
    }
}

static void shift_time(void *context, size_t begin, size_t end) {
    const work *w = context;
    shift_tokens(w, w->layer->mu, MIX_COUNT, shift_a, begin, end);
}

static void shift_channels(void *context, size_t begin, size_t end) {
    const work *w = context;
    shift_tokens(w, w->layer->mu_f, 1, shift_f, begin, end);
}

/* shift = xn of each segment's last token */
static void keep_shift(const work *w, float *(*shift)(const work *, size_t)) {
    for (size_t s = 0; s < w->pass.n_segments; s++) {
        const size_t last = w->pass.segments[s].first + w->pass.segments[s].count - 1;
        memcpy(shift(w, s), w->xn + last * w->D, w->D * sizeof(float));
    }
}

/* The inside of the low-rank parts: y = B f(A x) + bias. */
static void activate_ranks(void *context, size_t begin, size_t end) {
    const work *w = context;
    const layer *l = w->layer;
    const size_t w_rank = l->w.A.rows, g_rank = l->g.A.rows;
    float *rank_w = w->rank_w + begin * w_rank, *rank_g = w->rank_g + begin * g_rank;
    w->pass.simd->tanh(rank_w, rank_w, (end - begin) * w_rank);
    w->pass.simd->sigmoid(rank_g, rank_g, (end - begin) * g_rank);
}

/* v += (v_first - v) sigmoid(v0 + B_v A_v x_v); layer 0's v is everyone's v_first. */
static void value_residual(const work *w, float *v, float *v_first, float *mix) {
    const sn_simd *simd = w->pass.simd;
    const low_rank *part = &w->layer->v;
    if (!part->A.rows) {
        memcpy(v_first, v, w->D * sizeof(float));
        return;
    }
    simd->add(mix, mix, part->bias, w->D);
    simd->sigmoid(mix, mix, w->D);
    simd->lerp(v, v, v_first, mix, w->D);
}

/* kappa = normalise per head(k k_k); k = k + k_a (k a - k); b = kappa a */
static void keys(const work *w, float *k, float *kappa, const float *a, float *b) {
    const size_t D = w->D, N = w->N;
    const sn_simd *simd = w->pass.simd;
    simd->mul(kappa, k, w->layer->k_k, D);
    for (size_t h = 0; h < w->H; h++)
        simd->l2_normalize(kappa + h * N, kappa + h * N, N, KEY_NORM_FLOOR);
    simd->mul(b, k, a, D);
    simd->lerp(k, k, b, w->layer->k_a, D);
    simd->mul(b, kappa, a, D);
}

/* w = exp(-c sigmoid(w0 + B_w tanh(A_w x_w))); a = sigmoid(a0 + B_a A_a x_a); values and keys */
static void prepare_tokens(void *context, size_t begin, size_t end) {
    const work *w = context;
    const layer *l = w->layer;
    const sn_simd *simd = w->pass.simd;
    const size_t D = w->D;
    for (size_t o = begin * D; o < end * D; o += D) {
        simd->add(w->w + o, w->w + o, l->w.bias, D);
        simd->decay_rwkv7(w->w + o, w->w + o, D);
        simd->add(w->a + o, w->a + o, l->a.bias, D);
        simd->sigmoid(w->a + o, w->a + o, D);
        value_residual(w, w->v + o, w->v_first + o, w->y + o);
        keys(w, w->k + o, w->kappa + o, w->a + o, w->b + o);
    }
}

/* S <- S diag(w) - (S kappa) (kappa a)^T + v k^T, y = S r; the head begins at `o` of each array. */
static void recur(const work *w, float *S, size_t o, size_t count) {
    const size_t D = w->D;
    w->pass.simd->rank1_scan(&(sn_matrix_scan){
        .y = w->y + o, .y_stride = D, .S = S, .row = w->N, .n_keys = w->N, .n_values = w->N,
        .n_tokens = count, .decay = SN_DECAY_KEY, .d = { w->w + o, D }, .k = { w->k + o, D },
        .v = { w->v + o, D }, .r = { w->r + o, D }, .u = { w->kappa + o, D },
        .b = { w->b + o, D } });
}

/* Heads [begin, end) of all segments; after the recurrence
 * y = (GroupNorm(y) + v sum(r k r_k)) g. */
static void recur_heads(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t D = w->D, N = w->N;
    const layer *l = w->layer;
    const float eps = ((const weights *)w->pass.model->weights)->group_norm_eps;
    for (size_t i = begin; i < end; i++) {
        const size_t s = i / w->H, h = i % w->H, c = h * N;
        const size_t first = w->pass.segments[s].first, count = w->pass.segments[s].count;
        recur(w, matrix_state(w, s, h), first * D + c, count);
        for (size_t t = first; t < first + count; t++) {
            const size_t o = t * D + c;
            w->pass.simd->layer_norm(w->y + o, w->y + o, l->ln_x.weight + c, l->ln_x.bias + c, N,
                                     eps);
            float bonus = w->pass.simd->dot3(w->r + o, w->k + o, l->r_k + c, N);
            w->pass.simd->axpy(w->y + o, bonus, w->v + o, N);
            w->pass.simd->mul(w->y + o, w->y + o, w->g + o, N);
        }
    }
}

static void show(const work *w) {
    sn_pass_show(&w->pass, "xn", w->xn, w->D);
    sn_pass_show(&w->pass, "r", w->r, w->D);
    sn_pass_show(&w->pass, "k", w->k, w->D);
    sn_pass_show(&w->pass, "v", w->v, w->D);
    sn_pass_show(&w->pass, "a", w->a, w->D);
    sn_pass_show(&w->pass, "g", w->g, w->D);
    sn_pass_show(&w->pass, "w", w->w, w->D);
    sn_pass_show(&w->pass, "y", w->y, w->D);
}

static void time_mix(work *w) {
    const layer *l = w->layer;
    const sn_pass *pass = &w->pass;
    layer_norms(w, &l->ln1, w->xn, pass->x);
    sn_pass_tokens(pass, shift_time, w);
    sn_pass_multiply(pass, { &l->R, w->r, w->mixed[MIX_R] }, { &l->K, w->k, w->mixed[MIX_K] },
                     { &l->V, w->v, w->mixed[MIX_V] }, { &l->w.A, w->rank_w, w->mixed[MIX_W] },
                     { &l->a.A, w->rank_a, w->mixed[MIX_A] },
                     { &l->v.A, w->rank_v, w->mixed[MIX_V] },
                     { &l->g.A, w->rank_g, w->mixed[MIX_G] });
    sn_pass_tokens(pass, activate_ranks, w);
    sn_pass_multiply(pass, { &l->w.B, w->w, w->rank_w }, { &l->a.B, w->a, w->rank_a },
                     { &l->v.B, w->y, w->rank_v }, { &l->g.B, w->g, w->rank_g });
    sn_pass_tokens(pass, prepare_tokens, w);
    sn_run(pass->exec, pass->n_segments * w->H, recur_heads, w);
    show(w);
    sn_pass_linear(pass, &l->O, w->b, w->y);
    sn_pass_add(pass, w->b);
    keep_shift(w, shift_a);
}

/* x += F_V relu(F_K mix(LN(x)))^2 */
static void channel_mix(work *w) {
    const layer *l = w->layer;
    layer_norms(w, &l->ln2, w->xn, w->pass.x);
    sn_pass_tokens(&w->pass, shift_channels, w);
    sn_pass_linear(&w->pass, &l->F_K, w->hidden, w->mixed[0]);
    sn_pass_map(&w->pass, w->pass.simd->relu_squared, w->hidden, l->F_K.rows);
    sn_pass_linear(&w->pass, &l->F_V, w->b, w->hidden);
    sn_pass_add(&w->pass, w->b);
    keep_shift(w, shift_f);
}

static void forward(const sn_model *m, sn_exec *exec, const int32_t *tokens, size_t n_tokens,
                    const sn_segment *segments, size_t n_segments, float *logits,
                    size_t first_logits) {
    const weights *W = m->weights;
    work w = { .pass = sn_pass_begin(m, exec, &W->embedding, tokens, n_tokens, segments,
                                     n_segments) };
    take_arrays(&w, m);
    layer_norms(&w, &W->ln0, w.pass.x, w.pass.x);
    for (int32_t l = sn_pass_first_layer(&w.pass); l < sn_pass_end_layer(&w.pass); l++) {
        w.layer = &W->layers[l];
        w.pass.state_offset = (size_t)(l * layer_state_floats(m));
        time_mix(&w);
        channel_mix(&w);
    }
    if (logits) layer_norms(&w, &W->ln_out, w.xn, w.pass.x);
    sn_pass_end(&w.pass, &W->head, w.xn, logits, first_logits);
}

const sn_arch sn_arch_rwkv7 = { .name = "rwkv7", .bind = bind, .forward = forward };
