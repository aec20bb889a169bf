/*
 * reverse.inl: gradients of the first-order recurrence, from the last token to the first. Contract:
 * simd.h; why a row comes after the other: scans.inl. Included by kernels.inl.
 */

/* What one token gives 16 channels; d, carried on, is updated. */
typedef struct recur_gradient {
    vf da, db;
} recur_gradient;

SN_INLINE recur_gradient reverse_step(vf *d, vf dy, vf a, vf b, vf before, int gated) {
    const vf sum = vf_add(*d, dy);
    *d = vf_mul(sum, a);
    if (!gated) return (recur_gradient){ vf_mul(sum, before), sum };
    return (recur_gradient){ vf_mul(sum, vf_sub(before, b)),
                             vf_mul(sum, vf_sub(vf_set1(1.0f), a)) };
}

/* A token's rows, the last that its state comes from. */
typedef struct reverse_row {
    const float *a, *b, *before, *dy;
    float *da, *db;
} reverse_row;

SN_INLINE reverse_row token_row(const sn_recur_reverse *c, size_t t) {
    return (reverse_row){
        .a = c->a.at + t * c->a.stride, .b = c->gated ? c->b.at + t * c->b.stride : NULL,
        .before = t ? c->y.at + (t - 1) * c->y.stride : c->s0, .dy = c->dy.at + t * c->dy.stride,
        .da = c->da + t * c->da_stride, .db = c->db + t * c->db_stride,
    };
}

/* 16 channels, or `part` of them, from `at` on. */
SN_INLINE recur_gradient reverse_lanes(const reverse_row *row, vf *d, size_t at, size_t part,
                                       int gated) {
    const vf b = gated ? load_lanes(row->b + at, part) : vf_zero();
    return reverse_step(d, load_lanes(row->dy + at, part), load_lanes(row->a + at, part), b,
                        load_lanes(row->before + at, part), gated);
}

/* Up to 16 channels, whose d stays in a register. */
SN_INLINE void reverse_few(const sn_recur_reverse *c, int gated) {
    vf d = load_lanes(c->d, c->n);
    for (size_t t = c->n_tokens; t-- > 0;) {
        const reverse_row row = token_row(c, t);
        const recur_gradient g = reverse_lanes(&row, &d, 0, c->n, gated);
        store_lanes(row.da, g.da, c->n);
        store_lanes(row.db, g.db, c->n);
    }
    store_lanes(c->d, d, c->n);
}

/* One token of channels [at, end), a multiple of 16 of them. */
SN_INLINE void reverse_channels(const reverse_row *row, float *d, size_t at, size_t end, int gated,
                              int streaming) {
    for (; at < end; at += 16) {
        vf sum = vf_load(d + at);
        const recur_gradient g = reverse_lanes(row, &sum, at, 16, gated);
        vf_store(d + at, sum);
        if (streaming) {
            vf_stream(row->da + at, g.da);
            vf_stream(row->db + at, g.db);
        } else {
            vf_store(row->da + at, g.da);
            vf_store(row->db + at, g.db);
        }
    }
}

/* Channels [at, end), the last up to 15 in a register. */
SN_INLINE void reverse_block(const sn_recur_reverse *c, size_t at, size_t end, int gated,
                             int streaming) {
    const size_t last = end - (end - at) % 16, part = end - last;
    vf tail = part ? vf_load_part(c->d + last, part) : vf_zero();
    for (size_t t = c->n_tokens; t-- > 0;) {
        const reverse_row row = token_row(c, t);
        reverse_channels(&row, c->d, at, last, gated, streaming);
        if (!part) continue;
        const recur_gradient g = reverse_lanes(&row, &tail, last, part, gated);
        vf_store_part(row.da + last, g.da, part);
        vf_store_part(row.db + last, g.db, part);
    }
    if (part) vf_store_part(c->d + last, tail, part);
}

SN_INLINE void reverse_rows(const sn_recur_reverse *c, int gated, int streaming) {
    for (size_t at = 0; at < c->n; at += RECUR_CHANNELS) {
        const size_t end = c->n - at < RECUR_CHANNELS ? c->n : at + RECUR_CHANNELS;
        reverse_block(c, at, end, gated, streaming);
    }
    if (streaming) stream_end();
}

static void recur_reverse(const sn_recur_reverse *c) {
    const int streaming = c->streaming && rows_aligned(c->da, c->da_stride) &&
                          rows_aligned(c->db, c->db_stride);
    if (c->n <= 16) {
        if (c->gated) reverse_few(c, 1);
        else reverse_few(c, 0);
    } else if (c->gated) {
        if (streaming) reverse_rows(c, 1, 1);
        else reverse_rows(c, 1, 0);
    } else {
        if (streaming) reverse_rows(c, 0, 1);
        else reverse_rows(c, 0, 0);
    }
}
