/*
 * test_family: real forward passes of every architecture, small enough for sanitizers and
 * emulators: steps, chunks, batches, clones and saved states are the same bits with one thread and
 * with several; states are refused by other models; numbers that overflow spoil a state as
 * sunnynet.h says; ids that no tokenizer has are never drawn.
 * Usage: test_family models/test FOLDER-FOR-FILES tests/data/family
 */
#include "models.h"

#include "formats/gguf.h"
#include "hash.h"
#include "platform.h"

#include <pthread.h>

#define N 21
#define SPLIT 8
#define N_STATES 3

static const char *models, *folder, *family;

/* A model of each architecture, and a second one of the last. */
static const struct {
    const char *architecture, *file, *norm; /* norm: a vector that all activations go through */
} members[] = {
    { "rwkv7", "rwkv7-micro.f16", "blk.0.attn_norm.weight" },
    { "mamba2", "mamba2-micro-g2.q8_0", "blk.0.attn_norm.weight" },
    { "mamba", "mamba-micro.f16", "blk.0.attn_norm.weight" },
    { "deltanet", "deltanet-micro.q8_0", "blk.0.attn_norm.weight" },
    { "gated-deltanet", "gated-deltanet-micro.bf16", "blk.0.attn_norm.weight" },
    { "gla", "gla-micro.q4_0", "blk.0.attn_norm.weight" },
    { "hgrn2", "hgrn2-micro.f16", "blk.0.attn_norm.weight" },
    { "sunnynet", "sunnynet-micro-ablation.f16", "blk.0.norm_in.weight" },
    { "sunnynet", "sunnynet-micro.q8_0", "blk.0.norm_in.weight" },
};
#define N_MEMBERS (sizeof members / sizeof members[0])

static const char *path_of(size_t member, char path[512]) {
    snprintf(path, 512, "%s/%s.gguf", models, members[member].file);
    return path;
}

static sn_model *open_member(size_t member, int32_t threads, int32_t chunk, int32_t activations) {
    char path[512];
    sn_model_options options;
    sn_model_options_init(&options);
    options.n_threads = threads;
    options.max_chunk = chunk;
    options.activations = activations;
    return load_model(path_of(member, path), &options);
}

static uint8_t *save(const sn_state *state, size_t *size) {
    CHECK(sn_state_save(state, NULL, NULL, 0, size) == SN_OK, "%s", sn_last_error());
    uint8_t *bytes = malloc(*size);
    CHECK(sn_state_save(state, NULL, bytes, *size, size) == SN_OK, "%s", sn_last_error());
    return bytes;
}

/* ---- every way to the same bits -------------------------------------------------------------- */

typedef struct wanted { /* what steps of one thread give */
    const char *name;
    size_t vocab;
    int32_t tokens[N];
    float *logits;  /* [N][vocab] */
    uint8_t *state; /* after all tokens, as saved */
    size_t state_size;
} wanted;

static wanted step_through(const sn_model *model, const char *name) {
    wanted w = { .name = name, .vocab = (size_t)sn_model_vocab(model) };
    sn_state *state = new_state(model);
    w.logits = malloc(N * w.vocab * sizeof(float));
    random_tokens(w.tokens, N, (int32_t)w.vocab, 3);
    for (size_t i = 0; i < N; i++)
        CHECK(sn_state_step(state, w.tokens[i], w.logits + i * w.vocab) == SN_OK, "%s: %s", name,
              sn_last_error());
    w.state = save(state, &w.state_size);
    sn_state_free(state);
    return w;
}

static void free_wanted(wanted *w) {
    free(w->logits);
    free(w->state);
}

/* The logits of tokens from `first` on, and the state at the end. */
static void expect(const wanted *w, const sn_state *state, const float *logits, size_t first,
                   const char *how) {
    size_t size;
    uint8_t *bytes = save(state, &size);
    CHECK(!memcmp(logits, w->logits + first * w->vocab, (N - first) * w->vocab * sizeof(float)),
          "%s: %s: other logits", w->name, how);
    CHECK(size == w->state_size && !memcmp(bytes, w->state, size), "%s: %s: another state", w->name,
          how);
    free(bytes);
}

