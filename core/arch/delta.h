/*
 * delta.h: the delta rule of DeltaNet and Gated DeltaNet (Yang et al. 2024, "Parallelizing Linear
 * Transformers with the Delta Rule"; 2025, "Gated Delta Networks") in the rank-1 form that they
 * share with RWKV-7:
 *
 *   S <- alpha S;  S <- S + k (beta (v - S^T k))^T;  y = S^T q
 *
 * which is (I - beta k k^T) alpha S + beta k v^T. Written for rank1_scan, whose sum over the old,
 * not yet decayed state meets u = alpha k.
 */
#ifndef SN_ARCH_DELTA_H
#define SN_ARCH_DELTA_H

#include "pass.h"

#define SN_DELTA_NORM_EPS 1e-6f /* of the keys' and queries' L2 norm */

typedef struct sn_delta {
    const sn_pass *pass;
    size_t H, Hv; /* heads of q and k; of v: value head i uses q, k head i / (Hv / H) */
    size_t K, V;  /* keys and values of a head */
    size_t state; /* where S[Hv][K][V] begins, floats into the layer's state */
    const float *q, *k;         /* [T][H K] */
    const float *beta, *alpha;  /* [T][Hv]; alpha NULL: no decay */
    float *v;     /* [T][Hv V]; becomes beta v */
    float *u, *b; /* [T][Hv K] scratch; u only with alpha */
    float *y;     /* [T][Hv V] */
} sn_delta;

void sn_delta_rule(const sn_delta *d);

/* q and k of [T][H K]: each head divided by its L2 norm (or by its sum); q times K^(-1/2). */
void sn_delta_normalize(const sn_pass *pass, float *q, float *k, size_t H, size_t K, bool by_sum);

/* beta = scale sigmoid(beta) for n numbers */
void sn_delta_strength(const sn_pass *pass, float *beta, float scale, size_t n);

#endif
