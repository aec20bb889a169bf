/*
 * kernels.inl: every kernel, written once over the vector and dot headers that a back end has
 * included before. Contracts: simd.h. Kernels are static; the table is all that leaves.
 */
#include "vec_common.h"
#include "vmath.inl"

#include "matmul.inl"
#include "scans.inl"
#include "reverse.inl"
#include "rank1_rows.inl"
#include "gemv_i4.inl"

/* ---- element-wise -------------------------------------------------------------------- */

#define DEFINE_MAP(NAME, FUNCTION)                                                            \
    static void NAME(float *y, const float *x, size_t n) {                                    \
        size_t i = 0;                                                                         \
        for (; i + 16 <= n; i += 16) vf_store(y + i, FUNCTION(vf_load(x + i)));               \
        if (i < n) vf_store_part(y + i, FUNCTION(vf_load_part(x + i, n - i)), n - i);         \
    }

DEFINE_MAP(map_exp, vf_exp)
DEFINE_MAP(map_tanh, vf_tanh)
DEFINE_MAP(map_sigmoid, vf_sigmoid)
DEFINE_MAP(map_log1p, vf_log1p)
DEFINE_MAP(map_softplus, vf_softplus)
DEFINE_MAP(map_log_sigmoid, vf_log_sigmoid)
DEFINE_MAP(map_silu, vf_silu)
DEFINE_MAP(map_elu_plus_one, vf_elu_plus_one)
DEFINE_MAP(map_relu, vf_relu)
DEFINE_MAP(map_relu_squared, vf_relu_squared)
DEFINE_MAP(map_one_minus, vf_one_minus)
DEFINE_MAP(map_decay_rwkv7, vf_decay_rwkv7)

#define DEFINE_BINARY(NAME, FUNCTION)                                                         \
    static void NAME(float *y, const float *a, const float *b, size_t n) {                    \
        size_t i = 0;                                                                         \
        for (; i + 16 <= n; i += 16) vf_store(y + i, FUNCTION(vf_load(a + i), vf_load(b + i))); \
        if (i < n) {                                                                          \
            vf r = FUNCTION(vf_load_part(a + i, n - i), vf_load_part(b + i, n - i));          \
            vf_store_part(y + i, r, n - i);                                                   \
        }                                                                                     \
    }

SN_INLINE vf vf_mul_silu(vf a, vf b) { return vf_mul(a, vf_silu(b)); }

DEFINE_BINARY(add, vf_add)
DEFINE_BINARY(sub, vf_sub)
DEFINE_BINARY(mul, vf_mul)
DEFINE_BINARY(mul_silu, vf_mul_silu)

static void mla(float *y, const float *a, const float *b, const float *c, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf r = vf_mla(load_lanes(a + i, part), load_lanes(b + i, part),
                      load_lanes(c + i, part));
        store_lanes(y + i, r, part);
    }
}

static void lerp(float *y, const float *a, const float *b, const float *m, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf va = load_lanes(a + i, part), vb = load_lanes(b + i, part);
        vf r = vf_mla(load_lanes(m + i, part), vf_sub(vb, va), va);
        store_lanes(y + i, r, part);
    }
}

static void axpy(float *y, float a, const float *x, size_t n) {
    const vf factor = vf_set1(a);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf r = vf_mla(factor, load_lanes(x + i, part), load_lanes(y + i, part));
        store_lanes(y + i, r, part);
    }
}

static void scale(float *y, float a, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        store_lanes(y + i, vf_mul(vf_set1(a), load_lanes(x + i, part)), part);
    }
}

static void clamp(float *y, const float *x, float low, float high, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf r = vf_max(vf_set1(low), vf_min(vf_set1(high), load_lanes(x + i, part)));
        store_lanes(y + i, r, part);
    }
}

static void wedge(float *y, float a, const float *x, size_t n) {
    const vf one = vf_set1(1.0f), factor = vf_set1(a);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf v = load_lanes(x + i, part);
        vf gain = vf_add(one, vf_div(factor, vf_add(one, vf_abs(v))));
        store_lanes(y + i, vf_mul(v, gain), part);
    }
}

/* ---- reductions ---------------------------------------------------------------------- */

