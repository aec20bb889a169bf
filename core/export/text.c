#include "text.h"

#include "../formats/decimal.h"
#include "../formats/index_sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sn_growing_free(sn_growing *text) {
    sn_free(text->data);
    *text = (sn_growing){.data = NULL};
}

sn_status sn_growing_status(const sn_growing *text) {
    return text->failed ? sn_fail(SN_E_NOMEM, "out of memory") : SN_OK;
}

/* Makes room for `bytes` more and a NUL. */
static bool reserve(sn_growing *text, size_t bytes) {
    size_t needed, wanted;
    if (text->failed) return false;
    if (sn_add_size(text->size, bytes, &needed) && sn_add_size(needed, 1, &needed)) {
        if (needed <= text->capacity) return true;
        if (!sn_mul_size(needed, 2, &wanted)) wanted = needed;
        char *grown = sn_grow(text->data, text->size, wanted);
        if (grown) {
            text->data = grown;
            text->capacity = wanted;
            return true;
        }
    }
    text->failed = true;
    return false;
}

void sn_put_bytes(sn_growing *text, const char *data, size_t bytes) {
    if (!reserve(text, bytes)) return;
    if (bytes) memcpy(text->data + text->size, data, bytes);
    text->size += bytes;
    text->data[text->size] = '\0';
}

void sn_put_text(sn_growing *text, const char *data) {
    sn_put_bytes(text, data, strlen(data));
}

void sn_put_number(sn_growing *text, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    sn_put_text(text, digits);
}

void sn_put_line(sn_growing *text, int indent) {
    sn_put_text(text, "\n");
    for (int i = 0; i < indent; i++) sn_put_text(text, "  ");
}

/* ---- strings ------------------------------------------------------------------------------- */

static void put_escaped(sn_growing *text, unsigned char c) {
    static const char short_forms[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    char escape[8];
    for (const char *form = short_forms; *form; form += 2) {
        if ((unsigned char)form[0] != c) continue;
        snprintf(escape, sizeof escape, "\\%c", form[1]);
        sn_put_text(text, escape);
        return;
    }
    snprintf(escape, sizeof escape, "\\u%04x", c);
    sn_put_text(text, escape);
}

void sn_put_string(sn_growing *text, const char *data, size_t bytes) {
    sn_put_text(text, "\"");
    size_t plain = 0; /* since the last escape */
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)data[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        sn_put_bytes(text, data + plain, i - plain);
        put_escaped(text, c);
        plain = i + 1;
    }
    sn_put_bytes(text, data + plain, bytes - plain);
    sn_put_text(text, "\"");
}

/* ---- numbers ------------------------------------------------------------------------------- */

#define MAX_DIGITS 17 /* enough for every double */

/* The fewest digits that read back as `value` > 0, which is 0.d1 d2 ... * 10^point. */
static size_t shortest(double value, char digits[MAX_DIGITS], int *point) {
    char printed[40];
    size_t n = 0;
    for (int precision = 0; precision < MAX_DIGITS; precision++) {
        snprintf(printed, sizeof printed, "%.*e", precision, value);
        const char *c = printed;
        /* whatever a locale puts between the digits is skipped */
        for (n = 0; *c != 'e'; c++)
            if (*c >= '0' && *c <= '9') digits[n++] = *c;
        int exponent = 0;
        for (const char *d = c + 2; *d; d++) exponent = 10 * exponent + (*d - '0');
        *point = 1 + (c[1] == '-' ? -exponent : exponent);
        if (sn_decimal(digits, n, *point) == value) break;
    }
    while (n > 1 && digits[n - 1] == '0') n--;
    return n;
}

static void put_fixed(sn_growing *text, const char *digits, size_t n, int point) {
    if (point <= 0) {
        sn_put_text(text, "0.");
        for (int i = point; i < 0; i++) sn_put_text(text, "0");
        sn_put_bytes(text, digits, n);
        return;
    }
    for (int i = 0; i < point; i++) sn_put_bytes(text, (size_t)i < n ? digits + i : "0", 1);
    sn_put_text(text, ".");
    if ((size_t)point < n)
        sn_put_bytes(text, digits + point, n - (size_t)point);
    else
        sn_put_text(text, "0");
}

