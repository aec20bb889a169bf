/*
 * inside.c: models and arrays for the compatibility libraries. Nothing that a caller can pass makes
 * it crash that would not crash any implementation; what cannot be computed becomes NaNs.
 */
#include "inside.h"

#include "arch/pass.h"
#include "blob_model.h"
#include "fpenv.h"
#include "import/import.h"
#include "platform.h"
#include "recurrence.h"
#include "shared.h"
#include "worker.h"

#include <math.h> /* NAN, a constant */
#include <string.h>

#define ALONE_FLOATS ((size_t)1 << 16) /* as in abi.c */
#define INT4_BLOCK 64

static void fill_nan(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = NAN;
}

/* ---- threads ------------------------------------------------------------------------------- */

void sn_inside_set_threads(int n) {
    if (n > 0) sn_shared_threads_set(n);
}

int sn_inside_threads(void) {
    return sn_shared_threads();
}

int sn_inside_cores(void) {
    return sn_platform_cores();
}

/* ---- models -------------------------------------------------------------------------------- */

struct sn_inside_model {
    sn_blob_model blob; /* its only member: the pointers are converted */
};

static sn_status check_words(const char *path, const int32_t *words, size_t n) {
    sn_file file;
    int32_t found[16];
    if (!n) return SN_OK;
    SN_TRY(sn_platform_open_file(path, &file));
    sn_status status = n > 16 ? sn_fail(SN_E_INVAL, "%zu words of a header", n)
                              : sn_file_read(&file, 0, found, n * sizeof *found);
    if (status == SN_OK && memcmp(found, words, n * sizeof *found) != 0)
        status = sn_fail(SN_E_FORMAT, "%.300s: the header is not the one asked for", path);
    sn_file_close(&file);
    return status;
}

sn_inside_model *sn_inside_load(const char *path, const char *architecture, const int32_t *words,
                                size_t n) {
    sn_blob_model *m = NULL;
    if (!path || check_words(path, words, n) != SN_OK) return NULL;
    if (sn_blob_model_load(path, architecture, &m) != SN_OK) return NULL;
    return (sn_inside_model *)(void *)m;
}

void sn_inside_free(sn_inside_model *m) {
    sn_blob_model_free((sn_blob_model *)(void *)m);
}

void sn_inside_reset(sn_inside_model *m) {
    if (m) sn_state_reset(m->blob.state);
}

int sn_inside_vocab(const sn_inside_model *m) {
    return m ? sn_model_vocab(m->blob.model) : 0;
}

void sn_inside_prefill(sn_inside_model *m, const int *tokens, int n, float *logits) {
    if (!m || n < 1) return;
    if (sn_blob_model_prefill(&m->blob, tokens, n, logits) != SN_OK && logits)
        fill_nan(logits, (size_t)m->blob.model->vocab);
}

void sn_inside_look(sn_inside_model *m, int token, int first, int last, sn_inside_see see,
                    void *user) {
    if (!m) return;
    const int32_t n = m->blob.model->n_layers;
    const sn_probe probe = { .first = first, .end = last < 0 || last >= n ? n : last + 1,
                             .see = see, .user = user };
    sn_state *state = m->blob.state;
    if (first >= n) return;
    state->exec.probe = &probe;
    (void)sn_state_step(state, token, NULL); /* has no answer: a bad token shows nothing */
    state->exec.probe = NULL;
}

SN_WORKER static float log_of(float x) {
    return (float)sn_log64((double)x);
}

float sn_inside_log(float x) {
    const sn_fpenv saved = sn_fpenv_enter();
    const float y = log_of(x);
    sn_fpenv_leave(saved);
    return y;
}

/* ---- arrays -------------------------------------------------------------------------------- */

/* The kernels, the pool and the floating-point environment of one call. */
typedef struct call {
    const sn_simd *simd;
    sn_shared_pool *shared;
    sn_pool *pool;
    sn_fpenv saved;
} call;

/* False if there is nothing to do: a size is not above 0, or there are no kernels. */
static bool begin(call *c, int a, int b, int d) {
    if (a < 1 || b < 1 || d < 1 || sn_shared_kernels(&c->simd) != SN_OK) return false;
    const double floats = (double)a * (double)b * (double)d;
    c->shared = floats < (double)ALONE_FLOATS ? NULL : sn_shared_pool_take();
    c->pool = sn_shared_pool_of(c->shared);
    c->saved = sn_fpenv_enter();
    return true;
}

static void end(const call *c) {
    sn_fpenv_leave(c->saved);
    sn_shared_pool_give(c->shared);
}

void sn_inside_scan(const float *a, const float *b, const float *s0, float *out, float *send,
                    int B, int T, int N, int gated) {
    call c;
    if (!begin(&c, B, T, N)) return;
    sn_recurrence_forward(c.simd, c.pool, &(sn_recurrence){
        .a = a, .b = b, .s0 = s0, .y = out, .s_end = send, .B = (size_t)B, .T = (size_t)T,
        .N = (size_t)N, .gated = gated != 0 });
    end(&c);
}

