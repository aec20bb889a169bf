/*
 * matmul_int8.inl: panels of integer codes times activations in blocks of int8.
 */

SN_INLINE vi q8_halves(const block_scales *s, vi first, vi second) {
    return vi_add(vi_mul(s->part[0], first), vi_mul(s->part[1], second));
}

SN_INLINE vf q8_min_halves(const block_scales *s, const int32_t *sum) {
    return vf_of_int(vi_add(vi_mul(s->min_part[0], vi_set1(sum[0])),
                            vi_mul(s->min_part[1], vi_set1(sum[1]))));
}

/* acc += a block's totals: of its products, and what its minimum is multiplied by. */
SN_INLINE vf q8_block_add(sn_layout layout, const block_scales *s, vi total, vf min_total,
                          float x_scale, vf acc) {
    const vf xs = vf_set1(x_scale);
    acc = vf_add(acc, vf_mul(vf_of_int(total), vf_mul(s->scale, xs)));
    return traits_of(layout).has_min ? vf_add(acc, vf_mul(min_total, vf_mul(s->min, xs))) : acc;
}

/*
 * acc += block b of one panel for the token whose rows begin at q, scale and sum. Totals stay
 * below 2^24. In halves, with |q| <= 127: Q6_K 2 x 16 x 32 x 127 x 128, Q3_K less even where
 * its scale fills a byte, Q2_K 2 x 16 x 3 x 127 x 15, its minimum 2 x 16 x 127 x 15. The code
 * book: 32 x 127 x 127. I4: 64 x 8 x 127.
 */
SN_INLINE vf q8_block_end(sn_layout layout, const block_scales *s, const vdot *dot, float x_scale,
                          const int32_t *sum, vf acc) {
    const layout_traits t = traits_of(layout);
    const int32_t block_sum = sum[0] + sum[1];
    vf min_total = vf_set1((float)block_sum);
    vi total;
    if (groups_of(layout) == 2) {
        total = vi_add(dot_total(&dot[0], t.dot_bits, -t.offset * sum[0]),
                       dot_total(&dot[1], t.dot_bits, -t.offset * sum[1]));
    } else if (t.halves == 2) {
        total = q8_halves(s, dot_total(&dot[0], t.dot_bits, -t.offset * sum[0]),
                          dot_total(&dot[1], t.dot_bits, -t.offset * sum[1]));
    } else {
        total = dot_total(&dot[0], t.dot_bits, -t.offset * block_sum);
    }
    if (layout == SN_LAYOUT_Q2_K) min_total = q8_min_halves(s, sum);
    return q8_block_add(layout, s, total, min_total, x_scale, acc);
}

/* For words g of a group. A back end with much to lose says which of these loops are unrolled:
 * DOT_UNROLLS(bits) for one token, DOT_UNROLLS_TILE(bits) for several. */
#ifdef DOT_UNROLLS
#define EACH_WORD(unrolled, from, to, STATEMENT)                                              \
    do {                                                                                      \
        if (unrolled)                                                                         \
            _Pragma("clang loop unroll(full)") for (int g = from; g < to; g++) STATEMENT;     \
        else _Pragma("clang loop unroll(disable)") for (int g = from; g < to; g++) STATEMENT; \
    } while (0)
#else
#define EACH_WORD(unrolled, from, to, STATEMENT)                                              \
    SN_UNROLL for (int g = from; g < to; g++) STATEMENT
#endif

/* Which of a block's two dots word g, 0..7, of group i is added to. */
SN_INLINE size_t dot_of(sn_layout layout, size_t i, int g) {
    return groups_of(layout) == 2 ? i : (size_t)(g * traits_of(layout).halves / 8);
}

#ifdef DOT_NEAR
SN_INLINE vdot dot_start(void) { return dot_start_at(0); }
#endif

/* As dot_add(), with the activations in memory. */
#ifndef DOT_HAS_ADD_AT
SN_INLINE void dot_add_at(vdot *a, int bits, int g, vi w, const int8_t *x) {
    dot_add(a, bits, g, w, load_i32(x));
}
#endif

