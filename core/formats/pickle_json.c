#include "pickle.h"

#include "../text/utf8.h"
#include "decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A value may be reached many times over, or contain itself: what is written is bounded. */
#define MAX_DEPTH 64
#define MAX_BYTES ((size_t)16 << 20)

/* ---- looking at values -------------------------------------------------------------- */

const sn_pickle_value *sn_pickle_get(const sn_pickle_value *dict, const char *key) {
    size_t length = strlen(key);
    if (dict->kind != SN_PICKLE_DICT) return NULL;
    for (size_t i = dict->size; i >= 2; i -= 2) {
        const sn_pickle_value *found = dict->items[i - 2];
        if (found->kind == SN_PICKLE_TEXT && found->size == length &&
            memcmp(found->text, key, length) == 0)
            return dict->items[i - 1];
    }
    return NULL;
}

const char *sn_pickle_describe(const sn_pickle_value *value, char *buffer, size_t bytes) {
    static const char *const names[] = {
        [SN_PICKLE_NONE] = "None", [SN_PICKLE_BOOL] = "a truth value",
        [SN_PICKLE_INT] = "an integer", [SN_PICKLE_FLOAT] = "a float",
        [SN_PICKLE_TEXT] = "a text", [SN_PICKLE_LIST] = "a list", [SN_PICKLE_TUPLE] = "a tuple",
        [SN_PICKLE_DICT] = "a dictionary", [SN_PICKLE_STORAGE] = "a storage",
        [SN_PICKLE_TENSOR] = "a tensor",
    };
    if (value->kind != SN_PICKLE_FOREIGN && value->kind != SN_PICKLE_CALLABLE)
        return names[value->kind];
    snprintf(buffer, bytes, "a foreign object (%.80s)", value->text);
    return buffer;
}

static bool is_plain(const sn_pickle_value *value) {
    return value->kind <= SN_PICKLE_DICT;
}

/* ---- writing ------------------------------------------------------------------------ */

typedef struct writer {
    const char *name;
    char *bytes;
    size_t size, capacity;
} writer;

static sn_status put(writer *w, const char *bytes, size_t n) {
    if (n > MAX_BYTES - w->size)
        return sn_fail(SN_E_FORMAT, "%.300s: as text larger than %zu bytes", w->name, MAX_BYTES);
    if (w->size + n + 1 > w->capacity) { /* one for the NUL at the end */
        size_t capacity = 2 * (w->size + n) + 64;
        char *grown = sn_grow(w->bytes, w->size, capacity);
        if (!grown) return SN_E_NOMEM;
        w->bytes = grown;
        w->capacity = capacity;
    }
    memcpy(w->bytes + w->size, bytes, n);
    w->size += n;
    return SN_OK;
}

static sn_status put_text(writer *w, const char *text) {
    return put(w, text, strlen(text));
}

static sn_status put_escape(writer *w, uint32_t code) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    char text[16];
    const char *found = code && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (found)
        snprintf(text, sizeof text, "\\%c", to[found - from]);
    else if (code < 0x10000)
        snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    else
        snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                 (unsigned)(0xdc00 | (code & 0x3ff)));
    return put_text(w, text);
}

static sn_status put_string(writer *w, const char *text, size_t size) {
    SN_TRY(put(w, "\"", 1));
    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code = sn_utf8_next((const uint8_t *)text + i, size - i, &n); /* it is valid */
        if (code < 0x20 || code > 0x7e || code == '"' || code == '\\')
            SN_TRY(put_escape(w, code));
        else
            SN_TRY(put(w, text + i, 1));
    }
    return put(w, "\"", 1);
}

static sn_status put_float(writer *w, double number) {
    char text[SN_DECIMAL_TEXT];
    sn_decimal_text(number, text);
    if (strcmp(text, "inf") == 0) return put_text(w, "Infinity");
    if (strcmp(text, "-inf") == 0) return put_text(w, "-Infinity");
    return put_text(w, strcmp(text, "nan") == 0 ? "NaN" : text);
}

static sn_status put_integer(writer *w, int64_t integer) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, integer);
    return put_text(w, text);
}

/* JSON has texts as keys: integers become texts, as in Python; other keys are *no_key. */
static sn_status put_key(writer *w, const sn_pickle_value *key, bool *no_key) {
    *no_key = key->kind != SN_PICKLE_TEXT && key->kind != SN_PICKLE_INT;
    if (*no_key) return SN_OK;
    if (key->kind == SN_PICKLE_TEXT) {
        SN_TRY(put_string(w, key->text, key->size));
    } else {
        SN_TRY(put(w, "\"", 1));
        SN_TRY(put_integer(w, key->integer));
        SN_TRY(put(w, "\"", 1));
    }
    return put(w, ": ", 2);
}

static sn_status put_value(writer *w, const sn_pickle_value *value, int depth);

static sn_status put_dict(writer *w, const sn_pickle_value *dict, int depth) {
    bool first = true;
    SN_TRY(put(w, "{", 1));
    for (size_t i = 0; i < dict->size; i += 2) {
        bool no_key = true;
        size_t before = w->size;
        if (!is_plain(dict->items[i + 1])) continue;
        if (!first) SN_TRY(put(w, ", ", 2));
        SN_TRY(put_key(w, dict->items[i], &no_key));
        if (no_key) {
            w->size = before;
            continue;
        }
        SN_TRY(put_value(w, dict->items[i + 1], depth));
        first = false;
    }
    return put(w, "}", 1);
}

static sn_status put_list(writer *w, const sn_pickle_value *list, int depth) {
    SN_TRY(put(w, "[", 1));
    for (size_t i = 0; i < list->size; i++) {
        if (i) SN_TRY(put(w, ", ", 2));
        SN_TRY(put_value(w, list->items[i], depth));
    }
    return put(w, "]", 1);
}

static sn_status put_value(writer *w, const sn_pickle_value *value, int depth) {
    if (depth == MAX_DEPTH)
        return sn_fail(SN_E_FORMAT, "%.300s: nested more than %d deep", w->name, MAX_DEPTH);
    switch (value->kind) {
    case SN_PICKLE_BOOL: return put_text(w, value->integer ? "true" : "false");
    case SN_PICKLE_INT: return put_integer(w, value->integer);
    case SN_PICKLE_FLOAT: return put_float(w, value->number);
    case SN_PICKLE_TEXT: return put_string(w, value->text, value->size);
    case SN_PICKLE_LIST:
    case SN_PICKLE_TUPLE: return put_list(w, value, depth + 1);
    case SN_PICKLE_DICT: return put_dict(w, value, depth + 1);
    default: return put_text(w, "null"); /* None; in lists what is not plain */
    }
}

sn_status sn_pickle_to_json(const sn_pickle_value *value, const char *name, char **text,
                            size_t *bytes) {
    writer w = { .name = name };
    *text = NULL;
    *bytes = 0;
    if (!is_plain(value)) return SN_OK;
    sn_status status = put_value(&w, value, 0);
    if (status != SN_OK) {
        sn_free(w.bytes);
        return status;
    }
    w.bytes[w.size] = '\0';
    *text = w.bytes;
    *bytes = w.size;
    return SN_OK;
}
