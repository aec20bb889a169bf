#include "gguf_layout.h"

#include "../quant/types.h"
#include "index_sort.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_STRING ((uint64_t)1 << 30)
#define MAX_ELEMENTS ((uint64_t)1 << 62)
#define MAX_KEYS 65536 /* with GGUF_MAX_TENSORS: the tables of a hostile file stay small */
#define READ_AHEAD ((uint64_t)1 << 20)
#define SHOWN_BYTES 64 /* of a name in an error text */

/*
 * The header is walked twice. The first walk pulls it into part->header, which moves as it
 * grows, and proves that everything the counts announce is there; the tables are then
 * allocated, so no lying count costs memory, and the second walk fills them.
 */
typedef struct reader {
    struct sn_gguf_part *part; /* header[0, header_bytes) has been read */
    size_t capacity, at;
    uint64_t keys_left, infos_left, strings_left; /* after the one at hand */
    uint64_t n_strings;  /* offsets that part->string_offsets must hold, or holds */
    uint64_t name_bytes; /* the same for part->names */
    const char *item; /* "key" or "tensor", for error texts */
    uint64_t index, count;
    size_t shown_at, shown_size; /* where in the header its name stands */
} reader;

/* ---- taking bytes ------------------------------------------------------------------- */

SN_PRINTF(2, 3)
static sn_status reject(const reader *r, const char *format, ...) {
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    const char *file = r->part->input.name;
    if (!r->item) return sn_fail(SN_E_FORMAT, "%.300s: header: %s", file, reason);
    if (!r->shown_size)
        return sn_fail(SN_E_FORMAT, "%.300s: %s %" PRIu64 " of %" PRIu64 ": %s", file, r->item,
                       r->index + 1, r->count, reason);
    return sn_fail(SN_E_FORMAT, "%.300s: %s '%.*s': %s", file, r->item, (int)r->shown_size,
                   (const char *)r->part->header + r->shown_at, reason);
}

static void at_item(reader *r, const char *item, uint64_t index, uint64_t count) {
    r->item = item;
    r->index = index;
    r->count = count;
    r->shown_size = 0;
}

static void show_name(reader *r, sn_span name) {
    r->shown_at = r->at - name.size;
    r->shown_size = name.size < SHOWN_BYTES ? name.size : SHOWN_BYTES;
}

