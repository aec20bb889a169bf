/*
 * test_oracle_scans: the scalar back end's kernels over time against docs/determinism.md, section
 * "Recurrences": the bits of the operations as written there, and near what float64 makes of the
 * formula, within a bound of the rounding errors that is carried along with every state.
 */
#include "oracle.h"

#define MOST_KEYS 70
#define MOST_VALUES 130
#define MOST_TOKENS 6
#define WIDE (MOST_VALUES + 2)
#define SLACK 1.01 /* products of errors, which the bounds leave out */

typedef struct vectors {
    float at[MOST_TOKENS * WIDE];
} vectors;

static sn_sequence sequence(const vectors *v) {
    return (sn_sequence){ v->at, WIDE };
}

/* A number with a bound of how far the float32 one may be from it. */
typedef struct bounded {
    double x, error;
} bounded;

/* ---- matrix recurrences ---------------------------------------------------------------------- */

typedef struct matrix {
    sn_matrix_scan scan;
    bool outer;
    vectors d, k, v, r, u, b, y;
    float S[MOST_KEYS * MOST_VALUES];
    float same[MOST_KEYS * MOST_VALUES];   /* by the operations as written */
    bounded near[MOST_KEYS * MOST_VALUES]; /* by float64 */
} matrix;

static float decay_of(const matrix *m, size_t t, size_t j, size_t i) {
    switch (m->scan.decay) {
    case SN_DECAY_HEAD: return m->d.at[t * WIDE];
    case SN_DECAY_KEY: return m->d.at[t * WIDE + j];
    case SN_DECAY_VALUE: return m->d.at[t * WIDE + i];
    default: return 1.0f; /* exact, as if left out */
    }
}

/* One token for value channel i; returns y[i]. */
static float same_channel(matrix *m, size_t t, size_t i) {
    const size_t o = t * WIDE, n_values = m->scan.n_values;
    float p = 0.0f, y = 0.0f;
    for (size_t j = 0; j < m->scan.n_keys && !m->outer; j++)
        p = plus(p, times(m->same[j * n_values + i], m->u.at[o + j]));
    for (size_t j = 0; j < m->scan.n_keys; j++) {
        float *S = &m->same[j * n_values + i];
        *S = times(*S, decay_of(m, t, j, i));
        if (!m->outer) *S = minus(*S, times(p, m->b.at[o + j]));
        *S = plus(*S, times(m->v.at[o + i], m->k.at[o + j]));
        y = plus(y, times(*S, m->r.at[o + j]));
    }
    return y;
}

/* The same in float64. The error of an entry is what it was, times the factor it meets, plus the
 * roundings of this step. */
static bounded near_channel(matrix *m, size_t t, size_t i) {
    const size_t o = t * WIDE, n_values = m->scan.n_values;
    const double sums = (double)m->scan.n_keys + 1.0;
    bounded p = { 0.0, 0.0 }, y = { 0.0, 0.0 };
    for (size_t j = 0; j < m->scan.n_keys && !m->outer; j++) {
        const bounded *S = &m->near[j * n_values + i];
        const double u = m->u.at[o + j];
        p.x += S->x * u;
        p.error += S->error * fabs(u) + sums * U * fabs(S->x * u);
    }
    for (size_t j = 0; j < m->scan.n_keys; j++) {
        bounded *S = &m->near[j * n_values + i];
        const double d = decay_of(m, t, j, i), b = m->outer ? 0.0 : (double)m->b.at[o + j];
        const double r = m->r.at[o + j], added = (double)m->v.at[o + i] * (double)m->k.at[o + j];
        S->error = S->error * fabs(d) + p.error * fabs(b) +
                   3.0 * U * (fabs(S->x * d) + fabs(p.x * b) + fabs(added));
        S->x = S->x * d - p.x * b + added;
        y.x += S->x * r;
        y.error += S->error * fabs(r) + sums * U * fabs(S->x * r);
    }
    return y;
}

