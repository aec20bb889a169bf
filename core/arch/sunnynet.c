/*
 * sunnynet.c: the SunnyNet architecture of the Python package sunnynet-cx: a bounded state for each
 * channel, moved towards its input by a gated decay, and fed back through a matrix. Checked
 * against float64 goldens of its own implementation (tests/family-golden.test.mjs). Names of keys
 * and tensors: docs/formats.md.
 *
 * D model width, I width of the read-out, R rank of the input map, K taps. CSN is LayerNorm.
 *
 * State per layer, float32: s[D]; taps[K - 1][D], the last normed inputs, oldest first (if the
 * model has taps); M[slots][values] (if the layer has an associative memory).
 */
#include "bind.h"
#include "pass.h"

#include <string.h>

#define NORM_EPS 4.1e-4f      /* 0.02^2 + 1e-5, of every SunnyNet */
#define MEMORY_NORM_FLOOR 1e-12f

/* An associative memory: M <- diag over values(p) M + k ((1 - p) v)^T; o = M^T q. */
typedef struct memory {
    sn_matrix k, q, v, gate; /* (slots, D) twice, (m, D) twice; k.rows = 0: the layer has none */
    sn_matrix out, mix;      /* (D, m), (D, D) */
    sn_norm norm;            /* [D] */
} memory;

typedef struct layer {
    sn_norm norm_in, norm_mix;      /* [D], [I] */
    const float *taps;              /* [K][D] or NULL */
    sn_matrix map_in, map_out;      /* (R, D), (2D, R): rows of u, then of the gate */
    sn_matrix z, mix, feedback;     /* (I, D), (D, I), (D, D) */
    const float *delta;             /* [D]: 1 / span */
    const float *wedge, *gain;      /* [1]: tanh(a); of the state */
    sn_norm norm_s;                 /* [D], with state_norm */
    sn_matrix state_mul;            /* (D, I), with state_mul */
    memory memory;
    size_t state_offset;            /* of the layer's state in a state */
} layer;

typedef struct switches {
    bool decay_gate, local_taps, current, residual, state_norm, state_mul, h_norm;
} switches;

typedef struct weights {
    sn_rows embedding;
    sn_matrix head;
    sn_norm norm_out, h_norm;
    int32_t I, R, K, group;
    switches on;
    bool has_floor;
    float decay_floor, h_min, h_max;
    layer layers[];
} weights;

typedef struct work {
    sn_pass pass;
    const weights *W;
    size_t D, I;
    float *raw, *at;        /* [T][D]: normed input; with taps */
    float *low;             /* [T][R] */
    float *map;             /* [T][2D]: u, gate */
    float *u, *p;           /* [T][D] */
    float *left, *right;    /* [T][D], of the gate's group */
    float *s, *before;      /* [T][D]: the new state, the old one (normed with state_norm) */
    float *z, *y;           /* [T][I] */
    float *out, *term;      /* [T][D] */
    float *mk, *mq;         /* [T][slots] */
    float *mv, *mp, *mo;    /* [T][m] */
    const layer *layer;
} work;

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_switches(sn_binder *b, switches *on) {
    *on = (switches){ .decay_gate = true, .local_taps = true, .current = true, .residual = true };
    SN_TRY(sn_bind_flag(b, "decay_gate", &on->decay_gate));
    SN_TRY(sn_bind_flag(b, "local_taps", &on->local_taps));
    SN_TRY(sn_bind_flag(b, "current", &on->current));
    SN_TRY(sn_bind_flag(b, "residual", &on->residual));
    SN_TRY(sn_bind_flag(b, "state_norm", &on->state_norm));
    SN_TRY(sn_bind_flag(b, "state_mul", &on->state_mul));
    return sn_bind_flag(b, "h_norm", &on->h_norm);
}