static uint64_t bytes_left(const reader *r) {
    return r->part->header_bytes - r->at + sn_input_left(&r->part->input);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/*
 * Bytes that belong to the header whatever the items still to come hold. Reading them ahead
 * saves a request to the source per field and never takes a byte of the data section.
 */
static uint64_t promised(const reader *r) {
    return smaller(READ_AHEAD, r->strings_left * 8 + r->keys_left * GGUF_MIN_KEY_BYTES +
                                   r->infos_left * GGUF_MIN_INFO_BYTES);
}

/* Appends at least `missing` bytes to the header; the caller knows that they are there. */
static sn_status pull(reader *r, uint64_t missing) {
    struct sn_gguf_part *part = r->part;
    uint64_t filled = part->header_bytes, left = sn_input_left(&part->input);
    uint64_t bytes = smaller(missing + promised(r), left);
    if (filled + bytes > GGUF_MAX_HEADER)
        return reject(r, "the header takes more than %" PRIu64 " bytes", GGUF_MAX_HEADER);
    if (filled + bytes > r->capacity) {
        uint64_t doubled = smaller(2 * (uint64_t)r->capacity, filled + left);
        size_t capacity = (size_t)(doubled > filled + bytes ? doubled : filled + bytes);
        uint8_t *grown = sn_grow(part->header, part->header_bytes, capacity);
        if (!grown) return SN_E_NOMEM;
        part->header = grown;
        r->capacity = capacity;
    }
    SN_TRY(sn_input_read(&part->input, part->header + filled, (size_t)bytes));
    part->header_bytes += (size_t)bytes;
    return SN_OK;
}

/* The next `bytes` bytes; *data is good until the next take of the first walk. */
static sn_status take(reader *r, uint64_t bytes, const uint8_t **data) {
    if (bytes > bytes_left(r))
        return reject(r, "%" PRIu64 " bytes needed, %" PRIu64 " left", bytes, bytes_left(r));
    size_t have = r->part->header_bytes - r->at;
    if (bytes > have) SN_TRY(pull(r, bytes - have));
    *data = r->part->header + r->at;
    r->at += (size_t)bytes;
    return SN_OK;
}

static sn_status take_u32(reader *r, uint32_t *value) {
    const uint8_t *data = NULL;
    SN_TRY(take(r, 4, &data));
    *value = gguf_load_u32(data);
    return SN_OK;
}

static sn_status take_u64(reader *r, uint64_t *value) {
    const uint8_t *data = NULL;
    SN_TRY(take(r, 8, &data));
    *value = gguf_load_u64(data);
    return SN_OK;
}

static sn_status take_string(reader *r, sn_span *string) {
    uint64_t size = 0;
    const uint8_t *data;
    SN_TRY(take_u64(r, &size));
    if (size > MAX_STRING)
        return reject(r, "a string of %" PRIu64 " bytes, at most %" PRIu64 " are allowed", size,
                      MAX_STRING);
    SN_TRY(take(r, size, &data));
    *string = (sn_span){ .data = (const char *)data, .size = (size_t)size };
    return SN_OK;
}

/* ---- keys and values ---------------------------------------------------------------- */

static void note_string(reader *r, size_t start) {
    if (r->part->string_offsets)
        r->part->string_offsets[r->n_strings] = (uint32_t)(r->at - start);
    r->n_strings++;
}

static sn_status take_strings(reader *r, sn_gguf_value *value) {
    size_t start = r->at;
    if (r->part->string_offsets) value->string_at = r->part->string_offsets + r->n_strings;
    for (uint64_t i = 0; i < value->count; i++) {
        sn_span string;
        r->strings_left = value->count - 1 - i;
        note_string(r, start);
        SN_TRY(take_string(r, &string));
    }
    note_string(r, start);
    value->data = r->part->header + start;
    value->bytes = r->at - start;
    return SN_OK;
}

static sn_status take_array(reader *r, sn_gguf_value *value) {
    uint32_t element = 0;
    SN_TRY(take_u32(r, &element));
    SN_TRY(take_u64(r, &value->count));
    if (element > SN_GGUF_F64) return reject(r, "unknown element type %" PRIu32, element);
    if (element == SN_GGUF_ARRAY || element == SN_GGUF_BOOL)
        return reject(r, "arrays of type %s are not supported", gguf_kind_name(element));
    value->element = (sn_gguf_kind)element;
    uint32_t each = element == SN_GGUF_STRING ? 8 : gguf_kind_bytes(element);
    if (value->count > bytes_left(r) / each)
        return reject(r, "an array of %" PRIu64 " x %s cannot lie in %" PRIu64 " bytes",
                      value->count, gguf_kind_name(element), bytes_left(r));
    if (element == SN_GGUF_STRING) return take_strings(r, value);
    value->bytes = (size_t)(value->count * each);
    return take(r, value->count * each, &value->data);
}

static sn_status take_payload(reader *r, sn_gguf_value *value) {
    value->count = 1;
    if (value->kind == SN_GGUF_ARRAY) return take_array(r, value);
    if (value->kind == SN_GGUF_STRING) {
        sn_span string = { 0 };
        SN_TRY(take_string(r, &string));
        value->data = (const uint8_t *)string.data;
        value->bytes = string.size;
        return SN_OK;
    }
    value->bytes = gguf_kind_bytes(value->kind);
    return take(r, value->bytes, &value->data);
}

static sn_status take_value(reader *r, sn_gguf_value *value) {
    uint32_t kind = 0;
    SN_TRY(take_string(r, &value->key));
    if (value->key.size == 0) return reject(r, "its name is empty");
    show_name(r, value->key);
    SN_TRY(take_u32(r, &kind));
    if (kind > SN_GGUF_F64) return reject(r, "unknown value type %" PRIu32, kind);
    value->kind = (sn_gguf_kind)kind;
    return take_payload(r, value);
}

static sn_status walk_keys(reader *r, const sn_gguf *gguf) {
    r->at = GGUF_FIXED_BYTES;
    r->n_strings = 0;
    r->infos_left = gguf->n_tensors;
    for (uint64_t i = 0; i < gguf->n_values; i++) {
        sn_gguf_value value = { 0 };
        at_item(r, "key", i, gguf->n_values);
        r->keys_left = gguf->n_values - 1 - i;
        SN_TRY(take_value(r, &value));
        if (gguf->values) gguf->values[i] = value;
    }
    return SN_OK;
}

/* ---- tensor infos ------------------------------------------------------------------- */

static sn_status take_tensor_name(reader *r, sn_gguf_tensor *tensor) {
    sn_span name;
    SN_TRY(take_string(r, &name));
    if (name.size == 0) return reject(r, "its name is empty");
    show_name(r, name);
    if (name.size >= GGUF_NAME_BYTES)
        return reject(r, "a name of %zu bytes, at most %d are allowed", name.size,
                      GGUF_NAME_BYTES - 1);
    if (memchr(name.data, 0, name.size)) return reject(r, "its name holds a zero byte");
    if (r->part->names) {
        char *copy = r->part->names + r->name_bytes; /* zeroed, so it ends with a NUL */
        memcpy(copy, name.data, name.size);
        tensor->name = copy;
    }
    r->name_bytes += name.size + 1;
    return SN_OK;
}

/* The offset stays relative to the data section. */
static sn_status take_info(reader *r, sn_gguf_tensor *tensor) {
    SN_TRY(take_tensor_name(r, tensor));
    SN_TRY(take_u32(r, &tensor->n_dims));
    if (tensor->n_dims > 4)
        return reject(r, "%" PRIu32 " dimensions, at most 4 are allowed", tensor->n_dims);
    for (uint32_t i = 0; i < 4; i++) {
        tensor->dims[i] = 1;
        if (i < tensor->n_dims) SN_TRY(take_u64(r, &tensor->dims[i]));
    }
    while (tensor->n_dims > 1 && tensor->dims[tensor->n_dims - 1] == 1) tensor->n_dims--;
    if (tensor->n_dims == 0) tensor->n_dims = 1;
    SN_TRY(take_u32(r, &tensor->type));
    return take_u64(r, &tensor->offset);
}

static sn_status count_elements(const reader *r, const sn_gguf_tensor *tensor,
                                uint64_t *elements) {
    *elements = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        uint64_t dim = tensor->dims[i];
        if (dim == 0 || dim > INT64_MAX)
            return reject(r, "dimension %" PRIu32 " is %" PRId64, i, (int64_t)dim);
        if (!sn_mul_u64(*elements, dim, elements) || *elements > MAX_ELEMENTS)
            return reject(r, "its dimensions multiply to more than 2^62 elements");
    }
    return SN_OK;
}

