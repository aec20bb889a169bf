/*
 * vocabulary.c: what all kinds of tokenizers share when they are built: the lists of tokens, the
 * ids with a role, the added tokens.
 */
#include "vocabulary.h"

#include "added.h"
#include "nfc.h"

#include <inttypes.h>
#include <string.h>

sn_status sn_vocabulary_new(const sn_vocabulary_kind *kind, const char *name, uint64_t n_ids,
                            uint64_t bytes, uint64_t texts, sn_tokenizer **tokenizer) {
    if (n_ids < 1 || n_ids > INT32_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: a vocabulary of %" PRIu64 " tokens", name, n_ids);
    if (bytes > SN_VOCABULARY_BYTES_MAX || texts > SN_VOCABULARY_BYTES_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: a vocabulary of %" PRIu64 " bytes, at most %"
                       PRIu64 " are supported", name, bytes > texts ? bytes : texts,
                       SN_VOCABULARY_BYTES_MAX);
    size_t ids = (size_t)n_ids;
    size_t offsets, head, total;
    if (!sn_mul_size(ids + 1, (texts ? 2 : 1) * sizeof(uint32_t), &offsets) ||
        !sn_add_size(sizeof(sn_tokenizer) + ids, offsets, &head) ||
        !sn_add_size(head, (size_t)bytes, &total) || !sn_add_size(total, (size_t)texts, &total))
        return sn_fail(SN_E_NOMEM, "%.300s: a vocabulary of %" PRIu64 " tokens does not fit "
                       "into memory", name, n_ids);
    sn_tokenizer *made = sn_alloc(total);
    if (!made) return SN_E_NOMEM;
    made->kind = kind;
    made->n_ids = (int32_t)n_ids;
    made->bos = made->eos = made->eot = made->unknown = -1;
    made->at = (uint32_t *)(made + 1);
    made->text_at = texts ? made->at + ids + 1 : NULL;
    made->roles = (uint8_t *)(made->at + (texts ? 2 : 1) * (ids + 1));
    made->bytes = made->roles + ids;
    made->texts = made->bytes + bytes;
    *tokenizer = made;
    return SN_OK;
}

void sn_vocabulary_add(sn_tokenizer *tokenizer, int32_t id, size_t length, sn_token_role role) {
    tokenizer->at[id + 1] = tokenizer->at[id] + (uint32_t)length;
    tokenizer->roles[id] = (uint8_t)role;
    if (length > tokenizer->longest) tokenizer->longest = length;
}

/* ---- keys --------------------------------------------------------------------------- */

static bool is_integer(sn_gguf_kind kind) {
    return kind <= SN_GGUF_I32 || kind == SN_GGUF_U64 || kind == SN_GGUF_I64;
}

sn_status sn_vocabulary_get_array(const sn_vocabulary_keys *keys, const char *key, bool texts,
                                  uint64_t count, bool required, const sn_gguf_value **array) {
    const sn_gguf_value *found = sn_gguf_find(keys->gguf, key);
    *array = NULL;
    if (!found && !required) return SN_OK;
    bool right = found && found->kind == SN_GGUF_ARRAY &&
                 (texts ? found->element == SN_GGUF_STRING : is_integer(found->element));
    if (!right)
        return sn_fail(SN_E_FORMAT, "%.300s: %s is no array of %s", keys->name, key,
                       texts ? "texts" : "integers");
    if (count != UINT64_MAX && found->count != count)
        return sn_fail(SN_E_FORMAT, "%.300s: %s has %" PRIu64 " entries, not %" PRIu64,
                       keys->name, key, found->count, count);
    *array = found;
    return SN_OK;
}

sn_status sn_vocabulary_read_keys(const sn_gguf *gguf, sn_vocabulary_keys *keys) {
    *keys = (sn_vocabulary_keys){ .gguf = gguf, .name = sn_gguf_name(gguf) };
    SN_TRY(sn_vocabulary_get_array(keys, "tokenizer.ggml.tokens", true, UINT64_MAX, true,
                                   &keys->tokens));
    SN_TRY(sn_vocabulary_get_array(keys, "tokenizer.ggml.token_type", false, UINT64_MAX, false,
                                   &keys->types));
    if (keys->types && keys->types->count != keys->tokens->count)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " tokens, but %" PRIu64 " token types",
                       keys->name, keys->tokens->count, keys->types->count);
    return SN_OK;
}

