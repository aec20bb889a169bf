/*
 * selftest.c: every kernel of every back end this machine can run against the scalar one, bit
 * for bit: sizes 1..67 and real ones, unaligned, with zeros, subnormals, infinities and extreme
 * codes; and nothing written past the end of an output.
 */
#include "fpenv.h"
#include "ops.h"
#include "worker.h"

#include <stdio.h>
#include <string.h>

#define MOST 4096  /* elements of the longest vector */
#define GUARD 32   /* elements after each output that must survive */
#define GUARD_BYTE 0xa5

typedef struct tester {
    const sn_simd *scalar, *other;
    uint64_t random;
    float *in[6], *want, *got;
    sn_log_fn line;
    void *user;
    long cases;
} tester;

static uint64_t next(tester *t) { /* splitmix64 */
    uint64_t z = t->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static float number(tester *t) {
    const int32_t mantissa = (int32_t)(next(t) >> 40) - (1 << 23);
    return (float)mantissa / (float)(1 << 21);
}

/* One value in eight is a corner case. */
static float value(tester *t) {
    static const uint32_t corners[] = {
        0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, /* zeros, subnormals */
        0x7f800000, 0xff800000, 0x7f7fffff, 0xc2d20000, 0x42b20000, /* infinities, exp's ends */
        0x3f000000, 0xbf800000, 0x7fc00000, 0x3f800001, 0x4b400000
    };
    const uint64_t r = next(t);
    if (r % 8) return number(t);
    return from_bits(corners[(r >> 8) % (sizeof corners / sizeof corners[0])]);
}

static void fill(tester *t, float *x, size_t n, bool corners) {
    for (size_t i = 0; i < n; i++) x[i] = corners ? value(t) : number(t);
}

/* A NaN equals any NaN: processors make them with different signs. */
static bool same_float(float a, float b) {
    uint32_t x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    return x == y || (a != a && b != b);
}

static sn_status differ(const tester *t, const char *kernel, size_t n, size_t at) {
    return sn_fail(SN_E_NUMERIC, "selftest: %s: %s of size %zu differs from scalar at %zu",
                   t->other->name, kernel, n, at);
}

static void guard(tester *t, size_t n) {
    memset(t->want, 0, n * sizeof(float));
    memset(t->got, 0, n * sizeof(float));
    memset(t->want + n, GUARD_BYTE, GUARD * sizeof(float));
    memset(t->got + n, GUARD_BYTE, GUARD * sizeof(float));
}

static sn_status compare(tester *t, const char *kernel, size_t n) {
    t->cases++;
    for (size_t i = 0; i < n; i++)
        if (!same_float(t->want[i], t->got[i])) return differ(t, kernel, n, i);
    for (size_t i = 0; i < GUARD * sizeof(float); i++)
        if (((uint8_t *)(t->got + n))[i] != GUARD_BYTE) return differ(t, kernel, n, n + i / 4);
    return SN_OK;
}

/* The callback may change the floating-point environment; the next test must not see it. */
static void tell(const tester *t, const char *text) {
    if (!t->line) return;
    const sn_fpenv ours = sn_fpenv_enter();
    t->line(t->user, text);
    sn_fpenv_leave(ours);
}

static void say(tester *t, const char *kernel) {
    char text[160];
    snprintf(text, sizeof text, "%-12s %-16s %6ld cases equal scalar", t->other->name, kernel,
             t->cases);
    tell(t, text);
    t->cases = 0;
}

static const size_t long_sizes[] = { 128, 255, 256, 768, 1000, 2048, 2560, MOST };
#define N_SIZES (68 + sizeof long_sizes / sizeof long_sizes[0])

/* 0..67, then sizes that models have. */
static size_t size_at(size_t i) {
    return i < 68 ? i : long_sizes[i - 68];
}

/* ---- element-wise kernels and reductions --------------------------------------------------- */

static sn_status check_map(tester *t, const char *name, sn_map scalar, sn_map other) {
    for (size_t i = 0; i < N_SIZES; i++) {
        const size_t n = size_at(i);
        const float *x = t->in[0] + i % 3; /* also unaligned */
        fill(t, t->in[0], n + 3, true);
        guard(t, n);
        scalar(t->want, x, n);
        other(t->got, x, n);
        SN_TRY(compare(t, name, n));
    }
    say(t, name);
    return SN_OK;
}

static sn_status check_maps(tester *t) {
    const sn_simd *s = t->scalar, *o = t->other;
    SN_TRY(check_map(t, "exp", s->exp, o->exp));
    SN_TRY(check_map(t, "tanh", s->tanh, o->tanh));
    SN_TRY(check_map(t, "sigmoid", s->sigmoid, o->sigmoid));
    SN_TRY(check_map(t, "log1p", s->log1p, o->log1p));
    SN_TRY(check_map(t, "softplus", s->softplus, o->softplus));
    SN_TRY(check_map(t, "relu_squared", s->relu_squared, o->relu_squared));
    return check_map(t, "decay_rwkv7", s->decay_rwkv7, o->decay_rwkv7);
}

/* The kernels with several inputs, one size at a time. */
static sn_status check_vectors(tester *t, size_t n, bool corners) {
    const sn_simd *s = t->scalar, *o = t->other;
    const float *a = t->in[0] + 1, *b = t->in[1] + 2, *c = t->in[2] + 3;
    for (int i = 0; i < 3; i++) fill(t, t->in[i], n + 3, corners);
#define BOTH(NAME, CALL)                                                                      \
    do {                                                                                      \
        guard(t, n);                                                                          \
        { const sn_simd *k = s; float *y = t->want; CALL; }                                   \
        { const sn_simd *k = o; float *y = t->got; CALL; }                                    \
        SN_TRY(compare(t, NAME, n));                                                          \
    } while (0)
    BOTH("add", k->add(y, a, b, n));
    BOTH("mul", k->mul(y, a, b, n));
    BOTH("lerp", k->lerp(y, a, b, c, n));
    BOTH("axpy", k->axpy(y, a[0], b, n));
    if (n == 0) return SN_OK;
    BOTH("layer_norm", k->layer_norm(y, a, b, c, n, 1e-5f));
    BOTH("l2_normalize", k->l2_normalize(y, a, n, 1e-12f));
    BOTH("dot3", y[0] = k->dot3(a, b, c, n));
#undef BOTH
    return SN_OK;
}

static sn_status check_all_vectors(tester *t) {
    for (size_t i = 0; i < N_SIZES; i++) {
        SN_TRY(check_vectors(t, size_at(i), false));
        SN_TRY(check_vectors(t, size_at(i), true));
    }
    say(t, "vectors");
    return SN_OK;
}

/* ---- recurrence ------------------------------------------------------------------------------ */

static sn_status check_scan(tester *t, size_t keys, size_t values, size_t tokens) {
    const size_t width = keys > values ? keys : values, stride = width + 3;
    float *S[2] = { t->want + tokens * stride + GUARD, t->got + tokens * stride + GUARD };
    for (int i = 0; i < 6; i++) fill(t, t->in[i], tokens * stride, false);
    guard(t, tokens * stride);
    fill(t, S[0], keys * values, false);
    memcpy(S[1], S[0], keys * values * sizeof(float));
    memset(S[1] + keys * values, GUARD_BYTE, GUARD * sizeof(float));
    for (int i = 0; i < 2; i++)
        (i ? t->other : t->scalar)->rank1_scan(i ? t->got : t->want, S[i], keys, values, t->in[0],
                                               t->in[1], t->in[2], t->in[3], t->in[4], t->in[5],
                                               stride, tokens);
    SN_TRY(compare(t, "rank1_scan", tokens * stride));
    for (size_t i = 0; i < keys * values; i++)
        if (!same_float(S[0][i], S[1][i])) return differ(t, "rank1_scan state", keys, i);
    for (size_t i = 0; i < GUARD * sizeof(float); i++)
        if (((uint8_t *)(S[1] + keys * values))[i] != GUARD_BYTE)
            return differ(t, "rank1_scan state", keys, keys * values + i / 4);
    return SN_OK;
}

static sn_status check_scans(tester *t) {
    for (size_t n = 1; n <= 67; n++) SN_TRY(check_scan(t, n, n, n % 4 + 1));
    SN_TRY(check_scan(t, 7, 33, 5));
    SN_TRY(check_scan(t, 20, 3, 5));
    say(t, "rank1_scan");
    return SN_OK;
}

/* ---- matrix products ------------------------------------------------------------------------- */

/* A random block of a type; `extreme` >= 0 sets every byte to it that the block can bear. */
static void random_block(tester *t, const sn_type *type, uint8_t *block, int extreme) {
    do {
        for (uint32_t i = 0; i < type->block_bytes; i++) block[i] = (uint8_t)next(t);
    } while (!type->finite(block, type->block));
    for (uint32_t i = 0; extreme >= 0 && i < type->block_bytes; i++) {
        const uint8_t before = block[i];
        block[i] = (uint8_t)extreme;
        if (!type->finite(block, type->block)) block[i] = before;
    }
}

/* Codes in -127..127, their sums, and scales. */
static sn_q8_rows random_rows(tester *t, int8_t *q, float *scale, int32_t *sum, size_t tokens,
                              size_t stride, int extreme) {
    for (size_t i = 0; i < tokens * stride; i++) {
        const int random = (int)(next(t) % 255) - 127;
        q[i] = (int8_t)(extreme < 0 ? random : random % 2 ? 127 : -127);
    }
    for (size_t i = 0; i < tokens * stride / 32; i++) scale[i] = number(t);
    for (size_t i = 0; i < tokens * stride / 16; i++) {
        sum[i] = 0;
        for (int j = 0; j < 16; j++) sum[i] += q[16 * i + (size_t)j];
    }
    return (sn_q8_rows){ q, scale, sum, stride };
}

#define MOST_PANELS 3
#define MOST_TOKENS 19
#define MOST_K 1024

typedef struct product {
    const sn_type *type;
    size_t k, panels, tokens;
    int extreme;
} product;

static sn_status check_product(tester *t, product p, uint8_t *memory) {
    const size_t panel_bytes = sn_panel_bytes(p.type, p.k), stride = 16 * p.panels + 5;
    const sn_layout layout = sn_layout_of(p.type);
    uint8_t *rows = memory, *panels = memory + (1 << 17);
    int8_t *q = (int8_t *)memory;
    const size_t row_bytes = (size_t)sn_type_bytes(p.type, p.k);
    for (size_t panel = 0; panel < p.panels; panel++) {
        for (size_t i = 0; i < 16 * row_bytes; i += p.type->block_bytes)
            random_block(t, p.type, rows + i, p.extreme);
        if (!sn_panel_pack(p.type, rows, 16, p.k, panels + panel * panel_bytes))
            return sn_fail(SN_E_NUMERIC, "selftest: a block of %s was refused", p.type->name);
    }
    char name[32];
    snprintf(name, sizeof name, "matmul_f32 %s", p.type->name);
    fill(t, t->in[0], p.tokens * p.k, false);
    guard(t, p.tokens * stride);
    t->scalar->matmul_f32[layout](t->want, stride, panels, panel_bytes, p.panels, p.k, t->in[0],
                                  p.k, p.tokens);
    t->other->matmul_f32[layout](t->got, stride, panels, panel_bytes, p.panels, p.k, t->in[0],
                                 p.k, p.tokens);
    SN_TRY(compare(t, name, p.tokens * stride));
    if (!t->scalar->matmul_q8[layout]) return SN_OK;
    snprintf(name, sizeof name, "matmul_q8 %s", p.type->name);
    sn_q8_rows x = random_rows(t, q, t->in[1], (int32_t *)(void *)t->in[2], p.tokens, p.k,
                               p.extreme);
    guard(t, p.tokens * stride);
    t->scalar->matmul_q8[layout](t->want, stride, panels, panel_bytes, p.panels, p.k, x,
                                 p.tokens);
    t->other->matmul_q8[layout](t->got, stride, panels, panel_bytes, p.panels, p.k, x, p.tokens);
    return compare(t, name, p.tokens * stride);
}

static sn_status check_type(tester *t, const sn_type *type, uint8_t *memory) {
    static const int extremes[] = { -1, 0x80, 0xff, 0x7f };
    char name[32];
    for (size_t k = type->block; k <= (type->block == 1 ? 67 : 2 * type->block); k += type->block)
        for (size_t tokens = 1; tokens <= (k <= 64 ? MOST_TOKENS : 3); tokens++)
            SN_TRY(check_product(t, (product){ type, k, tokens % MOST_PANELS + 1, tokens, -1 },
                                 memory));
    for (size_t e = 0; e < 4; e++)
        for (size_t tokens = 1; tokens <= 9; tokens += 4)
            SN_TRY(check_product(t, (product){ type, MOST_K, 2, tokens, extremes[e] }, memory));
    snprintf(name, sizeof name, "matmul %s", type->name);
    say(t, name);
    return SN_OK;
}

static sn_status check_products(tester *t) {
    static const uint32_t types[] = {
        SN_TYPE_F32, SN_TYPE_F16, SN_TYPE_BF16, SN_TYPE_Q8_0, SN_TYPE_Q4_0, SN_TYPE_Q4_1,
        SN_TYPE_Q5_0, SN_TYPE_Q5_1, SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K
    };
    uint8_t *memory = sn_alloc((1 << 17) + MOST_PANELS * 64 * (MOST_K + 64));
    if (!memory) return SN_E_NOMEM;
    sn_status status = SN_OK;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && status == SN_OK; i++)
        status = check_type(t, sn_type_find(types[i]), memory);
    sn_free(memory);
    return status;
}

