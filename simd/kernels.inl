/*
 * kernels.inl: every kernel, written once over the vector and dot headers that a back end has
 * included before. Contracts: simd.h. Kernels are static; the table is all that leaves.
 */
#include "vec_common.h"
#include "vmath.inl"

#include "matmul.inl"

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
DEFINE_MAP(map_relu_squared, vf_relu_squared)
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

DEFINE_BINARY(add, vf_add)
DEFINE_BINARY(mul, vf_mul)

static void lerp(float *y, const float *a, const float *b, const float *m, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf va = vf_load_part(a + i, part), vb = vf_load_part(b + i, part);
        vf r = vf_mla(vf_load_part(m + i, part), vf_sub(vb, va), va);
        vf_store_part(y + i, r, part);
    }
}

static void axpy(float *y, float a, const float *x, size_t n) {
    const vf factor = vf_set1(a);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf r = vf_mla(factor, vf_load_part(x + i, part), vf_load_part(y + i, part));
        vf_store_part(y + i, r, part);
    }
}

/* ---- reductions ---------------------------------------------------------------------- */

static void layer_norm(float *y, const float *x, const float *weight, const float *bias, size_t n,
                       float eps) {
    vf sum = vf_zero(), squares = vf_zero();
    for (size_t i = 0; i < n; i += 16)
        sum = vf_add(sum, vf_load_part(x + i, n - i < 16 ? n - i : 16));
    const vf mean = vf_set1(vf_hsum(sum) / (float)n);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf d = vf_sub(vf_load_part(x + i, part), mean);
        d = vf_select(vm_first(part), d, vf_zero());
        squares = vf_mla(d, d, squares);
    }
    const float variance = vf_hsum(squares) / (float)n;
    const vf scale = vf_div(vf_set1(1.0f), vf_sqrt1(variance + eps));
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf d = vf_mul(vf_sub(vf_load_part(x + i, part), mean), scale);
        d = vf_mla(d, vf_load_part(weight + i, part), vf_load_part(bias + i, part));
        vf_store_part(y + i, d, part);
    }
}

static void l2_normalize(float *y, const float *x, size_t n, float floor) {
    vf squares = vf_zero();
    for (size_t i = 0; i < n; i += 16) {
        vf v = vf_load_part(x + i, n - i < 16 ? n - i : 16);
        squares = vf_mla(v, v, squares);
    }
    const vf norm = vf_max(vf_set1(floor), vf_sqrt1(vf_hsum(squares)));
    const vf scale = vf_div(vf_set1(1.0f), norm);
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf_store_part(y + i, vf_mul(vf_load_part(x + i, part), scale), part);
    }
}

static float dot3(const float *a, const float *b, const float *c, size_t n) {
    vf sum = vf_zero();
    for (size_t i = 0; i < n; i += 16) {
        size_t part = n - i < 16 ? n - i : 16;
        vf ab = vf_mul(vf_load_part(a + i, part), vf_load_part(b + i, part));
        sum = vf_mla(ab, vf_load_part(c + i, part), sum);
    }
    return vf_hsum(sum);
}

/* ---- activations to int8 -------------------------------------------------------------- */

/* 16 values to int8 by the block's factor; returns their integer values. */
SN_INLINE vi round_to_int(vf x, vf factor) {
    vf shifted = vf_add(vf_mul(x, factor), vf_set1(SN_ROUND_MAGIC));
    return vi_sub(vi_of_bits(shifted), vi_set1(SN_ROUND_MAGIC_BITS));
}

SN_INLINE int32_t int_sum(const int8_t *q, int n) {
    int32_t sum = 0;
    for (int i = 0; i < n; i++) sum += q[i];
    return sum;
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
        vi_store_i8(q, round_to_int(x0, vf_set1(factor)));
        vi_store_i8(q + 16, round_to_int(x1, vf_set1(factor)));
        sum[2 * b] = int_sum(q, 16);
        sum[2 * b + 1] = int_sum(q + 16, 16);
    }
    return vf_hsum(spoiled) == 0.0f;
}

/* ---- rank-1 matrix recurrence ---------------------------------------------------------- */

/* One token for 16 NV value channels (the last vector may be partial); S, v and y point at the
 * first of them. */
