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

/* Row distance of int8 activations: an odd number of cache lines, so that the rows of a chunk do
 * not fall on a few sets of a cache. */
static size_t q_stride_of(size_t k) {
    const size_t lines = (k + 63) / 64;
    return 64 * (lines | 1);
}

/* How many inputs of n_embd values can be int8 at once. */
#define GROUP_INPUTS 6

static size_t q_bytes_of(const sn_exec_sizes *sizes) {
    const size_t longest = q_stride_of(sizes->max_k);
    const size_t group = sizes->max_k ? GROUP_INPUTS * q_stride_of(sizes->width) : 0;
    return longest > group ? longest : group;
}

#define PIECES 5

/* The pieces of an exec's memory, each on its own cache lines. */
static bool exec_pieces(const sn_exec_sizes *sizes, size_t pieces[PIECES]) {
    size_t scratch;
    if (sizes->max_k > SIZE_MAX / 64 || sizes->width > SIZE_MAX / 64 ||
        !sn_mul_size(sizes->max_tokens, sizes->scratch_floats, &scratch) ||
        !sn_mul_size(scratch, sizeof(float), &pieces[0]) ||
        !sn_mul_size(sizes->max_tokens, q_bytes_of(sizes), &pieces[1]) ||
        !sn_mul_size(sizes->max_tokens, SN_MOST_PRODUCTS * SN_PANEL_ROWS * sizeof(float),
                     &pieces[4]) ||
        pieces[0] > SIZE_MAX / 8 || pieces[1] > SIZE_MAX / 8 || pieces[4] > SIZE_MAX / 8)
        return false;
    pieces[2] = pieces[1] / 32 * sizeof(float);
    pieces[3] = pieces[1] / 16 * sizeof(int32_t);
    for (int i = 0; i < PIECES; i++) pieces[i] = sn_round_up(pieces[i], SN_ALIGNMENT);
    return true;
}

sn_status sn_exec_size(const sn_exec_sizes *sizes, size_t *bytes) {
    size_t pieces[PIECES];
    if (!exec_pieces(sizes, pieces))
        return sn_fail(SN_E_NOMEM, "scratch for %zu tokens does not fit the address space",
                       sizes->max_tokens);
    *bytes = 0;
    for (int i = 0; i < PIECES; i++) *bytes += pieces[i];
    return SN_OK;
}

void sn_exec_init(sn_exec *exec, const sn_simd *simd, sn_pool *pool, bool f32_activations,
                  const sn_exec_sizes *sizes, void *memory) {
    size_t pieces[PIECES] = { 0 };
    uint8_t *at = memory;
    (void)exec_pieces(sizes, pieces); /* sn_exec_size succeeded */
    memset(exec, 0, sizeof *exec);
    exec->simd = simd;
    exec->pool = pool;
    exec->f32_activations = f32_activations;
    exec->max_tokens = sizes->max_tokens;
    exec->q_bytes = q_bytes_of(sizes);
    exec->scratch = (float *)(void *)at;
    exec->q = (int8_t *)(at += pieces[0]);
    exec->q_scale = (float *)(void *)(at += pieces[1]);
    exec->q_sum = (int32_t *)(void *)(at += pieces[2]);
    exec->tail = (float *)(void *)(at += pieces[3]);
}

/* ---- products ---------------------------------------------------------------------------- */

/* An input as int8, by the rule of the layouts that it meets; products of one input share it. */
typedef struct int8_input {
    const float *x;
    size_t k;
    bool i4;
    sn_q8_rows rows;
} int8_input;

typedef struct multiply_job {
    sn_exec *exec;
    size_t n, n_tokens, n_inputs;
    const sn_product *products[SN_MOST_PRODUCTS];
    const int8_input *input[SN_MOST_PRODUCTS]; /* NULL: floats */
    int8_input inputs[SN_MOST_PRODUCTS];
    size_t n_panels; /* of all products, one after the other */
    size_t bytes;    /* of them */
} multiply_job;

/* Panels [begin, end) of product i into rows of y_stride floats. */
static void multiply(const multiply_job *job, size_t i, float *y, size_t y_stride, size_t begin,
                     size_t end) {
    const sn_matrix *W = job->products[i]->W;
    const uint8_t *panels = W->panels + begin * W->panel_bytes;
    const sn_simd *simd = job->exec->simd;
    if (job->input[i])
        simd->matmul_q8[W->layout](y, y_stride, panels, W->panel_bytes, end - begin, W->k,
                                   job->input[i]->rows, job->n_tokens);
    else
        simd->matmul_f32[W->layout](y, y_stride, panels, W->panel_bytes, end - begin, W->k,
                                    job->products[i]->x, W->k, job->n_tokens);
}

