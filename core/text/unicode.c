#include "unicode.h"

/* The value of the last entry that begins at or before `code_point`; the first begins at 0. */
static unsigned find(const uint32_t *table, size_t n, uint32_t code_point) {
    size_t low = 0;
    while (n > 1) {
        size_t half = n / 2;
        if (table[low + half] >> 8 <= code_point) low += half;
        n -= half;
    }
    return table[low] & 0xff;
}

unsigned sn_unicode_class(uint32_t code_point) {
    if (code_point < 0x80) return sn_unicode_ascii[code_point];
    if (code_point > 0x10ffff) return 0;
    return find(sn_unicode_classes, sn_unicode_n_classes, code_point);
}

unsigned sn_unicode_combining_class(uint32_t code_point) {
    if (code_point < 0x300 || code_point > 0x10ffff) return 0;
    return find(sn_unicode_combining, sn_unicode_n_combining, code_point);
}
