/*
 * matmul.inl: panel matrices times tokens, for every layout of core/quant/panel.h, once over
 * the vector and dot headers. One token keeps its sums in registers with VF_PANELS (integers:
 * VQ_PANELS) panels in flight; more tokens share each panel's block, their running sums standing
 * close together in memory. Both add in the same order, so their bits agree (simd.h states it).
 */

#define PREFETCH_AHEAD 4096 /* bytes, of all panels in flight together */

/* ---- what a layout looks like ----------------------------------------------------------- */

typedef struct layout_traits {
    int bits;       /* of a stored code; 0: a float layout */
    int dot_bits;   /* of the code u it stands for: 8 where that comes from the code book */
    int offset;     /* q = u - offset */
    int halves;     /* 2: each half of a block has a part of the scale to itself, else 1 */
    int has_min;    /* weight = scale * q + min */
    size_t quants;  /* bytes of 16 rows x 32 codes */
    size_t block;   /* quants and scales; of a float layout: one k */
    size_t header;  /* bytes before every eight blocks */
} layout_traits;

/* How often a block has 32 codes: the block of I4 is 64, its quants lie one after the other. */
SN_INLINE size_t groups_of(sn_layout layout) { return layout == SN_LAYOUT_I4 ? 2 : 1; }

SN_INLINE layout_traits traits_of(sn_layout layout) {
    switch (layout) {
    case SN_LAYOUT_F32: return (layout_traits){ .block = 64 };
    case SN_LAYOUT_F16:
    case SN_LAYOUT_BF16: return (layout_traits){ .block = 32 };
    case SN_LAYOUT_Q8_0: return (layout_traits){ 8, 8, 128, 1, 0, 512, 544, 0 };
    case SN_LAYOUT_Q4_0: return (layout_traits){ 4, 4, 8, 1, 0, 256, 288, 0 };
    case SN_LAYOUT_Q4_1: return (layout_traits){ 4, 4, 0, 1, 1, 256, 320, 0 };
    case SN_LAYOUT_Q5_0: return (layout_traits){ 5, 5, 16, 1, 0, 320, 352, 0 };
    case SN_LAYOUT_Q5_1: return (layout_traits){ 5, 5, 0, 1, 1, 320, 384, 0 };
    case SN_LAYOUT_Q2_K: return (layout_traits){ 2, 2, 0, 2, 1, 128, 160, 64 };
    case SN_LAYOUT_Q3_K: return (layout_traits){ 3, 3, 4, 2, 0, 192, 224, 32 };
    case SN_LAYOUT_Q4_K: return (layout_traits){ 4, 4, 0, 1, 1, 256, 288, 64 };
    case SN_LAYOUT_Q5_K: return (layout_traits){ 5, 5, 0, 1, 1, 320, 352, 64 };
    case SN_LAYOUT_IQ4_NL: return (layout_traits){ 4, 8, 128, 1, 0, 256, 288, 0 };
    case SN_LAYOUT_IQ4_XS: return (layout_traits){ 4, 8, 128, 1, 0, 256, 272, 32 };
    case SN_LAYOUT_I4: return (layout_traits){ 4, 4, 8, 1, 0, 256, 576, 0 };
    default: return (layout_traits){ 6, 6, 32, 2, 0, 384, 416, 32 }; /* Q6_K */
    }
}

/* Where block b of a panel begins. */
SN_INLINE const uint8_t *block_at(sn_layout layout, const uint8_t *panel, size_t b) {
    const layout_traits t = traits_of(layout);
    return t.header ? panel + b / 8 * (t.header + 8 * t.block) + t.header + b % 8 * t.block
                    : panel + b * t.block;
}

/* What a nibble of the IQ4 types stands for, plus 128: -127 -104 -83 -65 -49 -35 -22 -10 1 13 25
 * 38 53 69 89 113. */
static const uint8_t iq4_book[16] = {
    1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241
};

