/*
 * selftest_scans.c: the kernels that go over time. Each back end's outputs and states equal the
 * scalar ones; many tokens at once equal one after the other; an output may lie over an input of
 * its shape; and rows are left alone between what belongs to them.
 */
#include "selftest_grid.h"

/* Output and state, at t->want or t->got: y first, the state behind its guard. */
typedef struct place {
    grid y, S;
} place;

static place place_at(float *memory, size_t n_tokens, size_t width, size_t y_stride,
                      size_t state_rows, size_t row) {
    place p = { .y = { memory, n_tokens, width, y_stride } };
    p.S = (grid){ memory + grid_size(&p.y), state_rows, width, row };
    return p;
}

static void begin(const place *p, const float *state) {
    paint(&p->y);
    paint(&p->S);
    copy_grid(&p->S, state, p->S.width);
}

static sn_status compare_place(tester *t, const char *kernel, const place *got, const place *want) {
    t->cases++;
    SN_TRY(compare_grid(t, kernel, &got->y, want->y.at));
    return compare_grid(t, kernel, &got->S, want->S.at);
}

/* ---- matrix recurrences -------------------------------------------------------------------- */

typedef void (*matrix_scan)(const sn_matrix_scan *scan);

typedef struct matrix_case {
    const char *name;
    bool outer;
    sn_decay decay;
    size_t n_keys, n_values, n_tokens;
    kind what;
} matrix_case;

static matrix_scan matrix_kernel(const sn_simd *k, bool outer) {
    return outer ? k->outer_scan : k->rank1_scan;
}

static sn_matrix_scan scan_at(const place *p, const sn_matrix_scan *inputs) {
    sn_matrix_scan scan = *inputs;
    scan.y = p->y.at;
    scan.S = p->S.at;
    return scan;
}

static void token_by_token(matrix_scan kernel, const sn_matrix_scan *all) {
    for (size_t i = 0; i < all->n_tokens; i++) {
        sn_matrix_scan one = *all;
        one.n_tokens = 1;
        one.y += i * all->y_stride;
        sn_sequence *const inputs[] = { &one.d, &one.k, &one.v, &one.r, &one.u, &one.b };
        for (size_t s = 0; s < 6; s++) *inputs[s] = from_token(*inputs[s], i);
        kernel(&one);
    }
}

/* Inputs with strides of their own; those that the recurrence does not name are NULL. */
static sn_matrix_scan matrix_inputs(tester *t, const matrix_case *c) {
    const size_t stride = (c->n_keys > c->n_values ? c->n_keys : c->n_values) + 3;
    for (int i = 0; i < 6; i++) fill_kind(t, t->in[i], c->n_tokens * stride + 1, c->what);
    sn_matrix_scan scan = {
        .y_stride = c->n_values + c->n_keys % 3, .row = c->n_values + c->n_tokens % 4,
        .n_keys = c->n_keys, .n_values = c->n_values, .n_tokens = c->n_tokens,
        .decay = c->decay, .k = { t->in[0] + 1, stride }, .v = { t->in[1], stride },
        .r = { t->in[2], stride },
    };
    if (c->decay != SN_DECAY_NONE) scan.d = (sn_sequence){ t->in[3] + 1, stride };
    if (!c->outer) scan.u = (sn_sequence){ t->in[4], stride };
    if (!c->outer) scan.b = (sn_sequence){ t->in[5], stride };
    return scan;
}

static sn_status check_matrix(tester *t, const matrix_case *c) {
    const matrix_scan other = matrix_kernel(t->other, c->outer);
    const sn_matrix_scan inputs = matrix_inputs(t, c);
    const place want = place_at(t->want, c->n_tokens, c->n_values, inputs.y_stride, c->n_keys,
                                inputs.row);
    const place got = place_at(t->got, c->n_tokens, c->n_values, inputs.y_stride, c->n_keys,
                               inputs.row);
    const float *state = t->in[6];
    fill_kind(t, t->in[6], c->n_keys * c->n_values, c->what);
    begin(&want, state);
    sn_matrix_scan scan = scan_at(&want, &inputs);
    matrix_kernel(t->scalar, c->outer)(&scan);
    begin(&got, state);
    scan = scan_at(&got, &inputs);
    other(&scan);
    SN_TRY(compare_place(t, c->name, &got, &want));
    begin(&got, state);
    token_by_token(other, &scan);
    SN_TRY(compare_place(t, c->name, &got, &want));
    begin(&got, state);
    if (c->decay == SN_DECAY_VALUE && c->n_keys % 2) scan.d = into_output(&got.y, scan.d);
    else scan.v = into_output(&got.y, scan.v);
    other(&scan);
    return compare_place(t, c->name, &got, &want);
}

