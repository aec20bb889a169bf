/*
 * simd.h: the vector kernels as one table of pointers per back end, and how to get a table.
 *
 * Every back end gives the same bits as "scalar" for every kernel: same operations, same order,
 * each rounded to float32 (docs/determinism.md). Kernels check nothing; callers have. Pointers
 * need no alignment beyond their element's unless a comment says so; sizes may be any number,
 * 0 included. Outputs may be the same array as an input of the same shape, never a shifted one.
 * Nothing outside the stated outputs is written; inputs may not be read past their end.
 */
#ifndef SN_SIMD_H
#define SN_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Panel layouts a matrix product knows (core/quant/panel.h describes their bytes). */
typedef enum sn_layout {
    SN_LAYOUT_F32, SN_LAYOUT_F16, SN_LAYOUT_BF16, SN_LAYOUT_Q8_0, SN_LAYOUT_Q4_0,
    SN_LAYOUT_Q4_1, SN_LAYOUT_Q5_0, SN_LAYOUT_Q5_1, SN_LAYOUT_Q4_K, SN_LAYOUT_Q5_K,
    SN_LAYOUT_Q6_K, SN_LAYOUT_Q2_K, SN_LAYOUT_Q3_K, SN_LAYOUT_IQ4_NL, SN_LAYOUT_IQ4_XS,
    SN_LAYOUT_I4, SN_LAYOUT_COUNT
} sn_layout;

/*
 * Float activations: y[t][16 p + r] = sum over k of W(row, k) x[t][k] for the panels p of
 * [0, n_panels) and tokens t of [0, n_tokens).
 *   panels   n_panels panels of panel_bytes each, 64-byte aligned
 *   x        [n_tokens][x_stride], k elements used
 *   y        [n_tokens][y_stride], 16 n_panels elements written
 * Order: blocks of 32 k; inside one, from +0, s = s + W x in ascending k; total = total + s.
 */
typedef void (*sn_matmul_f32)(float *y, size_t y_stride, const uint8_t *panels,
                              size_t panel_bytes, size_t n_panels, size_t k, const float *x,
                              size_t x_stride, size_t n_tokens);

/*
 * Activations as blocks of n int8, n = 32, for I4 64: x[i] = q[i] * scale[i / n]; sum[h] = sum of
 * the q of half a block, i / (n / 2) = h. A token's row of q takes q_stride bytes (a multiple of
 * 32), of scale q_stride / 32 and of sum q_stride / 16 elements, of which I4 uses half.
 */
typedef struct sn_q8_rows {
    const int8_t *q;
    const float *scale;
    const int32_t *sum;
    size_t q_stride;
} sn_q8_rows;

/* Integer activations: one exact int32 total per block, then float(total) * (w_scale * x_scale)
 * added in ascending blocks; a min-term follows its block's total. k is a multiple of the block. */
typedef void (*sn_matmul_q8)(float *y, size_t y_stride, const uint8_t *panels,
                             size_t panel_bytes, size_t n_panels, size_t k, sn_q8_rows x,
                             size_t n_tokens);

typedef void (*sn_map)(float *y, const float *x, size_t n);

/* A vector for each token: token t's begins at `at + t stride`. */
typedef struct sn_sequence {
    const float *at;
    size_t stride;
} sn_sequence;

/*
 * First-order recurrence of n independent channels. Per token
 *   FMA:    s = a s + b
 *   gated:  s = a s + (1 - a) b
 * and y = s. s is [n], updated in place. The product a s is rounded, then added to b or to the
 * rounded product (1 - a) b.
 */
typedef struct sn_recur {
    float *y;
    size_t y_stride;
    float *s;
    sn_sequence a, b;
    size_t n, n_tokens;
    int gated;
    int streaming; /* nobody reads y while it is in a cache: write it past them, if aligned */
} sn_recur;

/*
 * Its gradients, from the last token to the first; dy is that of y, d the one carried on. Per token
 *   d  = d + dy
 *   FMA:    da = d s'          db = d
 *   gated:  da = d (s' - b)    db = d (1 - a)
 *   d  = d a
 * with s' the state before: y of the token before, or s0 at the first. d is [n], updated in place:
 * zeros before give ds0 after. da and db may lie over any input but s0, not over each other.
 */
typedef struct sn_recur_reverse {
    float *da, *db;
    size_t da_stride, db_stride;
    float *d;
    const float *s0;
    sn_sequence a, b, y, dy; /* b is not read unless gated */
    size_t n, n_tokens;
    int gated;
    int streaming; /* as above, for da and db */
} sn_recur_reverse;

