#include "utf8.h"

/*
 * The lead byte fixes the length and bounds the second byte (Unicode Standard, table 3-7): that
 * alone keeps out overlong forms, surrogates and everything above U+10FFFF.
 */
static sn_utf8_event begin(sn_utf8 *utf8, uint8_t lead) {
    if (lead < 0x80)
        utf8->length = 1;
    else if (lead >= 0xc2 && lead <= 0xdf)
        utf8->length = 2;
    else if (lead >= 0xe0 && lead <= 0xef)
        utf8->length = 3;
    else if (lead >= 0xf0 && lead <= 0xf4)
        utf8->length = 4;
    else
        return SN_UTF8_INVALID;
    utf8->bytes[0] = lead;
    if (utf8->length == 1) return SN_UTF8_CHARACTER;
    utf8->n = 1;
    utf8->low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    utf8->high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return SN_UTF8_MORE;
}

sn_utf8_event sn_utf8_push(sn_utf8 *utf8, uint8_t byte) {
    if (utf8->n == 0) return begin(utf8, byte);
    if (byte < utf8->low || byte > utf8->high) {
        utf8->n = 0;
        return SN_UTF8_BROKEN;
    }
    utf8->bytes[utf8->n++] = byte;
    utf8->low = 0x80;
    utf8->high = 0xbf;
    if (utf8->n < utf8->length) return SN_UTF8_MORE;
    utf8->n = 0;
    return SN_UTF8_CHARACTER;
}

bool sn_utf8_valid(const uint8_t *bytes, size_t n) {
    sn_utf8 utf8 = { .n = 0 };
    for (size_t i = 0; i < n; i++)
        if (sn_utf8_push(&utf8, bytes[i]) >= SN_UTF8_INVALID) return false;
    return utf8.n == 0;
}

static uint32_t decode(const uint8_t *bytes, size_t n) {
    static const uint8_t mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code_point = bytes[0] & mask[n];
    for (size_t i = 1; i < n; i++) code_point = code_point << 6 | (bytes[i] & 0x3f);
    return code_point;
}

uint32_t sn_utf8_next(const uint8_t *text, size_t n, size_t *length) {
    *length = 1;
    if (text[0] < 0x80) return text[0];
    sn_utf8 utf8 = { .n = 0 };
    sn_utf8_event event = sn_utf8_push(&utf8, text[0]);
    while (event == SN_UTF8_MORE && *length < n) {
        event = sn_utf8_push(&utf8, text[*length]);
        if (event != SN_UTF8_BROKEN) ++*length;
    }
    return event == SN_UTF8_CHARACTER ? decode(text, *length) : SN_UTF8_NONE;
}

size_t sn_utf8_put(uint32_t code_point, uint8_t *out) {
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    size_t n = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out[0] = (uint8_t)(lead[n] | code_point);
    return n;
}
