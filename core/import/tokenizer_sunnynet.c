/*
 * tokenizer_sunnynet.c: the tokenizer.json of SunnyNet's own package: BPE over characters.
 *   {"vocab": {text: id}, "merges": [[left id, right id], ...], "merge_tokens": [text, ...]}
 * Merge k makes the id that vocab has under merge_tokens[k]; its text is that of both parts.
 */
#include "lexicon.h"

#include "../text/utf8.h"

#include <inttypes.h>
#include <string.h>

#define N_SPECIALS 4
#define TEXT_BYTES_MAX 256 /* of a merge: the pieces that are merged have at most 48 characters */

static const char *const specials[N_SPECIALS] = { "<pad>", "<unk>", "<bos>", "<eos>" };

typedef struct reader {
    const char *name;
    sn_lexicon *lexicon;
    const sn_json *vocab, *merges, *merge_tokens;
    sn_lexicon_merge *list;
    char *text; /* where the next merge's text goes */
} reader;

static sn_status bad_merge(const reader *r, uint32_t rank, const char *reason) {
    return sn_fail(SN_E_FORMAT, "%.300s: merge %" PRIu32 ": %s", r->name, rank, reason);
}

static sn_status check_lists(const reader *r) {
    if (!r->merges || r->merges->kind != SN_JSON_ARRAY || !r->merge_tokens ||
        r->merge_tokens->kind != SN_JSON_ARRAY)
        return sn_fail(SN_E_FORMAT, "%.300s: merges or merge_tokens is no list", r->name);
    if (r->merges->size != r->merge_tokens->size)
        return sn_fail(SN_E_FORMAT, "%.300s: %zu merges with %zu merge_tokens", r->name,
                       r->merges->size, r->merge_tokens->size);
    for (uint64_t id = 0; id < N_SPECIALS; id++) {
        uint64_t found;
        if (!sn_json_id(sn_json_get(r->vocab, specials[id]), &found) || found != id)
            return sn_fail(SN_E_FORMAT, "%.300s: vocab: '%s' does not have id %" PRIu64, r->name,
                           specials[id], id);
    }
    return SN_OK;
}

/* Exactly one character? The parser has seen that texts are valid UTF-8. */
static bool is_character(const char *text, size_t size) {
    sn_utf8 utf8 = { .n = 0 };
    size_t characters = 0;
    for (size_t i = 0; i < size; i++)
        characters += sn_utf8_push(&utf8, (uint8_t)text[i]) == SN_UTF8_CHARACTER;
    return characters == 1;
}

/* The specials and characters; merges have names of their own, which are not their texts. */
static sn_status fill(const reader *r) {
    size_t n = 0;
    for (const sn_json *entry = r->vocab->first; entry; entry = entry->next) {
        uint64_t id = 0;
        sn_span text = { .data = entry->key, .size = entry->key_size };
        if (!sn_json_id(entry, &id)) return SN_E_FORMAT; /* sn_json_highest_id() has checked */
        bool special = id < N_SPECIALS, character = is_character(text.data, text.size);
        n += !special && !character;
        if (special || character)
            SN_TRY(sn_lexicon_put(r->lexicon, id, text,
                                  special ? SN_TYPE_CONTROL : SN_TYPE_NORMAL));
    }
    if (n == r->merge_tokens->size) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: vocab: %zu texts of several characters, but %zu merges",
                   r->name, n, r->merge_tokens->size);
}

/* The text of a part of merge `rank`: a character or an earlier merge. */
static sn_status part_of(const reader *r, const sn_json *value, uint32_t rank, uint32_t *id,
                         sn_span *text) {
    uint64_t wide = 0;
    if (!sn_json_id(value, &wide) || wide >= r->lexicon->n ||
        r->lexicon->types[wide] == SN_TYPE_NONE)
        return bad_merge(r, rank, "a part is no character and no earlier merge");
    if (wide < N_SPECIALS) return bad_merge(r, rank, "a part is a special token");
    *id = (uint32_t)wide;
    *text = r->lexicon->tokens[wide];
    return SN_OK;
}

static sn_status read_merge(reader *r, const sn_json *pair, const sn_json *made, uint32_t rank) {
    sn_lexicon_merge *merge = &r->list[rank];
    sn_span left, right;
    uint64_t id = 0;
    if (pair->kind != SN_JSON_ARRAY || pair->size != 2)
        return bad_merge(r, rank, "not a pair of ids");
    SN_TRY(part_of(r, pair->first, rank, &merge->left, &left));
    SN_TRY(part_of(r, pair->first->next, rank, &merge->right, &right));
    if (!sn_json_is_text(made) ||
        !sn_json_id(sn_json_get_sized(r->vocab, made->text, made->size), &id))
        return bad_merge(r, rank, "its token is not in vocab");
    size_t size = left.size + right.size;
    if (size > TEXT_BYTES_MAX) return bad_merge(r, rank, "a text of more than 256 bytes");
    char *text = r->text;
    memcpy(text, left.data, left.size);
    memcpy(text + left.size, right.data, right.size);
    r->text += size;
    merge->result = (uint32_t)id;
    return sn_lexicon_put(r->lexicon, id, (sn_span){ .data = text, .size = size },
                          SN_TYPE_NORMAL);
}

static sn_status declare_merges(const reader *r, uint32_t n, uint32_t *triples, sn_build *build) {
    size_t at = 0;
    SN_TRY(sn_lexicon_find_repeated(r->list, n));
    for (uint32_t i = 0; i < n; i++) {
        if (r->list[i].repeated) continue;
        triples[at++] = r->list[i].left;
        triples[at++] = r->list[i].right;
        triples[at++] = r->list[i].result;
    }
    return sn_build_u32s(build, "sunnynet.tokenizer.merges", triples, at);
}

static sn_status read_merges(reader *r, sn_tokenizer_file *file) {
    uint32_t n = (uint32_t)r->merges->size, rank = 0; /* JSON texts have fewer values */
    uint32_t *triples = sn_alloc_array((size_t)n, 3 * sizeof *triples);
    r->list = sn_alloc_array(n, sizeof *r->list);
    file->texts = sn_alloc_array(n, TEXT_BYTES_MAX);
    sn_status status = triples && r->list && file->texts ? SN_OK : SN_E_NOMEM;
    r->text = file->texts;
    const sn_json *made = r->merge_tokens->first;
    for (const sn_json *pair = r->merges->first; status == SN_OK && pair;
         pair = pair->next, made = made->next)
        status = read_merge(r, pair, made, rank++);
    if (status == SN_OK) status = declare_merges(r, n, triples, file->build);
    sn_free(triples);
    sn_free(r->list);
    return status;
}

sn_status sn_tokenizer_read_sunnynet(sn_tokenizer_file *file) {
    const sn_json *root = sn_json_root(file->document);
    sn_lexicon *lexicon = &file->lexicon;
    reader r = { .name = file->path, .lexicon = lexicon, .vocab = sn_json_get(root, "vocab"),
                 .merges = sn_json_get(root, "merges"),
                 .merge_tokens = sn_json_get(root, "merge_tokens") };
    uint64_t highest = 0;
    SN_TRY(sn_json_highest_id(r.name, r.vocab, &highest));
    SN_TRY(check_lists(&r));
    SN_TRY(sn_lexicon_new(r.name, highest, r.vocab->size, file->n_vocab, lexicon));
    SN_TRY(fill(&r));
    SN_TRY(read_merges(&r, file));
    lexicon->pad = 0;
    lexicon->unknown = 1;
    lexicon->bos = 2;
    lexicon->eos = 3;
    file->model = "sunnynet";
    return SN_OK;
}
