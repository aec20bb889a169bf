/*
 * matmul.inl: panel matrices times tokens, for every layout of core/quant/panel.h, once over
 * the vector and dot headers. One token keeps its sums in registers with VF_PANELS (integers:
 * DOT_PANELS) panels in flight; more tokens share each panel's block, their running sums standing
 * close together in memory. Both add in the same order, so their bits agree (simd.h states it).
 */

#include "layout.inl"

/* Running sums [token][16] stand close together while a panel is read: rows of y often lie a
 * multiple of 4 KiB apart, and would share a few sets of the first-level cache. */
#define MOST_TOKENS 64

SN_INLINE void copy_sums(float *y, size_t y_stride, const float *sums, size_t n_tokens) {
    for (size_t t = 0; t < n_tokens; t++) vf_store(y + t * y_stride, vf_load(sums + 16 * t));
}

#include "matmul_float.inl"

#include "matmul_int8.inl"

/* The loops of a chunk are a function of their own: in one with those of a token, both want the
 * registers. */
#define DEFINE_MATMUL_F32(LAYOUT)                                                             \
    SN_NOINLINE void chunk_f32_##LAYOUT(                                                      \
        float *y, size_t y_stride, const uint8_t *panels, size_t panel_bytes,                 \
        size_t n_panels, size_t k, const float *x, size_t x_stride, size_t n_tokens) {        \
        matmul_float_chunk(SN_LAYOUT_##LAYOUT, y, y_stride, panels, panel_bytes, n_panels, k, \
                           x, x_stride, n_tokens);                                            \
    }                                                                                         \
    static void matmul_f32_##LAYOUT(float *y, size_t y_stride, const uint8_t *panels,         \
                                    size_t panel_bytes, size_t n_panels, size_t k,            \
                                    const float *x, size_t x_stride, size_t n_tokens) {       \
        if (!matmul_float_few(SN_LAYOUT_##LAYOUT, y, y_stride, panels, panel_bytes, n_panels, \
                              k, x, x_stride, n_tokens))                                      \
            chunk_f32_##LAYOUT(y, y_stride, panels, panel_bytes, n_panels, k, x, x_stride,    \
                               n_tokens);                                                     \
    }
#define DEFINE_MATMUL(LAYOUT)                                                                 \
    DEFINE_MATMUL_F32(LAYOUT)                                                                 \
    static void matmul_q8_##LAYOUT(float *y, size_t y_stride, const uint8_t *panels,          \
                                   size_t panel_bytes, size_t n_panels, size_t k,             \
                                   sn_q8_rows x, size_t n_tokens) {                           \
        matmul_int8(SN_LAYOUT_##LAYOUT, y, y_stride, panels, panel_bytes, n_panels, k, x,     \
                    n_tokens);                                                                \
    }

DEFINE_MATMUL_F32(F32)
DEFINE_MATMUL_F32(F16)
DEFINE_MATMUL_F32(BF16)
DEFINE_MATMUL(Q8_0)
DEFINE_MATMUL(Q4_0)
DEFINE_MATMUL(Q4_1)
DEFINE_MATMUL(Q5_0)
DEFINE_MATMUL(Q5_1)
DEFINE_MATMUL(Q4_K)
DEFINE_MATMUL(Q5_K)
DEFINE_MATMUL(Q6_K)
DEFINE_MATMUL(Q2_K)
DEFINE_MATMUL(Q3_K)
DEFINE_MATMUL(IQ4_NL)
DEFINE_MATMUL(IQ4_XS)
DEFINE_MATMUL(I4)
