/*
 * test_recurrence DATA: core/recurrence.h against the golden vectors of tests/data/recurrence, on
 * every back end that runs here, with one thread and with three: equal bits everywhere, and near
 * the float64 values. A result may be four times as far away as a plain float32 loop was, for
 * another order of summing, and half an ulp of the largest value besides, for values stored as
 * float32.
 */
#include "check.h"

#include "formats/json.h"
#include "recurrence.h"

#include <math.h>

/* ---- fixtures -------------------------------------------------------------------------------- */

typedef struct fixture {
    char *text;
    sn_json_document *document;
    float *data;
} fixture;

static void *read_all(const char *folder, const char *name, const char *ending, size_t *bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = sn_alloc(*bytes + 1);
    if (!data || fread(data, 1, *bytes, file) != *bytes) exit(1);
    fclose(file);
    return data;
}

static fixture open_fixture(const char *folder, const char *name) {
    fixture f;
    size_t bytes;
    f.text = read_all(folder, name, "json", &bytes);
    if (sn_json_parse(f.text, bytes, name, true, &f.document)) {
        fprintf(stderr, "%s\n", sn_last_error());
        exit(1);
    }
    f.data = read_all(folder, name, "f32", &bytes);
    return f;
}

static void close_fixture(fixture *f) {
    sn_json_free(f->document);
    sn_free(f->text);
    sn_free(f->data);
}

static const sn_json *first_case(const fixture *f) {
    return sn_json_get(sn_json_root(f->document), "cases")->first;
}

static size_t size_of(const sn_json *one, const char *name) {
    const sn_json *value = sn_json_get(one, name);
    return value ? (size_t)value->number : 0;
}

/* An array of a case; NULL if it has none of that name. `n` (may be NULL) is how long it is. */
static float *array(const fixture *f, const sn_json *one, const char *kind, const char *name,
                    size_t *n) {
    const sn_json *entry = sn_json_get(sn_json_get(one, kind), name);
    if (!entry) return NULL;
    size_t count = 1;
    for (const sn_json *d = sn_json_get(entry, "shape")->first; d; d = d->next)
        count *= (size_t)d->number;
    if (n) *n = count;
    return f->data + (size_t)sn_json_get(entry, "offset")->number;
}

static double error_of(const sn_json *one, const char *name) {
    const sn_json *error = sn_json_get(sn_json_get(one, "fp32_error"), name);
    return error ? error->number : 0.0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Who computes; the first of all is the scalar back end with one thread. */
typedef struct engine {
    const sn_simd *simd;
    sn_pool *pool;
    bool first;
} engine;

static float *room(size_t n) {
    float *x = sn_alloc_array(n, sizeof(float));
    if (!x) exit(1);
    return x;
}

static float *copy_of(const float *x, size_t n) {
    float *copy = room(n);
    memcpy(copy, x, n * sizeof(float));
    return copy;
}

static void check_near(const engine *e, const sn_json *one, const char *what, const float *got,
                       const float *want, size_t n, double fp32_error) {
    double largest = 0.0, error = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double distance = fabs((double)got[i] - (double)want[i]);
        if (!(distance <= error)) error = distance;
        if (fabs((double)want[i]) > largest) largest = fabs((double)want[i]);
    }
    const double allowed = 4.0 * fp32_error + 0x1p-24 * largest;
    CHECK(error <= allowed, "%s %s on %s: off by %.3g, %.3g allowed",
          sn_json_get(one, "name")->text, what, e->simd->name, error, allowed);
}

/* What the first engine got, by the order of asking. */
static struct {
    float *x[1 << 12];
    size_t n[1 << 12], count, at;
} kept;

static void check_bits(const engine *e, const sn_json *one, const char *what, const void *got,
                       size_t bytes) {
    if (e->first) {
        kept.x[kept.count] = sn_alloc(bytes);
        memcpy(kept.x[kept.count], got, bytes);
        kept.n[kept.count++] = bytes;
        return;
    }
    const size_t at = kept.at++;
    CHECK(at < kept.count && kept.n[at] == bytes && memcmp(kept.x[at], got, bytes) == 0,
          "%s %s on %s with %d threads: other bits than scalar", sn_json_get(one, "name")->text,
          what, e->simd->name, (int)sn_pool_threads(e->pool));
}