/* Checks shape and place, sets bytes and makes the offset one in the file. */
static sn_status check_info(const reader *r, sn_gguf_tensor *tensor, uint64_t alignment,
                            uint64_t data_start) {
    uint64_t elements, size = r->part->input.size;
    uint64_t data_bytes = size > data_start ? size - data_start : 0;
    SN_TRY(count_elements(r, tensor, &elements));
    const sn_type *type = sn_type_find(tensor->type);
    if (!type || (sn_type_is_private(type) && !r->part->input.own_types))
        return reject(r, "unknown tensor type %" PRIu32, tensor->type);
    if (tensor->dims[0] % type->block)
        return reject(r, "rows of %" PRIu64 " elements, %s comes in blocks of %" PRIu32,
                      tensor->dims[0], type->name, type->block);
    if (!sn_mul_u64(elements / type->block, type->block_bytes, &tensor->bytes))
        return reject(r, "%" PRIu64 " elements of type %s are too many", elements, type->name);
    if (tensor->offset % alignment)
        return reject(r, "offset %" PRIu64 " is not a multiple of the alignment %" PRIu64,
                      tensor->offset, alignment);
    if (tensor->offset > data_bytes || tensor->bytes > data_bytes - tensor->offset)
        return reject(r, "%" PRIu64 " bytes at offset %" PRIu64 " needed, the file holds %" PRIu64
                      " bytes of data", tensor->bytes, tensor->offset, data_bytes);
    tensor->offset += data_start;
    return SN_OK;
}