/* Bits that stand at `from` of every byte, moved to `to`. */
SN_INLINE vi move_bits(vi bits, int from, int to) {
    return from >= to ? vi_shr(bits, from - to) : vi_shl(bits, to - from);
}

/* Two bits of the codes g of each row, from two words; one bit, from one; to stand at `to`. */
SN_INLINE vi code_pairs(const uint8_t *words, int g, int to) {
    return vi_and(move_bits(vi_load(words + 64 * (g >> 2)), 2 * (g & 3), to),
                  vi_set1(0x03030303 << to));
}
SN_INLINE vi code_bits(const uint8_t *word, int g, int to) {
    return vi_and(move_bits(vi_load(word), g, to), vi_set1(0x01010101 << to));
}

/* The four codes u of k = 4g .. 4g+3 of each row. */
SN_INLINE vi code_word(sn_layout layout, const uint8_t *quants, int g) {
    const int bits = traits_of(layout).bits;
    if (bits == 8) return vi_load(quants + 64 * g);
    if (bits == 2) return code_pairs(quants, g, 0);
    if (bits == 3) return vi_or(code_pairs(quants, g, 0), code_bits(quants + 128, g, 2));
    vi nibbles = vi_load(quants + 64 * (g & 3));
    vi word = vi_and(g < 4 ? nibbles : vi_shr(nibbles, 4), vi_set1(0x0f0f0f0f));
    if (bits == 5) word = vi_or(word, code_bits(quants + 256, g, 4));
    if (bits == 6) word = vi_or(word, code_pairs(quants + 256, g, 4));
    if (layout == SN_LAYOUT_IQ4_NL || layout == SN_LAYOUT_IQ4_XS)
        word = dot_lookup(word, iq4_book);
    return word;
}

/* 16 weights of a float layout. */
SN_INLINE vf load_weights(sn_layout layout, const uint8_t *p) {
    if (layout == SN_LAYOUT_F16) return vf_load_f16(p);
    if (layout == SN_LAYOUT_BF16) return vf_load_bf16(p);
    return vf_load((const float *)(const void *)p);
}

/* A block's scales: weight = scale * q + min; with parts for the halves of the block it is
 * scale * part[half] * q, and for Q2_K + min * min_part[half]. */
typedef struct block_scales {
    vf scale, min;
    vi part[2], min_part[2];
} block_scales;

/* Of eight blocks with a header: the factor of their scales and that of their minima, < 0. */
typedef struct block_factors { vf scale, min; } block_factors;

SN_INLINE block_factors factors_of(sn_layout layout, const uint8_t *panel, size_t b) {
    const layout_traits t = traits_of(layout);
    const uint8_t *header = panel + b / 8 * (t.header + 8 * t.block);
    block_factors f = { vf_zero(), vf_zero() };
    if (!t.header) return f;
    f.scale = vf_load_f16(header);
    if (t.has_min) f.min = vf_neg(vf_load_f16(header + 32));
    return f;
}

/* The scales of the block at `block`. */
SN_INLINE block_scales scales_of(sn_layout layout, const block_factors *f, const uint8_t *block) {
    const layout_traits t = traits_of(layout);
    const uint8_t *scales = block + groups_of(layout) * t.quants;
    block_scales s;
    if (layout == SN_LAYOUT_I4) {
        s.scale = load_weights(SN_LAYOUT_F32, scales);
    } else if (!t.header) {
        s.scale = vf_load_f16(scales);
        if (t.has_min) s.min = vf_load_f16(scales + 32);
    } else if (layout == SN_LAYOUT_Q2_K) {
        s.scale = f->scale, s.min = f->min;
        for (int h = 0; h < 2; h++) {
            const vi pair = vi_load_u8(scales + 16 * h);
            s.part[h] = vi_and(pair, vi_set1(15));
            s.min_part[h] = vi_shr(pair, 4);
        }
    } else if (t.halves == 2) { /* Q3_K, Q6_K */
        s.scale = f->scale;
        for (int h = 0; h < 2; h++) s.part[h] = vi_load_i8(scales + 16 * h);
    } else if (!t.has_min) { /* IQ4_XS */
        s.scale = vf_mul(f->scale, vf_of_int(vi_load_i8(scales)));
    } else {
        s.scale = vf_mul(f->scale, vf_of_int(vi_load_u8(scales)));
        s.min = vf_mul(f->min, vf_of_int(vi_load_u8(scales + 16)));
    }
    return s;
}