static sn_status bind_keys(sn_binder *b, weights *W) {
    sn_model *m = b->model;
    m->norm_eps = NORM_EPS;
    W->h_min = 2.0f;
    W->h_max = 8192.0f;
    SN_TRY(sn_bind_size(b, "inner_length", 1 << 22, &W->I));
    SN_TRY(sn_bind_size(b, "rank", 1 << 22, &W->R));
    SN_TRY(sn_bind_size(b, "taps", SN_MAX_TAPS, &W->K));
    SN_TRY(sn_bind_size(b, "group_size", 1 << 20, &W->group));
    SN_TRY(sn_bind_epsilon(b, "layer_norm_epsilon", &m->norm_eps));
    SN_TRY(sn_bind_range(b, "h_min", 1e-7f, 1e31f, &W->h_min));
    SN_TRY(sn_bind_range(b, "h_max", 1e-7f, 1e31f, &W->h_max));
    if (W->h_max < W->h_min) return sn_bind_fail(b, "h_max", "is below h_min");
    W->has_floor = sn_bind_has_key(b, "decay_floor");
    SN_TRY(sn_bind_range(b, "decay_floor", 0.0f, 1.0f, &W->decay_floor));
    if (m->n_embd % W->group) return sn_bind_fail(b, "group_size", "does not divide the width");
    m->n_ffn = W->I;
    m->n_heads = m->n_embd; /* each channel has a state of its own */
    m->head_size = 1;
    return bind_switches(b, &W->on);
}

/* One of its tensors asks for all of them. */
static bool has_memory(sn_binder *b) {
    static const char *const tensors[] = { "assoc_k.weight", "assoc_q.weight", "assoc_v.weight",
                                           "assoc_g.weight", "assoc_out.weight",
                                           "assoc_norm.weight", "assoc_mix.weight" };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        if (sn_bind_has(b, tensors[i])) return true;
    return false;
}

static sn_status bind_memory(sn_binder *b, memory *m) {
    const uint64_t D = (uint64_t)b->model->n_embd;
    uint64_t slots, values, width;
    if (!has_memory(b)) return SN_OK;
    SN_TRY(sn_bind_shape(b, "assoc_k.weight", &slots, &width));
    SN_TRY(sn_bind_matrix(b, "assoc_k.weight", slots, D, &m->k));
    SN_TRY(sn_bind_matrix(b, "assoc_q.weight", slots, D, &m->q));
    SN_TRY(sn_bind_shape(b, "assoc_v.weight", &values, &width));
    SN_TRY(sn_bind_matrix(b, "assoc_v.weight", values, D, &m->v));
    SN_TRY(sn_bind_matrix(b, "assoc_g.weight", values, D, &m->gate));
    SN_TRY(sn_bind_matrix(b, "assoc_out.weight", D, values, &m->out));
    SN_TRY(sn_bind_norm(b, "assoc_norm", D, &m->norm));
    return sn_bind_matrix(b, "assoc_mix.weight", D, D, &m->mix);
}

static bool has_taps(const weights *W) {
    return W->K > 1 && W->on.local_taps;
}

static sn_status bind_layer(sn_binder *b, const weights *W, layer *l) {
    const uint64_t D = (uint64_t)b->model->n_embd, I = (uint64_t)W->I, R = (uint64_t)W->R;
    SN_TRY(sn_bind_norm(b, "norm_in", D, &l->norm_in));
    SN_TRY(sn_bind_norm(b, "norm_mix", I, &l->norm_mix));
    if (has_taps(W))
        SN_TRY(sn_bind_transposed(b, "taps.weight", D, (uint64_t)W->K, &l->taps));
    SN_TRY(sn_bind_matrix(b, "map_in.weight", R, D, &l->map_in));
    SN_TRY(sn_bind_matrix(b, "map_out.weight", 2 * D, R, &l->map_out));
    SN_TRY(sn_bind_matrix(b, "z.weight", I, D, &l->z));
    SN_TRY(sn_bind_matrix(b, "mix.weight", D, I, &l->mix));
    SN_TRY(sn_bind_matrix(b, "feedback.weight", D, D, &l->feedback));
    SN_TRY(sn_bind_vector(b, "delta.weight", D, &l->delta));
    SN_TRY(sn_bind_vector(b, "wedge.weight", 1, &l->wedge));
    SN_TRY(sn_bind_vector(b, "gain.weight", 1, &l->gain));
    if (W->on.state_norm) SN_TRY(sn_bind_norm(b, "norm_s", D, &l->norm_s));
    if (W->on.state_mul) SN_TRY(sn_bind_matrix(b, "state_mul.weight", D, I, &l->state_mul));
    return bind_memory(b, &l->memory);
}

