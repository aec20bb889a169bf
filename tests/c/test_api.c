/*
 * test_api: the public functions when they are misused, interrupted and out of memory, and models
 * of unusual shape.
 * Usage: test_api models/test FOLDER-FOR-FILES
 */
#include "models.h"

#include "memory.h"

#include <math.h>

static const char *models, *folder;
static char micro[512], tiny[512], vocabulary[512], out_file[512];

static const shape tiny_shape = { 2, 48, 80, 16, 40, 8, 12, 4, 20, false, 0 };

/* The call fails with this code and says why, in one line. */
#define FAILS(code, call)                                                                     \
    do {                                                                                      \
        sn_set_error("%s", "");                                                               \
        const sn_status got_ = (call);                                                        \
        CHECK(got_ == (code), "%d: %s", (int)got_, sn_last_error());                          \
        CHECK(sn_last_error()[0] && !strchr(sn_last_error(), '\n'), "no reason given");       \
    } while (0)
#define OK(call)                                                                              \
    do {                                                                                      \
        const sn_status got_ = (call);                                                        \
        CHECK(got_ == SN_OK, "%d: %s", (int)got_, sn_last_error());                           \
    } while (0)

static bool same_floats(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof(float)) == 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void check_static(void) {
    CHECK(strcmp(sn_version(), SN_VERSION) == 0, "%s", sn_version());
    for (sn_status s = -20; s <= 5; s++)
        CHECK(sn_status_text(s) && sn_status_text(s)[0], "no text for %d", (int)s);
    CHECK(sn_backend_count() >= 1 && strcmp(sn_backend_name(0), "scalar") == 0, "no scalar");
    CHECK(sn_backend_usable(0) == 1, "scalar is not usable");
    CHECK(!sn_backend_name(-1) && !sn_backend_name(sn_backend_count()), "a back end too many");
    CHECK(!sn_backend_usable(-1) && !sn_backend_usable(INT32_MAX), "a back end too many");
    FAILS(SN_E_INVAL, sn_backend_default(NULL));
    sn_model_options_init(NULL);
    sn_sampler_options_init(NULL);
    sn_convert_options_init(NULL);
    sn_model_free(NULL);
    sn_state_free(NULL);
    sn_batch_free(NULL);
    sn_tokenizer_free(NULL);
    sn_text_free(NULL);
    sn_sampler_free(NULL);
    CHECK(sn_model_vocab(NULL) == 0 && sn_model_tensor_count(NULL) == 0, "counts of NULL");
    CHECK(!sn_model_tokenizer(NULL), "a tokenizer of NULL");
    CHECK(sn_state_position(NULL) == 0 && sn_state_weight_bytes_read(NULL) == 0, "NULL");
    CHECK(sn_batch_weight_bytes_read(NULL) == 0, "NULL");
    CHECK(sn_tokenizer_vocab(NULL) == 0 && sn_tokenizer_bos(NULL) == -1 &&
          sn_tokenizer_eos(NULL) == -1 && sn_tokenizer_eot(NULL) == -1, "NULL");
    CHECK(sn_tokenizer_kind(NULL), "NULL");
}

static void check_load_arguments(void) {
    sn_model *model = NULL;
    sn_model_options o;
    uint8_t byte = 0;
    sn_model_options_init(&o);
    FAILS(SN_E_INVAL, sn_model_load(NULL, NULL, &model));
    FAILS(SN_E_INVAL, sn_model_load(tiny, NULL, NULL));
    FAILS(SN_E_IO, sn_model_load("no such\nfile", NULL, &model));
    FAILS(SN_E_INVAL, sn_model_load_memory(NULL, 5, NULL, &model));
    FAILS(SN_E_INVAL, sn_model_load_memory(&byte, 1, NULL, NULL));
    FAILS(SN_E_FORMAT, sn_model_load_memory(&byte, 1, NULL, &model));
    FAILS(SN_E_FORMAT, sn_model_load_memory(&byte, 0, NULL, &model));
    FAILS(SN_E_INVAL, sn_model_load_source(NULL, NULL, &model));
#define BAD_OPTION(code, field, value)                                                        \
    do {                                                                                      \
        sn_model_options bad = o;                                                             \
        bad.field = value;                                                                    \
        FAILS(code, sn_model_load(tiny, &bad, &model));                                       \
    } while (0)
    BAD_OPTION(SN_E_INVAL, struct_size, 0);
    BAD_OPTION(SN_E_INVAL, struct_size, sizeof o - 1);
    BAD_OPTION(SN_E_INVAL, n_threads, -1);
    BAD_OPTION(SN_E_INVAL, n_threads, 100000);
    BAD_OPTION(SN_E_INVAL, activations, 2);
    BAD_OPTION(SN_E_INVAL, activations, -1);
    BAD_OPTION(SN_E_INVAL, max_chunk, -1);
    BAD_OPTION(SN_E_INVAL, max_chunk, 1 << 20);
    BAD_OPTION(SN_E_UNSUPPORTED, backend, "no such back end");
    BAD_OPTION(SN_E_UNSUPPORTED, backend, "");
#undef BAD_OPTION
    CHECK(!model, "a model in spite of everything");
}

