/*
 * test_state: a sequence may be cut anywhere: by prefill calls, by saving and restoring, by going
 * on with a packed copy of the model. Nothing of that changes a bit. And damaged bytes are refused.
 * Usage: test_state models/test FOLDER-FOR-FILES [tests/data/state] [--write-golden]
 */
#include "models.h"

#include "hash.h"
#include "text/sampler.h"

#define N 48
#define GOLDEN "rwkv7-micro.f32.after-8.snstate"

static const char *models, *folder, *data = "tests/data/state";

typedef struct run { /* one model and what it makes of N tokens */
    sn_model *model;
    int32_t tokens[N];
    sn_state *end;
    float *logits; /* after the last token */
    size_t vocab;
} run;

static run start_run(const char *path) {
    run r = { .model = load_model(path, NULL) };
    r.vocab = (size_t)sn_model_vocab(r.model);
    random_tokens(r.tokens, N, (int32_t)r.vocab, 5);
    r.end = new_state(r.model);
    r.logits = malloc(r.vocab * sizeof(float));
    CHECK(sn_state_prefill(r.end, r.tokens, N, r.logits) == SN_OK, "%s", sn_last_error());
    return r;
}

static void end_run(run *r) {
    sn_state_free(r->end);
    free(r->logits);
    sn_model_free(r->model);
}

static void check_end(const run *r, const sn_state *state, const float *logits, const char *how,
                      int split) {
    double difference = -1.0;
    CHECK(sn_state_compare(state, r->end, &difference) == SN_OK && difference == 0.0,
          "%s at %d: states differ by %g", how, split, difference);
    CHECK(memcmp(logits, r->logits, r->vocab * sizeof(float)) == 0, "%s at %d: logits differ", how,
          split);
    CHECK(sn_state_position(state) == N, "%s at %d: position %g", how, split,
          sn_state_position(state));
}

static uint8_t *save(const sn_state *state, const sn_sampler *sampler, size_t *size) {
    CHECK(sn_state_save(state, sampler, NULL, 0, size) == SN_OK, "%s", sn_last_error());
    uint8_t *bytes = malloc(*size);
    CHECK(sn_state_save(state, sampler, bytes, *size, size) == SN_OK, "%s", sn_last_error());
    return bytes;
}

/* ---- every split point ----------------------------------------------------------------------- */

/* Tokens from `split` on, from saved bytes, on a fresh state of `model`. */
static void go_on(const run *r, const sn_model *model, const uint8_t *bytes, size_t size, int split,
                  const char *how) {
    sn_state *state = new_state(model);
    float *logits = calloc(r->vocab, sizeof(float));
    CHECK(sn_state_restore(state, NULL, bytes, size) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_position(state) == split, "position %g", sn_state_position(state));
    CHECK(sn_state_prefill(state, r->tokens + split, N - split, logits) == SN_OK, "%s",
          sn_last_error());
    if (split < N) check_end(r, state, logits, how, split);
    sn_state_free(state);
    free(logits);
}

/* A clone goes on alike and leaves its origin where it is; reset, it is a fresh state. */
static void check_clone(const run *r, const sn_state *state, int split) {
    float *logits = calloc(r->vocab, sizeof(float));
    sn_state *clone;
    CHECK(sn_state_clone(state, &clone) == SN_OK, "%s", sn_last_error());
    for (int i = split; i < N; i++)
        CHECK(sn_state_step(clone, r->tokens[i], logits) == SN_OK, "%s", sn_last_error());
    check_end(r, clone, split < N ? logits : r->logits, "cloned and stepped", split);
    CHECK(sn_state_position(state) == split, "the origin at %g", sn_state_position(state));
    CHECK(sn_state_reset(clone) == SN_OK && sn_state_position(clone) == 0, "reset");
    CHECK(sn_state_prefill(clone, r->tokens, N, logits) == SN_OK, "%s", sn_last_error());
    check_end(r, clone, logits, "reset", split);
    sn_state_free(clone);
    free(logits);
}