/* Layers with and without a memory have states of different sizes. */
static sn_status bind_states(sn_binder *b, weights *W) {
    sn_model *m = b->model;
    uint64_t total = 0;
    for (int32_t i = 0; i < m->n_layers; i++) {
        layer *l = &W->layers[i];
        uint64_t cells; /* slots and values are the file's, each below 2^62 */
        if (!sn_mul_u64(l->memory.k.rows, l->memory.v.rows, &cells)) cells = UINT64_MAX / 2;
        l->state_offset = (size_t)total;
        total += (uint64_t)m->n_embd + cells;
        if (has_taps(W)) total += (uint64_t)(W->K - 1) * (uint64_t)m->n_embd;
        if (total > SIZE_MAX / 16)
            return sn_fail(SN_E_NOMEM, "%.300s: states of %llu numbers do not fit the address "
                           "space", sn_gguf_name(sn_loader_gguf(b->loader)),
                           (unsigned long long)total);
    }
    m->state_floats = (size_t)total;
    return SN_OK;
}

static void memory_sizes(const sn_model *m, size_t *slots, size_t *values) {
    const weights *W = m->weights;
    *slots = *values = 0;
    for (int32_t i = 0; i < m->n_layers; i++) {
        const memory *one = &W->layers[i].memory;
        if (one->k.rows > *slots) *slots = one->k.rows;
        if (one->v.rows > *values) *values = one->v.rows;
    }
}

static void take_arrays(work *w, const sn_model *m) {
    const weights *W = w->W = m->weights;
    float **wide[] = { &w->raw, &w->at, &w->u, &w->p, &w->left, &w->right, &w->s, &w->before,
                       &w->out, &w->term };
    size_t slots, values;
    w->D = (size_t)m->n_embd;
    w->I = (size_t)W->I;
    memory_sizes(m, &slots, &values);
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        *wide[i] = sn_pass_take(&w->pass, w->D);
    w->low = sn_pass_take(&w->pass, (size_t)W->R);
    w->map = sn_pass_take(&w->pass, 2 * w->D);
    w->z = sn_pass_take(&w->pass, w->I);
    w->y = sn_pass_take(&w->pass, w->I);
    w->mk = sn_pass_take(&w->pass, slots);
    w->mq = sn_pass_take(&w->pass, slots);
    w->mv = sn_pass_take(&w->pass, values);
    w->mp = sn_pass_take(&w->pass, values);
    w->mo = sn_pass_take(&w->pass, values);
}

static sn_status bind(sn_loader *loader, sn_model *m) {
    sn_binder b = sn_binder_of(loader, m);
    SN_TRY(sn_bind_common(&b));
    SN_TRY(sn_bind_vocabulary(&b));
    SN_TRY(sn_loader_weights(loader, sizeof(weights) + (size_t)m->n_layers * sizeof(layer)));
    weights *W = m->weights;
    SN_TRY(bind_keys(&b, W));
    SN_TRY(sn_bind_ends(&b, &W->embedding, &W->head));
    SN_TRY(sn_bind_norm(&b, "output_norm", (uint64_t)m->n_embd, &W->norm_out));
    if (W->on.h_norm) SN_TRY(sn_bind_norm(&b, "h_norm", (uint64_t)m->n_embd, &W->h_norm));
    for (b.layer = 0; b.layer < m->n_layers; b.layer++)
        SN_TRY(bind_layer(&b, W, &W->layers[b.layer]));
    b.layer = -1;
    SN_TRY(bind_states(&b, W));
    work w = { .pass = { .taken = (size_t)m->n_embd } };
    take_arrays(&w, m);
    m->scratch_floats = w.pass.taken;
    return SN_OK;
}

/* ---- computing ---------------------------------------------------------------------------- */

static void norms(const work *w, const sn_norm *n, float *y, const float *x, size_t width) {
    sn_pass_norm(&w->pass, y, x, n->weight, n->bias, width, w->pass.model->norm_eps);
}

