#include "gguf_layout.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

const sn_gguf_value *sn_gguf_find(const sn_gguf *gguf, const char *key) {
    size_t size = strlen(key);
    for (uint64_t i = 0; i < gguf->n_values; i++) {
        const sn_gguf_value *value = &gguf->values[i];
        if (value->key.size == size && memcmp(value->key.data, key, size) == 0) return value;
    }
    return NULL;
}

static bool is_int(sn_gguf_kind kind) {
    return kind <= SN_GGUF_I32 || kind == SN_GGUF_U64 || kind == SN_GGUF_I64;
}

static bool is_float(sn_gguf_kind kind) {
    return kind == SN_GGUF_F32 || kind == SN_GGUF_F64;
}

static bool is_bool(sn_gguf_kind kind) {
    return kind == SN_GGUF_BOOL;
}

static bool is_string(sn_gguf_kind kind) {
    return kind == SN_GGUF_STRING;
}

/* u64 values beyond INT64_MAX become INT64_MAX: still out of every range asked for. */
static int64_t load_int(sn_gguf_kind kind, const uint8_t *data) {
    uint64_t bits = gguf_load(data, gguf_kind_bytes(kind));
    switch (kind) {
    case SN_GGUF_I8: return (int8_t)bits;
    case SN_GGUF_I16: return (int16_t)bits;
    case SN_GGUF_I32: return (int32_t)bits;
    case SN_GGUF_U64: return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    default: return (int64_t)bits;
    }
}

static double load_float(sn_gguf_kind kind, const uint8_t *data) {
    if (kind == SN_GGUF_F32) {
        uint32_t bits = gguf_load_u32(data);
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint64_t bits = gguf_load_u64(data);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static sn_status wrong_kind(const sn_gguf *gguf, const sn_gguf_value *value,
                            const char *wanted) {
    const char *file = sn_gguf_name(gguf);
    int size = value->key.size < 64 ? (int)value->key.size : 64;
    if (value->kind != SN_GGUF_ARRAY)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%.*s' is of type %s, needed is %s", file, size,
                       value->key.data, gguf_kind_name(value->kind), wanted);
    return sn_fail(SN_E_FORMAT, "%.300s: key '%.*s' is an array of %" PRIu64 " x %s, needed is "
                   "%s", file, size, value->key.data, value->count,
                   gguf_kind_name(value->element), wanted);
}

/*
 * The value under `key` if its kind suits, else NULL: either absent and not required (SN_OK) or
 * an error. *kind is that of the scalar at value->data.
 */
static sn_status look_up(const sn_gguf *gguf, const char *key, bool required,
                         bool (*suits)(sn_gguf_kind), const char *wanted,
                         const sn_gguf_value **found, sn_gguf_kind *kind) {
    const sn_gguf_value *value = sn_gguf_find(gguf, key);
    *found = NULL;
    *kind = SN_GGUF_U8;
    if (!value && !required) return SN_OK;
    if (!value)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s' is missing", sn_gguf_name(gguf), key);
    *kind = value->kind == SN_GGUF_ARRAY ? value->element : value->kind;
    if (value->count == 0 || !suits(*kind)) return wrong_kind(gguf, value, wanted);
    *found = value;
    return SN_OK;
}

sn_status sn_gguf_get_u32(const sn_gguf *gguf, const char *key, bool required, uint32_t *out) {
    const sn_gguf_value *value;
    sn_gguf_kind kind;
    SN_TRY(look_up(gguf, key, required, is_int, "an integer", &value, &kind));
    if (!value) return SN_OK;
    int64_t number = load_int(kind, value->data);
    if (number < 0 || number > UINT32_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %" PRId64 " is not in 0..4294967295",
                       sn_gguf_name(gguf), key, number);
    *out = (uint32_t)number;
    return SN_OK;
}

sn_status sn_gguf_get_f32(const sn_gguf *gguf, const char *key, bool required, float *out) {
    const sn_gguf_value *value;
    sn_gguf_kind kind;
    SN_TRY(look_up(gguf, key, required, is_float, "a float", &value, &kind));
    if (!value) return SN_OK;
    double number = load_float(kind, value->data);
    if (!(number >= -FLT_MAX && number <= FLT_MAX)) /* a NaN is not in any range */
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %g is not a finite float",
                       sn_gguf_name(gguf), key, number);
    *out = (float)number;
    return SN_OK;
}

sn_status sn_gguf_get_bool(const sn_gguf *gguf, const char *key, bool required, bool *out) {
    const sn_gguf_value *value;
    sn_gguf_kind kind;
    SN_TRY(look_up(gguf, key, required, is_bool, "a bool", &value, &kind));
    if (value) *out = value->data[0] != 0;
    return SN_OK;
}

sn_status sn_gguf_get_text(const sn_gguf *gguf, const char *key, bool required, sn_span *out) {
    const sn_gguf_value *value;
    sn_gguf_kind kind;
    SN_TRY(look_up(gguf, key, required, is_string, "a string", &value, &kind));
    if (!value) return SN_OK;
    *out = value->kind == SN_GGUF_ARRAY
               ? sn_gguf_string_at(value, 0)
               : (sn_span){ .data = (const char *)value->data, .size = value->bytes };
    return SN_OK;
}

sn_span sn_gguf_string_at(const sn_gguf_value *array, uint64_t index) {
    const uint8_t *length = array->data + array->string_at[index];
    return (sn_span){ .data = (const char *)length + 8, .size = (size_t)gguf_load_u64(length) };
}

int64_t sn_gguf_int_at(const sn_gguf_value *array, uint64_t index) {
    return load_int(array->element,
                    array->data + (size_t)index * gguf_kind_bytes(array->element));
}

double sn_gguf_float_at(const sn_gguf_value *array, uint64_t index) {
    return load_float(array->element,
                      array->data + (size_t)index * gguf_kind_bytes(array->element));
}
