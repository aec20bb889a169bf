/*
 * sn_abi.h: SunnyNet's stable C ABI, version 1.0.0: recurrence kernels, INT8 blocks and packed
 * RWKV-7 models behind 17 functions that do not change. docs/abi.md has an introduction, sunnynet.h
 * the rest of the library.
 *
 *   if (sn_abi_check(SN_ABI_VERSION_MAJOR) != SN_OK) the library is another one: leave it
 *   if (sn_abi_caps() & SN_CAP_RWKV7) load -> vocab -> step token by token -> free
 *
 * Conventions
 *   versions   Another major is incompatible; a higher minor only adds. A capability says what a
 *              library can do; ignore the bits you do not know.
 *   errors     sn_status: SN_OK is 0, failures are negative; arguments are checked before anything
 *              is written.
 *   sizes      Dimensions are int32_t. Arrays are contiguous float32, the last index the fastest.
 *   threads    Every function may be called from any thread at any time. A handle belongs to one
 *              thread at a time; two handles are independent.
 *   bits       The results do not depend on the CPU or the number of threads (SN_CAP_SAME_BITS).
 */
#ifndef SN_ABI_H
#define SN_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SN_API
#if defined(_WIN32) && defined(SN_BUILD_SHARED)
#define SN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define SN_API __attribute__((visibility("default")))
#else
#define SN_API
#endif
#endif

/* ---- version ------------------------------------------------------------------------ */

#define SN_ABI_VERSION_MAJOR 1
#define SN_ABI_VERSION_MINOR 0
#define SN_ABI_VERSION_PATCH 0
#define SN_ABI_VERSION                                                                        \
    ((SN_ABI_VERSION_MAJOR << 16) + (SN_ABI_VERSION_MINOR << 8) + SN_ABI_VERSION_PATCH)

#define SN_CAP_RECUR_SCAN (1u << 0) /* sn_abi_recur_scan */
#define SN_CAP_RECUR_STEP (1u << 1) /* sn_abi_recur_step */
#define SN_CAP_QUANT_I8 (1u << 2)   /* sn_abi_quant_i8, sn_abi_dequant_i8 */
#define SN_CAP_RWKV7 (1u << 3)      /* sn_abi_rwkv7_load can open files */
#define SN_CAP_THREADS (1u << 4)    /* more than one thread can work */
/* What this implementation promises beyond 1.0.0, in the same 17 functions: */
#define SN_CAP_SAME_BITS (1u << 5)  /* the same bits on every CPU, with any number of threads */
#define SN_CAP_CHECKED (1u << 6)    /* tokens and products of dimensions are checked too */
#define SN_CAP_END_IS_START (1u << 7) /* send may be s0 in sn_abi_recur_scan */

/* ---- status: as in sunnynet.h ------------------------------------------------------- */

#ifndef SN_STATUS_DEFINED
#define SN_STATUS_DEFINED
typedef int32_t sn_status;
#endif

#define SN_OK 0
#define SN_E_INVAL (-1)       /* an argument is NULL or out of range */
#define SN_E_NOMEM (-2)       /* memory could not be had */
#define SN_E_IO (-3)          /* a file could not be opened, read or written */
#define SN_E_FORMAT (-4)      /* the bytes are not what their format demands */
#define SN_E_UNSUPPORTED (-5) /* well formed, but not something this build can run */

/* ---- what the library is ------------------------------------------------------------ */

/* SN_ABI_VERSION of the library. */
SN_API int32_t sn_abi_version(void);

/* SN_CAP_* of the library. */
SN_API uint32_t sn_abi_caps(void);

/* SN_OK if a caller compiled for this major version can use the library, else SN_E_UNSUPPORTED. */
SN_API sn_status sn_abi_check(int32_t caller_major);

/* "1.0.0" and "c". Both return the bytes needed with the final NUL and write only if buf is not
 * NULL and buflen suffices; nothing is ever cut off. */
SN_API int32_t sn_abi_version_string(char *buf, int32_t buflen);
SN_API int32_t sn_abi_backend_string(char *buf, int32_t buflen);

/* At most this many threads compute, in the whole process; until it is set, as many as the process
 * has cores. SN_E_INVAL if n < 1; more than the library can have are cut down to that. */
SN_API sn_status sn_abi_set_threads(int32_t n);
SN_API int32_t sn_abi_get_threads(void);

/* ---- first-order recurrence --------------------------------------------------------- */

/*
 * Independent channels, gated 0:          s_t = a_t s_{t-1} + b_t
 *                      gated otherwise:   s_t = a_t s_{t-1} + (1 - a_t) b_t
 *
 * scan: a, b, out are [B][T][N], s0 and send [B][N]; out[t] = s_t, send = s_T. out may overlap
 * neither a nor b; send may be s0. step: a, b, s are [B][N], s in place.
 * SN_E_INVAL if a pointer is NULL, a dimension is not above 0, or an array does not fit memory.
 */
SN_API sn_status sn_abi_recur_step(const float *a, const float *b, float *s, int32_t B, int32_t N,
                                   int32_t gated);
SN_API sn_status sn_abi_recur_scan(const float *a, const float *b, const float *s0, float *out,
                                   float *send, int32_t B, int32_t T, int32_t N, int32_t gated);

/* ---- INT8 blocks -------------------------------------------------------------------- */

/*
 * x is [B][N]; each row is cut into blocks of `block` values, the last one possibly shorter; block
 * <= 0: the whole row. q is [B][N], scale [B][blocks]: scale = max|x| / 127 (1 for zeros),
 * q = x / scale to nearest, ties to even, within -127..127; a NaN counts as 0. Back: x = q scale.
 */
SN_API sn_status sn_abi_quant_i8(const float *x, int8_t *q, float *scale, int32_t B, int32_t N,
                                 int32_t block);
SN_API sn_status sn_abi_dequant_i8(const int8_t *q, const float *scale, float *x, int32_t B,
                                   int32_t N, int32_t block);

/* ---- RWKV-7 ------------------------------------------------------------------------- */

/* A model and one state of it. */
typedef struct SnAbiRwkv7 SnAbiRwkv7;

/* A packed RWKV-7 blob of version 3 (.runtime.bin, .q4.bin; docs/formats.md) at a UTF-8 path; NULL
 * for anything else, also where it cannot be read or memory is short. The state is at the start. */
SN_API SnAbiRwkv7 *sn_abi_rwkv7_load(const char *path);

/*
 * Advances the state by one token, or by n tokens, and writes the scores of the next one,
 * sn_abi_rwkv7_vocab() floats. prefill goes on from where the state is. SN_E_INVAL, with nothing
 * changed, if a pointer is NULL, n < 1 or a token is outside the vocabulary. SN_E_UNSUPPORTED if
 * the numbers of the model overflow: the state is of no use then until it is reset.
 */
SN_API sn_status sn_abi_rwkv7_step(SnAbiRwkv7 *m, int32_t token, float *logits);
SN_API sn_status sn_abi_rwkv7_prefill(SnAbiRwkv7 *m, const int32_t *tokens, int32_t n,
                                      float *logits);

SN_API sn_status sn_abi_rwkv7_reset(SnAbiRwkv7 *m); /* back to the start */
SN_API void sn_abi_rwkv7_free(SnAbiRwkv7 *m);       /* NULL is fine */
SN_API int32_t sn_abi_rwkv7_vocab(const SnAbiRwkv7 *m); /* 0 for NULL */

#ifdef __cplusplus
}
#endif
#endif
