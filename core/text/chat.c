/*
 * chat.c: the chat formats that are known, and which one a model was trained with.
 *
 * Templates are programs (Jinja). They are not run: each family writes its turns with marks of its
 * own, which stand in the program's text. A template without the marks of a known family is
 * refused, and so is one with the marks of a family that writes its turns in another way.
 */
#include "../memory.h"

#include <inttypes.h>
#include <string.h>

/* Stand in the texts for the tokenizer's begin-of-text and end-of-text tokens. */
#define BOS "\1"
#define EOS "\2"

typedef struct family {
    const char *name;
    bool (*is)(const char *template);
    bool bos_by_template; /* `start` is what the template says, not what stands here */
    const char *start;
    const char *system_prefix, *system_suffix; /* NULL: there are no system messages */
    const char *user_prefix, *user_suffix, *assistant_prefix, *assistant_suffix;
    const char *stops[SN_CHAT_STOPS];
    bool system_inside, trims, one_paragraph;
} family;

/* ---- marks -------------------------------------------------------------------------- */

static bool has(const char *template, const char *mark) {
    return strstr(template, mark) != NULL;
}

/* Whether the expression that writes `first` goes on with `second`. */
static bool writes(const char *template, const char *first, const char *second) {
    const char *at = strstr(template, first);
    const char *end = at ? strstr(at, "}}") : NULL;
    const char *found = at ? strstr(at, second) : NULL;
    return found && end && found < end;
}

static bool has_blank_line(const char *template) {
    return has(template, "\\n\\n") || has(template, "\n\n");
}

/* Those of DeepSeek look alike, but close their answers with the end of text. */
static bool is_rwkv(const char *t) {
    return has(t, "System: ") && has(t, "User: ") && has(t, "Assistant:") && has_blank_line(t) &&
           !has(t, "eos_token") && !has(t, "<|im_") && !has(t, "<|end_of");
}

static bool is_chatml(const char *t) {
    return has(t, "<|im_start|>") && has(t, "<|im_end|>") && !has(t, "<|im_sep|>") &&
           !has(t, "<|im_middle|>");
}

static bool is_llama3(const char *t) {
    return has(t, "<|start_header_id|>") && has(t, "<|end_header_id|>") && has(t, "<|eot_id|>");
}

static bool is_llama2(const char *t) {
    return has(t, "[INST]") && has(t, "[/INST]") && has(t, "<<SYS>>");
}

/* Three generations, told apart by the spaces beside their marks. */
static bool is_mistral(const char *t, bool space_behind, bool space_before) {
    return has(t, "[INST]") && has(t, "[/INST]") && !has(t, "<<SYS>>") &&
           !has(t, "[SYSTEM_PROMPT]") && has(t, "[INST] ") == space_behind &&
           has(t, " [/INST]") == space_before;
}

static bool is_mistral_v1(const char *t) {
    return is_mistral(t, true, true);
}

static bool is_mistral_v3(const char *t) {
    return is_mistral(t, true, false);
}

static bool is_mistral_tekken(const char *t) {
    return is_mistral(t, false, false);
}

static bool is_gemma(const char *t) {
    return has(t, "<start_of_turn>") && has(t, "<end_of_turn>");
}

/* Others have its marks, but close a user's message in other ways. */
static bool is_zephyr(const char *t) {
    return has(t, "<|assistant|>") && writes(t, "<|user|>", "eos_token");
}

static bool is_vicuna(const char *t) {
    return has(t, "USER: ") && has(t, "ASSISTANT:") && has(t, "eos_token") &&
           !writes(t, "USER: ", "\\n") && !writes(t, "USER: ", "\n");
}

static bool is_alpaca(const char *t) {
    return has(t, "### Instruction:") && has(t, "### Response:") && !has(t, "<|");
}

/* ---- families ----------------------------------------------------------------------- */

