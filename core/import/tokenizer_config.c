#include "tokenizer_config.h"

#include "../platform.h"

#include <inttypes.h>
#include <string.h>

#define CONFIG_BYTES_MAX ((size_t)64 << 20) /* some list every added token */
#define STOPS_MAX 16

const char *const sn_tokenizer_configs[SN_TOKENIZER_CONFIGS] = {
    "tokenizer_config.json", "special_tokens_map.json", "generation_config.json",
    "chat_template.jinja"
};

sn_status sn_tokenizer_config_read(sn_tokenizer_config *config, size_t which) {
    sn_file opened;
    char *bytes = NULL;
    size_t size = 0;
    SN_TRY(sn_platform_open_file(config->paths[which], &opened));
    sn_status status = sn_file_read_all(&opened, CONFIG_BYTES_MAX, &bytes, &size);
    sn_file_close(&opened);
    SN_TRY(status);
    if (which == SN_CONFIG_TEMPLATE) {
        config->chat_template = bytes;
        config->template_bytes = size;
        return SN_OK;
    }
    status = sn_json_parse(bytes, size, config->paths[which], true, &config->documents[which]);
    sn_free(bytes);
    return status;
}

void sn_tokenizer_config_free(sn_tokenizer_config *config) {
    for (size_t i = 0; i < SN_TOKENIZER_CONFIGS; i++) {
        sn_json_free(config->documents[i]);
        sn_free(config->paths[i]);
    }
    sn_free(config->chat_template);
}

/* A member of one of the files; NULL if there is no such file, or the member is null. */
static const sn_json *get(const sn_tokenizer_config *config, size_t which, const char *key) {
    const sn_json_document *document = config->documents[which];
    const sn_json *value = document ? sn_json_get(sn_json_root(document), key) : NULL;
    return sn_json_is_null(value) ? NULL : value;
}

/* ---- roles that are given as texts -------------------------------------------------- */

/* The id of "bos_token" and the like, a text or an added token; -1 if the files do not say, or if
 * there is no such token: *named becomes the text then, too. */
static sn_status named_id(const sn_tokenizer_config *config, const sn_lexicon *lexicon,
                          const char *key, const char **named, int64_t *id) {
    *id = -1;
    *named = NULL;
    for (size_t which = SN_CONFIG_TOKENIZER; which <= SN_CONFIG_SPECIAL; which++) {
        const sn_json *value = get(config, which, key);
        if (value && value->kind == SN_JSON_OBJECT) value = sn_json_get(value, "content");
        if (!value && !get(config, which, key)) continue;
        if (!sn_json_is_text(value))
            return sn_fail(SN_E_FORMAT, "%.300s: %s is neither a text nor an added token",
                           config->paths[which], key);
        *named = value->text;
        *id = sn_lexicon_find(lexicon, sn_json_span(value));
        return SN_OK;
    }
    return SN_OK;
}

static sn_status required_id(const sn_tokenizer_config *config, const sn_lexicon *lexicon,
                             const char *key, int64_t *id) {
    const char *named;
    SN_TRY(named_id(config, lexicon, key, &named, id));
    if (!named || !*named || *id >= 0) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s is '%.60s', which the tokenizer does not have",
                   lexicon->name, key, named);
}

/* ---- roles that are given as numbers ------------------------------------------------ */

/* A number of generation_config.json, else of config.json; NULL if neither has it. */
static const sn_json *numbers(const sn_tokenizer_config *config, const char *key) {
    const sn_json *value = get(config, SN_CONFIG_GENERATION, key);
    if (!value) value = sn_json_get(config->config, key);
    return sn_json_is_null(value) ? NULL : value;
}

static bool in_use(const sn_lexicon *lexicon, int64_t id) {
    return id >= 0 && id < lexicon->n && lexicon->types[id] != SN_TYPE_NONE;
}

/* An entry that is no ordinary text. Configs keep the defaults of their architecture where nobody
 * thought of them: an id of an ordinary piece is such a leftover. */