/* at = raw + taps over raw and what came before it */
static const float *look_back(work *w) {
    const layer *l = w->layer;
    if (!l->taps) return w->raw;
    sn_pass_conv(&w->pass, w->at, w->raw, w->D, l->taps, NULL, (size_t)w->W->K, w->D, w->D);
    w->pass.simd->add(w->at, w->raw, w->at, w->pass.T * w->D);
    return w->at;
}

/* u <- u omega: each gate against its next two neighbours in a ring of `group` channels,
 * omega_i = sigmoid(g_i - g_{i+1}) sigmoid(g_i - g_{i+2}) */
static void compete(work *w) {
    const sn_simd *simd = w->pass.simd;
    const size_t D = w->D, G = (size_t)w->W->group, n = w->pass.T * D;
    for (size_t t = 0; t < w->pass.T; t++) {
        const float *gate = w->map + (2 * t + 1) * D;
        for (size_t i = 0; i < D; i++) {
            const size_t base = i / G * G, o = i - base;
            w->left[t * D + i] = gate[i] - gate[base + (o + 1) % G];
            w->right[t * D + i] = gate[i] - gate[base + (o + 2) % G];
        }
        memcpy(w->u + t * D, w->map + 2 * t * D, D * sizeof(float));
    }
    simd->sigmoid(w->left, w->left, n);
    simd->sigmoid(w->right, w->right, n);
    simd->mul(w->left, w->left, w->right, n);
    simd->mul(w->u, w->u, w->left, n);
}

/* p = 1 - delta (1 - sigmoid(gate)) */
static void decays(work *w) {
    const sn_simd *simd = w->pass.simd;
    const size_t D = w->D;
    for (size_t t = 0; t < w->pass.T; t++) {
        float *p = w->p + t * D;
        if (w->W->on.decay_gate) {
            simd->sigmoid(p, w->map + (2 * t + 1) * D, D);
            simd->one_minus(p, p, D);
            simd->mul(p, w->layer->delta, p, D);
            simd->one_minus(p, p, D);
        } else {
            simd->one_minus(p, w->layer->delta, D);
        }
        if (w->W->has_floor) simd->clamp(p, p, w->W->decay_floor, 1.0f, D);
    }
}

/* s <- p s + (1 - p) u for each token; `before` is the state that each token found. */
static void roll(work *w) {
    const size_t D = w->D;
    for (size_t i = 0; i < w->pass.n_segments; i++) {
        const sn_segment *segment = &w->pass.segments[i];
        const size_t o = segment->first * D;
        float *s = sn_pass_state(&w->pass, i);
        memcpy(w->before + o, s, D * sizeof(float));
        w->pass.simd->recur_scan(&(sn_recur){ .y = w->s + o, .y_stride = D, .s = s,
                                              .a = { w->p + o, D }, .b = { w->u + o, D }, .n = D,
                                              .n_tokens = segment->count, .gated = 1 });
        memcpy(w->before + o + D, w->s + o, (segment->count - 1) * D * sizeof(float));
    }
    if (!w->W->on.state_norm) return;
    norms(w, &w->layer->norm_s, w->before, w->before, D);
    norms(w, &w->layer->norm_s, w->s, w->s, D);
}

/* y = CSN(wedge(W_z u)); the wedge's constant part cancels in the norm. */
static void read_out(work *w) {
    sn_pass_linear(&w->pass, &w->layer->z, w->z, w->u);
    if (w->W->on.current)
        w->pass.simd->wedge(w->z, 0.5f * w->layer->wedge[0], w->z, w->pass.T * w->I);
    norms(w, &w->layer->norm_mix, w->y, w->z, w->I);
}

/* The memory's decay is p_c = 1 - 1 / (h_min exp(span sigmoid(gate_c))) for each value c. */
static void memory_decays(work *w, const memory *m) {
    const sn_simd *simd = w->pass.simd;
    const size_t n = w->pass.T * m->v.rows;
    float span = w->W->h_max / w->W->h_min - 1.0f;
    simd->log1p(&span, &span, 1);
    simd->sigmoid(w->mp, w->mp, n);
    simd->scale(w->mp, -span, w->mp, n);
    simd->exp(w->mp, w->mp, n);
    simd->scale(w->mp, 1.0f / w->W->h_min, w->mp, n);
    simd->mul(w->mv, w->mp, w->mv, n); /* (1 - p) v */
    simd->one_minus(w->mp, w->mp, n);
}

