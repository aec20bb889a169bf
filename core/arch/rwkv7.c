/*
 * rwkv7.c: RWKV-7 "Goose" (x070), Peng et al. 2025, "RWKV-7 'Goose' with Expressive Dynamic
 * State Evolution". Checked against float64 goldens of an independent reference and against
 * llama.cpp (tests/golden.test.mjs). Tensor names are those of GGUF files; capital letters are
 * matrices, D model width, N head size, H = D / N heads, F channel-mix width.
 *
 * State per layer, float32: shift_a[D], shift_f[D], S[H][N keys][N values] (key-major).
 */
#include "../loader.h"

#include <stdio.h>
#include <string.h>

#define GROUP_NORM_EPS 64e-5f /* of every published RWKV-7, whatever the head size */
#define KEY_NORM_FLOOR 1e-12f

typedef struct norm {
    const float *weight, *bias;
} norm;

/* x -> B f(A x) + bias: A (rank, D), B (D, rank) */
typedef struct low_rank {
    sn_matrix A, B;
    const float *bias; /* NULL for the gate */
} low_rank;

enum { MIX_R, MIX_W, MIX_K, MIX_V, MIX_A, MIX_G, MIX_COUNT }; /* order in time_mix_lerp_fused */

typedef struct layer {
    norm ln1, ln2, ln_x;
    const float *mu;            /* [MIX_COUNT][D] */
    sn_matrix R, K, V, O;       /* (D, D) */
    low_rank w, a, v, g;        /* decay, in-context rate, value residual, gate */
    const float *k_k, *k_a, *r_k;
    const float *mu_f;
    sn_matrix F_K, F_V;         /* (F, D), (D, F) */
} layer;

typedef struct weights {
    sn_rows embedding;
    norm ln0, ln_out;
    sn_matrix head;
    layer layers[];
} weights;

/* ---- loading ----------------------------------------------------------------------------- */

typedef struct binder {
    sn_loader *loader;
    const sn_model *model;
    int32_t layer;
    char name[96]; /* of the tensor at hand */
} binder;

static const char *name_of(binder *b, const char *tensor) {
    snprintf(b->name, sizeof b->name, "blk.%d.%s", (int)b->layer, tensor);
    return b->name;
}

static sn_status bind_vector(binder *b, const char *tensor, uint64_t n, const float **out) {
    return sn_loader_vector(b->loader, name_of(b, tensor), n, out);
}

static sn_status bind_matrix(binder *b, const char *tensor, uint64_t rows, uint64_t k,
                             sn_matrix *out) {
    return sn_loader_matrix(b->loader, name_of(b, tensor), rows, k, out);
}

static sn_status bind_norm(sn_loader *loader, const char *stem, uint64_t n, norm *out) {
    char name[96];
    snprintf(name, sizeof name, "%s.weight", stem);
    SN_TRY(sn_loader_vector(loader, name, n, &out->weight));
    snprintf(name, sizeof name, "%s.bias", stem);
    return sn_loader_vector(loader, name, n, &out->bias);
}

static sn_status bind_layer_norm(binder *b, const char *tensor, norm *out) {
    return bind_norm(b->loader, name_of(b, tensor), (uint64_t)b->model->n_embd, out);
}

/* The rank is the file's; both factors must agree on it. `letter` is w, a, v or g. */
static sn_status bind_low_rank(binder *b, char letter, bool has_bias, low_rank *out) {
    const uint64_t D = (uint64_t)b->model->n_embd;
    uint64_t rank, k;
    char tensor[32];
    if (has_bias) {
        snprintf(tensor, sizeof tensor, "time_mix_%c0.weight", letter);
        SN_TRY(bind_vector(b, tensor, D, &out->bias));
    }
    snprintf(tensor, sizeof tensor, "time_mix_%c1.weight", letter);
    SN_TRY(sn_loader_shape(b->loader, name_of(b, tensor), &rank, &k));
    SN_TRY(bind_matrix(b, tensor, rank, D, &out->A));
    snprintf(tensor, sizeof tensor, "time_mix_%c2.weight", letter);
    return bind_matrix(b, tensor, D, rank, &out->B);
}

