#include "lexicon.h"

#include "../formats/index_sort.h"
#include "../hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GAPS_MAX 65536     /* ids without a token where no model says how many there are */
#define BRACKETS_MAX 4
#define PADDING_BYTES 20   /* "[[[[PAD16777215]" and a NUL */

sn_status sn_lexicon_new(const char *name, uint64_t highest, uint64_t entries, uint64_t n_vocab,
                         sn_lexicon *lexicon) {
    *lexicon = (sn_lexicon){ .name = name, .bos = -1, .eos = -1, .eot = -1, .unknown = -1,
                             .pad = -1, .add_bos = -1, .add_eos = -1 };
    if (n_vocab && highest >= n_vocab)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: a token has id %" PRIu64 ", but the model has %"
                       PRIu64 " embedding rows", name, highest, n_vocab);
    if (!n_vocab && highest >= entries && highest - entries >= GAPS_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " tokens with ids up to %" PRIu64
                       ": there are too many gaps", name, entries, highest);
    uint64_t n = n_vocab ? n_vocab : highest + 1;
    if (n > SN_LEXICON_IDS_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %" PRIu64 " ids, at most %" PRIu64
                       " are supported", name, n, SN_LEXICON_IDS_MAX);
    lexicon->n = (uint32_t)n;
    lexicon->tokens = sn_alloc_array(lexicon->n, sizeof *lexicon->tokens);
    lexicon->types = sn_alloc_array(lexicon->n, sizeof *lexicon->types);
    return lexicon->tokens && lexicon->types ? SN_OK : SN_E_NOMEM;
}

void sn_lexicon_free(sn_lexicon *lexicon) {
    sn_free(lexicon->tokens);
    sn_free(lexicon->types);
    sn_free(lexicon->hashes);
    sn_free(lexicon->by_hash);
    *lexicon = (sn_lexicon){ .n = 0 };
}

/* As much of a text as an error line has room for. */
static int shown(sn_span text) {
    return text.size < 60 ? (int)text.size : 60;
}

sn_status sn_lexicon_put(sn_lexicon *lexicon, uint64_t id, sn_span text, int32_t type) {
    if (text.size == 0)
        return sn_fail(SN_E_FORMAT, "%.300s: token %" PRIu64 " has no text", lexicon->name, id);
    if (lexicon->types[id] != SN_TYPE_NONE)
        return sn_fail(SN_E_FORMAT, "%.300s: '%.*s' and '%.*s' both have id %" PRIu64,
                       lexicon->name, shown(lexicon->tokens[id]), lexicon->tokens[id].data,
                       shown(text), text.data, id);
    lexicon->tokens[id] = text;
    lexicon->types[id] = type;
    return SN_OK;
}

/* ---- search ------------------------------------------------------------------------- */

static int compare_texts(sn_span a, sn_span b) {
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order ? order : a.size < b.size ? -1 : a.size > b.size;
}

static int compare_entries(const void *table, uint32_t a, uint32_t b) {
    const sn_lexicon *lexicon = table;
    uint64_t x = lexicon->hashes[a], y = lexicon->hashes[b];
    return x < y ? -1 : x > y ? 1 : compare_texts(lexicon->tokens[a], lexicon->tokens[b]);
}

static uint64_t hash_of(sn_span text) {
    return sn_hash(text.data, text.size, 0);
}

/* Sorted rather than hashed into a table: texts chosen to collide cost nothing. */
sn_status sn_lexicon_index(sn_lexicon *lexicon) {
    lexicon->hashes = sn_alloc_array(lexicon->n, sizeof *lexicon->hashes);
    lexicon->by_hash = sn_alloc_array(lexicon->n, sizeof *lexicon->by_hash);
    if (!lexicon->hashes || !lexicon->by_hash) return SN_E_NOMEM;
    for (uint32_t id = 0; id < lexicon->n; id++) {
        if (lexicon->types[id] == SN_TYPE_NONE) lexicon->tokens[id] = (sn_span){ .data = "" };
        lexicon->hashes[id] = hash_of(lexicon->tokens[id]);
    }
    sn_index_sort(lexicon->by_hash, lexicon->n, compare_entries, lexicon);
    for (uint32_t i = 1; i < lexicon->n; i++) {
        uint32_t a = lexicon->by_hash[i - 1], b = lexicon->by_hash[i];
        if (compare_entries(lexicon, a, b) == 0 && lexicon->tokens[a].size)
            return sn_fail(SN_E_FORMAT, "%.300s: '%.*s' is listed twice, as id %" PRIu32
                           " and as id %" PRIu32, lexicon->name, shown(lexicon->tokens[a]),
                           lexicon->tokens[a].data, a < b ? a : b, a < b ? b : a);
    }
    return SN_OK;
}