/* Whole panels write straight into y; a partial last one goes through the tail buffer. */
static void multiply_one(const multiply_job *job, size_t i, size_t begin, size_t end) {
    const sn_matrix *W = job->products[i]->W;
    float *y = job->products[i]->y;
    const size_t full = W->rows / SN_PANEL_ROWS, rest = W->rows % SN_PANEL_ROWS;
    const size_t whole_end = end < full ? end : full;
    if (begin < whole_end) multiply(job, i, y + begin * SN_PANEL_ROWS, W->rows, begin, whole_end);
    if (end > full) {
        float *tail = job->exec->tail + i * job->exec->max_tokens * SN_PANEL_ROWS;
        multiply(job, i, tail, SN_PANEL_ROWS, full, full + 1);
        for (size_t t = 0; t < job->n_tokens; t++)
            memcpy(y + t * W->rows + full * SN_PANEL_ROWS, tail + t * SN_PANEL_ROWS,
                   rest * sizeof(float));
    }
}

static void multiply_panels(void *context, size_t begin, size_t end) {
    const multiply_job *job = context;
    for (size_t i = 0, first = 0; i < job->n && first < end; i++) {
        const size_t n = job->products[i]->W->n_panels, last = first + n;
        if (begin < last)
            multiply_one(job, i, begin > first ? begin - first : 0, end < last ? end - first : n);
        first = last;
    }
}

static void quantize_tokens(void *context, size_t begin, size_t end) {
    const multiply_job *job = context;
    const sn_simd *simd = job->exec->simd;
    for (size_t i = 0; i < job->n_inputs; i++) {
        const int8_input *input = &job->inputs[i];
        const size_t stride = input->rows.q_stride;
        int (*const row)(int8_t *, float *, int32_t *, const float *, size_t) =
            input->i4 ? simd->quantize_i4 : simd->quantize_q8;
        for (size_t t = begin; t < end; t++)
            if (!row((int8_t *)input->rows.q + t * stride,
                     (float *)input->rows.scale + t * (stride / 32),
                     (int32_t *)input->rows.sum + t * (stride / 16), input->x + t * input->k,
                     input->k))
                atomic_store_explicit(&job->exec->spoiled, true, memory_order_relaxed);
    }
}

/* Where x is, or will be, as int8; NULL if there is no room for one more input. */
static const int8_input *int8_of(multiply_job *job, const sn_product *product, size_t *used) {
    const sn_matrix *W = product->W;
    const bool i4 = W->layout == SN_LAYOUT_I4;
    for (size_t i = 0; i < job->n_inputs; i++)
        if (job->inputs[i].x == product->x && job->inputs[i].k == W->k && job->inputs[i].i4 == i4)
            return &job->inputs[i];
    const size_t stride = q_stride_of(W->k), at = *used * job->n_tokens;
    if (*used + stride > job->exec->q_bytes) return NULL;
    *used += stride;
    const sn_exec *exec = job->exec;
    int8_input *input = &job->inputs[job->n_inputs++];
    *input = (int8_input){ product->x, W->k, i4,
                           { exec->q + at, exec->q_scale + at / 32, exec->q_sum + at / 16,
                             stride } };
    return input;
}

/* Takes as many products as there is room for their inputs; returns how many of the n. */
static size_t gather(multiply_job *job, const sn_product *products, size_t n) {
    const sn_exec *exec = job->exec;
    size_t used = 0, i = 0;
    for (; i < n && job->n < SN_MOST_PRODUCTS; i++) {
        const sn_matrix *W = products[i].W;
        if (!W->rows) continue;
        const bool int8 = exec->simd->matmul_q8[W->layout] && !exec->f32_activations;
        const int8_input *input = int8 ? int8_of(job, &products[i], &used) : NULL;
        if (int8 && !input) break;
        job->input[job->n] = input;
        job->products[job->n++] = &products[i];
        job->n_panels += W->n_panels;
        job->bytes += W->n_panels * W->panel_bytes;
    }
    return i;
}

/* Every meeting of the threads begins here. It counts too where so little is to be done that this
 * thread does not wait for others: a layer has its number of meetings whatever its size. */
static void meet(sn_exec *exec, bool shared, size_t n, sn_work work, void *context) {
    exec->meetings++;
    if (shared) sn_pool_run(exec->pool, n, work, context);
    else work(context, 0, n);
}

void sn_run(sn_exec *exec, size_t n, sn_work work, void *context) {
    meet(exec, true, n, work, context);
}

void sn_run_tokens(sn_exec *exec, size_t n_tokens, sn_work work, void *context) {
    if (n_tokens < SN_TOKENS_WORTH_SHARING) work(context, 0, n_tokens);
    else sn_run(exec, n_tokens, work, context);
}

void sn_multiply(sn_exec *exec, const sn_product *products, size_t n, size_t n_tokens) {
    while (n) {
        multiply_job job = { .exec = exec, .n_tokens = n_tokens };
        const size_t taken = gather(&job, products, n);
        exec->weight_bytes += (double)job.bytes;
        if (job.n_inputs) sn_run_tokens(exec, n_tokens, quantize_tokens, &job);
        meet(exec, job.bytes * n_tokens >= WORTH_SHARING, job.n_panels, multiply_panels, &job);
        products += taken;
        n -= taken;
    }
}

/* ---- rows and values ---------------------------------------------------------------------- */

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
