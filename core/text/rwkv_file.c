/*
 * rwkv_file.c: the RWKV world vocabulary as a text file. One token a line: its id, a Python
 * literal of its text ('...') or bytes (b'...'), its length in bytes, with a space between. The
 * ids ascend; those left out are unused. Id 0 is the end of text and has no line.
 */
#include "trie.h"
#include "utf8.h"
#include "vocabulary.h"

#include <inttypes.h>
#include <string.h>

#define FILE_BYTES_MAX ((uint64_t)64 << 20) /* the official file has 1 MB */
#define IDS_MAX (1 << 20)                   /* the official file has 65,529 */

typedef struct span {
    const uint8_t *at, *end;
} span;

typedef struct lines {
    const char *name;
    span left;
    size_t number; /* of the line that was read last, from 1 */
} lines;

static sn_status fail_at(const lines *file, const char *reason) {
    return sn_fail(SN_E_FORMAT, "%.300s: line %zu: %s", file->name, file->number, reason);
}

/* The next line that is not empty, without its end; false after the last one. */
static bool next_line(lines *file, span *line) {
    while (file->left.at < file->left.end) {
        const uint8_t *at = file->left.at;
        const uint8_t *end = memchr(at, '\n', (size_t)(file->left.end - at));
        file->left.at = end ? end + 1 : file->left.end;
        if (!end) end = file->left.end;
        if (end > at && end[-1] == '\r') end--;
        file->number++;
        *line = (span){ .at = at, .end = end };
        if (end > at) return true;
    }
    return false;
}

/* A decimal number without a sign; -1 if it is none or above IDS_MAX. */
static int32_t number_of(span digits) {
    int32_t value = digits.at < digits.end ? 0 : -1;
    for (; digits.at < digits.end; digits.at++) {
        if (*digits.at < '0' || *digits.at > '9') return -1;
        value = value * 10 + (*digits.at - '0');
        if (value > IDS_MAX) return -1;
    }
    return value;
}

typedef struct fields {
    int32_t id;
    span literal;
    int32_t length;
} fields;

/* The literal may contain spaces: it lies between the first and the last one. */
static sn_status split(const lines *file, span line, fields *out) {
    const uint8_t *first = memchr(line.at, ' ', (size_t)(line.end - line.at));
    const uint8_t *last = line.end - 1;
    while (last > line.at && *last != ' ') last--;
    if (!first || first == last) return fail_at(file, "not: id, literal, length");
    out->id = number_of((span){ .at = line.at, .end = first });
    out->literal = (span){ .at = first + 1, .end = last };
    out->length = number_of((span){ .at = last + 1, .end = line.end });
    if (out->id < 1 || out->id >= IDS_MAX)
        return fail_at(file, "the id is no number from 1 to 1048575");
    if (out->length < 0) return fail_at(file, "the length is no number");
    return SN_OK;
}

/* ---- literals ----------------------------------------------------------------------- */