int64_t sn_lexicon_find(const sn_lexicon *lexicon, sn_span text) {
    if (!lexicon->by_hash || text.size == 0) return -1;
    uint64_t hash = hash_of(text);
    uint32_t low = 0, high = lexicon->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, id = lexicon->by_hash[middle];
        uint64_t other = lexicon->hashes[id];
        int order = hash < other ? -1 : hash > other ? 1
                                      : compare_texts(text, lexicon->tokens[id]);
        if (order == 0) return id;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* ---- keys --------------------------------------------------------------------------- */

/*
 * How many brackets the padding's texts begin with, so that none is the text of a token: one, as
 * llama.cpp writes it, unless there are tokens that begin with "[PAD" and a digit. 0: any number
 * up to BRACKETS_MAX is taken.
 */
static size_t padding_brackets(const sn_lexicon *lexicon) {
    bool taken[BRACKETS_MAX + 1] = { false };
    for (uint32_t id = 0; id < lexicon->n; id++) {
        sn_span text = lexicon->tokens[id];
        size_t n = 0;
        if (lexicon->types[id] == SN_TYPE_NONE) continue;
        while (n < text.size && text.data[n] == '[') n++;
        bool alike = text.size - n > 3 && memcmp(text.data + n, "PAD", 3) == 0 &&
                     text.data[n + 3] >= '0' && text.data[n + 3] <= '9';
        if (alike && n <= BRACKETS_MAX) taken[n] = true;
    }
    for (size_t n = 1; n <= BRACKETS_MAX; n++)
        if (!taken[n]) return n;
    return 0;
}

typedef struct padded {
    sn_span *tokens;
    int32_t *types;
    char *padding;
} padded;

static void padded_free(padded *list) {
    sn_free(list->tokens);
    sn_free(list->types);
    sn_free(list->padding);
}

/* Copies the lists with each id that nobody claimed as padding. */
static sn_status pad(const sn_lexicon *lexicon, padded *list) {
    size_t brackets = padding_brackets(lexicon), gaps = 0;
    for (uint32_t id = 0; id < lexicon->n; id++) gaps += lexicon->types[id] == SN_TYPE_NONE;
    if (gaps && !brackets)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: tokens such as '[PAD0]' leave no names for the "
                       "padding", lexicon->name);
    list->tokens = sn_alloc_array(lexicon->n, sizeof *list->tokens);
    list->types = sn_alloc_array(lexicon->n, sizeof *list->types);
    list->padding = sn_alloc_array(gaps, PADDING_BYTES);
    if (!list->tokens || !list->types || !list->padding) return SN_E_NOMEM;
    char *text = list->padding;
    for (uint32_t id = 0; id < lexicon->n; id++) {
        bool unused = lexicon->types[id] == SN_TYPE_NONE;
        list->tokens[id] = lexicon->tokens[id];
        list->types[id] = unused ? SN_TYPE_UNUSED : lexicon->types[id];
        if (!unused) continue;
        int written = snprintf(text, PADDING_BYTES, "%.*sPAD%" PRIu32 "]", (int)brackets, "[[[[",
                               id);
        list->tokens[id] = (sn_span){ .data = text, .size = (size_t)written };
        text += PADDING_BYTES;
    }
    return SN_OK;
}

/* `usual`: where the key is absent, readers take a usual id; so "none" has to be said. */
static sn_status declare_id(const sn_lexicon *lexicon, const char *key, bool usual, int64_t id,
                            sn_build *build) {
    if (id < 0) return usual ? sn_build_u32(build, key, UINT32_MAX) : SN_OK;
    if (id >= lexicon->n)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s would be %" PRId64 ", but there are %" PRIu32
                       " ids", lexicon->name, key, id, lexicon->n);
    return sn_build_u32(build, key, (uint32_t)id);
}

