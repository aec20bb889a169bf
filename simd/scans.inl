/*
 * scans.inl: recurrences over time, written once over the vector headers. Contracts: simd.h.
 * Channels (lanes) go their own way, so a kernel finishes some of them over all tokens before it
 * takes more: their state stays in the first-level cache. Included by kernels.inl.
 */

/* ---- causal convolution ------------------------------------------------------------------- */

static void conv(float *y, const float *const *rows, const float *w, const float *bias,
                 size_t n_taps, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const size_t part = n - i < 16 ? n - i : 16;
        vf sum = bias ? load_lanes(bias + i, part) : vf_zero();
        for (size_t k = 0; k < n_taps; k++)
            sum = vf_mla(load_lanes(w + k * n + i, part), load_lanes(rows[k] + i, part), sum);
        store_lanes(y + i, sum, part);
    }
}

/* ---- first-order recurrence --------------------------------------------------------------- */

/* A row of channels after the other, because memory likes to be read in one direction: columns that
 * skip whole pages cost ten times as much once the arrays are larger than the caches. Between two
 * rows the states are in the first-level cache, so no more than 16 KiB of them at a time. */
#define RECUR_CHANNELS 4096

SN_INLINE vf recur_step(vf s, vf a, vf b, int gated) {
    if (gated) b = vf_mul(vf_sub(vf_set1(1.0f), a), b);
    return vf_mla(a, s, b);
}

/* Up to 16 channels stay in a register: through memory, each token would wait for the last. */
SN_INLINE void recur_lanes(const sn_recur *c, size_t part, int gated) {
    vf s = load_lanes(c->s, part);
    for (size_t t = 0; t < c->n_tokens; t++) {
        const vf a = load_lanes(c->a.at + t * c->a.stride, part);
        const vf b = load_lanes(c->b.at + t * c->b.stride, part);
        s = recur_step(s, a, b, gated);
        store_lanes(c->y + t * c->y_stride, s, part);
    }
    store_lanes(c->s, s, part);
}

/* One token of n channels, a multiple of 16. */
SN_INLINE void recur_row(float *y, float *s, const float *a, const float *b, size_t n, int gated,
                         int streaming) {
    for (size_t i = 0; i < n; i += 16) {
        const vf next = recur_step(vf_load(s + i), vf_load(a + i), vf_load(b + i), gated);
        if (streaming) vf_stream(y + i, next);
        else vf_store(y + i, next);
        vf_store(s + i, next);
    }
}

/* Channels [at, end). Those behind the last 16 stay in a register, too: reading them from where a
 * part of a vector was just written would wait for the write. */
SN_INLINE void recur_block(const sn_recur *c, size_t at, size_t end, int gated, int streaming) {
    const size_t n = (end - at) / 16 * 16, last = at + n, part = end - last;
    float *s = c->s;
    vf tail = part ? vf_load_part(s + last, part) : vf_zero();
    for (size_t t = 0; t < c->n_tokens; t++) {
        const float *a = c->a.at + t * c->a.stride, *b = c->b.at + t * c->b.stride;
        float *y = c->y + t * c->y_stride;
        recur_row(y + at, s + at, a + at, b + at, n, gated, streaming);
        if (!part) continue;
        tail = recur_step(tail, vf_load_part(a + last, part), vf_load_part(b + last, part), gated);
        vf_store_part(y + last, tail, part);
    }
    if (part) vf_store_part(s + last, tail, part);
}

SN_INLINE void recur_rows(const sn_recur *c, int gated, int streaming) {
    for (size_t at = 0; at < c->n; at += RECUR_CHANNELS) {
        const size_t end = c->n - at < RECUR_CHANNELS ? c->n : at + RECUR_CHANNELS;
        recur_block(c, at, end, gated, streaming);
    }
    if (streaming) stream_end();
}

/* Whether each row begins where a line of the cache does. */
SN_INLINE int rows_aligned(const float *p, size_t stride) {
    return (uintptr_t)p % 64 == 0 && stride % 16 == 0;
}

