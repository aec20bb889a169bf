#include "fla.h"

#include <stdio.h>

/* ---- loading ----------------------------------------------------------------------------- */

sn_status sn_fla_bind(sn_binder *b) {
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

sn_status sn_fla_bind_layer(sn_binder *b, sn_fla_layer *l) {
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
    if (!f->taps) return SN_OK;
    snprintf(tensor, sizeof tensor, "%s_conv.weight", stem);
    SN_TRY(sn_bind_transposed(b, tensor, rows, (uint64_t)f->taps, &out->conv));
    snprintf(tensor, sizeof tensor, "%s_conv.bias", stem);
    return sn_bind_vector_or(b, tensor, rows, &out->bias);
}

uint64_t sn_fla_history(const sn_fla *f, uint64_t width) {
    return f->taps ? (uint64_t)(f->taps - 1) * width : 0;
}

void sn_fla_take_arrays(sn_fla_work *w, const sn_model *m, size_t widest) {
    w->model = m->weights;
    w->h = sn_pass_take(&w->pass, (size_t)m->n_embd);
    w->out = sn_pass_take(&w->pass, (size_t)m->n_embd);
    w->gate = sn_pass_take(&w->pass, (size_t)m->n_ffn);
    w->up = sn_pass_take(&w->pass, (size_t)m->n_ffn);
    w->raw = sn_pass_take(&w->pass, w->model->taps ? widest : 0);
}

/* ---- computing ---------------------------------------------------------------------------- */

void sn_fla_project(sn_fla_work *w, const sn_fla_projection *p, float *y) {
    if (!p->conv) {
        sn_pass_linear(&w->pass, &p->W, y, w->h);
        return;
    }
    const size_t n = p->W.rows;
    sn_pass_linear(&w->pass, &p->W, w->raw, w->h);
    sn_pass_conv(&w->pass, y, w->raw, n, p->conv, p->bias, (size_t)w->model->taps, n, w->history);
    w->history += (size_t)sn_fla_history(w->model, n);
}

void sn_fla_norm_and_gate(sn_fla_work *w, float *y, const float *weight, size_t width,
                          size_t total, float eps, const sn_matrix *gate_matrix, float *gate) {
    const sn_pass *pass = &w->pass;
    for (size_t i = 0; i < pass->T * total; i += width)
        pass->simd->rms_norm(y + i, y + i, weight, width, eps);
    sn_pass_show(pass, "normed", y, total);
    if (!gate_matrix->rows) return;
    sn_pass_linear(pass, gate_matrix, gate, w->h);
    sn_pass_show(pass, "gate", gate, total);
    pass->simd->mul_silu(y, y, gate, pass->T * total);
    sn_pass_show(pass, "gated", y, total);
}

static void feed_forward(sn_fla_work *w, const sn_fla_layer *l) {
    const sn_pass *pass = &w->pass;
    sn_pass_rms(pass, w->h, pass->x, l->ffn_norm, pass->D, pass->model->norm_eps);
    sn_pass_linear(pass, &l->gate, w->gate, w->h);
    sn_pass_linear(pass, &l->up, w->up, w->h);
    pass->simd->mul_silu(w->up, w->up, w->gate, pass->T * l->up.rows);
    sn_pass_linear(pass, &l->down, w->out, w->up);
    sn_pass_add(pass, w->out);
}

void sn_fla_forward(sn_fla_work *w, const sn_fla_layer *(*layer_of)(const sn_model *, int32_t),
                    size_t layer_state, sn_fla_mix mix, float *logits, size_t first_logits) {
    sn_pass *pass = &w->pass;
    const sn_model *m = pass->model;
    for (int32_t l = sn_pass_first_layer(pass); l < sn_pass_end_layer(pass); l++) {
        const sn_fla_layer *layer = layer_of(m, l);
        pass->state_offset = (size_t)l * layer_state;
        w->history = 0;
        sn_pass_rms(pass, w->h, pass->x, layer->mix_norm, pass->D, m->norm_eps);
        sn_pass_show(pass, "h", w->h, pass->D);
        mix(w, l);
        sn_pass_show(pass, "out", w->out, pass->D);
        sn_pass_add(pass, w->out);
        feed_forward(w, layer);
    }
    if (logits) sn_pass_rms(pass, w->h, pass->x, w->model->norm, pass->D, m->norm_eps);
    sn_pass_end(pass, &w->model->head, w->h, logits, first_logits);
}
