/* buffer.c: see buffer.h. */
#include "buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_free(buffer *b) {
    free(b->data);
    memset(b, 0, sizeof *b);
}

void buffer_clear(buffer *b) {
    b->size = 0;
}

bool buffer_reserve(buffer *b, size_t bytes) {
    if (b->failed) return false;
    if (bytes <= b->capacity - b->size) return true;
    size_t wanted = b->size > SIZE_MAX / 2 - bytes ? 0 : b->size + bytes;
    size_t capacity = b->capacity < 128 ? 256 : b->capacity > SIZE_MAX / 2 ? 0 : 2 * b->capacity;
    if (capacity < wanted) capacity = wanted;
    char *data = wanted == 0 ? NULL : realloc(b->data, capacity);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

void buffer_append(buffer *b, const void *data, size_t bytes) {
    if (bytes == 0 || !buffer_reserve(b, bytes)) return;
    memcpy(b->data + b->size, data, bytes);
    b->size += bytes;
}

void buffer_text(buffer *b, const char *text) {
    buffer_append(b, text, strlen(text));
}

void buffer_printf(buffer *b, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int needed = vsnprintf(NULL, 0, format, list);
    if (needed >= 0 && buffer_reserve(b, (size_t)needed + 1)) {
        vsnprintf(b->data + b->size, (size_t)needed + 1, format, again);
        b->size += (size_t)needed;
    }
    va_end(again);
    va_end(list);
}

const char *buffer_string(buffer *b) {
    if (!buffer_reserve(b, 1)) return "";
    b->data[b->size] = '\0';
    return b->data;
}

/*
 * Length of the UTF-8 character at `s`, or 0 with *bad = bytes of the longest start of one, which
 * together become one U+FFFD (Unicode 15, table 3-8). Second byte ranges after table 3-7.
 */
static size_t utf8_length(const unsigned char *s, size_t left, size_t *bad) {
    unsigned char c = s[0];
    *bad = 1;
    if (c < 0x80) return 1;
    if (c < 0xc2 || c > 0xf4) return 0;
    size_t length = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; i++) {
        if (i >= left || s[i] < low || s[i] > high) return 0;
        *bad = i + 1;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

static void json_ascii(buffer *b, unsigned char c) {
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c == 0 ? NULL : strchr(plain, c);
    if (at != NULL) {
        char pair[2] = {'\\', letters[at - plain]};
        buffer_append(b, pair, 2);
    } else if (c < 0x20 || c == 0x7f) {
        buffer_printf(b, "\\u%04x", c);
    } else {
        buffer_append(b, &c, 1);
    }
}

void json_string(buffer *b, const char *text, size_t bytes) {
    const unsigned char *s = (const unsigned char *)text;
    buffer_text(b, "\"");
    for (size_t i = 0; i < bytes;) {
        size_t bad, length = utf8_length(s + i, bytes - i, &bad);
        if (length == 1)
            json_ascii(b, s[i]);
        else if (length == 0)
            buffer_text(b, "\xef\xbf\xbd");
        else
            buffer_append(b, s + i, length);
        i += length == 0 ? bad : length;
    }
    buffer_text(b, "\"");
}

void json_number(buffer *b, double value) {
    if (!isfinite(value)) {
        buffer_text(b, "null");
        return;
    }
    if (value == floor(value) && fabs(value) < 9007199254740992.0) {
        buffer_printf(b, "%.0f", value == 0 ? 0.0 : value);
        return;
    }
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    buffer_text(b, text);
}

void json_name(buffer *b, const char *name) {
    char last = b->size == 0 ? '{' : b->data[b->size - 1];
    if (last != '{' && last != '[') buffer_text(b, ",");
    json_string(b, name, strlen(name));
    buffer_text(b, ":");
}

void json_pair(buffer *b, const char *name, double value) {
    json_name(b, name);
    json_number(b, value);
}

void json_pair_text(buffer *b, const char *name, const char *text) {
    json_name(b, name);
    json_string(b, text, strlen(text));
}
