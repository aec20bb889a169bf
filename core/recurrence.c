/*
 * recurrence.c: cuts whole arrays into pieces that threads can share, by batch row, channel, head
 * or matrix row, never along a sum or through time; the kernels do the rest.
 */
#include "recurrence.h"

#include <string.h>

#define CHANNELS 256 /* of a piece: its rows are still read a kilobyte at a time */
#define ROWS 32      /* of a matrix, likewise */

/* Elements below which waking another thread costs more than it saves. */
#define WORTH_SHARING 32768

/* Bytes of all arrays from which on none of an output is still in a cache when it has been written,
 * so that it may as well go past them (sn_recur, streaming). */
#define PAST_CACHES (16u << 20)

static void share(sn_pool *pool, uint64_t elements, size_t n, sn_work work, void *context) {
    if (elements >= WORTH_SHARING) sn_pool_run(pool, n, work, context);
    else if (n) work(context, 0, n);
}

static size_t pieces_of(size_t n, size_t piece) {
    return n / piece + (n % piece != 0);
}

/* ---- first order ----------------------------------------------------------------------------- */

typedef struct recurrence_job {
    const sn_simd *simd;
    const sn_recurrence *r;
    const sn_recurrence_gradients *g; /* NULL: forward */
    bool streaming;
} recurrence_job;

/* Channels [at, at + n) of batch row `row`. */
typedef struct channels {
    size_t row, at, n;
} channels;

static void forward(const recurrence_job *job, channels c) {
    const sn_recurrence *r = job->r;
    const size_t o = c.row * r->T * r->N + c.at, state = c.row * r->N + c.at;
    if (r->s_end != r->s0) memcpy(r->s_end + state, r->s0 + state, c.n * sizeof(float));
    job->simd->recur_scan(&(sn_recur){
        .y = r->y + o, .y_stride = r->N, .s = r->s_end + state, .a = { r->a + o, r->N },
        .b = { r->b + o, r->N }, .n = c.n, .n_tokens = r->T, .gated = r->gated,
        .streaming = job->streaming });
}

static void backward(const recurrence_job *job, channels c) {
    const sn_recurrence *r = job->r;
    const sn_recurrence_gradients *g = job->g;
    const size_t o = c.row * r->T * r->N + c.at, state = c.row * r->N + c.at;
    memset(g->ds0 + state, 0, c.n * sizeof(float));
    job->simd->recur_reverse(&(sn_recur_reverse){
        .da = g->da + o, .db = g->db + o, .da_stride = r->N, .db_stride = r->N,
        .d = g->ds0 + state, .s0 = r->s0 + state, .a = { r->a + o, r->N },
        .b = { r->gated ? r->b + o : NULL, r->N }, .y = { r->y + o, r->N },
        .dy = { g->dy + o, r->N }, .n = c.n, .n_tokens = r->T, .gated = r->gated,
        .streaming = job->streaming });
}

/* Pieces that lie side by side go to the kernel as one: long rows are read faster. */
static void run_channels(void *context, size_t begin, size_t end) {
    const recurrence_job *job = context;
    const size_t N = job->r->N, a_row = pieces_of(N, CHANNELS);
    while (begin < end) {
        const size_t row = begin / a_row, first = begin % a_row;
        const size_t count = end - begin < a_row - first ? end - begin : a_row - first;
        const size_t at = first * CHANNELS, stop = (first + count) * CHANNELS;
        const channels c = { row, at, (stop < N ? stop : N) - at };
        if (job->g) backward(job, c);
        else forward(job, c);
        begin += count;
    }
}

static void run_recurrence(sn_pool *pool, recurrence_job *job, uint64_t n_arrays) {
    const sn_recurrence *r = job->r;
    const uint64_t elements = (uint64_t)r->B * r->T * r->N;
    job->streaming = r->T > 1 && elements * sizeof(float) * n_arrays >= PAST_CACHES;
    share(pool, elements, r->B * pieces_of(r->N, CHANNELS), run_channels, job);
}

void sn_recurrence_forward(const sn_simd *simd, sn_pool *pool, const sn_recurrence *r) {
    recurrence_job job = { .simd = simd, .r = r };
    run_recurrence(pool, &job, 3);
}

void sn_recurrence_backward(const sn_simd *simd, sn_pool *pool, const sn_recurrence *r,
                            const sn_recurrence_gradients *g) {
    recurrence_job job = { .simd = simd, .r = r, .g = g };
    run_recurrence(pool, &job, r->gated ? 6 : 5);
}

void sn_recurrence_step(const sn_simd *simd, sn_pool *pool, const float *a, const float *b,
                        float *s, size_t B, size_t N, bool gated) {
    const sn_recurrence r = { .a = a, .b = b, .s0 = s, .y = s, .s_end = s, .B = B, .T = 1, .N = N,
                              .gated = gated };
    sn_recurrence_forward(simd, pool, &r);
}

/* ---- rank one, row-major --------------------------------------------------------------------- */

typedef struct rank1_job {
    const sn_simd *simd;
    const sn_rank1_rows *x;
} rank1_job;

