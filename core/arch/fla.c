#include "fla.h"

#include <stdio.h>

/* ---- loading ----------------------------------------------------------------------------- */

static sn_status bind_frame(sn_binder *b) {
    sn_model *m = b->model;
    sn_fla *f = m->weights;
    m->norm_eps = 1e-6f;
    SN_TRY(sn_bind_size(b, "feed_forward_length", 1 << 22, &m->n_ffn));
    SN_TRY(sn_bind_size(b, "attention.head_count", 1 << 16, &f->H));
    SN_TRY(sn_bind_size(b, "attention.key_length", 1 << 16, &f->K));
    SN_TRY(sn_bind_size(b, "attention.value_length", 1 << 16, &f->V));
    SN_TRY(sn_bind_epsilon(b, "attention.layer_norm_rms_epsilon", &m->norm_eps));
    SN_TRY(sn_bind_size_or(b, "conv_kernel", SN_MAX_TAPS, &f->taps));
    m->n_heads = f->H;
    m->head_size = f->K;
    SN_TRY(sn_bind_ends(b, &f->embedding, &f->head));
    return sn_bind_vector(b, "output_norm.weight", (uint64_t)m->n_embd, &f->norm);
}

static sn_status bind_layer(sn_binder *b, sn_fla_layer *l) {
    const uint64_t D = (uint64_t)b->model->n_embd, F = (uint64_t)b->model->n_ffn;
    SN_TRY(sn_bind_vector(b, "attn_norm.weight", D, &l->mix_norm));
    SN_TRY(sn_bind_vector(b, "ffn_norm.weight", D, &l->ffn_norm));
    SN_TRY(sn_bind_matrix(b, "ffn_gate.weight", F, D, &l->gate));
    SN_TRY(sn_bind_matrix(b, "ffn_up.weight", F, D, &l->up));
    return sn_bind_matrix(b, "ffn_down.weight", D, F, &l->down);
}

sn_status sn_fla_bind_projection(sn_binder *b, const char *stem, uint64_t rows,
                                 sn_fla_projection *out) {
    const sn_fla *f = b->model->weights;
    char tensor[64];
    snprintf(tensor, sizeof tensor, "%s.weight", stem);
    SN_TRY(sn_bind_matrix(b, tensor, rows, (uint64_t)b->model->n_embd, &out->W));
    snprintf(tensor, sizeof tensor, "%s_conv.weight", stem);
    if (!f->taps && sn_bind_has(b, tensor))
        return sn_bind_fail(b, "conv_kernel", "missing, but there are convolutions");
    if (!f->taps) return SN_OK;
    SN_TRY(sn_bind_transposed(b, tensor, rows, (uint64_t)f->taps, &out->conv));
    snprintf(tensor, sizeof tensor, "%s_conv.bias", stem);
    return sn_bind_vector_or(b, tensor, rows, &out->bias);
}

static void *layer_at(const sn_fla_kind *kind, const sn_model *m, int32_t number) {
    return (char *)m->weights + kind->weights_bytes + (size_t)number * kind->layer_bytes;
}

static sn_status count_scratch(const sn_fla_kind *kind, sn_model *m) {
    sn_fla_work *w = sn_alloc(kind->work_bytes);
    if (!w) return SN_E_NOMEM;
    w->pass.taken = (size_t)m->n_embd; /* x */
    kind->take_arrays(w, m);
    m->scratch_floats = w->pass.taken;
    sn_free(w);
    return SN_OK;
}

sn_status sn_fla_bind(const sn_fla_kind *kind, sn_loader *loader, sn_model *m) {
    sn_binder b = sn_binder_of(loader, m);
    SN_TRY(sn_bind_common(&b));
    SN_TRY(sn_bind_vocabulary(&b));
    SN_TRY(sn_loader_weights(loader, kind->weights_bytes +
                                     (size_t)m->n_layers * kind->layer_bytes));
    SN_TRY(bind_frame(&b));
    SN_TRY(kind->bind_keys(&b, m->weights));
    for (b.layer = 0; b.layer < m->n_layers; b.layer++) {
        SN_TRY(bind_layer(&b, layer_at(kind, m, b.layer)));
        SN_TRY(kind->bind_layer(&b, m->weights, layer_at(kind, m, b.layer)));
    }
    SN_TRY(sn_bind_state(&b, kind->layer_state(m->weights)));
    return count_scratch(kind, m);
}

uint64_t sn_fla_history(const sn_fla *f, uint64_t width) {
    return f->taps ? (uint64_t)(f->taps - 1) * width : 0;
}

void sn_fla_take_arrays(sn_fla_work *w, const sn_model *m, size_t rows) {
    w->model = m->weights;
    w->h = sn_pass_take(&w->pass, (size_t)m->n_embd);
    w->out = sn_pass_take(&w->pass, (size_t)m->n_embd);
    w->gate = sn_pass_take(&w->pass, (size_t)m->n_ffn);
    w->up = sn_pass_take(&w->pass, (size_t)m->n_ffn);
    w->raw = sn_pass_take(&w->pass, w->model->taps ? rows : 0);
}

/* ---- computing ---------------------------------------------------------------------------- */

#define PROJECTIONS 3