static void recur_scan(const sn_recur *c) {
    const int streaming = c->streaming && rows_aligned(c->y, c->y_stride);
    if (c->n <= 16) {
        if (c->gated) recur_lanes(c, c->n, 1);
        else recur_lanes(c, c->n, 0);
    } else if (c->gated) {
        if (streaming) recur_rows(c, 1, 1);
        else recur_rows(c, 1, 0);
    } else {
        if (streaming) recur_rows(c, 0, 1);
        else recur_rows(c, 0, 0);
    }
}

/* ---- matrix recurrences ------------------------------------------------------------------- */

/* One token of one head: its pointers, those over values at the first channel of a group. A step
 * works on 16 nv channels, or on `part` of them where nv is 1. */
typedef struct matrix_step {
    float *y, *S;
    const float *d, *k, *v, *r, *u, *b;
    size_t row, n_keys;
} matrix_step;

SN_INLINE void rank1_step(const matrix_step *c, int nv, size_t part, sn_decay decay) {
    vf p[4], read[4], value[4];
    const vf head = vf_set1(decay == SN_DECAY_HEAD ? c->d[0] : 0.0f);
    SN_UNROLL for (int i = 0; i < nv; i++) {
        p[i] = read[i] = vf_zero();
        value[i] = load_lanes(c->v + 16 * i, part);
    }
    for (size_t j = 0; j < c->n_keys; j++) {
        const vf u = vf_set1(c->u[j]);
        SN_UNROLL for (int i = 0; i < nv; i++)
            p[i] = vf_mla(load_lanes(c->S + j * c->row + 16 * i, part), u, p[i]);
    }
    for (size_t j = 0; j < c->n_keys; j++) {
        const vf d = decay == SN_DECAY_KEY ? vf_set1(c->d[j]) : head;
        const vf b = vf_set1(c->b[j]), k = vf_set1(c->k[j]), r = vf_set1(c->r[j]);
        SN_UNROLL for (int i = 0; i < nv; i++) {
            float *at = c->S + j * c->row + 16 * i;
            vf s = load_lanes(at, part);
            if (decay != SN_DECAY_NONE) s = vf_mul(s, d);
            s = vf_add(vf_sub(s, vf_mul(p[i], b)), vf_mul(value[i], k));
            store_lanes(at, s, part);
            read[i] = vf_mla(s, r, read[i]);
        }
    }
    SN_UNROLL for (int i = 0; i < nv; i++) store_lanes(c->y + 16 * i, read[i], part);
}

SN_INLINE void outer_step(const matrix_step *c, int nv, size_t part, sn_decay decay) {
    vf read[4], value[4], kept[4];
    SN_UNROLL for (int i = 0; i < nv; i++) {
        read[i] = vf_zero();
        value[i] = load_lanes(c->v + 16 * i, part);
        kept[i] = decay == SN_DECAY_VALUE ? load_lanes(c->d + 16 * i, part)
                                          : vf_set1(decay == SN_DECAY_HEAD ? c->d[0] : 0.0f);
    }
    for (size_t j = 0; j < c->n_keys; j++) {
        const vf k = vf_set1(c->k[j]), r = vf_set1(c->r[j]);
        const vf d = vf_set1(decay == SN_DECAY_KEY ? c->d[j] : 0.0f);
        SN_UNROLL for (int i = 0; i < nv; i++) {
            float *at = c->S + j * c->row + 16 * i;
            vf s = load_lanes(at, part);
            if (decay != SN_DECAY_NONE) s = vf_mul(s, decay == SN_DECAY_KEY ? d : kept[i]);
            s = vf_add(s, vf_mul(value[i], k));
            store_lanes(at, s, part);
            read[i] = vf_mla(s, r, read[i]);
        }
    }
    SN_UNROLL for (int i = 0; i < nv; i++) store_lanes(c->y + 16 * i, read[i], part);
}

SN_INLINE const float *at_token(sn_sequence s, size_t t) {
    return s.at ? s.at + t * s.stride : NULL;
}

