/*
 * selftest.c: every kernel of every back end this machine can run against the scalar one, bit for
 * bit. Here the driver and the matrix products; selftest_vectors.c, selftest_scans.c and
 * selftest_recurrence.c the rest.
 */
#include "selftest.h"

#include "worker.h"

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

/* Codes in -127..127, the sums of `half` of them, and scales. */
static sn_q8_rows random_rows(tester *t, int8_t *q, float *scale, int32_t *sum, size_t tokens,
                              size_t stride, size_t half, int extreme) {
    for (size_t i = 0; i < tokens * stride; i++) {
        const int random = (int)(next(t) % 255) - 127;
        q[i] = (int8_t)(extreme < 0 ? random : random % 2 ? 127 : -127);
    }
    for (size_t i = 0; i < tokens * stride / 32; i++) scale[i] = number(t);
    for (size_t row = 0; row < tokens; row++)
        for (size_t h = 0; h < stride / half; h++) {
            int32_t *to = sum + row * (stride / 16) + h;
            *to = 0;
            for (size_t j = 0; j < half; j++) *to += q[row * stride + half * h + j];
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
                               p.type->id == SN_TYPE_I4 ? 32 : 16, p.extreme);
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
        SN_TYPE_Q5_0, SN_TYPE_Q5_1, SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q2_K,
        SN_TYPE_Q3_K, SN_TYPE_IQ4_NL, SN_TYPE_IQ4_XS, SN_TYPE_I4
    };
    uint8_t *memory = sn_alloc((1 << 17) + MOST_PANELS * 64 * (MOST_K + 64));
    if (!memory) return SN_E_NOMEM;
    sn_status status = SN_OK;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && status == SN_OK; i++)
        status = check_type(t, sn_type_find(types[i]), memory);
    sn_free(memory);
    return status;
}

/* Of one back end; `block` is that of its activations. */
static int quantize(const sn_simd *simd, size_t block, int8_t *q, float *scale, int32_t *sum,
                    const float *x, size_t k) {
    return (block == 64 ? simd->quantize_i4 : simd->quantize_q8)(q, scale, sum, x, k);
}

static sn_status check_quantize(tester *t, const char *name, size_t block) {
    int8_t q[2][MOST];
    for (size_t k = block; k <= MOST; k += k < 512 ? block : 512)
        for (int corners = 0; corners < 2; corners++) {
            float *scale[2] = { t->want, t->got };
            int32_t *sum[2] = { (int32_t *)(void *)(t->want + MOST),
                                (int32_t *)(void *)(t->got + MOST) };
            int finite[2];
            fill(t, t->in[0], k, corners);
            guard(t, 2 * MOST);
            for (int i = 0; i < 2; i++)
                finite[i] = quantize(i ? t->other : t->scalar, block, q[i], scale[i], sum[i],
                                     t->in[0], k);
            t->cases++;
            if (finite[0] != finite[1]) return differ(t, name, k, 0);
            if (!finite[0]) continue;
            if (memcmp(q[0], q[1], k) || memcmp(scale[0], scale[1], k / block * 4) ||
                memcmp(sum[0], sum[1], k / block * 8))
                return differ(t, name, k, 1);
        }
    say(t, name);
    return SN_OK;
}

/* ---- all of it ------------------------------------------------------------------------ */

static sn_status check_backend(tester *t) {
    SN_TRY(sn_selftest_vectors(t));
    SN_TRY(sn_selftest_scans(t));
    SN_TRY(sn_selftest_recurrence(t));
    SN_TRY(check_quantize(t, "quantize_q8", 32));
    SN_TRY(check_quantize(t, "quantize_i4", 64));
    return check_products(t);
}

SN_WORKER static sn_status run(tester *t) {
    const size_t n = MOST_TOKENS * (MOST_K + 64) + 3 * MOST;
    float *memory = sn_alloc_array(10 * n, sizeof(float));
    if (!memory) return SN_E_NOMEM;
    for (int i = 0; i < 8; i++) t->in[i] = memory + (size_t)i * n;
    t->want = memory + 8 * n;
    t->got = memory + 9 * n;
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
