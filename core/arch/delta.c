#include "delta.h"

/* One head of one sequence of `count` tokens from `first` on. */
static void run_head(const sn_delta *d, float *S, size_t head, size_t first, size_t count) {
    const sn_simd *simd = d->pass->simd;
    const size_t K = d->K, V = d->V, HK = d->H * K, HvK = d->Hv * K, HvV = d->Hv * V;
    const size_t shared = head / (d->Hv / d->H) * K;
    const float *k = d->k + first * HK + shared;
    float *b = d->b + first * HvK + head * K, *v = d->v + first * HvV + head * V;
    float *u = d->alpha ? d->u + first * HvK + head * K : NULL;
    for (size_t t = 0; t < count; t++) {
        const float beta = d->beta[(first + t) * d->Hv + head];
        simd->scale(b + t * HvK, beta, k + t * HK, K);
        simd->scale(v + t * HvV, beta, v + t * HvV, V);
        if (u) simd->scale(u + t * HvK, d->alpha[(first + t) * d->Hv + head], k + t * HK, K);
    }
    simd->rank1_scan(&(sn_matrix_scan){
        .y = d->y + first * HvV + head * V, .y_stride = HvV, .S = S, .row = V, .n_keys = K,
        .n_values = V, .n_tokens = count, .decay = u ? SN_DECAY_HEAD : SN_DECAY_NONE,
        .d = { u ? d->alpha + first * d->Hv + head : NULL, d->Hv }, .k = { k, HK },
        .v = { v, HvV }, .r = { d->q + first * HK + shared, HK },
        .u = { u ? u : k, u ? HvK : HK }, .b = { b, HvK } });
}

static void run_heads(void *context, size_t begin, size_t end) {
    const sn_delta *d = context;
    for (size_t i = begin; i < end; i++) {
        const size_t s = i / d->Hv, head = i % d->Hv;
        const sn_segment *segment = &d->pass->segments[s];
        float *S = sn_pass_state(d->pass, s) + d->state + head * d->K * d->V;
        run_head(d, S, head, segment->first, segment->count);
    }
}

void sn_delta_rule(const sn_delta *d) {
    sn_delta job = *d;
    sn_run(d->pass->exec, d->pass->n_segments * d->Hv, run_heads, &job);
}

void sn_delta_normalize(const sn_pass *pass, float *q, float *k, size_t H, size_t K, bool by_sum) {
    const sn_simd *simd = pass->simd;
    for (size_t i = 0; i < pass->T * H * K; i += K) {
        if (by_sum) {
            simd->sum_normalize(q + i, q + i, K);
            simd->sum_normalize(k + i, k + i, K);
        } else {
            simd->l2_normalize_eps(q + i, q + i, K, SN_DELTA_NORM_EPS);
            simd->l2_normalize_eps(k + i, k + i, K, SN_DELTA_NORM_EPS);
        }
    }
    simd->scale(q, 1.0f / simd->root((float)K), q, pass->T * H * K);
}

void sn_delta_strength(const sn_pass *pass, float *beta, float scale, size_t n) {
    pass->simd->sigmoid(beta, beta, n);
    if (scale != 1.0f) pass->simd->scale(beta, scale, beta, n);
}