static void check_chunks(const wanted *w, const sn_model *model, float *logits) {
    sn_state *state = new_state(model);
    CHECK(sn_state_prefill_all(state, w->tokens, N, logits) == SN_OK, "%s", sn_last_error());
    expect(w, state, logits, 0, "prefill");
    CHECK(sn_state_reset(state) == SN_OK, "reset");
    CHECK(sn_state_prefill(state, w->tokens, N - 1, NULL) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_step(state, w->tokens[N - 1], logits) == SN_OK, "%s", sn_last_error());
    expect(w, state, logits, N - 1, "prefill without logits after a reset");
    sn_state_free(state);
}

/* At a split, a clone and a restored state go on; so does what they came from. */
static void check_copies(const wanted *w, const sn_model *model, float *logits) {
    const char *const how[N_STATES] = { "the original", "a clone", "restored" };
    sn_state *states[N_STATES] = { new_state(model), NULL, new_state(model) };
    size_t size;
    CHECK(sn_state_prefill(states[0], w->tokens, SPLIT, NULL) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_clone(states[0], &states[1]) == SN_OK, "%s", sn_last_error());
    uint8_t *bytes = save(states[0], &size);
    CHECK(sn_state_prefill(states[2], w->tokens + 3, 5, NULL) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_restore(states[2], NULL, bytes, size) == SN_OK, "%s", sn_last_error());
    free(bytes);
    for (int i = 0; i < N_STATES; i++) {
        CHECK(sn_state_prefill_all(states[i], w->tokens + SPLIT, N - SPLIT, logits) == SN_OK,
              "%s", sn_last_error());
        expect(w, states[i], logits, SPLIT, how[i]);
        sn_state_free(states[i]);
    }
}

/* States of a batch that are at different tokens: state i starts i steps later. */
static void check_batch(const wanted *w, const sn_model *model, float *logits) {
    sn_state *states[N_STATES], *turn[N_STATES];
    int32_t tokens[N_STATES];
    float *rows = malloc(N_STATES * w->vocab * sizeof(float));
    sn_batch *batch;
    CHECK(sn_batch_new(model, N_STATES, &batch) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < N_STATES; i++) states[i] = new_state(model);
    for (int t = 0; t < N + N_STATES - 1; t++) {
        int n = 0, last = -1;
        for (int i = 0; i < N_STATES; i++) {
            if (t < i || t - i >= N) continue;
            turn[n] = states[i];
            tokens[n++] = w->tokens[t - i];
            last = t - i;
        }
        CHECK(sn_batch_step(batch, turn, tokens, n, rows) == SN_OK, "%s", sn_last_error());
        memcpy(logits + (size_t)last * w->vocab, rows + (size_t)(n - 1) * w->vocab,
               w->vocab * sizeof(float));
    }
    for (int i = 0; i < N_STATES; i++) {
        expect(w, states[i], logits, i == N_STATES - 1 ? 0 : N, "batch");
        sn_state_free(states[i]);
    }
    sn_batch_free(batch);
    free(rows);
}

typedef struct player {
    const wanted *w;
    const sn_model *model;
} player;

static void *play(void *argument) {
    const player *p = argument;
    sn_state *state = new_state(p->model);
    float *logits = malloc(p->w->vocab * sizeof(float));
    sn_status status = sn_state_prefill(state, p->w->tokens, SPLIT, NULL);
    for (int i = SPLIT; i < N && status == SN_OK; i++)
        status = sn_state_step(state, p->w->tokens[i], logits);
    const float *last = p->w->logits + (N - 1) * p->w->vocab;
    const bool same = status == SN_OK && !memcmp(logits, last, p->w->vocab * sizeof(float));
    sn_state_free(state);
    free(logits);
    return same ? NULL : argument;
}