static const family families[] = {
    { .name = "rwkv-world", .is = is_rwkv, .start = "",
      .system_prefix = "System: ", .system_suffix = "\n\n",
      .user_prefix = "User: ", .user_suffix = "\n\n",
      .assistant_prefix = "Assistant:", .assistant_suffix = "\n\n",
      /* "\n\nUser:" needs no place here: it begins with "\n\n" */
      .stops = { "\n\n", "\nUser:" }, .trims = true, .one_paragraph = true },
    { .name = "chatml", .is = is_chatml, .bos_by_template = true, .start = "",
      .system_prefix = "<|im_start|>system\n", .system_suffix = "<|im_end|>\n",
      .user_prefix = "<|im_start|>user\n", .user_suffix = "<|im_end|>\n",
      .assistant_prefix = "<|im_start|>assistant\n", .assistant_suffix = "<|im_end|>\n",
      .stops = { "<|im_end|>", "<|im_start|>" } },
    { .name = "llama2", .is = is_llama2, .start = "",
      .system_prefix = "<<SYS>>\n", .system_suffix = "\n<</SYS>>\n\n",
      .user_prefix = BOS "[INST] ", .user_suffix = " [/INST]",
      .assistant_prefix = "", .assistant_suffix = " " EOS,
      .stops = { "[INST]" }, .system_inside = true, .trims = true },
    { .name = "llama3", .is = is_llama3, .bos_by_template = true, .start = BOS,
      .system_prefix = "<|start_header_id|>system<|end_header_id|>\n\n",
      .system_suffix = "<|eot_id|>",
      .user_prefix = "<|start_header_id|>user<|end_header_id|>\n\n",
      .user_suffix = "<|eot_id|>",
      .assistant_prefix = "<|start_header_id|>assistant<|end_header_id|>\n\n",
      .assistant_suffix = "<|eot_id|>",
      .stops = { "<|eot_id|>", "<|start_header_id|>" }, .trims = true },
    { .name = "mistral-v1", .is = is_mistral_v1, .start = BOS,
      .user_prefix = "[INST] ", .user_suffix = " [/INST]",
      .assistant_prefix = "", .assistant_suffix = EOS, .stops = { "[INST]" } },
    { .name = "mistral-v3", .is = is_mistral_v3, .start = BOS,
      .user_prefix = "[INST] ", .user_suffix = "[/INST]",
      .assistant_prefix = "", .assistant_suffix = EOS, .stops = { "[INST]" } },
    { .name = "mistral-tekken", .is = is_mistral_tekken, .start = BOS,
      .user_prefix = "[INST]", .user_suffix = "[/INST]",
      .assistant_prefix = "", .assistant_suffix = EOS, .stops = { "[INST]" } },
    { .name = "zephyr", .is = is_zephyr, .bos_by_template = true, .start = "",
      .system_prefix = "<|system|>\n", .system_suffix = EOS "\n",
      .user_prefix = "<|user|>\n", .user_suffix = EOS "\n",
      .assistant_prefix = "<|assistant|>\n", .assistant_suffix = EOS "\n",
      .stops = { "<|user|>", "<|assistant|>", "<|system|>" } },
    { .name = "gemma", .is = is_gemma, .bos_by_template = true, .start = BOS,
      .user_prefix = "<start_of_turn>user\n", .user_suffix = "<end_of_turn>\n",
      .assistant_prefix = "<start_of_turn>model\n", .assistant_suffix = "<end_of_turn>\n",
      .stops = { "<end_of_turn>", "<start_of_turn>" }, .trims = true },
    { .name = "vicuna", .is = is_vicuna, .bos_by_template = true, .start = BOS,
      .system_prefix = "", .system_suffix = " ",
      .user_prefix = "USER: ", .user_suffix = " ",
      .assistant_prefix = "ASSISTANT:", .assistant_suffix = EOS,
      .stops = { "USER:" }, .trims = true },
    { .name = "alpaca", .is = is_alpaca, .bos_by_template = true, .start = "",
      .system_prefix = "", .system_suffix = "\n\n",
      .user_prefix = "### Instruction:\n", .user_suffix = "\n\n",
      .assistant_prefix = "### Response:\n", .assistant_suffix = "\n\n",
      .stops = { "### Instruction:" }, .trims = true },
};

#define N_FAMILIES (sizeof families / sizeof families[0])

/* What an architecture without a template is known for. */
static const struct {
    const char *architecture, *family;
} usual[] = { { "rwkv7", "rwkv-world" } };

int32_t sn_chat_count(void) {
    return (int32_t)N_FAMILIES;
}

const char *sn_chat_name(int32_t index) {
    return index >= 0 && (size_t)index < N_FAMILIES ? families[index].name : NULL;
}