static void layer_norm(float *y, const float *x, const float *weight, const float *bias, size_t n,
                       float eps) {
    vf sum = vf_zero(), squares = vf_zero();
    for (size_t i = 0; i < n; i += 16)
        sum = vf_add(sum, load_lanes(x + i, n - i < 16 ? n - i : 16));
    const vf mean = vf_set1(vf_hsum(sum) / (float)n);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf d = vf_sub(load_lanes(x + i, part), mean);
        d = vf_select(vm_first(part), d, vf_zero());
        squares = vf_mla(d, d, squares);
    }
    const float variance = vf_hsum(squares) / (float)n;
    const vf scale = vf_div(vf_set1(1.0f), vf_sqrt1(variance + eps));
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf d = vf_mul(vf_sub(load_lanes(x + i, part), mean), scale);
        d = vf_mla(d, load_lanes(weight + i, part), load_lanes(bias + i, part));
        store_lanes(y + i, d, part);
    }
}

SN_INLINE float sum_of_squares(const float *x, size_t n) {
    vf squares = vf_zero();
    for (size_t i = 0; i < n; i += 16) {
        vf v = load_lanes(x + i, n - i < 16 ? n - i : 16);
        squares = vf_mla(v, v, squares);
    }
    return vf_hsum(squares);
}

/* y = x (1 / divisor) */
SN_INLINE void divide_all(float *y, const float *x, size_t n, vf divisor) {
    const vf factor = vf_div(vf_set1(1.0f), divisor);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        store_lanes(y + i, vf_mul(load_lanes(x + i, part), factor), part);
    }
}

static void rms_norm(float *y, const float *x, const float *weight, size_t n, float eps) {
    const vf rms = vf_sqrt1(sum_of_squares(x, n) / (float)n + eps);
    const vf factor = vf_div(vf_set1(1.0f), rms);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf v = vf_mul(load_lanes(x + i, part), factor);
        store_lanes(y + i, vf_mul(v, load_lanes(weight + i, part)), part);
    }
}

static void l2_normalize(float *y, const float *x, size_t n, float floor) {
    divide_all(y, x, n, vf_max(vf_set1(floor), vf_sqrt1(sum_of_squares(x, n))));
}

static void l2_normalize_eps(float *y, const float *x, size_t n, float eps) {
    divide_all(y, x, n, vf_sqrt1(sum_of_squares(x, n) + eps));
}

static void sum_normalize(float *y, const float *x, size_t n) {
    vf sum = vf_zero();
    for (size_t i = 0; i < n; i += 16)
        sum = vf_add(sum, load_lanes(x + i, n - i < 16 ? n - i : 16));
    divide_all(y, x, n, vf_set1(vf_hsum(sum)));
}

static float root(float x) { return __builtin_sqrtf(x); }

static float dot3(const float *a, const float *b, const float *c, size_t n) {
    vf sum = vf_zero();
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf ab = vf_mul(load_lanes(a + i, part), load_lanes(b + i, part));
        sum = vf_mla(ab, load_lanes(c + i, part), sum);
    }
    return vf_hsum(sum);
}

/* ---- activations to int8 -------------------------------------------------------------- */

/* 16 values to int8 by the block's factor; returns their integer values. */
SN_INLINE vi round_to_int(vf x, vf factor) {
    vf shifted = vf_add(vf_mul(x, factor), vf_set1(SN_ROUND_MAGIC));
    return vi_sub(vi_of_bits(shifted), vi_set1(SN_ROUND_MAGIC_BITS));
}

/* 16 values to int8; returns the sum of those, of a NaN anything that cannot overflow later. */
SN_INLINE int32_t quantize_lanes(int8_t *q, vf x, vf factor) {
    const vi rounded = round_to_int(x, factor);
    vi_store_i8(q, rounded);
    return (int16_t)vi_hsum(rounded);
}