/* sn_recurrence's outputs are inputs here, and are not written. */
static float *read_only(const float *x) {
    return (float *)(uintptr_t)x;
}

void sn_inside_scan_backward(const float *a, const float *b, const float *s0, const float *out,
                             const float *dout, float *da, float *db, float *ds0, int B, int T,
                             int N, int gated) {
    call c;
    if (!begin(&c, B, T, N)) return;
    sn_recurrence_backward(c.simd, c.pool, &(sn_recurrence){
        .a = a, .b = b, .s0 = s0, .y = read_only(out), .B = (size_t)B, .T = (size_t)T,
        .N = (size_t)N, .gated = gated != 0 },
        &(sn_recurrence_gradients){ .dy = dout, .da = da, .db = db, .ds0 = ds0 });
    end(&c);
}

void sn_inside_scan_step(const float *a, const float *b, float *s, int B, int N, int gated) {
    call c;
    if (!begin(&c, B, 1, N)) return;
    sn_recurrence_step(c.simd, c.pool, a, b, s, (size_t)B, (size_t)N, gated != 0);
    end(&c);
}

void sn_inside_rank1(float *S, const float *w, const float *u, const float *v, const float *k,
                     const float *b, const float *r, float *y, float *pbuf, int heads, int R,
                     int C) {
    call c;
    if (!begin(&c, heads, R, C)) return;
    sn_rank1_rows_step(c.simd, c.pool, &(sn_rank1_rows){
        .S = S, .w = w, .u = u, .v = v, .k = k, .b = b, .r = r, .y = y, .p = pbuf,
        .heads = (size_t)heads, .R = (size_t)R, .C = (size_t)C });
    end(&c);
}

/* ---- INT8 and INT4 ------------------------------------------------------------------------- */

static size_t block_or(int block, int otherwise) {
    return (size_t)(block > 0 ? block : otherwise);
}

void sn_inside_quant_i8(const float *x, int8_t *q, float *scale, int B, int N, int block) {
    call c;
    if (!begin(&c, B, 1, N)) return;
    sn_seed_quant_i8(x, q, scale, (size_t)B, (size_t)N, block_or(block, N));
    end(&c);
}

void sn_inside_dequant_i8(const int8_t *q, const float *scale, float *x, int B, int N,
                          int block) {
    call c;
    if (!begin(&c, B, 1, N)) return;
    sn_seed_dequant_i8(q, scale, x, (size_t)B, (size_t)N, block_or(block, N));
    end(&c);
}

/* The seed asks for even groups that divide a row. */
static bool groups_fit(int n, size_t group) {
    return n > 0 && group % 2 == 0 && (size_t)n % group == 0;
}

void sn_inside_quant_i4(const float *x, uint8_t *q, float *scale, int rows, int N, int block) {
    const size_t group = block_or(block, INT4_BLOCK);
    call c;
    if (!groups_fit(N, group) || !begin(&c, rows, 1, N)) return;
    sn_seed_quant_i4(x, q, scale, (size_t)rows, (size_t)N, group);
    end(&c);
}

void sn_inside_dequant_i4(const uint8_t *q, const float *scale, float *x, int rows, int N,
                          int block) {
    const size_t group = block_or(block, INT4_BLOCK);
    call c;
    if (!groups_fit(N, group) || !begin(&c, rows, 1, N)) return;
    sn_seed_dequant_i4(q, scale, x, (size_t)rows, (size_t)N, group);
    end(&c);
}

void sn_inside_gemv_i4(float *y, const float *x, const uint8_t *q, const float *scale, int in,
                       int out, int block) {
    const size_t group = block_or(block, INT4_BLOCK);
    call c;
    if (!begin(&c, out, 1, in)) return;
    if (!groups_fit(in, group) ||
        sn_seed_gemv_i4(c.simd, c.pool, y, x, q, scale, (size_t)in, (size_t)out, group) != SN_OK)
        fill_nan(y, (size_t)out);
    end(&c);
}

typedef struct product {
    float *y;
    const float *x, *W;
    size_t in;
} product;

/* Rows [begin, end): 16 sums, then one tree, as everywhere (docs/determinism.md). */
static void product_rows(void *context, size_t begin, size_t end) {
    const product *p = context;
    for (size_t o = begin; o < end; o++) {
        const float *row = p->W + o * p->in;
        float sum[16] = { 0 };
        for (size_t i = 0; i < p->in; i += 16)
            for (size_t l = 0; l < 16 && i + l < p->in; l++) sum[l] += row[i + l] * p->x[i + l];
        for (size_t half = 8; half; half /= 2)
            for (size_t l = 0; l < half; l++) sum[l] += sum[l + half];
        p->y[o] = sum[0];
    }
}

void sn_inside_gemv_f32(float *y, const float *x, const float *W, int in, int out) {
    product p = { y, x, W, (size_t)in };
    call c;
    if (!begin(&c, out, 1, in)) return;
    sn_pool_run(c.pool, (size_t)out, product_rows, &p);
    end(&c);
}
