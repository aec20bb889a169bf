#include "store.h"

#include "index_sort.h"
#include "json.h"

#include <inttypes.h>
#include <string.h>

/*
 * A 64-bit length, a JSON header of that many bytes, the data. The header names each tensor's
 * type, shape and [begin, end) relative to the data (docs/formats.md). Gaps between tensors are
 * let pass, overlaps are not.
 */

#define LENGTH_BYTES 8
#define MAX_HEADER ((uint64_t)100 << 20)

/* Names of data types; unsigned integers and truth values as the signed type of their size. */
static const struct {
    const char *name;
    const char *type;
} DATA_TYPES[] = {
    { "F64", "F64" }, { "F32", "F32" }, { "F16", "F16" }, { "BF16", "BF16" },
    { "I64", "I64" }, { "I32", "I32" }, { "I16", "I16" }, { "I8", "I8" },
    { "U64", "I64" }, { "U32", "I32" }, { "U16", "I16" }, { "U8", "I8" }, { "BOOL", "I8" },
};

#define N_DATA_TYPES (sizeof DATA_TYPES / sizeof DATA_TYPES[0])

/* Where a tensor's bytes lie, relative to the data. */
typedef struct extent {
    uint64_t begin, end;
    const char *name;
} extent;

typedef struct reader {
    const sn_file *file;
    sn_store *store;
    uint64_t data_start;
    extent *extents; /* of the tensors that have bytes */
    size_t n_extents;
} reader;

#define REJECT(reader_, tensor_, code, format, ...)                                           \
    sn_fail(code, "%.300s: tensor '%.64s': " format, (reader_)->file->name, tensor_, __VA_ARGS__)

/* ---- one tensor --------------------------------------------------------------------- */

static sn_status read_type(const reader *r, const char *name, const sn_json *dtype,
                           const sn_type **type) {
    if (!dtype || dtype->kind != SN_JSON_STRING)
        return REJECT(r, name, SN_E_FORMAT, "%s", "dtype is missing or no text");
    for (size_t i = 0; i < N_DATA_TYPES; i++)
        if (sn_json_is(dtype, DATA_TYPES[i].name)) {
            *type = sn_type_by_name(DATA_TYPES[i].type);
            return SN_OK;
        }
    return REJECT(r, name, SN_E_UNSUPPORTED, "data type %.32s is not supported", dtype->text);
}

/* A whole number from 0 to 2^53. */
static bool read_count(const sn_json *value, uint64_t *count) {
    if (!value || value->kind != SN_JSON_NUMBER || !value->is_integer || value->number < 0)
        return false;
    *count = (uint64_t)value->number;
    return true;
}

static sn_status read_shape(const reader *r, const char *name, const sn_json *shape,
                            sn_view *view) {
    if (!shape || shape->kind != SN_JSON_ARRAY)
        return REJECT(r, name, SN_E_FORMAT, "%s", "shape is missing or no list");
    if (shape->size > SN_STORE_MAX_DIMS)
        return REJECT(r, name, SN_E_UNSUPPORTED, "%zu dimensions, at most %d are supported",
                      shape->size, SN_STORE_MAX_DIMS);
    for (const sn_json *item = shape->first; item; item = item->next)
        if (!read_count(item, &view->dims[view->n_dims++]))
            return REJECT(r, name, SN_E_FORMAT, "dimension %u of its shape is no count",
                          (unsigned)view->n_dims);
    uint64_t stride = 1;
    for (uint32_t i = view->n_dims; i-- > 0;) {
        view->strides[i] = stride;
        if (!sn_mul_u64(stride, view->dims[i], &stride))
            return REJECT(r, name, SN_E_FORMAT, "%s", "its shape has too many elements");
    }
    return SN_OK;
}

static sn_status read_extent(const reader *r, const char *name, const sn_json *offsets,
                             const sn_view *view, extent *found) {
    uint64_t data = r->file->size - r->data_start, bytes;
    if (!offsets || offsets->kind != SN_JSON_ARRAY || offsets->size != 2 ||
        !read_count(offsets->first, &found->begin) ||
        !read_count(offsets->first->next, &found->end))
        return REJECT(r, name, SN_E_FORMAT, "%s", "data_offsets are missing or no two counts");
    if (found->begin > found->end || found->end > data)
        return REJECT(r, name, SN_E_FORMAT, "bytes %" PRIu64 " to %" PRIu64
                      " do not lie in the data of %" PRIu64 " bytes", found->begin, found->end,
                      data);
    if (!sn_mul_u64(sn_view_elements(view), view->type->block_bytes, &bytes) ||
        bytes != found->end - found->begin)
        return REJECT(r, name, SN_E_FORMAT, "%" PRIu64 " bytes for %" PRIu64
                      " elements of %u bytes", found->end - found->begin,
                      sn_view_elements(view), (unsigned)view->type->block_bytes);
    return SN_OK;
}

