/*
 * selftest_recurrence.c: the kernels behind recurrence.h alone: gradients of the first-order
 * recurrence, the row-major rank-1 step and products with the seed's 4-bit codes.
 */
#include "selftest_grid.h"

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct gradients {
    grid da, db, d;
} gradients;

static gradients gradients_at(float *memory, size_t n_tokens, size_t n, size_t stride) {
    gradients g = { .da = { memory, n_tokens, n, stride } };
    g.db = (grid){ memory + sn_round_up(grid_size(&g.da), 16), n_tokens, n, stride };
    g.d = (grid){ g.db.at + grid_size(&g.db), 1, n, n };
    return g;
}

static sn_recur_reverse begin_reverse(const gradients *g, const sn_recur_reverse *inputs,
                                      const float *d) {
    sn_recur_reverse scan = *inputs;
    paint(&g->da);
    paint(&g->db);
    paint(&g->d);
    copy_grid(&g->d, d, g->d.width);
    scan.da = g->da.at, scan.db = g->db.at, scan.d = g->d.at;
    return scan;
}

static sn_status compare_gradients(tester *t, const gradients *got, const gradients *want) {
    t->cases++;
    SN_TRY(compare_grid(t, "recur_reverse da", &got->da, want->da.at));
    SN_TRY(compare_grid(t, "recur_reverse db", &got->db, want->db.at));
    return compare_grid(t, "recur_reverse d", &got->d, want->d.at);
}

static void reverse_by_token(const sn_simd *simd, const sn_recur_reverse *all) {
    for (size_t i = all->n_tokens; i-- > 0;) {
        sn_recur_reverse one = *all;
        one.n_tokens = 1, one.da += i * all->da_stride, one.db += i * all->db_stride;
        one.a = from_token(all->a, i), one.b = from_token(all->b, i);
        one.dy = from_token(all->dy, i), one.y = from_token(all->y, i);
        if (i) one.s0 = all->y.at + (i - 1) * all->y.stride;
        simd->recur_reverse(&one);
    }
}

/* One output over one input, in turn. */
static void overlay(const gradients *g, sn_recur_reverse *scan, size_t turn) {
    switch (turn % 5) {
    case 0: scan->a = into_output(&g->da, scan->a); break;
    case 1: scan->y = into_output(&g->da, scan->y); break;
    case 2: scan->dy = into_output(&g->db, scan->dy); break;
    case 3: scan->y = into_output(&g->db, scan->y); break;
    default: scan->b = into_output(&g->db, scan->b);
    }
}

static sn_status check_reverse(tester *t, size_t n, size_t n_tokens, bool gated, kind what) {
    const size_t stride = n + 5, out = n % 4 ? n + n % 3 : sn_round_up(n, 16);
    const gradients want = gradients_at(t->want, n_tokens, n, out);
    const gradients got = gradients_at(t->got, n_tokens, n, out);
    for (int i = 0; i < 4; i++) fill_kind(t, t->in[i], n_tokens * stride + 1, what);
    for (int i = 4; i < 6; i++) fill_kind(t, t->in[i], n, what);
    const sn_recur_reverse inputs = {
        .da_stride = out, .db_stride = out, .s0 = t->in[4], .a = { t->in[0] + 1, stride },
        .b = { t->in[1], stride }, .y = { t->in[2], stride }, .dy = { t->in[3] + 1, stride },
        .n = n, .n_tokens = n_tokens, .gated = gated, .streaming = n % 4 == 0,
    };
    sn_recur_reverse scan = begin_reverse(&want, &inputs, t->in[5]);
    t->scalar->recur_reverse(&scan);
    scan = begin_reverse(&got, &inputs, t->in[5]);
    t->other->recur_reverse(&scan);
    SN_TRY(compare_gradients(t, &got, &want));
    scan = begin_reverse(&got, &inputs, t->in[5]);
    reverse_by_token(t->other, &scan);
    SN_TRY(compare_gradients(t, &got, &want));
    scan = begin_reverse(&got, &inputs, t->in[5]);
    overlay(&got, &scan, n + n_tokens);
    t->other->recur_reverse(&scan);
    return compare_gradients(t, &got, &want);
}

