#include "card.h"

#include "../platform.h"

#include <stdio.h>
#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20)

/* ---- counting ------------------------------------------------------------------------------ */

static bool ends_in(const char *name, const char *suffix) {
    const size_t length = strlen(name), n = strlen(suffix);
    return length >= n && !strcmp(name + length - n, suffix);
}

/* What the training keeps beside the parameters. */
static bool is_buffer(const char *name) {
    return ends_in(name, ".h_logit0") || ends_in(name, ".delta_max") || ends_in(name, ".delta_min");
}

void sn_card_count(sn_card *card, const sn_store *store, bool tied) {
    for (size_t i = 0; i < sn_store_count(store); i++) {
        const sn_view *view = sn_store_at(store, i);
        const bool head = !strcmp(view->name, "head.weight");
        if (head && tied) continue;
        card->tensors++;
        if (is_buffer(view->name)) continue;
        card->params += sn_view_elements(view);
        if (head || !strcmp(view->name, "embed.weight"))
            card->embed_params += sn_view_elements(view);
    }
}

static sn_status hash_input(sn_input *input, sn_card_entry *entry) {
    sn_sha256 sha;
    uint8_t *buffer = sn_alloc(PIECE_BYTES);
    if (!buffer) return SN_E_NOMEM;
    sn_status status = SN_OK;
    sn_sha256_init(&sha);
    while (status == SN_OK && sn_input_left(input)) {
        const uint64_t left = sn_input_left(input);
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        status = sn_input_read(input, buffer, n);
        if (status == SN_OK) sn_sha256_update(&sha, buffer, n);
    }
    sn_free(buffer);
    if (status == SN_OK) sn_sha256_finish(&sha, entry->sha256);
    return status;
}

sn_status sn_card_file(sn_card_entry *entry, const char *path) {
    sn_input input;
    SN_TRY(sn_platform_open(path, &input));
    sn_card_entry found = {.present = true, .bytes = input.size};
    sn_status status = hash_input(&input, &found);
    sn_input_close(&input);
    if (status == SN_OK) *entry = found;
    return status;
}

static sn_status get(const sn_gguf *gguf, const char *key, uint64_t *out) {
    uint32_t value = 0;
    SN_TRY(sn_gguf_get_u32(gguf, key, true, &value));
    *out = value;
    return SN_OK;
}

sn_status sn_card_blob(sn_card *card, const sn_gguf *gguf) {
    card->clamped = sn_gguf_find(gguf, "sunnynet.decay_floor") != NULL;
    SN_TRY(get(gguf, "sunnynet.vocab_size", &card->vocab));
    SN_TRY(get(gguf, "sunnynet.embedding_length", &card->dim));
    SN_TRY(get(gguf, "sunnynet.inner_length", &card->inner));
    SN_TRY(get(gguf, "sunnynet.rank", &card->rank));
    SN_TRY(get(gguf, "sunnynet.taps", &card->taps));
    return get(gguf, "sunnynet.block_count", &card->layers);
}

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct page {
    sn_growing text;
    int level;
    bool first; /* no member yet at this level */
} page;

static void put_key(page *p, const char *key) {
    if (!p->first) sn_put_text(&p->text, ",");
    sn_put_line(&p->text, p->level);
    sn_put_string(&p->text, key, strlen(key));
    sn_put_text(&p->text, ": ");
    p->first = false;
}

static void open_object(page *p, const char *key) {
    if (key) put_key(p, key);
    sn_put_text(&p->text, "{");
    p->level++;
    p->first = true;
}

static void close_object(page *p) {
    p->level--;
    if (!p->first) sn_put_line(&p->text, p->level);
    sn_put_text(&p->text, "}");
    p->first = false;
}

static void put_string(page *p, const char *key, const char *value) {
    put_key(p, key);
    sn_put_string(&p->text, value, strlen(value));
}

static void put_count(page *p, const char *key, uint64_t value) {
    put_key(p, key);
    sn_put_number(&p->text, value);
}

static void put_bool(page *p, const char *key, bool value) {
    put_key(p, key);
    sn_put_text(&p->text, value ? "true" : "false");
}

static void put_value(page *p, const char *key, const sn_json *value) {
    put_key(p, key);
    sn_put_json(&p->text, value, p->level, true);
}

