#include "pass.h"

#include <string.h>

float *sn_pass_take(sn_pass *pass, size_t width) {
    float *array = pass->scratch ? pass->scratch + pass->T * pass->taken : NULL;
    /* while widths are counted, their sum may be beyond the address space: sn_exec_size refuses */
    pass->taken = width <= SIZE_MAX - pass->taken ? pass->taken + width : SIZE_MAX;
    return array;
}

sn_pass sn_pass_begin(const sn_model *model, sn_exec *exec, const sn_rows *embedding,
                      const int32_t *tokens, size_t n_tokens, const sn_segment *segments,
                      size_t n_segments) {
    sn_pass pass = { .model = model, .exec = exec, .simd = exec->simd, .T = n_tokens,
                     .D = (size_t)model->n_embd, .segments = segments,
                     .n_segments = n_segments, .scratch = exec->scratch };
    pass.x = sn_pass_take(&pass, pass.D);
    for (size_t t = 0; t < n_tokens; t++) sn_embed(embedding, tokens[t], pass.x + t * pass.D);
    exec->weight_bytes += (double)(n_tokens * embedding->row_bytes) + model->vector_bytes;
    return pass;
}

void sn_pass_end(const sn_pass *pass, const sn_matrix *head, const float *normed, float *logits,
                 size_t first_logits) {
    const size_t n = pass->T - first_logits;
    sn_pass_show(pass, "x", pass->x, pass->D);
    if (!sn_all_finite(pass->x, pass->T * pass->D)) pass->exec->spoiled = true;
    if (!logits) return;
    sn_linear(pass->exec, head, logits, head->rows, normed + first_logits * pass->D, n);
    if (!sn_all_finite(logits, n * head->rows)) pass->exec->spoiled = true;
}

void sn_pass_linear(const sn_pass *pass, const sn_matrix *W, float *y, const float *x) {
    sn_linear(pass->exec, W, y, W->rows, x, pass->T);
}

void sn_pass_affine(const sn_pass *pass, const sn_matrix *W, const float *bias, float *y,
                    const float *x) {
    sn_pass_linear(pass, W, y, x);
    for (size_t t = 0; bias && t < pass->T; t++)
        pass->simd->add(y + t * W->rows, y + t * W->rows, bias, W->rows);
}

void sn_pass_add(const sn_pass *pass, const float *y) {
    pass->simd->add(pass->x, pass->x, y, pass->T * pass->D);
}

void sn_pass_rms(const sn_pass *pass, float *y, const float *x, const float *weight, size_t width,
                 float eps) {
    for (size_t t = 0; t < pass->T; t++)
        pass->simd->rms_norm(y + t * width, x + t * width, weight, width, eps);
}

void sn_pass_norm(const sn_pass *pass, float *y, const float *x, const float *weight,
                  const float *bias, size_t width, float eps) {
    for (size_t t = 0; t < pass->T; t++)
        pass->simd->layer_norm(y + t * width, x + t * width, weight, bias, width, eps);
}

float *sn_pass_state(const sn_pass *pass, size_t segment) {
    return pass->segments[segment].state + pass->state_offset;
}

/* history = the last n rows of: history, then x's count rows */
static void keep_rows(float *history, const float *x, size_t x_stride, size_t n, size_t count,
                      size_t width) {
    const size_t old = count < n ? n - count : 0;
    memmove(history, history + (n - old) * width, old * width * sizeof(float));
    for (size_t i = old; i < n; i++)
        memcpy(history + i * width, x + (count + i - n) * x_stride, width * sizeof(float));
}

void sn_pass_conv(const sn_pass *pass, float *y, const float *x, size_t x_stride, const float *w,
                  const float *bias, size_t taps, size_t width, size_t history) {
    const float *rows[SN_MAX_TAPS];
    const size_t before = taps - 1;
    for (size_t s = 0; s < pass->n_segments; s++) {
        float *old = sn_pass_state(pass, s) + history;
        const size_t first = pass->segments[s].first, count = pass->segments[s].count;
        for (size_t t = 0; t < count; t++) {
            for (size_t k = 0; k < taps; k++)
                rows[k] = t + k < before ? old + (t + k) * width
                                         : x + (first + t + k - before) * x_stride;
            pass->simd->conv(y + (first + t) * width, rows, w, bias, taps, width);
        }
        keep_rows(old, x + first * x_stride, x_stride, before, count, width);
    }
}
