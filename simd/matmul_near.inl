/*
 * matmul_near.inl: int8 activations of several tokens against a few panels, for back ends whose
 * dots can start at a number (DOT_NEAR). There the products take so few instructions that the rest
 * counts: addresses of as many rows as a tile has tokens, what the codes' offset subtracts, the
 * sums as floats. So a few blocks of all tokens are brought together first, with whole vectors, and
 * the tiles of several panels find everything at fixed distances from one address. Included by
 * matmul_int8.inl.
 */

#define NEAR_BLOCKS 4
#define NEAR_PANELS 4 /* their sums stay in the first-level cache too */

/* Of one token; `bias` is a number a block, or one for each half, or, if the codes have no offset,
 * what q8_min_halves() wants. */
typedef struct near_row {
    int8_t q[NEAR_BLOCKS * 32];
    int32_t bias[NEAR_BLOCKS * 2];
    float scale[NEAR_BLOCKS], sum[NEAR_BLOCKS];
} near_row;

/* Blocks b .. b+n-1 of one token, to `at` and after. */
SN_INLINE void near_fetch(sn_layout layout, near_row *rows, size_t at, sn_q8_rows x, size_t b,
                          size_t n) {
    const layout_traits t = traits_of(layout);
    const int32_t *sum = x.sum + 2 * b;
    memcpy(rows->q + 32 * at, x.q + 32 * b, 32 * n);
    memcpy(rows->scale + at, x.scale + b, 4 * n);
    for (size_t i = 0; i < n; i++) {
        const int32_t whole = sum[2 * i] + sum[2 * i + 1];
        if (t.has_min) rows->sum[at + i] = (float)whole;
        if (t.halves == 1) rows->bias[at + i] = -t.offset * whole;
    }
    if (t.halves == 2)
        for (size_t i = 0; i < 2 * n; i++)
            rows->bias[2 * at + i] = (t.offset ? -t.offset : 1) * sum[i];
}

/* n blocks of all tokens, as many as there is room for but at the end of a row: the number that is
 * known to the compiler makes whole vectors of them. */
SN_INLINE void near_fetch_all(sn_layout layout, near_row *rows, sn_q8_rows x, size_t b, size_t n,
                              size_t n_tokens) {
    for (size_t t = 0; t < n_tokens; t++) {
        const sn_q8_rows row = q8_from_token(x, t);
        if (n == NEAR_BLOCKS) near_fetch(layout, rows + t, 0, row, b, NEAR_BLOCKS);
        else
            for (size_t i = 0; i < n; i++) near_fetch(layout, rows + t, i, row, b + i, 1);
    }
}

/* sums[t] += block b, of those brought together, for nt tokens. */
SN_INLINE void near_tile(sn_layout layout, int nt, float *sums, const vi *words,
                         const block_scales *s, const near_row *x, size_t b) {
    const layout_traits tr = traits_of(layout);
    vdot dot[8][2];
    SN_UNROLL for (int t = 0; t < nt; t++)
        SN_UNROLL for (int h = 0; h < tr.halves; h++)
            dot[t][h] = dot_start_at(
                tr.offset ? x[t].bias[(size_t)tr.halves * b + (size_t)h] : 0);
    SN_UNROLL for (int g = 0; g < 8; g++)
        q8_word(layout, nt, dot, dot_of(layout, 0, g), words, 0, g, x->q + 32 * b, sizeof *x);
    SN_UNROLL for (int t = 0; t < nt; t++) {
        vi total = dot_total(&dot[t][0], tr.dot_bits, 0);
        if (tr.halves == 2)
            total = q8_halves(s, total, dot_total(&dot[t][1], tr.dot_bits, 0));
        const vf min_total = layout == SN_LAYOUT_Q2_K ? q8_min_halves(s, x[t].bias + 2 * b)
                                                      : vf_set1(tr.has_min ? x[t].sum[b] : 0);
        vf_store(sums + 16 * t, q8_block_add(layout, s, total, min_total, x[t].scale[b],
                                             vf_load(sums + 16 * t)));
    }
}

/* sums += block b of one of np panels in turn, the i-th of those brought together. Each turn goes
 * on elsewhere, which the processor does not foresee. */
SN_INLINE void near_block(sn_layout layout, size_t np, float *sums, const uint8_t *panel,
                          size_t panel_bytes, size_t b, size_t i, const near_row *rows,
                          size_t n_tokens) {
    SN_ALIGN64 vi words[8];
    const uint8_t *block = block_at(layout, panel, b);
    prefetch_block(panel, (size_t)(block - panel), traits_of(layout).block, panel_bytes, np);
    const block_factors factors = factors_of(layout, panel, b);
    const block_scales s = scales_of(layout, &factors, block);
    for (int g = 0; g < 8; g++) words[g] = code_word(layout, block, g);
    size_t t = 0;
    for (; t + VQ_TILE <= n_tokens; t += VQ_TILE)
        near_tile(layout, VQ_TILE, sums + 16 * t, words, &s, rows + t, i);
    for (; t < n_tokens; t++) near_tile(layout, 1, sums + 16 * t, words, &s, rows + t, i);
}

/* Up to NEAR_PANELS panels for up to MOST_TOKENS tokens. */
SN_INLINE void near_panels(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                           size_t panel_bytes, size_t n_panels, size_t k, sn_q8_rows x,
                           size_t n_tokens) {
    SN_ALIGN64 near_row rows[MOST_TOKENS];
    SN_ALIGN64 float sums[NEAR_PANELS][MOST_TOKENS * 16];
    for (size_t p = 0; p < n_panels; p++) memset(sums[p], 0, n_tokens * 64);
    for (size_t b = 0; b < k / 32; b += NEAR_BLOCKS) {
        const size_t n = k / 32 - b < NEAR_BLOCKS ? k / 32 - b : NEAR_BLOCKS;
        near_fetch_all(layout, rows, x, b, n, n_tokens);
        for (size_t p = 0; p < n_panels; p++)
            for (size_t i = 0; i < n; i++)
                near_block(layout, n_panels, sums[p], panels + p * panel_bytes, panel_bytes, b + i,
                           i, rows, n_tokens);
    }
    for (size_t p = 0; p < n_panels; p++) copy_sums(y + 16 * p, y_stride, sums[p], n_tokens);
}

SN_INLINE void q8_panels_near(sn_layout layout, float *y, size_t y_stride, const uint8_t *panels,
                              size_t panel_bytes, size_t n_panels, size_t k, sn_q8_rows x,
                              size_t n_tokens) {
    for (size_t p = 0; p < n_panels; p += NEAR_PANELS)
        for (size_t t = 0; t < n_tokens; t += MOST_TOKENS)
            near_panels(layout, y + 16 * p + t * y_stride, y_stride, panels + p * panel_bytes,
                        panel_bytes, n_panels - p < NEAR_PANELS ? n_panels - p : NEAR_PANELS, k,
                        q8_from_token(x, t),
                        n_tokens - t < MOST_TOKENS ? n_tokens - t : MOST_TOKENS);
}
