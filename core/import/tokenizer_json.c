/*
 * tokenizer_json.c: tokenizer.json as the Hugging Face `tokenizers` package writes it, with a BPE
 * model, byte-level (GPT-2) or SentencePiece's kind (Llama). What is taken over gives the ids that
 * the package gives; what this library's tokenizers cannot do is refused by name.
 */
#include "pipeline.h"

#include <inttypes.h>
#include <string.h>

enum { SPECIAL = 1, NORMALIZED = 2, LSTRIP = 4, RSTRIP = 8, SINGLE_WORD = 16 }; /* added_flags */

typedef struct reader {
    sn_tokenizer_file *file;
    const char *name;
    sn_lexicon *lexicon;
    const sn_json *model, *vocab, *merges, *added; /* added: NULL if there are none */
    sn_pipeline pipeline;
    bool byte_fallback, fuse_unk, ignore_merges;
    size_t longest; /* bytes of the longest text of the vocabulary */
} reader;

static sn_status refuse(const reader *r, const char *reason) {
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s", r->name, reason);
}

/* Finds a text in the model's vocabulary, which the added tokens are not part of. */
static bool find(const reader *r, const char *text, size_t size, uint64_t *id) {
    return sn_json_id(sn_json_get_sized(r->vocab, text, size), id);
}

/* ---- the model's options ------------------------------------------------------------ */

static sn_status get_option(const reader *r, const char *key, bool *flag) {
    const sn_json *value = sn_json_get(r->model, key);
    bool known = sn_json_is_null(value) || value->kind == SN_JSON_TRUE ||
                 value->kind == SN_JSON_FALSE;
    *flag = value && value->kind == SN_JSON_TRUE;
    return known ? SN_OK : sn_fail(SN_E_FORMAT, "%.300s: model: %s is neither true nor false",
                                   r->name, key);
}

static sn_status check_kind(const reader *r) {
    const sn_json *type = sn_json_get(r->model, "type");
    if (!r->model || r->model->kind != SN_JSON_OBJECT)
        return sn_fail(SN_E_FORMAT, "%.300s: there is no model in it", r->name);
    if (type && !sn_json_is_text(type))
        return sn_fail(SN_E_FORMAT, "%.300s: model: its type is no text", r->name);
    /* The oldest files have a BPE model without a type. */
    if (type && !sn_json_is(type, "BPE"))
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: models of type '%.60s' are not supported (BPE "
                       "is)", r->name, type->text);
    if (!r->merges || r->merges->kind != SN_JSON_ARRAY)
        return sn_fail(SN_E_FORMAT, "%.300s: model: merges is no list", r->name);
    return SN_OK;
}

static sn_status read_options(reader *r) {
    static const char *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    const sn_json *dropout = sn_json_get(r->model, "dropout");
    SN_TRY(check_kind(r));
    if (!sn_json_is_null(dropout) && !(dropout->kind == SN_JSON_NUMBER && dropout->number == 0))
        return refuse(r, "model: dropout makes encoding random, which is not supported");
    for (size_t i = 0; i < 2; i++) {
        const sn_json *affix = sn_json_get(r->model, affixes[i]);
        if (!sn_json_is_null(affix) && !sn_json_is(affix, ""))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: model: a %s is not supported", r->name,
                           affixes[i]);
    }
    SN_TRY(get_option(r, "byte_fallback", &r->byte_fallback));
    SN_TRY(get_option(r, "fuse_unk", &r->fuse_unk));
    return get_option(r, "ignore_merges", &r->ignore_merges);
}

/* ---- vocabulary --------------------------------------------------------------------- */

static sn_status fill(reader *r) {
    bool bytes = !r->pipeline.byte_level;
    for (const sn_json *entry = r->vocab->first; entry; entry = entry->next) {
        uint64_t id = 0;
        sn_span text = { .data = entry->key, .size = entry->key_size };
        int32_t type = bytes && sn_is_byte_token(text) ? SN_TYPE_BYTE : SN_TYPE_NORMAL;
        if (!sn_json_id(entry, &id)) return SN_E_FORMAT; /* sn_json_highest_id() has checked */
        SN_TRY(sn_lexicon_put(r->lexicon, id, text, type));
        if (text.size > r->longest) r->longest = text.size;
    }
    return SN_OK;
}