static void check_matrix(bool outer, sn_decay decay, size_t n_keys, size_t n_values,
                         size_t n_tokens) {
    static matrix m;
    const char *name = outer ? "outer_scan" : "rank1_scan";
    vectors *const inputs[] = { &m.d, &m.k, &m.v, &m.r, &m.u, &m.b };
    for (size_t i = 0; i < 6; i++) fill(inputs[i]->at, n_tokens * WIDE, 0.5f);
    fill(m.S, n_keys * n_values, 1.0f);
    for (size_t i = 0; i < n_keys * n_values; i++)
        m.same[i] = m.S[i], m.near[i] = (bounded){ m.S[i], 0.0 };
    m.outer = outer;
    m.scan = (sn_matrix_scan){
        .y = m.y.at, .y_stride = WIDE, .S = m.S, .row = n_values, .n_keys = n_keys,
        .n_values = n_values, .n_tokens = n_tokens, .decay = decay, .d = sequence(&m.d),
        .k = sequence(&m.k), .v = sequence(&m.v), .r = sequence(&m.r), .u = sequence(&m.u),
        .b = sequence(&m.b),
    };
    if (outer) simd->outer_scan(&m.scan);
    else simd->rank1_scan(&m.scan);
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t i = 0; i < n_values; i++) {
            const float got = m.y.at[t * WIDE + i];
            const bounded near = near_channel(&m, t, i);
            check_same(name, i, got, same_channel(&m, t, i));
            check_near(name, i, got, near.x, SLACK * near.error);
        }
    for (size_t i = 0; i < n_keys * n_values; i++) {
        check_same(name, i, m.S[i], m.same[i]);
        check_near(name, i, m.S[i], m.near[i].x, SLACK * m.near[i].error);
    }
}

