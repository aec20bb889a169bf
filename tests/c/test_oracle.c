/*
 * test_oracle: the scalar matrix products, and activations as int8, against plain double loops
 * written from docs/determinism.md. test_oracle_vectors.c and test_oracle_scans.c do the same for
 * the other kernels, oracle.h says how close they must be.
 */
#include "oracle.h"

#include "ops.h"

/* ---- matrix products ------------------------------------------------------------------------- */

#define MOST_ROWS 48
#define MOST_K 1024
#define MOST_TOKENS 5

static const uint32_t types[] = {
    SN_TYPE_F32, SN_TYPE_F16, SN_TYPE_BF16, SN_TYPE_Q8_0, SN_TYPE_Q4_0, SN_TYPE_Q4_1,
    SN_TYPE_Q5_0, SN_TYPE_Q5_1, SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q2_K,
    SN_TYPE_Q3_K, SN_TYPE_IQ4_NL, SN_TYPE_IQ4_XS, SN_TYPE_I4
};
#define N_TYPES (sizeof types / sizeof types[0])

static bool has_min(const sn_type *type) {
    return type->id == SN_TYPE_Q4_1 || type->id == SN_TYPE_Q5_1 || type->id == SN_TYPE_Q2_K ||
           type->id == SN_TYPE_Q4_K || type->id == SN_TYPE_Q5_K;
}

/* Sets the codes of a block, as files hold it, to 0. Only types that have a minimum. */
static void clear_codes(const sn_type *type, uint8_t *block) {
    if (type->id == SN_TYPE_Q2_K) {
        memset(block + 16, 0, 64); /* between the inner scales and the halves */
        return;
    }
    const size_t scales = type->block == 32 ? 4 : 16;
    memset(block + scales, 0, type->block_bytes - scales);
}

typedef struct matrix {
    const sn_type *type;
    size_t rows, k, n_panels, panel_bytes;
    uint8_t *file;   /* rows as a file holds them */
    uint8_t *panels;
    float *w, *min;  /* [rows][k] decoded, and what of it is the minimum */
} matrix;

/* Decodes the rows and packs them. The minimum is what a block decodes to when its codes are 0:
 * the types that have one have no offset. */
static void finish(matrix *m) {
    const size_t row_bytes = (size_t)sn_type_bytes(m->type, m->k);
    const size_t n = m->rows * m->k;
    m->type->decode(m->file, m->w, n);
    memset(m->min, 0, n * sizeof(float));
    if (has_min(m->type)) {
        uint8_t *empty = malloc(m->rows * row_bytes);
        memcpy(empty, m->file, m->rows * row_bytes);
        for (size_t at = 0; at < m->rows * row_bytes; at += m->type->block_bytes)
            clear_codes(m->type, empty + at);
        m->type->decode(empty, m->min, n);
        free(empty);
    }
    for (size_t p = 0; p < m->n_panels; p++) {
        const size_t left = m->rows - p * SN_PANEL_ROWS;
        CHECK(sn_panel_pack(m->type, m->file + p * SN_PANEL_ROWS * row_bytes,
                            left < SN_PANEL_ROWS ? left : SN_PANEL_ROWS, m->k,
                            m->panels + p * m->panel_bytes),
              "%s refused", m->type->name);
    }
}

static matrix new_matrix(const sn_type *type, size_t rows, size_t k) {
    matrix m = { .type = type, .rows = rows, .k = k };
    m.n_panels = (rows + SN_PANEL_ROWS - 1) / SN_PANEL_ROWS;
    m.panel_bytes = sn_panel_bytes(type, k);
    m.file = malloc(rows * (size_t)sn_type_bytes(type, k));
    m.panels = sn_alloc(m.n_panels * m.panel_bytes);
    m.w = malloc(rows * k * sizeof(float));
    m.min = malloc(rows * k * sizeof(float));
    return m;
}

static void free_matrix(matrix *m) {
    free(m->file);
    sn_free(m->panels);
    free(m->w);
    free(m->min);
}

static void put_half(uint8_t *p, float value) {
    const uint16_t half = sn_f32_to_f16(value);
    p[0] = (uint8_t)half;
    p[1] = (uint8_t)(half >> 8);
}

