/*
 * recurrence.h: recurrences over whole arrays, as the stable ABI has them: batches, gradients,
 * threads. The kernels are those that the architectures use (simd.h). Everything here gives the
 * same bits on every back end and with any number of threads; arguments have been checked.
 */
#ifndef SN_CORE_RECURRENCE_H
#define SN_CORE_RECURRENCE_H

#include "memory.h"
#include "simd.h"
#include "threads.h"

/*
 * First order, element-wise: a, b, y are [B][T][N], s0 and s_end [B][N]. FMA: s = a s + b; gated:
 * s = a s + (1 - a) b. y may not be a or b; s_end may be s0.
 */
typedef struct sn_recurrence {
    const float *a, *b, *s0;
    float *y, *s_end;
    size_t B, T, N;
    bool gated;
} sn_recurrence;
void sn_recurrence_forward(const sn_simd *simd, sn_pool *pool, const sn_recurrence *r);

/* Gradients. dy [B][T][N] is given for y; the rest is overwritten. db is d of b, or of u if gated.
 * r->y are the outputs of the forward pass; r->s_end is not used. */
typedef struct sn_recurrence_gradients {
    const float *dy;
    float *da, *db, *ds0;
} sn_recurrence_gradients;
void sn_recurrence_backward(const sn_simd *simd, sn_pool *pool, const sn_recurrence *r,
                            const sn_recurrence_gradients *g);

/* One step, in place: a, b, s are [B][N]. */
void sn_recurrence_step(const sn_simd *simd, sn_pool *pool, const float *a, const float *b,
                        float *s, size_t B, size_t N, bool gated);

/*
 * Rank-1, row-major: S [heads][R][C] in place; w u k b r [heads][C], v y p [heads][R].
 *   p[i] = sum_j S[i][j] u[j]                                     the old S
 *   S[i][j] = (S[i][j] w[j] - p[i] b[j]) + v[i] k[j]
 *   y[i] = sum_j S[i][j] r[j]                                     the new S
 * NULL: w no decay; u p = 0; k no outer product and no correction; b no correction; v zero; r or y
 * no read-out; p is scratch of ours. Sums over j: 16 lanes and one tree (docs/determinism.md). p is
 * not written without u.
 */
typedef struct sn_rank1_rows {
    float *S;
    const float *w, *u, *v, *k, *b, *r;
    float *y, *p;
    size_t heads, R, C;
} sn_rank1_rows;
void sn_rank1_rows_step(const sn_simd *simd, sn_pool *pool, const sn_rank1_rows *x);

/* INT8 blocks and INT4 groups of the seed (recurrence-and-abi.md sections 3 and 4). block = 0: a
 * whole row. */
void sn_seed_quant_i8(const float *x, int8_t *q, float *scale, size_t rows, size_t n,
                      size_t block);
void sn_seed_dequant_i8(const int8_t *q, const float *scale, float *x, size_t rows, size_t n,
                        size_t block);
void sn_seed_quant_i4(const float *x, uint8_t *q, float *scale, size_t rows, size_t n,
                      size_t block);
void sn_seed_dequant_i4(const uint8_t *q, const float *scale, float *x, size_t rows, size_t n,
                        size_t block);
/* y [out] = W x, W as int4 groups of `block` (even, divides `in`); x is quantised by groups.
 * SN_E_NOMEM if scratch cannot be had. */
sn_status sn_seed_gemv_i4(const sn_simd *simd, sn_pool *pool, float *y, const float *x,
                          const uint8_t *q, const float *scale, size_t in, size_t out,
                          size_t block);

#endif
