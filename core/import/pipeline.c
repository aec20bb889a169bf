#include "pipeline.h"

#include <string.h>

#define STEPS_MAX 8

/* A part such as "normalizer" as a flat list of steps: Sequences are taken apart. */
typedef struct part {
    const char *file, *title;
    const sn_json *steps[STEPS_MAX];
    size_t n;
} part;

static sn_status collect(part *all, const sn_json *value, const char *member) {
    const sn_json *type = sn_json_get(value, "type");
    if (sn_json_is_null(value)) return SN_OK;
    if (!sn_json_is_text(type))
        return sn_fail(SN_E_FORMAT, "%.300s: %s: a step is no object with a type", all->file,
                       all->title);
    if (sn_json_is(type, "Sequence")) {
        const sn_json *list = sn_json_get(value, member);
        if (!list || list->kind != SN_JSON_ARRAY)
            return sn_fail(SN_E_FORMAT, "%.300s: %s: a Sequence without a list of %s",
                           all->file, all->title, member);
        for (const sn_json *step = list->first; step; step = step->next)
            SN_TRY(collect(all, step, member));
        return SN_OK;
    }
    if (all->n == STEPS_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s: more than %d steps", all->file, all->title,
                       STEPS_MAX);
    all->steps[all->n++] = value;
    return SN_OK;
}

static const char *type_of(const sn_json *step) {
    return sn_json_get(step, "type")->text; /* collect() has seen that it is there */
}

static bool is_step(const part *all, size_t index, const char *type) {
    return index < all->n && sn_json_is(sn_json_get(all->steps[index], "type"), type);
}

static sn_status refuse(const part *all, size_t index, const char *reason) {
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s '%.60s' %s", all->file, all->title,
                   type_of(all->steps[index]), reason);
}

/* A flag of a step. `fallback` is its value where the file does not say; -1: it must. */
static sn_status get_flag(const part *all, size_t index, const char *key, int fallback,
                          bool *flag) {
    const sn_json *value = sn_json_get(all->steps[index], key);
    if (!value && fallback >= 0) {
        *flag = fallback != 0;
        return SN_OK;
    }
    if (!value || (value->kind != SN_JSON_TRUE && value->kind != SN_JSON_FALSE))
        return sn_fail(SN_E_FORMAT, "%.300s: %s '%.60s': %s is neither true nor false", all->file,
                       all->title, type_of(all->steps[index]), key);
    *flag = value->kind == SN_JSON_TRUE;
    return SN_OK;
}

static bool is_integer(const sn_json *step, const char *key, double wanted) {
    const sn_json *value = sn_json_get(step, key);
    return value && value->kind == SN_JSON_NUMBER && value->number == wanted;
}

static bool replaces(const sn_json *step, const char *from, const char *to) {
    return sn_json_is(sn_json_get(sn_json_get(step, "pattern"), "String"), from) &&
           sn_json_is(sn_json_get(step, "content"), to);
}

/* ---- normalizer --------------------------------------------------------------------- */

typedef struct normal_form {
    bool nfc, prepends, replaces; /* a space in front; spaces by U+2581 */
} normal_form;

static sn_status read_normalizer(const sn_json *root, const char *file, normal_form *form) {
    part all = { .file = file, .title = "normalizer" };
    *form = (normal_form){ .nfc = false };
    SN_TRY(collect(&all, sn_json_get(root, "normalizer"), "normalizers"));
    for (size_t i = 0; i < all.n; i++) {
        const sn_json *step = all.steps[i];
        if (is_step(&all, i, "NFC")) {
            form->nfc = true;
        } else if (is_step(&all, i, "Prepend")) {
            if (!sn_json_is(sn_json_get(step, "prepend"), SN_SPACE_MARK) || form->prepends)
                return refuse(&all, i, "puts something else than one U+2581 in front");
            form->prepends = true;
        } else if (is_step(&all, i, "Replace")) {
            if (!replaces(step, " ", SN_SPACE_MARK))
                return refuse(&all, i, "replaces something else than spaces by U+2581");
            form->replaces = true;
        } else {
            return refuse(&all, i, "is not supported (NFC, and Prepend and Replace for spaces, "
                          "are)");
        }
    }
    return SN_OK;
}

/* ---- pre_tokenizer ------------------------------------------------------------------ */

/* The published ways to split a text, by the names that llama.cpp gave them. */
static const struct {
    const char *pre, *regex;
} splits[] = {
    { "gpt-2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|"
               "\\s+" },
    { "gpt-2", "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|"
               "\\s+" },
    { "llama-bpe", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                   "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" },
    { "qwen2", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
               "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" },
};

/* The patterns leave nothing of a text unmatched, so that to isolate what matches is the same as
 * to remove what does not. */