/* Two threads of ours on a model with two of its own. */
static void check_shared(const wanted *w, const sn_model *model) {
    player both = { w, model };
    pthread_t other;
    void *failed = NULL;
    CHECK(pthread_create(&other, NULL, play, &both) == 0, "a thread could not be started");
    CHECK(play(&both) == NULL, "%s: shared: other logits", w->name);
    pthread_join(other, &failed);
    CHECK(failed == NULL, "%s: shared: other logits in the second thread", w->name);
}

static void check_ways(size_t member, int32_t activations) {
    static const int32_t threads[] = { 1, 2, 2 }, chunks[] = { 5, 5, 32 };
    sn_model *alone = open_member(member, 1, 1, activations);
    wanted w = step_through(alone, members[member].file);
    float *logits = malloc(N * w.vocab * sizeof(float));
    for (int i = 0; i < 3; i++) {
        sn_model *model = open_member(member, threads[i], chunks[i], activations);
        check_chunks(&w, model, logits);
        check_copies(&w, model, logits);
        check_batch(&w, model, logits);
        if (threads[i] > 1) check_shared(&w, model);
        sn_model_free(model);
    }
    free(logits);
    free_wanted(&w);
    sn_model_free(alone);
}

/* ---- states of other models ------------------------------------------------------------------ */

static void refuse(const sn_model *model, const char *name, const sn_state *stranger,
                   const uint8_t *bytes, size_t size, const char *from) {
    sn_state *own = new_state(model), *both[2] = { own, (sn_state *)(uintptr_t)stranger };
    const int32_t tokens[2] = { 1, 1 };
    double difference;
    char wanted_text[96];
    sn_batch *batch;
    if (!strcmp(name, from)) snprintf(wanted_text, sizeof wanted_text, "made with other weights");
    else snprintf(wanted_text, sizeof wanted_text, "of architecture '%s', the model is '%s'", from,
                  name);
    CHECK(sn_state_restore(own, NULL, bytes, size) == SN_E_MISMATCH &&
          strstr(sn_last_error(), wanted_text), "%s in %s: %s", from, name, sn_last_error());
    CHECK(sn_state_compare(own, stranger, &difference) == SN_E_MISMATCH, "compared");
    CHECK(sn_batch_new(model, 2, &batch) == SN_OK, "%s", sn_last_error());
    CHECK(sn_batch_step(batch, both, tokens, 2, NULL) == SN_E_INVAL &&
          strstr(sn_last_error(), "belongs to another model"), "%s", sn_last_error());
    CHECK(sn_state_position(own) == 0 && sn_state_position(stranger) == SPLIT, "a step was done");
    sn_batch_free(batch);
    sn_state_free(own);
}

static void check_strangers(void) {
    sn_model *all[N_MEMBERS];
    for (size_t i = 0; i < N_MEMBERS; i++) all[i] = open_member(i, 1, 0, SN_ACTIVATIONS_INT8);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        size_t size;
        int32_t tokens[SPLIT];
        sn_state *state = new_state(all[i]);
        random_tokens(tokens, SPLIT, sn_model_vocab(all[i]), 1);
        CHECK(sn_state_prefill(state, tokens, SPLIT, NULL) == SN_OK, "%s", sn_last_error());
        uint8_t *bytes = save(state, &size);
        for (size_t j = 0; j < N_MEMBERS; j++)
            if (i != j) refuse(all[j], members[j].architecture, state, bytes, size,
                               members[i].architecture);
        free(bytes);
        sn_state_free(state);
    }
    for (size_t i = 0; i < N_MEMBERS; i++) sn_model_free(all[i]);
}

/* ---- numbers that overflow ------------------------------------------------------------------- */

