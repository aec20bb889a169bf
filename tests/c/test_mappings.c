/*
 * test_mappings: the recurrences of tests/c/mappings.h, six architectures as docs/recurrence.md
 * shows them, against each architecture's own recurrence in float64, token after token with its
 * read-out; and cut in two, where the second call goes on from the state of the first.
 */
#include "check.h"

#include "mappings.h"
#include "memory.h"

#define B 2
#define T 128
#define N 128
#define K 8   /* linear attention: K x V = N */
#define V 16
#define TOKENS (B * T)

/* The seed's figures for its own kernel are up to 1.9e-6, of values of about 1. */
#define ALLOWED 2e-6

static const sizes all = { B, T, N };
static check_random rng = { 6 };

static float *room(size_t n) {
    float *x = sn_alloc_array(n, sizeof(float));
    if (!x) exit(1);
    return x;
}

static float *numbers(size_t n, float low, float high) {
    float *x = room(n);
    for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * 0.5f * (check_float(&rng) + 1.0f);
    return x;
}

static double sigmoid64(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static void check_close(const char *name, const float *got, const double *want, size_t n) {
    double largest = 1.0, error = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double distance = fabs((double)got[i] - want[i]);
        largest = fmax(largest, fabs(want[i]));
        if (!(distance <= error)) error = distance;
    }
    CHECK(error <= ALLOWED * largest, "%s: off by %.3g, the largest value is %.3g", name, error,
          largest);
}

/* One token further: the state's channels and what is read, in float64. */
typedef struct step {
    double a, b; /* s = a s + b */
} step;

static step fma_step(double a, double b) {
    return (step){ a, b };
}

static step gated_step(double a, double u) {
    return (step){ a, (1.0 - a) * u };
}

/* ---- RWKV ------------------------------------------------------------------------------------ */

static void test_rwkv_wkv(void) {
    float *w = numbers(TOKENS * N, -2.0f, 4.0f), *k = numbers(TOKENS * N, -1.0f, 1.0f);
    float *v = numbers(TOKENS * N, -1.0f, 1.0f), *r = numbers(TOKENS * N, -2.0f, 2.0f);
    float *s = numbers(B * N, -1.0f, 1.0f), *y = room(TOKENS * N);
    float *a = room(TOKENS * N), *b = room(TOKENS * N);
    static double want[TOKENS * N], state[B * N];
    for (size_t i = 0; i < B * N; i++) state[i] = (double)s[i];
    for (size_t i = 0; i < TOKENS * N; i++) {
        const size_t c = i / (T * N) * N + i % N;
        const double p = fmin(fmax(sigmoid64((double)w[i]), 1e-4), 1.0 - 1e-6);
        const step next = fma_step(p, (double)k[i] * (double)v[i]);
        state[c] = next.a * state[c] + next.b;
        want[i] = sigmoid64((double)r[i]) * state[c];
    }
    CHECK(rwkv_wkv(all, w, k, v, r, s, y, a, b) == SN_OK, "rwkv");
    check_close("rwkv wkv", y, want, TOKENS * N);
    check_close("rwkv wkv, state", s, state, B * N);
    sn_free(w), sn_free(k), sn_free(v), sn_free(r), sn_free(s), sn_free(y), sn_free(a), sn_free(b);
}

/* ---- Mamba ----------------------------------------------------------------------------------- */