/* What will be read when np panels in flight have gone PREFETCH_AHEAD bytes on from offset `at`:
 * behind a panel's end its successor in the same stream, np panels on. */
SN_INLINE const uint8_t *ahead_of(const uint8_t *panel, size_t at, size_t panel_bytes, int np) {
    at += (size_t)(PREFETCH_AHEAD / np);
    return panel + (at < panel_bytes ? at : at + (size_t)(np - 1) * panel_bytes);
}

/* A block's bytes that far ahead. */
SN_INLINE void prefetch_block(const uint8_t *panel, size_t at, size_t bytes, size_t panel_bytes,
                              int np) {
    const uint8_t *ahead = ahead_of(panel, at, panel_bytes, np);
    for (size_t line = 0; line < bytes; line += 64) prefetch(ahead + line);
}

/* ---- float activations -------------------------------------------------------------------- */

/* The 32 codes from 32 i on as float32 [32][16], exactly as the layout's format decodes. */
SN_INLINE void decode_block(sn_layout layout, float *w, const uint8_t *panel, size_t i) {
    const layout_traits t = traits_of(layout);
    const size_t b = i / groups_of(layout);
    const block_factors factors = factors_of(layout, panel, b);
    const uint8_t *block = block_at(layout, panel, b);
    const block_scales s = scales_of(layout, &factors, block);
    const uint8_t *quants = block + i % groups_of(layout) * t.quants;
    for (int g = 0; g < 8; g++) {
        vi word = code_word(layout, quants, g);
        vf scale = s.scale, min = s.min;
        if (t.halves == 2) scale = vf_mul(scale, vf_of_int(s.part[g / 4]));
        if (layout == SN_LAYOUT_Q2_K) min = vf_mul(min, vf_of_int(s.min_part[g / 4]));
        for (int j = 0; j < 4; j++) {
            vi code = vi_and(vi_shr(word, 8 * j), vi_set1(0xff));
            vf value = vf_mul(scale, vf_of_int(vi_sub(code, vi_set1(t.offset))));
            if (t.has_min) value = vf_add(value, min);
            vf_store(w + 16 * (4 * g + j), value);
        }
    }
}

/* k0 .. k0+n-1 of a panel as float32 [n][16]: in place if it is float32, else in `buffer`. */
SN_INLINE const float *float_block(sn_layout layout, float *buffer, const uint8_t *panel,
                                   size_t k0, size_t n) {
    if (layout == SN_LAYOUT_F32) return (const float *)(const void *)(panel + 64 * k0);
    if (layout == SN_LAYOUT_F16 || layout == SN_LAYOUT_BF16) {
        for (size_t i = 0; i < n; i++)
            vf_store(buffer + 16 * i, load_weights(layout, panel + 32 * (k0 + i)));
    } else {
        decode_block(layout, buffer, panel, k0 / 32);
    }
    return buffer;
}

/* Running sums [token][16] stand close together while a panel is read: rows of y often lie a
 * multiple of 4 KiB apart, and would share a few sets of the first-level cache. */
#define MOST_TOKENS 64

SN_INLINE void copy_sums(float *y, size_t y_stride, const float *sums, size_t n_tokens) {
    for (size_t t = 0; t < n_tokens; t++) vf_store(y + t * y_stride, vf_load(sums + 16 * t));
}