/* Every width up to 130 crosses 16 and 64 in all ways; then sizes that models have. */
static sn_status check_matrix_scan(tester *t, const char *name, bool outer, sn_decay decay) {
    static const size_t real[][2] = { { 64, 64 }, { 64, 128 }, { 128, 64 } };
    matrix_case c = { .name = name, .outer = outer, .decay = decay };
    for (size_t n = 1; n <= 130; n++) {
        c.n_values = n, c.n_keys = n % 8 * 2 + 1, c.n_tokens = n % 5 + 1, c.what = n % N_KINDS;
        SN_TRY(check_matrix(t, &c));
    }
    for (size_t i = 0; i < 3; i++) {
        c.n_keys = real[i][0], c.n_values = real[i][1], c.n_tokens = 3, c.what = PLAIN;
        SN_TRY(check_matrix(t, &c));
    }
    c.n_keys = 0, c.n_values = 20, c.n_tokens = 2;
    return check_matrix(t, &c);
}

/* ---- first-order recurrence ---------------------------------------------------------------- */

static sn_status check_recur(tester *t, size_t n, size_t n_tokens, bool gated, kind what) {
    const size_t stride = n + 5, y_stride = n % 4 ? n + n % 3 : sn_round_up(n, 16);
    for (int i = 0; i < 3; i++) fill_kind(t, t->in[i], n_tokens * stride + 1, what);
    const place want = place_at(t->want, n_tokens, n, y_stride, 1, n);
    const place got = place_at(t->got, n_tokens, n, y_stride, 1, n);
    const sn_recur inputs = {
        .y_stride = y_stride, .a = { t->in[0] + 1, stride }, .b = { t->in[1], stride }, .n = n,
        .n_tokens = n_tokens, .gated = gated, .streaming = n % 4 == 0,
    };
    sn_recur scan = inputs;
    scan.y = want.y.at, scan.s = want.S.at;
    begin(&want, t->in[2]);
    t->scalar->recur_scan(&scan);
    scan.y = got.y.at, scan.s = got.S.at;
    begin(&got, t->in[2]);
    t->other->recur_scan(&scan);
    SN_TRY(compare_place(t, "recur_scan", &got, &want));
    begin(&got, t->in[2]);
    for (size_t i = 0; i < n_tokens; i++) {
        sn_recur one = scan;
        one.n_tokens = 1, one.y += i * y_stride;
        one.a = from_token(scan.a, i), one.b = from_token(scan.b, i);
        t->other->recur_scan(&one);
    }
    SN_TRY(compare_place(t, "recur_scan", &got, &want));
    begin(&got, t->in[2]);
    if (n % 2) scan.a = into_output(&got.y, scan.a);
    else scan.b = into_output(&got.y, scan.b);
    t->other->recur_scan(&scan);
    return compare_place(t, "recur_scan", &got, &want);
}

static sn_status check_recurs(tester *t) {
    for (size_t n = 0; n <= 67; n++)
        for (kind what = 0; what < N_KINDS; what++)
            for (int gated = 0; gated < 2; gated++)
                SN_TRY(check_recur(t, n, n % 5 + 1, gated, what));
    SN_TRY(check_recur(t, 1000, 4, false, PLAIN));
    SN_TRY(check_recur(t, 768, 4, true, PLAIN));
    SN_TRY(check_recur(t, 4096 + 40, 2, true, PLAIN)); /* more channels than one pass takes */
    say(t, "recur_scan");
    return SN_OK;
}

/* ---- Mamba-1 ------------------------------------------------------------------------------- */

