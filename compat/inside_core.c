/*
 * inside_core.c: SunnyNet's core as the seed's training fuses it, for sunnynet_kernels. Channels i
 * compete within groups of 8, indices modulo the group:
 *
 *   w = sigmoid(g[i] - g[i+1]) sigmoid(g[i] - g[i+2])     g: gate, the second half of a row of q
 *   u = w q[i]                                            q: its first half
 *   p = delta sigmoid(g) + (1 - delta)
 *   s = p s + (1 - p) u
 *
 * q is [B][T][2 D], everything else [B][T][D], [B][D] or (delta) [D]. Work is split by channels,
 * never by batch: the gradient of delta is a sum over the batch.
 */
#include "inside.h"

#include "fpenv.h"
#include "shared.h"
#include "worker.h"

#include <string.h>

#define GROUP 8
#define CHUNK 128 /* channels worked on together; arrays of this length stand on the stack */

/* ---- one row of a chunk -------------------------------------------------------------------- */

typedef struct gates {
    float one[CHUNK], two[CHUNK]; /* sigmoid(g[i] - g[i+1]), sigmoid(g[i] - g[i+2]) */
    float open[CHUNK];            /* sigmoid(g) */
} gates;

static size_t neighbour(size_t i, size_t distance) {
    return i - i % GROUP + (i + distance) % GROUP;
}

static void find_gates(const sn_simd *simd, gates *s, const float *g, size_t n) {
    for (size_t i = 0; i < n; i++) {
        s->one[i] = g[i] - g[neighbour(i, 1)];
        s->two[i] = g[i] - g[neighbour(i, 2)];
    }
    simd->sigmoid(s->one, s->one, n);
    simd->sigmoid(s->two, s->two, n);
    simd->sigmoid(s->open, g, n);
}

/* u and p of one row. */
static void compete(const sn_simd *simd, float *u, float *p, const float *q, size_t D,
                    const float *delta, size_t n) {
    gates s;
    find_gates(simd, &s, q + D, n);
    for (size_t i = 0; i < n; i++) {
        u[i] = q[i] * (s.one[i] * s.two[i]);
        p[i] = delta[i] * s.open[i] + (1.0f - delta[i]);
    }
}

/* ---- work for a pool ----------------------------------------------------------------------- */

typedef struct core {
    const sn_simd *simd;
    const float *q, *delta, *s0, *states, *u, *p, *d_states, *d_u;
    float *new_states, *new_u, *new_p, *dq, *d_delta, *ds0;
    size_t B, T, D, channels;
} core;

static size_t chunk_end(const core *c, size_t first) {
    return c->channels - first < CHUNK ? c->channels : first + CHUNK;
}

static void forward(void *context, size_t begin, size_t end) {
    const core *c = context;
    for (size_t i = begin; i < end; i++) {
        const size_t first = i * CHUNK, n = chunk_end(c, first) - first;
        for (size_t b = 0; b < c->B; b++) {
            const size_t o = b * c->T * c->D + first;
            float s[CHUNK];
            for (size_t t = 0; t < c->T; t++)
                compete(c->simd, c->new_u + o + t * c->D, c->new_p + o + t * c->D,
                        c->q + 2 * b * c->T * c->D + 2 * t * c->D + first, c->D,
                        c->delta + first, n);
            memcpy(s, c->s0 + b * c->D + first, n * sizeof *s);
            c->simd->recur_scan(&(sn_recur){ .y = c->new_states + o, .y_stride = c->D, .s = s,
                .a = { c->new_p + o, c->D }, .b = { c->new_u + o, c->D }, .n = n,
                .n_tokens = c->T, .gated = 1 });
        }
    }
}

/*
 * One row backwards; ds holds the gradient of s and becomes that of the s before. With
 * dw = du q, a1 = dw w2 w1 (1 - w1) and a2 likewise, channel i's gate takes a1[i] + a2[i], and
 * its neighbours i+1 and i+2 lose them.
 */
static void row_back(const core *c, size_t at, size_t q_at, const float *before, size_t first,
                     size_t n, float *ds, float *d_delta) {
    const float *q = c->q + q_at, *u = c->u + at, *p = c->p + at, *delta = c->delta + first;
    float *dq = c->dq + q_at, *dg = dq + c->D, dp[CHUNK];
    gates s;
    find_gates(c->simd, &s, q + c->D, n);
    for (size_t i = 0; i < n; i++) {
        ds[i] += c->d_states[at + i];
        const float du = ds[i] * (1.0f - p[i]) + c->d_u[at + i];
        dp[i] = ds[i] * (before[i] - u[i]);
        ds[i] *= p[i];
        dq[i] = du * (s.one[i] * s.two[i]);
        const float dw = du * q[i], one = s.one[i], two = s.two[i];
        s.one[i] = dw * two * (one * (1.0f - one));
        s.two[i] = dw * one * (two * (1.0f - two));
    }
    for (size_t i = 0; i < n; i++) {
        const float open = s.open[i];
        const float lost = s.one[neighbour(i, GROUP - 1)] + s.two[neighbour(i, GROUP - 2)];
        dg[i] = s.one[i] + s.two[i] - lost + dp[i] * delta[i] * (open * (1.0f - open));
        d_delta[i] += dp[i] * (open - 1.0f);
    }
}

