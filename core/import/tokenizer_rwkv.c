/*
 * tokenizer_rwkv.c: an RWKV world vocabulary (lines of id, literal, length) as a GGUF has it: each
 * token as Python would print its bytes, without the quotes.
 */
#include "lexicon.h"

#include <string.h>

#define ESCAPE_BYTES 4 /* "\xNN", the longest way to write a byte */

/* Of a byte that cannot stand for itself. Quotes are the caller's care. */
static char *escape(uint8_t byte, char *to) {
    static const char hex[] = "0123456789abcdef";
    const char *plain = byte == '\t' ? "\\t" : byte == '\n' ? "\\n" : byte == '\r' ? "\\r"
                      : byte == '\\' ? "\\\\" : NULL;
    if (plain) {
        memcpy(to, plain, 2);
        return to + 2;
    }
    if (byte >= 0x20 && byte < 0x7f) {
        *to = (char)byte;
        return to + 1;
    }
    const char code[ESCAPE_BYTES] = { '\\', 'x', hex[byte >> 4], hex[byte & 15] };
    memcpy(to, code, sizeof code);
    return to + sizeof code;
}

/* Python puts double quotes around bytes with a single quote and no double one, else single quotes;
 * only the latter make it escape a single quote. */
static char *print_bytes(const uint8_t *bytes, size_t n, char *to) {
    bool escapes_quotes = memchr(bytes, '"', n) != NULL;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\'' && escapes_quotes) *to++ = '\\';
        to = escape(bytes[i], to);
    }
    return to;
}

static sn_status fill(const sn_tokenizer *world, char *to, sn_lexicon *lexicon) {
    for (int32_t id = 0; id < world->n_ids; id++) {
        size_t n;
        const uint8_t *bytes = sn_vocabulary_token(world, id, &n);
        sn_span text = { .data = to };
        if (world->roles[id] == SN_TOKEN_UNUSED) continue;
        if (world->roles[id] == SN_TOKEN_CONTROL) {
            text = (sn_span){ .data = "<s>", .size = 3 }; /* id 0, the end of a text */
            SN_TRY(sn_lexicon_put(lexicon, (uint64_t)id, text, SN_TYPE_CONTROL));
            continue;
        }
        to = print_bytes(bytes, n, to);
        text.size = (size_t)(to - text.data);
        SN_TRY(sn_lexicon_put(lexicon, (uint64_t)id, text, SN_TYPE_NORMAL));
    }
    return SN_OK;
}

sn_status sn_tokenizer_read_rwkv(sn_tokenizer_file *file) {
    sn_memory_cursor cursor;
    sn_input input;
    sn_input_from_memory(&input, file->path, file->bytes, file->size, &cursor);
    SN_TRY(sn_rwkv_read(&input, &file->world));
    const sn_tokenizer *world = file->world;
    sn_lexicon *lexicon = &file->lexicon;
    uint64_t n = (uint64_t)world->n_ids, room;
    SN_TRY(sn_lexicon_new(file->path, n - 1, n, file->n_vocab, lexicon));
    if (!sn_mul_u64(world->at[n], ESCAPE_BYTES, &room) || room > SIZE_MAX)
        return sn_fail(SN_E_NOMEM, "out of memory");
    file->texts = sn_alloc((size_t)room);
    if (!file->texts) return SN_E_NOMEM;
    SN_TRY(fill(world, file->texts, lexicon));
    lexicon->bos = world->bos;
    lexicon->eos = world->eos;
    lexicon->eot = world->eot;
    file->model = "rwkv";
    return SN_OK;
}