/* Fills in one token's pointers for the value channels from `at` on. */
SN_INLINE matrix_step step_of(const sn_matrix_scan *c, size_t t, size_t at) {
    const size_t values = c->decay == SN_DECAY_VALUE ? at : 0;
    return (matrix_step){
        .y = c->y + t * c->y_stride + at, .S = c->S + at, .row = c->row, .n_keys = c->n_keys,
        .d = c->d.at ? at_token(c->d, t) + values : NULL, .k = at_token(c->k, t),
        .v = at_token(c->v, t) + at, .r = at_token(c->r, t), .u = at_token(c->u, t),
        .b = at_token(c->b, t),
    };
}

#define DEFINE_MATRIX_SCAN(NAME, STEP, DECAY)                                                 \
    SN_NOINLINE void NAME(const sn_matrix_scan *c) {                                          \
        size_t end;                                                                           \
        for (size_t at = 0; at < c->n_values; at = end) {                                     \
            const size_t left = c->n_values - at;                                             \
            end = at + (left >= 64 ? 64 : left >= 16 ? 16 : left);                            \
            for (size_t t = 0; t < c->n_tokens; t++) {                                        \
                const matrix_step step = step_of(c, t, at);                                   \
                if (left >= 64) STEP(&step, 4, 16, DECAY);                                    \
                else if (left >= 16) STEP(&step, 1, 16, DECAY);                               \
                else STEP(&step, 1, left, DECAY);                                             \
            }                                                                                 \
        }                                                                                     \
    }

DEFINE_MATRIX_SCAN(rank1_scan_none, rank1_step, SN_DECAY_NONE)
DEFINE_MATRIX_SCAN(rank1_scan_head, rank1_step, SN_DECAY_HEAD)
DEFINE_MATRIX_SCAN(rank1_scan_key, rank1_step, SN_DECAY_KEY)
DEFINE_MATRIX_SCAN(outer_scan_none, outer_step, SN_DECAY_NONE)
DEFINE_MATRIX_SCAN(outer_scan_head, outer_step, SN_DECAY_HEAD)
DEFINE_MATRIX_SCAN(outer_scan_key, outer_step, SN_DECAY_KEY)
DEFINE_MATRIX_SCAN(outer_scan_value, outer_step, SN_DECAY_VALUE)

static void rank1_scan(const sn_matrix_scan *c) {
    switch (c->decay) {
    case SN_DECAY_KEY: rank1_scan_key(c); break;
    case SN_DECAY_HEAD: rank1_scan_head(c); break;
    default: rank1_scan_none(c);
    }
}

static void outer_scan(const sn_matrix_scan *c) {
    switch (c->decay) {
    case SN_DECAY_KEY: outer_scan_key(c); break;
    case SN_DECAY_HEAD: outer_scan_head(c); break;
    case SN_DECAY_VALUE: outer_scan_value(c); break;
    default: outer_scan_none(c);
    }
}

/* ---- Mamba-1 -------------------------------------------------------------------------------- */

static void selective_scan(const sn_selective_scan *c) {
    for (size_t at = 0; at < c->n_channels; at += 16) {
        const size_t part = c->n_channels - at < 16 ? c->n_channels - at : 16;
        for (size_t t = 0; t < c->n_tokens; t++) {
            const vf dt = load_lanes(c->dt.at + t * c->dt.stride + at, part);
            const vf x = load_lanes(c->x.at + t * c->x.stride + at, part);
            const float *B = c->B.at + t * c->B.stride, *C = c->C.at + t * c->C.stride;
            vf y = vf_zero();
            for (size_t n = 0; n < c->n_states; n++) {
                float *S = c->S + n * c->row + at;
                const vf A = load_lanes(c->A + n * c->row + at, part);
                vf s = vf_mul(vf_exp(vf_mul(dt, A)), load_lanes(S, part));
                s = vf_add(s, vf_mul(x, vf_set1(B[n])));
                store_lanes(S, s, part);
                y = vf_mla(s, vf_set1(C[n]), y);
            }
            store_lanes(c->y + t * c->y_stride + at, y, part);
        }
    }
}
