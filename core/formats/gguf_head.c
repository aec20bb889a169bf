#include "gguf_head.h"

#include "../quant/types.h"
#include "gguf_layout.h"
#include "index_sort.h"

#include <inttypes.h>
#include <string.h>

/* ---- bytes -------------------------------------------------------------------------- */

/* `table` with room for an (n + 1)-th item of `size` bytes; NULL if there is no memory. */
static void *reserve(void *table, size_t *capacity, size_t n, size_t size) {
    if (n < *capacity) return table;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = sn_grow(table, *capacity * size, wanted * size);
    if (grown) *capacity = wanted;
    return grown;
}

static sn_status append(sn_gguf_head *head, const void *data, size_t bytes) {
    uint64_t needed = (uint64_t)head->n_bytes + bytes;
    if (bytes > GGUF_MAX_HEADER || needed > GGUF_MAX_HEADER)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: the header takes more than %" PRIu64 " bytes",
                       head->name, GGUF_MAX_HEADER);
    if (needed > head->capacity) {
        size_t doubled = 2 * head->capacity;
        size_t capacity = doubled > needed ? doubled : (size_t)needed;
        uint8_t *grown = sn_grow(head->bytes, head->n_bytes, capacity);
        if (!grown) return SN_E_NOMEM;
        head->bytes = grown;
        head->capacity = capacity;
    }
    if (bytes) memcpy(head->bytes + head->n_bytes, data, bytes);
    head->n_bytes = (size_t)needed;
    return SN_OK;
}

static sn_status append_number(sn_gguf_head *head, uint32_t bytes, uint64_t value) {
    uint8_t data[8];
    gguf_store(data, sizeof data, value); /* little-endian: the first bytes are the number */
    return append(head, data, bytes);
}

static sn_status append_string(sn_gguf_head *head, sn_span string) {
    SN_TRY(append_number(head, 8, string.size));
    return append(head, string.data, string.size);
}

static sn_span span_of(const char *text) {
    return (sn_span){ .data = text, .size = strlen(text) };
}

static sn_status note_item(sn_gguf_head *head) {
    size_t n = (size_t)(head->n_keys + head->n_tensors);
    size_t *items = reserve(head->items, &head->items_capacity, n, sizeof *items);
    if (!items) return SN_E_NOMEM;
    head->items = items;
    head->items[n] = head->n_bytes;
    return SN_OK;
}

sn_status sn_gguf_head_init(sn_gguf_head *head, const char *name) {
    static const uint8_t fixed[GGUF_FIXED_BYTES];
    *head = (sn_gguf_head){ .name = name, .alignment = GGUF_ALIGNMENT };
    return append(head, fixed, sizeof fixed);
}

void sn_gguf_head_free(sn_gguf_head *head) {
    sn_free(head->bytes);
    sn_free(head->items);
    sn_free(head->ends);
    *head = (sn_gguf_head){ 0 };
}

/* ---- metadata ----------------------------------------------------------------------- */

static sn_status put_key(sn_gguf_head *head, sn_span key, sn_gguf_kind kind) {
    if (head->n_tensors || head->finished)
        return sn_fail(SN_E_INVAL, "%.300s: key '%.*s' comes after the first tensor",
                       head->name, (int)(key.size < 64 ? key.size : 64), key.data);
    if (key.size == 0) return sn_fail(SN_E_INVAL, "%.300s: an empty key", head->name);
    SN_TRY(note_item(head));
    SN_TRY(append_string(head, key));
    SN_TRY(append_number(head, 4, kind));
    head->n_keys++;
    return SN_OK;
}

static sn_status put_array(sn_gguf_head *head, const char *key, sn_gguf_kind element,
                           uint64_t n) {
    SN_TRY(put_key(head, span_of(key), SN_GGUF_ARRAY));
    SN_TRY(append_number(head, 4, element));
    return append_number(head, 8, n);
}

/* The data obeys the alignment that is written down. */
static sn_status note_alignment(sn_gguf_head *head, sn_span key, uint64_t value) {
    static const char name[] = "general.alignment";
    if (key.size != sizeof name - 1 || memcmp(key.data, name, key.size) != 0) return SN_OK;
    if (!gguf_alignment_ok(value))
        return sn_fail(SN_E_INVAL, "%.300s: key '%s': %" PRIu64 " is not a power of two up to "
                       "%d", head->name, name, value, GGUF_MAX_ALIGNMENT);
    head->alignment = value;
    return SN_OK;
}

sn_status sn_gguf_head_put_number(sn_gguf_head *head, const char *key, sn_gguf_kind kind,
                                  uint64_t bits) {
    SN_TRY(note_alignment(head, span_of(key), bits));
    SN_TRY(put_key(head, span_of(key), kind));
    return append_number(head, gguf_kind_bytes(kind), bits);
}

sn_status sn_gguf_head_put_text(sn_gguf_head *head, const char *key, sn_span text) {
    SN_TRY(put_key(head, span_of(key), SN_GGUF_STRING));
    return append_string(head, text);
}

sn_status sn_gguf_head_put_words(sn_gguf_head *head, const char *key, sn_gguf_kind kind,
                                 const uint32_t *words, uint64_t n) {
    SN_TRY(put_array(head, key, kind, n));
    for (uint64_t i = 0; i < n; i++) SN_TRY(append_number(head, 4, words[i]));
    return SN_OK;
}

