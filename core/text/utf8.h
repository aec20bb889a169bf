/*
 * utf8.h: UTF-8 one byte at a time. Invalid input is cut into maximal subparts, the practice that
 * the Unicode Standard (section 3.9) and the WHATWG Encoding Standard agree on: one U+FFFD for
 * each longest beginning of a character that cannot be continued.
 */
#ifndef SN_TEXT_UTF8_H
#define SN_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SN_UTF8_MAX 4                          /* bytes of one character */
#define SN_UTF8_REPLACEMENT "\xef\xbf\xbd"     /* U+FFFD */
#define SN_UTF8_REPLACEMENT_BYTES ((size_t)3)

typedef struct sn_utf8 { /* zeroed: at the border of two characters */
    uint8_t bytes[SN_UTF8_MAX];
    uint8_t n;         /* bytes of the character so far */
    uint8_t length;    /* of the character, once n > 0 */
    uint8_t low, high; /* what the next byte must lie between */
} sn_utf8;

typedef enum sn_utf8_event {
    SN_UTF8_MORE,      /* the character goes on */
    SN_UTF8_CHARACTER, /* bytes[0, length) is one; n is 0 again */
    SN_UTF8_INVALID,   /* this byte begins no character */
    SN_UTF8_BROKEN     /* what came before cannot go on so; give this byte again */
} sn_utf8_event;

sn_utf8_event sn_utf8_push(sn_utf8 *utf8, uint8_t byte);

/* True if all of the bytes are whole, valid characters. */
bool sn_utf8_valid(const uint8_t *bytes, size_t n);

/* What sn_utf8_next() gives for bytes that are no character. */
#define SN_UTF8_NONE UINT32_MAX

/*
 * The code point at the beginning of text[0, n), n > 0, and in *length its bytes. Of bytes that
 * are no character *length are the longest part that belongs together (1 to 3).
 */
uint32_t sn_utf8_next(const uint8_t *text, size_t n, size_t *length);

/* Writes a code point of at most U+10FFFF; surrogates come out as what is then not valid. */
size_t sn_utf8_put(uint32_t code_point, uint8_t *out);

#endif