/* Word g of group i of a block for nt tokens, whose activations begin at q, to dot d of each. */
SN_INLINE void q8_word(sn_layout layout, int nt, vdot dot[][2], size_t d, const vi *words,
                       size_t i, int g, const int8_t *q, size_t q_stride) {
    const vi w = vi_load(words + 8 * i + g);
    SN_UNROLL for (int t = 0; t < nt; t++)
        dot_add_at(&dot[t][d], traits_of(layout).dot_bits, g, w,
                   q + (size_t)t * q_stride + 4 * g);
}

/* Words from .. to-1 of such a group. */
SN_INLINE void q8_words(sn_layout layout, int nt, vdot dot[][2], size_t d, const vi *words,
                        size_t i, int from, int to, const int8_t *q, size_t q_stride) {
    EACH_WORD(DOT_UNROLLS_TILE(traits_of(layout).dot_bits), from, to,
              q8_word(layout, nt, dot, d, words, i, g, q, q_stride));
}

/* sums[t] += block b for nt tokens; `words` are the block's code words, eight a group. */
SN_INLINE void q8_tile(sn_layout layout, int nt, float *sums, const vi *words,
                       const block_scales *s, sn_q8_rows x, size_t b) {
    const size_t groups = groups_of(layout);
    const int8_t *q = x.q + 32 * groups * b;
    vdot dot[8][2];
    SN_UNROLL for (int t = 0; t < nt; t++) dot[t][0] = dot[t][1] = dot_start();
    if (traits_of(layout).halves == 2) {
        q8_words(layout, nt, dot, 0, words, 0, 0, 4, q, x.q_stride);
        q8_words(layout, nt, dot, 1, words, 0, 4, 8, q, x.q_stride);
    } else {
        SN_UNROLL for (size_t i = 0; i < groups; i++, q += 32)
            q8_words(layout, nt, dot, i, words, i, 0, 8, q, x.q_stride);
    }
    SN_UNROLL for (int t = 0; t < nt; t++) {
        const size_t row = (size_t)t * x.q_stride;
        vf_store(sums + 16 * t, q8_block_end(layout, s, dot[t], x.scale[row / 32 + b],
                                             x.sum + row / 16 + 2 * b, vf_load(sums + 16 * t)));
    }
}

SN_INLINE sn_q8_rows q8_from_token(sn_q8_rows x, size_t t) {
    return (sn_q8_rows){ x.q + t * x.q_stride, x.scale + t * (x.q_stride / 32),
                         x.sum + t * (x.q_stride / 16), x.q_stride };
}

/* One panel for up to MOST_TOKENS tokens. */
SN_INLINE void q8_panel(sn_layout layout, float *y, size_t y_stride, const uint8_t *panel,
                        size_t panel_bytes, size_t k, sn_q8_rows x, size_t n_tokens) {
    const size_t groups = groups_of(layout), quants = traits_of(layout).quants;
    SN_ALIGN64 vi words[16];
    SN_ALIGN64 float sums[MOST_TOKENS * 16];
    memset(sums, 0, n_tokens * 64);
    for (size_t b = 0; b < k / (32 * groups); b++) {
        const uint8_t *block = block_at(layout, panel, b);
        prefetch_block(panel, (size_t)(block - panel), traits_of(layout).block, panel_bytes, 1);
        const block_factors factors = factors_of(layout, panel, b);
        const block_scales s = scales_of(layout, &factors, block);
        for (size_t i = 0; i < groups; i++)
            for (int g = 0; g < 8; g++)
                words[8 * i + (size_t)g] = code_word(layout, block + i * quants, g);
        size_t t = 0;
#define Q8_TILE(NT)                                                                           \
    for (; t + (NT) <= n_tokens; t += (NT))                                                   \
        q8_tile(layout, NT, sums + 16 * t, words, &s, q8_from_token(x, t), b)
        Q8_TILE(VQ_TILE);
        Q8_TILE(1);
#undef Q8_TILE
    }
    copy_sums(y, y_stride, sums, n_tokens);
}

/* The same for one token, from the codes as they are stored. */
SN_INLINE void q8_gemv_word(sn_layout layout, vdot dot[2], const uint8_t *quants,
                            const uint8_t *ahead, size_t i, int g, const int8_t *q) {
    const layout_traits t = traits_of(layout);
    const size_t line = 64 * (8 * i + (size_t)g);
    if (line < t.block) prefetch(ahead + line);
    dot_add(&dot[dot_of(layout, i, g)], t.dot_bits, g,
            code_word(layout, quants + i * t.quants, g), load_i32(q + 4 * g));
}