/* `suffix` behind the name of the model. */
static void put_file(page *p, const sn_card *card, const char *suffix) {
    put_key(p, "file");
    sn_growing name = {.data = NULL};
    sn_put_text(&name, card->name);
    sn_put_text(&name, suffix);
    p->text.failed |= name.failed;
    if (!name.failed) sn_put_string(&p->text, name.data, name.size);
    sn_growing_free(&name);
}

static void put_command(page *p, const char *key, const sn_card *card, const char *format) {
    char command[512];
    snprintf(command, sizeof command, format, card->name);
    put_string(p, key, command);
}

static void put_checkpoint(page *p, const sn_card *card) {
    open_object(p, "checkpoint");
    put_count(p, "bytes", card->checkpoint.bytes);
    put_file(p, card, ".pt");
    put_string(p, "sha256", card->checkpoint.sha256);
    close_object(p);
}

static void put_blob(page *p, const sn_card *card) {
    open_object(p, "runtime_fp32");
    if (card->blob.present) {
        put_count(p, "bytes", card->blob.bytes);
        put_count(p, "dim", card->dim);
        put_file(p, card, ".runtime.bin");
        put_count(p, "inner", card->inner);
        put_count(p, "layers", card->layers);
        put_bool(p, "needs_clamp", card->clamped);
        put_count(p, "params", card->params);
        put_count(p, "rank", card->rank);
        put_string(p, "sha256", card->blob.sha256);
        put_count(p, "taps", card->taps);
        put_count(p, "vocab", card->vocab);
    } else {
        put_string(p, "not_made", card->no_blob);
    }
    close_object(p);
}

static void put_safetensors(page *p, const sn_card *card) {
    open_object(p, "safetensors");
    put_count(p, "bytes", card->safetensors.bytes);
    put_file(p, card, ".safetensors");
    put_count(p, "params", card->params);
    put_count(p, "params_non_embed", card->params - card->embed_params);
    put_string(p, "sha256", card->safetensors.sha256);
    put_count(p, "tensors", card->tensors);
    put_bool(p, "tied_head", card->tied);
    close_object(p);
}

static void put_tokenizer(page *p, const sn_card *card) {
    if (!card->tokenizer.present) return;
    open_object(p, "tokenizer");
    put_count(p, "bytes", card->tokenizer.bytes);
    put_string(p, "file", "tokenizer.json");
    put_string(p, "sha256", card->tokenizer.sha256);
    close_object(p);
}

static void put_artifacts(page *p, const sn_card *card) {
    open_object(p, "artifacts");
    put_checkpoint(p, card);
    put_blob(p, card);
    put_safetensors(p, card);
    put_tokenizer(p, card);
    close_object(p);
}

static void put_usage(page *p, const sn_card *card) {
    open_object(p, "usage");
    if (card->blob.present)
        put_command(p, "blob", card, "sunnynet run -m %.200s.runtime.bin -p TEXT");
    put_command(p, "checkpoint", card, "sunnynet run -m %.200s.pt -p TEXT");
    put_command(p, "safetensors", card, "sunnynet run -m %.200s.safetensors -p TEXT");
    close_object(p);
}

static void put_card(page *p, const sn_card *card) {
    open_object(p, NULL);
    put_string(p, "architecture", "SunnyNet");
    put_artifacts(p, card);
    put_value(p, "config", card->config);
    put_string(p, "license", card->license);
    put_string(p, "name", card->name);
    put_string(p, "publisher", card->publisher);
    put_value(p, "training", card->summary);
    put_usage(p, card);
    close_object(p);
    sn_put_text(&p->text, "\n");
}

static sn_status write_text(const sn_growing *text, const char *path) {
    sn_output *output;
    SN_TRY(sn_growing_status(text));
    SN_TRY(sn_platform_create(path, &output));
    sn_status status = sn_output_write(output, text->data, text->size);
    if (status == SN_OK) return sn_output_commit(output);
    sn_output_discard(output);
    return status;
}

sn_status sn_card_write(const sn_card *card, const char *path) {
    page p = {.level = 0};
    put_card(&p, card);
    sn_status status = write_text(&p.text, path);
    sn_growing_free(&p.text);
    return status;
}