/* A spoiled state refuses all work but reset and restore, whose bytes `fresh` are. */
static void expect_spoiled(sn_state *state, const uint8_t *fresh, size_t fresh_size,
                           const char *name) {
    size_t size;
    sn_state *clone;
    const double position = sn_state_position(state);
    CHECK(sn_state_step(state, 1, NULL) == SN_E_NUMERIC, "%s: stepped", name);
    CHECK(sn_state_prefill(state, &(int32_t){ 1 }, 1, NULL) == SN_E_NUMERIC, "%s: went on", name);
    CHECK(sn_state_save(state, NULL, NULL, 0, &size) == SN_E_NUMERIC, "%s: saved", name);
    CHECK(sn_state_position(state) == position, "%s: moved on", name);
    CHECK(sn_state_clone(state, &clone) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_step(clone, 1, NULL) == SN_E_NUMERIC, "%s: a clone stepped", name);
    CHECK(sn_state_reset(clone) == SN_OK && sn_state_save(clone, NULL, NULL, 0, &size) == SN_OK,
          "%s: %s", name, sn_last_error());
    sn_state_free(clone);
    CHECK(sn_state_restore(state, NULL, fresh, fresh_size) == SN_OK, "%s: %s", name,
          sn_last_error());
    CHECK(sn_state_position(state) == 0, "%s: restored to %g", name, sn_state_position(state));
}

/* The model's file, every element of the member's norm replaced. */
static sn_model *open_with_norm(size_t member, float value, int32_t activations) {
    char path[512];
    size_t size;
    sn_memory_cursor cursor;
    sn_input input;
    sn_gguf gguf;
    sn_model_options options;
    sn_model *model = NULL;
    uint8_t *bytes = read_file(path_of(member, path), &size);
    sn_input_from_memory(&input, "file", bytes, size, &cursor);
    CHECK(sn_gguf_read(&input, &gguf) == SN_OK, "%s", sn_last_error());
    const sn_gguf_tensor *norm = sn_gguf_find_tensor(&gguf, members[member].norm);
    for (uint64_t at = 0; norm && at < norm->bytes; at += 4)
        memcpy(bytes + norm->offset + at, &value, 4);
    sn_gguf_close(&gguf);
    sn_model_options_init(&options);
    options.activations = activations;
    CHECK(sn_model_load_memory(bytes, size, &options, &model) == SN_OK, "%s", sn_last_error());
    free(bytes);
    return model;
}

static void check_overflow(size_t member, int32_t activations) {
    const char *name = members[member].file;
    sn_model *model = open_with_norm(member, 3e38f, activations);
    sn_state *state = new_state(model), *other = new_state(model), *both[2] = { other, state };
    const int32_t tokens[3] = { 1, 2, 3 };
    float *logits = malloc(3 * (size_t)sn_model_vocab(model) * sizeof(float));
    sn_batch *batch;
    size_t size;
    uint8_t *fresh = save(state, &size);
    CHECK(sn_state_step(state, 1, NULL) == SN_E_NUMERIC, "%s: no overflow", name);
    CHECK(sn_state_position(state) == 1, "%s: position %g", name, sn_state_position(state));
    expect_spoiled(state, fresh, size, name);
    CHECK(sn_state_prefill_all(state, tokens, 3, logits) == SN_E_NUMERIC, "%s: prefill", name);
    CHECK(sn_batch_new(model, 2, &batch) == SN_OK, "%s", sn_last_error());
    CHECK(sn_batch_step(batch, both, tokens, 2, NULL) == SN_E_NUMERIC, "%s: a spoiled one", name);
    CHECK(sn_state_position(other) == 0, "%s: a step beside a spoiled state", name);
    expect_spoiled(state, fresh, size, name);
    CHECK(sn_batch_step(batch, both, tokens, 2, logits) == SN_E_NUMERIC, "%s: batch", name);
    CHECK(sn_state_position(other) == 1, "%s: position %g", name, sn_state_position(other));
    expect_spoiled(state, fresh, size, name);
    expect_spoiled(other, fresh, size, name);
    sn_batch_free(batch);
    sn_state_free(state);
    sn_state_free(other);
    free(fresh);
    free(logits);
    sn_model_free(model);
}

#define STATE_HEADER 80 /* docs/state-format.md; the check value is at 72 */