/* acc += the block at `block` for one token. */
SN_INLINE vf q8_gemv_block(sn_layout layout, const block_factors *factors, const uint8_t *block,
                           const uint8_t *ahead, sn_q8_rows x, size_t b, vf acc) {
    const size_t groups = groups_of(layout);
    vdot dot[2] = { dot_start(), dot_start() };
    SN_UNROLL for (size_t i = 0; i < groups; i++) {
        const int8_t *q = x.q + 32 * (groups * b + i);
        EACH_WORD(DOT_UNROLLS(traits_of(layout).dot_bits), 0, 8,
                  q8_gemv_word(layout, dot, block, ahead, i, g, q));
    }
    const block_scales s = scales_of(layout, factors, block);
    return q8_block_end(layout, &s, dot, x.scale[b], x.sum + 2 * b, acc);
}

/* Panels in flight for one token, by the layout's traits. */
#ifndef DOT_PANELS
#define DOT_PANELS(traits) VQ_PANELS
#endif
#define MOST_PANELS 4

/* One token, np panels in flight; a run of blocks shares a header. */
SN_INLINE void q8_gemv(sn_layout layout, size_t np, float *y, const uint8_t *panels,
                       size_t panel_bytes, size_t k, sn_q8_rows x) {
    const layout_traits t = traits_of(layout);
    const size_t blocks = k / (32 * groups_of(layout)), run = t.header ? 8 : blocks;
    vf acc[MOST_PANELS];
    SN_UNROLL for (size_t p = 0; p < np; p++) acc[p] = vf_zero();
    for (size_t b0 = 0, at = 0; b0 < blocks; b0 += run) {
        block_factors factors[MOST_PANELS];
        SN_UNROLL for (size_t p = 0; p < np; p++)
            factors[p] = factors_of(layout, panels + p * panel_bytes, b0);
        at += t.header;
        for (size_t b = b0; b < b0 + run; b++, at += t.block) {
            SN_UNROLL for (size_t p = 0; p < np; p++) {
                const uint8_t *panel = panels + p * panel_bytes;
                acc[p] = q8_gemv_block(layout, &factors[p], panel + at,
                                       ahead_of(panel, at, panel_bytes, np), x, b, acc[p]);
            }
        }
    }
    SN_UNROLL for (size_t p = 0; p < np; p++) vf_store(y + 16 * p, acc[p]);
}

#ifdef DOT_NEAR
#include "matmul_near.inl"
#endif

SN_INLINE void q8_panels(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                         size_t panel_bytes, size_t n_panels, size_t k, sn_q8_rows x,
                         size_t n_tokens) {
#ifdef DOT_NEAR
    if (groups_of(layout) == 1 && DOT_NEAR(traits_of(layout).dot_bits)) {
        q8_panels_near(layout, y, y_stride, panels, panel_bytes, n_panels, k, x, n_tokens);
        return;
    }
#endif
    for (size_t p = 0; p < n_panels; p++)
        for (size_t t = 0; t < n_tokens; t += MOST_TOKENS)
            q8_panel(layout, y + 16 * p + t * y_stride, y_stride, panels + p * panel_bytes,
                     panel_bytes, k, q8_from_token(x, t),
                     n_tokens - t < MOST_TOKENS ? n_tokens - t : MOST_TOKENS);
}

SN_INLINE void matmul_int8(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                           size_t panel_bytes, size_t n_panels, size_t k, sn_q8_rows x,
                           size_t n_tokens) {
    if (n_tokens != 1) {
        q8_panels(layout, y, y_stride, panels, panel_bytes, n_panels, k, x, n_tokens);
        return;
    }
    const size_t np = DOT_PANELS(traits_of(layout));
    size_t p = 0;
    for (; p + np <= n_panels; p += np)
        q8_gemv(layout, np, y + 16 * p, panels + p * panel_bytes, panel_bytes, k, x);
    for (; p < n_panels; p++)
        q8_gemv(layout, 1, y + 16 * p, panels + p * panel_bytes, panel_bytes, k, x);
}