static void check(const engine *e, const fixture *f, const sn_json *one, const char *name,
                  const float *got) {
    size_t n = 0;
    const float *want = array(f, one, "expected", name, &n);
    check_near(e, one, name, got, want, n, error_of(one, strcmp(name, "send") ? name : "out"));
    check_bits(e, one, name, got, n * sizeof(float));
}

/* ---- first order ----------------------------------------------------------------------------- */

static void check_backward(const engine *e, const fixture *f, const sn_json *one,
                           const sn_recurrence *r) {
    const size_t n = r->B * r->T * r->N;
    const sn_recurrence_gradients g = { .dy = array(f, one, "inputs", "dout", NULL),
                                        .da = room(n), .db = room(n),
                                        .ds0 = room(r->B * r->N) };
    memset(g.ds0, 0xff, r->B * r->N * sizeof(float)); /* what is there must not count */
    sn_recurrence_backward(e->simd, e->pool, r, &g);
    check(e, f, one, "da", g.da);
    check(e, f, one, "db", g.db);
    check(e, f, one, "ds0", g.ds0);
    sn_free(g.da);
    sn_free(g.db);
    sn_free(g.ds0);
}

/* Token by token, B = 1 at a time, in place. */
static void check_steps(const engine *e, const sn_recurrence *r) {
    float *s = copy_of(r->s0, r->B * r->N);
    for (size_t row = 0; row < r->B; row++)
        for (size_t t = 0; t < r->T; t++) {
            const size_t at = (row * r->T + t) * r->N;
            sn_recurrence_step(e->simd, e->pool, r->a + at, r->b + at, s + row * r->N, 1, r->N,
                               r->gated);
            CHECK(memcmp(s + row * r->N, r->y + at, r->N * sizeof(float)) == 0,
                  "step %zu of row %zu on %s is not the scan's", t, row, e->simd->name);
        }
    CHECK(memcmp(s, r->s_end, r->B * r->N * sizeof(float)) == 0, "the last state on %s",
          e->simd->name);
    sn_free(s);
}

static void check_recurrence(const engine *e, const fixture *f, const sn_json *one) {
    sn_recurrence r = { .a = array(f, one, "inputs", "a", NULL),
                        .b = array(f, one, "inputs", "b", NULL), .B = size_of(one, "B"),
                        .T = size_of(one, "T"), .N = size_of(one, "N"),
                        .gated = size_of(one, "gated") != 0 };
    const float *s0 = array(f, one, "inputs", "s0", NULL);
    float *y = room(r.B * r.T * r.N), *s_end = room(r.B * r.N);
    r.s0 = s0, r.y = y, r.s_end = s_end;
    sn_recurrence_forward(e->simd, e->pool, &r);
    check(e, f, one, "out", y);
    check(e, f, one, "send", s_end);
    check_backward(e, f, one, &r);
    check_steps(e, &r);

    float *again = room(r.B * r.T * r.N), *state = copy_of(s0, r.B * r.N);
    r.s0 = r.s_end = state, r.y = again;
    sn_recurrence_forward(e->simd, e->pool, &r);
    CHECK(memcmp(again, y, r.B * r.T * r.N * sizeof(float)) == 0 &&
              memcmp(state, s_end, r.B * r.N * sizeof(float)) == 0,
          "s_end = s0 on %s", e->simd->name);
    sn_free(again), sn_free(state), sn_free(y), sn_free(s_end);
}

/* ---- architectures --------------------------------------------------------------------------- */

/* x[i], of [B][T][N] or, where it is shorter, of [N]. */
typedef struct input {
    const float *x;
    size_t n;
} input;

static input input_of(const fixture *f, const sn_json *one, const char *name) {
    input in = { NULL, 0 };
    in.x = array(f, one, "inputs", name, &in.n);
    return in;
}

static float at(input in, size_t i) {
    return in.x[i % in.n];
}

static float sigmoid(const sn_simd *simd, float x) {
    float y;
    simd->sigmoid(&y, &x, 1);
    return y;
}