static sn_status bind_layer(binder *b, layer *l) {
    const uint64_t D = (uint64_t)b->model->n_embd, F = (uint64_t)b->model->n_ffn;
    SN_TRY(bind_layer_norm(b, "attn_norm", &l->ln1));
    SN_TRY(bind_layer_norm(b, "attn_norm_2", &l->ln2));
    SN_TRY(bind_layer_norm(b, "time_mix_ln", &l->ln_x));
    SN_TRY(bind_vector(b, "time_mix_lerp_fused.weight", MIX_COUNT * D, &l->mu));
    SN_TRY(bind_matrix(b, "time_mix_receptance.weight", D, D, &l->R));
    SN_TRY(bind_matrix(b, "time_mix_key.weight", D, D, &l->K));
    SN_TRY(bind_matrix(b, "time_mix_value.weight", D, D, &l->V));
    SN_TRY(bind_matrix(b, "time_mix_output.weight", D, D, &l->O));
    SN_TRY(bind_low_rank(b, 'w', true, &l->w));
    SN_TRY(bind_low_rank(b, 'a', true, &l->a));
    if (b->layer > 0) /* layer 0's are dummies, if present at all */
        SN_TRY(bind_low_rank(b, 'v', true, &l->v));
    SN_TRY(bind_low_rank(b, 'g', false, &l->g));
    SN_TRY(bind_vector(b, "time_mix_k_k.weight", D, &l->k_k));
    SN_TRY(bind_vector(b, "time_mix_k_a.weight", D, &l->k_a));
    SN_TRY(bind_vector(b, "time_mix_r_k.weight", D, &l->r_k));
    SN_TRY(bind_vector(b, "channel_mix_lerp_k.weight", D, &l->mu_f));
    SN_TRY(bind_matrix(b, "channel_mix_key.weight", F, D, &l->F_K));
    return bind_matrix(b, "channel_mix_value.weight", D, F, &l->F_V);
}

static sn_status read_size(const sn_gguf *gguf, const char *key, uint32_t limit, int32_t *out) {
    uint32_t value = 0;
    SN_TRY(sn_gguf_get_u32(gguf, key, true, &value));
    if (value < 1 || value > limit)
        return sn_fail(SN_E_FORMAT, "%s: key '%s': %u is outside 1..%u", sn_gguf_name(gguf), key,
                       (unsigned)value, (unsigned)limit);
    *out = (int32_t)value;
    return SN_OK;
}

static sn_status read_hyperparameters(const sn_gguf *gguf, sn_model *m) {
    uint32_t shifts = 2;
    m->norm_eps = 1e-5f;
    SN_TRY(read_size(gguf, "rwkv7.block_count", 1024, &m->n_layers));
    SN_TRY(read_size(gguf, "rwkv7.embedding_length", 1 << 20, &m->n_embd));
    SN_TRY(read_size(gguf, "rwkv7.feed_forward_length", 1 << 22, &m->n_ffn));
    SN_TRY(read_size(gguf, "rwkv7.wkv.head_size", 1 << 16, &m->head_size));
    SN_TRY(sn_gguf_get_f32(gguf, "rwkv7.attention.layer_norm_epsilon", false, &m->norm_eps));
    SN_TRY(sn_gguf_get_u32(gguf, "rwkv7.token_shift_count", false, &shifts));
    if (!(m->norm_eps > 0.0f))
        return sn_fail(SN_E_FORMAT, "%s: key 'rwkv7.attention.layer_norm_epsilon': %g is not "
                       "positive", sn_gguf_name(gguf), (double)m->norm_eps);
    if (shifts != 2)
        return sn_fail(SN_E_UNSUPPORTED, "%s: key 'rwkv7.token_shift_count': %u, only 2 is "
                       "supported", sn_gguf_name(gguf), (unsigned)shifts);
    if (m->n_embd % m->head_size)
        return sn_fail(SN_E_FORMAT, "%s: key 'rwkv7.wkv.head_size': %d does not divide the model "
                       "width %d", sn_gguf_name(gguf), (int)m->head_size, (int)m->n_embd);
    m->n_heads = m->n_embd / m->head_size;
    return SN_OK;
}

static uint64_t layer_state_floats(const sn_model *m) {
    return (uint64_t)m->n_embd * (2 + (uint64_t)m->head_size);
}