static sn_status read_tensor(reader *r, const sn_json *member) {
    extent found = { .name = member->key };
    sn_view view = { .name = member->key, .file = r->file };
    if (strlen(member->key) != member->key_size)
        return REJECT(r, member->key, SN_E_FORMAT, "%s", "a NUL character in its name");
    if (member->kind != SN_JSON_OBJECT)
        return REJECT(r, member->key, SN_E_FORMAT, "%s", "its entry is no object");
    SN_TRY(read_type(r, view.name, sn_json_get(member, "dtype"), &view.type));
    SN_TRY(read_shape(r, view.name, sn_json_get(member, "shape"), &view));
    SN_TRY(read_extent(r, view.name, sn_json_get(member, "data_offsets"), &view, &found));
    view.offset = r->data_start + found.begin;
    if (found.begin < found.end) r->extents[r->n_extents++] = found;
    return sn_store_add(r->store, &view);
}

/* ---- the header --------------------------------------------------------------------- */

static sn_status read_notes(const reader *r, const sn_json *metadata) {
    if (metadata->kind != SN_JSON_OBJECT)
        return sn_fail(SN_E_FORMAT, "%.300s: __metadata__ is no object", r->file->name);
    for (const sn_json *note = metadata->first; note; note = note->next) {
        if (note->kind != SN_JSON_STRING)
            return sn_fail(SN_E_FORMAT, "%.300s: __metadata__: '%.64s' is no text", r->file->name,
                           note->key);
        SN_TRY(sn_store_set_note(r->store, note->key, note->text, note->size));
    }
    return SN_OK;
}

static int compare_extents(const void *table, uint32_t a, uint32_t b) {
    const extent *extents = table;
    uint64_t x = extents[a].begin, y = extents[b].begin;
    return x < y ? -1 : x > y;
}

static sn_status check_overlaps(const reader *r) {
    uint32_t *order = sn_alloc_array(r->n_extents, sizeof *order);
    if (!order) return SN_E_NOMEM;
    sn_index_sort(order, r->n_extents, compare_extents, r->extents);
    sn_status status = SN_OK;
    for (size_t i = 1; i < r->n_extents && status == SN_OK; i++) {
        const extent *before = &r->extents[order[i - 1]], *after = &r->extents[order[i]];
        if (after->begin < before->end)
            status = REJECT(r, after->name, SN_E_FORMAT, "its bytes overlap those of '%.64s'",
                            before->name);
    }
    sn_free(order);
    return status;
}

static sn_status read_members(reader *r, const sn_json *root) {
    if (root->kind != SN_JSON_OBJECT)
        return sn_fail(SN_E_FORMAT, "%.300s: the header is no JSON object", r->file->name);
    r->extents = sn_alloc_array(root->size, sizeof *r->extents);
    if (!r->extents) return SN_E_NOMEM;
    for (const sn_json *member = root->first; member; member = member->next)
        if (strcmp(member->key, "__metadata__") == 0)
            SN_TRY(read_notes(r, member));
        else
            SN_TRY(read_tensor(r, member));
    return check_overlaps(r);
}

/* The header's length; false if it cannot be one. */
static bool header_length(const sn_file *file, uint64_t *length) {
    uint8_t bytes[LENGTH_BYTES];
    if (file->size < LENGTH_BYTES ||
        sn_file_read(file, 0, bytes, sizeof bytes) != SN_OK)
        return false;
    *length = 0;
    for (int i = LENGTH_BYTES; i-- > 0;) *length = *length << 8 | bytes[i];
    return true;
}

static sn_status read_header(reader *r, char **text, size_t *size) {
    uint64_t length;
    if (!header_length(r->file, &length))
        return sn_fail(SN_E_FORMAT, "%.300s: not a safetensors file: it has %" PRIu64 " bytes",
                       r->file->name, r->file->size);
    if (length > r->file->size - LENGTH_BYTES)
        return sn_fail(SN_E_FORMAT, "%.300s: a header of %" PRIu64 " bytes, the file has %" PRIu64,
                       r->file->name, length, r->file->size);
    if (length > MAX_HEADER)
        return sn_fail(SN_E_FORMAT, "%.300s: a header of %" PRIu64 " bytes, at most %" PRIu64
                       " are read", r->file->name, length, MAX_HEADER);
    *text = sn_alloc((size_t)length);
    if (!*text) return SN_E_NOMEM;
    *size = (size_t)length;
    r->data_start = LENGTH_BYTES + length;
    return sn_file_read(r->file, LENGTH_BYTES, *text, *size);
}

sn_status sn_safetensors_read(sn_file *file, sn_store *store) {
    reader r = { .store = store };
    SN_TRY(sn_store_add_file(store, file, &r.file));
    char *text = NULL;
    size_t size = 0;
    sn_json_document *header = NULL;
    sn_status status = read_header(&r, &text, &size);
    if (status == SN_OK) status = sn_json_parse(text, size, r.file->name, false, &header);
    sn_free(text);
    if (status == SN_OK) status = read_members(&r, sn_json_root(header));
    sn_free(r.extents);
    sn_json_free(header);
    return status;
}

bool sn_safetensors_smells(const sn_file *file) {
    uint64_t length;
    char first;
    return file->size > LENGTH_BYTES && header_length(file, &length) && length >= 2 &&
           length <= MAX_HEADER && length <= file->size - LENGTH_BYTES &&
           sn_file_read(file, LENGTH_BYTES, &first, 1) == SN_OK && first == '{';
}