static void check_splits(const run *r, const sn_model *packed) {
    float *logits = calloc(r->vocab, sizeof(float));
    for (int split = 0; split <= N; split++) {
        size_t size;
        sn_state *state = new_state(r->model);
        CHECK(sn_state_prefill(state, r->tokens, split, logits) == SN_OK, "%s", sn_last_error());
        uint8_t *bytes = save(state, NULL, &size);
        if (split % 8 == 0) check_clone(r, state, split);
        CHECK(sn_state_prefill(state, r->tokens + split, N - split, logits) == SN_OK, "%s",
              sn_last_error());
        check_end(r, state, logits, "prefill", split);
        go_on(r, r->model, bytes, size, split, "saved and restored");
        go_on(r, packed, bytes, size, split, "restored beside a packed model");
        sn_state_free(state);
        free(bytes);
    }
    free(logits);
}

/* ---- whose bytes they are -------------------------------------------------------------------- */

static void check_identity(const run *r, const sn_model *other) {
    size_t size, own_size;
    double difference;
    sn_state *state = new_state(other);
    uint8_t *bytes = save(r->end, NULL, &size);
    CHECK(sn_state_prefill(state, r->tokens, 3, NULL) == SN_OK, "%s", sn_last_error());
    uint8_t *before = save(state, NULL, &own_size);
    CHECK(sn_state_restore(state, NULL, bytes, size) == SN_E_MISMATCH, "%s", sn_last_error());
    uint8_t *after = save(state, NULL, &own_size);
    CHECK(memcmp(before, after, own_size) == 0, "a refused state has changed the old one");
    CHECK(sn_state_compare(state, r->end, &difference) == SN_E_MISMATCH, "compared");
    sn_state_free(state);
    free(bytes);
    free(before);
    free(after);
}

static void check_model(const char *name, const char *type) {
    char path[512], copy[512], file[64];
    sn_convert_options options;
    run r = start_run(join(path, sizeof path, models, name));

    sn_convert_options_init(&options);
    options.packed = 1;
    snprintf(file, sizeof file, "state-packed.%s", name);
    join(copy, sizeof copy, folder, file);
    remove(copy);
    CHECK(sn_convert(path, copy, &options) == SN_OK, "%s", sn_last_error());
    sn_model *packed = load_model(copy, NULL);
    check_splits(&r, packed);
    sn_model_free(packed);

    options.packed = 0;
    options.type = type;
    remove(copy);
    CHECK(sn_convert(path, copy, &options) == SN_OK, "%s", sn_last_error());
    sn_model *other = load_model(copy, NULL);
    check_identity(&r, other);
    sn_model_free(other);
    remove(copy);
    end_run(&r);
}

/* ---- with a sampler -------------------------------------------------------------------------- */

static sn_sampler *new_sampler(int32_t vocab, int32_t last_n) {
    sn_sampler_options options;
    sn_sampler *sampler = NULL;
    sn_sampler_options_init(&options);
    options.seed = 11;
    options.penalty_last_n = last_n;
    options.repetition_penalty = 1.3f;
    options.frequency_penalty = 0.2f;
    CHECK(sn_sampler_new(vocab, NULL, &options, &sampler) == SN_OK, "%s", sn_last_error());
    return sampler;
}

static void generate(sn_state *state, sn_sampler *sampler, int32_t vocab, int32_t *ids, int n) {
    float *logits = malloc((size_t)vocab * sizeof(float));
    CHECK(sn_state_step(state, 1, logits) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < n; i++) {
        CHECK(sn_sampler_sample(sampler, logits, &ids[i]) == SN_OK, "%s", sn_last_error());
        CHECK(sn_sampler_accept(sampler, ids[i]) == SN_OK, "%s", sn_last_error());
        CHECK(sn_state_step(state, ids[i], logits) == SN_OK, "%s", sn_last_error());
    }
    free(logits);
}

