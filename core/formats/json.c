#include "json_internal.h"

#include "../text/utf8.h"
#include "decimal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CHUNK ((size_t)64) /* values; each further chunk is twice as large */
#define LAST_CHUNK ((size_t)65536)
#define MAX_INTEGER ((uint64_t)1 << 53)

/* Values and tables of sorted members; neither ever moves. */
typedef struct block {
    struct block *next;
} block;

struct sn_json_document {
    char *text; /* a copy, in which strings are decoded where they stand */
    block *blocks;
    const sn_json *root;
};

/* An array or object that is being read. */
typedef struct open_container {
    sn_json *container, *last;
} open_container;

typedef struct parser {
    sn_json_document *document;
    const char *name, *source; /* the text as it was, for places in errors */
    char *text;                /* document->text: ends with a NUL */
    size_t size, at;
    bool python_numbers;
    sn_json *free_values;
    size_t n_free, n_values, chunk;
    size_t depth;
    open_container open[SN_JSON_MAX_DEPTH];
} parser;

/* ---- errors and memory -------------------------------------------------------------- */

SN_PRINTF(3, 4)
static sn_status reject(const parser *p, size_t at, const char *format, ...) {
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++)
        if (p->source[i] == '\n') {
            line++;
            start = i + 1;
        }
    return sn_fail(SN_E_FORMAT, "%.300s: JSON, line %zu, column %zu: %s", p->name, line,
                   at - start + 1, reason);
}

static void *new_block(sn_json_document *document, size_t bytes) {
    size_t header = sn_round_up(sizeof(block), SN_ALIGNMENT), all;
    if (!sn_add_size(header, bytes, &all)) return NULL;
    block *made = sn_alloc(all);
    if (!made) return NULL;
    made->next = document->blocks;
    document->blocks = made;
    return (char *)made + header;
}

static sn_status new_value(parser *p, sn_json **value) {
    if (p->n_values == SN_JSON_MAX_VALUES)
        return reject(p, p->at, "more than %zu values", SN_JSON_MAX_VALUES);
    if (p->n_free == 0) {
        p->free_values = new_block(p->document, p->chunk * sizeof(sn_json));
        if (!p->free_values) return SN_E_NOMEM;
        p->n_free = p->chunk;
        if (p->chunk < LAST_CHUNK) p->chunk *= 2;
    }
    p->n_values++;
    p->n_free--;
    *value = p->free_values++;
    return SN_OK;
}

/* ---- strings ------------------------------------------------------------------------ */

/* Four hexadecimal digits at `at`; false if they are not there. The text ends with a NUL. */
static bool hex4(const char *digits, uint32_t *value) {
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return false;
        *value = *value << 4 | digit;
    }
    return true;
}

