#include "packed.h"

#include <string.h>

/* The parallel arrays; their elements are still unchecked. */
typedef struct entries {
    const sn_gguf_value *names, *types, *dims;
} entries;

static bool is_integer(sn_gguf_kind kind) {
    return kind != SN_GGUF_F32 && kind != SN_GGUF_F64 && kind != SN_GGUF_STRING &&
           kind != SN_GGUF_ARRAY && kind != SN_GGUF_BOOL;
}

static sn_status check_number(const sn_gguf *gguf, const char *key, uint32_t wanted) {
    uint32_t value = 0;
    SN_TRY(sn_gguf_get_u32(gguf, key, true, &value));
    if (value != wanted)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s is %u, only %u can be read",
                       sn_gguf_name(gguf), key, (unsigned)value, (unsigned)wanted);
    return SN_OK;
}

static sn_status find_array(const sn_gguf *gguf, const char *key, bool texts, uint64_t count,
                            const sn_gguf_value **out) {
    const sn_gguf_value *value = sn_gguf_find(gguf, key);
    if (!value)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s' is missing", sn_gguf_name(gguf), key);
    bool kind = value->kind == SN_GGUF_ARRAY &&
                (texts ? value->element == SN_GGUF_STRING : is_integer(value->element));
    if (!kind)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s' is not an array of %s",
                       sn_gguf_name(gguf), key, texts ? "texts" : "integers");
    if (!texts && value->count != count)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s' has %llu elements, %llu needed",
                       sn_gguf_name(gguf), key, (unsigned long long)value->count,
                       (unsigned long long)count);
    *out = value;
    return SN_OK;
}

static bool dimension(int64_t value, uint32_t *out) {
    if (value < 1 || value > UINT32_MAX) return false;
    *out = (uint32_t)value;
    return true;
}

/* Entry `i` of the arrays for `tensor`, which it names. */
static sn_status read_entry(const sn_gguf *gguf, const entries *list, uint64_t i,
                            const sn_gguf_tensor *tensor, sn_packed_tensor *out) {
    int64_t id = sn_gguf_int_at(list->types, i);
    sn_packed_tensor matrix = {0};
    matrix.type = id >= 0 && id <= UINT32_MAX ? sn_type_find((uint32_t)id) : NULL;
    if (!matrix.type || sn_type_is_private(matrix.type) || !sn_panel_supports(matrix.type))
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': type %lld has no panels",
                       sn_gguf_name(gguf), tensor->name, (long long)id);
    if (!dimension(sn_gguf_int_at(list->dims, 2 * i), &matrix.k) ||
        !dimension(sn_gguf_int_at(list->dims, 2 * i + 1), &matrix.rows) ||
        matrix.k > SN_PACKED_MAX_K || matrix.k % matrix.type->block)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': no %s matrix has its packed dimensions",
                       sn_gguf_name(gguf), tensor->name, matrix.type->name);
    uint64_t needed = sn_packed_bytes(&matrix);
    if (tensor->type != SN_TYPE_I8 || tensor->n_dims != 1 || tensor->bytes != needed)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': %llu bytes of panels needed, %llu there",
                       sn_gguf_name(gguf), tensor->name, (unsigned long long)needed,
                       (unsigned long long)tensor->bytes);
    *out = matrix;
    return SN_OK;
}

static bool same_text(sn_span span, const char *text) {
    size_t size = strlen(text);
    return span.size == size && !memcmp(span.data, text, size);
}

/* Names stand in the tensors' order, so one walk finds each exactly once. */
static sn_status read_entries(const sn_gguf *gguf, const entries *list, sn_packed *out) {
    uint64_t next = 0;
    for (uint64_t t = 0; t < gguf->n_tensors && next < list->names->count; t++) {
        const sn_gguf_tensor *tensor = &gguf->tensors[t];
        if (!same_text(sn_gguf_string_at(list->names, next), tensor->name)) continue;
        SN_TRY(read_entry(gguf, list, next, tensor, &out->tensors[t]));
        next++;
    }
    if (next == list->names->count) return SN_OK;
    sn_span name = sn_gguf_string_at(list->names, next);
    return sn_fail(SN_E_FORMAT, "%.300s: %s: '%.*s' is no tensor, named twice or out of order",
                   sn_gguf_name(gguf), SN_PACKED_NAMES, (int)(name.size < 64 ? name.size : 64),
                   name.data);
}

sn_status sn_packed_read(const sn_gguf *gguf, sn_packed *out) {
    sn_packed packed = {0};
    entries list = {0};
    if (!sn_gguf_find(gguf, SN_PACKED_VERSION) && !sn_gguf_find(gguf, SN_PACKED_NAMES)) {
        *out = packed;
        return SN_OK;
    }
    SN_TRY(check_number(gguf, SN_PACKED_VERSION, 1));
    SN_TRY(check_number(gguf, SN_PACKED_ROWS, SN_PANEL_ROWS));
    SN_TRY(find_array(gguf, SN_PACKED_NAMES, true, 0, &list.names));
    uint64_t n = list.names->count;
    SN_TRY(find_array(gguf, SN_PACKED_TYPES, false, n, &list.types));
    SN_TRY(find_array(gguf, SN_PACKED_DIMS, false, 2 * n, &list.dims));

    packed.n_tensors = gguf->n_tensors;
    packed.tensors = sn_alloc_array((size_t)gguf->n_tensors, sizeof *packed.tensors);
    if (!packed.tensors) return SN_E_NOMEM;
    sn_status status = read_entries(gguf, &list, &packed);
    if (status == SN_OK) *out = packed;
    else sn_packed_free(&packed);
    return status;
}

void sn_packed_free(sn_packed *packed) {
    sn_free(packed->tensors);
    packed->tensors = NULL;
    packed->n_tensors = 0;
}
