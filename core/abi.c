/*
 * abi.c: sn_abi.h over the kernels (recurrence.h) and over models (blob_model.h). It checks, sets
 * the floating-point environment and lends out threads.
 */
#include "sn_abi.h"

#include "blob_model.h"
#include "fpenv.h"
#include "recurrence.h"
#include "shared.h"

#include <string.h>

/* Less than this is done before another thread would have woken up. */
#define ALONE_FLOATS ((uint64_t)1 << 16)

/* A browser's module has no files, WebAssembly no threads. */
#if defined(__EMSCRIPTEN__)
#define SYSTEM_CAPS 0u
#elif defined(__wasm__)
#define SYSTEM_CAPS SN_CAP_RWKV7
#else
#define SYSTEM_CAPS (SN_CAP_RWKV7 | SN_CAP_THREADS)
#endif

/* ---- what the library is ------------------------------------------------------------------- */

int32_t sn_abi_version(void) {
    return SN_ABI_VERSION;
}

uint32_t sn_abi_caps(void) {
    return SN_CAP_RECUR_SCAN | SN_CAP_RECUR_STEP | SN_CAP_QUANT_I8 | SYSTEM_CAPS |
           SN_CAP_SAME_BITS | SN_CAP_CHECKED | SN_CAP_END_IS_START;
}

sn_status sn_abi_check(int32_t caller_major) {
    if (caller_major == SN_ABI_VERSION_MAJOR) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "the ABI is of version %d, the caller was made for %d",
                   SN_ABI_VERSION_MAJOR, (int)caller_major);
}

static int32_t copy_text(const char *text, char *buf, int32_t buflen) {
    const int32_t needed = (int32_t)strlen(text) + 1;
    if (buf && buflen >= needed) memcpy(buf, text, (size_t)needed);
    return needed;
}

int32_t sn_abi_version_string(char *buf, int32_t buflen) {
    return copy_text("1.0.0", buf, buflen);
}

int32_t sn_abi_backend_string(char *buf, int32_t buflen) {
    return copy_text("c", buf, buflen); /* that of 1.0.0, whatever the kernels */
}

sn_status sn_abi_set_threads(int32_t n) {
    if (n < 1) return sn_fail(SN_E_INVAL, "sn_abi_set_threads: n is %d", (int)n);
    sn_shared_threads_set(n);
    return SN_OK;
}

int32_t sn_abi_get_threads(void) {
    return sn_shared_threads();
}

/* ---- checks -------------------------------------------------------------------------------- */

static sn_status check_pointers(const char *function, size_t n, const void *const *pointers) {
    for (size_t i = 0; i < n; i++)
        if (!pointers[i]) return sn_fail(SN_E_INVAL, "%s: a pointer is NULL", function);
    return SN_OK;
}

/* Every dimension above 0, and the array of them all within the address space. */
static sn_status check_sizes(const char *function, int32_t B, int32_t T, int32_t N) {
    uint64_t bytes = sizeof(float);
    if (B < 1 || T < 1 || N < 1)
        return sn_fail(SN_E_INVAL, "%s: a dimension of %d x %d x %d is not above 0", function,
                       (int)B, (int)T, (int)N);
    if (sn_mul_u64(bytes, (uint64_t)B, &bytes) && sn_mul_u64(bytes, (uint64_t)T, &bytes) &&
        sn_mul_u64(bytes, (uint64_t)N, &bytes) && bytes <= SIZE_MAX)
        return SN_OK;
    return sn_fail(SN_E_INVAL, "%s: %d x %d x %d floats do not fit the address space", function,
                   (int)B, (int)T, (int)N);
}

/* ---- recurrence ---------------------------------------------------------------------------- */

static sn_shared_pool *pool_for(uint64_t floats) {
    return floats < ALONE_FLOATS ? NULL : sn_shared_pool_take();
}

sn_status sn_abi_recur_step(const float *a, const float *b, float *s, int32_t B, int32_t N,
                            int32_t gated) {
    const sn_simd *simd;
    SN_TRY(check_pointers(__func__, 3, (const void *const[]){ a, b, s }));
    SN_TRY(check_sizes(__func__, B, 1, N));
    SN_TRY(sn_shared_kernels(&simd));
    sn_shared_pool *pool = pool_for((uint64_t)B * (uint64_t)N);
    const sn_fpenv saved = sn_fpenv_enter();
    sn_recurrence_step(simd, sn_shared_pool_of(pool), a, b, s, (size_t)B, (size_t)N, gated != 0);
    sn_fpenv_leave(saved);
    sn_shared_pool_give(pool);
    return SN_OK;
}