/* Sets the one or two halves of a block, I4's float; their places differ by type. */
static void set_scales(const sn_type *type, uint8_t *block, float d, float min) {
    if (type->id == SN_TYPE_I4) {
        memcpy(block + 32, &d, 4);
        return;
    }
    const size_t at = type->id == SN_TYPE_Q6_K   ? 208
                      : type->id == SN_TYPE_Q3_K ? 108
                      : type->id == SN_TYPE_Q2_K ? 80
                                                 : 0;
    put_half(block + at, d);
    if (has_min(type)) put_half(block + at + 2, min);
}

static void random_matrix(matrix *m) {
    const size_t bytes = m->rows * (size_t)sn_type_bytes(m->type, m->k);
    if (m->type->block == 1) {
        for (size_t i = 0; i < m->rows * m->k; i++) {
            const float x = number(2.0f);
            const uint16_t half =
                m->type->id == SN_TYPE_F16 ? sn_f32_to_f16(x) : sn_f32_to_bf16(x);
            if (m->type->id == SN_TYPE_F32) memcpy(m->file + 4 * i, &x, 4);
            else memcpy(m->file + 2 * i, &half, 2);
        }
    } else {
        for (size_t i = 0; i < bytes; i++) m->file[i] = (uint8_t)check_next(&rng);
        for (size_t at = 0; at < bytes; at += m->type->block_bytes)
            set_scales(m->type, m->file + at, number(0.1f), number(0.3f));
    }
    finish(m);
}

/* y = sum W x. Blocks of 32 are summed first: an element sees at most 32 + k / 32 + 1 roundings. */
static void check_float_product(const matrix *m, size_t tokens) {
    static float x[MOST_TOKENS * (MOST_K + 3)], y[MOST_TOKENS * (MOST_ROWS + 5)];
    const size_t x_stride = m->k + 3, y_stride = 16 * m->n_panels + 5;
    fill(x, tokens * x_stride, 4.0f);
    simd->matmul_f32[sn_layout_of(m->type)](y, y_stride, m->panels, m->panel_bytes, m->n_panels,
                                            m->k, x, x_stride, tokens);
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < 16 * m->n_panels; r++) {
            double sum = 0.0, size = 0.0;
            for (size_t i = 0; i < m->k && r < m->rows; i++) {
                const double term = (double)m->w[r * m->k + i] * (double)x[t * x_stride + i];
                sum += term;
                size += fabs(term);
            }
            check_near(m->type->name, r, y[t * y_stride + r], sum,
                       (34.0 + (double)m->k / 32.0) * U * size);
        }
}

typedef struct rows8 {
    int8_t q[MOST_TOKENS * MOST_K];
    float scale[MOST_TOKENS * MOST_K / 32];
    int32_t sum[MOST_TOKENS * MOST_K / 16];
} rows8;

/* Activations that share a scale; half of them share a sum. */
static size_t block_of(const matrix *m) {
    return m->type->id == SN_TYPE_I4 ? 64 : 32;
}

/* Of `tokens` rows; their places are those of the block of 32, whatever the block (sn_q8_rows). */
static void sum_up(const matrix *m, rows8 *x, size_t tokens) {
    const size_t half = block_of(m) / 2;
    for (size_t t = 0; t < tokens; t++)
        for (size_t h = 0; h < m->k / half; h++) {
            int32_t *sum = x->sum + t * (m->k / 16) + h;
            *sum = 0;
            for (size_t j = 0; j < half; j++) *sum += x->q[t * m->k + half * h + j];
        }
}

static float scale_of(const matrix *m, const rows8 *x, size_t t, size_t i) {
    return x->scale[t * (m->k / 32) + i / block_of(m)];
}

static void multiply_q8(const matrix *m, const rows8 *x, size_t tokens, float *y,
                        size_t y_stride) {
    const sn_q8_rows rows = { x->q, x->scale, x->sum, m->k };
    simd->matmul_q8[sn_layout_of(m->type)](y, y_stride, m->panels, m->panel_bytes, m->n_panels,
                                           m->k, rows, tokens);
}

/*
 * y = sum W q xs. Per block the code part and the minimum part are rounded thrice (scale, product,
 * sum), and W itself, decoded, twice. The parts may be larger than W: |code part| <= |W| + |min|.
 */