/* The code point after "\u", surrogate pairs included; p->at stands behind the 'u'. */
static sn_status code_point(parser *p, uint32_t *code) {
    uint32_t low;
    const char *text = p->text + p->at;
    if (!hex4(text, code)) return reject(p, p->at, "\\u needs four hexadecimal digits");
    p->at += 4;
    if (*code < 0xd800 || *code > 0xdfff) return SN_OK;
    if (*code > 0xdbff || text[4] != '\\' || text[5] != 'u' || !hex4(text + 6, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return reject(p, p->at - 4, "\\u%04x is half of a character", (unsigned)*code);
    p->at += 6;
    *code = 0x10000 + ((*code & 0x3ff) << 10 | (low & 0x3ff));
    return SN_OK;
}

/* Decodes the escape behind a backslash to `out`, which lies before what is still to be read:
 * no escape is shorter than what it stands for. */
static sn_status escape(parser *p, uint8_t *out, size_t *written) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = p->text[p->at];
    const char *found = c ? strchr(names, c) : NULL;
    if (found) {
        p->at++;
        *out = (uint8_t)values[found - names];
        *written = 1;
        return SN_OK;
    }
    if (c != 'u') return reject(p, p->at - 1, "an unknown escape");
    p->at++;
    uint32_t code;
    SN_TRY(code_point(p, &code));
    *written = sn_utf8_put(code, out);
    return SN_OK;
}

/* A string; p->at stands at its opening quote. It is decoded in place, NUL-terminated. */
static sn_status parse_string(parser *p, const char **string, size_t *size) {
    size_t opened = p->at++, start = p->at, end = start;
    for (;;) {
        uint8_t c = (uint8_t)p->text[p->at];
        if (c == '"') break;
        if (p->at == p->size) return reject(p, opened, "a string that does not end");
        if (c < 0x20) return reject(p, p->at, "a control character (%u) in a string", c);
        p->at++;
        if (c == '\\') {
            size_t written = 0;
            SN_TRY(escape(p, (uint8_t *)p->text + end, &written));
            end += written;
        } else {
            p->text[end++] = (char)c;
        }
    }
    p->text[end] = '\0';
    p->at++;
    *string = p->text + start;
    *size = end - start;
    return SN_OK;
}

/* ---- numbers and words -------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t skip_digits(parser *p) {
    size_t start = p->at;
    while (is_digit(p->text[p->at])) p->at++;
    return p->at - start;
}

/* The exponent behind an 'e', as far as it matters: no text has as many digits as 10^15. */
static sn_status parse_exponent(parser *p, long long *exponent) {
    bool negative = p->text[p->at] == '-';
    if (negative || p->text[p->at] == '+') p->at++;
    size_t start = p->at;
    *exponent = 0;
    if (skip_digits(p) == 0) return reject(p, start, "an exponent without digits");
    for (size_t i = start; i < p->at; i++)
        if (*exponent < 1000000000000000) *exponent = *exponent * 10 + (p->text[i] - '0');
    if (negative) *exponent = -*exponent;
    return SN_OK;
}

static void set_integer(sn_json *value, const char *digits, size_t n) {
    uint64_t magnitude = 0;
    if (n > 16) return;
    for (size_t i = 0; i < n; i++) magnitude = magnitude * 10 + (uint64_t)(digits[i] - '0');
    value->is_integer = magnitude <= MAX_INTEGER;
    value->number = (double)magnitude;
}

static sn_status parse_number(parser *p, sn_json *value) {
    size_t start = p->at;
    bool negative = p->text[p->at] == '-';
    if (negative) p->at++;
    size_t digits = p->at, whole = skip_digits(p);
    if (whole == 0) return reject(p, start, "a value is expected");
    if (whole > 1 && p->text[digits] == '0') return reject(p, start, "a number with leading zeros");
    size_t n = whole;
    if (p->text[p->at] == '.') {
        p->at++;
        if (skip_digits(p) == 0) return reject(p, p->at, "a number that ends in a dot");
        n = p->at - digits;
    }
    long long exponent = 0;
    bool has_exponent = p->text[p->at] == 'e' || p->text[p->at] == 'E';
    if (has_exponent) {
        p->at++;
        SN_TRY(parse_exponent(p, &exponent));
    }
    value->kind = SN_JSON_NUMBER;
    if (n == whole && !has_exponent) set_integer(value, p->text + digits, whole);
    if (!value->is_integer)
        value->number = sn_decimal(p->text + digits, n, (long long)whole + exponent);
    if (value->number > 1.7976931348623157e308)
        return reject(p, start, "a number too large for a double");
    if (negative) value->number = -value->number;
    return SN_OK;
}

static bool take_word(parser *p, const char *word) {
    size_t length = strlen(word);
    if (p->size - p->at < length || memcmp(p->text + p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static double infinity_or_nan(bool nan) {
    uint64_t bits = nan ? (uint64_t)0x7ff8 << 48 : (uint64_t)0x7ff << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static sn_status parse_word(parser *p, sn_json *value) {
    if (take_word(p, "null")) return SN_OK; /* kind is 0 already */
    if (take_word(p, "true")) {
        value->kind = SN_JSON_TRUE;
    } else if (take_word(p, "false")) {
        value->kind = SN_JSON_FALSE;
    } else {
        size_t start = p->at;
        bool negative = take_word(p, "-"), infinite = take_word(p, "Infinity");
        if (!infinite && (negative || !take_word(p, "NaN")))
            return reject(p, start, "a value is expected");
        if (!p->python_numbers)
            return reject(p, start, "%s is no number in JSON", infinite ? "Infinity" : "NaN");
        value->kind = SN_JSON_NUMBER;
        value->number = infinity_or_nan(!infinite);
        if (negative) value->number = -value->number;
    }
    return SN_OK;
}

/* Called when an object is complete: finds duplicate keys, prepares the search. */
static sn_status finish_object(parser *p, sn_json *object) {
    const sn_json **table = NULL, *twice = NULL;
    if (object->size > SN_JSON_LINEAR) {
        table = new_block(p->document, object->size * sizeof *table);
        if (!table) return SN_E_NOMEM;
    }
    SN_TRY(sn_json_order_members(object, table, &twice));
    if (twice) return reject(p, p->at - 1, "an object with two members '%.64s'", twice->key);
    return SN_OK;
}

/* ---- the tree ----------------------------------------------------------------------- */

static char skip_space(parser *p) {
    char c;
    while ((c = p->text[p->at]) == ' ' || c == '\n' || c == '\r' || c == '\t') p->at++;
    return c;
}

static void append(parser *p, sn_json *value) {
    if (p->depth == 0) {
        p->document->root = value;
        return;
    }
    open_container *parent = &p->open[p->depth - 1];
    if (parent->last)
        parent->last->next = value;
    else
        parent->container->first = value;
    parent->last = value;
    parent->container->size++;
}

static bool in_object(const parser *p) {
    return p->depth && p->open[p->depth - 1].container->kind == SN_JSON_OBJECT;
}

static sn_status parse_key(parser *p, sn_json *value) {
    if (skip_space(p) != '"') return reject(p, p->at, "a member's name in quotes is expected");
    SN_TRY(parse_string(p, &value->key, &value->key_size));
    if (skip_space(p) != ':') return reject(p, p->at, "':' is expected");
    p->at++;
    return SN_OK;
}

static sn_status begin_container(parser *p, sn_json *value, sn_json_kind kind) {
    if (p->depth == SN_JSON_MAX_DEPTH)
        return reject(p, p->at, "nested more than %d deep", SN_JSON_MAX_DEPTH);
    value->kind = kind;
    p->at++;
    p->open[p->depth++] = (open_container){ .container = value };
    return SN_OK;
}

/* A value with what names it; of an array or object only the opening bracket. */
static sn_status begin_value(parser *p) {
    sn_json *value = NULL;
    SN_TRY(new_value(p, &value));
    if (in_object(p)) SN_TRY(parse_key(p, value));
    append(p, value);
    char c = skip_space(p);
    if (c == '{') return begin_container(p, value, SN_JSON_OBJECT);
    if (c == '[') return begin_container(p, value, SN_JSON_ARRAY);
    if (c == '"') {
        value->kind = SN_JSON_STRING;
        return parse_string(p, &value->text, &value->size);
    }
    if (is_digit(c) || (c == '-' && p->text[p->at + 1] != 'I')) return parse_number(p, value);
    return parse_word(p, value);
}

/* Closes what ends here. *more: another value follows in what is then open. */
static sn_status end_values(parser *p, bool *more) {
    while (p->depth) {
        sn_json *container = p->open[p->depth - 1].container;
        char closing = container->kind == SN_JSON_OBJECT ? '}' : ']', c = skip_space(p);
        if (c == closing) {
            p->at++;
            if (closing == '}') SN_TRY(finish_object(p, container));
            p->depth--;
        } else if (container->size == 0) {
            break; /* its first value */
        } else if (c == ',') {
            p->at++;
            break;
        } else {
            return reject(p, p->at, "',' or '%c' is expected", closing);
        }
    }
    *more = p->depth > 0;
    return SN_OK;
}

static sn_status parse_all(parser *p) {
    bool more = true;
    if (p->size >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0) p->at = 3; /* byte order mark */
    while (more) {
        SN_TRY(begin_value(p));
        /* Just behind an opening bracket end_values() finds the container empty: it closes it
         * or lets its first value follow. */
        SN_TRY(end_values(p, &more));
    }
    skip_space(p);
    if (p->at != p->size) return reject(p, p->at, "something follows the end");
    return SN_OK;
}

/* Where the text stops being UTF-8. */
static sn_status check_utf8(const parser *p) {
    sn_utf8 utf8 = { .n = 0 };
    for (size_t i = 0; i < p->size; i++)
        if (sn_utf8_push(&utf8, (uint8_t)p->source[i]) >= SN_UTF8_INVALID)
            return reject(p, i, "not UTF-8");
    return utf8.n ? reject(p, p->size, "not UTF-8") : SN_OK;
}

sn_status sn_json_parse(const char *text, size_t bytes, const char *name, bool python_numbers,
                        sn_json_document **document) {
    sn_json_document *made = sn_alloc(sizeof *made);
    if (!made) return SN_E_NOMEM;
    parser p = { .document = made, .name = name, .source = text, .size = bytes,
                 .python_numbers = python_numbers, .chunk = FIRST_CHUNK };
    sn_status status = SN_E_NOMEM;
    if (bytes < PTRDIFF_MAX) made->text = p.text = sn_alloc(bytes + 1);
    if (p.text) {
        memcpy(p.text, text, bytes);
        status = check_utf8(&p);
        if (status == SN_OK) status = parse_all(&p);
    }
    if (status != SN_OK)
        sn_json_free(made);
    else
        *document = made;
    return status;
}

void sn_json_free(sn_json_document *document) {
    if (!document) return;
    for (block *next, *b = document->blocks; b; b = next) {
        next = b->next;
        sn_free(b);
    }
    sn_free(document->text);
    sn_free(document);
}

const sn_json *sn_json_root(const sn_json_document *document) {
    return document->root;
}
