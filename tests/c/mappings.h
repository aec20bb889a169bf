/*
 * mappings.h: six architectures' recurrences as calls of sn_abi_recur_scan(), as docs/recurrence.md
 * shows them: tests/recurrence-docs.test.mjs compares, test_mappings.c runs them.
 */
#ifndef SN_TESTS_MAPPINGS_H
#define SN_TESTS_MAPPINGS_H

#include "sn_abi.h"

#include <math.h>

/* B sequences of T tokens with N channels. */
typedef struct sizes {
    int32_t B, T, N;
} sizes;

static inline size_t elements(sizes n) {
    return (size_t)n.B * (size_t)n.T * (size_t)n.N;
}

static inline float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

static inline float softplus(float x) {
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

/* RWKV-4: s = p s + k v, read through a gate. w, k, v, r, y [B][T][N]; s [B][N]. */
static sn_status rwkv_wkv(sizes n, const float *w, const float *k, const float *v, const float *r,
                          float *s, float *y, float *a, float *b) {
    for (size_t i = 0; i < elements(n); i++) {
        a[i] = fminf(fmaxf(sigmoid(w[i]), 1e-4f), 1.0f - 1e-6f);
        b[i] = k[i] * v[i];
    }
    sn_status status = sn_abi_recur_scan(a, b, s, y, s, n.B, n.T, n.N, 0);
    for (size_t i = 0; status == SN_OK && i < elements(n); i++) y[i] *= sigmoid(r[i]);
    return status;
}

/* Mamba's S6 with a diagonal state of one value a channel: dt, u, z, y [B][T][N], with
 * u = b x already multiplied; a_log, D [N]; x [B][T][N] is what D lets through. */
static sn_status mamba_s6(sizes n, const float *dt, const float *a_log, const float *u,
                          const float *x, const float *z, const float *D, float *s, float *y,
                          float *a) {
    for (size_t i = 0; i < elements(n); i++)
        a[i] = expf(-softplus(dt[i]) * expf(a_log[i % (size_t)n.N]));
    sn_status status = sn_abi_recur_scan(a, u, s, y, s, n.B, n.T, n.N, 1);
    for (size_t i = 0; status == SN_OK && i < elements(n); i++)
        y[i] = y[i] * (z[i] * sigmoid(z[i])) + D[i % (size_t)n.N] * x[i];
    return status;
}

/* H3's diagonal state space: a_log [N]; q, v (after the short convolution), g, y [B][T][N]. */
static sn_status h3_diagonal(sizes n, const float *a_log, const float *q, const float *v,
                             const float *g, float *s, float *y, float *a) {
    for (size_t i = 0; i < elements(n); i++) a[i] = sigmoid(-a_log[i % (size_t)n.N]);
    sn_status status = sn_abi_recur_scan(a, v, s, y, s, n.B, n.T, n.N, 1);
    for (size_t i = 0; status == SN_OK && i < elements(n); i++) y[i] = q[i] * y[i] * sigmoid(g[i]);
    return status;
}

/* S4, diagonal and real, one input x [B][T] and one output y [B][T] over N states:
 * s = A s + B x, y = C s, with A, B discretised; states [B][T][N] is scratch. */
static sn_status s4_diagonal(sizes n, const float *A, const float *B, const float *C,
                             const float *x, float *s, float *y, float *states, float *a,
                             float *b) {
    const size_t N = (size_t)n.N;
    for (size_t i = 0; i < elements(n); i++) {
        a[i] = A[i % N];
        b[i] = B[i % N] * x[i / N];
    }
    sn_status status = sn_abi_recur_scan(a, b, s, states, s, n.B, n.T, n.N, 0);
    for (size_t t = 0; status == SN_OK && t < elements(n) / N; t++) {
        y[t] = 0.0f;
        for (size_t i = 0; i < N; i++) y[t] += C[i] * states[t * N + i];
    }
    return status;
}

/* Linear attention: S = S + k v', z = z + k, y = S' q / (z q + 1e-6), the features k, q >= 0.
 * q, k [B][T][K], v, y [B][T][V], S [B][K][V], z [B][K]; n.N is K. Scratch: ones, outer, states
 * [B][T][K][V], sums [B][T][K]. */
static sn_status linear_attention(sizes n, int32_t V, const float *q, const float *k,
                                  const float *v, float *S, float *z, float *y, float *ones,
                                  float *outer, float *states, float *sums) {
    const size_t K = (size_t)n.N, W = (size_t)V, tokens = (size_t)n.B * (size_t)n.T;
    for (size_t i = 0; i < tokens * K * W; i++) {
        const size_t t = i / (K * W), j = i / W % K;
        ones[i] = 1.0f;
        outer[i] = k[t * K + j] * v[t * W + i % W];
    }
    sn_status status = sn_abi_recur_scan(ones, outer, S, states, S, n.B, n.T, n.N * V, 0);
    if (status == SN_OK) status = sn_abi_recur_scan(ones, k, z, sums, z, n.B, n.T, n.N, 0);
    for (size_t t = 0; status == SN_OK && t < tokens; t++) {
        float below = 1e-6f;
        for (size_t j = 0; j < K; j++) below += q[t * K + j] * sums[t * K + j];
        for (size_t i = 0; i < W; i++) {
            float above = 0.0f;
            for (size_t j = 0; j < K; j++)
                above += q[t * K + j] * states[(t * K + j) * W + i];
            y[t * W + i] = above / below;
        }
    }
    return status;
}

/* SunnyNet's rolling state: p = 1 - delta (1 - sigmoid(gate)); gate, u, y [B][T][N]; delta [N]. */
static sn_status sunnynet_state(sizes n, const float *gate, const float *delta, const float *u,
                                float *s, float *y, float *a) {
    for (size_t i = 0; i < elements(n); i++)
        a[i] = 1.0f - delta[i % (size_t)n.N] * (1.0f - sigmoid(gate[i]));
    return sn_abi_recur_scan(a, u, s, y, s, n.B, n.T, n.N, 1);
}

#endif