static void check_matrices(void) {
    static const size_t sizes[][3] = {
        { 64, 64, MOST_TOKENS }, { 3, 70, 4 }, { 70, 3, 4 }, { 17, 33, 1 }, { 5, 130, 3 },
    };
    for (int kind = 0; kind < 7; kind++) {
        const bool outer = kind >= 3;
        const sn_decay decay = outer ? kind - 3 : kind;
        for (size_t n = 1; n <= 66; n += 5) check_matrix(outer, decay, n, n, MOST_TOKENS);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_matrix(outer, decay, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
}

/* ---- first-order recurrence ------------------------------------------------------------------ */

static void check_recur(size_t n, bool gated) {
    static vectors a, b, y;
    static float s[MOST_VALUES], same[MOST_VALUES];
    static bounded near[MOST_VALUES];
    fill(a.at, MOST_TOKENS * WIDE, 1.0f);
    fill(b.at, MOST_TOKENS * WIDE, 2.0f);
    fill(s, n, 1.0f);
    for (size_t i = 0; i < n; i++) same[i] = s[i], near[i] = (bounded){ s[i], 0.0 };
    const sn_recur scan = { .y = y.at, .y_stride = WIDE, .s = s, .a = sequence(&a),
                            .b = sequence(&b), .n = n, .n_tokens = MOST_TOKENS, .gated = gated };
    simd->recur_scan(&scan);
    for (size_t t = 0; t < MOST_TOKENS; t++)
        for (size_t i = 0; i < n; i++) {
            const float at = a.at[t * WIDE + i], bt = b.at[t * WIDE + i];
            const double added = gated ? (1.0 - (double)at) * (double)bt : (double)bt;
            same[i] = plus(times(at, same[i]), gated ? times(minus(1.0f, at), bt) : bt);
            near[i].error = near[i].error * fabs((double)at) +
                            U * (2.0 * fabs((double)at * near[i].x) + 3.0 * fabs(added));
            near[i].x = (double)at * near[i].x + added;
            check_same("recur_scan", i, y.at[t * WIDE + i], same[i]);
            check_near("recur_scan", i, y.at[t * WIDE + i], near[i].x, SLACK * near[i].error);
        }
    for (size_t i = 0; i < n; i++) check_same("recur_scan s", i, s[i], same[i]);
}

/* ---- Mamba-1 --------------------------------------------------------------------------------- */

#define MOST_STATES 17

typedef struct selective {
    vectors dt, x, B, C, y;
    float S[MOST_STATES * MOST_VALUES], A[MOST_STATES * MOST_VALUES];
    float same[MOST_STATES * MOST_VALUES];
    bounded near[MOST_STATES * MOST_VALUES];
} selective;

/* The exponential is the kernel's, which is off by at most an ulp (test_vmath.c), 2 U; its argument
 * by |dt A| U. */
static void check_channel(selective *s, size_t t, size_t i, size_t n_states, size_t n_channels) {
    const float dt = s->dt.at[t * WIDE + i], x = s->x.at[t * WIDE + i];
    float same = 0.0f;
    bounded near = { 0.0, 0.0 };
    for (size_t n = 0; n < n_states; n++) {
        const size_t at = n * n_channels + i;
        const float B = s->B.at[t * WIDE + n], C = s->C.at[t * WIDE + n];
        const float product = times(dt, s->A[at]);
        float e;
        simd->exp(&e, &product, 1);
        s->same[at] = plus(times(e, s->same[at]), times(x, B));
        same = plus(same, times(s->same[at], C));
        const double exponent = (double)dt * (double)s->A[at], kept = exp(exponent) * s->near[at].x;
        const double added = (double)x * (double)B;
        s->near[at].error = s->near[at].error * exp(exponent) +
                            U * ((4.0 + fabs(exponent)) * fabs(kept) + 2.0 * fabs(added));
        s->near[at].x = kept + added;
        near.x += s->near[at].x * (double)C;
        near.error += (s->near[at].error + ((double)n_states + 1.0) * U * fabs(s->near[at].x)) *
                      fabs((double)C);
    }
    check_same("selective_scan", i, s->y.at[t * WIDE + i], same);
    check_near("selective_scan", i, s->y.at[t * WIDE + i], near.x, SLACK * near.error);
}

static void check_selective(size_t n_states, size_t n_channels) {
    static selective s;
    fill(s.dt.at, MOST_TOKENS * WIDE, 1.0f);
    fill(s.x.at, MOST_TOKENS * WIDE, 1.0f);
    fill(s.B.at, MOST_TOKENS * WIDE, 1.0f);
    fill(s.C.at, MOST_TOKENS * WIDE, 1.0f);
    fill(s.S, n_states * n_channels, 1.0f);
    for (size_t i = 0; i < MOST_TOKENS * WIDE; i++) s.dt.at[i] = fabsf(s.dt.at[i]);
    for (size_t i = 0; i < n_states * n_channels; i++) {
        s.A[i] = -fabsf(number(8.0f));
        s.same[i] = s.S[i], s.near[i] = (bounded){ s.S[i], 0.0 };
    }
    const sn_selective_scan scan = {
        .y = s.y.at, .y_stride = WIDE, .S = s.S, .A = s.A, .row = n_channels,
        .n_states = n_states, .n_channels = n_channels, .n_tokens = MOST_TOKENS,
        .dt = sequence(&s.dt), .x = sequence(&s.x), .B = sequence(&s.B), .C = sequence(&s.C),
    };
    simd->selective_scan(&scan);
    for (size_t t = 0; t < MOST_TOKENS; t++)
        for (size_t i = 0; i < n_channels; i++) check_channel(&s, t, i, n_states, n_channels);
    for (size_t i = 0; i < n_states * n_channels; i++) {
        check_same("selective_scan S", i, s.S[i], s.same[i]);
        check_near("selective_scan S", i, s.S[i], s.near[i].x, SLACK * s.near[i].error);
    }
}

/* ---- convolution ----------------------------------------------------------------------------- */

#define MOST_TAPS 5

static void check_conv(size_t n_taps, size_t n, bool with_bias) {
    static float rows[MOST_TAPS][MOST_VALUES], w[MOST_TAPS * MOST_VALUES], bias[MOST_VALUES];
    static float y[MOST_VALUES];
    const float *at[MOST_TAPS];
    for (size_t k = 0; k < n_taps; k++) {
        fill(rows[k], n, 2.0f);
        at[k] = rows[k];
    }
    fill(w, n_taps * n, 1.0f);
    fill(bias, n, 1.0f);
    simd->conv(y, at, w, with_bias ? bias : NULL, n_taps, n);
    for (size_t i = 0; i < n; i++) {
        float same = with_bias ? bias[i] : 0.0f;
        double near = same, size = fabs((double)same);
        for (size_t k = 0; k < n_taps; k++) {
            const double term = (double)w[k * n + i] * (double)rows[k][i];
            same = plus(same, times(w[k * n + i], rows[k][i]));
            near += term;
            size += fabs(term);
        }
        check_same("conv", i, y[i], same);
        check_near("conv", i, y[i], near, ((double)n_taps + 1.0) * U * size);
    }
}

int main(void) {
    simd = sn_simd_at(0);
    check_matrices();
    for (size_t n = 1; n <= MOST_VALUES; n += n < 35 ? 1 : 19) {
        check_recur(n, false);
        check_recur(n, true);
        check_selective(n % MOST_STATES + 1, n);
        for (size_t n_taps = 1; n_taps <= MOST_TAPS; n_taps++) check_conv(n_taps, n, n % 2);
    }
    return check_report("oracle_scans");
}
