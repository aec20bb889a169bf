#include "gguf_write.h"

#include "../quant/types.h"
#include "gguf_layout.h"
#include "index_sort.h"

#include <inttypes.h>
#include <string.h>

struct sn_gguf_writer {
    sn_output *output;
    char *path;
    uint8_t *header; /* keys, then infos; the counts are set when it is written */
    size_t header_bytes, header_capacity;
    size_t *items; /* where each key and each tensor name (its length) begins in the header */
    size_t items_capacity;
    uint64_t *ends; /* [n_tensors] of each tensor's data, from the data section's start */
    size_t ends_capacity;
    uint64_t n_keys, n_tensors;
    uint64_t alignment;
    uint64_t written; /* of the data section, padding included */
    uint64_t current; /* the tensor whose data comes next */
    bool has_header;
};

static uint64_t align_up(uint64_t n, uint64_t alignment) {
    return (n + alignment - 1) / alignment * alignment;
}

/* `table` with room for an (n + 1)-th item of `size` bytes; NULL if there is no memory. */
static void *reserve(void *table, size_t *capacity, size_t n, size_t size) {
    if (n < *capacity) return table;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = sn_grow(table, *capacity * size, wanted * size);
    if (grown) *capacity = wanted;
    return grown;
}

static sn_status append(sn_gguf_writer *writer, const void *data, size_t bytes) {
    uint64_t needed = (uint64_t)writer->header_bytes + bytes;
    if (bytes > GGUF_MAX_HEADER || needed > GGUF_MAX_HEADER)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: the header takes more than %" PRIu64 " bytes",
                       writer->path, GGUF_MAX_HEADER);
    if (needed > writer->header_capacity) {
        size_t doubled = 2 * writer->header_capacity;
        size_t capacity = doubled > needed ? doubled : (size_t)needed;
        uint8_t *grown = sn_grow(writer->header, writer->header_bytes, capacity);
        if (!grown) return SN_E_NOMEM;
        writer->header = grown;
        writer->header_capacity = capacity;
    }
    if (bytes) memcpy(writer->header + writer->header_bytes, data, bytes);
    writer->header_bytes = (size_t)needed;
    return SN_OK;
}

static sn_status append_number(sn_gguf_writer *writer, uint32_t bytes, uint64_t value) {
    uint8_t data[8];
    gguf_store(data, bytes, value);
    return append(writer, data, bytes);
}

static sn_status append_string(sn_gguf_writer *writer, sn_span string) {
    SN_TRY(append_number(writer, 8, string.size));
    return append(writer, string.data, string.size);
}

static sn_span span_of(const char *text) {
    return (sn_span){ .data = text, .size = strlen(text) };
}

static sn_status note_item(sn_gguf_writer *writer) {
    size_t n = (size_t)(writer->n_keys + writer->n_tensors);
    size_t *items = reserve(writer->items, &writer->items_capacity, n, sizeof *items);
    if (!items) return SN_E_NOMEM;
    writer->items = items;
    writer->items[n] = writer->header_bytes;
    return SN_OK;
}

/* ---- metadata ----------------------------------------------------------------------- */

static sn_status put_key(sn_gguf_writer *writer, sn_span key, sn_gguf_kind kind) {
    if (writer->n_tensors || writer->has_header)
        return sn_fail(SN_E_INVAL, "%.300s: key '%.*s' comes after the first tensor",
                       writer->path, (int)(key.size < 64 ? key.size : 64), key.data);
    if (key.size == 0) return sn_fail(SN_E_INVAL, "%.300s: an empty key", writer->path);
    SN_TRY(note_item(writer));
    SN_TRY(append_string(writer, key));
    SN_TRY(append_number(writer, 4, kind));
    writer->n_keys++;
    return SN_OK;
}

static sn_status put_array(sn_gguf_writer *writer, const char *key, sn_gguf_kind element,
                           uint64_t n) {
    SN_TRY(put_key(writer, span_of(key), SN_GGUF_ARRAY));
    SN_TRY(append_number(writer, 4, element));
    return append_number(writer, 8, n);
}

/* The writer obeys the alignment it is told to write down. */
static sn_status note_alignment(sn_gguf_writer *writer, sn_span key, uint64_t value) {
    static const char name[] = "general.alignment";
    if (key.size != sizeof name - 1 || memcmp(key.data, name, key.size) != 0) return SN_OK;
    if (!gguf_alignment_ok(value))
        return sn_fail(SN_E_INVAL, "%.300s: key '%s': %" PRIu64 " is not a power of two up to "
                       "%d", writer->path, name, value, GGUF_MAX_ALIGNMENT);
    writer->alignment = value;
    return SN_OK;
}