static void check_sampler(const sn_model *model, int32_t last_n) {
    const int32_t vocab = sn_model_vocab(model);
    int32_t first[20], again[20];
    size_t size;
    sn_state *state = new_state(model), *restored = new_state(model);
    sn_sampler *sampler = new_sampler(vocab, last_n), *other = new_sampler(vocab, last_n);
    generate(state, sampler, vocab, first, 20);
    uint8_t *bytes = save(state, sampler, &size);
    generate(state, sampler, vocab, first, 20);
    CHECK(sn_state_restore(restored, other, bytes, size) == SN_OK, "%s", sn_last_error());
    generate(restored, other, vocab, again, 20);
    CHECK(memcmp(first, again, sizeof first) == 0, "the history did not travel (last_n %d)",
          (int)last_n);
    free(bytes);
    bytes = save(state, NULL, &size); /* without a history: the sampler's becomes empty */
    CHECK(sn_state_restore(restored, other, bytes, size) == SN_OK, "%s", sn_last_error());
    sn_sampler *fresh = new_sampler(vocab, last_n);
    CHECK(sn_sampler_saved_size(other) == sn_sampler_saved_size(fresh), "history kept");
    sn_sampler_free(fresh);
    sn_sampler_free(other);
    sn_sampler_free(sampler);
    sn_state_free(state);
    sn_state_free(restored);
    free(bytes);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static bool refused(sn_status status) {
    return status == SN_E_FORMAT || status == SN_E_UNSUPPORTED || status == SN_E_MISMATCH;
}

/* A state and a sampler that refused bytes must not reach; `kept` are their own bytes. */
static void check_unchanged(const sn_state *state, const sn_sampler *sampler, const uint8_t *kept,
                            size_t kept_size, const char *after) {
    size_t size;
    uint8_t *now = save(state, sampler, &size);
    CHECK(size == kept_size && memcmp(now, kept, size) == 0, "%s has changed the state", after);
    free(now);
}

static void check_damage(const run *r) {
    size_t size, kept_size;
    sn_state *victim = new_state(r->model), *whole = new_state(r->model);
    sn_sampler *history = new_sampler((int32_t)r->vocab, -1);
    sn_sampler *sampler = new_sampler((int32_t)r->vocab, 64);
    for (int i = 0; i < N; i++) sn_sampler_accept(history, r->tokens[i]);
    uint8_t *bytes = save(r->end, history, &size);
    CHECK(sn_state_prefill(victim, r->tokens, 5, NULL) == SN_OK, "%s", sn_last_error());
    sn_sampler_accept(sampler, 3);
    uint8_t *kept = save(victim, sampler, &kept_size);
    for (size_t i = 0; i < 8 * size; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(refused(sn_state_restore(victim, sampler, bytes, size)), "bit %zu flipped: taken", i);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    check_unchanged(victim, sampler, kept, kept_size, "a flipped bit");
    for (size_t n = 0; n < size; n++) { /* in a block of its own, for AddressSanitizer */
        uint8_t *cut = malloc(n ? n : 1);
        memcpy(cut, bytes, n);
        CHECK(sn_state_restore(victim, sampler, cut, n) == SN_E_FORMAT, "%zu bytes: taken", n);
        free(cut);
    }
    check_unchanged(victim, sampler, kept, kept_size, "a truncation");
    CHECK(sn_state_restore(whole, sampler, bytes, size) == SN_OK, "%s", sn_last_error());
    sn_state_free(victim);
    sn_state_free(whole);
    sn_sampler_free(history);
    sn_sampler_free(sampler);
    free(bytes);
    free(kept);
}

/* Sound bytes of another make: byte `at` changed and the check value set right again. */
static sn_status restore_changed(sn_state *state, const uint8_t *bytes, size_t size, size_t at,
                                 uint8_t value) {
    uint8_t *changed = malloc(size);
    memcpy(changed, bytes, size);
    changed[at] = value;
    const uint64_t hash = sn_hash(changed + 80, size - 80, sn_hash(changed, 72, 0));
    for (int i = 0; i < 8; i++) changed[72 + i] = (uint8_t)(hash >> 8 * i);
    const sn_status status = sn_state_restore(state, NULL, changed, size);
    free(changed);
    return status;
}

static void check_versions(const run *r) {
    static const struct {
        size_t at;
        uint8_t value;
        sn_status want;
    } cases[] = {
        { 40, 48, SN_OK },            { 8, 2, SN_E_UNSUPPORTED },  { 12, 81, SN_E_UNSUPPORTED },
        { 60, 2, SN_E_UNSUPPORTED },  { 61, 1, SN_E_UNSUPPORTED }, { 64, 1, SN_E_UNSUPPORTED },
        { 71, 128, SN_E_UNSUPPORTED }, { 0, 's', SN_E_FORMAT },    { 56, 4, SN_E_FORMAT },
        { 49, 0, SN_E_FORMAT },       { 20, '8', SN_E_MISMATCH },  { 31, 'x', SN_E_MISMATCH },
        { 39, 0xee, SN_E_MISMATCH },
    };
    size_t size;
    sn_state *state = new_state(r->model);
    uint8_t *bytes = save(r->end, NULL, &size);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sn_status got = restore_changed(state, bytes, size, cases[i].at, cases[i].value);
        CHECK(got == cases[i].want, "byte %zu = %d: %d, %s", cases[i].at, cases[i].value, (int)got,
              sn_last_error());
    }
    free(bytes);
    sn_state_free(state);
}

static void check_buffers(const run *r) {
    size_t size = 0, needed;
    uint8_t *bytes = save(r->end, NULL, &needed);
    memset(bytes, 0xa5, needed);
    CHECK(sn_state_save(r->end, NULL, bytes, needed - 1, &size) == SN_E_INVAL && size == needed,
          "too small a buffer was taken");
    CHECK(bytes[0] == 0xa5 && bytes[needed - 2] == 0xa5, "a refused buffer was written to");
    CHECK(sn_state_save(r->end, NULL, NULL, needed, &size) == SN_E_INVAL, "NULL was taken");
    CHECK(sn_state_save(r->end, NULL, bytes, needed + 7, &size) == SN_OK && size == needed, "%s",
          sn_last_error());
    CHECK(sn_state_save(r->end, NULL, bytes, needed, NULL) == SN_E_INVAL, "size = NULL was taken");
    free(bytes);
}

/* ---- the golden file ------------------------------------------------------------------------- */

/* Eight tokens, then three in the history of a sampler: the bytes of docs/state-format.md. */
static void check_golden(const run *r, bool write) {
    char path[512];
    size_t size, golden_size;
    sn_state *state = new_state(r->model);
    sn_sampler *sampler = new_sampler((int32_t)r->vocab, 64);
    for (int32_t i = 0; i < 8; i++)
        CHECK(sn_state_step(state, i * 7 + 1, NULL) == SN_OK, "%s", sn_last_error());
    for (int32_t id = 5; id < 8; id++) sn_sampler_accept(sampler, id);
    uint8_t *bytes = save(state, sampler, &size);
    join(path, sizeof path, data, GOLDEN);
    if (write) {
        FILE *file = fopen(path, "wb");
        CHECK(file && fwrite(bytes, 1, size, file) == size, "%s cannot be written", path);
        if (file) fclose(file);
    }
    uint8_t *golden = read_file(path, &golden_size);
    CHECK(size == golden_size && memcmp(bytes, golden, size) == 0, "%s: not the bytes of today",
          path);
    CHECK(sn_state_restore(state, sampler, golden, golden_size) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_position(state) == 8, "position %g", sn_state_position(state));
    sn_state_free(state);
    sn_sampler_free(sampler);
    free(bytes);
    free(golden);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: test_state MODELS FOLDER [DATA]\n"), 2;
    models = argv[1];
    folder = argv[2];
    if (argc > 3) data = argv[3];
    check_model("rwkv7-micro.f32.gguf", "f16");
    check_model("rwkv7-micro.f16.gguf", "q8_0");
    check_model("rwkv7-k256.q8_0.gguf", "q4_0");
    check_model("rwkv7-k256.q4_k_m.gguf", "q4_0");
    const shape small = { 2, 24, 24, 8, 60, 4, 4, 4, 4, false, 0 };
    char path[512];
    run micro = start_run(join(path, sizeof path, models, "rwkv7-micro.f32.gguf"));
    check_sampler(micro.model, 64);
    check_sampler(micro.model, 7);
    check_sampler(micro.model, -1);
    check_versions(&micro);
    check_buffers(&micro);
    check_golden(&micro, argc > 4 && strcmp(argv[4], "--write-golden") == 0);
    end_run(&micro);
    write_model(&small, join(path, sizeof path, folder, "state-small.gguf"));
    run damaged = start_run(path);
    check_damage(&damaged);
    end_run(&damaged);
    remove(path);
    return check_report("state");
}