static sn_status type_of(const sn_vocabulary_keys *keys, int32_t id, sn_token_type *type) {
    int64_t value = keys->types ? sn_gguf_int_at(keys->types, (uint64_t)id) : SN_TYPE_NORMAL;
    if (value < SN_TYPE_NORMAL || value > SN_TYPE_BYTE)
        return sn_fail(SN_E_FORMAT, "%.300s: token %" PRId32 " has the unknown type %" PRId64,
                       keys->name, id, value);
    *type = (sn_token_type)value;
    return SN_OK;
}

static sn_token_role role_of(sn_token_type type) {
    switch (type) {
    case SN_TYPE_UNKNOWN:
    case SN_TYPE_CONTROL: return SN_TOKEN_CONTROL;
    case SN_TYPE_UNUSED: return SN_TOKEN_UNUSED;
    case SN_TYPE_BYTE: return SN_TOKEN_BYTE;
    default: return SN_TOKEN_TEXT;
    }
}

static sn_status special_id(const sn_vocabulary_keys *keys, const char *key, int32_t usual,
                            int32_t *id) {
    uint32_t value = UINT32_MAX; /* absent; some files write it for "none" */
    uint64_t n_ids = keys->tokens->count;
    bool present = sn_gguf_find(keys->gguf, key) != NULL;
    SN_TRY(sn_gguf_get_u32(keys->gguf, key, false, &value));
    if (!present && usual >= 0 && (uint64_t)usual < n_ids) value = (uint32_t)usual;
    if (value == UINT32_MAX) return SN_OK;
    if (value >= n_ids)
        return sn_fail(SN_E_FORMAT, "%.300s: %s is %" PRIu32 ", outside the vocabulary of %"
                       PRIu64, keys->name, key, value, n_ids);
    *id = (int32_t)value;
    return SN_OK;
}

/* Whether a token is added at one end of texts; if the file asks for it, it must be known. */
static sn_status end_flag(const sn_vocabulary_keys *keys, const char *key, bool usual, int32_t id,
                          bool *adds) {
    *adds = usual && id >= 0;
    if (!sn_gguf_find(keys->gguf, key)) return SN_OK;
    SN_TRY(sn_gguf_get_bool(keys->gguf, key, true, adds));
    if (!*adds || id >= 0) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: %s is true, but there is no such token", keys->name, key);
}

static sn_status read_special(const sn_vocabulary_keys *keys, const sn_vocabulary_defaults *usual,
                              sn_tokenizer *t) {
    SN_TRY(special_id(keys, "tokenizer.ggml.bos_token_id", usual->bos, &t->bos));
    SN_TRY(special_id(keys, "tokenizer.ggml.eos_token_id", usual->eos, &t->eos));
    SN_TRY(special_id(keys, "tokenizer.ggml.eot_token_id", -1, &t->eot));
    SN_TRY(special_id(keys, "tokenizer.ggml.unknown_token_id", usual->unknown, &t->unknown));
    SN_TRY(end_flag(keys, "tokenizer.ggml.add_bos_token", usual->add_bos, t->bos, &t->add_bos));
    return end_flag(keys, "tokenizer.ggml.add_eos_token", false, t->eos, &t->add_eos);
}

static bool span_is(sn_span span, const char *text) {
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

static sn_status refuse(const sn_vocabulary_keys *keys, const char *key, sn_span value) {
    int shown = value.size < 60 ? (int)value.size : 60;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s = '%.*s' is not supported", keys->name, key,
                   shown, value.data);
}

static sn_status read_normalizer(const sn_vocabulary_keys *keys, sn_tokenizer *t) {
    const char *key = "sunnynet.tokenizer.normalizer";
    sn_span form = { .size = 0 };
    if (!sn_gguf_find(keys->gguf, key)) return SN_OK;
    SN_TRY(sn_gguf_get_text(keys->gguf, key, true, &form));
    return span_is(form, "nfc") ? sn_nfc_new(&t->nfc) : refuse(keys, key, form);
}