/* Hexadecimal digits of an escape, all of which must be there; -1 if not. */
static int64_t hex_number(span *from, size_t digits) {
    int64_t value = 0;
    if ((size_t)(from->end - from->at) < digits) return -1;
    for (size_t i = 0; i < digits; i++) {
        int digit = sn_hex_digit(*from->at++);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* What an escape stands for (past the backslash): a code point or byte, -1 if malformed. */
static int64_t unescape(span *from, bool is_text) {
    uint8_t c = from->at < from->end ? *from->at++ : 0;
    switch (c) {
    case '\\':
    case '\'':
    case '"': return c;
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case 'x': return hex_number(from, 2);
    case 'u': return is_text ? hex_number(from, 4) : -1;
    case 'U': return is_text ? hex_number(from, 8) : -1;
    default: return -1;
    }
}

/* The inside of a literal; `out` has room, as no escape is shorter than what it stands for. */
static sn_status decode(const lines *file, span inside, bool is_text, uint8_t quote,
                        uint8_t *out, size_t *length) {
    size_t n = 0;
    while (inside.at < inside.end) {
        uint8_t c = *inside.at++;
        if (c == quote) return fail_at(file, "a quote inside the literal");
        if (c >= 0x80 && !is_text) return fail_at(file, "a bytes literal that is not ASCII");
        if (c != '\\') {
            out[n++] = c;
            continue;
        }
        int64_t value = unescape(&inside, is_text);
        if (value < 0 || value > 0x10ffff) return fail_at(file, "a malformed escape");
        if (is_text)
            n += sn_utf8_put((uint32_t)value, out + n);
        else
            out[n++] = (uint8_t)value;
    }
    if (is_text && !sn_utf8_valid(out, n)) return fail_at(file, "a text that is not UTF-8");
    *length = n;
    return SN_OK;
}

static sn_status read_literal(const lines *file, span literal, uint8_t *out, size_t *length) {
    bool is_text = literal.at == literal.end || *literal.at != 'b';
    if (!is_text) literal.at++;
    if (literal.end - literal.at < 2 || (*literal.at != '\'' && *literal.at != '"') ||
        literal.end[-1] != *literal.at)
        return fail_at(file, "the literal is not between quotes");
    span inside = { .at = literal.at + 1, .end = literal.end - 1 };
    return decode(file, inside, is_text, *literal.at, out, length);
}

/* ---- the file ----------------------------------------------------------------------- */

/* The ids ascend, so the last one is the highest: that gives the size of the vocabulary. */
static sn_status check_ids(lines file, int32_t *highest) {
    span line;
    fields token = { .id = 0 };
    *highest = 0;
    while (next_line(&file, &line)) {
        SN_TRY(split(&file, line, &token));
        if (token.id <= *highest)
            return sn_fail(SN_E_FORMAT, "%.300s: line %zu: id %" PRId32 " follows id %" PRId32,
                           file.name, file.number, token.id, *highest);
        *highest = token.id;
    }
    if (*highest == 0) return sn_fail(SN_E_FORMAT, "%.300s: no tokens in it", file.name);
    return SN_OK;
}

static sn_status fill(lines file, sn_tokenizer *tokenizer) {
    span line;
    int32_t next = 1;
    sn_vocabulary_add(tokenizer, 0, 0, SN_TOKEN_CONTROL);
    while (next_line(&file, &line)) {
        fields token = { .id = 0 };
        size_t length = 0;
        SN_TRY(split(&file, line, &token));
        while (next < token.id) sn_vocabulary_add(tokenizer, next++, 0, SN_TOKEN_UNUSED);
        SN_TRY(read_literal(&file, token.literal, sn_vocabulary_room(tokenizer, next), &length));
        if (length == 0) return fail_at(&file, "an empty token");
        if (length != (size_t)token.length)
            return sn_fail(SN_E_FORMAT, "%.300s: line %zu: a token of %zu bytes, but its length "
                           "is given as %" PRId32, file.name, file.number, length, token.length);
        sn_vocabulary_add(tokenizer, next++, length, SN_TOKEN_TEXT);
    }
    return SN_OK;
}

/* A blank line ends a turn: the world models are trained so, and their GGUF files say so. */
static void find_special_ids(sn_tokenizer *tokenizer) {
    const uint8_t blank_line[] = { '\n', '\n' };
    int32_t id;
    tokenizer->bos = tokenizer->eos = 0;
    if (sn_trie_longest(tokenizer->encoder, blank_line, 2, &id) == 2) tokenizer->eot = id;
}

static sn_status parse(lines file, sn_tokenizer **tokenizer) {
    int32_t highest = 0;
    sn_tokenizer *made = NULL;
    SN_TRY(check_ids(file, &highest));
    SN_TRY(sn_vocabulary_new(&sn_rwkv_kind, file.name, (uint64_t)highest + 1,
                             (uint64_t)(file.left.end - file.left.at), 0, &made));
    sn_status status = fill(file, made);
    if (status == SN_OK) status = sn_rwkv_prepare(made);
    if (status != SN_OK) {
        sn_tokenizer_destroy(made);
        return status;
    }
    find_special_ids(made);
    *tokenizer = made;
    return SN_OK;
}

sn_status sn_rwkv_read(sn_input *input, sn_tokenizer **tokenizer) {
    if (input->size > FILE_BYTES_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " bytes are too many for a vocabulary",
                       input->name, input->size);
    size_t size = (size_t)input->size;
    uint8_t *bytes = sn_alloc(size);
    if (!bytes) return SN_E_NOMEM;
    sn_status status = sn_input_read(input, bytes, size);
    lines file = { .name = input->name, .left = { .at = bytes, .end = bytes + size } };
    if (status == SN_OK) status = parse(file, tokenizer);
    sn_free(bytes);
    return status;
}