/* a and b of element i, by the case's formula; N is the width of the state. */
static void map(const sn_simd *simd, const fixture *f, const sn_json *one, size_t n, float *a,
                float *b) {
    const char *name = sn_json_get(one, "name")->text;
    const size_t N = size_of(one, "N");
    const char *const names[] = { "p", "k", "v", "dt", "A", "bx", "a_log", "A_bar", "B_bar", "x",
                                  "gate", "delta", "u" };
    enum { P, K, V, DT, A, BX, A_LOG, A_BAR, B_BAR, X, GATE, DELTA, UU, COUNT };
    input in[COUNT];
    for (size_t i = 0; i < COUNT; i++) in[i] = input_of(f, one, names[i]);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(name, "rwkv4", 5) == 0) {
            a[i] = at(in[P], i), b[i] = at(in[K], i) * at(in[V], i);
        } else if (strncmp(name, "mamba", 5) == 0) {
            const float x = at(in[DT], i) * at(in[A], i);
            simd->exp(&a[i], &x, 1);
            b[i] = at(in[BX], i);
        } else if (strncmp(name, "h3", 2) == 0) {
            a[i] = sigmoid(simd, -at(in[A_LOG], i)), b[i] = at(in[V], i);
        } else if (strncmp(name, "s4", 2) == 0) {
            a[i] = at(in[A_BAR], i), b[i] = at(in[B_BAR], i) * at(in[X], i);
        } else if (strncmp(name, "linear", 6) == 0) {
            const size_t D = (size_t)sqrt((double)N), token = i / N, j = i % N;
            a[i] = 1.0f, b[i] = in[K].x[token * D + j / D] * in[V].x[token * D + j % D];
        } else {
            const float gate = 1.0f - sigmoid(simd, at(in[GATE], i));
            a[i] = 1.0f - at(in[DELTA], i) * gate, b[i] = at(in[UU], i);
        }
    }
}

/* The seed's figures for its kernels are up to 1.9e-6 for values of about 1. */
#define MAPPED 2e-6

static void check_mapping(const engine *e, const fixture *f, const sn_json *one) {
    sn_recurrence r = { .B = size_of(one, "B"), .T = size_of(one, "T"), .N = size_of(one, "N"),
                        .gated = sn_json_is(sn_json_get(one, "mode"), "gated") };
    const size_t n = r.B * r.T * r.N;
    float *a = room(n), *b = room(n);
    double largest = 1.0, error = 0.0;
    map(e->simd, f, one, n, a, b);
    r.a = a, r.b = b, r.s0 = array(f, one, "inputs", "s0", NULL);
    r.y = room(n), r.s_end = room(r.B * r.N);
    sn_recurrence_forward(e->simd, e->pool, &r);
    const float *want = array(f, one, "expected", "out", NULL);
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        error = fmax(error, fabs((double)r.y[i] - (double)want[i]));
    }
    CHECK(error <= MAPPED * largest, "%s on %s: off by %.3g of %.3g",
          sn_json_get(one, "name")->text, e->simd->name, error, largest);
    check_bits(e, one, "out", r.y, n * sizeof(float));
    sn_free(a), sn_free(b), sn_free(r.y), sn_free(r.s_end);
}

/* ---- rank one -------------------------------------------------------------------------------- */

static const float *token(const fixture *f, const sn_json *one, const char *name, size_t t,
                          size_t each) {
    const float *x = array(f, one, "inputs", name, NULL);
    return x ? x + t * each : NULL;
}

static void check_matrix(const engine *e, const fixture *f, const sn_json *one, bool own_p) {
    sn_rank1_rows x = { .heads = size_of(one, "NH"), .R = size_of(one, "R"),
                        .C = size_of(one, "C") };
    const size_t T = size_of(one, "T"), rows = x.heads * x.R, columns = x.heads * x.C;
    float *S = copy_of(array(f, one, "inputs", "S0", NULL), rows * x.C);
    float *y = room(T * rows), *p = room(rows);
    for (size_t t = 0; t < T; t++) {
        x.S = S, x.p = own_p ? p : NULL, x.y = y + t * rows;
        x.w = token(f, one, "w", t, columns), x.u = token(f, one, "u", t, columns);
        x.k = token(f, one, "k", t, columns), x.b = token(f, one, "b", t, columns);
        x.r = token(f, one, "r", t, columns), x.v = token(f, one, "v", t, rows);
        sn_rank1_rows_step(e->simd, e->pool, &x);
    }
    check(e, f, one, "S", S);
    if (array(f, one, "expected", "y", NULL)) check(e, f, one, "y", y);
    check_bits(e, one, "p", p, rows * sizeof(float));
    sn_free(S), sn_free(y), sn_free(p);
}