sn_status sn_abi_recur_scan(const float *a, const float *b, const float *s0, float *out,
                            float *send, int32_t B, int32_t T, int32_t N, int32_t gated) {
    const sn_simd *simd;
    SN_TRY(check_pointers(__func__, 5, (const void *const[]){ a, b, s0, out, send }));
    SN_TRY(check_sizes(__func__, B, T, N));
    SN_TRY(sn_shared_kernels(&simd));
    const sn_recurrence r = { .a = a, .b = b, .s0 = s0, .y = out, .s_end = send, .B = (size_t)B,
                              .T = (size_t)T, .N = (size_t)N, .gated = gated != 0 };
    sn_shared_pool *pool = pool_for((uint64_t)B * (uint64_t)T * (uint64_t)N);
    const sn_fpenv saved = sn_fpenv_enter();
    sn_recurrence_forward(simd, sn_shared_pool_of(pool), &r);
    sn_fpenv_leave(saved);
    sn_shared_pool_give(pool);
    return SN_OK;
}

/* ---- INT8 ---------------------------------------------------------------------------------- */

static size_t block_of(int32_t block, int32_t N) {
    return (size_t)(block > 0 ? block : N);
}

sn_status sn_abi_quant_i8(const float *x, int8_t *q, float *scale, int32_t B, int32_t N,
                          int32_t block) {
    SN_TRY(check_pointers(__func__, 3, (const void *const[]){ x, q, scale }));
    SN_TRY(check_sizes(__func__, B, 1, N));
    const sn_fpenv saved = sn_fpenv_enter();
    sn_seed_quant_i8(x, q, scale, (size_t)B, (size_t)N, block_of(block, N));
    sn_fpenv_leave(saved);
    return SN_OK;
}

sn_status sn_abi_dequant_i8(const int8_t *q, const float *scale, float *x, int32_t B, int32_t N,
                            int32_t block) {
    SN_TRY(check_pointers(__func__, 3, (const void *const[]){ q, scale, x }));
    SN_TRY(check_sizes(__func__, B, 1, N));
    const sn_fpenv saved = sn_fpenv_enter();
    sn_seed_dequant_i8(q, scale, x, (size_t)B, (size_t)N, block_of(block, N));
    sn_fpenv_leave(saved);
    return SN_OK;
}

/* ---- RWKV-7 -------------------------------------------------------------------------------- */

struct SnAbiRwkv7 {
    sn_blob_model blob; /* its only member: the pointers are converted */
};

static sn_blob_model *blob_of(SnAbiRwkv7 *m) {
    return &m->blob;
}

SnAbiRwkv7 *sn_abi_rwkv7_load(const char *path) {
    sn_blob_model *m = NULL;
    if (check_pointers(__func__, 1, (const void *const[]){ path }) != SN_OK) return NULL;
    return sn_blob_model_load(path, "rwkv7", &m) == SN_OK ? (SnAbiRwkv7 *)(void *)m : NULL;
}

/* SN_E_NUMERIC is younger than 1.0.0. */
static sn_status as_of_1_0(sn_status status) {
    return status == SN_E_NUMERIC ? SN_E_UNSUPPORTED : status;
}

sn_status sn_abi_rwkv7_step(SnAbiRwkv7 *m, int32_t token, float *logits) {
    SN_TRY(check_pointers(__func__, 2, (const void *const[]){ m, logits }));
    return as_of_1_0(sn_blob_model_prefill(blob_of(m), &token, 1, logits));
}

sn_status sn_abi_rwkv7_prefill(SnAbiRwkv7 *m, const int32_t *tokens, int32_t n, float *logits) {
    SN_TRY(check_pointers(__func__, 3, (const void *const[]){ m, tokens, logits }));
    if (n < 1) return sn_fail(SN_E_INVAL, "%s: n is %d", __func__, (int)n);
    return as_of_1_0(sn_blob_model_prefill(blob_of(m), tokens, n, logits));
}

sn_status sn_abi_rwkv7_reset(SnAbiRwkv7 *m) {
    SN_TRY(check_pointers(__func__, 1, (const void *const[]){ m }));
    return sn_state_reset(blob_of(m)->state);
}

void sn_abi_rwkv7_free(SnAbiRwkv7 *m) {
    sn_blob_model_free((sn_blob_model *)(void *)m);
}

int32_t sn_abi_rwkv7_vocab(const SnAbiRwkv7 *m) {
    return m ? sn_model_vocab(m->blob.model) : 0;
}
