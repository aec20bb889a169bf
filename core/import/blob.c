#include "blob.h"

#include "../quant/bytes.h"
#include "blob_int4.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    uint32_t magic;
    sn_status (*read)(sn_blob *blob);
} kinds[] = {
    {0x4e4e5355, sn_blob_read_sunnynet}, /* "USNN" */
    {0x4b57524b, sn_blob_read_rwkv7},    /* "KRWK" */
    {0x324e4d53, sn_blob_read_mamba2},   /* "SMN2" */
    {0x4e4e4444, sn_blob_read_deltanet}, /* "DDNN" */
    {0x51444e44, sn_blob_read_deltanet}, /* "DNDQ": with INT4 matrices */
    {0x414c4753, sn_blob_read_gla},      /* "SGLA" */
    {0x51414c47, sn_blob_read_gla},      /* "GLAQ" */
    {0x32474853, sn_blob_read_hgrn2},    /* "SHG2" */
    {0x51474853, sn_blob_read_hgrn2},    /* "SHGQ" */
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Its place in `kinds`; N_KINDS if it is no blob. */
static size_t kind_of(const sn_file *file) {
    uint8_t bytes[4];
    size_t i = N_KINDS;
    if (file->size < 4 || file->read_at(file->user, 0, bytes, 4) != 4) return i;
    for (i = 0; i < N_KINDS; i++)
        if (kinds[i].magic == sn_load32(bytes)) break;
    return i;
}

bool sn_blob_smells(const sn_file *file) {
    return kind_of(file) < N_KINDS;
}

sn_status sn_blob_import(sn_file *file, sn_store *store, sn_build *build) {
    sn_blob blob = {.store = store, .build = build};
    SN_TRY(sn_store_add_file(store, file, &blob.file));
    size_t kind = kind_of(blob.file);
    if (kind == N_KINDS)
        return sn_fail(SN_E_FORMAT, "%.300s: not a packed blob", blob.file->name);
    return kinds[kind].read(&blob);
}

/* ---- the cursor ---------------------------------------------------------------------------- */

const char *sn_blob_name(sn_blob *blob, uint32_t layer, const char *tensor) {
    snprintf(blob->name, sizeof blob->name, "blk.%" PRIu32 ".%s", layer, tensor);
    return blob->name;
}

/* Moves behind `n` items of `size` bytes; *start receives where they lie. */
static sn_status take(sn_blob *blob, const char *what, uint64_t n, uint64_t size,
                      uint64_t *start) {
    uint64_t left = blob->file->size - blob->at, bytes;
    if (!sn_mul_u64(n, size, &bytes) || bytes > left)
        return sn_fail(SN_E_FORMAT, "%.300s: %s: %" PRIu64 " times %" PRIu64 " bytes needed at "
                       "byte %" PRIu64 ", %" PRIu64 " left", blob->file->name, what, n, size,
                       blob->at, left);
    *start = blob->at;
    blob->at += bytes;
    return SN_OK;
}

sn_status sn_blob_ints(sn_blob *blob, size_t n, int32_t *values) {
    uint64_t start;
    uint8_t word[4];
    SN_TRY(take(blob, "header", n, 4, &start));
    for (size_t i = 0; i < n; i++) {
        SN_TRY(sn_file_read(blob->file, start + 4 * i, word, 4));
        uint32_t bits = sn_load32(word);
        memcpy(&values[i], &bits, 4);
    }
    return SN_OK;
}

sn_status sn_blob_floats(sn_blob *blob, const char *what, size_t n, float *values) {
    uint64_t start;
    uint8_t word[4];
    SN_TRY(take(blob, what, n, 4, &start));
    for (size_t i = 0; i < n; i++) {
        SN_TRY(sn_file_read(blob->file, start + 4 * i, word, 4));
        values[i] = sn_float_of(sn_load32(word));
    }
    return SN_OK;
}

sn_status sn_blob_check(const sn_blob *blob, const char *field, int32_t value, int32_t low,
                        int32_t high) {
    if (value >= low && value <= high) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: header: %s %" PRId32 " is outside %" PRId32 "..%" PRId32,
                   blob->file->name, field, value, low, high);
}

sn_status sn_blob_positive(const sn_blob *blob, const char *field, float value) {
    if (value > 0.0f && value <= 3.402823466e38f) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: %s: %g is not above zero", blob->file->name, field,
                   (double)value);
}

sn_status sn_blob_skip(sn_blob *blob, const char *name, uint64_t n) {
    uint64_t start;
    return take(blob, name, n, 4, &start);
}