static void check_int_product(const matrix *m, size_t tokens) {
    static rows8 x;
    static float y[MOST_TOKENS * (MOST_ROWS + 5)];
    const size_t y_stride = 16 * m->n_panels + 5;
    for (size_t i = 0; i < tokens * m->k; i++) x.q[i] = (int8_t)((int)check_below(&rng, 255) - 127);
    fill(x.scale, tokens * m->k / 32, 0.1f);
    sum_up(m, &x, tokens);
    multiply_q8(m, &x, tokens, y, y_stride);
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < 16 * m->n_panels; r++) {
            double sum = 0.0, size = 0.0;
            for (size_t i = 0; i < m->k && r < m->rows; i++) {
                const double w = m->w[r * m->k + i], min = m->min[r * m->k + i];
                const double a = (double)x.q[t * m->k + i] * (double)scale_of(m, &x, t, i);
                sum += w * a;
                size += (fabs(w) + 2.0 * fabs(min)) * fabs(a);
            }
            check_near(m->type->name, r, y[t * y_stride + r], sum,
                       (6.0 + 2.0 * (double)m->k / 32.0) * U * size);
        }
}

static void check_products(void) {
    for (size_t i = 0; i < N_TYPES; i++) {
        const sn_type *type = sn_type_find(types[i]);
        const size_t sizes[] = { type->block == 1 ? 1 : type->block, type->block == 1 ? 45 :
                                 2 * type->block, type->block == 1 ? 96 : 3 * type->block };
        for (size_t s = 0; s < 3; s++)
            for (size_t tokens = 1; tokens <= MOST_TOKENS; tokens += 2) {
                matrix m = new_matrix(type, 33 + s, sizes[s]);
                random_matrix(&m);
                check_float_product(&m, tokens);
                if (type->block > 1) check_int_product(&m, tokens);
                free_matrix(&m);
            }
    }
}

/* ---- integers at their ends: no rounding, so no tolerance ------------------------------------ */

/* With scales of 1 every weight is an integer. One live block of activations at a time keeps the
 * result below 2^24, where float32 holds it; then all of them, where they fit. */
static void check_exact(const matrix *m, rows8 *x) {
    static float y[MOST_ROWS];
    const size_t block = block_of(m), blocks = m->k / block;
    for (size_t live = 0; live <= blocks; live++) {
        for (size_t b = 0; b < blocks; b++) x->scale[b] = live == blocks || b == live;
        multiply_q8(m, x, 1, y, 16 * m->n_panels);
        for (size_t r = 0; r < m->rows; r++) {
            int64_t sum = 0;
            bool fits = true;
            for (size_t i = 0; i < m->k; i++) {
                if (x->scale[i / block] > 0) sum += (int64_t)m->w[r * m->k + i] * x->q[i];
                if (i % block == block - 1) fits = fits && sum < 1 << 24 && sum > -(1 << 24);
            }
            if (fits || live < blocks)
                CHECK((int64_t)y[r] == sum, "%s, block %zu, row %zu: %.9g, expected %lld",
                      m->type->name, live, r, (double)y[r], (long long)sum);
        }
    }
}

/* Every byte of codes and inner scales is `pattern` (-1: random). */
static void integer_matrix(matrix *m, int pattern) {
    const size_t bytes = m->rows * (size_t)sn_type_bytes(m->type, m->k);
    for (size_t i = 0; i < bytes; i++)
        m->file[i] = pattern < 0 ? (uint8_t)check_next(&rng) : (uint8_t)pattern;
    for (size_t at = 0; at < bytes; at += m->type->block_bytes)
        set_scales(m->type, m->file + at, 1.0f, 1.0f);
    finish(m);
}

static void check_integers(void) {
    static const int patterns[] = { 0x80, 0xff, 0x7f, 0x00, 0x81, -1 };
    static rows8 x;
    for (size_t i = 3; i < N_TYPES; i++) {
        matrix m = new_matrix(sn_type_find(types[i]), 17, MOST_K);
        for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
            integer_matrix(&m, patterns[p]);
            for (int kind = 0; kind < 4; kind++) {
                for (size_t k = 0; k < MOST_K; k++)
                    x.q[k] = kind == 0 ? 127 : kind == 1 ? -127 : kind == 2 ? (k % 2 ? 127 : -127) :
                             (int8_t)((int)check_below(&rng, 255) - 127);
                sum_up(&m, &x, 1);
                check_exact(&m, &x);
            }
        }
        free_matrix(&m);
    }
}