static sn_status check_selective(tester *t, size_t n_states, size_t n_channels, size_t n_tokens,
                                 kind what) {
    const size_t stride = n_channels + 3, row = n_channels + n_tokens % 3;
    for (int i = 0; i < 4; i++) fill_kind(t, t->in[i], n_tokens * (stride + n_states) + 1, what);
    fill_kind(t, t->in[5], n_states * row, what);
    fill_kind(t, t->in[6], n_states * n_channels, what);
    const place want = place_at(t->want, n_tokens, n_channels, stride, n_states, row);
    const place got = place_at(t->got, n_tokens, n_channels, stride, n_states, row);
    sn_selective_scan scan = {
        .y = want.y.at, .y_stride = stride, .S = want.S.at, .A = t->in[5], .row = row,
        .n_states = n_states, .n_channels = n_channels, .n_tokens = n_tokens,
        .dt = { t->in[0] + 1, stride }, .x = { t->in[1], stride },
        .B = { t->in[2], n_states + 1 }, .C = { t->in[3] + 1, n_states },
    };
    begin(&want, t->in[6]);
    t->scalar->selective_scan(&scan);
    scan.y = got.y.at, scan.S = got.S.at;
    begin(&got, t->in[6]);
    t->other->selective_scan(&scan);
    SN_TRY(compare_place(t, "selective_scan", &got, &want));
    begin(&got, t->in[6]);
    for (size_t i = 0; i < n_tokens; i++) {
        sn_selective_scan one = scan;
        one.n_tokens = 1, one.y += i * stride;
        one.dt = from_token(scan.dt, i), one.x = from_token(scan.x, i);
        one.B = from_token(scan.B, i), one.C = from_token(scan.C, i);
        t->other->selective_scan(&one);
    }
    SN_TRY(compare_place(t, "selective_scan", &got, &want));
    begin(&got, t->in[6]);
    if (n_channels % 2) scan.x = into_output(&got.y, scan.x);
    else scan.dt = into_output(&got.y, scan.dt);
    t->other->selective_scan(&scan);
    return compare_place(t, "selective_scan", &got, &want);
}

static sn_status check_selectives(tester *t) {
    for (size_t n = 1; n <= 67; n++)
        SN_TRY(check_selective(t, n % 9 + 1, n, n % 5 + 1, n % N_KINDS));
    SN_TRY(check_selective(t, 16, 300, 2, PLAIN));
    SN_TRY(check_selective(t, 16, 256, 2, TINY));
    SN_TRY(check_selective(t, 0, 20, 2, PLAIN));
    say(t, "selective_scan");
    return SN_OK;
}

/* ---- convolution --------------------------------------------------------------------------- */

#define MOST_TAPS 5

static sn_status check_conv(tester *t, size_t n_taps, size_t n, bool with_bias, kind what) {
    const float *rows[MOST_TAPS + 1];
    float *const weights = t->in[MOST_TAPS], *const bias = t->in[MOST_TAPS + 1];
    for (size_t k = 0; k < n_taps; k++) {
        fill_kind(t, t->in[k], n + k, what);
        rows[k] = t->in[k] + k;
    }
    fill_kind(t, weights, n_taps * n, what);
    fill_kind(t, bias, n, what);
    guard(t, n);
    t->scalar->conv(t->want, rows, weights, with_bias ? bias : NULL, n_taps, n);
    t->other->conv(t->got, rows, weights, with_bias ? bias : NULL, n_taps, n);
    SN_TRY(compare(t, "conv", n));
    if (n_taps == 0) return SN_OK;
    memcpy(t->got, rows[n_taps - 1], n * sizeof(float));
    rows[n_taps - 1] = t->got; /* the newest input, in place */
    t->other->conv(t->got, rows, weights, with_bias ? bias : NULL, n_taps, n);
    return compare(t, "conv", n);
}

static sn_status check_convs(tester *t) {
    for (size_t n_taps = 0; n_taps <= MOST_TAPS; n_taps++)
        for (size_t n = 0; n <= 67; n++)
            SN_TRY(check_conv(t, n_taps, n, (n + n_taps) % 2, (n + n_taps) % N_KINDS));
    SN_TRY(check_conv(t, 4, 1536, true, PLAIN));
    SN_TRY(check_conv(t, 4, 1000, false, CORNERS));
    say(t, "conv");
    return SN_OK;
}

sn_status sn_selftest_scans(tester *t) {
    SN_TRY(check_convs(t));
    SN_TRY(check_recurs(t));
    SN_TRY(check_matrix_scan(t, "rank1_scan, no decay", false, SN_DECAY_NONE));
    SN_TRY(check_matrix_scan(t, "rank1_scan, head's decay", false, SN_DECAY_HEAD));
    SN_TRY(check_matrix_scan(t, "rank1_scan, keys' decay", false, SN_DECAY_KEY));
    say(t, "rank1_scan");
    SN_TRY(check_matrix_scan(t, "outer_scan, no decay", true, SN_DECAY_NONE));
    SN_TRY(check_matrix_scan(t, "outer_scan, head's decay", true, SN_DECAY_HEAD));
    SN_TRY(check_matrix_scan(t, "outer_scan, keys' decay", true, SN_DECAY_KEY));
    SN_TRY(check_matrix_scan(t, "outer_scan, values' decay", true, SN_DECAY_VALUE));
    say(t, "outer_scan");
    return check_selectives(t);
}