static void check_both_matrix(const engine *e, const fixture *f, const sn_json *one) {
    check_matrix(e, f, one, true);
    check_matrix(e, f, one, false);
}

/* What is NULL and what follows from it; the golden cases always give k with b. */
static void check_absent(const engine *e) {
    float S[6] = { 1, 2, 3, 4, 5, 6 }, u[3] = { 1, 0, 1 }, b[3] = { 1, 1, 1 }, k[3] = { 1, 2, 3 };
    float v[2] = { 10, 20 }, p[2] = { NAN, NAN }, y[2] = { 7, 8 };
    const float same[6] = { 1, 2, 3, 4, 5, 6 };
    sn_rank1_rows x = { .S = S, .u = u, .b = b, .v = v, .p = p, .y = y, .heads = 1, .R = 2,
                        .C = 3 };
    sn_rank1_rows_step(e->simd, e->pool, &x);
    CHECK(memcmp(S, same, sizeof S) == 0, "without k neither outer product nor correction");
    CHECK(p[0] == 4 && p[1] == 10, "p is written all the same");
    CHECK(y[0] == 7 && y[1] == 8, "without r no read-out");
    x.u = NULL, x.k = k, p[0] = p[1] = NAN; /* the origin would use what is in p */
    sn_rank1_rows_step(e->simd, e->pool, &x);
    CHECK(S[0] == 11 && S[5] == 66, "without u p is zero: %g %g", (double)S[0], (double)S[5]);
    x.v = NULL, x.u = u;
    sn_rank1_rows_step(e->simd, e->pool, &x);
    CHECK(S[0] == 11 - 44 && S[4] == 45 - 90, "without v the correction stays: %g %g",
          (double)S[0], (double)S[4]);
}

/* ---- quantised ------------------------------------------------------------------------------- */

static void check_i8(const engine *e, const fixture *f, const sn_json *one) {
    const size_t B = size_of(one, "B"), N = size_of(one, "N"), block = size_of(one, "block");
    size_t n_scales = 0;
    const float *x = array(f, one, "inputs", "x", NULL);
    const float *codes = array(f, one, "expected", "q", NULL);
    const float *scales = array(f, one, "expected", "scale", &n_scales);
    int8_t *q = sn_alloc(B * N);
    float *scale = room(n_scales), *back = room(B * N);
    sn_seed_quant_i8(x, q, scale, B, N, block);
    sn_seed_dequant_i8(q, scale, back, B, N, block);
    CHECK(memcmp(scale, scales, n_scales * sizeof(float)) == 0, "%s: scales", e->simd->name);
    for (size_t i = 0; i < B * N; i++) {
        const size_t a_row = n_scales / B, s = i / N * a_row + (block ? i % N / block : 0);
        CHECK((float)q[i] == codes[i], "code %zu: %d", i, q[i]);
        CHECK(back[i] == codes[i] * scales[s], "value %zu: %g", i, (double)back[i]);
    }
    sn_free(q), sn_free(scale), sn_free(back);
}

static void check_i4(const engine *e, const fixture *f, const sn_json *one) {
    const size_t rows = size_of(one, "rows"), N = size_of(one, "N"), n = rows * N;
    const float *bytes = array(f, one, "expected", "bytes", NULL);
    uint8_t *q = sn_alloc(n / 2);
    float *scale = room(n / 64), *back = room(n), *y = room(rows);
    sn_seed_quant_i4(array(f, one, "inputs", "w", NULL), q, scale, rows, N, 64);
    sn_seed_dequant_i4(q, scale, back, rows, N, 64);
    for (size_t i = 0; i < n / 2; i++) CHECK((float)q[i] == bytes[i], "byte %zu: %d", i, q[i]);
    CHECK(memcmp(scale, array(f, one, "expected", "scale", NULL), n / 64 * 4) == 0, "scales");
    CHECK(memcmp(back, array(f, one, "expected", "dequant", NULL), n * 4) == 0, "values");
    CHECK(sn_seed_gemv_i4(e->simd, e->pool, y, array(f, one, "inputs", "x", NULL), q, scale, N,
                          rows, 64) == SN_OK, "%s", sn_last_error());
    check_near(e, one, "gemv", y, array(f, one, "expected", "gemv_int8_activations", NULL), rows,
               sn_json_get(one, "package_C_gemv_error")->number);
    check_bits(e, one, "gemv", y, rows * sizeof(float));
    sn_free(q), sn_free(scale), sn_free(back), sn_free(y);
}