/* The highest id of the list of added tokens, if it is higher. */
static sn_status check_added(reader *r, uint64_t *highest) {
    if (sn_json_is_null(r->added)) {
        r->added = NULL;
        return SN_OK;
    }
    if (r->added->kind != SN_JSON_ARRAY)
        return sn_fail(SN_E_FORMAT, "%.300s: added_tokens is no list", r->name);
    for (const sn_json *token = r->added->first; token; token = token->next) {
        uint64_t id = 0;
        if (!sn_json_is_text(sn_json_get(token, "content")) ||
            !sn_json_id(sn_json_get(token, "id"), &id))
            return sn_fail(SN_E_FORMAT, "%.300s: added_tokens: one has no content, or no id from "
                           "0 to 16777215", r->name);
        if (id > *highest) *highest = id;
    }
    return SN_OK;
}

static sn_status flags_of(const reader *r, const sn_json *token, uint32_t *flags) {
    static const char *const keys[] = { "special", "normalized", "lstrip", "rstrip",
                                        "single_word" };
    *flags = 0;
    for (size_t bit = 0; bit < 5; bit++) {
        const sn_json *value = sn_json_get(token, keys[bit]);
        if (!value || (value->kind != SN_JSON_TRUE && value->kind != SN_JSON_FALSE))
            return sn_fail(SN_E_FORMAT, "%.300s: added token '%.60s': %s is neither true nor "
                           "false", r->name, sn_json_get(token, "content")->text, keys[bit]);
        if (value->kind == SN_JSON_TRUE) *flags |= (uint32_t)1 << bit;
    }
    return SN_OK;
}

/* An added token is either an entry of the vocabulary, or one more. */
static sn_status add(const reader *r, const sn_json *token, uint32_t id, uint32_t flags) {
    const sn_json *content = sn_json_get(token, "content");
    int32_t type = flags & SPECIAL ? SN_TYPE_CONTROL : SN_TYPE_USER;
    uint64_t known = 0;
    if (!find(r, content->text, content->size, &known))
        return sn_lexicon_put(r->lexicon, id, sn_json_span(content), type);
    if (known != id)
        return sn_fail(SN_E_FORMAT, "%.300s: '%.60s' has id %" PRIu32 " as an added token and id "
                       "%" PRIu64 " in the vocabulary", r->name, content->text, id, known);
    r->lexicon->types[id] = type;
    return SN_OK;
}

/* ids and flags: one for each added token. */
static sn_status add_all(reader *r, uint32_t *ids, uint32_t *flags) {
    bool plain = true; /* the types say it all */
    size_t i = 0;
    for (const sn_json *token = r->added->first; token; token = token->next, i++) {
        uint64_t id = 0;
        if (!sn_json_id(sn_json_get(token, "id"), &id)) return SN_E_FORMAT; /* check_added() has */
        ids[i] = (uint32_t)id;
        SN_TRY(flags_of(r, token, &flags[i]));
        SN_TRY(add(r, token, ids[i], flags[i]));
        plain = plain && (flags[i] & ~(uint32_t)SPECIAL) == 0;
    }
    if (plain) return SN_OK;
    SN_TRY(sn_build_u32s(r->file->build, "sunnynet.tokenizer.added_ids", ids, i));
    return sn_build_u32s(r->file->build, "sunnynet.tokenizer.added_flags", flags, i);
}

static sn_status read_added(reader *r) {
    if (!r->added) return SN_OK;
    uint32_t *ids = sn_alloc_array(r->added->size, sizeof *ids);
    uint32_t *flags = ids ? sn_alloc_array(r->added->size, sizeof *flags) : NULL;
    sn_status status = flags ? add_all(r, ids, flags) : SN_E_NOMEM;
    sn_free(ids);
    sn_free(flags);
    return status;
}

static sn_status read_vocabulary(reader *r) {
    uint64_t highest = 0, entries = 0;
    SN_TRY(sn_json_highest_id(r->name, r->vocab, &highest));
    SN_TRY(check_added(r, &highest));
    entries = r->vocab->size + (r->added ? r->added->size : 0);
    SN_TRY(sn_lexicon_new(r->name, highest, entries, r->file->n_vocab, r->lexicon));
    SN_TRY(fill(r));
    SN_TRY(read_added(r));
    return sn_lexicon_index(r->lexicon);
}