static void test_mamba_s6(void) {
    float *dt = numbers(TOKENS * N, -4.0f, 1.0f), *a_log = numbers(N, -1.0f, 2.0f);
    float *u = numbers(TOKENS * N, -2.0f, 2.0f), *x = numbers(TOKENS * N, -1.0f, 1.0f);
    float *z = numbers(TOKENS * N, -3.0f, 3.0f), *D = numbers(N, -1.0f, 1.0f);
    float *s = numbers(B * N, -1.0f, 1.0f), *y = room(TOKENS * N), *a = room(TOKENS * N);
    static double want[TOKENS * N], state[B * N];
    for (size_t i = 0; i < B * N; i++) state[i] = (double)s[i];
    for (size_t i = 0; i < TOKENS * N; i++) {
        const size_t c = i / (T * N) * N + i % N;
        const double gate = (double)z[i] * sigmoid64((double)z[i]);
        const double delta = log1p(exp((double)dt[i]));
        const step next = gated_step(exp(-delta * exp((double)a_log[i % N])), (double)u[i]);
        state[c] = next.a * state[c] + next.b;
        want[i] = state[c] * gate + (double)D[i % N] * (double)x[i];
    }
    CHECK(mamba_s6(all, dt, a_log, u, x, z, D, s, y, a) == SN_OK, "mamba");
    check_close("mamba s6", y, want, TOKENS * N);
    check_close("mamba s6, state", s, state, B * N);
    sn_free(dt), sn_free(a_log), sn_free(u), sn_free(x), sn_free(z), sn_free(D);
    sn_free(s), sn_free(y), sn_free(a);
}

/* ---- H3 -------------------------------------------------------------------------------------- */

static void test_h3_diagonal(void) {
    float *a_log = numbers(N, -3.0f, 2.0f), *q = numbers(TOKENS * N, -1.0f, 1.0f);
    float *v = numbers(TOKENS * N, -2.0f, 2.0f), *g = numbers(TOKENS * N, -2.0f, 2.0f);
    float *s = numbers(B * N, -1.0f, 1.0f), *y = room(TOKENS * N), *a = room(TOKENS * N);
    static double want[TOKENS * N], state[B * N];
    for (size_t i = 0; i < B * N; i++) state[i] = (double)s[i];
    for (size_t i = 0; i < TOKENS * N; i++) {
        const size_t c = i / (T * N) * N + i % N;
        const step next = gated_step(sigmoid64(-(double)a_log[i % N]), (double)v[i]);
        state[c] = next.a * state[c] + next.b;
        want[i] = (double)q[i] * state[c] * sigmoid64((double)g[i]);
    }
    CHECK(h3_diagonal(all, a_log, q, v, g, s, y, a) == SN_OK, "h3");
    check_close("h3", y, want, TOKENS * N);
    check_close("h3, state", s, state, B * N);
    sn_free(a_log), sn_free(q), sn_free(v), sn_free(g), sn_free(s), sn_free(y), sn_free(a);
}

/* ---- S4 -------------------------------------------------------------------------------------- */

static void test_s4_diagonal(void) {
    float *A = numbers(N, 0.5f, 0.99f), *in = numbers(N, -0.2f, 0.2f);
    float *C = numbers(N, -0.2f, 0.2f), *x = numbers(TOKENS, -1.0f, 1.0f);
    float *s = numbers(B * N, -1.0f, 1.0f), *y = room(TOKENS), *states = room(TOKENS * N);
    float *a = room(TOKENS * N), *b = room(TOKENS * N);
    static double want[TOKENS], state[B * N];
    for (size_t i = 0; i < B * N; i++) state[i] = (double)s[i];
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < N; i++) {
            double *c = &state[t / T * N + i];
            *c = (double)A[i] * *c + (double)in[i] * (double)x[t];
            want[t] += (double)C[i] * *c;
        }
    CHECK(s4_diagonal(all, A, in, C, x, s, y, states, a, b) == SN_OK, "s4");
    check_close("s4", y, want, TOKENS);
    check_close("s4, state", s, state, B * N);
    sn_free(A), sn_free(in), sn_free(C), sn_free(x), sn_free(s), sn_free(y), sn_free(states);
    sn_free(a), sn_free(b);
}

/* ---- linear attention ------------------------------------------------------------------------ */