static void normalize_rows(const work *w, float *x, size_t width) {
    for (size_t t = 0; t < w->pass.T; t++)
        w->pass.simd->l2_normalize(x + t * width, x + t * width, width, MEMORY_NORM_FLOOR);
}

/* out += W_a CSN(W_o o); keys, queries, values and gates hold their products */
static void remember(work *w) {
    const memory *m = &w->layer->memory;
    const size_t slots = m->k.rows, values = m->v.rows;
    const size_t history = has_taps(w->W) ? (size_t)(w->W->K - 1) * w->D : 0;
    normalize_rows(w, w->mk, slots);
    normalize_rows(w, w->mq, slots);
    memory_decays(w, m);
    for (size_t i = 0; i < w->pass.n_segments; i++) {
        const sn_segment *segment = &w->pass.segments[i];
        const size_t o = segment->first * values, k = segment->first * slots;
        w->pass.simd->outer_scan(&(sn_matrix_scan){
            .y = w->mo + o, .y_stride = values, .S = sn_pass_state(&w->pass, i) + w->D + history,
            .row = values, .n_keys = slots, .n_values = values, .n_tokens = segment->count,
            .decay = SN_DECAY_VALUE, .d = { w->mp + o, values }, .k = { w->mk + k, slots },
            .v = { w->mv + o, values }, .r = { w->mq + k, slots } });
    }
    sn_pass_linear(&w->pass, &m->out, w->term, w->mo);
    norms(w, &m->norm, w->term, w->term, w->D);
    sn_pass_linear(&w->pass, &m->mix, w->left, w->term);
    w->pass.simd->add(w->out, w->out, w->left, w->pass.T * w->D);
}

/* out = W_c y + gain s + W_eff s_old (+ (W_g y) s) (+ memory) */
static void block(work *w) {
    const layer *l = w->layer;
    const sn_simd *simd = w->pass.simd;
    const size_t n = w->pass.T * w->D;
    norms(w, &l->norm_in, w->raw, w->pass.x, w->D);
    const float *at = look_back(w);
    const memory *m = &l->memory;
    sn_pass_multiply(&w->pass, { &l->map_in, w->low, at }, { &m->k, w->mk, at },
                     { &m->q, w->mq, at }, { &m->v, w->mv, at }, { &m->gate, w->mp, at });
    sn_pass_linear(&w->pass, &l->map_out, w->map, w->low);
    compete(w);
    decays(w);
    roll(w);
    read_out(w);
    sn_pass_multiply(&w->pass, { &l->mix, w->out, w->y }, { &l->feedback, w->term, w->before },
                     { &l->state_mul, w->left, w->y });
    simd->axpy(w->out, l->gain[0], w->s, n);
    simd->add(w->out, w->out, w->term, n);
    if (l->state_mul.rows) simd->mla(w->out, w->left, w->s, w->out, n);
    if (m->k.rows) remember(w);
    if (w->W->on.residual) sn_pass_add(&w->pass, w->out);
    else memcpy(w->pass.x, w->out, n * sizeof(float));
    if (w->W->on.h_norm) norms(w, &w->W->h_norm, w->pass.x, w->pass.x, w->D);
}

static void forward(const sn_model *m, sn_exec *exec, const int32_t *tokens, size_t n_tokens,
                    const sn_segment *segments, size_t n_segments, float *logits,
                    size_t first_logits) {
    const weights *W = m->weights;
    work w = { .pass = sn_pass_begin(m, exec, &W->embedding, tokens, n_tokens, segments,
                                     n_segments) };
    take_arrays(&w, m);
    for (int32_t i = 0; i < m->n_layers; i++) {
        w.layer = &W->layers[i];
        w.pass.state_offset = w.layer->state_offset;
        block(&w);
    }
    if (logits) norms(&w, &W->norm_out, w.raw, w.pass.x, w.D);
    sn_pass_end(&w.pass, &W->head, w.raw, logits, first_logits);
}

const sn_arch sn_arch_sunnynet = { .name = "sunnynet", .bind = bind, .forward = forward };