/* ---- characters that the vocabulary lacks ------------------------------------------- */

/* The printable character that stands for a byte in byte-level BPE: itself for the printable
 * bytes of Latin 1, U+0100 and on for the others in ascending order. */
static uint32_t character_of(uint32_t byte) {
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173)) return byte;
    return byte < 33 ? 256 + byte : byte < 161 ? 256 + byte - 94 : 256 + 67;
}

static bool has_byte_character(const reader *r, uint32_t byte) {
    uint32_t c = character_of(byte);
    char text[2] = { (char)c };
    size_t size = 1;
    uint64_t id;
    if (c >= 0x80) { /* all are below U+0800 */
        text[0] = (char)(0xc0 | c >> 6);
        text[1] = (char)(0x80 | (c & 0x3f));
        size = 2;
    }
    return find(r, text, size, &id);
}

static bool has_byte_token(const reader *r, uint32_t byte) {
    static const char digits[] = "0123456789ABCDEF";
    const char text[] = { '<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>' };
    uint64_t id;
    return find(r, text, sizeof text, &id);
}

/* Of the 256 tokens that stand for bytes, how many there are. */
static uint32_t count_bytes(const reader *r) {
    uint32_t n = 0;
    for (uint32_t byte = 0; byte < 256; byte++)
        n += r->pipeline.byte_level ? has_byte_character(r, byte) : has_byte_token(r, byte);
    return n;
}

/* The id of unk_token, if there is one. *named: the file names one. */
static sn_status find_unknown(reader *r, bool *named) {
    const sn_json *unknown = sn_json_get(r->model, "unk_token");
    uint64_t id = 0;
    *named = !sn_json_is_null(unknown);
    if (!*named) return SN_OK;
    if (!sn_json_is_text(unknown))
        return sn_fail(SN_E_FORMAT, "%.300s: model: unk_token is no text", r->name);
    if (find(r, unknown->text, unknown->size, &id)) r->lexicon->unknown = (int64_t)id;
    return SN_OK;
}

/* With all bytes there, nothing is ever unknown. */
static sn_status check_unknown(reader *r) {
    uint32_t bytes = count_bytes(r);
    bool named;
    SN_TRY(find_unknown(r, &named));
    if (r->pipeline.byte_level) {
        if (bytes < 256 && (r->byte_fallback || named))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: only %" PRIu32 " of the 256 bytes are in "
                           "the vocabulary; byte_fallback or unk_token in their place is not "
                           "supported", r->name, bytes);
        return SN_OK;
    }
    if (bytes && !r->byte_fallback)
        return refuse(r, "model: tokens for bytes, but no byte_fallback: not supported");
    if (bytes && !r->pipeline.decodes_bytes)
        return refuse(r, "model: tokens for bytes, but no ByteFallback in the decoder");
    if (bytes < 256 && r->lexicon->unknown < 0)
        return refuse(r, "model: neither an unk_token in the vocabulary nor tokens for all bytes: "
                      "unknown characters would vanish, which is not supported");
    if (bytes < 256 && !r->fuse_unk)
        return refuse(r, "model: fuse_unk = false is not supported");
    return SN_OK;
}

/* ---- spaces in SentencePiece's kind ------------------------------------------------- */

/* U+2581 behind the first character? */
static bool has_inner_space(const char *text, size_t size) {
    for (size_t at = 1; at + 3 <= size; at++)
        if (memcmp(text + at, SN_SPACE_MARK, 3) == 0) return true;
    return false;
}

/* Some settings do the same as what this library does only for vocabularies of some form. */
static sn_status check_spaces(const reader *r) {
    uint64_t id;
    if (r->pipeline.splits && r->ignore_merges)
        return refuse(r, "pre_tokenizer Metaspace with split and a model with ignore_merges are "
                      "not supported together");
    if (r->pipeline.splits && !find(r, SN_SPACE_MARK, 3, &id))
        return refuse(r, "pre_tokenizer Metaspace with split, but U+2581 is not in the "
                      "vocabulary: not supported");
    for (const sn_json *entry = r->vocab->first; r->pipeline.strips_all && entry;
         entry = entry->next)
        if (has_inner_space(entry->key, entry->key_size))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: decoder Metaspace takes several spaces away "
                           "from token '%.60s', which is not supported", r->name, entry->key);
    return SN_OK;
}