/* Widths of the scratch rows of one token; see `work`. */
static size_t max_rank(const sn_model *m) {
    const weights *W = m->weights;
    size_t rank = 0;
    for (int32_t l = 0; l < m->n_layers; l++) {
        const low_rank *parts[] = { &W->layers[l].w, &W->layers[l].a, &W->layers[l].v,
                                    &W->layers[l].g };
        for (int i = 0; i < 4; i++)
            if (parts[i]->A.rows > rank) rank = parts[i]->A.rows;
    }
    return rank;
}

#define WORK_WIDTHS 13 /* scratch vectors of width D per token */

static sn_status bind(sn_loader *loader, sn_model *m) {
    const sn_gguf *gguf = sn_loader_gguf(loader);
    uint64_t vocab, k;
    SN_TRY(read_hyperparameters(gguf, m));
    const uint64_t D = (uint64_t)m->n_embd;
    SN_TRY(sn_loader_shape(loader, "token_embd.weight", &vocab, &k));
    if (vocab > 1 << 24)
        return sn_fail(SN_E_FORMAT, "%s: tensor 'token_embd.weight': a vocabulary of %llu is too "
                       "large", sn_gguf_name(gguf), (unsigned long long)vocab);
    m->vocab = (int32_t)vocab;
    SN_TRY(sn_loader_weights(loader, sizeof(weights) + (size_t)m->n_layers * sizeof(layer)));
    weights *W = m->weights;
    SN_TRY(sn_loader_rows(loader, "token_embd.weight", vocab, D, &W->embedding));
    SN_TRY(bind_norm(loader, "token_embd_norm", D, &W->ln0));
    SN_TRY(bind_norm(loader, "output_norm", D, &W->ln_out));
    SN_TRY(sn_loader_matrix(loader, "output.weight", vocab, D, &W->head));
    for (int32_t l = 0; l < m->n_layers; l++) {
        binder b = { .loader = loader, .model = m, .layer = l };
        SN_TRY(bind_layer(&b, &W->layers[l]));
    }
    const uint64_t state = (uint64_t)m->n_layers * layer_state_floats(m);
    if (state > SIZE_MAX / 16) /* a saved state must fit too */
        return sn_fail(SN_E_NOMEM, "%s: a state of %llu numbers does not fit the address space",
                       sn_gguf_name(gguf), (unsigned long long)state);
    m->state_floats = (size_t)state;
    m->scratch_floats = WORK_WIDTHS * (size_t)m->n_embd + (size_t)m->n_ffn + max_rank(m);
    return SN_OK;
}

/* ---- computing ---------------------------------------------------------------------------- */

/* One forward pass: T tokens, each array [T][D] unless noted. */
typedef struct work {
    const sn_model *model;
    sn_exec *exec;
    const sn_simd *simd;
    size_t T, D, N, H;
    const sn_segment *segments;
    size_t n_segments;
    float *x, *xn, *mixed, *r, *w, *k, *v, *a, *g, *kappa, *b, *y, *v_first;
    float *hidden; /* [T][F] */
    float *rank;   /* [T][rank] */
    /* of the layer at hand, within a state */
    const layer *layer;
    size_t state_offset;
} work;

static float *shift_a(const work *w, size_t segment) {
    return w->segments[segment].state + w->state_offset;
}
static float *shift_f(const work *w, size_t segment) {
    return shift_a(w, segment) + w->D;
}
static float *matrix_state(const work *w, size_t segment, size_t head) {
    return shift_a(w, segment) + 2 * w->D + head * w->N * w->N;
}

static void layer_norms(const work *w, const norm *n, float *y, const float *x) {
    for (size_t t = 0; t < w->T; t++)
        w->simd->layer_norm(y + t * w->D, x + t * w->D, n->weight, n->bias, w->D,
                            w->model->norm_eps);
}

