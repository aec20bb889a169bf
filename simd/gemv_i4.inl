/*
 * gemv_i4.inl: rows of 4-bit codes against 8-bit activations, in the seed's layout. Contract:
 * simd.h; the dot of a chunk: dot_nibbles_<isa>.h. Included by kernels.inl.
 */

#define CODES_A_CHUNK 32  /* bytes; the activations of a chunk are twice as many */
#define GEMV_ROWS 4       /* their float sums are chains of their own */
#define NIBBLES_MOST 8192 /* chunks a sum of int32 takes: 8192 x 121,920 is below 2^30 */

/* What is read behind a group meets zeros; what would lie behind the last row is not read. */
SN_INLINE nibble_sum add_chunk(nibble_sum sum, const uint8_t *codes, const uint8_t *end,
                               const int8_t *x) {
    if (end - codes >= CODES_A_CHUNK) return nibbles_add(sum, codes, x);
    uint8_t last[CODES_A_CHUNK] = { 0 };
    memcpy(last, codes, (size_t)(end - codes));
    return nibbles_add(sum, last, x);
}

/* The group's codes of nr rows times its activations; the totals of no rows are 0. */
SN_INLINE void group_totals(int64_t *total, const uint8_t *codes, size_t row, int nr,
                            const uint8_t *end, const int8_t *x, size_t chunks) {
    for (int r = 0; r < GEMV_ROWS; r++) total[r] = 0;
    for (size_t first = 0; first < chunks; first += NIBBLES_MOST) {
        const size_t stop = chunks - first < NIBBLES_MOST ? chunks : first + NIBBLES_MOST;
        nibble_sum sum[GEMV_ROWS];
        int32_t part[GEMV_ROWS];
        SN_UNROLL for (int r = 0; r < GEMV_ROWS; r++) sum[r] = nibbles_start();
        for (size_t k = first; k < stop; k++) {
            const size_t at = k * CODES_A_CHUNK;
            SN_UNROLL for (int r = 0; r < nr; r++)
                sum[r] = add_chunk(sum[r], codes + (size_t)r * row + at, end, x + 2 * at);
        }
        nibbles_totals(part, sum);
        for (int r = 0; r < GEMV_ROWS; r++) total[r] += part[r];
    }
}

SN_INLINE void gemv_i4_rows(const sn_gemv_i4 *c, size_t o, int nr) {
    const size_t row = c->n_groups * c->half;
    const size_t chunks = (c->half + CODES_A_CHUNK - 1) / CODES_A_CHUNK;
    const uint8_t *codes = c->codes + o * row, *end = c->codes + c->n_rows * row;
    const float *scale = c->scale + o * c->n_groups;
    float sum[GEMV_ROWS] = { 0 };
    for (size_t g = 0; g < c->n_groups; g++) {
        int64_t total[GEMV_ROWS];
        group_totals(total, codes + g * c->half, row, nr, end,
                     c->x + g * chunks * (2 * CODES_A_CHUNK), chunks);
        SN_UNROLL for (int r = 0; r < nr; r++) {
            const float t = (float)(total[r] - c->x_offset[g]);
            sum[r] = sum[r] + (scale[(size_t)r * c->n_groups + g] * c->x_scale[g]) * t;
        }
    }
    memcpy(c->y + o, sum, (size_t)nr * sizeof(float));
}

static void gemv_i4(const sn_gemv_i4 *c) {
    size_t o = 0;
    for (; o + GEMV_ROWS <= c->n_rows; o += GEMV_ROWS) gemv_i4_rows(c, o, GEMV_ROWS);
    for (; o < c->n_rows; o++) gemv_i4_rows(c, o, 1);
}