SN_INLINE void rank1_step(int nv, size_t part, float *y, float *S, size_t row, size_t n_keys,
                          const float *w, const float *u, const float *k, const float *b,
                          const float *r, const float *v) {
    vf p[4], read[4], value[4];
    SN_UNROLL for (int i = 0; i < nv; i++) {
        p[i] = read[i] = vf_zero();
        value[i] = part < 16 ? vf_load_part(v, part) : vf_load(v + 16 * i);
    }
    for (size_t j = 0; j < n_keys; j++) {
        const vf uj = vf_set1(u[j]);
        SN_UNROLL for (int i = 0; i < nv; i++) {
            const float *s = S + j * row + 16 * i;
            p[i] = vf_mla(part < 16 ? vf_load_part(s, part) : vf_load(s), uj, p[i]);
        }
    }
    for (size_t j = 0; j < n_keys; j++) {
        const vf wj = vf_set1(w[j]), bj = vf_set1(b[j]), kj = vf_set1(k[j]), rj = vf_set1(r[j]);
        SN_UNROLL for (int i = 0; i < nv; i++) {
            float *at = S + j * row + 16 * i;
            vf s = part < 16 ? vf_load_part(at, part) : vf_load(at);
            s = vf_sub(vf_mul(s, wj), vf_mul(p[i], bj));
            s = vf_add(s, vf_mul(value[i], kj));
            if (part < 16) vf_store_part(at, s, part); else vf_store(at, s);
            read[i] = vf_mla(s, rj, read[i]);
        }
    }
    SN_UNROLL for (int i = 0; i < nv; i++)
        if (part < 16) vf_store_part(y, read[i], part); else vf_store(y + 16 * i, read[i]);
}

static void rank1_scan(float *y, float *S, size_t n_keys, size_t n_values, const float *w,
                       const float *u, const float *k, const float *b, const float *r,
                       const float *v, size_t stride, size_t n_tokens) {
    size_t at = 0; /* value channels go their own way: finish some over all tokens, then more */
    for (size_t end; at < n_values; at = end) {
        const size_t left = n_values - at;
        end = at + (left >= 64 ? 64 : left >= 16 ? 16 : left);
        for (size_t t = 0; t < n_tokens; t++) {
            const size_t o = t * stride;
            float *yt = y + o + at;
            const float *vt = v + o + at;
#define RANK1_STEP(NV, PART)                                                                  \
    rank1_step(NV, PART, yt, S + at, n_values, n_keys, w + o, u + o, k + o, b + o, r + o, vt)
            if (left >= 64) RANK1_STEP(4, 16);
            else if (left >= 16) RANK1_STEP(1, 16);
            else RANK1_STEP(1, left);
#undef RANK1_STEP
        }
    }
}

/* ---- the table -------------------------------------------------------------------------- */

extern const sn_simd SN_TABLE;
const sn_simd SN_TABLE = {
    .name = SN_NAME,
    .matmul_f32 = { matmul_f32_F32, matmul_f32_F16, matmul_f32_BF16, matmul_f32_Q8_0,
                    matmul_f32_Q4_0, matmul_f32_Q4_1, matmul_f32_Q5_0, matmul_f32_Q5_1,
                    matmul_f32_Q4_K, matmul_f32_Q5_K, matmul_f32_Q6_K },
    .matmul_q8 = { NULL, NULL, NULL, matmul_q8_Q8_0, matmul_q8_Q4_0, matmul_q8_Q4_1,
                   matmul_q8_Q5_0, matmul_q8_Q5_1, matmul_q8_Q4_K, matmul_q8_Q5_K,
                   matmul_q8_Q6_K },
    .quantize_q8 = quantize_q8,
    .exp = map_exp, .tanh = map_tanh, .sigmoid = map_sigmoid, .log1p = map_log1p,
    .softplus = map_softplus, .relu_squared = map_relu_squared, .decay_rwkv7 = map_decay_rwkv7,
    .add = add, .mul = mul, .lerp = lerp, .axpy = axpy,
    .layer_norm = layer_norm, .l2_normalize = l2_normalize, .dot3 = dot3,
    .rank1_scan = rank1_scan,
};