static const family *find_named(const char *name, size_t length) {
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strlen(families[i].name) == length && memcmp(families[i].name, name, length) == 0)
            return &families[i];
    return NULL;
}

/* A bare word is the name of a family: converters write "rwkv-world". */
static const family *find_by_template(const char *template) {
    static const char blanks[] = " \t\r\n";
    const char *word = template + strspn(template, blanks);
    size_t length = strcspn(word, blanks);
    const family *named = find_named(word, length);
    if (named && word[length + strspn(word + length, blanks)] == '\0') return named;
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (families[i].is(template)) return &families[i];
    return NULL;
}

/* ", "-separated, for error texts. */
static const char *list_names(char *text, size_t room) {
    size_t at = 0;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const char *parts[] = { i ? ", " : "", families[i].name };
        for (int k = 0; k < 2; k++) {
            size_t n = strlen(parts[k]);
            if (at + n >= room) n = room - 1 - at;
            memcpy(text + at, parts[k], n);
            at += n;
        }
    }
    text[at] = '\0';
    return text;
}

/* ---- a format, written out for a tokenizer ------------------------------------------ */

static sn_status token_text(const sn_tokenizer *tokenizer, int32_t id, const char **text,
                            size_t *length) {
    *text = "";
    *length = 0;
    return id < 0 ? SN_OK : sn_tokenizer_text(tokenizer, id, text, length);
}

static sn_status write_text(const char *from, const sn_tokenizer *tokenizer,
                            char to[SN_CHAT_TEXT]) {
    size_t at = 0;
    for (; from && *from; from++) {
        const char *part = from;
        size_t length = 1;
        if (*from == *BOS)
            SN_TRY(token_text(tokenizer, sn_tokenizer_bos(tokenizer), &part, &length));
        if (*from == *EOS)
            SN_TRY(token_text(tokenizer, sn_tokenizer_eos(tokenizer), &part, &length));
        if (at + length >= SN_CHAT_TEXT)
            return sn_fail(SN_E_UNSUPPORTED, "chat: a control token of %zu bytes", length);
        memcpy(to + at, part, length);
        at += length;
    }
    to[at] = '\0';
    return SN_OK;
}

static bool needs_eos(const family *f) {
    const char *const texts[] = { f->system_suffix, f->user_suffix, f->assistant_suffix };
    for (int i = 0; i < 3; i++)
        if (texts[i] && strchr(texts[i], *EOS)) return true;
    return false;
}

static sn_status write_texts(const family *f, const sn_tokenizer *tokenizer,
                             sn_chat_format *out) {
    SN_TRY(write_text(f->start, tokenizer, out->start));
    SN_TRY(write_text(f->system_prefix, tokenizer, out->system_prefix));
    SN_TRY(write_text(f->system_suffix, tokenizer, out->system_suffix));
    SN_TRY(write_text(f->user_prefix, tokenizer, out->user_prefix));
    SN_TRY(write_text(f->user_suffix, tokenizer, out->user_suffix));
    SN_TRY(write_text(f->assistant_prefix, tokenizer, out->assistant_prefix));
    SN_TRY(write_text(f->assistant_suffix, tokenizer, out->assistant_suffix));
    while (out->n_stops < SN_CHAT_STOPS && f->stops[out->n_stops]) {
        SN_TRY(write_text(f->stops[out->n_stops], tokenizer, out->stops[out->n_stops]));
        out->n_stops++;
    }
    return SN_OK;
}

/* The control token that an answer is closed with; -1 if it is closed with plain text. */
static int32_t closing_id(const sn_tokenizer *tokenizer, const char *suffix) {
    int32_t ids[SN_CHAT_TEXT], n = 0;
    if (sn_tokenizer_encode_with(tokenizer, suffix, strlen(suffix), SN_ENCODE_SPECIAL, ids,
                                 SN_CHAT_TEXT, &n) != SN_OK || n == 0)
        return -1;
    return sn_tokenizer_special(tokenizer, ids[0]) ? ids[0] : -1;
}

/* Whether the tokenizer's file wants its begin-of-text token before every text. */
static bool adds_bos(const sn_tokenizer *tokenizer) {
    int32_t id, n = 0;
    return sn_tokenizer_encode_with(tokenizer, "", 0, SN_ENCODE_BEGIN, &id, 1, &n) == SN_OK && n;
}