static void check_quant(const engine *e, const fixture *f, const sn_json *one) {
    if (sn_json_is(sn_json_get(one, "kind"), "i8")) check_i8(e, f, one);
    else check_i4(e, f, one);
}

/* Widths and groups beyond the origin's limits, against the formula in float64. */
static void check_long_gemv(const engine *e, const sn_json *one, size_t in, size_t out,
                            size_t block) {
    check_random random = { in + block };
    const size_t groups = in / block, half = block / 2;
    float *x = room(in), *scale = room(out * groups), *y = room(out), *x_scale = room(groups);
    uint8_t *q = sn_alloc(out * in / 2);
    int8_t *x_q = sn_alloc(in);
    for (size_t i = 0; i < in; i++) x[i] = check_float(&random);
    for (size_t i = 0; i < out * groups; i++) scale[i] = check_float(&random);
    for (size_t i = 0; i < out * in / 2; i++) q[i] = (uint8_t)check_next(&random);
    CHECK(sn_seed_gemv_i4(e->simd, e->pool, y, x, q, scale, in, out, block) == SN_OK, "%s",
          sn_last_error());
    sn_seed_quant_i8(x, x_q, x_scale, 1, in, block);
    for (size_t o = 0; o < out; o++) {
        double sum = 0.0, size = 0.0;
        for (size_t g = 0; g < groups; g++) {
            const uint8_t *codes = q + (o * groups + g) * half;
            long total = 0;
            for (size_t k = 0; k < half; k++)
                total += ((codes[k] & 15) - 8) * x_q[g * block + k] +
                         ((codes[k] >> 4) - 8) * x_q[g * block + half + k];
            const double term = (double)scale[o * groups + g] * (double)x_scale[g] * (double)total;
            sum += term, size += fabs(term);
        }
        /* three roundings a term, and one for each term added */
        CHECK(fabs((double)y[o] - sum) <= ((double)groups + 3.0) * 0x1p-24 * size,
              "gemv %zu x %zu by %zu, row %zu on %s: %g, %g expected", out, in, block, o,
              e->simd->name, (double)y[o], sum);
    }
    check_bits(e, one, "long gemv", y, out * sizeof(float));
    sn_free(x), sn_free(scale), sn_free(y), sn_free(x_scale), sn_free(q), sn_free(x_q);
}

/* What the formulas do not say: values that are no numbers, and scales that vanish. */
static void check_odd_values(void) {
    const float x[8] = { NAN, 2.0f, -INFINITY, 1.0f, 0.0f, -0.0f, 1e-45f, -1e-45f };
    int8_t q[8];
    uint8_t q4[4];
    float scale[8];
    sn_seed_quant_i8(x, q, scale, 1, 8, 2);
    CHECK(q[0] == 0 && q[1] == 127 && scale[0] == 2.0f / 127.0f, "a NaN is 0: %d %d", q[0], q[1]);
    CHECK(q[2] == 0 && q[3] == 0, "nothing counts beside an infinity: %d %d", q[2], q[3]);
    CHECK(q[4] == 0 && q[5] == 0 && scale[2] == 1.0f, "zeros have scale 1");
    CHECK(q[6] == 0 && q[7] == 0 && scale[3] == 0.0f, "a scale that is too small: %d", q[6]);
    sn_seed_quant_i4(x, q4, scale, 1, 8, 2);
    CHECK(q4[0] == 0xf8 && q4[1] == 0x88 && q4[2] == 0x88 && q4[3] == 0x88, "%x %x %x %x", q4[0],
          q4[1], q4[2], q4[3]);
    const float ties[4] = { 127.0f, 0.5f, 1.5f, -2.5f }, fours[4] = { 7.0f, 0.5f, 1.5f, -2.5f };
    sn_seed_quant_i8(ties, q, scale, 1, 4, 0);
    CHECK(q[0] == 127 && q[1] == 0 && q[2] == 2 && q[3] == -2, "%d %d %d", q[1], q[2], q[3]);
    sn_seed_quant_i4(fours, q4, scale, 1, 4, 0);
    CHECK(q4[0] == 0xaf && q4[1] == 0x68, "%x %x", q4[0], q4[1]);
    const uint8_t lowest[1] = { 0x00 }; /* never written, but read */
    float back[2];
    sn_seed_dequant_i4(lowest, (const float[]){ 0.5f }, back, 1, 2, 2);
    CHECK(back[0] == -4.0f && back[1] == -4.0f, "%g", (double)back[0]);
}