/* sums[t] += the block's for nt tokens. */
SN_INLINE void float_tile(int nt, float *sums, const float *w, size_t n, const float *x,
                          size_t x_stride) {
    vf sum[8];
    SN_UNROLL for (int t = 0; t < nt; t++) sum[t] = vf_zero();
    for (size_t i = 0; i < n; i++) {
        const vf wi = vf_load(w + 16 * i);
        SN_UNROLL for (int t = 0; t < nt; t++)
            sum[t] = vf_mla(wi, vf_set1(x[(size_t)t * x_stride + i]), sum[t]);
    }
    SN_UNROLL for (int t = 0; t < nt; t++)
        vf_store(sums + 16 * t, vf_add(vf_load(sums + 16 * t), sum[t]));
}

/* One panel for up to MOST_TOKENS tokens. */
SN_INLINE void float_panel(sn_layout layout, float *y, size_t y_stride, const uint8_t *panel,
                           size_t k, const float *x, size_t x_stride, size_t n_tokens) {
    SN_ALIGN64 float buffer[32 * 16], sums[MOST_TOKENS * 16];
    memset(sums, 0, n_tokens * 64);
    for (size_t k0 = 0; k0 < k; k0 += 32) {
        const size_t n = k - k0 < 32 ? k - k0 : 32;
        const float *w = float_block(layout, buffer, panel, k0, n);
        size_t t = 0;
#define FLOAT_TILE(NT)                                                                        \
    for (; t + (NT) <= n_tokens; t += (NT))                                                   \
        float_tile(NT, sums + 16 * t, w, n, x + t * x_stride + k0, x_stride)
        FLOAT_TILE(VF_TILE);
        FLOAT_TILE(2);
        FLOAT_TILE(1);
#undef FLOAT_TILE
    }
    copy_sums(y, y_stride, sums, n_tokens);
}

/*
 * Where half floats are widened by shifts, they come out 2^-112 of their value. The power may
 * as well stand beside x: both factors are exact, and the product of the same two numbers is
 * rounded, if no x leaves float32.
 */
#ifdef VF_HAS_F16_SMALL
SN_INLINE int small_f16_fits(const float *x, size_t k, size_t x_stride, size_t n_tokens) {
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t i = 0; i < k; i++)
            if (!(__builtin_fabsf(x[t * x_stride + i]) < 0x1p15f)) return 0; /* a NaN too */
    return 1;
}
#else
SN_INLINE int small_f16_fits(const float *x, size_t k, size_t x_stride, size_t n_tokens) {
    return (void)x, (void)k, (void)x_stride, (void)n_tokens, 0;
}
SN_INLINE vf vf_load_f16_small(const uint8_t *p) { return vf_load_f16(p); }
#endif

/* One token, np panels of a float layout in flight; with `small`, F16 as above. */
SN_INLINE void float_gemv(sn_layout layout, int small, int np, float *y, const uint8_t *panels,
                          size_t panel_bytes, size_t k, const float *x) {
    const size_t row = traits_of(layout).block;
    vf total[VF_PANELS];
    SN_UNROLL for (int p = 0; p < np; p++) total[p] = vf_zero();
    for (size_t k0 = 0; k0 < k; k0 += 32) {
        const size_t end = k - k0 < 32 ? k : k0 + 32;
        vf sum[VF_PANELS];
        SN_UNROLL for (int p = 0; p < np; p++) sum[p] = vf_zero();
        for (size_t i = k0; i < end; i++) {
            const size_t at = i * row;
            const vf xi = vf_set1(small ? x[i] * 0x1p112f : x[i]);
            SN_UNROLL for (int p = 0; p < np; p++) {
                const uint8_t *panel = panels + (size_t)p * panel_bytes, *w = panel + at;
                if (at % 64 == 0) prefetch(ahead_of(panel, at, panel_bytes, np));
                const vf wi = small ? vf_load_f16_small(w) : load_weights(layout, w);
                sum[p] = vf_mla(wi, xi, sum[p]);
            }
        }
        SN_UNROLL for (int p = 0; p < np; p++) total[p] = vf_add(total[p], sum[p]);
    }
    SN_UNROLL for (int p = 0; p < np; p++) vf_store(y + 16 * p, total[p]);
}