sn_status sn_gguf_put_u32(sn_gguf_writer *writer, const char *key, uint32_t value) {
    SN_TRY(note_alignment(writer, span_of(key), value));
    SN_TRY(put_key(writer, span_of(key), SN_GGUF_U32));
    return append_number(writer, 4, value);
}

sn_status sn_gguf_put_text(sn_gguf_writer *writer, const char *key, const char *value) {
    SN_TRY(put_key(writer, span_of(key), SN_GGUF_STRING));
    return append_string(writer, span_of(value));
}

sn_status sn_gguf_put_u32s(sn_gguf_writer *writer, const char *key, const uint32_t *values,
                           uint64_t n) {
    SN_TRY(put_array(writer, key, SN_GGUF_U32, n));
    for (uint64_t i = 0; i < n; i++) SN_TRY(append_number(writer, 4, values[i]));
    return SN_OK;
}

sn_status sn_gguf_put_texts(sn_gguf_writer *writer, const char *key, const char *const *values,
                            uint64_t n) {
    SN_TRY(put_array(writer, key, SN_GGUF_STRING, n));
    for (uint64_t i = 0; i < n; i++) SN_TRY(append_string(writer, span_of(values[i])));
    return SN_OK;
}

sn_status sn_gguf_put_value(sn_gguf_writer *writer, const sn_gguf_value *value) {
    uint32_t bytes = gguf_kind_bytes(value->kind);
    if (bytes) SN_TRY(note_alignment(writer, value->key, gguf_load(value->data, bytes)));
    SN_TRY(put_key(writer, value->key, value->kind));
    if (value->kind == SN_GGUF_STRING) SN_TRY(append_number(writer, 8, value->bytes));
    if (value->kind == SN_GGUF_ARRAY) {
        SN_TRY(append_number(writer, 4, value->element));
        SN_TRY(append_number(writer, 8, value->count));
    }
    return append(writer, value->data, value->bytes);
}

/* ---- tensors ------------------------------------------------------------------------ */

/* Bytes that the shape and type call for; false if they make no tensor. */
static bool shape_bytes(uint32_t type_id, uint32_t n_dims, const uint64_t *dims,
                        uint64_t *bytes) {
    const sn_type *type = sn_type_find(type_id);
    uint64_t elements = 1;
    if (!type || n_dims < 1 || n_dims > 4 || dims[0] % type->block) return false;
    for (uint32_t i = 0; i < n_dims; i++)
        if (dims[i] == 0 || !sn_mul_u64(elements, dims[i], &elements)) return false;
    return sn_mul_u64(elements / type->block, type->block_bytes, bytes) && *bytes <= INT64_MAX;
}

sn_status sn_gguf_declare(sn_gguf_writer *writer, const char *name, uint32_t type,
                          uint32_t n_dims, const uint64_t *dims, uint64_t bytes) {
    size_t n = (size_t)writer->n_tensors;
    uint64_t expected = 0;
    if (writer->has_header)
        return sn_fail(SN_E_INVAL, "%.300s: tensor '%.64s' is declared after the first data",
                       writer->path, name);
    if (!*name || strlen(name) >= GGUF_NAME_BYTES || n >= GGUF_MAX_TENSORS ||
        !shape_bytes(type, n_dims, dims, &expected) || expected != bytes)
        return sn_fail(SN_E_INVAL, "%.300s: tensor '%.64s': %" PRIu64 " bytes of type %" PRIu32
                       " and %" PRIu32 " dimensions cannot be declared", writer->path, name,
                       bytes, type, n_dims);
    uint64_t *ends = reserve(writer->ends, &writer->ends_capacity, n, sizeof *ends);
    if (!ends) return SN_E_NOMEM;
    writer->ends = ends;
    SN_TRY(note_item(writer));
    uint64_t offset = n ? align_up(writer->ends[n - 1], writer->alignment) : 0;
    SN_TRY(append_string(writer, span_of(name)));
    SN_TRY(append_number(writer, 4, n_dims));
    for (uint32_t i = 0; i < n_dims; i++) SN_TRY(append_number(writer, 8, dims[i]));
    SN_TRY(append_number(writer, 4, type));
    SN_TRY(append_number(writer, 8, offset));
    writer->ends[n] = offset + bytes;
    writer->n_tensors++;
    return SN_OK;
}

/* ---- the file ----------------------------------------------------------------------- */

/* Some items of a header, for comparing them. */
typedef struct item_table {
    const uint8_t *header;
    const size_t *items;
} item_table;

static sn_span item_text(const item_table *table, uint32_t i) {
    const uint8_t *length = table->header + table->items[i];
    return (sn_span){ .data = (const char *)length + 8, .size = (size_t)gguf_load_u64(length) };
}