static void put_scientific(sn_growing *text, const char *digits, size_t n, int exponent) {
    char tail[16];
    sn_put_bytes(text, digits, 1);
    if (n > 1) sn_put_text(text, ".");
    sn_put_bytes(text, digits + 1, n - 1);
    snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+',
             exponent < 0 ? -exponent : exponent);
    sn_put_text(text, tail);
}

void sn_put_double(sn_growing *text, double value) {
    char digits[MAX_DIGITS];
    int point = 1;
    if (value != value) {
        sn_put_text(text, "NaN");
        return;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bits >> 63) sn_put_text(text, "-");
    const double magnitude = value < 0 ? -value : value;
    if (magnitude > 1.7976931348623157e308) {
        sn_put_text(text, "Infinity");
        return;
    }
    digits[0] = '0';
    const size_t n = magnitude > 0 ? shortest(magnitude, digits, &point) : 1;
    if (point > 16 || point < -3)
        put_scientific(text, digits, n, point - 1);
    else
        put_fixed(text, digits, n, point);
}

/* ---- values -------------------------------------------------------------------------------- */

static int compare_keys(const void *table, uint32_t a, uint32_t b) {
    const sn_json *const *members = table;
    const sn_json *x = members[a], *y = members[b];
    const size_t least = x->key_size < y->key_size ? x->key_size : y->key_size;
    const int order = memcmp(x->key, y->key, least);
    return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

static void put_between(sn_growing *text, bool first, int indent) {
    if (!first) sn_put_text(text, indent < 0 ? ", " : ",");
    if (indent >= 0) sn_put_line(text, indent + 1);
}

static int deeper(int indent) {
    return indent < 0 ? indent : indent + 1;
}

static void put_member(sn_growing *text, const sn_json *member, int indent, bool sorted) {
    if (member->key) {
        sn_put_string(text, member->key, member->key_size);
        sn_put_text(text, ": ");
    }
    sn_put_json(text, member, deeper(indent), sorted);
}

static void put_list(sn_growing *text, const sn_json *value, int indent, bool sorted) {
    for (const sn_json *item = value->first; item; item = item->next) {
        put_between(text, item == value->first, indent);
        put_member(text, item, indent, sorted);
    }
}

static void put_sorted(sn_growing *text, const sn_json *value, int indent) {
    const sn_json **members = sn_alloc_array(value->size, sizeof *members);
    uint32_t *order = sn_alloc_array(value->size, sizeof *order);
    text->failed |= !members || !order;
    size_t n = 0;
    for (const sn_json *item = value->first; item && !text->failed; item = item->next)
        members[n++] = item;
    if (!text->failed) sn_index_sort(order, n, compare_keys, members);
    for (size_t i = 0; i < n && !text->failed; i++) {
        put_between(text, i == 0, indent);
        put_member(text, members[order[i]], indent, true);
    }
    sn_free(members);
    sn_free(order);
}

static void put_container(sn_growing *text, const sn_json *value, int indent, bool sorted) {
    const bool object = value->kind == SN_JSON_OBJECT;
    sn_put_text(text, object ? "{" : "[");
    if (sorted && object)
        put_sorted(text, value, indent);
    else
        put_list(text, value, indent, sorted);
    if (indent >= 0 && value->first) sn_put_line(text, indent);
    sn_put_text(text, object ? "}" : "]");
}

static void put_json_number(sn_growing *text, const sn_json *value) {
    char digits[24];
    if (!value->is_integer) {
        sn_put_double(text, value->number);
        return;
    }
    snprintf(digits, sizeof digits, "%" PRId64, (int64_t)value->number);
    sn_put_text(text, digits);
}

void sn_put_json(sn_growing *text, const sn_json *value, int indent, bool sorted) {
    switch (value->kind) {
    case SN_JSON_NULL: sn_put_text(text, "null"); break;
    case SN_JSON_FALSE: sn_put_text(text, "false"); break;
    case SN_JSON_TRUE: sn_put_text(text, "true"); break;
    case SN_JSON_NUMBER: put_json_number(text, value); break;
    case SN_JSON_STRING: sn_put_string(text, value->text, value->size); break;
    default: put_container(text, value, indent, sorted); break;
    }
}