/* ---- activations to int8 --------------------------------------------------------------------- */

/* docs/determinism.md, section 4, in blocks of 32 or, for I4, of 64. A quotient or product of two
 * float32, rounded to float64 and then to float32, is the one rounded at once. */
static void check_quantized(const float *x, size_t k, size_t block) {
    static int8_t q[MOST_K];
    static float scale[MOST_K / 32];
    static int32_t sum[MOST_K / 16];
    CHECK((block == 64 ? simd->quantize_i4 : simd->quantize_q8)(q, scale, sum, x, k) == 1,
          "refused");
    for (size_t b = 0; b < k / block; b++) {
        double amax = 0.0;
        for (size_t i = 0; i < block; i++) amax = fmax(amax, fabs((double)x[block * b + i]));
        const bool empty = amax < 0x1p-100;
        const float xs = empty ? 0.0f : (float)(amax / 127.0);
        const float factor = empty         ? 0.0f
                             : block == 64 ? (float)(1.0 / (double)xs)
                                           : (float)(127.0 / amax);
        CHECK(same(scale[b], xs), "scale of block %zu", b);
        int32_t halves[2] = { 0, 0 };
        for (size_t i = 0; i < block; i++) {
            const float v = (float)((double)x[block * b + i] * (double)factor);
            const int want = empty ? 0 : (int)rint((double)v); /* ties to even */
            CHECK(q[block * b + i] == want && want >= -127 && want <= 127, "%a: %d, expected %d",
                  (double)x[block * b + i], q[block * b + i], want);
            halves[2 * i / block] += want;
        }
        CHECK(sum[2 * b] == halves[0] && sum[2 * b + 1] == halves[1], "sums of block %zu", b);
    }
}

/* Each |x| in turn is the largest of its block, so that every rounding of its quotient is seen. */
static void check_ends(size_t block) {
    float x[64] = { 0 };
    for (uint32_t i = 0; i < 20000; i++) {
        const uint32_t bits = 0x3f800000u + check_below(&rng, 0x40000000u - 0x3f800000u);
        memcpy(&x[i % block], &bits, 4);
        check_quantized(x, block, block);
        x[i % block] = 0.0f;
    }
}

static void check_quantize(size_t block) {
    static const float scales[] = { 1.0f, 0x1p-99f, 0x1p-101f, 0x1p-149f, 1e30f, 0x1p127f, 0.0f };
    float x[256];
    int8_t q[256];
    float scale[8];
    int32_t sum[16];
    for (int round = 0; round < 200; round++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
            fill(x, 256, scales[s]);
            check_quantized(x, 256, block);
        }
    for (size_t i = 0; i < block; i++) x[i] = (float)i - 15.5f; /* ties: factor 1 */
    x[block - 1] = 127.0f;
    check_quantized(x, block, block);
    for (size_t i = 0; i < block; i++) x[i] = i % 2 ? 0x1p-100f : -0x1p-100f; /* the end itself */
    check_quantized(x, block, block);
    x[7] = 0x1p-99f;
    check_quantized(x, block, block);
    for (size_t i = 0; i < block; i++) x[i] = 0x1.fffffep-101f; /* just below */
    check_quantized(x, block, block);
    for (size_t i = 0; i < 256; i++)
        for (int kind = 0; kind < 3; kind++) {
            fill(x, 256, 1.0f);
            x[i] = kind == 0 ? HUGE_VALF : kind == 1 ? -HUGE_VALF : (float)NAN;
            CHECK((block == 64 ? simd->quantize_i4 : simd->quantize_q8)(q, scale, sum, x, 256) == 0,
                  "taken at %zu", i);
        }
    fill(x, 256, 3.4028234e38f);
    check_quantized(x, 256, block);
    check_ends(block);
}

int main(void) {
    simd = sn_simd_at(0);
    check_products();
    check_integers();
    check_quantize(32);
    check_quantize(64);
    return check_report("oracle");
}