static sn_status check_reverses(tester *t) {
    for (size_t n = 0; n <= 67; n++)
        for (kind what = 0; what < N_KINDS; what++)
            for (int gated = 0; gated < 2; gated++)
                SN_TRY(check_reverse(t, n, (n + (size_t)what) % 5 + 1, gated, what));
    SN_TRY(check_reverse(t, 1000, 4, true, PLAIN));
    SN_TRY(check_reverse(t, 768, 4, false, PLAIN));
    SN_TRY(check_reverse(t, 4096 + 40, 2, true, PLAIN)); /* more channels than one pass takes */
    say(t, "recur_reverse");
    return SN_OK;
}

/* ---- rank one, row-major --------------------------------------------------------------------- */

enum { HAS_W = 1, HAS_U = 2, HAS_K = 4, HAS_B = 8, HAS_R = 16, HAS_V = 32, HAS_Y = 64, HAS_P = 128,
       HAS_ALL = 255 };

/* The state, then y and p in a row of their own; canaries behind each. */
typedef struct rows_place {
    grid S, y, p;
} rows_place;

static rows_place rows_at(float *memory, size_t n_rows, size_t n) {
    rows_place place = { .S = { memory, n_rows, n, n } };
    place.y = (grid){ memory + grid_size(&place.S), 1, n_rows, n_rows };
    place.p = (grid){ place.y.at + grid_size(&place.y), 1, n_rows, n_rows };
    return place;
}

static sn_rank1_rows_scan begin_rows(const tester *t, const rows_place *place, unsigned has) {
    const float *const *in = (const float *const *)t->in;
    paint(&place->S);
    paint(&place->y);
    paint(&place->p);
    copy_grid(&place->S, in[0], place->S.width);
    return (sn_rank1_rows_scan){
        .S = place->S.at, .w = has & HAS_W ? in[1] + 1 : NULL, .u = has & HAS_U ? in[2] : NULL,
        .k = has & HAS_K ? in[3] : NULL, .b = has & HAS_B ? in[4] + 1 : NULL,
        .r = has & HAS_R ? in[5] : NULL, .v = has & HAS_V ? in[6] : NULL,
        .y = has & HAS_Y ? place->y.at : NULL, .p = has & HAS_P ? place->p.at : NULL,
        .n_rows = place->S.rows, .n = place->S.width,
    };
}

static sn_status compare_rows(tester *t, const rows_place *got, const rows_place *want) {
    t->cases++;
    SN_TRY(compare_grid(t, "rank1_rows S", &got->S, want->S.at));
    SN_TRY(compare_grid(t, "rank1_rows y", &got->y, want->y.at));
    return compare_grid(t, "rank1_rows p", &got->p, want->p.at);
}

static void row_by_row(const sn_simd *simd, const sn_rank1_rows_scan *all) {
    for (size_t i = 0; i < all->n_rows; i++) {
        sn_rank1_rows_scan one = *all;
        one.n_rows = 1, one.S += i * all->n;
        if (one.v) one.v += i;
        if (one.y) one.y += i;
        if (one.p) one.p += i;
        simd->rank1_rows(&one);
    }
}

static sn_status check_rows(tester *t, size_t n_rows, size_t n, unsigned has, kind what) {
    const rows_place want = rows_at(t->want, n_rows, n), got = rows_at(t->got, n_rows, n);
    fill_kind(t, t->in[0], n_rows * n, what);
    for (int i = 1; i < 7; i++) fill_kind(t, t->in[i], (n > n_rows ? n : n_rows) + 1, what);
    sn_rank1_rows_scan scan = begin_rows(t, &want, has);
    t->scalar->rank1_rows(&scan);
    scan = begin_rows(t, &got, has);
    t->other->rank1_rows(&scan);
    SN_TRY(compare_rows(t, &got, &want));
    scan = begin_rows(t, &got, has);
    row_by_row(t->other, &scan);
    return compare_rows(t, &got, &want);
}

