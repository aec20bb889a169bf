#include "ops.h"

#include <string.h>

/* Weight bytes times tokens; less is done before another thread has noticed. */
#define WORTH_SHARING (96 << 10)

sn_layout sn_layout_of(const sn_type *type) {
    switch (type->id) {
    case SN_TYPE_F32: return SN_LAYOUT_F32;
    case SN_TYPE_F16: return SN_LAYOUT_F16;
    case SN_TYPE_BF16: return SN_LAYOUT_BF16;
    case SN_TYPE_Q8_0: return SN_LAYOUT_Q8_0;
    case SN_TYPE_Q4_0: return SN_LAYOUT_Q4_0;
    case SN_TYPE_Q4_1: return SN_LAYOUT_Q4_1;
    case SN_TYPE_Q5_0: return SN_LAYOUT_Q5_0;
    case SN_TYPE_Q5_1: return SN_LAYOUT_Q5_1;
    case SN_TYPE_Q4_K: return SN_LAYOUT_Q4_K;
    case SN_TYPE_Q5_K: return SN_LAYOUT_Q5_K;
    case SN_TYPE_Q6_K: return SN_LAYOUT_Q6_K;
    case SN_TYPE_Q2_K: return SN_LAYOUT_Q2_K;
    case SN_TYPE_Q3_K: return SN_LAYOUT_Q3_K;
    case SN_TYPE_IQ4_NL: return SN_LAYOUT_IQ4_NL;
    case SN_TYPE_IQ4_XS: return SN_LAYOUT_IQ4_XS;
    case SN_TYPE_I4: return SN_LAYOUT_I4;
    default: return SN_LAYOUT_COUNT;
    }
}

static size_t q_stride_of(size_t max_k) {
    return sn_round_up(max_k ? max_k : 1, 32);
}

/* The pieces of an exec's memory, each on its own cache lines. */
static bool exec_pieces(size_t max_tokens, size_t scratch_floats, size_t max_k, size_t sizes[5]) {
    const size_t stride = q_stride_of(max_k);
    size_t scratch;
    if (!sn_mul_size(max_tokens, scratch_floats, &scratch) ||
        !sn_mul_size(scratch, sizeof(float), &sizes[0]) ||
        !sn_mul_size(max_tokens, stride, &sizes[1]) || sizes[0] > SIZE_MAX / 4 ||
        sizes[1] > SIZE_MAX / 8)
        return false;
    sizes[2] = sizes[1] / 32 * sizeof(float);
    sizes[3] = sizes[1] / 16 * sizeof(int32_t);
    sizes[4] = max_tokens * SN_PANEL_ROWS * sizeof(float);
    for (int i = 0; i < 5; i++) sizes[i] = sn_round_up(sizes[i], SN_ALIGNMENT);
    return true;
}

sn_status sn_exec_size(size_t max_tokens, size_t scratch_floats, size_t max_k, size_t *bytes) {
    size_t sizes[5];
    if (!exec_pieces(max_tokens, scratch_floats, max_k, sizes))
        return sn_fail(SN_E_NOMEM, "scratch for %zu tokens does not fit the address space",
                       max_tokens);
    *bytes = sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4];
    return SN_OK;
}

void sn_exec_init(sn_exec *exec, const sn_simd *simd, sn_pool *pool, bool f32_activations,
                  size_t max_tokens, size_t scratch_floats, size_t max_k, void *memory) {
    size_t sizes[5] = { 0 };
    uint8_t *at = memory;
    (void)exec_pieces(max_tokens, scratch_floats, max_k, sizes); /* sn_exec_size succeeded */
    memset(exec, 0, sizeof *exec);
    exec->simd = simd;
    exec->pool = pool;
    exec->f32_activations = f32_activations;
    exec->max_tokens = max_tokens;
    exec->q_stride = q_stride_of(max_k);
    exec->scratch = (float *)(void *)at;
    exec->q = (int8_t *)(at += sizes[0]);
    exec->q_scale = (float *)(void *)(at += sizes[1]);
    exec->q_sum = (int32_t *)(void *)(at += sizes[2]);
    exec->tail = (float *)(void *)(at += sizes[3]);
}

