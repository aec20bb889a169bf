/*
 * matmul_float.inl: panels times float activations, of every layout.
 */

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

/* sums += a block of n columns of one panel. */
SN_INLINE void float_tiles(float *sums, const float *w, size_t n, const float *x, size_t x_stride,
                           size_t n_tokens) {
    size_t t = 0;
#define FLOAT_TILE(NT)                                                                        \
    for (; t + (NT) <= n_tokens; t += (NT))                                                   \
        float_tile(NT, sums + 16 * t, w, n, x + t * x_stride, x_stride)
    FLOAT_TILE(VF_TILE);
#if VF_TILE > 4
    FLOAT_TILE(4);
#endif
    FLOAT_TILE(2);
    FLOAT_TILE(1);
#undef FLOAT_TILE
}

/* n columns of all tokens, [n_tokens][32]. */
SN_INLINE void float_fetch(float *rows, const float *x, size_t x_stride, size_t n,
                           size_t n_tokens) {
    for (size_t t = 0; t < n_tokens; t++)
        if (n == 32) memcpy(rows + 32 * t, x + t * x_stride, 4 * 32); /* whole vectors */
        else memcpy(rows + 32 * t, x + t * x_stride, 4 * n);
}

/* Up to VF_NEAR panels for up to MOST_TOKENS tokens. If it is more than one, they share the block's
 * columns of x, brought together as the sums are, and all stay in the first-level cache. */
SN_INLINE void float_panels(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                            size_t panel_bytes, size_t n_panels, size_t k, const float *x,
                            size_t x_stride, size_t n_tokens) {
    SN_ALIGN64 float buffer[32 * 16], sums[VF_NEAR][MOST_TOKENS * 16];
    SN_ALIGN64 float rows[VF_NEAR > 1 ? MOST_TOKENS * 32 : 1];
    const size_t bytes = 32 * panel_bytes / k; /* of a block */
    for (size_t p = 0; p < n_panels; p++) memset(sums[p], 0, n_tokens * 64);
    for (size_t k0 = 0; k0 < k; k0 += 32) {
        const size_t n = k - k0 < 32 ? k - k0 : 32;
        if (VF_NEAR > 1) float_fetch(rows, x + k0, x_stride, n, n_tokens);
        for (size_t p = 0; p < n_panels; p++) {
            const uint8_t *panel = panels + p * panel_bytes;
            prefetch_block(panel, k0 / 32 * bytes, bytes, panel_bytes, n_panels);
            const float *w = float_block(layout, buffer, panel, k0, n);
            if (VF_NEAR > 1) float_tiles(sums[p], w, n, rows, 32, n_tokens);
            else float_tiles(sums[p], w, n, x + k0, x_stride, n_tokens);
        }
    }
    for (size_t p = 0; p < n_panels; p++) copy_sums(y + 16 * p, y_stride, sums[p], n_tokens);
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
SN_INLINE void float_gemv(sn_layout layout, int small, size_t np, float *y, const uint8_t *panels,
                          size_t panel_bytes, size_t k, const float *x) {
    const size_t row = traits_of(layout).block;
    vf total[VF_PANELS];
    SN_UNROLL for (size_t p = 0; p < np; p++) total[p] = vf_zero();
    for (size_t k0 = 0; k0 < k; k0 += 32) {
        const size_t end = k - k0 < 32 ? k : k0 + 32;
        vf sum[VF_PANELS];
        SN_UNROLL for (size_t p = 0; p < np; p++) sum[p] = vf_zero();
        for (size_t i = k0; i < end; i++) {
            const size_t at = i * row;
            const vf xi = vf_set1(small ? x[i] * 0x1p112f : x[i]);
            SN_UNROLL for (size_t p = 0; p < np; p++) {
                const uint8_t *panel = panels + p * panel_bytes, *w = panel + at;
                if (at % 64 == 0) prefetch(ahead_of(panel, at, panel_bytes, np));
                const vf wi = small ? vf_load_f16_small(w) : load_weights(layout, w);
                sum[p] = vf_mla(wi, xi, sum[p]);
            }
        }
        SN_UNROLL for (size_t p = 0; p < np; p++) total[p] = vf_add(total[p], sum[p]);
    }
    SN_UNROLL for (size_t p = 0; p < np; p++) vf_store(y + 16 * p, total[p]);
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

/* So few tokens of a float layout that each goes alone: whether they are. */
SN_INLINE int matmul_float_few(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                               size_t panel_bytes, size_t n_panels, size_t k, const float *x,
                               size_t x_stride, size_t n_tokens) {
    if (layout > SN_LAYOUT_BF16 || n_tokens > (layout == SN_LAYOUT_F32 ? 1 : VF_FEW)) return 0;
    if (layout == SN_LAYOUT_F16 && small_f16_fits(x, k, x_stride, n_tokens))
        float_gemvs(layout, 1, y, y_stride, panels, panel_bytes, n_panels, k, x, x_stride,
                    n_tokens);
    else
        float_gemvs(layout, 0, y, y_stride, panels, panel_bytes, n_panels, k, x, x_stride,
                    n_tokens);
    return 1;
}

SN_INLINE void matmul_float_chunk(sn_layout layout, float *y, size_t y_stride,
                                  const uint8_t *panels, size_t panel_bytes, size_t n_panels,
                                  size_t k, const float *x, size_t x_stride, size_t n_tokens) {
    for (size_t p = 0; p < n_panels; p += VF_NEAR)
        for (size_t t = 0; t < n_tokens; t += MOST_TOKENS)
            float_panels(layout, y + 16 * p + t * y_stride, y_stride, panels + p * panel_bytes,
                         panel_bytes, n_panels - p < VF_NEAR ? n_panels - p : VF_NEAR, k,
                         x + t * x_stride, x_stride,
                         n_tokens - t < MOST_TOKENS ? n_tokens - t : MOST_TOKENS);
}