static sn_status read_split(const part *all, size_t index, const char **pre) {
    const sn_json *step = all->steps[index], *behavior = sn_json_get(step, "behavior");
    const sn_json *regex = sn_json_get(sn_json_get(step, "pattern"), "Regex");
    bool invert = false;
    SN_TRY(get_flag(all, index, "invert", 0, &invert));
    if (!sn_json_is(behavior, invert ? "Removed" : "Isolated"))
        return refuse(all, index, "has a behavior that is not supported (Isolated is)");
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (sn_json_is(regex, splits[i].regex)) {
            *pre = splits[i].pre;
            return SN_OK;
        }
    return refuse(all, index, "has a pattern that is not supported (those of GPT-2, Llama 3 and "
                  "Qwen 2 are)");
}

/* ByteLevel, alone or behind a step that splits. */
static sn_status read_byte_level(const part *all, sn_pipeline *pipeline) {
    size_t last = all->n - 1;
    bool use_regex = true, splits_first = last > 0;
    SN_TRY(get_flag(all, last, "add_prefix_space", -1, &pipeline->add_space));
    SN_TRY(get_flag(all, last, "use_regex", 1, &use_regex));
    pipeline->byte_level = true;
    if (splits_first && pipeline->add_space)
        return refuse(all, last, "puts a space in front of every piece");
    if (!splits_first) {
        pipeline->pre = "gpt-2";
        return use_regex ? SN_OK : refuse(all, last, "without use_regex does not split the text");
    }
    if (is_step(all, 0, "Split")) {
        SN_TRY(read_split(all, 0, &pipeline->pre));
        return use_regex ? refuse(all, last, "with use_regex splits a second time") : SN_OK;
    }
    bool individual = false;
    SN_TRY(get_flag(all, 0, "individual_digits", -1, &individual));
    pipeline->pre = "starcoder";
    if (!individual) return refuse(all, 0, "without individual_digits is not supported");
    return use_regex ? SN_OK : refuse(all, last, "without use_regex does not split the text");
}

/* Metaspace, whose files come in two spellings: prepend_scheme, or add_prefix_space (then a
 * prepend_scheme, if there is one, must not contradict). */
static sn_status read_metaspace(const part *all, size_t index, sn_pipeline *pipeline) {
    const sn_json *step = all->steps[index], *scheme = sn_json_get(step, "prepend_scheme");
    bool add_space = true;
    SN_TRY(get_flag(all, index, "add_prefix_space", 1, &add_space));
    SN_TRY(get_flag(all, index, "split", 1, &pipeline->splits));
    if (!sn_json_is(sn_json_get(step, "replacement"), SN_SPACE_MARK))
        return refuse(all, index, "replaces spaces by something else than U+2581");
    const char *prepend = add_space ? "always" : NULL;
    if (scheme && sn_json_is(scheme, "never"))
        prepend = NULL;
    else if (scheme && add_space && sn_json_is(scheme, "first"))
        prepend = "first";
    else if (scheme && !(add_space && sn_json_is(scheme, "always")))
        return refuse(all, index, "has an unknown or contradictory prepend_scheme");
    pipeline->prepend = prepend;
    pipeline->add_space = prepend != NULL;
    return SN_OK;
}

static sn_status read_pre_tokenizer(const sn_json *root, const char *file, const normal_form *form,
                                    sn_pipeline *pipeline) {
    part all = { .file = file, .title = "pre_tokenizer" };
    SN_TRY(collect(&all, sn_json_get(root, "pre_tokenizer"), "pretokenizers"));
    bool splits_first = is_step(&all, 0, "Split") || is_step(&all, 0, "Digits");
    pipeline->nfc = form->nfc;
    if ((all.n == 1 && is_step(&all, 0, "ByteLevel")) ||
        (all.n == 2 && is_step(&all, 1, "ByteLevel") && splits_first)) {
        if (form->prepends || form->replaces)
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: normalizer Prepend or Replace is not "
                           "supported together with pre_tokenizer ByteLevel", file);
        return read_byte_level(&all, pipeline);
    }
    if (all.n == 1 && is_step(&all, 0, "Metaspace")) {
        if (form->prepends)
            return refuse(&all, 0, "is not supported together with normalizer Prepend");
        return read_metaspace(&all, 0, pipeline);
    }
    if (all.n) {
        size_t odd = splits_first && all.n > 1 ? 1 : 0;
        if (is_step(&all, odd, "ByteLevel") || is_step(&all, odd, "Metaspace") || splits_first)
            return refuse(&all, odd, "is not supported in this place");
        return refuse(&all, odd, "is not supported (ByteLevel and Metaspace are)");
    }
    if (!form->replaces)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: pre_tokenizer is null and no normalizer "
                       "replaces spaces: this way to split a text is not supported", file);
    pipeline->add_space = form->prepends;
    return SN_OK;
}

/* ---- post_processor ----------------------------------------------------------------- */

/* The id that a template puts somewhere, if it is exactly one. */
static sn_status special_id(const part *all, size_t index, const sn_json *special, int64_t *id) {
    const sn_json *name = sn_json_get(special, "id");
    const sn_json *known = sn_json_get(all->steps[index], "special_tokens");
    const sn_json *ids = !sn_json_is_text(name) ? NULL
        : sn_json_get(sn_json_get_sized(known, name->text, name->size), "ids");
    uint64_t found = 0;
    if (!ids || ids->kind != SN_JSON_ARRAY || !sn_json_id(ids->first, &found))
        return sn_fail(SN_E_FORMAT, "%.300s: post_processor: a token of the template is not "
                       "among special_tokens", all->file);
    if (ids->size != 1 || *id >= 0)
        return refuse(all, index, "puts more than one token at one end of a text");
    *id = (int64_t)found;
    return SN_OK;
}

