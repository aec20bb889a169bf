/*
 * buffer.h: bytes that grow. A buffer that could not grow stays `failed` and takes no more, so
 * that a caller may append a whole report and look once at its end.
 */
#ifndef SN_WASI_BUFFER_H
#define SN_WASI_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#define FORMAT_LIKE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define FORMAT_LIKE_PRINTF(text, first)
#endif

typedef struct buffer {
    char *data; /* NULL while nothing was ever appended */
    size_t size, capacity;
    bool failed;
} buffer;

void buffer_free(buffer *b);
void buffer_clear(buffer *b);

/* Room for `bytes` more after data + size; false if memory ran out. */
bool buffer_reserve(buffer *b, size_t bytes);

void buffer_append(buffer *b, const void *data, size_t bytes);
void buffer_text(buffer *b, const char *text);
void buffer_printf(buffer *b, const char *format, ...) FORMAT_LIKE_PRINTF(2, 3);

/* The bytes with a terminating NUL that does not count; "" if memory ran out. */
const char *buffer_string(buffer *b);

/* ---- JSON ---- */

/* A string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void json_string(buffer *b, const char *text, size_t bytes);

/* A number that reads back as the same double; whole ones have no decimals; not finite: null. */
void json_number(buffer *b, double value);

/* `"name":` (with a comma before it unless it opens the object) and a value. */
void json_name(buffer *b, const char *name);
void json_pair(buffer *b, const char *name, double value);
void json_pair_text(buffer *b, const char *name, const char *text);

#endif