static void fill_saved(uint8_t *bytes, size_t size, float value, uint64_t seed) {
    check_random random = { seed };
    for (size_t at = STATE_HEADER; at + 4 <= size; at += 4) {
        const float one = check_below(&random, 2) ? value : -value;
        memcpy(bytes + at, &one, 4);
    }
    const uint64_t hash =
        sn_hash(bytes + STATE_HEADER, size - STATE_HEADER, sn_hash(bytes, 72, 0));
    for (int i = 0; i < 8; i++) bytes[72 + i] = (uint8_t)(hash >> 8 * i);
}

static bool all_finite(const uint8_t *floats, size_t bytes) {
    for (size_t at = 0; at + 4 <= bytes; at += 4) {
        float value;
        memcpy(&value, floats + at, 4);
        if (value - value != 0.0f) return false;
    }
    return true;
}

/* Steps from a huge state until it is spoiled; true if it never was. All that comes out of a step
 * that succeeds is finite. */
static bool step_from(sn_state *state, const wanted *w, const uint8_t *bytes, size_t size,
                      float *logits) {
    CHECK(sn_state_restore(state, NULL, bytes, size) == SN_OK, "%s", sn_last_error());
    for (size_t i = 0; i < N; i++) {
        float *row = logits + i * w->vocab;
        const sn_status status = sn_state_step(state, w->tokens[i], row);
        CHECK(status == SN_OK || status == SN_E_NUMERIC, "%s: %s", w->name, sn_last_error());
        if (status != SN_OK) return false;
        size_t saved_size;
        uint8_t *saved = save(state, &saved_size);
        CHECK(all_finite((uint8_t *)row, w->vocab * sizeof(float)), "%s: a logit", w->name);
        CHECK(all_finite(saved + STATE_HEADER, saved_size - STATE_HEADER), "%s: the state is not "
              "finite after token %zu", w->name, i);
        free(saved);
    }
    return true;
}

/* Huge states end the same way, step by step and in chunks: with the same bits or spoiled. */
static void check_huge_states(size_t member, int32_t activations) {
    static const float values[] = { 1e10f, 1e18f, 1e25f, 1e32f, 3e38f };
    sn_model *model = open_member(member, 2, 6, activations);
    wanted w = step_through(model, members[member].file);
    float *stepped = malloc(N * w.vocab * sizeof(float)), *logits = malloc(N * w.vocab * 4);
    sn_state *state = new_state(model);
    size_t size;
    uint8_t *fresh = save(state, &size), *huge = save(state, &size);
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        fill_saved(huge, size, values[v], v);
        const bool survived = step_from(state, &w, huge, size, stepped);
        if (!survived) expect_spoiled(state, fresh, size, w.name);
        CHECK(sn_state_restore(state, NULL, huge, size) == SN_OK, "%s", sn_last_error());
        const sn_status status = sn_state_prefill_all(state, w.tokens, N, logits);
        CHECK(status == (survived ? SN_OK : SN_E_NUMERIC), "%s from %g: %s", w.name,
              (double)values[v], sn_last_error());
        CHECK(!survived || !memcmp(stepped, logits, N * w.vocab * sizeof(float)),
              "%s from %g: other logits", w.name, (double)values[v]);
    }
    sn_state_free(state);
    free(fresh);
    free(huge);
    free(stepped);
    free(logits);
    free_wanted(&w);
    sn_model_free(model);
}

/* ---- ids that the tokenizer does not have ---------------------------------------------------- */

#define DRAWS 2000

static int count_draws(const sn_tokenizer *tokenizer, const float *logits, int32_t vocab,
                       int32_t from) {
    sn_sampler_options options;
    sn_sampler *sampler;
    int count = 0;
    int32_t id;
    sn_sampler_options_init(&options);
    options.temperature = 5.0f;
    options.top_k = 0;
    options.top_p = 1.0f;
    options.seed = 1;
    CHECK(sn_sampler_new(vocab, tokenizer, &options, &sampler) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < DRAWS; i++) {
        CHECK(sn_sampler_sample(sampler, logits, &id) == SN_OK, "%s", sn_last_error());
        count += id >= from;
    }
    sn_sampler_free(sampler);
    return count;
}