sn_status sn_blob_end(const sn_blob *blob) {
    if (blob->at == blob->file->size) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " bytes behind the end of the model",
                   blob->file->name, blob->file->size - blob->at);
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* The store's view of (rows, k) floats at `start`. */
static sn_status add_view(sn_blob *blob, const char *name, uint64_t start, uint64_t rows,
                          uint64_t k, sn_blob_layout layout, const sn_view **added) {
    sn_view view = {.name = name, .type = sn_type_find(SN_TYPE_F32), .n_dims = 2,
                    .dims = {rows, k}, .strides = {k, 1}, .file = blob->file, .offset = start};
    if (layout == SN_BLOB_COLUMNS) {
        view.strides[0] = 1;
        view.strides[1] = rows;
    }
    SN_TRY(sn_store_add(blob->store, &view));
    *added = sn_store_find(blob->store, name);
    return SN_OK;
}

sn_status sn_blob_matrix(sn_blob *blob, const char *name, uint64_t rows, uint64_t k,
                         sn_blob_layout layout) {
    uint64_t start;
    const sn_view *view;
    SN_TRY(take(blob, name, rows * k, 4, &start)); /* both below 2^31: no overflow */
    SN_TRY(add_view(blob, name, start, rows, k, layout, &view));
    return sn_build_matrix(blob->build, name, view);
}

sn_status sn_blob_array(sn_blob *blob, const char *name, uint32_t n_dims, const uint64_t *dims) {
    uint64_t start, n = 1;
    const sn_view *view;
    for (uint32_t d = 0; d < n_dims; d++)
        if (!sn_mul_u64(n, dims[d], &n)) n = UINT64_MAX;
    SN_TRY(take(blob, name, n, 4, &start));
    SN_TRY(add_view(blob, name, start, n / dims[0], dims[0], SN_BLOB_ROWS, &view));
    return sn_build_vector(blob->build, name, view, n_dims, dims);
}

sn_status sn_blob_vector(sn_blob *blob, const char *name, uint64_t n) {
    return sn_blob_array(blob, name, 1, &n);
}

/* ---- behind a tag -------------------------------------------------------------------------- */

/* Moves behind an INT4 matrix: its codes, then its scales. */
static sn_status take_int4(sn_blob *blob, const char *name, uint64_t rows, uint64_t k,
                           sn_int4 *matrix) {
    if (k % SN_INT4_GROUP)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': INT4 with %" PRIu64 " inputs, which are "
                       "no multiple of %d", blob->file->name, name, k, SN_INT4_GROUP);
    *matrix = (sn_int4){.file = blob->file, .rows = rows, .k = k};
    const uint64_t groups = rows * (k / SN_INT4_GROUP); /* both below 2^31: no overflow */
    SN_TRY(take(blob, name, groups, SN_INT4_CODE_BYTES, &matrix->codes));
    return take(blob, name, groups, 4, &matrix->scales);
}

static sn_status add_int4(sn_blob *blob, const char *name, uint64_t rows, uint64_t k) {
    sn_int4 matrix;
    sn_view view;
    SN_TRY(take_int4(blob, name, rows, k, &matrix));
    SN_TRY(sn_int4_view(blob->store, &matrix, &view));
    view.name = name;
    SN_TRY(sn_store_add(blob->store, &view));
    return sn_build_matrix(blob->build, name, sn_store_find(blob->store, name));
}

static sn_status take_tag(sn_blob *blob, const char *name, bool *is_int4) {
    int32_t tag;
    SN_TRY(sn_blob_ints(blob, 1, &tag));
    *is_int4 = tag == 1;
    if (tag == 0 || tag == 1) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': tag %" PRId32 " is neither 0 (fp32) nor 1 "
                   "(INT4)", blob->file->name, name, tag);
}

sn_status sn_blob_tagged(sn_blob *blob, const char *name, uint64_t rows, uint64_t k,
                         sn_blob_layout layout) {
    bool is_int4;
    SN_TRY(take_tag(blob, name, &is_int4));
    if (is_int4) return add_int4(blob, name, rows, k);
    return sn_blob_matrix(blob, name, rows, k, layout);
}

sn_status sn_blob_skip_tagged(sn_blob *blob, const char *name, uint64_t rows, uint64_t k) {
    bool is_int4;
    sn_int4 matrix;
    SN_TRY(take_tag(blob, name, &is_int4));
    if (is_int4) return take_int4(blob, name, rows, k, &matrix);
    return sn_blob_skip(blob, name, rows * k);
}