static void backward(void *context, size_t begin, size_t end) {
    const core *c = context;
    for (size_t i = begin; i < end; i++) {
        const size_t first = i * CHUNK, n = chunk_end(c, first) - first;
        for (size_t b = 0; b < c->B; b++) {
            float ds[CHUNK] = { 0 }, d_delta[CHUNK] = { 0 };
            for (size_t t = c->T; t-- > 0;) {
                const size_t at = (b * c->T + t) * c->D + first;
                const float *before = t ? c->states + at - c->D : c->s0 + b * c->D + first;
                row_back(c, at, 2 * (b * c->T + t) * c->D + first, before, first, n, ds, d_delta);
            }
            memcpy(c->ds0 + b * c->D + first, ds, n * sizeof *ds);
            for (size_t k = 0; k < n; k++) c->d_delta[first + k] += d_delta[k]; /* added up */
        }
    }
}

/* One token for each row of the batch. s_new may be s. */
SN_WORKER static void step(const core *c) {
    for (size_t b = 0; b < c->B; b++)
        for (size_t first = 0; first < c->channels; first = chunk_end(c, first)) {
            const size_t n = chunk_end(c, first) - first, o = b * c->D + first;
            float p[CHUNK], u[CHUNK], s[CHUNK];
            compete(c->simd, u, p, c->q + 2 * b * c->D + first, c->D, c->delta + first, n);
            memcpy(s, c->s0 + o, n * sizeof *s);
            c->simd->recur_scan(&(sn_recur){ .y = c->new_states + o, .y_stride = c->D, .s = s,
                .a = { p, n }, .b = { u, n }, .n = n, .n_tokens = 1, .gated = 1 });
            memcpy(c->new_u + o, u, n * sizeof *u);
        }
}

/* ---- entries ------------------------------------------------------------------------------- */

/* As in the seed, channels behind the last whole group are left alone. */
static bool prepare(core *c, int B, int T, int D) {
    if (B < 1 || T < 1 || D < GROUP) return false;
    c->B = (size_t)B;
    c->T = (size_t)T;
    c->D = (size_t)D;
    c->channels = c->D - c->D % GROUP;
    return sn_shared_kernels(&c->simd) == SN_OK;
}

static void run(core *c, sn_work work) {
    sn_shared_pool *shared = sn_shared_pool_take();
    const sn_fpenv saved = sn_fpenv_enter();
    sn_pool_run(sn_shared_pool_of(shared), (c->channels + CHUNK - 1) / CHUNK, work, c);
    sn_fpenv_leave(saved);
    sn_shared_pool_give(shared);
}

void sn_inside_core(const float *q, const float *delta, const float *s0, float *states, float *u,
                    float *p, int B, int T, int D) {
    core c = { .q = q, .delta = delta, .s0 = s0, .new_states = states, .new_u = u, .new_p = p };
    if (prepare(&c, B, T, D)) run(&c, forward);
}

void sn_inside_core_backward(const float *q, const float *delta, const float *s0,
                             const float *states, const float *u, const float *p,
                             const float *dstates, const float *du, float *dq, float *ddelta,
                             float *ds0, int B, int T, int D) {
    core c = { .q = q, .delta = delta, .s0 = s0, .states = states, .u = u, .p = p,
               .d_states = dstates, .d_u = du, .dq = dq, .d_delta = ddelta, .ds0 = ds0 };
    if (prepare(&c, B, T, D)) run(&c, backward);
}

void sn_inside_core_step(const float *q, const float *delta, const float *s, float *s_new,
                         float *u, int B, int D) {
    core c = { .q = q, .delta = delta, .s0 = s, .new_states = s_new, .new_u = u };
    if (!prepare(&c, B, 1, D)) return;
    const sn_fpenv saved = sn_fpenv_enter();
    step(&c);
    sn_fpenv_leave(saved);
}

/* y = w[taps-1] x + w[taps-2] history[0] + ...: w is [taps][D], history [B][taps-1][D], the most
 * recent first. */
SN_WORKER static void taps_step(const float *x, const float *history, const float *w, float *y,
                                size_t B, size_t D, size_t taps) {
    for (size_t b = 0; b < B; b++)
        for (size_t i = 0; i < D; i++) {
            float sum = x[b * D + i] * w[(taps - 1) * D + i];
            for (size_t k = 0; k + 1 < taps; k++)
                sum += history[(b * (taps - 1) + k) * D + i] * w[(taps - 2 - k) * D + i];
            y[b * D + i] = sum;
        }
}

void sn_inside_taps_step(const float *x, const float *history, const float *w, float *y, int B,
                         int D, int taps) {
    if (B < 1 || D < 1 || taps < 1) return;
    const sn_fpenv saved = sn_fpenv_enter();
    taps_step(x, history, w, y, (size_t)B, (size_t)D, (size_t)taps);
    sn_fpenv_leave(saved);
}