static int compare_items(const void *table, uint32_t a, uint32_t b) {
    sn_span x = item_text(table, a), y = item_text(table, b);
    int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

/* No two of the n keys or names from items[first] may be equal: no reader would take them. */
static sn_status refuse_equal(const sn_gguf_writer *writer, size_t first, size_t n) {
    item_table table = { .header = writer->header, .items = writer->items + first };
    uint32_t *order = sn_alloc_array(n, sizeof *order);
    if (!order) return SN_E_NOMEM;
    sn_index_sort(order, n, compare_items, &table);
    sn_status status = SN_OK;
    for (size_t i = 1; i < n && status == SN_OK; i++) {
        sn_span text = item_text(&table, order[i]);
        if (compare_items(&table, order[i - 1], order[i]) == 0)
            status = sn_fail(SN_E_INVAL, "%.300s: '%.*s' is written twice", writer->path,
                             (int)(text.size < 64 ? text.size : 64), text.data);
    }
    sn_free(order);
    return status;
}

static sn_status write_header(sn_gguf_writer *writer) {
    if (writer->has_header) return SN_OK;
    SN_TRY(refuse_equal(writer, 0, (size_t)writer->n_keys));
    SN_TRY(refuse_equal(writer, (size_t)writer->n_keys, (size_t)writer->n_tensors));
    uint8_t *header = writer->header;
    memcpy(header, "GGUF", 4);
    gguf_store(header + 4, 4, 3);
    gguf_store(header + 8, 8, writer->n_tensors);
    gguf_store(header + 16, 8, writer->n_keys);
    while (writer->header_bytes % writer->alignment) SN_TRY(append(writer, "", 1));
    writer->has_header = true;
    return sn_output_write(writer->output, writer->header, writer->header_bytes);
}

/* Zeros up to the next tensor's start. */
static sn_status pad(sn_gguf_writer *writer) {
    static const uint8_t zeros[GGUF_ALIGNMENT];
    uint64_t start = align_up(writer->written, writer->alignment);
    while (writer->written < start) {
        uint64_t gap = start - writer->written;
        size_t piece = gap < sizeof zeros ? (size_t)gap : sizeof zeros;
        SN_TRY(sn_output_write(writer->output, zeros, piece));
        writer->written += piece;
    }
    return SN_OK;
}

sn_status sn_gguf_write_data(sn_gguf_writer *writer, const void *data, size_t bytes) {
    const uint8_t *from = data;
    SN_TRY(write_header(writer));
    while (bytes) {
        if (writer->current == writer->n_tensors)
            return sn_fail(SN_E_INVAL, "%.300s: %zu bytes more than the tensors hold",
                           writer->path, bytes);
        uint64_t end = writer->ends[writer->current], left = end - writer->written;
        size_t piece = bytes < left ? bytes : (size_t)left;
        SN_TRY(sn_output_write(writer->output, from, piece));
        from += piece;
        bytes -= piece;
        writer->written += piece;
        if (writer->written < end) break;
        SN_TRY(pad(writer));
        writer->current++;
    }
    return SN_OK;
}

sn_status sn_gguf_writer_new(const char *path, sn_gguf_writer **writer) {
    sn_gguf_writer *created = sn_alloc(sizeof *created);
    if (!created) return SN_E_NOMEM;
    size_t bytes = strlen(path) + 1;
    created->alignment = GGUF_ALIGNMENT;
    created->path = sn_alloc(bytes);
    sn_status status = SN_E_NOMEM;
    if (created->path) {
        static const uint8_t fixed[GGUF_FIXED_BYTES];
        memcpy(created->path, path, bytes);
        status = append(created, fixed, sizeof fixed);
    }
    if (status == SN_OK) status = sn_platform_create(path, &created->output);
    if (status == SN_OK)
        *writer = created;
    else
        sn_gguf_writer_discard(created);
    return status;
}

sn_status sn_gguf_writer_finish(sn_gguf_writer *writer) {
    sn_status status = write_header(writer);
    if (status == SN_OK && writer->current < writer->n_tensors)
        status = sn_fail(SN_E_INVAL, "%.300s: data for %" PRIu64 " of %" PRIu64 " tensors came",
                         writer->path, writer->current, writer->n_tensors);
    if (status == SN_OK) {
        status = sn_output_commit(writer->output);
        writer->output = NULL;
    }
    sn_gguf_writer_discard(writer);
    return status;
}

void sn_gguf_writer_discard(sn_gguf_writer *writer) {
    if (!writer) return;
    sn_output_discard(writer->output);
    sn_free(writer->path);
    sn_free(writer->header);
    sn_free(writer->items);
    sn_free(writer->ends);
    sn_free(writer);
}