typedef struct linear_job {
    sn_exec *exec;
    const sn_matrix *w;
    float *y;
    size_t y_stride;
    const float *x;
    sn_q8_rows q;
    bool int8;
    size_t n_tokens;
} linear_job;

static void multiply(const linear_job *job, float *y, size_t y_stride, size_t begin, size_t end) {
    const sn_matrix *w = job->w;
    const uint8_t *panels = w->panels + begin * w->panel_bytes;
    const sn_simd *simd = job->exec->simd;
    if (job->int8)
        simd->matmul_q8[w->layout](y, y_stride, panels, w->panel_bytes, end - begin, w->k, job->q,
                                   job->n_tokens);
    else
        simd->matmul_f32[w->layout](y, y_stride, panels, w->panel_bytes, end - begin, w->k, job->x,
                                    w->k, job->n_tokens);
}

/* Whole panels write straight into y; a partial last one goes through the tail buffer. */
static void linear_panels(void *context, size_t begin, size_t end) {
    const linear_job *job = context;
    const size_t full = job->w->rows / SN_PANEL_ROWS, rest = job->w->rows % SN_PANEL_ROWS;
    const size_t whole_end = end < full ? end : full;
    if (begin < whole_end)
        multiply(job, job->y + begin * SN_PANEL_ROWS, job->y_stride, begin, whole_end);
    if (end > full) {
        multiply(job, job->exec->tail, SN_PANEL_ROWS, full, full + 1);
        for (size_t t = 0; t < job->n_tokens; t++)
            memcpy(job->y + t * job->y_stride + full * SN_PANEL_ROWS,
                   job->exec->tail + t * SN_PANEL_ROWS, rest * sizeof(float));
    }
}

/* x as int8, by the rule of the layout it will meet. */
static sn_q8_rows quantize(sn_exec *exec, const sn_matrix *w, const float *x, size_t n_tokens) {
    const size_t stride = exec->q_stride;
    int (*const row)(int8_t *, float *, int32_t *, const float *, size_t) =
        w->layout == SN_LAYOUT_I4 ? exec->simd->quantize_i4 : exec->simd->quantize_q8;
    for (size_t t = 0; t < n_tokens; t++)
        if (!row(exec->q + t * stride, exec->q_scale + t * (stride / 32),
                 exec->q_sum + t * (stride / 16), x + t * w->k, w->k))
            exec->spoiled = true;
    return (sn_q8_rows){ exec->q, exec->q_scale, exec->q_sum, stride };
}

void sn_linear(sn_exec *exec, const sn_matrix *w, float *y, size_t y_stride, const float *x,
               size_t n_tokens) {
    linear_job job = { .exec = exec, .w = w, .y = y, .y_stride = y_stride, .x = x,
                       .n_tokens = n_tokens };
    job.int8 = exec->simd->matmul_q8[w->layout] && !exec->f32_activations;
    if (job.int8) job.q = quantize(exec, w, x, n_tokens);
    const size_t bytes = w->n_panels * w->panel_bytes;
    exec->weight_bytes += (double)bytes;
    if (bytes * n_tokens < WORTH_SHARING) linear_panels(&job, 0, w->n_panels);
    else sn_pool_run(exec->pool, w->n_panels, linear_panels, &job);
}

void sn_embed(const sn_rows *rows, int32_t id, float *y) {
    const size_t row = (size_t)id;
    if (!rows->tied) {
        rows->type->decode(rows->data + row * rows->row_bytes, y, rows->k);
        return;
    }
    const uint8_t *panel = rows->tied->panels + row / SN_PANEL_ROWS * rows->tied->panel_bytes;
    sn_panel_row(rows->type, panel, row % SN_PANEL_ROWS, rows->k, y);
}

bool sn_all_finite(const float *x, size_t n) {
    uint32_t spoiled = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        spoiled |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !spoiled;
}