/* add_space_prefix is all that other programs know; what it leaves open stands under our key. */
static sn_status read_prepend(const sn_vocabulary_keys *keys, const sn_vocabulary_defaults *usual,
                              sn_tokenizer *t) {
    const char *key = "sunnynet.tokenizer.prepend";
    bool adds = usual->prepend != SN_PREPEND_NEVER;
    sn_span how = { .size = 0 };
    SN_TRY(sn_gguf_get_bool(keys->gguf, "tokenizer.ggml.add_space_prefix", false, &adds));
    t->marks_spaces = usual->marks_spaces;
    t->prepend = !adds ? SN_PREPEND_NEVER
               : usual->marks_spaces ? SN_PREPEND_EACH : SN_PREPEND_ALWAYS;
    if (!sn_gguf_find(keys->gguf, key)) return SN_OK;
    SN_TRY(sn_gguf_get_text(keys->gguf, key, true, &how));
    if (span_is(how, "never"))
        t->prepend = SN_PREPEND_NEVER;
    else if (span_is(how, "always"))
        t->prepend = SN_PREPEND_ALWAYS;
    else if (span_is(how, "first"))
        t->prepend = SN_PREPEND_FIRST;
    else
        return refuse(keys, key, how);
    return SN_OK;
}

/* ---- added tokens ------------------------------------------------------------------- */

/* flags[id] of each id: SN_ADDED_TOKEN and the others, 0 for what is no added token. */
static sn_status read_added(const sn_vocabulary_keys *keys, const sn_gguf_value *ids,
                            uint8_t *flags) {
    const sn_gguf_value *bits;
    SN_TRY(sn_vocabulary_get_array(keys, "sunnynet.tokenizer.added_flags", false, ids->count, true,
                                   &bits));
    for (uint64_t i = 0; i < ids->count; i++) {
        int64_t id = sn_gguf_int_at(ids, i), value = sn_gguf_int_at(bits, i);
        if (id < 0 || (uint64_t)id >= keys->tokens->count)
            return sn_fail(SN_E_FORMAT, "%.300s: added token %" PRId64 " is outside the vocabulary "
                           "of %" PRIu64, keys->name, id, keys->tokens->count);
        if (value < 0 || value >= SN_ADDED_TOKEN)
            return sn_fail(SN_E_FORMAT, "%.300s: added token %" PRId64 " has the unknown flags %"
                           PRId64, keys->name, id, value);
        if (flags[id])
            return sn_fail(SN_E_FORMAT, "%.300s: added token %" PRId64 " is listed twice",
                           keys->name, id);
        flags[id] = (uint8_t)(value | SN_ADDED_TOKEN);
    }
    return SN_OK;
}

/* As other programs have it: control tokens are special, those the user defined are not. */
static sn_status added_by_type(const sn_vocabulary_keys *keys, const sn_vocabulary_defaults *usual,
                               uint8_t *flags) {
    for (int32_t id = 0; (uint64_t)id < keys->tokens->count; id++) {
        sn_token_type type;
        SN_TRY(type_of(keys, id, &type));
        if (type == SN_TYPE_CONTROL || type == SN_TYPE_UNKNOWN)
            flags[id] = SN_ADDED_TOKEN | SN_ADDED_SPECIAL;
        else if (type == SN_TYPE_USER && usual->cuts_user_tokens)
            flags[id] = SN_ADDED_TOKEN;
    }
    return SN_OK;
}

static sn_status find_added(const sn_vocabulary_keys *keys, const sn_vocabulary_defaults *usual,
                            uint8_t *flags) {
    const sn_gguf_value *ids;
    SN_TRY(sn_vocabulary_get_array(keys, "sunnynet.tokenizer.added_ids", false, UINT64_MAX, false,
                                   &ids));
    return ids ? read_added(keys, ids, flags) : added_by_type(keys, usual, flags);
}

/* ---- filling ------------------------------------------------------------------------ */

size_t sn_vocabulary_unmark_spaces(const uint8_t *text, size_t bytes, uint8_t *out) {
    size_t n = 0;
    for (size_t at = 0; at < bytes;) {
        bool mark = bytes - at >= SN_SPACE_MARK_BYTES &&
                    memcmp(text + at, SN_SPACE_MARK, SN_SPACE_MARK_BYTES) == 0;
        out[n++] = mark ? ' ' : text[at];
        at += mark ? SN_SPACE_MARK_BYTES : 1;
    }
    return n;
}

/* The bytes of an added token: its text, normalized if that is what is looked for in texts. */
static sn_status decode_added(sn_tokenizer *t, sn_span text, unsigned flags, sn_buffer *buffer,
                              int32_t id, size_t *length) {
    const uint8_t *from = (const uint8_t *)text.data;
    size_t n = text.size;
    if (flags & SN_ADDED_NORMALIZED) {
        SN_TRY(sn_added_normalize(t, from, n, buffer));
        from = buffer->data;
        n = buffer->size;
    }
    *length = n;
    if (t->marks_spaces)
        *length = sn_vocabulary_unmark_spaces(from, n, sn_vocabulary_room(t, id));
    else if (n)
        memcpy(sn_vocabulary_room(t, id), from, n);
    return SN_OK;
}