static void check_model_arguments(const sn_model *model) {
    sn_model_info info = { .struct_size = sizeof info };
    sn_tensor_info tensor = { .struct_size = sizeof tensor };
    FAILS(SN_E_INVAL, sn_model_get_info(NULL, &info));
    FAILS(SN_E_INVAL, sn_model_get_info(model, NULL));
    FAILS(SN_E_INVAL, sn_model_get_tensor(NULL, 0, &tensor));
    FAILS(SN_E_INVAL, sn_model_get_tensor(model, 0, NULL));
    FAILS(SN_E_INVAL, sn_model_get_tensor(model, -1, &tensor));
    FAILS(SN_E_INVAL, sn_model_get_tensor(model, sn_model_tensor_count(model), &tensor));
    info.struct_size = 8;
    tensor.struct_size = 8;
    FAILS(SN_E_INVAL, sn_model_get_info(model, &info));
    FAILS(SN_E_INVAL, sn_model_get_tensor(model, 0, &tensor));
}

static void check_state_arguments(const sn_model *model) {
    const int32_t vocab = sn_model_vocab(model), bad[] = { 1, 2, vocab, 3 };
    float *logits = malloc(4 * (size_t)vocab * sizeof(float));
    sn_state *state = new_state(model), *other = NULL;
    double difference;
    size_t size = 0;
    FAILS(SN_E_INVAL, sn_state_new(NULL, &other));
    FAILS(SN_E_INVAL, sn_state_new(model, NULL));
    FAILS(SN_E_INVAL, sn_state_reset(NULL));
    FAILS(SN_E_INVAL, sn_state_clone(NULL, &other));
    FAILS(SN_E_INVAL, sn_state_clone(state, NULL));
    FAILS(SN_E_INVAL, sn_state_step(NULL, 0, logits));
    FAILS(SN_E_INVAL, sn_state_step(state, -1, logits));
    FAILS(SN_E_INVAL, sn_state_step(state, vocab, logits));
    FAILS(SN_E_INVAL, sn_state_step(state, INT32_MIN, logits));
    FAILS(SN_E_INVAL, sn_state_prefill(NULL, bad, 1, logits));
    FAILS(SN_E_INVAL, sn_state_prefill(state, NULL, 1, logits));
    FAILS(SN_E_INVAL, sn_state_prefill(state, bad, -1, logits));
    FAILS(SN_E_INVAL, sn_state_prefill(state, bad, 4, logits));
    FAILS(SN_E_INVAL, sn_state_prefill_all(state, bad, 4, logits));
    FAILS(SN_E_INVAL, sn_state_prefill_all(NULL, bad, 1, logits));
    OK(sn_state_prefill(state, NULL, 0, NULL));
    OK(sn_state_prefill_all(state, bad, 0, logits));
    CHECK(sn_state_position(state) == 0, "a refused call has moved the state");
    FAILS(SN_E_INVAL, sn_state_set_abort(NULL, NULL, NULL));
    FAILS(SN_E_INVAL, sn_state_save(NULL, NULL, NULL, 0, &size));
    FAILS(SN_E_INVAL, sn_state_save(state, NULL, NULL, 0, NULL));
    FAILS(SN_E_INVAL, sn_state_restore(NULL, NULL, logits, 8));
    FAILS(SN_E_INVAL, sn_state_restore(state, NULL, NULL, 8));
    FAILS(SN_E_INVAL, sn_state_compare(NULL, state, &difference));
    FAILS(SN_E_INVAL, sn_state_compare(state, NULL, &difference));
    FAILS(SN_E_INVAL, sn_state_compare(state, state, NULL));
    CHECK(!other, "a state in spite of everything");
    sn_state_free(state);
    free(logits);
}

static void check_batch_arguments(const sn_model *model, const sn_model *another) {
    sn_state *states[4] = { new_state(model), new_state(model), NULL, new_state(another) };
    sn_state *twice[2] = { states[0], states[0] }, *mixed[2] = { states[0], states[3] };
    const int32_t tokens[4] = { 1, 2, 3, sn_model_vocab(model) };
    sn_batch *batch = NULL;
    FAILS(SN_E_INVAL, sn_batch_new(NULL, 1, &batch));
    FAILS(SN_E_INVAL, sn_batch_new(model, 0, &batch));
    FAILS(SN_E_INVAL, sn_batch_new(model, -1, &batch));
    FAILS(SN_E_INVAL, sn_batch_new(model, 4097, &batch));
    FAILS(SN_E_INVAL, sn_batch_new(model, 1, NULL));
    OK(sn_batch_new(model, 3, &batch));
    FAILS(SN_E_INVAL, sn_batch_step(NULL, states, tokens, 1, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, NULL, tokens, 1, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, states, NULL, 1, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, states, tokens, -1, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, states, tokens, 4, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, states, tokens, 3, NULL)); /* the third is NULL */
    FAILS(SN_E_INVAL, sn_batch_step(batch, twice, tokens, 2, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, mixed, tokens, 2, NULL));
    FAILS(SN_E_INVAL, sn_batch_step(batch, states, tokens + 2, 2, NULL));
    OK(sn_batch_step(batch, NULL, NULL, 0, NULL));
    for (int i = 0; i < 2; i++)
        CHECK(sn_state_position(states[i]) == 0, "a refused batch has moved state %d", i);
    sn_batch_free(batch);
    for (int i = 0; i < 4; i++) sn_state_free(states[i]);
}