static int quantize_q8(int8_t *q, float *scale, int32_t *sum, const float *x, size_t k) {
    vf spoiled = vf_zero();
    for (size_t b = 0; b < k / 32; b++, x += 32, q += 32) {
        vf x0 = vf_load(x), x1 = vf_load(x + 16);
        spoiled = vf_add(spoiled, vf_mul(x0, vf_zero())); /* NaN unless finite */
        spoiled = vf_add(spoiled, vf_mul(x1, vf_zero()));
        const float amax = vf_hmax(vf_max(vf_abs(x0), vf_abs(x1)));
        const int empty = !(amax >= 0x1p-100f);
        const float factor = empty ? 0.0f : 127.0f / amax;
        scale[b] = empty ? 0.0f : amax / 127.0f;
        sum[2 * b] = quantize_lanes(q, x0, vf_set1(factor));
        sum[2 * b + 1] = quantize_lanes(q + 16, x1, vf_set1(factor));
    }
    return vf_hsum(spoiled) == 0.0f;
}

static int quantize_i4(int8_t *q, float *scale, int32_t *sum, const float *x, size_t k) {
    vf spoiled = vf_zero();
    for (size_t b = 0; b < k / 64; b++, x += 64, q += 64) {
        vf largest = vf_zero();
        for (int i = 0; i < 64; i += 16) {
            const vf v = vf_load(x + i);
            spoiled = vf_add(spoiled, vf_mul(v, vf_zero())); /* NaN unless finite */
            largest = vf_max(largest, vf_abs(v));
        }
        const float amax = vf_hmax(largest);
        const int empty = !(amax >= 0x1p-100f);
        scale[b] = empty ? 0.0f : amax / 127.0f;
        const vf factor = vf_set1(empty ? 0.0f : 1.0f / scale[b]); /* no |q| is rounded to 128 */
        for (int h = 0; h < 2; h++)
            sum[2 * b + (size_t)h] =
                quantize_lanes(q + 32 * h, vf_load(x + 32 * h), factor) +
                quantize_lanes(q + 32 * h + 16, vf_load(x + 32 * h + 16), factor);
    }
    return vf_hsum(spoiled) == 0.0f;
}

/* ---- the table -------------------------------------------------------------------------- */

extern const sn_simd SN_TABLE;
const sn_simd SN_TABLE = {
    .name = SN_NAME,
    .matmul_f32 = { matmul_f32_F32, matmul_f32_F16, matmul_f32_BF16, matmul_f32_Q8_0,
                    matmul_f32_Q4_0, matmul_f32_Q4_1, matmul_f32_Q5_0, matmul_f32_Q5_1,
                    matmul_f32_Q4_K, matmul_f32_Q5_K, matmul_f32_Q6_K, matmul_f32_Q2_K,
                    matmul_f32_Q3_K, matmul_f32_IQ4_NL, matmul_f32_IQ4_XS, matmul_f32_I4 },
    .matmul_q8 = { NULL, NULL, NULL, matmul_q8_Q8_0, matmul_q8_Q4_0, matmul_q8_Q4_1,
                   matmul_q8_Q5_0, matmul_q8_Q5_1, matmul_q8_Q4_K, matmul_q8_Q5_K,
                   matmul_q8_Q6_K, matmul_q8_Q2_K, matmul_q8_Q3_K, matmul_q8_IQ4_NL,
                   matmul_q8_IQ4_XS, matmul_q8_I4 },
    .quantize_q8 = quantize_q8, .quantize_i4 = quantize_i4,
    .exp = map_exp, .tanh = map_tanh, .sigmoid = map_sigmoid, .log1p = map_log1p,
    .softplus = map_softplus, .log_sigmoid = map_log_sigmoid, .silu = map_silu,
    .elu_plus_one = map_elu_plus_one, .relu = map_relu, .relu_squared = map_relu_squared,
    .one_minus = map_one_minus, .decay_rwkv7 = map_decay_rwkv7,
    .add = add, .sub = sub, .mul = mul, .mul_silu = mul_silu, .mla = mla, .lerp = lerp,
    .axpy = axpy, .scale = scale, .clamp = clamp, .wedge = wedge,
    .layer_norm = layer_norm, .rms_norm = rms_norm, .l2_normalize = l2_normalize,
    .l2_normalize_eps = l2_normalize_eps, .sum_normalize = sum_normalize, .root = root,
    .dot3 = dot3,
    .conv = conv, .recur_scan = recur_scan, .rank1_scan = rank1_scan, .outer_scan = outer_scan,
    .selective_scan = selective_scan,
    .recur_reverse = recur_reverse, .rank1_rows = rank1_rows, .gemv_i4 = gemv_i4,
};