static sn_status fill_one(const sn_vocabulary_keys *keys, const sn_vocabulary_defaults *usual,
                          unsigned flags, sn_buffer *buffer, int32_t id, sn_tokenizer *t) {
    sn_span text = sn_gguf_string_at(keys->tokens, (uint64_t)id);
    sn_token_type type;
    size_t length = 0;
    SN_TRY(type_of(keys, id, &type));
    sn_token_role role = flags & SN_ADDED_SPECIAL ? SN_TOKEN_CONTROL : role_of(type);
    if (flags && role == SN_TOKEN_TEXT) role = SN_TOKEN_ADDED;
    if (text.size) memcpy(t->texts + t->text_at[id], text.data, text.size);
    t->text_at[id + 1] = t->text_at[id] + (uint32_t)text.size;
    if (role == SN_TOKEN_ADDED)
        SN_TRY(decode_added(t, text, flags, buffer, id, &length));
    else if (role == SN_TOKEN_TEXT || role == SN_TOKEN_BYTE)
        SN_TRY(usual->decode(keys, id, text, sn_vocabulary_room(t, id), &length, &role));
    /* A token without text would be a step that says nothing: it is padding. */
    if (role != SN_TOKEN_CONTROL && length == 0) role = SN_TOKEN_UNUSED;
    sn_vocabulary_add(t, id, role == SN_TOKEN_CONTROL ? 0 : length, role);
    return SN_OK;
}

static sn_status fill(const sn_vocabulary_keys *keys, const sn_vocabulary_defaults *usual,
                      const uint8_t *flags, sn_tokenizer *t) {
    sn_buffer buffer = { .data = NULL };
    sn_status status = SN_OK;
    for (int32_t id = 0; id < t->n_ids && status == SN_OK; id++)
        status = fill_one(keys, usual, flags[id], &buffer, id, t);
    sn_buffer_free(&buffer);
    return status;
}

/* All texts together; each stands behind its length of 8 bytes. */
static uint64_t texts_of(const sn_vocabulary_keys *keys) {
    return keys->tokens->bytes - 8 * keys->tokens->count;
}

/* At most so many bytes are those of the tokens: normalizing may make three of one, and put a
 * mark in front. */
static uint64_t bytes_of(const sn_vocabulary_keys *keys, const uint8_t *flags) {
    uint64_t total = texts_of(keys);
    for (uint64_t i = 0; i < keys->tokens->count; i++)
        if (flags[i] & SN_ADDED_NORMALIZED)
            total += 2 * (uint64_t)sn_gguf_string_at(keys->tokens, i).size + SN_SPACE_MARK_BYTES;
    return total;
}

static sn_status build(const sn_vocabulary_kind *kind, const sn_vocabulary_keys *keys,
                       const sn_vocabulary_defaults *usual, uint8_t *flags,
                       sn_tokenizer **tokenizer) {
    sn_tokenizer *made = NULL;
    SN_TRY(find_added(keys, usual, flags));
    SN_TRY(sn_vocabulary_new(kind, keys->name, keys->tokens->count, bytes_of(keys, flags),
                             texts_of(keys) + 1, &made));
    sn_status status = read_special(keys, usual, made);
    if (status == SN_OK) status = read_normalizer(keys, made);
    if (status == SN_OK) status = read_prepend(keys, usual, made);
    if (status == SN_OK) status = fill(keys, usual, flags, made);
    if (status == SN_OK) status = sn_added_new(made, keys->name, flags, &made->added);
    if (status == SN_OK)
        *tokenizer = made;
    else
        sn_tokenizer_destroy(made);
    return status;
}

sn_status sn_vocabulary_from_keys(const sn_vocabulary_kind *kind, const sn_vocabulary_keys *keys,
                                  const sn_vocabulary_defaults *usual, sn_tokenizer **tokenizer) {
    if (keys->tokens->count < 1 || keys->tokens->count > INT32_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: a vocabulary of %" PRIu64 " tokens", keys->name,
                       keys->tokens->count);
    uint8_t *flags = sn_alloc((size_t)keys->tokens->count);
    if (!flags) return SN_E_NOMEM;
    sn_status status = build(kind, keys, usual, flags, tokenizer);
    sn_free(flags);
    return status;
}