void sn_fla_project(sn_fla_work *w, const sn_fla_projected projected[PROJECTIONS],
                    const sn_product *others, size_t n_others) {
    const sn_pass *pass = &w->pass;
    sn_product products[SN_MOST_PRODUCTS];
    float *raw = w->raw;
    for (int i = 0; i < PROJECTIONS; i++) {
        const sn_fla_projection *p = projected[i].projection;
        products[i] = (sn_product){ &p->W, p->conv ? raw : projected[i].y, w->h };
        raw += p->conv ? pass->T * p->W.rows : 0;
    }
    for (size_t i = 0; i < n_others; i++) products[PROJECTIONS + i] = others[i];
    sn_pass_products(pass, products, PROJECTIONS + n_others);
    for (int i = 0; i < PROJECTIONS; i++) {
        const sn_fla_projection *p = projected[i].projection;
        if (!p->conv) continue;
        sn_pass_conv(pass, projected[i].y, products[i].y, p->W.rows, p->conv, p->bias,
                     (size_t)w->model->taps, p->W.rows, w->history);
        w->history += (size_t)sn_fla_history(w->model, p->W.rows);
    }
}

void sn_fla_norm_and_gate(const sn_fla_work *w, float *y, const float *weight, size_t width,
                          size_t total, float eps, const float *gate) {
    const sn_pass *pass = &w->pass;
    sn_pass_rms_pieces(pass, y, y, weight, width, total, eps);
    sn_pass_show(pass, "normed", y, total);
    if (!gate) return;
    sn_pass_show(pass, "gate", gate, total);
    sn_pass_gate(pass, y, gate, total);
    sn_pass_show(pass, "gated", y, total);
}

typedef struct attend_job {
    const sn_fla_work *w;
    const sn_fla_attention *a;
} attend_job;

/* Heads [begin, end) of all segments. */
static void attend_heads(void *context, size_t begin, size_t end) {
    const attend_job *job = context;
    const sn_fla_attention *a = job->a;
    const sn_fla *f = job->w->model;
    const sn_pass *pass = &job->w->pass;
    const size_t H = (size_t)f->H, K = (size_t)f->K, V = (size_t)f->V, GK = a->G * K,
                 GV = a->G * V;
    for (size_t i = begin; i < end; i++) {
        const size_t s = i / H, h = i % H, g = h / (H / a->G);
        const size_t first = pass->segments[s].first;
        pass->simd->outer_scan(&(sn_matrix_scan){
            .y = a->y + first * H * V + h * V, .y_stride = H * V,
            .S = sn_pass_state(pass, s) + job->w->history + h * K * V, .row = V, .n_keys = K,
            .n_values = V, .n_tokens = pass->segments[s].count, .decay = SN_DECAY_KEY,
            .d = { a->decay + first * GK + g * K, GK }, .k = { a->k + first * GK + g * K, GK },
            .v = { a->v + first * GV + g * V, GV },
            .r = { a->q + first * H * K + h * K, H * K } });
    }
}

void sn_fla_attend(const sn_fla_work *w, const sn_fla_attention *a) {
    const sn_pass *pass = &w->pass;
    const size_t H = (size_t)w->model->H, K = (size_t)w->model->K;
    attend_job job = { w, a };
    pass->simd->scale(a->q, 1.0f / pass->simd->root((float)K), a->q, pass->T * H * K);
    sn_run(pass->exec, pass->n_segments * H, attend_heads, &job);
}

static void feed_forward(sn_fla_work *w, const sn_fla_layer *l) {
    const sn_pass *pass = &w->pass;
    sn_pass_rms(pass, w->h, pass->x, l->ffn_norm, pass->D, pass->model->norm_eps);
    sn_pass_multiply(pass, { &l->gate, w->gate, w->h }, { &l->up, w->up, w->h });
    sn_pass_gate(pass, w->up, w->gate, l->up.rows);
    sn_pass_linear(pass, &l->down, w->out, w->up);
    sn_pass_add(pass, w->out);
}

void sn_fla_forward(const sn_fla_kind *kind, sn_fla_work *w, const sn_model *m, sn_exec *exec,
                    const int32_t *tokens, size_t n_tokens, const sn_segment *segments,
                    size_t n_segments, float *logits, size_t first_logits) {
    const sn_fla *f = m->weights;
    const size_t layer_state = (size_t)kind->layer_state(f);
    sn_pass *pass = &w->pass;
    *pass = sn_pass_begin(m, exec, &f->embedding, tokens, n_tokens, segments, n_segments);
    kind->take_arrays(w, m);
    for (int32_t i = sn_pass_first_layer(pass); i < sn_pass_end_layer(pass); i++) {
        const sn_fla_layer *layer = layer_at(kind, m, i);
        pass->state_offset = (size_t)i * layer_state;
        w->history = 0;
        sn_pass_rms(pass, w->h, pass->x, layer->mix_norm, pass->D, m->norm_eps);
        sn_pass_show(pass, "h", w->h, pass->D);
        kind->mix(w, layer);
        sn_pass_show(pass, "out", w->out, pass->D);
        sn_pass_add(pass, w->out);
        feed_forward(w, layer);
    }
    if (logits) sn_pass_rms(pass, w->h, pass->x, f->norm, pass->D, m->norm_eps);
    sn_pass_end(pass, &f->head, w->h, logits, first_logits);
}
