#include "computed.h"

#include "../quant/bytes.h"

#include <inttypes.h>
#include <stddef.h>

#define CONTEXT_BYTES 64

typedef struct computed {
    uint64_t rows, k;
    uint64_t row; /* that `values` holds; rows: none */
    sn_row_fn fn;
    _Alignas(max_align_t) uint8_t context[CONTEXT_BYTES];
    uint8_t *row_bytes; /* the row as a file holds it: 4 k bytes */
    float *values;      /* [k] */
} computed;

static void computed_close(void *user) {
    computed *c = user;
    sn_free(c->row_bytes);
    sn_free(c->values);
    sn_free(c);
}

static sn_status compute(computed *c, uint64_t row) {
    if (c->row == row) return SN_OK;
    c->row = c->rows;
    SN_TRY(c->fn(c->context, row, c->k, c->values));
    for (size_t i = 0; i < c->k; i++) sn_store32(c->row_bytes + 4 * i, sn_bits_of(c->values[i]));
    c->row = row;
    return SN_OK;
}

/* Read from front to back, each row is computed once. */
static size_t computed_read(void *user, uint64_t offset, void *buffer, size_t bytes) {
    computed *c = user;
    uint8_t *to = buffer;
    uint64_t row_bytes = 4 * c->k, row = offset / row_bytes;
    size_t at = (size_t)(offset % row_bytes), done = 0;
    for (; done < bytes && row < c->rows; row++, at = 0) {
        size_t n = (size_t)row_bytes - at;
        if (n > bytes - done) n = bytes - done;
        if (compute(c, row) != SN_OK) break;
        memcpy(to + done, c->row_bytes + at, n);
        done += n;
    }
    return done;
}

static sn_status computed_new(uint64_t rows, uint64_t k, sn_row_fn fn, const void *context,
                              size_t bytes, computed **out) {
    computed *c = sn_alloc(sizeof *c);
    if (!c) return SN_E_NOMEM;
    *c = (computed){.rows = rows, .k = k, .row = rows, .fn = fn};
    memcpy(c->context, context, bytes);
    if (k <= SIZE_MAX) {
        c->row_bytes = sn_alloc_array((size_t)k, 4);
        c->values = sn_alloc_array((size_t)k, sizeof *c->values);
    }
    if (c->row_bytes && c->values) {
        *out = c;
        return SN_OK;
    }
    computed_close(c);
    return SN_E_NOMEM;
}

sn_status sn_computed_rows(sn_store *store, const char *file_name, uint64_t rows, uint64_t k,
                           sn_row_fn fn, const void *context, size_t bytes, sn_view *view) {
    computed *c;
    uint64_t size;
    if (bytes > CONTEXT_BYTES || !k || !sn_mul_u64(rows, k, &size) || !sn_mul_u64(size, 4, &size))
        return sn_fail(SN_E_INVAL, "%.300s: %" PRIu64 " computed rows of %" PRIu64,
                       file_name, rows, k);
    SN_TRY(computed_new(rows, k, fn, context, bytes, &c));
    sn_file file = {.name = file_name, .size = size, .read_at = computed_read, .user = c,
                    .close = computed_close};
    const sn_file *kept;
    SN_TRY(sn_store_add_file(store, &file, &kept));
    *view = (sn_view){.name = "", .type = sn_type_find(SN_TYPE_F32), .n_dims = 2,
                      .dims = {rows, k}, .strides = {k, 1}, .file = kept};
    return SN_OK;
}
