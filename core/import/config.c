#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_BYTES 80

const sn_json *sn_config_get(const sn_source_model *source, const char *key) {
    const sn_json *value = sn_json_get(source->config, key);
    return value && value->kind != SN_JSON_NULL ? value : NULL;
}

/* The value as it might stand in the file, cut short. */
static void show(const sn_json *value, char *text) {
    switch (value->kind) {
    case SN_JSON_NULL: snprintf(text, SHOWN_BYTES, "null"); break;
    case SN_JSON_FALSE: snprintf(text, SHOWN_BYTES, "false"); break;
    case SN_JSON_TRUE: snprintf(text, SHOWN_BYTES, "true"); break;
    case SN_JSON_NUMBER: snprintf(text, SHOWN_BYTES, "%.10g", value->number); break;
    case SN_JSON_STRING: snprintf(text, SHOWN_BYTES, "\"%.60s\"", value->text); break;
    case SN_JSON_ARRAY: snprintf(text, SHOWN_BYTES, "a list of %zu", value->size); break;
    case SN_JSON_OBJECT: snprintf(text, SHOWN_BYTES, "{...}"); break;
    }
}

static sn_status wrong_value(const sn_source_model *source, const char *key,
                             const sn_json *value, const char *wanted) {
    char text[SHOWN_BYTES];
    show(value, text);
    return sn_fail(SN_E_FORMAT, "%.300s: option '%s' = %s: %s is needed", source->name, key, text,
                   wanted);
}

sn_status sn_config_unsupported(const sn_source_model *source, const char *key) {
    char text[SHOWN_BYTES] = "null";
    const sn_json *value = sn_config_get(source, key);
    if (value) show(value, text);
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: option '%s' = %s is not supported", source->name,
                   key, text);
}

sn_status sn_config_u32(const sn_source_model *source, const char *key, uint32_t *value) {
    const sn_json *option = sn_config_get(source, key);
    if (!option) return SN_OK;
    bool whole = option->kind == SN_JSON_NUMBER && option->number >= 1 &&
                 option->number <= INT32_MAX && option->number == (uint32_t)option->number;
    if (!whole) return wrong_value(source, key, option, "a whole number from 1 to 2147483647");
    *value = (uint32_t)option->number;
    return SN_OK;
}

sn_status sn_config_f64(const sn_source_model *source, const char *key, double *value) {
    const sn_json *option = sn_config_get(source, key);
    if (!option) return SN_OK;
    /* no float32 lies beyond; a NaN fails both comparisons */
    if (option->kind != SN_JSON_NUMBER || !(option->number >= -3e38 && option->number <= 3e38))
        return wrong_value(source, key, option, "a finite number");
    *value = option->number;
    return SN_OK;
}

sn_status sn_config_bool(const sn_source_model *source, const char *key, bool *value) {
    const sn_json *option = sn_config_get(source, key);
    if (!option) return SN_OK;
    if (option->kind != SN_JSON_TRUE && option->kind != SN_JSON_FALSE)
        return wrong_value(source, key, option, "true or false");
    *value = option->kind == SN_JSON_TRUE;
    return SN_OK;
}

sn_status sn_config_choice(const sn_source_model *source, const char *key,
                           const char *const *choices, const char **value) {
    const sn_json *option = sn_config_get(source, key);
    if (!option) return SN_OK;
    for (size_t i = 0; choices[i]; i++) {
        if (!sn_json_is(option, choices[i])) continue;
        *value = choices[i];
        return SN_OK;
    }
    if (option->kind == SN_JSON_STRING) return sn_config_unsupported(source, key);
    return wrong_value(source, key, option, "a text");
}

sn_status sn_config_refuse(const sn_source_model *source, const char *key, const char *what) {
    char text[SHOWN_BYTES];
    const sn_json *option = sn_config_get(source, key);
    if (!option) return SN_OK;
    show(option, text);
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: option '%s' = %s: %s are not supported",
                   source->name, key, text, what);
}

sn_status sn_config_must_be(const sn_source_model *source, const char *key, bool wanted) {
    bool value = wanted;
    SN_TRY(sn_config_bool(source, key, &value));
    return value == wanted ? SN_OK : sn_config_unsupported(source, key);
}

sn_status sn_config_agree(const sn_source_model *source, const char *key, uint64_t value) {
    uint32_t option = 0;
    SN_TRY(sn_config_u32(source, key, &option));
    if (option == 0 || option == value) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: option '%s' = %" PRIu32 ", but the tensors' shapes say %"
                   PRIu64, source->name, key, option, value);
}

/* The first of architectures. */
static const sn_json *first_architecture(const sn_source_model *source) {
    const sn_json *list = sn_config_get(source, "architectures");
    return list && list->kind == SN_JSON_ARRAY ? list->first : NULL;
}

bool sn_config_is(const sn_source_model *source, const char *model_type,
                  const char *architecture) {
    const sn_json *type = sn_config_get(source, "model_type");
    if (type) return sn_json_is(type, model_type);
    return sn_json_is(first_architecture(source), architecture);
}

const char *sn_config_kind(const sn_source_model *source) {
    const sn_json *kind = sn_config_get(source, "model_type");
    if (!kind) kind = first_architecture(source);
    return kind && kind->kind == SN_JSON_STRING ? kind->text : NULL;
}