/* ---- more than a cache holds ----------------------------------------------------------------- */

/* Large enough to be written past the caches and to be shared by threads. */
static void check_large(const engine *e, const sn_json *one) {
    check_random random = { 3 };
    sn_recurrence r = { .B = 1, .T = 900, .N = 3216, .gated = true };
    const size_t n = r.T * r.N;
    float *a = room(n), *b = room(n), *s0 = room(r.N);
    for (size_t i = 0; i < n; i++)
        a[i] = 0.5f + 0.5f * check_float(&random), b[i] = check_float(&random);
    r.a = a, r.b = b, r.s0 = s0, r.y = room(n), r.s_end = room(r.N);
    sn_recurrence_forward(e->simd, e->pool, &r);
    check_bits(e, one, "large out", r.y, n * sizeof(float));
    const sn_recurrence_gradients g = { .dy = b, .da = room(n), .db = room(n), .ds0 = room(r.N) };
    sn_recurrence_backward(e->simd, e->pool, &r, &g);
    check_bits(e, one, "large da", g.da, n * sizeof(float));
    check_bits(e, one, "large db", g.db, n * sizeof(float));
    sn_free(a), sn_free(b), sn_free(s0), sn_free(r.y), sn_free(r.s_end);
    sn_free(g.da), sn_free(g.db), sn_free(g.ds0);
}

/* ---------------------------------------------------------------------------------------------- */

typedef struct suite {
    const char *name;
    void (*check)(const engine *e, const fixture *f, const sn_json *one);
    fixture fixture;
} suite;

static void check_engine(const engine *e, suite *suites, size_t n) {
    kept.at = 0;
    for (size_t i = 0; i < n; i++) {
        const fixture *f = &suites[i].fixture;
        for (const sn_json *one = first_case(f); one; one = one->next) suites[i].check(e, f, one);
    }
    const sn_json *any = first_case(&suites[0].fixture);
    check_absent(e);
    check_long_gemv(e, any, 16384, 6, 64);
    check_long_gemv(e, any, 300, 70, 100);
    check_long_gemv(e, any, 64, 3, 2);
    check_long_gemv(e, any, 8192, 5, 8192);
    check_large(e, any);
}

int main(int argc, char **argv) {
    suite suites[] = { { .name = "recur_big", .check = check_recurrence },
                       { .name = "recur_odd", .check = check_recurrence },
                       { .name = "mappings", .check = check_mapping },
                       { .name = "mat_scan", .check = check_both_matrix },
                       { .name = "quant", .check = check_quant } };
    const size_t n = sizeof suites / sizeof suites[0];
    if (argc != 2) return fprintf(stderr, "usage: test_recurrence DATA\n"), 2;
    for (size_t i = 0; i < n; i++) suites[i].fixture = open_fixture(argv[1], suites[i].name);
    check_odd_values();
    engine e = { .first = true };
    for (size_t i = 0; (e.simd = sn_simd_at(i)); i++)
        for (int32_t threads = 1; threads <= 3 && sn_simd_usable(e.simd); threads += 2) {
            if (sn_pool_new(threads, &e.pool)) return fprintf(stderr, "%s\n", sn_last_error()), 1;
            check_engine(&e, suites, n);
            CHECK(e.first || kept.at == kept.count, "%zu results of %zu", kept.at, kept.count);
            e.first = false;
            sn_pool_free(e.pool);
        }
    for (size_t i = 0; i < n; i++) close_fixture(&suites[i].fixture);
    while (kept.count) sn_free(kept.x[--kept.count]);
    return check_report("recurrence");
}