static sn_status check_quantize(tester *t) {
    int8_t q[2][MOST];
    for (size_t k = 32; k <= MOST; k += k < 512 ? 32 : 512)
        for (int corners = 0; corners < 2; corners++) {
            float *scale[2] = { t->want, t->got };
            int32_t *sum[2] = { (int32_t *)(void *)(t->want + MOST),
                                (int32_t *)(void *)(t->got + MOST) };
            int finite[2];
            fill(t, t->in[0], k, corners);
            guard(t, 2 * MOST);
            for (int i = 0; i < 2; i++)
                finite[i] = (i ? t->other : t->scalar)
                                ->quantize_q8(q[i], scale[i], sum[i], t->in[0], k);
            t->cases++;
            if (finite[0] != finite[1]) return differ(t, "quantize_q8", k, 0);
            if (!finite[0]) continue;
            if (memcmp(q[0], q[1], k) || memcmp(scale[0], scale[1], k / 32 * 4) ||
                memcmp(sum[0], sum[1], k / 16 * 4))
                return differ(t, "quantize_q8", k, 1);
        }
    say(t, "quantize_q8");
    return SN_OK;
}

/* ---- all of it ------------------------------------------------------------------------ */

static sn_status check_backend(tester *t) {
    SN_TRY(check_maps(t));
    SN_TRY(check_all_vectors(t));
    SN_TRY(check_scans(t));
    SN_TRY(check_quantize(t));
    return check_products(t);
}

SN_WORKER static sn_status run(tester *t) {
    const size_t n = MOST_TOKENS * (MOST_K + 64) + 3 * MOST;
    float *memory = sn_alloc_array(8 * n, sizeof(float));
    if (!memory) return SN_E_NOMEM;
    for (int i = 0; i < 6; i++) t->in[i] = memory + (size_t)i * n;
    t->want = memory + 6 * n;
    t->got = memory + 7 * n;
    t->scalar = sn_simd_at(0);
    sn_status status = SN_OK;
    for (size_t i = 0; (t->other = sn_simd_at(i)) && status == SN_OK; i++) {
        char text[160];
        snprintf(text, sizeof text, "%-12s not run: this CPU or its system lacks it",
                 t->other->name);
        if (sn_simd_usable(t->other)) status = check_backend(t);
        else tell(t, text);
    }
    sn_free(memory);
    return status;
}

sn_status sn_selftest(sn_log_fn line, void *user) {
    tester t = { .random = 1, .line = line, .user = user };
    const sn_fpenv saved = sn_fpenv_enter();
    const sn_status status = run(&t);
    sn_fpenv_leave(saved);
    return status;
}