static const float *vector_of(const float *x, size_t at) {
    return x ? x + at : NULL;
}

/* Rows [at, at + n) of a head. Without k there is no correction either; without a read-out vector
 * y stays as it is. */
static void rank1_piece(const rank1_job *job, size_t head, size_t at, size_t n) {
    const sn_rank1_rows *x = job->x;
    const size_t column = head * x->C, row = head * x->R + at;
    job->simd->rank1_rows(&(sn_rank1_rows_scan){
        .S = x->S + row * x->C, .w = vector_of(x->w, column), .u = vector_of(x->u, column),
        .k = vector_of(x->k, column), .b = x->k ? vector_of(x->b, column) : NULL,
        .r = vector_of(x->r, column), .v = vector_of(x->v, row), .y = x->y ? x->y + row : NULL,
        .p = x->p ? x->p + row : NULL, .n_rows = n, .n = x->C });
}

static void run_rank1(void *context, size_t begin, size_t end) {
    const rank1_job *job = context;
    const size_t R = job->x->R, a_head = pieces_of(R, ROWS);
    for (size_t i = begin; i < end; i++) {
        const size_t at = i % a_head * ROWS;
        rank1_piece(job, i / a_head, at, R - at < ROWS ? R - at : ROWS);
    }
}

void sn_rank1_rows_step(const sn_simd *simd, sn_pool *pool, const sn_rank1_rows *x) {
    rank1_job job = { simd, x };
    const uint64_t elements = (uint64_t)x->heads * x->R * x->C;
    share(pool, elements, x->heads * pieces_of(x->R, ROWS), run_rank1, &job);
}

/* ---- INT4 weights ---------------------------------------------------------------------------- */

/* simd.h, sn_gemv_i4: a group's activations in chunks of 2 x HALF. */
#define HALF 32

typedef struct gemv_job {
    const sn_simd *simd;
    sn_gemv_i4 all;
} gemv_job;

static void run_gemv(void *context, size_t begin, size_t end) {
    const gemv_job *job = context;
    sn_gemv_i4 rows = job->all;
    const size_t first = begin * ROWS, stop = end * ROWS;
    rows.y += first;
    rows.codes += first * rows.n_groups * rows.half;
    rows.scale += first * rows.n_groups;
    rows.n_rows = (stop < job->all.n_rows ? stop : job->all.n_rows) - first;
    job->simd->gemv_i4(&rows);
}

/* Lays one group's activations out for the kernel; `to` is zero. Returns 8 times their sum. */
static int64_t lay_out(int8_t *to, const int8_t *q, size_t half) {
    int64_t sum = 0;
    for (size_t k = 0; k < half; k++) {
        int8_t *at = to + k / HALF * (2 * HALF) + k % HALF;
        at[0] = q[k];
        at[HALF] = q[k + half];
        sum += q[k] + q[k + half];
    }
    return 8 * sum;
}

/* One block of memory for what the kernel takes and the codes before they are laid out. */
typedef struct activations {
    int64_t *offset;
    float *scale;
    int8_t *laid_out, *q;
} activations;

static sn_status new_activations(size_t in, size_t n_groups, size_t group, activations *x) {
    const size_t a_group = sizeof(int64_t) + sizeof(float);
    size_t fixed, bytes;
    if (!sn_mul_size(n_groups, a_group + group, &fixed) || !sn_add_size(fixed, in, &bytes))
        return sn_fail(SN_E_NOMEM, "gemv_i4: %zu activations in %zu groups: scratch too large", in,
                       n_groups);
    uint8_t *memory = sn_alloc(bytes);
    if (!memory) return SN_E_NOMEM;
    x->offset = (int64_t *)(void *)memory;
    x->scale = (float *)(void *)(memory + n_groups * sizeof(int64_t));
    x->laid_out = (int8_t *)(memory + n_groups * a_group);
    x->q = (int8_t *)(memory + fixed);
    return SN_OK;
}

sn_status sn_seed_gemv_i4(const sn_simd *simd, sn_pool *pool, float *y, const float *x,
                          const uint8_t *q, const float *scale, size_t in, size_t out,
                          size_t block) {
    if (block == 0) block = in;
    const size_t half = block / 2, n_groups = in ? in / block : 0;
    const size_t group = pieces_of(half, HALF) * 2 * HALF;
    activations act;
    SN_TRY(new_activations(in, n_groups, group, &act));
    sn_seed_quant_i8(x, act.q, act.scale, 1, in, block);
    for (size_t g = 0; g < n_groups; g++)
        act.offset[g] = lay_out(act.laid_out + g * group, act.q + g * block, half);
    gemv_job job = { simd, { .y = y, .codes = q, .scale = scale, .x = act.laid_out,
                             .x_scale = act.scale, .x_offset = act.offset, .n_rows = out,
                             .n_groups = n_groups, .half = half } };
    share(pool, (uint64_t)in * out, pieces_of(out, ROWS), run_gemv, &job);
    sn_free(act.offset);
    return SN_OK;
}