/* What the state is multiplied by each step: nothing, one number a token, one for each key, one
 * for each value. */
typedef enum sn_decay { SN_DECAY_NONE, SN_DECAY_HEAD, SN_DECAY_KEY, SN_DECAY_VALUE } sn_decay;

/*
 * Matrix recurrences of one head over n_tokens tokens. The state S[key j][value i] is key-major,
 * lanes are values, rows lie row floats apart. Sums over keys ascend from +0. Per token, every S on
 * the right being the old one and d what `decay` says:
 *
 * rank1_scan (RWKV-7: u = kappa, b = kappa a; delta rules: u = k, b = beta k, v = beta v):
 *   p[i]    = sum over j of S[j][i] u[j]
 *   S[j][i] = (S[j][i] d - p[i] b[j]) + v[i] k[j]
 *   y[i]    = sum over j of S[j][i] r[j]                 the new S
 * outer_scan (Mamba-2, GLA, HGRN2, linear attention), which needs no u and b:
 *   S[j][i] = S[j][i] d + k[j] v[i]
 *   y[i]    = sum over j of S[j][i] r[j]                 the new S
 * rank1_scan knows no SN_DECAY_VALUE. y may be v or a decay over values, never a vector over keys.
 * (Peng et al. 2025; Yang et al. 2024)
 */
typedef struct sn_matrix_scan {
    float *y;
    size_t y_stride;
    float *S;
    size_t row;
    size_t n_keys, n_values, n_tokens;
    sn_decay decay;
    sn_sequence d, k, v, r, u, b;
} sn_matrix_scan;

/*
 * Mamba-1's selective scan of n_channels channels with n_states states each. State and A are
 * state-major, S[n][channel], rows `row` floats apart; lanes are channels. Per token
 *   S[n] = exp(dt A[n]) S[n] + x B[n]                    x = dt u, already multiplied
 *   y    = sum over n of S[n] C[n]                       ascending n, from +0
 */
typedef struct sn_selective_scan {
    float *y;
    size_t y_stride;
    float *S;
    const float *A;
    size_t row;
    size_t n_states, n_channels, n_tokens;
    sn_sequence dt, x; /* [n_channels] */
    sn_sequence B, C;  /* [n_states] */
} sn_selective_scan;

/*
 * One step of n_rows rows of a matrix recurrence that is row-major: S[row i][column j], rows n
 * floats long and one after the other. Sums over j have 16 lanes and one tree, as the reductions.
 *   p[i]    = sum over j of S[i][j] u[j]                  the old S
 *   S[i][j] = (S[i][j] w[j] - p[i] b[j]) + v[i] k[j]
 *   y[i]    = sum over j of S[i][j] r[j]                  the new S
 * What is NULL is left out: w, its product; u, p; p, writing it; b, or u, the correction; v, or k,
 * the outer product; r, or y, the read-out.
 */
typedef struct sn_rank1_rows_scan {
    float *S;
    const float *w, *u, *k, *b, *r; /* [n] */
    const float *v;                 /* [n_rows] */
    float *y, *p;                   /* [n_rows] */
    size_t n_rows, n;
} sn_rank1_rows_scan;

/*
 * Rows of 4-bit codes in groups against activations of 8 bits, each group with a scale of its own:
 *   y[o] = sum over groups g, ascending from +0, of (scale[o][g] x_scale[g]) float(t[o][g])
 *   t    = sum over the group of code x - x_offset[g]             exact integers
 * A group is half bytes: byte k holds element k in its low bits and k + half in its high ones. x
 * comes in chunks of 64 (32 for low bits, then 32 for high ones) filled up with zeros, half / 32
 * chunks rounded up a group; x is in -127..127.
 */
typedef struct sn_gemv_i4 {
    float *y;
    const uint8_t *codes; /* [n_rows][n_groups][half] */
    const float *scale;   /* [n_rows][n_groups] */
    const int8_t *x;
    const float *x_scale;    /* [n_groups] */
    const int64_t *x_offset; /* [n_groups] 8 times the sum of x */
    size_t n_rows, n_groups, half;
} sn_gemv_i4;