/* ---- merges ------------------------------------------------------------------------- */

typedef struct merge_list {
    sn_lexicon_merge *merges;
    sn_span *texts; /* "left right" */
    char *joined;   /* texts of those that the file has as pairs */
    size_t n_joined;
    char *result;   /* room for the longest token */
    uint32_t n;
} merge_list;

static sn_status bad_merge(const reader *r, uint32_t rank, const char *reason) {
    return sn_fail(SN_E_FORMAT, "%.300s: merge %" PRIu32 ": %s", r->name, rank, reason);
}

/* Both sides of a merge, which newer files have as a pair, older ones as a text with a space. */
static sn_status sides(const reader *r, const sn_json *item, uint32_t rank, sn_span *left,
                       sn_span *right) {
    if (item->kind == SN_JSON_ARRAY) {
        if (item->size != 2 || !sn_json_is_text(item->first) ||
            !sn_json_is_text(item->first->next))
            return bad_merge(r, rank, "not a pair of texts");
        *left = sn_json_span(item->first);
        *right = sn_json_span(item->first->next);
        return SN_OK;
    }
    const char *space = !sn_json_is_text(item) ? NULL : memchr(item->text, ' ', item->size);
    if (!space) return bad_merge(r, rank, "neither a pair nor a text with a space");
    *left = (sn_span){ .data = item->text, .size = (size_t)(space - item->text) };
    *right = (sn_span){ .data = space + 1, .size = item->size - left->size - 1 };
    if (memchr(right->data, ' ', right->size)) return bad_merge(r, rank, "more than one space");
    return SN_OK;
}

/* GGUF has merges as texts, which are split at the first space behind their first character.
 * `joined` has room: a pair takes more bytes in the file. */
static sn_span join(merge_list *list, sn_span left, sn_span right) {
    char *text = list->joined + list->n_joined;
    memcpy(text, left.data, left.size);
    text[left.size] = ' ';
    memcpy(text + left.size + 1, right.data, right.size);
    size_t size = left.size + 1 + right.size;
    list->n_joined += size;
    return (sn_span){ .data = text, .size = size };
}

static sn_status find_ids(const reader *r, merge_list *list, sn_span left, sn_span right,
                          sn_lexicon_merge *merge) {
    uint64_t a, b, c;
    if (!find(r, left.data, left.size, &a) || !find(r, right.data, right.size, &b))
        return bad_merge(r, list->n, "a side is not in the vocabulary");
    size_t size = left.size + right.size;
    if (size <= r->longest) {
        memcpy(list->result, left.data, left.size);
        memcpy(list->result + left.size, right.data, right.size);
    }
    if (size > r->longest || !find(r, list->result, size, &c))
        return bad_merge(r, list->n, "its result is not in the vocabulary");
    *merge = (sn_lexicon_merge){ .left = (uint32_t)a, .right = (uint32_t)b, .result = (uint32_t)c };
    return SN_OK;
}

static sn_status read_merge(const reader *r, const sn_json *item, merge_list *list) {
    sn_span left, right;
    SN_TRY(sides(r, item, list->n, &left, &right));
    if (left.size == 0 || right.size == 0) return bad_merge(r, list->n, "a side is empty");
    if (memchr(left.data + 1, ' ', left.size - 1))
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: merge %" PRIu32 ": a space inside its left side "
                       "is not supported", r->name, list->n);
    SN_TRY(find_ids(r, list, left, right, &list->merges[list->n]));
    bool spaced = memcmp(right.data, SN_SPACE_MARK, right.size < 3 ? right.size : 3) == 0 ||
                  has_inner_space(right.data, right.size);
    if (r->pipeline.splits && spaced)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: pre_tokenizer Metaspace splits, but merge %"
                       PRIu32 " goes across a split: not supported", r->name, list->n);
    list->texts[list->n] = item->kind == SN_JSON_ARRAY ? join(list, left, right)
                                                       : sn_json_span(item);
    list->n++;
    return SN_OK;
}