/* Features elu(x) + 1 are given as they are, all above 0. */
static void test_linear_attention(void) {
    const sizes keys = { B, T, K };
    float *q = numbers(TOKENS * K, 0.1f, 2.0f), *k = numbers(TOKENS * K, 0.1f, 2.0f);
    float *v = numbers(TOKENS * V, -1.0f, 1.0f), *S = room(B * N), *z = room(B * K);
    float *y = room(TOKENS * V), *ones = room(TOKENS * N), *outer = room(TOKENS * N);
    float *states = room(TOKENS * N), *sums = room(TOKENS * K);
    static double want[TOKENS * V], total[B * N], below[B * K];
    for (size_t t = 0; t < TOKENS; t++) {
        double divisor = 1e-6;
        for (size_t j = 0; j < K; j++) {
            below[t / T * K + j] += (double)k[t * K + j];
            divisor += (double)q[t * K + j] * below[t / T * K + j];
        }
        for (size_t j = 0; j < K; j++)
            for (size_t i = 0; i < V; i++) {
                double *c = &total[t / T * N + j * V + i];
                *c += (double)k[t * K + j] * (double)v[t * V + i];
                want[t * V + i] += (double)q[t * K + j] * *c / divisor;
            }
    }
    CHECK(linear_attention(keys, V, q, k, v, S, z, y, ones, outer, states, sums) == SN_OK,
          "linear attention");
    check_close("linear attention", y, want, TOKENS * V);
    check_close("linear attention, state", S, total, B * N);
    check_close("linear attention, divisor", z, below, B * K);
    sn_free(q), sn_free(k), sn_free(v), sn_free(S), sn_free(z), sn_free(y), sn_free(ones);
    sn_free(outer), sn_free(states), sn_free(sums);
}

/* ---- SunnyNet -------------------------------------------------------------------------------- */

static void test_sunnynet_state(void) {
    float *gate = numbers(TOKENS * N, -3.0f, 3.0f), *delta = numbers(N, 0.001f, 0.9f);
    float *u = numbers(TOKENS * N, -2.0f, 2.0f), *s = numbers(B * N, -1.0f, 1.0f);
    float *y = room(TOKENS * N), *a = room(TOKENS * N);
    static double want[TOKENS * N], state[B * N];
    for (size_t i = 0; i < B * N; i++) state[i] = (double)s[i];
    for (size_t i = 0; i < TOKENS * N; i++) {
        const size_t c = i / (T * N) * N + i % N;
        const double p = 1.0 - (double)delta[i % N] * (1.0 - sigmoid64((double)gate[i]));
        const step next = gated_step(p, (double)u[i]);
        state[c] = next.a * state[c] + next.b;
        want[i] = state[c];
    }
    CHECK(sunnynet_state(all, gate, delta, u, s, y, a) == SN_OK, "sunnynet");
    check_close("sunnynet", y, want, TOKENS * N);
    check_close("sunnynet, state", s, state, B * N);
    sn_free(gate), sn_free(delta), sn_free(u), sn_free(s), sn_free(y), sn_free(a);
}

/* ---- going on -------------------------------------------------------------------------------- */

/* One call over T tokens and two over parts of them give the same bits. */
static void test_a_call_goes_on(void) {
    const size_t first = 37;
    const sizes whole = { 1, T, N }, head = { 1, (int32_t)first, N };
    const sizes rest = { 1, T - (int32_t)first, N };
    float *gate = numbers(T * N, -3.0f, 3.0f), *delta = numbers(N, 0.001f, 0.9f);
    float *u = numbers(T * N, -2.0f, 2.0f), *a = room(T * N);
    float *y = room(T * N), *cut = room(T * N), *s = room(N), *s_cut = room(N);
    CHECK(sunnynet_state(whole, gate, delta, u, s, y, a) == SN_OK, "whole");
    CHECK(sunnynet_state(head, gate, delta, u, s_cut, cut, a) == SN_OK, "head");
    CHECK(sunnynet_state(rest, gate + first * N, delta, u + first * N, s_cut, cut + first * N,
                         a) == SN_OK, "rest");
    CHECK(memcmp(y, cut, T * N * sizeof(float)) == 0, "outputs differ");
    CHECK(memcmp(s, s_cut, N * sizeof(float)) == 0, "states differ");
    sn_free(gate), sn_free(delta), sn_free(u), sn_free(a), sn_free(y), sn_free(cut);
    sn_free(s), sn_free(s_cut);
}

int main(void) {
    test_rwkv_wkv();
    test_mamba_s6();
    test_h3_diagonal();
    test_s4_diagonal();
    test_linear_attention();
    test_sunnynet_state();
    test_a_call_goes_on();
    return check_report("mappings");
}