/* Ids from `from` on are padding: drawn without a tokenizer, never with the model's own. */
static void check_padding(const char *path, int32_t from) {
    sn_model *model = load_model(path, NULL);
    const int32_t vocab = sn_model_vocab(model);
    const sn_tokenizer *tokenizer = sn_model_tokenizer(model);
    sn_state *state = new_state(model);
    float *logits = malloc((size_t)vocab * sizeof(float));
    CHECK(tokenizer && vocab > from, "%s: %d ids", path, (int)vocab);
    CHECK(sn_state_step(state, 1, logits) == SN_OK, "%s", sn_last_error());
    logits[vocab - 1] = 40.0f; /* the best of all, were it allowed */
    CHECK(count_draws(NULL, logits, vocab, from) > 0, "%s: no padding to be drawn", path);
    CHECK(count_draws(tokenizer, logits, vocab, from) == 0, "%s: padding was drawn", path);
    free(logits);
    sn_state_free(state);
    sn_model_free(model);
}

static void copy_file(const char *from_folder, const char *to_folder, const char *name) {
    char from[600], to[600];
    size_t size;
    uint8_t *bytes = read_file(join(from, sizeof from, from_folder, name), &size);
    FILE *file = fopen(join(to, sizeof to, to_folder, name), "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size, "%s cannot be written", to);
    if (file) fclose(file);
    free(bytes);
}

/* A byte-level tokenizer without merges: 256 ids, written as its alphabet has them. */
static void write_small_tokenizer(const char *to_folder) {
    char path[600];
    FILE *file = fopen(join(path, sizeof path, to_folder, "tokenizer.json"), "wb");
    int shifted = 0;
    CHECK(file != NULL, "%s cannot be written", path);
    if (!file) return;
    fprintf(file, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
            "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
            "false,\"trim_offsets\":true,\"use_regex\":true},\"post_processor\":null,\"decoder\":"
            "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":"
            "true},\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
            "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
            "\"byte_fallback\":false,\"merges\":[],\"vocab\":{");
    for (int byte = 0; byte < 256; byte++) {
        const bool itself = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        fprintf(file, "%s\"\\u%04x\":%d", byte ? "," : "", itself ? byte : 256 + shifted, byte);
        shifted += !itself;
    }
    fprintf(file, "}}}");
    fclose(file);
}

/* The 288 rows of Mamba-2's embedding, 256 ids in the tokenizer beside it. */
static void check_padded_folder(void) {
    char from[512], to[512], name[600];
    const char *const files[] = { "config.json", "model.safetensors" };
    join(from, sizeof from, family, "mamba2-micro");
    join(to, sizeof to, folder, "padded-mamba2");
    CHECK(sn_platform_make_folder(to) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < 2; i++) copy_file(from, to, files[i]);
    write_small_tokenizer(to);
    check_padding(to, 256);
    for (int i = 0; i < 2; i++) remove(join(name, sizeof name, to, files[i]));
    remove(join(name, sizeof name, to, "tokenizer.json"));
    remove(to);
}

int main(int argc, char **argv) {
    char path[512];
    if (argc < 4) return fprintf(stderr, "usage: test_family MODELS FOLDER FAMILY\n"), 2;
    models = argv[1];
    folder = argv[2];
    family = argv[3];
    for (size_t i = 0; i < N_MEMBERS; i++)
        for (int32_t activations = SN_ACTIVATIONS_INT8; activations <= SN_ACTIVATIONS_F32;
             activations++) {
            check_ways(i, activations);
            check_overflow(i, activations);
            check_huge_states(i, activations);
        }
    check_strangers();
    check_padding(path_of(0, path), 294);
    check_padded_folder();
    return check_report("family");
}