/* A line that merges.txt begins with, and that found its way into some files. */
static bool is_version_line(const sn_json *item) {
    return sn_json_is_text(item) && item->size >= 8 && memcmp(item->text, "#version", 8) == 0;
}

static sn_status declare_merges(const reader *r, merge_list *list) {
    uint32_t kept = 0;
    for (const sn_json *item = r->merges->first; item; item = item->next)
        if (!is_version_line(item)) SN_TRY(read_merge(r, item, list));
    SN_TRY(sn_lexicon_find_repeated(list->merges, list->n));
    for (uint32_t i = 0; i < list->n; i++)
        if (!list->merges[i].repeated) list->texts[kept++] = list->texts[i];
    return sn_build_texts(r->file->build, "tokenizer.ggml.merges", list->texts, kept);
}

static sn_status read_merges(const reader *r) {
    size_t n = r->merges->size; /* fits 32 bits: JSON texts are limited to fewer values */
    merge_list list = { .merges = sn_alloc_array(n, sizeof(sn_lexicon_merge)) };
    if (list.merges) list.texts = sn_alloc_array(n, sizeof(sn_span));
    if (list.texts) list.joined = sn_alloc(r->file->size);
    if (list.joined) list.result = sn_alloc(r->longest);
    sn_status status = list.result ? declare_merges(r, &list) : SN_E_NOMEM;
    sn_free(list.merges);
    sn_free(list.texts);
    sn_free(list.joined);
    sn_free(list.result);
    return status;
}

/* ---- the whole ---------------------------------------------------------------------- */

static sn_status declare_byte_level(const reader *r) {
    sn_build *build = r->file->build;
    r->file->model = "gpt2";
    /* Some names of tokenizer.ggml.pre stand for these two as well: say what holds here. */
    if (r->lexicon->add_bos < 0) r->lexicon->add_bos = 0;
    SN_TRY(sn_build_bool(build, "sunnynet.tokenizer.ignore_merges", r->ignore_merges));
    if (r->pipeline.add_space)
        SN_TRY(sn_build_bool(build, "tokenizer.ggml.add_space_prefix", true));
    return sn_build_text(build, "tokenizer.ggml.pre", r->pipeline.pre, strlen(r->pipeline.pre));
}

static sn_status declare_pieces(const reader *r) {
    sn_build *build = r->file->build;
    const char *prepend = r->pipeline.prepend;
    r->file->model = "llama";
    /* Where a GGUF of this kind does not say, a first token is added. */
    if (r->lexicon->add_bos < 0) r->lexicon->add_bos = 0;
    if (r->ignore_merges)
        SN_TRY(sn_build_bool(build, "sunnynet.tokenizer.ignore_merges", true));
    if (prepend)
        SN_TRY(sn_build_text(build, "sunnynet.tokenizer.prepend", prepend, strlen(prepend)));
    return sn_build_bool(build, "tokenizer.ggml.add_space_prefix", r->pipeline.add_space);
}

static sn_status declare(const reader *r) {
    sn_build *build = r->file->build;
    r->lexicon->bos = r->pipeline.front;
    r->lexicon->eos = r->pipeline.end;
    if (r->pipeline.has_template) {
        r->lexicon->add_bos = r->pipeline.front >= 0;
        r->lexicon->add_eos = r->pipeline.end >= 0;
    }
    SN_TRY(r->pipeline.byte_level ? declare_byte_level(r) : declare_pieces(r));
    if (r->pipeline.nfc)
        SN_TRY(sn_build_text(build, "sunnynet.tokenizer.normalizer", "nfc", 3));
    return read_merges(r);
}

sn_status sn_tokenizer_read_json(sn_tokenizer_file *file) {
    const sn_json *root = sn_json_root(file->document);
    const sn_json *model = sn_json_get(root, "model");
    reader r = { .file = file, .name = file->path, .lexicon = &file->lexicon, .model = model,
                 .vocab = sn_json_get(model, "vocab"), .merges = sn_json_get(model, "merges"),
                 .added = sn_json_get(root, "added_tokens") };
    SN_TRY(read_options(&r));
    SN_TRY(sn_pipeline_read(root, r.name, &r.pipeline));
    SN_TRY(read_vocabulary(&r));
    SN_TRY(check_unknown(&r));
    SN_TRY(check_spaces(&r));
    return declare(&r);
}
