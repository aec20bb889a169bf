/*
 * selftest_vectors.c: the element-wise kernels and the reductions: sizes 0..67 and real ones,
 * unaligned, with corner cases, into an array of their own and over each of their inputs.
 */
#include "selftest.h"

static const size_t long_sizes[] = { 128, 255, 256, 768, 1000, 2048, 2560, MOST };
#define N_SIZES (68 + sizeof long_sizes / sizeof long_sizes[0])

static size_t size_at(size_t i) {
    return i < 68 ? i : long_sizes[i - 68];
}

/* ---- functions of one vector --------------------------------------------------------------- */

typedef struct map {
    const char *name;
    size_t at; /* of the kernel's pointer in sn_simd */
} map;

#define MAP(KERNEL) { #KERNEL, offsetof(sn_simd, KERNEL) }
static const map maps[] = {
    MAP(exp), MAP(tanh), MAP(sigmoid), MAP(log1p), MAP(softplus), MAP(log_sigmoid), MAP(silu),
    MAP(elu_plus_one), MAP(relu), MAP(relu_squared), MAP(one_minus), MAP(decay_rwkv7)
};

static sn_map kernel_of(const sn_simd *table, const map *m) {
    sn_map kernel;
    memcpy(&kernel, (const char *)table + m->at, sizeof kernel);
    return kernel;
}

static sn_status check_map(tester *t, const map *m) {
    const sn_map scalar = kernel_of(t->scalar, m), other = kernel_of(t->other, m);
    for (size_t i = 0; i < N_SIZES; i++) {
        const size_t n = size_at(i);
        const float *x = t->in[0] + i % 3; /* also unaligned */
        fill(t, t->in[0], n + 3, true);
        guard(t, n);
        scalar(t->want, x, n);
        other(t->got, x, n);
        SN_TRY(compare(t, m->name, n));
        memcpy(t->got, x, n * sizeof(float));
        other(t->got, t->got, n);
        SN_TRY(compare(t, m->name, n));
    }
    say(t, m->name);
    return SN_OK;
}

/* ---- functions of several ------------------------------------------------------------------ */

typedef enum operation {
    ADD, SUB, MUL, MUL_SILU, MLA, LERP, AXPY, SCALE, CLAMP, WEDGE, LAYER_NORM, RMS_NORM,
    L2_NORMALIZE, L2_NORMALIZE_EPS, SUM_NORMALIZE, DOT3, ROOT, N_OPERATIONS
} operation;

static const struct {
    const char *name;
    int n_inputs;
} operations[N_OPERATIONS] = {
    { "add", 2 }, { "sub", 2 }, { "mul", 2 }, { "mul_silu", 2 }, { "mla", 3 }, { "lerp", 3 },
    { "axpy", 1 }, { "scale", 1 }, { "clamp", 1 }, { "wedge", 1 }, { "layer_norm", 3 },
    { "rms_norm", 2 }, { "l2_normalize", 1 }, { "l2_normalize_eps", 1 }, { "sum_normalize", 1 },
    { "dot3", 0 }, { "root", 0 } /* they give one number */
};

typedef struct inputs {
    const float *v[3];
    float number; /* a factor; squared, an epsilon */
} inputs;

static void apply(const sn_simd *k, operation what, float *y, const inputs *in, size_t n) {
    const float *a = in->v[0], *b = in->v[1], *c = in->v[2], s = in->number;
    switch (what) {
    case ADD: k->add(y, a, b, n); break;
    case SUB: k->sub(y, a, b, n); break;
    case MUL: k->mul(y, a, b, n); break;
    case MUL_SILU: k->mul_silu(y, a, b, n); break;
    case MLA: k->mla(y, a, b, c, n); break;
    case LERP: k->lerp(y, a, b, c, n); break;
    case AXPY: k->axpy(y, s, a, n); break;
    case SCALE: k->scale(y, s, a, n); break;
    case CLAMP: k->clamp(y, a, s - 1.0f, s + 1.0f, n); break;
    case WEDGE: k->wedge(y, s, a, n); break;
    case LAYER_NORM: k->layer_norm(y, a, b, c, n, s * s); break;
    case RMS_NORM: k->rms_norm(y, a, b, n, s * s); break;
    case L2_NORMALIZE: k->l2_normalize(y, a, n, s); break;
    case L2_NORMALIZE_EPS: k->l2_normalize_eps(y, a, n, s * s); break;
    case SUM_NORMALIZE: k->sum_normalize(y, a, n); break;
    case DOT3: y[0] = k->dot3(a, b, c, n); break;
    case ROOT: y[0] = k->root(s); break;
    default: break;
    }
}

/* What was in y before, which only axpy reads. */
static void begin(float *y, operation what, const inputs *in, size_t n) {
    if (what == AXPY) memcpy(y, in->v[2], n * sizeof(float));
}

/* Over the input `place`, which then is in t->got. axpy's y is an input of its own. */
static sn_status check_in_place(tester *t, operation what, const inputs *in, int place, size_t n) {
    inputs moved = *in;
    if (what == AXPY) {
        memcpy(t->want, in->v[0], n * sizeof(float));
        apply(t->scalar, what, t->want, in, n);
    }
    memcpy(t->got, in->v[place], n * sizeof(float));
    moved.v[place] = t->got;
    apply(t->other, what, t->got, &moved, n);
    return compare(t, operations[what].name, n);
}

static sn_status check_operation(tester *t, operation what, const inputs *in, size_t n) {
    const size_t written = what == DOT3 || what == ROOT ? 1 : n;
    guard(t, written);
    begin(t->want, what, in, n);
    begin(t->got, what, in, n);
    apply(t->scalar, what, t->want, in, n);
    apply(t->other, what, t->got, in, n);
    SN_TRY(compare(t, operations[what].name, written));
    for (int place = 0; place < operations[what].n_inputs; place++)
        SN_TRY(check_in_place(t, what, in, place, n));
    return SN_OK;
}

static sn_status check_operations(tester *t, operation what) {
    for (size_t i = 0; i < 2 * N_SIZES; i++) {
        const bool corners = i % 2;
        const size_t n = size_at(i / 2);
        for (int v = 0; v < 3; v++) fill(t, t->in[v], n + 3, corners);
        const inputs in = {
            .v = { t->in[0] + 1, t->in[1] + 2, t->in[2] + 3 },
            .number = corners ? value(t) : number(t),
        };
        SN_TRY(check_operation(t, what, &in, n));
    }
    return SN_OK;
}

sn_status sn_selftest_vectors(tester *t) {
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) SN_TRY(check_map(t, &maps[i]));
    for (operation what = 0; what < N_OPERATIONS; what++) SN_TRY(check_operations(t, what));
    say(t, "vectors");
    return SN_OK;
}