static void check_tokenizer_arguments(void) {
    sn_tokenizer *t = NULL;
    sn_text *text = NULL;
    const char *const stops[] = { "", NULL, "\xff" };
    const char *bytes;
    size_t length;
    int32_t ids[4], n, stopped;
    FAILS(SN_E_INVAL, sn_tokenizer_load(NULL, &t));
    FAILS(SN_E_INVAL, sn_tokenizer_load(vocabulary, NULL));
    FAILS(SN_E_IO, sn_tokenizer_load("no such file", &t));
    FAILS(SN_E_FORMAT, sn_tokenizer_load(tiny, &t));
    OK(sn_tokenizer_load(vocabulary, &t));
    FAILS(SN_E_INVAL, sn_tokenizer_encode(NULL, "a", 1, ids, 4, &n));
    FAILS(SN_E_INVAL, sn_tokenizer_encode(t, NULL, 1, ids, 4, &n));
    FAILS(SN_E_INVAL, sn_tokenizer_encode(t, "a", 1, NULL, 4, &n));
    FAILS(SN_E_INVAL, sn_tokenizer_encode(t, "a", 1, ids, -1, &n));
    FAILS(SN_E_INVAL, sn_tokenizer_encode(t, "a", 1, ids, 4, NULL));
    OK(sn_tokenizer_encode(t, NULL, 0, NULL, 0, &n));
    FAILS(SN_E_INVAL, sn_tokenizer_token(NULL, 0, &bytes, &length));
    FAILS(SN_E_INVAL, sn_tokenizer_token(t, -1, &bytes, &length));
    FAILS(SN_E_INVAL, sn_tokenizer_token(t, sn_tokenizer_vocab(t), &bytes, &length));
    FAILS(SN_E_INVAL, sn_tokenizer_token(t, 0, NULL, &length));
    FAILS(SN_E_INVAL, sn_tokenizer_token(t, 0, &bytes, NULL));
    FAILS(SN_E_INVAL, sn_text_new(NULL, NULL, 0, &text));
    FAILS(SN_E_INVAL, sn_text_new(t, NULL, 0, NULL));
    FAILS(SN_E_INVAL, sn_text_new(t, NULL, 1, &text));
    FAILS(SN_E_INVAL, sn_text_new(t, stops, -1, &text));
    for (int i = 0; i < 3; i++) FAILS(SN_E_INVAL, sn_text_new(t, stops + i, 1, &text));
    OK(sn_text_new(t, NULL, 0, &text));
    FAILS(SN_E_INVAL, sn_text_push(NULL, 0, &bytes, &length, &stopped));
    FAILS(SN_E_INVAL, sn_text_push(text, -1, &bytes, &length, &stopped));
    FAILS(SN_E_INVAL, sn_text_push(text, 0, NULL, &length, &stopped));
    FAILS(SN_E_INVAL, sn_text_push(text, 0, &bytes, NULL, &stopped));
    FAILS(SN_E_INVAL, sn_text_push(text, 0, &bytes, &length, NULL));
    FAILS(SN_E_INVAL, sn_text_finish(NULL, &bytes, &length));
    FAILS(SN_E_INVAL, sn_text_finish(text, NULL, &length));
    FAILS(SN_E_INVAL, sn_text_finish(text, &bytes, NULL));
    sn_text_free(text);
    sn_tokenizer_free(t);
}

static void check_sampler_arguments(void) {
    const sn_logit_bias outside = { 10, 1.0f }, infinite = { 1, HUGE_VALF };
    const float logits[10] = { 0 };
    sn_sampler *s = NULL, *copy = NULL;
    sn_sampler_options o;
    int32_t id;
    sn_sampler_options_init(&o);
    FAILS(SN_E_INVAL, sn_sampler_new(0, NULL, NULL, &s));
    FAILS(SN_E_INVAL, sn_sampler_new(-1, NULL, NULL, &s));
    FAILS(SN_E_INVAL, sn_sampler_new(INT32_MAX, NULL, NULL, &s));
    FAILS(SN_E_INVAL, sn_sampler_new(10, NULL, NULL, NULL));
#define BAD_OPTION(field, value)                                                              \
    do {                                                                                      \
        sn_sampler_options bad = o;                                                           \
        bad.field = value;                                                                    \
        FAILS(SN_E_INVAL, sn_sampler_new(10, NULL, &bad, &s));                                \
    } while (0)
    BAD_OPTION(struct_size, sizeof o - 8);
    BAD_OPTION(temperature, -0.1f);
    BAD_OPTION(temperature, (float)NAN);
    BAD_OPTION(temperature, HUGE_VALF);
    BAD_OPTION(top_k, -1);
    BAD_OPTION(top_p, 0.0f);
    BAD_OPTION(top_p, 1.5f);
    BAD_OPTION(min_p, 1.0f);
    BAD_OPTION(min_p, -0.5f);
    BAD_OPTION(repetition_penalty, 0.0f);
    BAD_OPTION(presence_penalty, (float)NAN);
    BAD_OPTION(frequency_penalty, HUGE_VALF);
    BAD_OPTION(penalty_last_n, -2);
    BAD_OPTION(n_bias, 1);
    BAD_OPTION(n_bias, -1);
#undef BAD_OPTION
    o.n_bias = 1;
    o.bias = &outside;
    FAILS(SN_E_INVAL, sn_sampler_new(10, NULL, &o, &s));
    o.bias = &infinite;
    FAILS(SN_E_INVAL, sn_sampler_new(10, NULL, &o, &s));
    CHECK(!s, "a sampler in spite of everything");
    OK(sn_sampler_new(10, NULL, NULL, &s));
    FAILS(SN_E_INVAL, sn_sampler_clone(NULL, &copy));
    FAILS(SN_E_INVAL, sn_sampler_clone(s, NULL));
    FAILS(SN_E_INVAL, sn_sampler_reset(NULL));
    FAILS(SN_E_INVAL, sn_sampler_accept(NULL, 1));
    FAILS(SN_E_INVAL, sn_sampler_accept(s, -1));
    FAILS(SN_E_INVAL, sn_sampler_accept(s, 10));
    FAILS(SN_E_INVAL, sn_sampler_sample(NULL, logits, &id));
    FAILS(SN_E_INVAL, sn_sampler_sample(s, NULL, &id));
    FAILS(SN_E_INVAL, sn_sampler_sample(s, logits, NULL));
    sn_sampler_free(s);
}

