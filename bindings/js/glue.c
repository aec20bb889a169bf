/*
 * glue.c: the public calls whose structs JavaScript would have to lay out by hand, as calls with
 * plain arguments. Everything else is exported as it is (exports.txt). Nothing here calls back
 * into JavaScript: loading, prefill and generation go in steps that JavaScript asks for.
 */
#include "glue.h"

#include <string.h>

/* Arguments as in sn_loading_new; backend may be NULL, max_chunk 0. n_threads is at least 1: how
 * many are worth while is for JavaScript to say, which has to start their workers first. */
SN_API sn_status sn_js_loading_new(const char *name, double size, const char *backend,
                                   int32_t n_threads, int32_t activations, int32_t max_chunk,
                                   sn_loading **loading) {
    sn_model_options options;
    sn_model_options_init(&options);
    options.backend = backend;
    options.n_threads = n_threads;
    options.activations = activations;
    options.max_chunk = max_chunk;
    return sn_loading_new(name, size, &options, loading);
}

/* strings: architecture, name, back end, chat template. The numbers' names: INFO in model.mjs. */
SN_API sn_status sn_js_model_info(const sn_model *model, const char *strings[4],
                                  double numbers[14]) {
    sn_model_info info;
    info.struct_size = sizeof info;
    const sn_status status = sn_model_get_info(model, &info);
    if (status != SN_OK) return status;
    const char *const texts[] = { info.architecture, info.name, info.backend, info.chat_template };
    const double values[] = { info.n_layers, info.n_embd, info.n_ffn, info.n_heads, info.head_size,
                              info.vocab, info.activations, info.max_chunk, info.parameters,
                              info.file_bytes, info.resident_bytes, info.state_bytes,
                              info.bytes_per_token, info.n_threads };
    memcpy(strings, texts, sizeof texts);
    memcpy(numbers, values, sizeof values);
    return SN_OK;
}

/* strings: name, type. numbers: dimensions used, the four of them, bytes in file and in memory. */
SN_API sn_status sn_js_tensor_info(const sn_model *model, int32_t index, const char *strings[2],
                                   double numbers[7]) {
    sn_tensor_info info;
    info.struct_size = sizeof info;
    const sn_status status = sn_model_get_tensor(model, index, &info);
    if (status != SN_OK) return status;
    strings[0] = info.name;
    strings[1] = info.type;
    numbers[0] = info.n_dims;
    memcpy(numbers + 1, info.dims, sizeof info.dims);
    numbers[5] = info.file_bytes;
    numbers[6] = info.resident_bytes;
    return SN_OK;
}

/*
 * options: temperature, top_p, min_p, repetition, presence and frequency penalty. The seed comes
 * in halves: a 64-bit argument would be a BigInt. bias: n_bias pairs as in sn_sampler_options.
 */
SN_API sn_status sn_js_sampler_new(const sn_model *model, const float options[6], int32_t top_k,
                                   int32_t penalty_last_n, uint32_t seed_low, uint32_t seed_high,
                                   const sn_logit_bias *bias, int32_t n_bias,
                                   sn_sampler **sampler) {
    sn_sampler_options o;
    sn_sampler_options_init(&o);
    o.temperature = options[0];
    o.top_p = options[1];
    o.min_p = options[2];
    o.repetition_penalty = options[3];
    o.presence_penalty = options[4];
    o.frequency_penalty = options[5];
    o.top_k = top_k;
    o.penalty_last_n = penalty_last_n;
    o.seed = (uint64_t)seed_high << 32 | seed_low;
    o.bias = bias;
    o.n_bias = n_bias;
    return sn_sampler_new(sn_model_vocab(model), sn_model_tokenizer(model), &o, sampler);
}

/* Lines that fit, each with its newline; the rest are dropped. */
typedef struct lines {
    char *text;
    size_t used, capacity;
} lines;

static void keep_line(void *user, const char *line) {
    lines *kept = user;
    const size_t length = strlen(line);
    if (length + 2 > kept->capacity - kept->used) return;
    memcpy(kept->text + kept->used, line, length);
    kept->used += length;
    kept->text[kept->used++] = '\n';
    kept->text[kept->used] = '\0';
}

/* sn_selftest with its lines as text of at most `capacity` bytes (at least 1). */
SN_API sn_status sn_js_selftest(char *text, size_t capacity) {
    lines kept = { text, 0, capacity };
    text[0] = '\0';
    return sn_selftest(keep_line, &kept);
}