/* Several tokens, if it is worth widening each weight for each: the second finds the panels in a
 * cache. */
SN_INLINE void float_gemvs(sn_layout layout, int small, float *y, size_t y_stride,
                           const uint8_t *panels, size_t panel_bytes, size_t n_panels, size_t k,
                           const float *x, size_t x_stride, size_t n_tokens) {
    size_t p = 0;
    for (; p + VF_PANELS <= n_panels; p += VF_PANELS)
        for (size_t t = 0; t < n_tokens; t++)
            float_gemv(layout, small, VF_PANELS, y + 16 * p + t * y_stride,
                       panels + p * panel_bytes, panel_bytes, k, x + t * x_stride);
    for (; p < n_panels; p++)
        for (size_t t = 0; t < n_tokens; t++)
            float_gemv(layout, small, 1, y + 16 * p + t * y_stride, panels + p * panel_bytes,
                       panel_bytes, k, x + t * x_stride);
}

SN_INLINE void matmul_float(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                            size_t panel_bytes, size_t n_panels, size_t k, const float *x,
                            size_t x_stride, size_t n_tokens) {
    const size_t few = layout == SN_LAYOUT_F32 ? 1 : VF_FEW;
    if (n_tokens <= few && layout <= SN_LAYOUT_BF16) {
        if (layout == SN_LAYOUT_F16 && small_f16_fits(x, k, x_stride, n_tokens))
            float_gemvs(layout, 1, y, y_stride, panels, panel_bytes, n_panels, k, x, x_stride,
                        n_tokens);
        else
            float_gemvs(layout, 0, y, y_stride, panels, panel_bytes, n_panels, k, x, x_stride,
                        n_tokens);
        return;
    }
    for (size_t p = 0; p < n_panels; p++)
        for (size_t t = 0; t < n_tokens; t += MOST_TOKENS)
            float_panel(layout, y + 16 * p + t * y_stride, y_stride, panels + p * panel_bytes, k,
                        x + t * x_stride, x_stride,
                        n_tokens - t < MOST_TOKENS ? n_tokens - t : MOST_TOKENS);
}

/* ---- int8 activations ---------------------------------------------------------------------- */

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

/* Whether the eight words of a block are unrolled where SN_UNROLL leaves it to the compiler. */
#ifndef DOT_UNROLLS
#define DOT_UNROLLS(bits) 0
#endif
#ifdef __clang__
#define UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define UNROLL_ALL SN_UNROLL
#endif

/* Which of a block's two dots word g, 0..7, of group i is added to. */
SN_INLINE int dot_of(sn_layout layout, size_t i, int g) {
    return groups_of(layout) == 2 ? (int)i : g * traits_of(layout).halves / 8;
}

/* As dot_add(), with the activations in memory. */
#ifndef DOT_HAS_ADD_AT
SN_INLINE void dot_add_at(vdot *a, int bits, int g, vi w, const int8_t *x) {
    dot_add(a, bits, g, w, load_i32(x));
}
#endif

/* Word g of group i of a block for nt tokens, whose activations begin at q. */
SN_INLINE void q8_word(sn_layout layout, int nt, vdot dot[][2], const vi *words, size_t i, int g,
                       const int8_t *q, size_t q_stride) {
    const vi w = vi_load(words + 8 * i + g);
    SN_UNROLL for (int t = 0; t < nt; t++)
        dot_add_at(&dot[t][dot_of(layout, i, g)], traits_of(layout).dot_bits, g, w,
                   q + (size_t)t * q_stride + 4 * g);
}