static void check_convert_arguments(void) {
    sn_convert_options o;
    sn_convert_options_init(&o);
    FAILS(SN_E_INVAL, sn_convert(NULL, out_file, NULL));
    FAILS(SN_E_INVAL, sn_convert(tiny, NULL, NULL));
    FAILS(SN_E_INVAL, sn_convert(tiny, tiny, NULL));
    FAILS(SN_E_IO, sn_convert("no such file", out_file, NULL));
    FAILS(SN_E_IO, sn_convert(tiny, "no such folder/x.gguf", NULL));
    o.type = "q9_9";
    FAILS(SN_E_UNSUPPORTED, sn_convert(tiny, out_file, &o));
    o.struct_size = 0;
    FAILS(SN_E_INVAL, sn_convert(tiny, out_file, &o));
}

static void check_arguments(void) {
    sn_model *model = load_model(tiny, NULL), *another = load_model(micro, NULL);
    check_static();
    check_load_arguments();
    check_model_arguments(model);
    check_state_arguments(model);
    check_batch_arguments(model, another);
    check_tokenizer_arguments();
    check_sampler_arguments();
    check_convert_arguments();
    sn_model_free(model);
    sn_model_free(another);
}

static void check_header_only(void) {
    sn_model_options options;
    sn_model_info info = { .struct_size = sizeof info };
    sn_state *state = NULL;
    sn_batch *batch = NULL;
    sn_model_options_init(&options);
    options.header_only = 1;
    sn_model *model = load_model(micro, &options), *whole = load_model(micro, NULL);
    OK(sn_model_get_info(model, &info));
    CHECK(info.vocab == sn_model_vocab(whole) && info.n_layers > 0 && info.backend[0] == 0 &&
          strcmp(info.architecture, "rwkv7") == 0, "%s", info.architecture);
    CHECK(sn_model_tensor_count(model) == sn_model_tensor_count(whole), "tensors");
    FAILS(SN_E_INVAL, sn_state_new(model, &state));
    FAILS(SN_E_INVAL, sn_batch_new(model, 2, &batch));
    sn_model_free(model);
    sn_model_free(whole);
}

/* ---- where the bytes come from --------------------------------------------------------------- */

typedef struct feed {
    const uint8_t *at;
    size_t left, most; /* most: bytes a read returns */
    size_t extra;      /* claimed beyond what was stored */
    check_random *random; /* if set, any number up to `most` */
} feed;

static size_t feed_read(void *user, void *buffer, size_t bytes) {
    feed *f = user;
    size_t n = bytes < f->left ? bytes : f->left;
    size_t most = f->random ? 1 + check_below(f->random, (uint32_t)f->most) : f->most;
    if (n > most) n = most;
    memcpy(buffer, f->at, n);
    f->at += n;
    f->left -= n;
    return f->extra ? bytes + f->extra : n;
}

static void check_same_model(const sn_model *a, const sn_model *b) {
    const size_t vocab = (size_t)sn_model_vocab(a);
    float *x = malloc(2 * vocab * sizeof(float));
    sn_state *s = new_state(a), *t = new_state(b);
    const int32_t tokens[] = { 3, 1, 4, 1, 5, 9, 2, 6 };
    OK(sn_state_prefill(s, tokens, 8, x));
    OK(sn_state_prefill(t, tokens, 8, x + vocab));
    CHECK(same_floats(x, x + vocab, vocab), "the models differ");
    sn_state_free(s);
    sn_state_free(t);
    free(x);
}