static void at_tensor(reader *r, const sn_gguf *gguf, uint64_t i) {
    at_item(r, "tensor", i, gguf->n_tensors);
    r->infos_left = gguf->n_tensors - 1 - i;
}

static sn_status walk_infos(reader *r, const sn_gguf *gguf) {
    for (uint64_t i = 0; i < gguf->n_tensors; i++) {
        sn_gguf_tensor tensor = { 0 };
        at_tensor(r, gguf, i);
        SN_TRY(take_info(r, &tensor));
    }
    return SN_OK;
}

static sn_status fill_tensors(reader *r, sn_gguf *gguf, uint64_t alignment,
                              uint64_t data_start) {
    r->name_bytes = 0;
    for (uint64_t i = 0; i < gguf->n_tensors; i++) {
        at_tensor(r, gguf, i);
        SN_TRY(take_info(r, &gguf->tensors[i]));
        SN_TRY(check_info(r, &gguf->tensors[i], alignment, data_start));
    }
    return SN_OK;
}

/* ---- order and duplicates ----------------------------------------------------------- */

static int compare_keys(const void *table, uint32_t a, uint32_t b) {
    const sn_gguf_value *values = table;
    sn_span x = values[a].key, y = values[b].key;
    int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

static int compare_offsets(const void *table, uint32_t a, uint32_t b) {
    const sn_gguf_tensor *tensors = table;
    return (tensors[a].offset > tensors[b].offset) - (tensors[a].offset < tensors[b].offset);
}

static sn_status refuse_equal_keys(const sn_gguf *gguf) {
    size_t n = (size_t)gguf->n_values;
    uint32_t *order = sn_alloc_array(n, sizeof *order);
    if (!order) return SN_E_NOMEM;
    sn_index_sort(order, n, compare_keys, gguf->values);
    sn_status status = SN_OK;
    for (size_t i = 1; i < n && status == SN_OK; i++) {
        sn_span key = gguf->values[order[i]].key;
        if (compare_keys(gguf->values, order[i - 1], order[i]) == 0)
            status = sn_fail(SN_E_FORMAT, "%.300s: key '%.*s': it occurs twice",
                             sn_gguf_name(gguf),
                             key.size < SHOWN_BYTES ? (int)key.size : SHOWN_BYTES, key.data);
    }
    sn_free(order);
    return status;
}

/*
 * Puts the tensors of one part in the order of their data, the order in which a source can
 * deliver them. Data that two tensors share cannot be delivered twice and is refused, which
 * also keeps the sum of all tensors below the file's size.
 */
static sn_status sort_by_offset(sn_gguf *gguf) {
    size_t n = (size_t)gguf->n_tensors;
    uint32_t *order = sn_alloc_array(n, sizeof *order);
    sn_gguf_tensor *sorted = sn_alloc_array(n, sizeof *sorted);
    sn_status status = order && sorted ? SN_OK : SN_E_NOMEM;
    if (status == SN_OK) {
        sn_index_sort(order, n, compare_offsets, gguf->tensors);
        for (size_t i = 0; i < n; i++) sorted[i] = gguf->tensors[order[i]];
        for (size_t i = 1; i < n && status == SN_OK; i++)
            if (sorted[i].offset - sorted[i - 1].offset < sorted[i - 1].bytes)
                status = sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': its data at byte %" PRIu64
                                 " overlaps that of '%s'", sn_gguf_name(gguf), sorted[i].name,
                                 sorted[i].offset, sorted[i - 1].name);
        sn_gguf_tensor *unsorted = gguf->tensors;
        gguf->tensors = sorted;
        sorted = unsorted;
    }
    sn_free(order);
    sn_free(sorted);
    return status;
}

