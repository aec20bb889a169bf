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
    sn_multiply(pass->exec, &(sn_product){ head, logits, normed + first_logits * pass->D }, 1, n);
    if (!sn_all_finite(logits, n * head->rows)) pass->exec->spoiled = true;
}

void sn_pass_tokens(const sn_pass *pass, sn_work work, void *context) {
    sn_run_tokens(pass->exec, pass->T, work, context);
}

void sn_pass_products(const sn_pass *pass, const sn_product *products, size_t n) {
    sn_multiply(pass->exec, products, n, pass->T);
}

void sn_pass_linear(const sn_pass *pass, const sn_matrix *W, float *y, const float *x) {
    sn_multiply(pass->exec, &(sn_product){ W, y, x }, 1, pass->T);
}

void sn_pass_bias(const sn_pass *pass, float *y, const float *bias, size_t width) {
    for (size_t t = 0; bias && t < pass->T; t++)
        pass->simd->add(y + t * width, y + t * width, bias, width);
}

void sn_pass_affine(const sn_pass *pass, const sn_matrix *W, const float *bias, float *y,
                    const float *x) {
    sn_pass_linear(pass, W, y, x);
    sn_pass_bias(pass, y, bias, W->rows);
}

typedef struct add_job {
    const sn_pass *pass;
    const float *y;
} add_job;

static void add_tokens(void *context, size_t begin, size_t end) {
    const add_job *j = context;
    const size_t D = j->pass->D;
    float *x = j->pass->x + begin * D;
    j->pass->simd->add(x, x, j->y + begin * D, (end - begin) * D);
}

void sn_pass_add(const sn_pass *pass, const float *y) {
    sn_pass_tokens(pass, add_tokens, &(add_job){ pass, y });
}

/* ---- element by element, each token by itself ------------------------------------------- */

typedef struct map_job {
    const sn_pass *pass;
    sn_map f;
    float *y;
    const float *gate;
    size_t width;
} map_job;

static void map_tokens(void *context, size_t begin, size_t end) {
    const map_job *j = context;
    float *y = j->y + begin * j->width;
    j->f(y, y, (end - begin) * j->width);
}

static void gate_tokens(void *context, size_t begin, size_t end) {
    const map_job *j = context;
    float *y = j->y + begin * j->width;
    j->pass->simd->mul_silu(y, y, j->gate + begin * j->width, (end - begin) * j->width);
}

void sn_pass_map(const sn_pass *pass, sn_map f, float *y, size_t width) {
    sn_pass_tokens(pass, map_tokens, &(map_job){ pass, f, y, NULL, width });
}

void sn_pass_gate(const sn_pass *pass, float *y, const float *gate, size_t width) {
    sn_pass_tokens(pass, gate_tokens, &(map_job){ pass, NULL, y, gate, width });
}

/* ---- norms ------------------------------------------------------------------------------- */

typedef struct norm_job {
    const sn_pass *pass;
    float *y;
    const float *x, *weight, *bias;
    size_t width, total; /* floats of a piece, of a token */
    float eps;
} norm_job;

static void rms_tokens(void *context, size_t begin, size_t end) {
    const norm_job *j = context;
    for (size_t i = begin * j->total; i < end * j->total; i += j->width)
        j->pass->simd->rms_norm(j->y + i, j->x + i, j->weight, j->width, j->eps);
}

static void norm_tokens(void *context, size_t begin, size_t end) {
    const norm_job *j = context;
    for (size_t i = begin * j->total; i < end * j->total; i += j->width)
        j->pass->simd->layer_norm(j->y + i, j->x + i, j->weight, j->bias, j->width, j->eps);
}

void sn_pass_rms(const sn_pass *pass, float *y, const float *x, const float *weight, size_t width,
                 float eps) {
    sn_pass_rms_pieces(pass, y, x, weight, width, width, eps);
}

void sn_pass_rms_pieces(const sn_pass *pass, float *y, const float *x, const float *weight,
                        size_t width, size_t total, float eps) {
    norm_job job = { pass, y, x, weight, NULL, width, total, eps };
    sn_pass_tokens(pass, rms_tokens, &job);
}

void sn_pass_norm(const sn_pass *pass, float *y, const float *x, const float *weight,
                  const float *bias, size_t width, float eps) {
    norm_job job = { pass, y, x, weight, bias, width, width, eps };
    sn_pass_tokens(pass, norm_tokens, &job);
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

typedef struct conv_job {
    const sn_pass *pass;
    float *y;
    const float *x, *w, *bias;
    size_t x_stride, taps, width, history;
} conv_job;

static void conv_tokens(void *context, size_t begin, size_t end) {
    const conv_job *j = context;
    const float *rows[SN_MAX_TAPS];
    const size_t before = j->taps - 1;
    for (size_t s = 0; s < j->pass->n_segments; s++) {
        const float *old = sn_pass_state(j->pass, s) + j->history;
        const size_t first = j->pass->segments[s].first;
        const size_t last = first + j->pass->segments[s].count;
        for (size_t t = first > begin ? first : begin; t < last && t < end; t++) {
            for (size_t k = 0; k < j->taps; k++)
                rows[k] = t - first + k < before ? old + (t - first + k) * j->width
                                                 : j->x + (t + k - before) * j->x_stride;
            j->pass->simd->conv(j->y + t * j->width, rows, j->w, j->bias, j->taps, j->width);
        }
    }
}

void sn_pass_conv(const sn_pass *pass, float *y, const float *x, size_t x_stride, const float *w,
                  const float *bias, size_t taps, size_t width, size_t history) {
    conv_job job = { pass, y, x, w, bias, x_stride, taps, width, history };
    sn_pass_tokens(pass, conv_tokens, &job);
    for (size_t s = 0; s < pass->n_segments; s++)
        keep_rows(sn_pass_state(pass, s) + history, x + pass->segments[s].first * x_stride,
                  x_stride, taps - 1, pass->segments[s].count, width);
}