static void check_sources(void) {
    size_t size;
    uint8_t *bytes = read_file(micro, &size);
    check_random random = { 6 };
    sn_model *whole = load_model(micro, NULL), *model = NULL;
    const size_t most[] = { 1, 7, 4096, 100000, 50 };
    OK(sn_model_load_memory(bytes, size, NULL, &model));
    check_same_model(whole, model);
    sn_model_free(model);
    for (size_t i = 0; i < 5; i++) {
        feed f = { bytes, size, most[i], 0, i == 4 ? &random : NULL };
        sn_source source = { sizeof source, "fed", size, feed_read, &f };
        OK(sn_model_load_source(&source, NULL, &model));
        check_same_model(whole, model);
        sn_model_free(model);
    }
    feed f = { bytes, size, size, 0, NULL };
    sn_source source = { sizeof source, NULL, size + 1000, feed_read, &f }; /* slack is no harm */
    if (sn_model_load_source(&source, NULL, &model) == SN_OK) sn_model_free(model);
    model = NULL;
    const uint64_t lies[] = { 0, 1, 100, size / 2, size - 40000 };
    for (size_t i = 0; i < 5; i++) { /* sizes too small, then an end too early */
        f = (feed){ bytes, size, 4096, 0, NULL };
        source.size = lies[i];
        FAILS(SN_E_FORMAT, sn_model_load_source(&source, NULL, &model));
        f = (feed){ bytes, (size_t)lies[i], 4096, 0, NULL };
        source.size = size;
        FAILS(SN_E_FORMAT, sn_model_load_source(&source, NULL, &model));
    }
    f = (feed){ bytes, size, 4096, 5, NULL };
    FAILS(SN_E_IO, sn_model_load_source(&source, NULL, &model)); /* more than was asked for */
    source.struct_size = 4;
    FAILS(SN_E_INVAL, sn_model_load_source(&source, NULL, &model));
    source.struct_size = sizeof source;
    source.read = NULL;
    FAILS(SN_E_INVAL, sn_model_load_source(&source, NULL, &model));
    CHECK(!model, "a model in spite of everything");
    sn_model_free(whole);
    free(bytes);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

typedef struct watcher {
    int calls, stop_at; /* stop_at 0: never */
    double last, total;
} watcher;

static int32_t watch(void *user, double done, double total) {
    watcher *w = user;
    w->calls++;
    CHECK(done >= w->last && done <= total && total > 0, "progress %g after %g of %g", done,
          w->last, total);
    CHECK(w->calls == 1 || total == w->total, "the total has become %g", total);
    w->last = done;
    w->total = total;
    return w->calls == w->stop_at;
}

static void check_progress(void) {
    sn_model *model = NULL;
    sn_model_options o;
    sn_convert_options c;
    watcher w = { 0 };
    sn_model_options_init(&o);
    o.progress = watch;
    o.progress_user = &w;
    OK(sn_model_load(tiny, &o, &model));
    CHECK(w.calls > 10 && w.last == w.total, "ended at %g of %g", w.last, w.total);
    sn_model_free(model);
    model = NULL;
    const int calls = w.calls;
    for (int i = 1; i <= calls; i++) {
        w = (watcher){ .stop_at = i };
        FAILS(SN_E_ABORTED, sn_model_load(tiny, &o, &model));
        CHECK(w.calls == i && !model, "went on after stop %d", i);
    }
    sn_convert_options_init(&c);
    c.progress = watch;
    c.progress_user = &w;
    w = (watcher){ 0 };
    OK(sn_convert(tiny, out_file, &c));
    CHECK(w.last == w.total, "ended at %g of %g", w.last, w.total);
    remove(out_file);
    const int converts = w.calls;
    for (int i = 1; i <= converts; i++) {
        w = (watcher){ .stop_at = i };
        FAILS(SN_E_ABORTED, sn_convert(tiny, out_file, &c));
        FILE *file = fopen(out_file, "rb");
        CHECK(!file, "a stopped conversion has left its file");
        if (file) fclose(file);
    }
}

static void check_abort(void) {
    enum { N = 30 };
    int32_t tokens[N];
    float logits[2][64];
    double difference = -1;
    sn_model_options o;
    watcher w = { .stop_at = 2 };
    sn_model_options_init(&o);
    o.max_chunk = 8;
    sn_model *model = load_model(tiny, &o);
    const size_t vocab = (size_t)sn_model_vocab(model);
    sn_state *state = new_state(model), *plain = new_state(model);
    random_tokens(tokens, N, (int32_t)vocab, 2);
    OK(sn_state_set_abort(state, watch, &w));
    FAILS(SN_E_ABORTED, sn_state_prefill(state, tokens, N, logits[0]));
    CHECK(sn_state_position(state) == 16, "stopped at %g", sn_state_position(state));
    OK(sn_state_set_abort(state, NULL, NULL));
    OK(sn_state_prefill(state, tokens + 16, N - 16, logits[0]));
    OK(sn_state_prefill(plain, tokens, N, logits[1]));
    OK(sn_state_compare(state, plain, &difference));
    CHECK(difference == 0 && same_floats(logits[0], logits[1], vocab), "an abort leaves traces");
    sn_state_free(state);
    sn_state_free(plain);
    sn_model_free(model);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Each makes one thing and frees it. */
static sn_status make_model(const void *from) {
    sn_model *model;
    sn_model_options o;
    sn_model_options_init(&o);
    o.n_threads = 2;
    SN_TRY(sn_model_load(from, &o, &model));
    sn_model_free(model);
    return SN_OK;
}

static sn_status make_state(const void *from) {
    sn_state *state, *copy;
    SN_TRY(sn_state_new(from, &state));
    const sn_status status = sn_state_clone(state, &copy);
    if (status == SN_OK) sn_state_free(copy);
    sn_state_free(state);
    return status;
}

static sn_status make_batch(const void *from) {
    sn_batch *batch;
    SN_TRY(sn_batch_new(from, 5, &batch));
    sn_batch_free(batch);
    return SN_OK;
}

static sn_status make_tokenizer(const void *from) {
    sn_tokenizer *tokenizer;
    SN_TRY(sn_tokenizer_load(from, &tokenizer));
    sn_tokenizer_free(tokenizer);
    return SN_OK;
}

static sn_status make_text(const void *from) {
    const char *const stops[] = { "ab", "b" };
    sn_text *text;
    SN_TRY(sn_text_new(from, stops, 2, &text));
    sn_text_free(text);
    return SN_OK;
}

static sn_status make_sampler(const void *from) {
    const sn_logit_bias bias = { 3, 1.0f };
    sn_sampler_options o;
    sn_sampler *sampler, *copy;
    sn_sampler_options_init(&o);
    o.bias = &bias;
    o.n_bias = 1;
    SN_TRY(sn_sampler_new(300, from, &o, &sampler));
    const sn_status status = sn_sampler_clone(sampler, &copy);
    if (status == SN_OK) sn_sampler_free(copy);
    sn_sampler_free(sampler);
    return status;
}

static sn_status make_file(const void *from) {
    sn_convert_options o;
    sn_convert_options_init(&o);
    o.type = "f16";
    o.packed = 1;
    return sn_convert(from, out_file, &o);
}

/* Every allocation fails once; AddressSanitizer sees what a failure leaves behind. */
static void check_allocations(const char *what, sn_status (*make)(const void *),
                              const void *from) {
    for (long n = 1; n < 10000; n++) {
        sn_set_error("%s", "");
        sn_alloc_fail_at(n);
        const sn_status status = make(from);
        sn_alloc_fail_at(0);
        if (status == SN_OK) {
            CHECK(n > 1, "%s allocates nothing", what);
            return;
        }
        CHECK(status == SN_E_NOMEM && sn_last_error()[0], "%s, allocation %ld: %d, %s", what, n,
              (int)status, sn_last_error());
    }
    CHECK(false, "%s never succeeds", what);
}

static void check_memory(void) {
    sn_tokenizer *tokenizer;
    sn_model *model = load_model(tiny, NULL);
    OK(sn_tokenizer_load(vocabulary, &tokenizer));
    check_allocations("load", make_model, tiny);
    check_allocations("load with a tokenizer", make_model, micro);
    check_allocations("state", make_state, model);
    check_allocations("batch", make_batch, model);
    check_allocations("tokenizer", make_tokenizer, vocabulary);
    check_allocations("text", make_text, tokenizer);
    check_allocations("sampler", make_sampler, tokenizer);
    check_allocations("convert", make_file, tiny);
    sn_alloc_fail_at(1);
    FAILS(SN_E_NOMEM, sn_selftest(NULL, NULL));
    sn_alloc_fail_at(0);
    remove(out_file);
    sn_tokenizer_free(tokenizer);
    sn_model_free(model);
}

/* Nothing that is done for every token allocates. */
static void check_steady(void) {
    enum { N = 40 };
    const char *const stops[] = { "ab" };
    const char *bytes;
    size_t length;
    int32_t tokens[N], id, stopped;
    float logits[3 * 64];
    sn_state *states[2];
    sn_batch *batch;
    sn_sampler *sampler;
    sn_tokenizer *tokenizer;
    sn_text *text;
    sn_model_options o;
    sn_model_options_init(&o);
    o.n_threads = 2;
    sn_model *model = load_model(tiny, &o);
    for (int i = 0; i < 2; i++) states[i] = new_state(model);
    random_tokens(tokens, N, sn_model_vocab(model), 8);
    OK(sn_batch_new(model, 2, &batch));
    OK(sn_sampler_new(sn_model_vocab(model), NULL, NULL, &sampler));
    OK(sn_tokenizer_load(vocabulary, &tokenizer));
    OK(sn_text_new(tokenizer, stops, 1, &text));
    const long before = sn_alloc_count();
    for (int i = 0; i < 3; i++) {
        OK(sn_state_step(states[0], tokens[i], logits));
        OK(sn_state_prefill(states[0], tokens, N, logits));
        OK(sn_batch_step(batch, states, tokens, 2, logits));
        OK(sn_sampler_sample(sampler, logits, &id));
        OK(sn_sampler_accept(sampler, id));
        OK(sn_text_push(text, 98 + i, &bytes, &length, &stopped));
        OK(sn_state_reset(states[1]));
        OK(sn_sampler_reset(sampler));
    }
    OK(sn_text_finish(text, &bytes, &length));
    CHECK(sn_alloc_count() == before, "%ld allocations", sn_alloc_count() - before);
    sn_text_free(text);
    sn_tokenizer_free(tokenizer);
    sn_sampler_free(sampler);
    sn_batch_free(batch);
    for (int i = 0; i < 2; i++) sn_state_free(states[i]);
    sn_model_free(model);
}

/* ---- numbers that are none ------------------------------------------------------------------- */

/* Sets elements [first, first + n) of a float32 tensor in the bytes of `path`. */
static void patch(const char *path, uint8_t *bytes, const char *name, size_t first, size_t n,
                  float value) {
    sn_gguf gguf = { 0 };
    OK(sn_gguf_open(path, &gguf));
    const sn_gguf_tensor *t = sn_gguf_find_tensor(&gguf, name);
    CHECK(t && t->type == SN_TYPE_F32, "no float32 tensor %s", name);
    for (size_t i = 0; t && i < n; i++)
        memcpy(bytes + t->offset + 4 * (first + i), &value, sizeof value);
    sn_gguf_close(&gguf);
}

static sn_model *patched_model(const char *name, size_t first, size_t n, float value) {
    size_t size;
    uint8_t *bytes = read_file(tiny, &size);
    sn_model *model = NULL;
    patch(tiny, bytes, name, first, n, value);
    OK(sn_model_load_memory(bytes, size, NULL, &model));
    free(bytes);
    return model;
}

static void check_refuses(sn_state *state, sn_batch *batch) {
    const int32_t token = 1;
    float logits[64];
    size_t size;
    FAILS(SN_E_NUMERIC, sn_state_step(state, token, logits));
    FAILS(SN_E_NUMERIC, sn_state_prefill(state, &token, 1, logits));
    FAILS(SN_E_NUMERIC, sn_batch_step(batch, &state, &token, 1, logits));
    FAILS(SN_E_NUMERIC, sn_state_save(state, NULL, NULL, 0, &size));
}

/* The embedding of token 5 overflows in the first norm; all other tokens are sound. */
static void check_spoiled(void) {
    const size_t D = tiny_shape.embd;
    const int32_t tokens[] = { 1, 5, 2 };
    float logits[3 * 64];
    double difference = 0;
    size_t size;
    sn_batch *batch;
    sn_model *model = patched_model("token_embd.weight", 5 * D, D, 3e38f);
    sn_state *s[2] = { new_state(model), new_state(model) }, *clone;
    OK(sn_batch_new(model, 2, &batch));
    OK(sn_state_step(s[0], 1, logits));
    OK(sn_state_save(s[0], NULL, NULL, 0, &size));
    uint8_t *saved = malloc(size);
    OK(sn_state_save(s[0], NULL, saved, size, &size));
    FAILS(SN_E_NUMERIC, sn_state_step(s[0], 5, logits));
    check_refuses(s[0], batch);
    OK(sn_state_compare(s[0], s[1], &difference));
    CHECK(difference == HUGE_VAL, "a NaN differs by %g", difference);
    OK(sn_state_clone(s[0], &clone));
    check_refuses(clone, batch);
    sn_state_free(clone);
    OK(sn_state_reset(s[0]));
    OK(sn_state_step(s[0], 1, logits));
    FAILS(SN_E_NUMERIC, sn_state_prefill(s[0], tokens, 3, NULL));
    check_refuses(s[0], batch);
    OK(sn_state_restore(s[0], NULL, saved, size));
    OK(sn_state_step(s[0], 2, logits));
    FAILS(SN_E_NUMERIC, sn_batch_step(batch, s, tokens, 2, logits)); /* spoils both */
    for (int i = 0; i < 2; i++) check_refuses(s[i], batch);
    sn_batch_free(batch);
    for (int i = 0; i < 2; i++) sn_state_free(s[i]);
    sn_model_free(model);
    free(saved);
}

static void check_numeric(void) {
    static const struct {
        const char *tensor;
        size_t first, n;
    } places[] = { { "blk.0.attn_norm.weight", 0, 48 }, { "blk.1.attn_norm_2.weight", 0, 48 },
                   { "output_norm.weight", 0, 48 }, { "blk.1.channel_mix_key.weight", 0, 480 },
                   { "output.weight", 0, 48 } };
    float logits[64];
    sn_model *model = NULL;
    size_t size;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        model = patched_model(places[i].tensor, places[i].first, places[i].n, 3e38f);
        sn_state *state = new_state(model);
        const sn_status status = sn_state_step(state, 1, logits);
        CHECK(status == SN_E_NUMERIC, "%s: %d", places[i].tensor, (int)status);
        sn_state_free(state);
        sn_model_free(model);
    }
    model = NULL;
    uint8_t *bytes = read_file(tiny, &size); /* a weight that is no number is refused at once */
    patch(tiny, bytes, "blk.1.time_mix_key.weight", 17, 1, (float)NAN);
    FAILS(SN_E_NUMERIC, sn_model_load_memory(bytes, size, NULL, &model));
    patch(tiny, bytes, "blk.1.time_mix_key.weight", 17, 1, 0.0f);
    patch(tiny, bytes, "token_embd.weight", 17, 1, -HUGE_VALF);
    FAILS(SN_E_NUMERIC, sn_model_load_memory(bytes, size, NULL, &model));
    free(bytes);
    check_spoiled();
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Layer 0's value residual is never used: renamed out of sight, the logits stay. */
static void check_without_v0(void) {
    size_t size;
    sn_model *whole = load_model(micro, NULL), *model = NULL;
    uint8_t *bytes = read_file(micro, &size);
    int renamed = 0;
    for (size_t i = 0; i + 16 < size && renamed < 3; i++)
        if (memcmp(bytes + i, "blk.0.time_mix_v", 16) == 0 && bytes[i + 16] >= '0' &&
            bytes[i + 16] <= '2')
            memcpy(bytes + i, "blk.0.gone_mix_v", 16), renamed++;
    CHECK(renamed == 3, "%d tensors renamed", renamed);
    OK(sn_model_load_memory(bytes, size, NULL, &model));
    check_same_model(whole, model);
    sn_model_free(model);
    sn_model_free(whole);
    free(bytes);
}

#define RUN 21

/* Logits after each of RUN tokens: by steps; a prefill and a batch must agree with them. */
static void play(const sn_model *model, float *logits) {
    const size_t vocab = (size_t)sn_model_vocab(model);
    float *other = malloc(RUN * vocab * sizeof(float));
    int32_t tokens[RUN], three[3];
    sn_state *state = new_state(model), *s[3];
    sn_batch *batch;
    random_tokens(tokens, RUN, (int32_t)vocab, 1);
    for (size_t i = 0; i < RUN; i++) OK(sn_state_step(state, tokens[i], logits + i * vocab));
    OK(sn_state_reset(state));
    OK(sn_state_prefill_all(state, tokens, RUN, other));
    CHECK(same_floats(logits, other, RUN * vocab), "prefill differs from steps");
    OK(sn_batch_new(model, 3, &batch));
    for (size_t i = 0; i < 3; i++) { /* three places of the same sequence */
        s[i] = new_state(model);
        OK(sn_state_prefill(s[i], tokens, (int32_t)(3 * i), NULL));
    }
    for (size_t i = 0; i + 6 < RUN; i++) {
        for (size_t j = 0; j < 3; j++) three[j] = tokens[i + 3 * j];
        OK(sn_batch_step(batch, s, three, 3, other));
        for (size_t j = 0; j < 3; j++)
            CHECK(same_floats(other + j * vocab, logits + (i + 3 * j) * vocab, vocab),
                  "a batch differs from steps at %zu", i + 3 * j);
    }
    for (size_t i = 0; i < 3; i++) sn_state_free(s[i]);
    sn_batch_free(batch);
    sn_state_free(state);
    free(other);
}

static void check_everywhere(const char *path) {
    float *want = NULL, *got = NULL;
    size_t bytes = 0;
    for (int32_t i = 0; i < sn_backend_count(); i++)
        for (int32_t threads = 1; threads <= 2 && sn_backend_usable(i); threads++) {
            sn_model_options o;
            sn_model_options_init(&o);
            o.backend = sn_backend_name(i);
            o.n_threads = threads;
            o.max_chunk = 9;
            sn_model *model = load_model(path, &o);
            if (!want) {
                bytes = RUN * (size_t)sn_model_vocab(model) * sizeof(float);
                want = malloc(bytes);
                got = malloc(bytes);
                play(model, want);
            }
            play(model, got);
            CHECK(memcmp(want, got, bytes) == 0, "%s, %d threads: other bits than scalar",
                  o.backend, (int)threads);
            sn_model_free(model);
        }
    free(want);
    free(got);
}

static void check_shapes(void) {
    static const shape shapes[] = {
        { 3, 48, 192, 16, 40, 8, 12, 4, 20, false, 0 },
        { 2, 72, 50, 24, 37, 3, 7, 11, 17, true, 0 },
        { 2, 80, 333, 40, 100, 33, 1, 2, 65, false, 0 },
        { 1, 35, 20, 5, 17, 5, 6, 7, 8, true, 0 },
        { 2, 33, 1, 33, 3, 1, 1, 1, 1, false, 0 },
        { 2, 1, 1, 1, 1, 1, 1, 1, 1, false, 0 },
        { 2, 128, 96, 128, 64, 32, 64, 32, 96, false, 0 },
    };
    char path[512];
    join(path, sizeof path, folder, "api-shape.gguf");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        write_model(&shapes[i], path);
        check_everywhere(path);
    }
    for (int i = 0; i < 2; i++) { /* the last shape suits blocks of 32 */
        sn_convert_options o;
        sn_convert_options_init(&o);
        o.type = i ? "q4_0" : "q8_0";
        OK(sn_convert(path, out_file, &o));
        check_everywhere(out_file);
    }
    shape with = shapes[0], without = shapes[0];
    without.no_v0 = true;
    write_model(&with, path);
    write_model(&without, out_file);
    sn_model *a = load_model(path, NULL), *b = load_model(out_file, NULL);
    check_same_model(a, b);
    sn_model_free(a);
    sn_model_free(b);
    remove(path);
    remove(out_file);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Ids 1..256 are the bytes, as in RWKV's own vocabulary; 257 and 258 are words. */
static void write_vocabulary(const char *path) {
    FILE *file = fopen(path, "wb");
    CHECK(file, "%s cannot be written", path);
    if (!file) return;
    for (int i = 0; i < 256; i++)
        fprintf(file, i < 128 ? "%d '\\x%02x' 1\n" : "%d b'\\x%02x' 1\n", i + 1, (unsigned)i);
    fprintf(file, "257 'ab' 2\n258 'abc' 3\n");
    fclose(file);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: test_api MODELS FOLDER\n"), 2;
    models = argv[1];
    folder = argv[2];
    join(micro, sizeof micro, models, "rwkv7-micro.f32.gguf");
    join(tiny, sizeof tiny, folder, "api-tiny.gguf");
    join(vocabulary, sizeof vocabulary, folder, "api-vocabulary.txt");
    join(out_file, sizeof out_file, folder, "api-out.gguf");
    remove(out_file);
    write_model(&tiny_shape, tiny);
    write_vocabulary(vocabulary);
    check_arguments();
    check_header_only();
    check_sources();
    check_progress();
    check_abort();
    check_memory();
    check_steady();
    check_numeric();
    check_without_v0();
    check_shapes();
    remove(tiny);
    remove(vocabulary);
    return check_report("api");
}
