#include "layout.h"

#include "../quant/bytes.h"

#include <inttypes.h>
#include <stdio.h>

sn_status sn_layout_init(sn_blob_layout *layout, const sn_gguf *gguf, bool int4) {
    *layout = (sn_blob_layout){.gguf = gguf, .int4 = int4};
    layout->first = sn_alloc_array((size_t)gguf->n_tensors, sizeof *layout->first);
    if (!layout->first) return SN_E_NOMEM;
    return sn_packed_read(gguf, &layout->packed);
}

void sn_layout_free(sn_blob_layout *layout) {
    sn_packed_free(&layout->packed);
    sn_free(layout->first);
    sn_free(layout->places);
    sn_free(layout->words);
    *layout = (sn_blob_layout){.gguf = NULL};
}

/* A block with room for one item more. */
static sn_status grow(void **block, size_t n, size_t *capacity, size_t size) {
    if (n < *capacity) return SN_OK;
    size_t wanted = *capacity ? 2 * *capacity : 64, bytes;
    void *grown = sn_mul_size(wanted, size, &bytes) ? sn_grow(*block, n * size, bytes) : NULL;
    if (!grown) return SN_E_NOMEM;
    *block = grown;
    *capacity = wanted;
    return SN_OK;
}

/* ---- words --------------------------------------------------------------------------------- */

static sn_status add_word(sn_blob_layout *layout, uint32_t bits) {
    void *block = layout->words;
    SN_TRY(grow(&block, layout->n_words, &layout->word_capacity, sizeof *layout->words));
    layout->words = block;
    layout->words[layout->n_words++] = (struct sn_layout_word){layout->size, bits};
    layout->size += 4;
    return SN_OK;
}

sn_status sn_layout_int(sn_blob_layout *layout, uint64_t value) {
    if (value > INT32_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %" PRIu64 " is too large for a blob",
                       sn_gguf_name(layout->gguf), value);
    return add_word(layout, (uint32_t)value);
}

sn_status sn_layout_float(sn_blob_layout *layout, float value) {
    return add_word(layout, sn_bits_of(value));
}

sn_status sn_layout_zeros(sn_blob_layout *layout, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) SN_TRY(add_word(layout, 0));
    return SN_OK;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static sn_status find(const sn_blob_layout *layout, const char *name, uint64_t *index) {
    const sn_gguf_tensor *tensor = sn_gguf_find_tensor(layout->gguf, name);
    if (!tensor)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s' is missing", sn_gguf_name(layout->gguf),
                       name);
    *index = (uint64_t)(tensor - layout->gguf->tensors);
    return SN_OK;
}

/* Seen through panels. */
static void shape_of(const sn_blob_layout *layout, uint64_t index, uint64_t *rows, uint64_t *k) {
    const sn_packed_tensor *packed = sn_packed_at(&layout->packed, index);
    const sn_gguf_tensor *tensor = &layout->gguf->tensors[index];
    *rows = packed ? packed->rows : 1;
    *k = packed ? packed->k : tensor->dims[0];
    for (uint32_t d = 1; !packed && d < tensor->n_dims; d++) *rows *= tensor->dims[d];
}

sn_status sn_layout_shape(const sn_blob_layout *layout, const char *name, uint64_t *rows,
                          uint64_t *k) {
    uint64_t index;
    SN_TRY(find(layout, name, &index));
    shape_of(layout, index, rows, k);
    return SN_OK;
}

static sn_status add_place(sn_blob_layout *layout, sn_place place) {
    void *block = layout->places;
    SN_TRY(grow(&block, layout->n_places, &layout->place_capacity, sizeof *layout->places));
    layout->places = block;
    place.offset = layout->size;
    place.next = layout->first[place.tensor];
    layout->places[layout->n_places++] = place;
    layout->first[place.tensor] = layout->n_places;
    /* below 2^64: the model has as many elements */
    const uint64_t n = place.rows * place.k;
    layout->size += place.form == SN_PLACE_INT4 ? n / 2 + n / 64 * 4 : 4 * n;
    return SN_OK;
}

static sn_status add_matrix(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k,
                            sn_place_form form) {
    uint64_t index, got_rows, got_k;
    SN_TRY(find(layout, name, &index));
    shape_of(layout, index, &got_rows, &got_k);
    if (got_rows != rows || got_k != k)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s' is (%" PRIu64 ", %" PRIu64 "), (%" PRIu64
                       ", %" PRIu64 ") is expected", sn_gguf_name(layout->gguf), name, got_rows,
                       got_k, rows, k);
    return add_place(layout, (sn_place){.tensor = index, .rows = rows, .k = k, .form = form});
}

sn_status sn_layout_rows(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k) {
    return add_matrix(layout, name, rows, k, SN_PLACE_ROWS);
}

sn_status sn_layout_columns(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k) {
    return add_matrix(layout, name, rows, k, SN_PLACE_COLUMNS);
}

sn_status sn_layout_int4(sn_blob_layout *layout, const char *name, uint64_t rows, uint64_t k) {
    return add_matrix(layout, name, rows, k, SN_PLACE_INT4);
}

sn_status sn_layout_vector(sn_blob_layout *layout, const char *name, uint64_t n) {
    uint64_t index, rows, k;
    SN_TRY(find(layout, name, &index));
    shape_of(layout, index, &rows, &k);
    if (rows * k != n)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s' has %" PRIu64 " elements, %" PRIu64
                       " are expected", sn_gguf_name(layout->gguf), name, rows * k, n);
    return add_place(layout, (sn_place){.tensor = index, .rows = rows, .k = k});
}

sn_status sn_layout_size(const sn_blob_layout *layout, const char *key, uint32_t limit,
                         uint32_t *out) {
    uint32_t value = 0;
    SN_TRY(sn_gguf_get_u32(layout->gguf, key, true, &value));
    if (value < 1 || value > limit)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %" PRIu32 " is outside 1..%" PRIu32,
                       sn_gguf_name(layout->gguf), key, value, limit);
    *out = value;
    return SN_OK;
}