/* `template` is NULL where the family was not found by one. */
static sn_status choose_start(const family *f, const char *template,
                              const sn_tokenizer *tokenizer, sn_chat_format *out) {
    char bos[SN_CHAT_TEXT];
    SN_TRY(write_text(BOS, tokenizer, bos));
    size_t length = strlen(bos);
    if (template && f->bos_by_template)
        SN_TRY(write_text(has(template, "bos_token") || (length && has(template, bos)) ? BOS : "",
                          tokenizer, out->start));
    bool there = *out->start || (length && strncmp(out->user_prefix, bos, length) == 0);
    if (!there && adds_bos(tokenizer)) memcpy(out->start, bos, length + 1);
    return SN_OK;
}

static sn_status check_format(const sn_chat_format *format) {
    if (!format) return sn_fail(SN_E_INVAL, "chat: format is NULL");
    if (format->struct_size < sizeof *format)
        return sn_fail(SN_E_INVAL, "chat format: struct_size is %" PRIu32 ", expected %zu",
                       format->struct_size, sizeof *format);
    return SN_OK;
}

static sn_status make(const family *f, int32_t source, const char *template,
                      const sn_tokenizer *tokenizer, sn_chat_format *format) {
    if (tokenizer && needs_eos(f) && sn_tokenizer_eos(tokenizer) < 0)
        return sn_fail(SN_E_UNSUPPORTED, "chat format %s: the tokenizer has no end-of-text token, "
                       "which closes its turns", f->name);
    sn_chat_format out = {
        .struct_size = format->struct_size, .name = f->name, .source = source,
        .has_system = f->system_prefix != NULL, .system_inside = f->system_inside,
        .trims = f->trims, .one_paragraph = f->one_paragraph, .end_ids = { -1, -1, -1 },
    };
    SN_TRY(write_texts(f, tokenizer, &out));
    if (tokenizer) {
        SN_TRY(choose_start(f, template, tokenizer, &out));
        out.end_ids[0] = sn_tokenizer_eos(tokenizer);
        out.end_ids[1] = sn_tokenizer_eot(tokenizer);
        out.end_ids[2] = closing_id(tokenizer, out.assistant_suffix);
    }
    *format = out;
    return SN_OK;
}

/* ---- the public calls --------------------------------------------------------------- */

sn_status sn_chat_named(const char *name, const sn_tokenizer *tokenizer,
                        sn_chat_format *format) {
    char list[200];
    if (!name) return sn_fail(SN_E_INVAL, "chat: name is NULL");
    SN_TRY(check_format(format));
    const family *f = find_named(name, strlen(name));
    if (!f)
        return sn_fail(SN_E_INVAL, "there is no chat format '%.60s' (known: %s)", name,
                       list_names(list, sizeof list));
    return make(f, SN_CHAT_BY_NAME, NULL, tokenizer, format);
}

sn_status sn_chat_of_template(const char *chat_template, const sn_tokenizer *tokenizer,
                              sn_chat_format *format) {
    char list[200];
    if (!chat_template) return sn_fail(SN_E_INVAL, "chat: chat_template is NULL");
    SN_TRY(check_format(format));
    const family *f = find_by_template(chat_template);
    if (!f)
        return sn_fail(SN_E_UNSUPPORTED, "the chat template is of no known format (known: %s)",
                       list_names(list, sizeof list));
    return make(f, SN_CHAT_TEMPLATE, chat_template, tokenizer, format);
}

sn_status sn_model_chat(const sn_model *model, const sn_tokenizer *tokenizer,
                        sn_chat_format *format) {
    char list[200];
    sn_model_info info = { .struct_size = sizeof info };
    SN_TRY(check_format(format));
    SN_TRY(sn_model_get_info(model, &info));
    if (!tokenizer) tokenizer = sn_model_tokenizer(model);
    if (*info.chat_template) return sn_chat_of_template(info.chat_template, tokenizer, format);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (strcmp(usual[i].architecture, info.architecture) != 0) continue;
        const family *f = find_named(usual[i].family, strlen(usual[i].family));
        return make(f, SN_CHAT_ARCHITECTURE, NULL, tokenizer, format);
    }
    return sn_fail(SN_E_UNSUPPORTED, "no chat format is named (known: %s)",
                   list_names(list, sizeof list));
}
