/*
 * test_oracle_recurrence: the scalar back end's kernels of recurrence.h against sections 8 to 10 of
 * docs/determinism.md: the bits of the operations as written there, and near what float64 makes of
 * the formula, within a bound of the rounding errors that is carried along.
 */
#include "oracle.h"

#define MOST 130
#define MOST_TOKENS 6
#define WIDE (MOST + 2)
#define SLACK 1.01 /* products of errors, which the bounds leave out */

typedef struct bounded {
    double x, error;
} bounded;

typedef struct vectors {
    float at[MOST_TOKENS * WIDE];
} vectors;

static sn_sequence sequence(const vectors *v) {
    return (sn_sequence){ v->at, WIDE };
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct gradients {
    vectors a, b, y, dy, da, db;
    float s0[MOST], d[MOST];
    sn_recur_reverse scan;
} gradients;

/* One channel from its last token to the first; `d` is what was carried in. */
static void check_channel(const gradients *g, size_t i, float d) {
    const bool gated = g->scan.gated;
    bounded near = { d, 0.0 };
    for (size_t t = g->scan.n_tokens; t-- > 0;) {
        const size_t at = t * WIDE + i;
        const float a = g->a.at[at], b = g->b.at[at], dy = g->dy.at[at];
        const float before = t ? g->y.at[at - WIDE] : g->s0[i];
        const double kept = gated ? 1.0 - (double)a : 1.0;
        const double through = (double)before - (gated ? (double)b : 0.0);
        d = plus(d, dy);
        near.x += (double)dy;
        near.error += U * fabs(near.x);
        check_same("da", i, g->da.at[at], times(d, gated ? minus(before, b) : before));
        check_same("db", i, g->db.at[at], gated ? times(d, minus(1.0f, a)) : d);
        check_near("da", i, g->da.at[at], near.x * through,
                   SLACK * (near.error + 2.0 * U * fabs(near.x)) * fabs(through));
        check_near("db", i, g->db.at[at], near.x * kept,
                   SLACK * (near.error + 2.0 * U * fabs(near.x)) * fabs(kept));
        d = times(d, a);
        near.x *= (double)a;
        near.error = near.error * fabs((double)a) + U * fabs(near.x);
    }
    check_same("d", i, g->d[i], d);
    check_near("d", i, g->d[i], near.x, SLACK * near.error);
}

static void check_reverse(size_t n, size_t n_tokens, bool gated) {
    static gradients g;
    float carried[MOST];
    vectors *const inputs[] = { &g.a, &g.b, &g.y, &g.dy };
    for (size_t i = 0; i < 4; i++) fill(inputs[i]->at, n_tokens * WIDE, 1.0f);
    fill(g.s0, n, 1.0f);
    fill(carried, n, 1.0f);
    memcpy(g.d, carried, sizeof carried);
    g.scan = (sn_recur_reverse){
        .da = g.da.at, .db = g.db.at, .da_stride = WIDE, .db_stride = WIDE, .d = g.d, .s0 = g.s0,
        .a = sequence(&g.a), .b = sequence(&g.b), .y = sequence(&g.y), .dy = sequence(&g.dy),
        .n = n, .n_tokens = n_tokens, .gated = gated,
    };
    simd->recur_reverse(&g.scan);
    for (size_t i = 0; i < n; i++) check_channel(&g, i, carried[i]);
}

/* ---- rank one, row-major --------------------------------------------------------------------- */

/* Lane l of 16 takes terms l, l + 16, ...; then the tree of section 5. */
static float tree_sum(const float *term, size_t n) {
    float lane[16] = { 0 };
    for (size_t j = 0; j < n; j++) lane[j % 16] = plus(lane[j % 16], term[j]);
    for (size_t width = 8; width >= 4; width /= 2)
        for (size_t l = 0; l < width; l++) lane[l] = plus(lane[l], lane[l + width]);
    return plus(plus(lane[0], lane[2]), plus(lane[1], lane[3]));
}

typedef struct rows {
    float S[MOST * MOST], before[MOST * MOST];
    float w[MOST], u[MOST], k[MOST], b[MOST], r[MOST], v[MOST], y[MOST], p[MOST];
    sn_rank1_rows_scan scan;
} rows;

static float new_state(const rows *m, size_t i, size_t j, float p) {
    const sn_rank1_rows_scan *c = &m->scan;
    float s = m->before[i * c->n + j];
    if (c->w) s = times(s, c->w[j]);
    if (c->u && c->b) s = minus(s, times(p, c->b[j]));
    if (c->v && c->k) s = plus(s, times(c->v[i], c->k[j]));
    return s;
}

static void check_row(const rows *m, size_t i) {
    const sn_rank1_rows_scan *c = &m->scan;
    const double sums = (double)c->n + 1.0;
    float term[MOST], p = 0.0f;
    bounded near_p = { 0.0, 0.0 }, near_y = { 0.0, 0.0 };
    for (size_t j = 0; c->u && j < c->n; j++) {
        const double exact = (double)m->before[i * c->n + j] * (double)c->u[j];
        term[j] = times(m->before[i * c->n + j], c->u[j]);
        near_p.x += exact;
        near_p.error += sums * U * fabs(exact);
    }
    if (c->u) p = tree_sum(term, c->n);
    if (c->u) check_same("p", i, m->p[i], p);
    for (size_t j = 0; j < c->n; j++) {
        const double old = (double)m->before[i * c->n + j] * (c->w ? (double)c->w[j] : 1.0);
        const double b = c->u && c->b ? (double)c->b[j] : 0.0;
        const double added = c->v && c->k ? (double)c->v[i] * (double)c->k[j] : 0.0;
        const double error = near_p.error * fabs(b) +
                             3.0 * U * (fabs(old) + fabs(near_p.x * b) + fabs(added));
        const double s = old - near_p.x * b + added, r = c->r ? (double)c->r[j] : 0.0;
        check_same("S", j, m->S[i * c->n + j], new_state(m, i, j, p));
        check_near("S", j, m->S[i * c->n + j], s, SLACK * error);
        if (c->r) term[j] = times(m->S[i * c->n + j], c->r[j]);
        near_y.x += s * r;
        near_y.error += (error + sums * U * fabs(s)) * fabs(r);
    }
    if (!c->r) return;
    check_same("y", i, m->y[i], tree_sum(term, c->n));
    check_near("y", i, m->y[i], near_y.x, SLACK * near_y.error);
}

/* `has`: a bit for each of w, u, k, b, r and v. */
static void check_rows(size_t n_rows, size_t n, unsigned has) {
    static rows m;
    float *const vector[] = { m.w, m.u, m.k, m.b, m.r, m.v };
    for (size_t i = 0; i < 6; i++) fill(vector[i], MOST, 0.5f);
    fill(m.S, n_rows * n, 1.0f);
    memcpy(m.before, m.S, sizeof m.S);
    m.scan = (sn_rank1_rows_scan){
        .S = m.S, .w = has & 1 ? m.w : NULL, .u = has & 2 ? m.u : NULL,
        .k = has & 4 ? m.k : NULL, .b = has & 8 ? m.b : NULL, .r = has & 16 ? m.r : NULL,
        .v = has & 32 ? m.v : NULL, .y = m.y, .p = m.p, .n_rows = n_rows, .n = n,
    };
    simd->rank1_rows(&m.scan);
    for (size_t i = 0; i < n_rows; i++) check_row(&m, i);
}

/* ---- 4-bit codes ----------------------------------------------------------------------------- */

#define MOST_GROUPS 5
#define MOST_HALF 70
#define X_GROUP (3 * 64)

typedef struct product {
    uint8_t codes[9 * MOST_GROUPS * MOST_HALF];
    int8_t x[MOST_GROUPS * X_GROUP];
    float scale[9 * MOST_GROUPS], x_scale[MOST_GROUPS], y[9];
    int64_t offset[MOST_GROUPS];
} product;

/* Where element k of a group is among its activations. */
static size_t place_of(size_t k, size_t half) {
    const size_t i = k % half;
    return i / 32 * 64 + k / half * 32 + i % 32;
}

static void check_gemv(size_t n_rows, size_t n_groups, size_t half, bool extreme) {
    static product m;
    const size_t group = (half + 31) / 32 * 64;
    memset(m.x, 0, sizeof m.x);
    fill(m.scale, n_rows * n_groups, 1.0f);
    fill(m.x_scale, n_groups, 1.0f);
    for (size_t i = 0; i < n_rows * n_groups * half; i++)
        m.codes[i] = extreme ? 0x0f : (uint8_t)check_next(&rng);
    for (size_t g = 0; g < n_groups; g++) {
        m.offset[g] = 0;
        for (size_t k = 0; k < 2 * half; k++) {
            const int8_t x = (int8_t)(extreme ? -127 : (int)check_below(&rng, 255) - 127);
            m.x[g * group + place_of(k, half)] = x;
            m.offset[g] += 8 * x;
        }
    }
    const sn_gemv_i4 call = { m.y, m.codes, m.scale, m.x, m.x_scale, m.offset, n_rows, n_groups,
                              half };
    simd->gemv_i4(&call);
    for (size_t o = 0; o < n_rows; o++) {
        float sum = 0.0f;
        for (size_t g = 0; g < n_groups; g++) {
            const uint8_t *codes = m.codes + (o * n_groups + g) * half;
            int32_t total = 0;
            for (size_t k = 0; k < 2 * half; k++) {
                const int code = k < half ? codes[k] & 15 : codes[k - half] >> 4;
                total += (code - 8) * m.x[g * group + place_of(k, half)];
            }
            sum = plus(sum, times(times(m.scale[o * n_groups + g], m.x_scale[g]), (float)total));
        }
        check_same("gemv_i4", o, m.y[o], sum);
    }
}

int main(void) {
    simd = sn_simd_at(0);
    for (size_t n = 1; n <= MOST; n += n < 70 ? 1 : 20) {
        check_reverse(n, n % MOST_TOKENS + 1, false);
        check_reverse(n, n % MOST_TOKENS + 1, true);
        check_rows(n % 9 + 1, n, 63);
    }
    for (unsigned has = 0; has < 64; has++) check_rows(5, 19, has);
    for (size_t half = 1; half <= MOST_HALF; half++)
        check_gemv(half % 9 + 1, half % MOST_GROUPS + 1, half, half % 6 == 0);
    return check_report("oracle_recurrence");
}
