/*
 * fuzz_model FILE [MUTATIONS [SEED]]: mutates the keys, the tensors' descriptions and some of the
 * data of a small GGUF model in memory and loads the result; what loads is run in steps, in chunks
 * and as a batch. Nothing may crash, hang or fail without a text, and what runs must not depend on
 * how the tokens are fed. Compiled with SN_LIBFUZZER and -fsanitize=fuzzer it is a libFuzzer
 * target instead.
 */
#include "check.h"

#include "sunnynet.h"

#include <stdbool.h>

#define N 5
#define MOST_VOCAB (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, sn_last_error());
    abort();
}

/* Numbers may overflow, whatever else must work. Memory is the machine's affair. */
static bool ran(sn_status status, const char *what) {
    demand(status == SN_OK || status == SN_E_NUMERIC || status == SN_E_NOMEM, what);
    return status == SN_OK;
}

static void check_finite(const float *logits, size_t n) {
    for (size_t i = 0; i < n; i++) demand(logits[i] - logits[i] == 0.0f, "a logit is not finite");
}

/* Logits of N tokens, step by step; false if they are not finite. */
static bool run_steps(const sn_model *model, const int32_t *tokens, float *logits) {
    const size_t vocab = (size_t)sn_model_vocab(model);
    sn_state *state;
    bool good = ran(sn_state_new(model, &state), "state");
    if (!good) return false;
    for (int i = 0; i < N && good; i++)
        good = ran(sn_state_step(state, tokens[i], logits + (size_t)i * vocab), "step");
    if (good) check_finite(logits, N * vocab);
    sn_state_free(state);
    return good;
}

static void run_chunks(const sn_model *model, const int32_t *tokens, const float *wanted,
                       float *logits) {
    const size_t vocab = (size_t)sn_model_vocab(model), bytes = N * vocab * sizeof(float);
    sn_state *state;
    if (!ran(sn_state_new(model, &state), "state")) return;
    demand(sn_state_prefill_all(state, tokens, N, logits) == SN_OK, "prefill after good steps");
    demand(memcmp(logits, wanted, bytes) == 0, "prefill and steps differ");
    sn_state_free(state);
}

/* Two states of a batch that see the same tokens, one restored from the other's bytes. */
static void run_batch(const sn_model *model, const int32_t *tokens, const float *wanted,
                      float *logits) {
    const size_t vocab = (size_t)sn_model_vocab(model);
    sn_state *states[2] = { NULL, NULL };
    sn_batch *batch = NULL;
    size_t size = 0;
    if (ran(sn_state_new(model, &states[0]), "state") &&
        ran(sn_state_new(model, &states[1]), "state") &&
        ran(sn_batch_new(model, 2, &batch), "batch")) {
        demand(sn_state_prefill(states[0], tokens, N - 1, NULL) == SN_OK, "prefill");
        demand(sn_state_save(states[0], NULL, NULL, 0, &size) == SN_OK, "save");
        uint8_t *saved = malloc(size);
        demand(saved && sn_state_save(states[0], NULL, saved, size, &size) == SN_OK, "save");
        demand(sn_state_restore(states[1], NULL, saved, size) == SN_OK, "restore");
        free(saved);
        const int32_t last[2] = { tokens[N - 1], tokens[N - 1] };
        demand(sn_batch_step(batch, states, last, 2, logits) == SN_OK, "batch after good steps");
        for (size_t i = 0; i < 2; i++)
            demand(memcmp(logits + i * vocab, wanted + (N - 1) * vocab, vocab * sizeof(float)) == 0,
                   "batch and steps differ");
    }
    sn_batch_free(batch);
    sn_state_free(states[0]);
    sn_state_free(states[1]);
}