/* sums[t] += block b for nt tokens; `words` are the block's code words, eight a group. */
SN_INLINE void q8_tile(sn_layout layout, int nt, float *sums, const vi *words,
                       const block_scales *s, sn_q8_rows x, size_t b) {
    const size_t groups = groups_of(layout);
    const int8_t *q = x.q + 32 * groups * b;
    vdot dot[8][2];
    SN_UNROLL for (int t = 0; t < nt; t++) dot[t][0] = dot[t][1] = dot_start();
    SN_UNROLL for (size_t i = 0; i < groups; i++, q += 32) {
        if (DOT_UNROLLS(traits_of(layout).dot_bits))
            UNROLL_ALL for (int g = 0; g < 8; g++)
                q8_word(layout, nt, dot, words, i, g, q, x.q_stride);
        else
            SN_UNROLL for (int g = 0; g < 8; g++)
                q8_word(layout, nt, dot, words, i, g, q, x.q_stride);
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
        if (DOT_UNROLLS(traits_of(layout).dot_bits))
            UNROLL_ALL for (int g = 0; g < 8; g++)
                q8_gemv_word(layout, dot, block, ahead, i, g, q);
        else
            SN_UNROLL for (int g = 0; g < 8; g++)
                q8_gemv_word(layout, dot, block, ahead, i, g, q);
    }
    const block_scales s = scales_of(layout, factors, block);
    return q8_block_end(layout, &s, dot, x.scale[b], x.sum + 2 * b, acc);
}

/* One token, np panels in flight; a run of blocks shares a header. */
SN_INLINE void q8_gemv(sn_layout layout, int np, float *y, const uint8_t *panels,
                       size_t panel_bytes, size_t k, sn_q8_rows x) {
    const layout_traits t = traits_of(layout);
    const size_t blocks = k / (32 * groups_of(layout)), run = t.header ? 8 : blocks;
    vf acc[VQ_PANELS];
    SN_UNROLL for (int p = 0; p < np; p++) acc[p] = vf_zero();
    for (size_t b0 = 0, at = 0; b0 < blocks; b0 += run) {
        block_factors factors[VQ_PANELS];
        SN_UNROLL for (int p = 0; p < np; p++)
            factors[p] = factors_of(layout, panels + (size_t)p * panel_bytes, b0);
        at += t.header;
        for (size_t b = b0; b < b0 + run; b++, at += t.block) {
            SN_UNROLL for (int p = 0; p < np; p++) {
                const uint8_t *panel = panels + (size_t)p * panel_bytes;
                acc[p] = q8_gemv_block(layout, &factors[p], panel + at,
                                       ahead_of(panel, at, panel_bytes, np), x, b, acc[p]);
            }
        }
    }
    SN_UNROLL for (int p = 0; p < np; p++) vf_store(y + 16 * p, acc[p]);
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
    size_t p = 0;
    for (; p + VQ_PANELS <= n_panels; p += VQ_PANELS)
        q8_gemv(layout, VQ_PANELS, y + 16 * p, panels + p * panel_bytes, panel_bytes, k, x);
    for (; p < n_panels; p++)
        q8_gemv(layout, 1, y + 16 * p, panels + p * panel_bytes, panel_bytes, k, x);
}

/* ---- one function per layout ---------------------------------------------------------------- */

#define DEFINE_MATMUL_F32(LAYOUT)                                                             \
    static void matmul_f32_##LAYOUT(float *y, size_t y_stride, const uint8_t *panels,         \
                                    size_t panel_bytes, size_t n_panels, size_t k,            \
                                    const float *x, size_t x_stride, size_t n_tokens) {       \
        matmul_float(SN_LAYOUT_##LAYOUT, y, y_stride, panels, panel_bytes, n_panels, k, x,    \
                     x_stride, n_tokens);                                                     \
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