/* ---- the header --------------------------------------------------------------------- */

static sn_status check_version(const reader *r, uint32_t version) {
    const char *file = r->part->input.name;
    if (version == 2 || version == 3) return SN_OK;
    if (version == 1)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: GGUF version 1 is too old; 2 and 3 are read",
                       file);
    if (version && (version & 0xffff) == 0)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: big-endian GGUF files are not supported", file);
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: GGUF version %" PRIu32 " is not known; 2 and 3 are "
                   "read", file, version);
}

static sn_status check_count(const reader *r, const char *things, uint64_t count,
                             uint64_t min_bytes, uint64_t most) {
    if (count > bytes_left(r) / min_bytes)
        return reject(r, "%" PRId64 " %s cannot lie in %" PRIu64 " bytes", (int64_t)count,
                      things, bytes_left(r));
    if (count > most)
        return reject(r, "%" PRIu64 " %s, at most %" PRIu64 " are allowed", count, things, most);
    return SN_OK;
}

static sn_status take_start(reader *r, sn_gguf *gguf) {
    const uint8_t *magic = NULL;
    if (bytes_left(r) >= 4) SN_TRY(take(r, 4, &magic));
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return sn_fail(SN_E_FORMAT, "%.300s: not a GGUF file", r->part->input.name);
    SN_TRY(take_u32(r, &gguf->version));
    SN_TRY(check_version(r, gguf->version));
    SN_TRY(take_u64(r, &gguf->n_tensors));
    SN_TRY(take_u64(r, &gguf->n_values));
    SN_TRY(check_count(r, "tensors", gguf->n_tensors, GGUF_MIN_INFO_BYTES,
                       GGUF_MAX_TENSORS));
    return check_count(r, "keys", gguf->n_values, GGUF_MIN_KEY_BYTES, MAX_KEYS);
}

/* Room for what the first walk has seen. */
static sn_status allocate_tables(const reader *r, sn_gguf *gguf) {
    struct sn_gguf_part *part = r->part;
    gguf->values = sn_alloc_array((size_t)gguf->n_values, sizeof *gguf->values);
    gguf->tensors = sn_alloc_array((size_t)gguf->n_tensors, sizeof *gguf->tensors);
    part->names = sn_alloc((size_t)r->name_bytes);
    part->string_offsets = sn_alloc_array((size_t)r->n_strings, sizeof *part->string_offsets);
    bool all = gguf->values && gguf->tensors && part->names && part->string_offsets;
    return all ? SN_OK : SN_E_NOMEM;
}

static sn_status get_alignment(const sn_gguf *gguf, uint32_t *alignment) {
    *alignment = GGUF_ALIGNMENT;
    SN_TRY(sn_gguf_get_u32(gguf, "general.alignment", false, alignment));
    if (gguf_alignment_ok(*alignment)) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: key 'general.alignment': %" PRIu32 " is not a power of "
                   "two up to %d", sn_gguf_name(gguf), *alignment, GGUF_MAX_ALIGNMENT);
}

sn_status sn_gguf_read_header(sn_gguf *gguf) {
    reader r = { .part = gguf->parts };
    uint32_t alignment;
    SN_TRY(take_start(&r, gguf));
    SN_TRY(walk_keys(&r, gguf));
    SN_TRY(walk_infos(&r, gguf));
    assert(r.at == r.part->header_bytes); /* nothing was read ahead of the header's end */
    uint64_t end = r.at, size = r.part->input.size;
    SN_TRY(allocate_tables(&r, gguf));
    SN_TRY(walk_keys(&r, gguf));
    SN_TRY(refuse_equal_keys(gguf));
    SN_TRY(get_alignment(gguf, &alignment));
    uint64_t data_start = (end + alignment - 1) / alignment * alignment;
    SN_TRY(fill_tensors(&r, gguf, alignment, data_start));
    SN_TRY(sort_by_offset(gguf));
    return sn_input_skip_to(&r.part->input, smaller(data_start, size));
}