static void run(const sn_model *model) {
    const size_t vocab = (size_t)sn_model_vocab(model);
    int32_t tokens[N];
    if (vocab > MOST_VOCAB) return;
    for (int i = 0; i < N; i++) tokens[i] = (int32_t)((size_t)(7 * i + 3) % vocab);
    float *wanted = malloc(N * vocab * sizeof(float)), *logits = malloc(N * vocab * sizeof(float));
    if (wanted && logits && run_steps(model, tokens, wanted)) {
        run_chunks(model, tokens, wanted, logits);
        run_batch(model, tokens, wanted, logits);
    }
    free(wanted);
    free(logits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_model_options options;
    sn_model *model;
    sn_model_options_init(&options);
    options.n_threads = 1;
    options.max_chunk = 3;
    if (sn_model_load_memory(data, size, &options, &model) != SN_OK) {
        demand(strlen(sn_last_error()) > 8, "refused without a reason");
        return 0;
    }
    run(model);
    sn_model_free(model);
    return 0;
}

#ifndef SN_LIBFUZZER

/* ---- what is worth changing: the values of keys and the descriptions of tensors -------------- */

typedef struct field {
    size_t at, width;
    bool size; /* a key's number or a dimension */
} field;

#define MOST_FIELDS 4096

typedef struct layout {
    const uint8_t *data;
    size_t at; /* while the file is walked through */
    size_t header;
    field fields[MOST_FIELDS];
    size_t n;
    struct {
        size_t name, length; /* where it stands */
        size_t dims, n_dims; /* type and offset stand behind them */
    } tensors[MOST_FIELDS];
    size_t n_tensors;
} layout;

static uint64_t number_at(const uint8_t *p, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static void set_number(uint8_t *p, size_t width, uint64_t value) {
    for (size_t i = 0; i < width; i++) p[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t take(layout *l, size_t width) {
    l->at += width;
    return number_at(l->data + l->at - width, width);
}

static void add(layout *l, size_t at, size_t width, bool size) {
    if (l->n < MOST_FIELDS && width) l->fields[l->n++] = (field){ at, width, size };
}

/* "tokenizer.*" or "sunnynet.tokenizer.*": other programs look after them. */
static bool of_tokenizer(const uint8_t *key, size_t length) {
    return (length > 9 && !memcmp(key, "tokenizer", 9)) ||
           (length > 18 && !memcmp(key + 9, "tokenizer", 9));
}

/* The file is a good one, so nothing is checked. */
static void walk_key(layout *l) {
    static const size_t widths[13] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    enum { U32 = 4, STRING = 8, ARRAY = 9 };
    const size_t length = (size_t)take(l, 8), key = l->at;
    l->at += length;
    size_t kind = (size_t)take(l, 4), count = 1;
    const bool array = kind == ARRAY, tokenizer = of_tokenizer(l->data + key, length);
    if (array) {
        kind = (size_t)take(l, 4);
        count = (size_t)take(l, 8);
    }
    if (!array && !tokenizer) add(l, key, length, false);
    for (size_t i = 0; i < count; i++) {
        const size_t width = kind == STRING ? (size_t)take(l, 8) : widths[kind];
        if (!array && !tokenizer) add(l, l->at, width, kind == U32);
        l->at += width;
    }
}

static void walk_tensor(layout *l) {
    const size_t length = (size_t)take(l, 8), name = l->at;
    add(l, name, length, false);
    l->at += length;
    const size_t dims = (size_t)take(l, 4);
    if (l->n_tensors < MOST_FIELDS) {
        l->tensors[l->n_tensors].name = name;
        l->tensors[l->n_tensors].length = length;
        l->tensors[l->n_tensors].dims = l->at;
        l->tensors[l->n_tensors++].n_dims = dims;
    }
    for (size_t d = 0; d < dims; d++) {
        add(l, l->at, 8, true);
        l->at += 8;
    }
    add(l, l->at, 4, false);     /* type */
    add(l, l->at + 4, 8, false); /* offset */
    l->at += 12;
}

static void walk(layout *l, const uint8_t *data) {
    l->data = data;
    l->at = 8;
    const uint64_t tensors = take(l, 8), keys = take(l, 8);
    for (uint64_t i = 0; i < keys; i++) walk_key(l);
    for (uint64_t i = 0; i < tensors; i++) walk_tensor(l);
    l->header = l->at;
}

/* ---- mutations ------------------------------------------------------------------------------- */

static const field *any_field(const layout *l, check_random *random, bool size) {
    for (;;) {
        const field *f = &l->fields[check_below(random, (uint32_t)l->n)];
        if (!size || f->size) return f;
    }
}

/* One size becomes another wherever it stands: most of such files are still sound. */
static void resize(const layout *l, uint8_t *data, check_random *random) {
    const field *chosen = any_field(l, random, true);
    const uint64_t old = number_at(data + chosen->at, chosen->width);
    const uint64_t sizes[] = { 1, 2, 3, 4, 15, 16, 17, 32, old / 2, old - 1, old + 1, 2 * old };
    const uint64_t value = sizes[check_below(random, sizeof sizes / sizeof sizes[0])];
    for (size_t i = 0; i < l->n; i++) {
        const field *f = &l->fields[i];
        if (f->size && number_at(data + f->at, f->width) == old && check_below(random, 16))
            set_number(data + f->at, f->width, value);
    }
}

static void scramble_field(const layout *l, uint8_t *data, check_random *random) {
    static const uint64_t numbers[] = { 0, 1, 2, 3, 8, 16, 17, 0x7f, 0xff, 0x10000, 0x3f800000,
                                        0x7f800000, 0x7fc00000, 0x80000000, 0xbf800000, 0x33333333,
                                        0xffffffff, 0x4000000000000000, 0xffffffffffffffff };
    const field *f = any_field(l, random, false);
    if (check_below(random, 2))
        data[f->at + check_below(random, (uint32_t)f->width)] = (uint8_t)check_next(random);
    else
        set_number(data + f->at, f->width < 8 ? f->width : 8,
                   numbers[check_below(random, sizeof numbers / sizeof numbers[0])]);
}

/* A stretch of the weights becomes huge, tiny, not finite, or noise. */
static void scramble_data(const layout *l, uint8_t *data, size_t size, check_random *random) {
    static const uint32_t words[] = { 0x7f7fffff, 0xff7fffff, 0x7bff7bff, 0x00000001, 0x7f7f7f7f,
                                      0x7f800000, 0x60000000, 0 };
    size_t at = l->header + check_below(random, (uint32_t)(size - l->header));
    const size_t n = (size_t)4 << check_below(random, 9);
    const uint32_t which = check_below(random, sizeof words / sizeof words[0]);
    at -= at % 4;
    for (size_t i = 0; i < n && at + i + 4 <= size; i += 4)
        set_number(data + at + i, 4, words[which] ? words[which] : check_next(random));
}

static void mutate(const layout *l, uint8_t *data, size_t size, check_random *random) {
    uint32_t changes = 1 + check_below(random, 3);
    while (changes--) {
        const uint32_t kind = check_below(random, 4);
        if (kind < 2) resize(l, data, random);
        else if (kind == 2) scramble_field(l, data, random);
        else scramble_data(l, data, size, random);
    }
}

#define MOST_ELEMENTS (1 << 20)
#define ALIGNMENT 32

static uint64_t elements_of(const layout *l, const uint8_t *data, size_t tensor) {
    uint64_t n = 1;
    for (size_t d = 0; d < l->tensors[tensor].n_dims && n <= MOST_ELEMENTS; d++)
        n *= number_at(data + l->tensors[tensor].dims + 8 * d, 8) & 0xffffffff;
    return n;
}

/* A file of the same header with room for its shapes: float32 noise. NULL if that is too much. */
static uint8_t *fill(const layout *l, const uint8_t *data, size_t *size, check_random *random) {
    const size_t start = (l->header + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint64_t total = 0;
    for (size_t i = 0; i < l->n_tensors; i++)
        total += (elements_of(l, data, i) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (total > MOST_ELEMENTS) return NULL;
    *size = start + 4 * (size_t)total;
    uint8_t *filled = calloc(*size, 1);
    if (!filled) return NULL;
    memcpy(filled, data, l->header);
    uint64_t at = 0;
    for (size_t i = 0; i < l->n_tensors; i++) {
        uint8_t *type = filled + l->tensors[i].dims + 8 * l->tensors[i].n_dims;
        set_number(type, 4, 0); /* F32 */
        set_number(type + 4, 8, 4 * at);
        at += (elements_of(l, data, i) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    for (size_t i = start; i < *size; i += 4) {
        const float value = 0.25f * check_float(random);
        memcpy(filled + i, &value, 4);
    }
    return filled;
}

/* Gives the tensor that was refused the shape that is wanted; false if it was not about that. */
static bool repair(const layout *l, uint8_t *data, const char *error) {
    unsigned long long k, rows = 1;
    const char *name = strstr(error, "tensor '"), *wanted = strstr(error, "expected ");
    if (!name || !wanted) return false;
    if (sscanf(wanted, "expected [%llu, %llu]", &k, &rows) != 2 &&
        sscanf(wanted, "expected %llu", &k) != 1)
        return false;
    name += strlen("tensor '");
    for (size_t i = 0; i < l->n_tensors; i++) {
        if (strncmp(name, (const char *)data + l->tensors[i].name, l->tensors[i].length) ||
            name[l->tensors[i].length] != '\'')
            continue;
        if (l->tensors[i].n_dims == 1) k *= rows;
        for (size_t d = 0; d < l->tensors[i].n_dims; d++)
            set_number(data + l->tensors[i].dims + 8 * d, 8, d == 0 ? k : d == 1 ? rows : 1);
        return true;
    }
    return false;
}

/* Other sizes in the keys, and tensors that go with them. */
static void reshape(const layout *l, uint8_t *data, check_random *random) {
    uint32_t changes = 1 + check_below(random, 3);
    uint8_t *filled = NULL;
    size_t size;
    sn_model_options options;
    sn_model *model;
    sn_model_options_init(&options);
    options.header_only = 1;
    while (changes--) resize(l, data, random);
    for (int tries = 0; tries < 80; tries++) {
        free(filled);
        filled = fill(l, data, &size, random);
        if (!filled) return;
        if (sn_model_load_memory(filled, size, &options, &model) == SN_OK) {
            sn_model_free(model);
            break;
        }
        if (!repair(l, data, sn_last_error())) break;
    }
    LLVMFuzzerTestOneInput(filled, size);
    free(filled);
}

static uint8_t *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size ? *size : 1);
    if (data && fread(data, 1, *size, file) != *size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv) {
    static layout l;
    size_t size = 0;
    uint8_t *data = argc > 1 ? load(argv[1], &size) : NULL;
    if (!data) {
        fprintf(stderr, "usage: fuzz_model FILE [MUTATIONS [SEED]]\n");
        return 2;
    }
    const long mutations = argc > 2 ? atol(argv[2]) : 1000;
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    walk(&l, data);
    LLVMFuzzerTestOneInput(data, size);
    for (long i = 0; i < mutations; i++) {
        check_random random = { seed + (uint64_t)i };
        uint8_t *copy = malloc(size); /* anew: a sanitizer sees what is read behind its end */
        if (!copy) return 2;
        memcpy(copy, data, size);
        if (check_below(&random, 3)) {
            mutate(&l, copy, size, &random);
            LLVMFuzzerTestOneInput(copy, size);
        } else {
            reshape(&l, copy, &random);
        }
        free(copy);
    }
    free(data);
    return 0;
}

#endif