sn_status sn_gguf_head_put_texts(sn_gguf_head *head, const char *key, const sn_span *texts,
                                 uint64_t n) {
    SN_TRY(put_array(head, key, SN_GGUF_STRING, n));
    for (uint64_t i = 0; i < n; i++) SN_TRY(append_string(head, texts[i]));
    return SN_OK;
}

sn_status sn_gguf_head_put_value(sn_gguf_head *head, const sn_gguf_value *value) {
    uint32_t bytes = gguf_kind_bytes(value->kind);
    if (bytes) SN_TRY(note_alignment(head, value->key, gguf_load(value->data, bytes)));
    SN_TRY(put_key(head, value->key, value->kind));
    if (value->kind == SN_GGUF_STRING) SN_TRY(append_number(head, 8, value->bytes));
    if (value->kind == SN_GGUF_ARRAY) {
        SN_TRY(append_number(head, 4, value->element));
        SN_TRY(append_number(head, 8, value->count));
    }
    return append(head, value->data, value->bytes);
}

bool sn_gguf_head_has(const sn_gguf_head *head, const char *key) {
    size_t size = strlen(key);
    for (uint64_t i = 0; i < head->n_keys; i++) {
        const uint8_t *item = head->bytes + head->items[i];
        if (gguf_load_u64(item) == size && memcmp(item + 8, key, size) == 0) return true;
    }
    return false;
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

sn_status sn_gguf_head_declare(sn_gguf_head *head, const char *name, uint32_t type,
                               uint32_t n_dims, const uint64_t *dims, uint64_t bytes) {
    size_t n = (size_t)head->n_tensors;
    uint64_t expected = 0;
    if (head->finished)
        return sn_fail(SN_E_INVAL, "%.300s: tensor '%.64s' is declared after the first data",
                       head->name, name);
    if (!*name || strlen(name) >= GGUF_NAME_BYTES || n >= GGUF_MAX_TENSORS ||
        !shape_bytes(type, n_dims, dims, &expected) || expected != bytes)
        return sn_fail(SN_E_INVAL, "%.300s: tensor '%.64s': %" PRIu64 " bytes of type %" PRIu32
                       " and %" PRIu32 " dimensions cannot be declared", head->name, name,
                       bytes, type, n_dims);
    uint64_t *ends = reserve(head->ends, &head->ends_capacity, n, sizeof *ends);
    if (!ends) return SN_E_NOMEM;
    head->ends = ends;
    SN_TRY(note_item(head));
    uint64_t offset = n ? sn_gguf_head_align(head, head->ends[n - 1]) : 0;
    SN_TRY(append_string(head, span_of(name)));
    SN_TRY(append_number(head, 4, n_dims));
    for (uint32_t i = 0; i < n_dims; i++) SN_TRY(append_number(head, 8, dims[i]));
    SN_TRY(append_number(head, 4, type));
    SN_TRY(append_number(head, 8, offset));
    head->ends[n] = offset + bytes;
    head->n_tensors++;
    return SN_OK;
}

/* ---- the whole ---------------------------------------------------------------------- */

/* Some items of a header, for comparing them. */
typedef struct item_table {
    const uint8_t *bytes;
    const size_t *items;
} item_table;

static sn_span item_text(const item_table *table, uint32_t i) {
    const uint8_t *length = table->bytes + table->items[i];
    return (sn_span){ .data = (const char *)length + 8, .size = (size_t)gguf_load_u64(length) };
}

static int compare_items(const void *table, uint32_t a, uint32_t b) {
    sn_span x = item_text(table, a), y = item_text(table, b);
    int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

/* No two of the n keys or names from items[first] may be equal: no reader would take them. */
static sn_status refuse_equal(const sn_gguf_head *head, size_t first, size_t n) {
    item_table table = { .bytes = head->bytes, .items = head->items + first };
    uint32_t *order = sn_alloc_array(n, sizeof *order);
    if (!order) return SN_E_NOMEM;
    sn_index_sort(order, n, compare_items, &table);
    sn_status status = SN_OK;
    for (size_t i = 1; i < n && status == SN_OK; i++) {
        sn_span text = item_text(&table, order[i]);
        if (compare_items(&table, order[i - 1], order[i]) == 0)
            status = sn_fail(SN_E_INVAL, "%.300s: '%.*s' is written twice", head->name,
                             (int)(text.size < 64 ? text.size : 64), text.data);
    }
    sn_free(order);
    return status;
}

sn_status sn_gguf_head_finish(sn_gguf_head *head) {
    if (head->finished) return SN_OK;
    SN_TRY(refuse_equal(head, 0, (size_t)head->n_keys));
    SN_TRY(refuse_equal(head, (size_t)head->n_keys, (size_t)head->n_tensors));
    memcpy(head->bytes, "GGUF", 4);
    gguf_store(head->bytes + 4, 4, 3);
    gguf_store(head->bytes + 8, 8, head->n_tensors);
    gguf_store(head->bytes + 16, 8, head->n_keys);
    while (head->n_bytes % head->alignment) SN_TRY(append(head, "", 1));
    head->finished = true;
    return SN_OK;
}