static sn_status read_template(const part *all, size_t index, sn_pipeline *pipeline) {
    const sn_json *single = sn_json_get(all->steps[index], "single");
    bool seen = false; /* the text itself */
    if (pipeline->has_template) return refuse(all, index, "occurs twice");
    if (!single || single->kind != SN_JSON_ARRAY)
        return sn_fail(SN_E_FORMAT, "%.300s: post_processor: single is no list", all->file);
    for (const sn_json *item = single->first; item; item = item->next) {
        const sn_json *special = sn_json_get(item, "SpecialToken");
        const sn_json *sequence = sn_json_get(sn_json_get(item, "Sequence"), "id");
        if (special) {
            SN_TRY(special_id(all, index, special, seen ? &pipeline->end : &pipeline->front));
            continue;
        }
        if (seen || !sn_json_is(sequence, "A"))
            return refuse(all, index, "has a form that is not supported (a token, the text, a "
                          "token is)");
        seen = true;
    }
    pipeline->has_template = true;
    return seen ? SN_OK : refuse(all, index, "leaves out the text");
}

static sn_status read_post_processor(const sn_json *root, const char *file,
                                     sn_pipeline *pipeline) {
    part all = { .file = file, .title = "post_processor" };
    SN_TRY(collect(&all, sn_json_get(root, "post_processor"), "processors"));
    for (size_t i = 0; i < all.n; i++) {
        if (is_step(&all, i, "TemplateProcessing"))
            SN_TRY(read_template(&all, i, pipeline));
        else if (!is_step(&all, i, "ByteLevel")) /* it only moves offsets */
            return refuse(&all, i, "is not supported (ByteLevel and TemplateProcessing are)");
    }
    return SN_OK;
}

/* ---- decoder ------------------------------------------------------------------------ */

/* Replace, ByteFallback, Fuse, Strip, of which the last three may be left out. */
static sn_status read_steps_back(const part *all, sn_pipeline *pipeline) {
    size_t i = 1;
    if (!replaces(all->steps[0], SN_SPACE_MARK, " "))
        return refuse(all, 0, "replaces something else than U+2581 by spaces");
    pipeline->decodes_bytes = is_step(all, i, "ByteFallback");
    if (pipeline->decodes_bytes) i++;
    bool fuses = is_step(all, i, "Fuse");
    if (fuses) i++;
    bool strips = fuses && is_step(all, i, "Strip");
    if (strips) {
        const sn_json *step = all->steps[i];
        if (!sn_json_is(sn_json_get(step, "content"), " ") || !is_integer(step, "start", 1) ||
            !is_integer(step, "stop", 0))
            return refuse(all, i, "takes away something else than one space in front");
        i++;
    }
    if (i < all->n) return refuse(all, i, "is not supported in this place");
    if (strips != pipeline->add_space)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: a space is %s in front of a text, but the "
                       "decoder %s one away", all->file, strips ? "not put" : "put",
                       strips ? "takes" : "does not take");
    return SN_OK;
}

static sn_status read_metaspace_back(const part *all, sn_pipeline *pipeline) {
    sn_pipeline back = { .splits = false };
    SN_TRY(read_metaspace(all, 0, &back));
    if (back.add_space != pipeline->add_space)
        return refuse(all, 0, "does not belong to what puts a space in front of a text");
    pipeline->strips_all = back.add_space;
    return SN_OK;
}

static sn_status read_decoder(const sn_json *root, const char *file, sn_pipeline *pipeline) {
    part all = { .file = file, .title = "decoder" };
    SN_TRY(collect(&all, sn_json_get(root, "decoder"), "decoders"));
    if (all.n == 0)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: there is no decoder", file);
    if (pipeline->byte_level) {
        if (!is_step(&all, 0, "ByteLevel"))
            return refuse(&all, 0, "does not belong to pre_tokenizer ByteLevel");
        return all.n == 1 ? SN_OK : refuse(&all, 1, "is not supported in this place");
    }
    if (is_step(&all, 0, "Replace")) return read_steps_back(&all, pipeline);
    if (!is_step(&all, 0, "Metaspace"))
        return refuse(&all, 0, "does not belong to a tokenizer that writes spaces as U+2581");
    return all.n == 1 ? read_metaspace_back(&all, pipeline)
                      : refuse(&all, 1, "is not supported in this place");
}

sn_status sn_pipeline_read(const sn_json *root, const char *name, sn_pipeline *pipeline) {
    normal_form form;
    *pipeline = (sn_pipeline){ .front = -1, .end = -1 };
    SN_TRY(read_normalizer(root, name, &form));
    SN_TRY(read_pre_tokenizer(root, name, &form, pipeline));
    SN_TRY(read_post_processor(root, name, pipeline));
    return read_decoder(root, name, pipeline);
}
