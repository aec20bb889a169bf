/*
 * stream.c: ids in, text out (sn_text_*).
 *
 * Bytes become whole characters (utf8.h), characters are appended to a buffer, and every stop
 * string is followed through them by its own automaton (Knuth, Morris, Pratt 1977). So the result
 * depends only on the bytes, not on how they are divided into tokens:
 *   - generation ends at the first byte that completes a stop string; of several completed there
 *     the longest counts, that is the one that begins first;
 *   - what is held back is the longest end of the text that begins a stop string.
 *
 * Bytes that become no character: one U+FFFD for each part that belongs together (utf8.h), which is
 * what the package `tokenizers` does for byte-level vocabularies. For those with byte tokens it
 * writes one for each byte; it does so for the whole of a run of byte tokens if any part of it is
 * broken, which cannot be known while the run goes on: here whole characters stay.
 */
#include "utf8.h"
#include "vocabulary.h"

#include <inttypes.h>
#include <string.h>

typedef struct stop {
    const uint8_t *bytes;
    size_t length;
    size_t *border; /* [length]: longest proper beginning of bytes[0, i] that also ends it */
    size_t matched; /* bytes of it that the text ends with */
} stop;

struct sn_text {
    const sn_tokenizer *tokenizer;
    sn_utf8 utf8;
    bool drops_space; /* nothing has come out yet, and a space that comes first is dropped */
    int32_t stopped;
    size_t n_stops;
    stop *stops;
    size_t length;   /* of the text in the buffer */
    size_t given;    /* bytes of it that the last call handed out */
    uint8_t *buffer; /* holds what can be held back and what one token can add */
};

/* ---- making ------------------------------------------------------------------------- */

static sn_status check_stops(const char *const *stops, size_t n_stops, size_t *sum,
                             size_t *longest) {
    *sum = *longest = 0;
    for (size_t i = 0; i < n_stops; i++) {
        if (!stops[i] || !stops[i][0])
            return sn_fail(SN_E_INVAL, "text: stop string %zu is NULL or empty", i);
        size_t length = strlen(stops[i]);
        if (!sn_utf8_valid((const uint8_t *)stops[i], length))
            return sn_fail(SN_E_INVAL, "text: stop string %zu is not UTF-8", i);
        if (!sn_add_size(*sum, length, sum))
            return sn_fail(SN_E_NOMEM, "out of memory: stop strings");
        if (length > *longest) *longest = length;
    }
    return SN_OK;
}

static bool add_array(size_t *total, size_t count, size_t size) {
    size_t bytes;
    return sn_mul_size(count, size, &bytes) && sn_add_size(*total, bytes, total);
}

static void prepare_stop(stop *s, const char *text, uint8_t *bytes, size_t *border) {
    s->length = strlen(text);
    s->bytes = memcpy(bytes, text, s->length);
    s->border = border;
    for (size_t i = 1, k = 0; i < s->length; i++) {
        while (k && bytes[i] != bytes[k]) k = border[k - 1];
        if (bytes[i] == bytes[k]) k++;
        border[i] = k;
    }
}

/* Whether texts of this tokenizer begin with a space that is not theirs. */
static bool puts_space(const sn_tokenizer *tokenizer) {
    return tokenizer->marks_spaces && tokenizer->prepend != SN_PREPEND_NEVER;
}

sn_status sn_text_new(const sn_tokenizer *tokenizer, const char *const *stops, int32_t n_stops,
                      sn_text **text) {
    if (!tokenizer || !text) return sn_fail(SN_E_INVAL, "text: tokenizer or text is NULL");
    if (n_stops < 0 || (n_stops && !stops))
        return sn_fail(SN_E_INVAL, "text: stops is NULL or n_stops %" PRId32 " negative", n_stops);
    size_t n = (size_t)n_stops, sum, longest, total = sizeof(sn_text);
    SN_TRY(check_stops(stops, n, &sum, &longest));
    /* At worst every byte of a token, and those of a character before it, become replacements. */
    size_t room = SN_UTF8_REPLACEMENT_BYTES * (tokenizer->longest + SN_UTF8_MAX) + SN_UTF8_MAX;
    if (!add_array(&total, n, sizeof(stop)) || !add_array(&total, sum, sizeof(size_t) + 1) ||
        !add_array(&total, longest, 1) || !add_array(&total, room, 1))
        return sn_fail(SN_E_NOMEM, "out of memory: stop strings");
    sn_text *made = sn_alloc(total);
    if (!made) return SN_E_NOMEM;
    made->tokenizer = tokenizer;
    made->n_stops = n;
    made->stops = (stop *)(made + 1);
    size_t *border = (size_t *)(made->stops + n);
    uint8_t *bytes = (uint8_t *)(border + sum);
    for (size_t i = 0; i < n; i++) {
        prepare_stop(&made->stops[i], stops[i], bytes, border);
        bytes += made->stops[i].length;
        border += made->stops[i].length;
    }
    made->buffer = bytes;
    made->drops_space = puts_space(tokenizer);
    *text = made;
    return SN_OK;
}