/* mixed = xn + mu (previous xn - xn); before a segment's first token stands its shift state. */
static const float *token_shift(const work *w, const float *mu,
                                float *(*shift)(const work *, size_t)) {
    const size_t D = w->D;
    for (size_t s = 0; s < w->n_segments; s++) {
        const size_t first = w->segments[s].first;
        const float *previous = shift(w, s);
        for (size_t t = first; t < first + w->segments[s].count; t++) {
            w->simd->lerp(w->mixed + t * D, w->xn + t * D, previous, mu, D);
            previous = w->xn + t * D;
        }
    }
    return w->mixed;
}

/* shift = xn of each segment's last token */
static void keep_shift(const work *w, float *(*shift)(const work *, size_t)) {
    for (size_t s = 0; s < w->n_segments; s++) {
        const size_t last = w->segments[s].first + w->segments[s].count - 1;
        memcpy(shift(w, s), w->xn + last * w->D, w->D * sizeof(float));
    }
}

static const float *time_shift(const work *w, int which) {
    return token_shift(w, w->layer->mu + (size_t)which * w->D, shift_a);
}

static void linear(const work *w, const sn_matrix *W, float *y, const float *x) {
    sn_linear(w->exec, W, y, W->rows, x, w->T);
}

/* y = B f(A x) + bias */
static void apply_low_rank(const work *w, const low_rank *p, sn_map f, float *y, const float *x) {
    linear(w, &p->A, w->rank, x);
    if (f) f(w->rank, w->rank, w->T * p->A.rows);
    linear(w, &p->B, y, w->rank);
    for (size_t t = 0; p->bias && t < w->T; t++)
        w->simd->add(y + t * w->D, y + t * w->D, p->bias, w->D);
}

/* v += (v_first - v) sigmoid(v0 + B_v A_v x_v); layer 0's v is everyone's v_first. */
static void value_residual(const work *w, const float *x_v) {
    const size_t n = w->T * w->D;
    if (w->layer == ((const weights *)w->model->weights)->layers) {
        memcpy(w->v_first, w->v, n * sizeof(float));
        return;
    }
    apply_low_rank(w, &w->layer->v, NULL, w->y, x_v);
    w->simd->sigmoid(w->y, w->y, n);
    w->simd->lerp(w->v, w->v, w->v_first, w->y, n);
}

/* kappa = normalise per head(k k_k); k = k + k_a (k a - k); b = kappa a */
static void keys(const work *w) {
    const size_t D = w->D, N = w->N;
    const sn_simd *simd = w->simd;
    for (size_t t = 0; t < w->T; t++) {
        float *k = w->k + t * D, *kappa = w->kappa + t * D, *a = w->a + t * D, *b = w->b + t * D;
        simd->mul(kappa, k, w->layer->k_k, D);
        for (size_t h = 0; h < w->H; h++)
            simd->l2_normalize(kappa + h * N, kappa + h * N, N, KEY_NORM_FLOOR);
        simd->mul(b, k, a, D);
        simd->lerp(k, k, b, w->layer->k_a, D);
        simd->mul(b, kappa, a, D);
    }
}

/*
 * Heads [begin, end) of all segments. S <- S diag(w) - (S kappa) (kappa a)^T + v k^T, y = S r;
 * then y = GroupNorm(y) + v sum(r k r_k).
 */
static void recur_heads(void *context, size_t begin, size_t end) {
    const work *w = context;
    const size_t D = w->D, N = w->N;
    const layer *l = w->layer;
    for (size_t i = begin; i < end; i++) {
        const size_t s = i / w->H, h = i % w->H, c = h * N;
        const size_t first = w->segments[s].first, count = w->segments[s].count;
        const size_t o = first * D + c;
        w->simd->rank1_scan(w->y + o, matrix_state(w, s, h), N, N, w->w + o, w->kappa + o,
                            w->k + o, w->b + o, w->r + o, w->v + o, D, count);
        for (size_t t = first; t < first + count; t++) {
            float *y = w->y + t * D + c;
            w->simd->layer_norm(y, y, l->ln_x.weight + c, l->ln_x.bias + c, N, GROUP_NORM_EPS);
            float bonus = w->simd->dot3(w->r + t * D + c, w->k + t * D + c, l->r_k + c, N);
            w->simd->axpy(y, bonus, w->v + t * D + c, N);
        }
    }
}