static bool is_special(const sn_lexicon *lexicon, int64_t id) {
    return in_use(lexicon, id) && lexicon->types[id] != SN_TYPE_NORMAL &&
           lexicon->types[id] != SN_TYPE_BYTE;
}

/* The ids under `key`, a number or a list; -1 stands for none. */
static sn_status read_ids(const sn_tokenizer_config *config, const sn_lexicon *lexicon,
                          const char *key, int64_t ids[STOPS_MAX], size_t *n) {
    const sn_json *value = numbers(config, key);
    bool list = value && value->kind == SN_JSON_ARRAY;
    *n = 0;
    if (list) value = value->first;
    for (; value; value = list ? value->next : NULL) {
        if (value->kind != SN_JSON_NUMBER || !value->is_integer)
            return sn_fail(SN_E_FORMAT, "%.300s: %s of the configuration beside it is no integer",
                           lexicon->name, key);
        if (*n == STOPS_MAX)
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s of the configuration beside it: more "
                           "than %d ids", lexicon->name, key, STOPS_MAX);
        if (value->number >= 0) ids[(*n)++] = (int64_t)value->number;
    }
    return SN_OK;
}

static sn_status numbered_id(const sn_tokenizer_config *config, const sn_lexicon *lexicon,
                             const char *key, int64_t *id) {
    int64_t ids[STOPS_MAX];
    size_t n;
    SN_TRY(read_ids(config, lexicon, key, ids, &n));
    if (n == 1 && is_special(lexicon, ids[0])) *id = ids[0];
    return SN_OK;
}

/* ---- what ends a text --------------------------------------------------------------- */

/*
 * The list of the configurations is what generation stops at: its first id ends a text. Another
 * one, first of all the one that the tokenizer names, ends a turn. Where the tokenizer names one,
 * the list's ordinary pieces are left out.
 */
static sn_status find_stops(const sn_tokenizer_config *config, sn_lexicon *lexicon) {
    int64_t ids[STOPS_MAX], named = -1, first = -1, second = -1;
    size_t n;
    SN_TRY(required_id(config, lexicon, "eos_token", &named));
    if (named < 0) named = lexicon->eos;
    SN_TRY(read_ids(config, lexicon, "eos_token_id", ids, &n));
    for (size_t i = 0; i < n; i++) {
        if (named >= 0 && !is_special(lexicon, ids[i])) continue;
        if (!in_use(lexicon, ids[i]))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: eos_token_id of the configuration beside it "
                           "is %" PRId64 ", which the tokenizer does not have", lexicon->name,
                           ids[i]);
        if (first < 0)
            first = ids[i];
        else if (second < 0 && ids[i] != first)
            second = ids[i];
    }
    lexicon->eos = first >= 0 ? first : named;
    lexicon->eot = named >= 0 && named != lexicon->eos ? named : second;
    return SN_OK;
}

/* ---- what is put around a text ------------------------------------------------------ */

static sn_status read_flag(const sn_tokenizer_config *config, const char *key, int *flag) {
    const sn_json *value = get(config, SN_CONFIG_TOKENIZER, key);
    if (!value) return SN_OK;
    if (value->kind != SN_JSON_TRUE && value->kind != SN_JSON_FALSE)
        return sn_fail(SN_E_FORMAT, "%.300s: %s is neither true nor false",
                       config->paths[SN_CONFIG_TOKENIZER], key);
    *flag = value->kind == SN_JSON_TRUE;
    return SN_OK;
}

/* A token that tokenizer.json puts at an end (`put`: its id) must be the one with the role. */
static sn_status check_end(const sn_lexicon *lexicon, const char *role, int adds, int64_t put,
                           int64_t id) {
    if (adds != 1) return SN_OK;
    if (id < 0)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s is to be added to a text, but there is none",
                       lexicon->name, role);
    if (put >= 0 && put != id)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: token %" PRId64 " is put at one end of a text, "
                       "but %s is token %" PRId64, lexicon->name, put, role, id);
    return SN_OK;
}