static sn_status check_rank1_rows(tester *t) {
    static const size_t widths[] = { 7, 16, 33 };
    for (unsigned has = 0; has <= HAS_ALL; has++)
        for (size_t i = 0; i < 3; i++)
            SN_TRY(check_rows(t, 5, widths[i], has, (has + i) % N_KINDS));
    for (size_t n = 0; n <= 130; n++) SN_TRY(check_rows(t, n % 11, n, HAS_ALL, n % N_KINDS));
    SN_TRY(check_rows(t, 64, 64, HAS_ALL, PLAIN));
    SN_TRY(check_rows(t, 128, 128, HAS_ALL, TINY));
    say(t, "rank1_rows");
    return SN_OK;
}

/* ---- 4-bit codes ----------------------------------------------------------------------------- */

/* Activations in chunks of 32 and 32, those behind the group's end zero. */
static int64_t random_group(tester *t, int8_t *x, size_t half, bool extreme) {
    int64_t sum = 0;
    memset(x, 0, sn_round_up(half, 32) * 2);
    for (size_t k = 0; k < 2 * half; k++) {
        const size_t i = k / 2;
        const int random = (int)(next(t) % 255) - 127;
        int8_t *at = x + i / 32 * 64 + i % 32 + k % 2 * 32;
        *at = (int8_t)(extreme ? 127 : random);
        sum += *at;
    }
    return 8 * sum;
}

static sn_status check_gemv(tester *t, size_t n_rows, size_t n_groups, size_t half, bool extreme) {
    uint8_t *codes = (uint8_t *)t->in[0];
    int8_t *x = (int8_t *)t->in[1];
    int64_t *offset = (int64_t *)(void *)t->in[2];
    for (size_t i = 0; i < n_rows * n_groups * half; i++)
        codes[i] = extreme ? 0xff : (uint8_t)next(t);
    for (size_t g = 0; g < n_groups; g++)
        offset[g] = random_group(t, x + g * sn_round_up(half, 32) * 2, half, extreme);
    fill(t, t->in[3], n_rows * n_groups, false);
    fill(t, t->in[4], n_groups, false);
    guard(t, n_rows);
    sn_gemv_i4 product = { .y = t->want, .codes = codes, .scale = t->in[3], .x = x,
                           .x_scale = t->in[4], .x_offset = offset, .n_rows = n_rows,
                           .n_groups = n_groups, .half = half };
    t->scalar->gemv_i4(&product);
    product.y = t->got;
    t->other->gemv_i4(&product);
    SN_TRY(compare(t, "gemv_i4", n_rows));
    guard(t, n_rows);
    product.n_rows = 1;
    for (size_t o = 0; o < n_rows; o++) {
        product.codes = codes + o * n_groups * half, product.scale = t->in[3] + o * n_groups;
        product.y = t->want + o;
        t->scalar->gemv_i4(&product);
        product.y = t->got + o;
        t->other->gemv_i4(&product);
    }
    return compare(t, "gemv_i4", n_rows);
}

static sn_status check_gemvs(tester *t) {
    for (size_t half = 1; half <= 70; half++)
        SN_TRY(check_gemv(t, half % 7, half % 4, half, half % 5 == 0));
    SN_TRY(check_gemv(t, 40, 12, 32, false));
    SN_TRY(check_gemv(t, 5, 1, 2048, true));
    say(t, "gemv_i4");
    return SN_OK;
}

sn_status sn_selftest_recurrence(tester *t) {
    SN_TRY(check_reverses(t));
    SN_TRY(check_rank1_rows(t));
    return check_gemvs(t);
}