void sn_text_resume(sn_text *text) {
    if (text) text->drops_space = false;
}

void sn_text_free(sn_text *text) {
    sn_free(text);
}

/* ---- running ------------------------------------------------------------------------ */

/* Follows the stop through one more byte; true if that completes it. */
static bool advance(stop *s, uint8_t byte) {
    while (s->matched && s->bytes[s->matched] != byte) s->matched = s->border[s->matched - 1];
    if (s->bytes[s->matched] == byte) s->matched++;
    return s->matched == s->length;
}

static void append(sn_text *text, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n && !text->stopped; i++) {
        size_t cut = 0;
        text->buffer[text->length++] = bytes[i];
        for (size_t k = 0; k < text->n_stops; k++) {
            stop *s = &text->stops[k];
            if (advance(s, bytes[i]) && s->length > cut) cut = s->length;
        }
        text->length -= cut;
        text->stopped = cut > 0;
    }
}

/* For n bytes that were to become one character. */
static void append_replacement(sn_text *text, size_t n) {
    size_t times = text->tokenizer->single_bytes ? n : 1;
    text->drops_space = false;
    for (size_t i = 0; i < times; i++)
        append(text, (const uint8_t *)SN_UTF8_REPLACEMENT, SN_UTF8_REPLACEMENT_BYTES);
}

static void append_character(sn_text *text) {
    bool dropped = text->drops_space && text->utf8.bytes[0] == ' ';
    text->drops_space = false;
    if (!dropped) append(text, text->utf8.bytes, text->utf8.length);
}

static void append_byte(sn_text *text, uint8_t byte) {
    size_t begun = text->utf8.n;
    sn_utf8_event event = sn_utf8_push(&text->utf8, byte);
    if (event == SN_UTF8_BROKEN) {
        append_replacement(text, begun);
        event = sn_utf8_push(&text->utf8, byte);
    }
    if (event == SN_UTF8_CHARACTER) append_character(text);
    if (event == SN_UTF8_INVALID) append_replacement(text, 1);
}

/* Forgets what the last call handed out. */
static void drop_given(sn_text *text) {
    text->length -= text->given;
    memmove(text->buffer, text->buffer + text->given, text->length);
    text->given = 0;
}

static size_t held_back(const sn_text *text) {
    size_t held = 0;
    for (size_t k = 0; k < text->n_stops && !text->stopped; k++)
        if (text->stops[k].matched > held) held = text->stops[k].matched;
    return held;
}

static void start_afresh(sn_text *text) {
    text->utf8.n = 0;
    text->drops_space = puts_space(text->tokenizer);
    text->stopped = 0;
    for (size_t k = 0; k < text->n_stops; k++) text->stops[k].matched = 0;
}

sn_status sn_text_push(sn_text *text, int32_t id, const char **out, size_t *length,
                       int32_t *stopped) {
    if (!text || !out || !length || !stopped)
        return sn_fail(SN_E_INVAL, "text: text, out, length or stopped is NULL");
    const char *token;
    size_t n;
    SN_TRY(sn_tokenizer_token(text->tokenizer, id, &token, &n));
    drop_given(text);
    for (size_t i = 0; i < n && !text->stopped; i++) append_byte(text, (uint8_t)token[i]);
    text->given = text->length - held_back(text);
    *out = (const char *)text->buffer;
    *length = text->given;
    *stopped = text->stopped;
    return SN_OK;
}

sn_status sn_text_finish(sn_text *text, const char **out, size_t *length) {
    if (!text || !out || !length)
        return sn_fail(SN_E_INVAL, "text: text, out or length is NULL");
    drop_given(text);
    if (text->utf8.n && !text->stopped) append_replacement(text, text->utf8.n);
    start_afresh(text);
    text->given = text->length;
    *out = (const char *)text->buffer;
    *length = text->given;
    return SN_OK;
}