static void time_mix(work *w) {
    const layer *l = w->layer;
    const sn_simd *simd = w->simd;
    const size_t n = w->T * w->D;
    layer_norms(w, &l->ln1, w->xn, w->x);

    linear(w, &l->R, w->r, time_shift(w, MIX_R));
    apply_low_rank(w, &l->w, simd->tanh, w->w, time_shift(w, MIX_W));
    simd->decay_rwkv7(w->w, w->w, n); /* w = exp(-c sigmoid(w0 + B_w tanh(A_w x_w))) */
    linear(w, &l->K, w->k, time_shift(w, MIX_K));
    const float *x_v = time_shift(w, MIX_V);
    linear(w, &l->V, w->v, x_v);
    value_residual(w, x_v);
    apply_low_rank(w, &l->a, NULL, w->a, time_shift(w, MIX_A));
    simd->sigmoid(w->a, w->a, n); /* a = sigmoid(a0 + B_a A_a x_a) */
    apply_low_rank(w, &l->g, simd->sigmoid, w->g, time_shift(w, MIX_G));
    keys(w);

    sn_pool_run(w->exec->pool, w->n_segments * w->H, recur_heads, w);
    simd->mul(w->y, w->y, w->g, n);
    linear(w, &l->O, w->mixed, w->y);
    simd->add(w->x, w->x, w->mixed, n);
    keep_shift(w, shift_a);
}

/* x += F_V relu(F_K mix(LN(x)))^2 */
static void channel_mix(work *w) {
    const layer *l = w->layer;
    layer_norms(w, &l->ln2, w->xn, w->x);
    linear(w, &l->F_K, w->hidden, token_shift(w, l->mu_f, shift_f));
    w->simd->relu_squared(w->hidden, w->hidden, w->T * l->F_K.rows);
    linear(w, &l->F_V, w->mixed, w->hidden);
    w->simd->add(w->x, w->x, w->mixed, w->T * w->D);
    keep_shift(w, shift_f);
}

static work prepare(const sn_model *m, sn_exec *exec, size_t n_tokens, const sn_segment *segments,
                    size_t n_segments) {
    const size_t D = (size_t)m->n_embd, n = n_tokens * D;
    float *at = exec->scratch;
    work w = { .model = m, .exec = exec, .simd = exec->simd, .T = n_tokens, .D = D,
               .N = (size_t)m->head_size, .H = (size_t)m->n_heads, .segments = segments,
               .n_segments = n_segments };
    float **arrays[WORK_WIDTHS] = { &w.x, &w.xn, &w.mixed, &w.r, &w.w, &w.k, &w.v, &w.a, &w.g,
                                    &w.kappa, &w.b, &w.y, &w.v_first };
    for (int i = 0; i < WORK_WIDTHS; i++, at += n) *arrays[i] = at;
    w.hidden = at;
    w.rank = at + n_tokens * (size_t)m->n_ffn;
    return w;
}

static void forward(const sn_model *m, sn_exec *exec, const int32_t *tokens, size_t n_tokens,
                    const sn_segment *segments, size_t n_segments, float *logits,
                    size_t first_logits) {
    const weights *W = m->weights;
    work w = prepare(m, exec, n_tokens, segments, n_segments);
    for (size_t t = 0; t < n_tokens; t++) sn_embed(&W->embedding, tokens[t], w.x + t * w.D);
    exec->weight_bytes += (double)(n_tokens * W->embedding.row_bytes) + m->vector_bytes;
    layer_norms(&w, &W->ln0, w.x, w.x);
    for (int32_t l = 0; l < m->n_layers; l++) {
        w.layer = &W->layers[l];
        w.state_offset = (size_t)(l * layer_state_floats(m));
        time_mix(&w);
        channel_mix(&w);
    }
    if (!sn_all_finite(w.x, n_tokens * w.D)) exec->spoiled = true;
    if (!logits) return;
    layer_norms(&w, &W->ln_out, w.xn, w.x);
    sn_linear(exec, &W->head, logits, W->head.rows, w.xn + first_logits * w.D,
              n_tokens - first_logits);
    if (!sn_all_finite(logits, (n_tokens - first_logits) * W->head.rows)) exec->spoiled = true;
}

const sn_arch sn_arch_rwkv7 = { .name = "rwkv7", .bind = bind, .forward = forward };