typedef struct sn_simd {
    const char *name;

    /* ---- matrix products, by layout; q8 is NULL for the float layouts ---- */
    sn_matmul_f32 matmul_f32[SN_LAYOUT_COUNT];
    sn_matmul_q8 matmul_q8[SN_LAYOUT_COUNT];

    /*
     * One row of k (a multiple of 32) activations to int8 blocks. amax = max |x| of a block;
     * below 2^-100 the block is zero (scale 0); else q = rne(x * (127 / amax)), scale =
     * amax / 127. Returns 0 if a value is a NaN or infinite (outputs then undefined), else 1.
     */
    int (*quantize_q8)(int8_t *q, float *scale, int32_t *sum, const float *x, size_t k);

    /*
     * The same for I4, by the seed's rule: blocks of 64 (k is a multiple), scale = amax / 127,
     * q = rne(x * (1 / scale)).
     */
    int (*quantize_i4)(int8_t *q, float *scale, int32_t *sum, const float *x, size_t k);

    /* ---- element-wise functions; error bounds in simd/vmath.inl ---- */
    sn_map exp, tanh, sigmoid, log1p, softplus;
    sn_map log_sigmoid;  /* -softplus(-x) */
    sn_map silu;         /* x sigmoid(x) */
    sn_map elu_plus_one; /* x + 1 where x > 0, else exp(x) */
    sn_map relu;         /* max(0, x) */
    sn_map relu_squared; /* max(0, x)^2 */
    sn_map one_minus;    /* 1 - x */
    sn_map decay_rwkv7;  /* exp(-exp(-1/2) sigmoid(x)) */

    /* ---- element-wise arithmetic ---- */
    void (*add)(float *y, const float *a, const float *b, size_t n);      /* a + b */
    void (*sub)(float *y, const float *a, const float *b, size_t n);      /* a - b */
    void (*mul)(float *y, const float *a, const float *b, size_t n);      /* a b */
    void (*mul_silu)(float *y, const float *a, const float *b, size_t n); /* a (b sigmoid(b)) */
    void (*mla)(float *y, const float *a, const float *b, const float *c, size_t n); /* a b + c */
    void (*lerp)(float *y, const float *a, const float *b, const float *m,
                 size_t n); /* a + m (b - a) */
    void (*axpy)(float *y, float a, const float *x, size_t n);  /* y + a x */
    void (*scale)(float *y, float a, const float *x, size_t n); /* a x */
    void (*clamp)(float *y, const float *x, float low, float high, size_t n); /* a NaN stays */
    /* SunnyNet's wedge: x (1 + a / (1 + |x|)) */
    void (*wedge)(float *y, float a, const float *x, size_t n);

    /* ---- reductions: 16 lanes, one tree ---- */
    /* y = (x - mean) / sqrt(var + eps) * weight + bias; population variance */
    void (*layer_norm)(float *y, const float *x, const float *weight, const float *bias, size_t n,
                       float eps);
    /* y = x / sqrt(mean x^2 + eps) * weight */
    void (*rms_norm)(float *y, const float *x, const float *weight, size_t n, float eps);
    /* y = x / max(sqrt(sum x^2), floor) */
    void (*l2_normalize)(float *y, const float *x, size_t n, float floor);
    /* y = x / sqrt(sum x^2 + eps) */
    void (*l2_normalize_eps)(float *y, const float *x, size_t n, float eps);
    /* y = x / sum x */
    void (*sum_normalize)(float *y, const float *x, size_t n);
    float (*root)(float x); /* square root */
    /* sum of a b c */
    float (*dot3)(const float *a, const float *b, const float *c, size_t n);

    /* ---- over time (simd/scans.inl) ---- */
    /* Causal depthwise convolution of one token: y[i] = bias[i] (or +0) + w[0][i] rows[0][i] + ...
     * in ascending taps; w is [n_taps][n], rows the oldest input first. bias may be NULL. */
    void (*conv)(float *y, const float *const *rows, const float *w, const float *bias,
                 size_t n_taps, size_t n);
    void (*recur_scan)(const sn_recur *scan);
    void (*recur_reverse)(const sn_recur_reverse *scan);
    void (*rank1_scan)(const sn_matrix_scan *scan);
    void (*outer_scan)(const sn_matrix_scan *scan);
    void (*selective_scan)(const sn_selective_scan *scan);

    /* ---- what only the seed's interface has (simd/rank1_rows.inl, simd/gemv_i4.inl) ---- */
    void (*rank1_rows)(const sn_rank1_rows_scan *scan);
    void (*gemv_i4)(const sn_gemv_i4 *product);
} sn_simd;

/* Tables linked in, slowest first; index 0 is the scalar one. NULL past the end. */
const sn_simd *sn_simd_at(size_t index);

/* 1 if this CPU and its operating system can run the table. */
int sn_simd_usable(const sn_simd *table);

/* By name; NULL if it is not linked in. */
const sn_simd *sn_simd_find(const char *name);

/* The name in SN_ISA, or NULL if the variable is unset or empty. */
const char *sn_simd_wanted(void);

/* The fastest usable table. */
const sn_simd *sn_simd_best(void);

#endif