static sn_status find_roles(const sn_tokenizer_config *config, sn_lexicon *lexicon) {
    int64_t front = lexicon->add_bos == 1 ? lexicon->bos : -1, bos, pad, unknown;
    int64_t end = lexicon->add_eos == 1 ? lexicon->eos : -1;
    const char *named;
    SN_TRY(read_flag(config, "add_bos_token", &lexicon->add_bos));
    SN_TRY(read_flag(config, "add_eos_token", &lexicon->add_eos));
    SN_TRY(required_id(config, lexicon, "bos_token", &bos));
    if (bos >= 0) lexicon->bos = bos;
    if (lexicon->bos < 0) SN_TRY(numbered_id(config, lexicon, "bos_token_id", &lexicon->bos));
    SN_TRY(find_stops(config, lexicon));
    /* Where these two do not exist, nothing is lost: no text is encoded or decoded otherwise. */
    SN_TRY(named_id(config, lexicon, "pad_token", &named, &pad));
    if (pad >= 0) lexicon->pad = pad;
    if (lexicon->pad < 0) SN_TRY(numbered_id(config, lexicon, "pad_token_id", &lexicon->pad));
    SN_TRY(named_id(config, lexicon, "unk_token", &named, &unknown));
    if (lexicon->unknown < 0) lexicon->unknown = unknown;
    SN_TRY(check_end(lexicon, "the bos token", lexicon->add_bos, front, lexicon->bos));
    return check_end(lexicon, "the eos token", lexicon->add_eos, end, lexicon->eos);
}

/* ---- other things ------------------------------------------------------------------- */

/* tokenizer.model knows nothing of tokens that were added later. */
static sn_status check_added(const sn_tokenizer_config *config, const sn_lexicon *lexicon) {
    const sn_json *added = get(config, SN_CONFIG_TOKENIZER, "added_tokens_decoder");
    for (const sn_json *token = added && added->kind == SN_JSON_OBJECT ? added->first : NULL;
         token; token = token->next) {
        int64_t id = 0;
        for (size_t i = 0; i < token->key_size && id <= INT32_MAX; i++)
            id = token->key[i] >= '0' && token->key[i] <= '9' ? id * 10 + (token->key[i] - '0')
                                                              : (int64_t)INT32_MAX + 1;
        if (!in_use(lexicon, id))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: token %.20s was added to the tokenizer "
                           "later (added_tokens_decoder): a tokenizer.json is needed",
                           lexicon->name, token->key);
    }
    return SN_OK;
}

/* Of a list of {"name", "template"} the one that is called default. */
static const sn_json *default_of(const sn_json *list) {
    for (const sn_json *item = list->first; item; item = item->next)
        if (sn_json_is(sn_json_get(item, "name"), "default"))
            return sn_json_get(item, "template");
    return NULL;
}

static sn_status declare_template(const sn_tokenizer_config *config, sn_build *build) {
    static const char key[] = "tokenizer.chat_template";
    const sn_json *value = get(config, SN_CONFIG_TOKENIZER, "chat_template");
    if (config->chat_template)
        return sn_build_text(build, key, config->chat_template, config->template_bytes);
    if (value && value->kind == SN_JSON_ARRAY) value = default_of(value);
    if (!value) return SN_OK;
    if (!sn_json_is_text(value))
        return sn_fail(SN_E_FORMAT, "%.300s: chat_template is neither a text nor a list of "
                       "named texts", config->paths[SN_CONFIG_TOKENIZER]);
    return sn_build_text(build, key, value->text, value->size);
}

/* RWKV's and SunnyNet's vocabularies define the roles of their ids themselves. */
sn_status sn_tokenizer_config_apply(const sn_tokenizer_config *config, sn_tokenizer_file *file) {
    bool searchable = file->lexicon.by_hash != NULL;
    if (searchable) SN_TRY(find_roles(config, &file->lexicon));
    if (searchable && !file->document) SN_TRY(check_added(config, &file->lexicon));
    return declare_template(config, file->build);
}
