/*
 * rank1_rows.inl: the rank-1 matrix recurrence with its state row-major, where a sum runs along a
 * row and so across lanes. Contract: simd.h. Included by kernels.inl.
 */

#define ROWS_IN_FLIGHT 4 /* their sums do not wait for each other, and share what columns have */

/* p of nr rows from row i on. */
SN_INLINE void project_rows(const sn_rank1_rows_scan *c, size_t i, int nr, float *p) {
    const float *S = c->S + i * c->n;
    vf sum[ROWS_IN_FLIGHT];
    size_t j = 0;
    SN_UNROLL for (int r = 0; r < nr; r++) sum[r] = vf_zero();
    for (; j + 16 <= c->n; j += 16) {
        const vf u = vf_load(c->u + j);
        SN_UNROLL for (int r = 0; r < nr; r++)
            sum[r] = vf_mla(vf_load(S + (size_t)r * c->n + j), u, sum[r]);
    }
    if (j < c->n) {
        const vf u = vf_load_part(c->u + j, c->n - j);
        SN_UNROLL for (int r = 0; r < nr; r++)
            sum[r] = vf_mla(vf_load_part(S + (size_t)r * c->n + j, c->n - j), u, sum[r]);
    }
    SN_UNROLL for (int r = 0; r < nr; r++) p[r] = vf_hsum(sum[r]);
}

/* What a step does; fixed while it runs, so that its branches cost nothing. */
typedef struct rank1_terms {
    int decay, correction, outer, reading;
} rank1_terms;

/* 16 columns, or `part` of them, of nr rows: the new S, and their share of the read-out. */
SN_INLINE void update_columns(const sn_rank1_rows_scan *c, rank1_terms has, size_t i, int nr,
                              size_t j, size_t part, const float *p, vf *read) {
    const vf w = has.decay ? load_lanes(c->w + j, part) : vf_zero();
    const vf b = has.correction ? load_lanes(c->b + j, part) : vf_zero();
    const vf k = has.outer ? load_lanes(c->k + j, part) : vf_zero();
    const vf read_by = has.reading ? load_lanes(c->r + j, part) : vf_zero();
    SN_UNROLL for (int r = 0; r < nr; r++) {
        float *at = c->S + (i + (size_t)r) * c->n + j;
        vf s = load_lanes(at, part);
        if (has.decay) s = vf_mul(s, w);
        if (has.correction) s = vf_sub(s, vf_mul(vf_set1(p[r]), b));
        if (has.outer) s = vf_add(s, vf_mul(vf_set1(c->v[i + (size_t)r]), k));
        /* an infinite p or v times nothing must not reach the sum */
        if (part < 16) s = vf_select(vm_first(part), s, vf_zero());
        store_lanes(at, s, part);
        if (has.reading) read[r] = vf_mla(s, read_by, read[r]);
    }
}

SN_INLINE void rank1_few_rows(const sn_rank1_rows_scan *c, rank1_terms has, size_t i, int nr) {
    float p[ROWS_IN_FLIGHT] = { 0 };
    vf read[ROWS_IN_FLIGHT];
    size_t j = 0;
    if (c->u && (c->p || has.correction)) project_rows(c, i, nr, p);
    if (c->u && c->p) memcpy(c->p + i, p, (size_t)nr * sizeof(float));
    SN_UNROLL for (int r = 0; r < nr; r++) read[r] = vf_zero();
    for (; j + 16 <= c->n; j += 16) update_columns(c, has, i, nr, j, 16, p, read);
    if (j < c->n) update_columns(c, has, i, nr, j, c->n - j, p, read);
    if (!has.reading) return;
    SN_UNROLL for (int r = 0; r < nr; r++) c->y[i + (size_t)r] = vf_hsum(read[r]);
}

SN_INLINE void rank1_all_rows(const sn_rank1_rows_scan *c, rank1_terms has) {
    size_t i = 0;
    for (; i + ROWS_IN_FLIGHT <= c->n_rows; i += ROWS_IN_FLIGHT)
        rank1_few_rows(c, has, i, ROWS_IN_FLIGHT);
    for (; i < c->n_rows; i++) rank1_few_rows(c, has, i, 1);
}

/* With a copy of the call, which no store can change. */
static void rank1_rows(const sn_rank1_rows_scan *call) {
    const sn_rank1_rows_scan c = *call;
    const rank1_terms has = { .decay = c.w != NULL, .correction = c.u && c.b,
                              .outer = c.v && c.k, .reading = c.r && c.y };
    const rank1_terms all = { 1, 1, 1, 1 };
    if (has.decay && has.correction && has.outer && has.reading) rank1_all_rows(&c, all);
    else rank1_all_rows(&c, has);
}