static sn_status declare_flag(const char *key, int flag, sn_build *build) {
    return flag < 0 ? SN_OK : sn_build_bool(build, key, flag != 0);
}

static sn_status declare_lists(const sn_lexicon *lexicon, sn_build *build) {
    padded list = { .tokens = NULL };
    sn_status status = pad(lexicon, &list);
    if (status == SN_OK)
        status = sn_build_texts(build, "tokenizer.ggml.tokens", list.tokens, lexicon->n);
    if (status == SN_OK)
        status = sn_build_i32s(build, "tokenizer.ggml.token_type", list.types, lexicon->n);
    padded_free(&list);
    return status;
}

sn_status sn_lexicon_declare(const sn_lexicon *lexicon, const char *model, sn_build *build) {
    bool usual = strcmp(model, "llama") == 0;
    SN_TRY(declare_lists(lexicon, build));
    SN_TRY(declare_id(lexicon, "tokenizer.ggml.bos_token_id", usual, lexicon->bos, build));
    SN_TRY(declare_id(lexicon, "tokenizer.ggml.eos_token_id", usual, lexicon->eos, build));
    SN_TRY(declare_id(lexicon, "tokenizer.ggml.eot_token_id", false, lexicon->eot, build));
    SN_TRY(declare_id(lexicon, "tokenizer.ggml.unknown_token_id", usual, lexicon->unknown, build));
    SN_TRY(declare_id(lexicon, "tokenizer.ggml.padding_token_id", false, lexicon->pad, build));
    SN_TRY(declare_flag("tokenizer.ggml.add_bos_token", lexicon->add_bos, build));
    SN_TRY(declare_flag("tokenizer.ggml.add_eos_token", lexicon->add_eos, build));
    /* Last: without it there is no tokenizer, whatever was declared before a refusal. */
    return sn_build_text(build, "tokenizer.ggml.model", model, strlen(model));
}

bool sn_is_byte_token(sn_span text) {
    static const char digits[] = "0123456789ABCDEF";
    return text.size == 6 && memcmp(text.data, "<0x", 3) == 0 &&
           memchr(digits, text.data[3], 16) && memchr(digits, text.data[4], 16) &&
           text.data[5] == '>';
}

/* ---- merges ------------------------------------------------------------------------- */

static int compare_merges(const void *table, uint32_t a, uint32_t b) {
    const sn_lexicon_merge *merges = table, *x = &merges[a], *y = &merges[b];
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    if (x->right != y->right) return x->right < y->right ? -1 : 1;
    return a < b ? -1 : a > b;
}

sn_status sn_lexicon_find_repeated(sn_lexicon_merge *merges, uint32_t n) {
    uint32_t *order = sn_alloc_array(n, sizeof *order);
    if (!order) return SN_E_NOMEM;
    sn_index_sort(order, n, compare_merges, merges);
    for (uint32_t i = 1; i < n; i++) {
        sn_lexicon_merge *merge = &merges[order[i - 1]];
        const sn_lexicon_merge *next = &merges[order[i]];
        merge->repeated = merge->left == next->left && merge->right == next->right;
    }
    sn_free(order);
    return SN_OK;
}

/* ---- JSON --------------------------------------------------------------------------- */

bool sn_json_id(const sn_json *value, uint64_t *id) {
    if (!value || value->kind != SN_JSON_NUMBER || !value->is_integer || value->number < 0 ||
        value->number >= (double)SN_LEXICON_IDS_MAX)
        return false;
    *id = (uint64_t)value->number;
    return true;
}

sn_status sn_json_highest_id(const char *name, const sn_json *vocab, uint64_t *highest) {
    if (!vocab || vocab->kind != SN_JSON_OBJECT)
        return sn_fail(SN_E_FORMAT, "%.300s: vocab is no object of texts and ids", name);
    if (!vocab->first) return sn_fail(SN_E_FORMAT, "%.300s: vocab is empty", name);
    *highest = 0;
    for (const sn_json *entry = vocab->first; entry; entry = entry->next) {
        uint64_t id = 0;
        if (!sn_json_id(entry, &id))
            return sn_fail(SN_E_FORMAT, "%.300s: vocab: '%.60s' has no id from 0 to 16777215",
                           name, entry->key);
        if (id > *highest) *highest = id;
    }
    return SN_OK;
}
