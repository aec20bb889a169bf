/*
 * test_fpenv: a host may have set flush-to-zero, another rounding or traps, and its callbacks may
 * change them under way. Every result keeps the bits of the default environment, and every public
 * call, also one that fails, leaves the host's environment as it was.
 * Usage: test_fpenv models/test FOLDER-FOR-FILES
 */
#include "models.h"

#if defined(__x86_64__) || defined(__aarch64__)

#include "hash.h"
#include "simd.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define DEFAULT 0x1f80u /* MXCSR: all traps masked, to nearest, denormals on */
#define DENORMALS_ARE_ZERO 0x0040u
#define FLUSH_TO_ZERO 0x8000u
#define DOWN 0x2000u
#define UP 0x4000u
#define MASKS (0x0080u | 0x0200u | 0x0400u | 0x0800u) /* of invalid, /0, over- and underflow */
#define TRAPPING (DEFAULT & ~MASKS)
#define FLAGS 0x3fu /* exceptions seen */

static unsigned get_control(void) {
    return _mm_getcsr();
}

static void set_control(unsigned control) {
    _mm_setcsr(control);
}

#else

#define DEFAULT 0u /* FPCR: no traps, to nearest, denormals on */
#define DENORMALS_ARE_ZERO (1u << 24) /* one bit for inputs and results */
#define FLUSH_TO_ZERO (1u << 24)
#define DOWN (2u << 22)
#define UP (1u << 22)
#define TRAPPING DEFAULT /* an option of the architecture that few processors have */
#define FLAGS 0u         /* they live in another register */

static unsigned get_control(void) {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (unsigned)control;
}

static void set_control(unsigned control) {
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)control));
}

#endif

#define N 40

typedef struct environment {
    const char *name;
    unsigned control;
} environment;

static const environment environments[] = {
    { "default", DEFAULT },
    { "flush to zero", DEFAULT | FLUSH_TO_ZERO },
    { "denormals are zero", DEFAULT | DENORMALS_ARE_ZERO },
    { "both", DEFAULT | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO },
    { "round up", DEFAULT | UP },
    { "round down", DEFAULT | DOWN },
    { "to zero, flushed, flags set", DEFAULT | UP | DOWN | FLUSH_TO_ZERO | FLAGS },
    { "traps", TRAPPING },
};
#define N_ENVIRONMENTS (sizeof environments / sizeof environments[0])

static const char *models, *folder;
static const environment *host;   /* what the calls are made under */
static bool callbacks_meddle;     /* callbacks leave another environment behind */

static void meddle(void) {
    if (callbacks_meddle) set_control(DEFAULT | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO | UP);
}

/* Makes a call under the host's environment and looks at what it leaves. */
static void back_home(const char *call) {
    const unsigned left = get_control();
    set_control(DEFAULT);
    CHECK(left == host->control, "%s under '%s': control %04x has become %04x", call, host->name,
          host->control, left);
}
#define UNDER(call) (set_control(host->control), (call))
#define EXPECT(status, call)                                                                  \
    do {                                                                                      \
        const sn_status got_ = UNDER(call);                                                   \
        back_home(#call);                                                                     \
        CHECK(got_ == (status), "%s under '%s': %d, %s", #call, host->name, (int)got_,        \
              sn_last_error());                                                               \
    } while (0)
#define OK(call) EXPECT(SN_OK, call)

/* ---- results, one hash for each -------------------------------------------------------------- */

#define MOST_RESULTS 200

typedef struct results {
    size_t n;
    const char *what[MOST_RESULTS];
    uint64_t hash[MOST_RESULTS];
} results;

static void note(results *r, const char *what, const void *data, size_t bytes) {
    if (r->n == MOST_RESULTS) abort();
    r->what[r->n] = what;
    r->hash[r->n++] = sn_hash(data, bytes, 0);
}

static void check_equal(const results *a, const results *b) {
    CHECK(a->n == b->n, "%zu results, %zu expected", b->n, a->n);
    for (size_t i = 0; i < a->n && i < b->n; i++)
        CHECK(a->hash[i] == b->hash[i], "%s under '%s'%s: other bits", a->what[i], host->name,
              callbacks_meddle ? ", callbacks meddling" : "");
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static int32_t on_progress(void *user, double done, double total) {
    (void)user, (void)done, (void)total;
    meddle();
    return 0;
}

static void on_line(void *user, const char *line) {
    (void)user, (void)line;
    meddle();
}

static size_t on_read(void *user, void *buffer, size_t bytes) {
    const size_t n = read_bytes_left(user, buffer, bytes);
    meddle();
    return n;
}

/* ---- what a host does ------------------------------------------------------------------------ */

static void play_states(results *r, sn_model *model) {
    const size_t vocab = (size_t)sn_model_vocab(model);
    float *logits = malloc(N * vocab * sizeof(float));
    int32_t tokens[N];
    sn_state *a, *b, *c, *pair[2];
    sn_batch *batch;
    double difference = -1;
    size_t size;
    random_tokens(tokens, N, (int32_t)vocab, 3);
    OK(sn_state_new(model, &a));
    OK(sn_state_set_abort(a, on_progress, NULL));
    OK(sn_state_step(a, tokens[0], logits));
    note(r, "step", logits, vocab * sizeof(float));
    OK(sn_state_prefill(a, tokens, N, logits));
    note(r, "prefill", logits, vocab * sizeof(float));
    OK(sn_state_clone(a, &b));
    OK(sn_state_prefill_all(b, tokens, N, logits));
    note(r, "prefill_all", logits, N * vocab * sizeof(float));
    OK(sn_state_compare(a, b, &difference));
    note(r, "compare", &difference, sizeof difference);
    OK(sn_batch_new(model, 2, &batch));
    pair[0] = a, pair[1] = b;
    OK(sn_batch_step(batch, pair, tokens, 2, logits));
    note(r, "batch", logits, 2 * vocab * sizeof(float));
    OK(sn_state_save(a, NULL, NULL, 0, &size));
    uint8_t *bytes = malloc(size);
    OK(sn_state_save(a, NULL, bytes, size, &size));
    note(r, "save", bytes, size);
    OK(sn_state_new(model, &c));
    OK(sn_state_restore(c, NULL, bytes, size));
    OK(sn_state_step(c, tokens[1], logits));
    note(r, "restored", logits, vocab * sizeof(float));
    EXPECT(SN_E_INVAL, sn_state_step(c, -1, logits));
    EXPECT(SN_E_INVAL, sn_batch_step(batch, pair, tokens, 3, logits));
    EXPECT(SN_E_FORMAT, sn_state_restore(c, NULL, bytes, size - 1));
    OK(sn_state_reset(c));
    UNDER(sn_state_free(a)), back_home("free");
    UNDER(sn_state_free(b)), back_home("free");
    UNDER(sn_state_free(c)), back_home("free");
    UNDER(sn_batch_free(batch)), back_home("free");
    free(bytes);
    free(logits);
}

static void play_sampler(results *r) {
    enum { VOCAB = 500 };
    static float logits[VOCAB];
    check_random random = { 4 };
    sn_sampler *sampler, *clone;
    sn_sampler_options options;
    int32_t ids[50];
    for (int i = 0; i < VOCAB; i++) logits[i] = 4.0f * check_float(&random);
    logits[7] = 0x1p-140f;
    sn_sampler_options_init(&options);
    options.top_k = 0;
    options.repetition_penalty = 1.1f;
    options.presence_penalty = 0.01f;
    OK(sn_sampler_new(VOCAB, NULL, &options, &sampler));
    for (int i = 0; i < 50; i++) {
        OK(sn_sampler_sample(sampler, logits, &ids[i]));
        OK(sn_sampler_accept(sampler, ids[i]));
    }
    note(r, "sampler", ids, sizeof ids);
    OK(sn_sampler_clone(sampler, &clone));
    memset(&logits[9], 0xff, sizeof logits[9]); /* a NaN */
    EXPECT(SN_E_NUMERIC, sn_sampler_sample(sampler, logits, ids));
    memset(&options.temperature, 0xff, sizeof options.temperature);
    EXPECT(SN_E_INVAL, sn_sampler_new(VOCAB, NULL, &options, &sampler));
    UNDER(sn_sampler_free(sampler)), back_home("free");
    UNDER(sn_sampler_free(clone)), back_home("free");
}

static void play_tokenizer(results *r, const sn_model *model) {
    static const char text[] = "Once upon a time there was a small bird. \xc3\xa4\xff 123";
    const sn_tokenizer *tokenizer = sn_model_tokenizer(model);
    int32_t ids[sizeof text], n = 0, stopped;
    const char *out;
    size_t length;
    sn_text *stream;
    if (!tokenizer) return;
    OK(sn_tokenizer_encode(tokenizer, text, sizeof text - 1, ids, sizeof text, &n));
    note(r, "encode", ids, (size_t)n * sizeof ids[0]);
    OK(sn_text_new(tokenizer, NULL, 0, &stream));
    for (int32_t i = 0; i < n; i++) {
        OK(sn_text_push(stream, ids[i], &out, &length, &stopped));
        note(r, "text", out, length);
    }
    UNDER(sn_text_free(stream)), back_home("free");
}

static void play_convert(results *r, const char *in) {
    static const char *const types[] = { "f16", "q8_0", "q4_0", NULL };
    char out[512];
    sn_convert_options options;
    join(out, sizeof out, folder, "fpenv-converted.gguf");
    for (size_t i = 0; i < 4; i++) {
        size_t size;
        sn_convert_options_init(&options);
        options.type = types[i];
        options.packed = types[i] == NULL;
        options.progress = on_progress;
        remove(out);
        OK(sn_convert(in, out, &options));
        uint8_t *bytes = read_file(out, &size);
        note(r, "convert", bytes, size);
        free(bytes);
    }
    remove(out);
    EXPECT(SN_E_UNSUPPORTED, sn_convert(in, out, &(sn_convert_options){
        .struct_size = sizeof options, .type = "q3_x" }));
}

static void play_model(results *r, const char *path, const char *backend, int32_t threads) {
    sn_model_options options;
    sn_model_info info = { .struct_size = sizeof info };
    sn_model *model, *other;
    size_t size;
    sn_model_options_init(&options);
    options.backend = backend;
    options.n_threads = threads;
    options.max_chunk = 16;
    options.progress = on_progress;
    OK(sn_model_load(path, &options, &model));
    OK(sn_model_get_info(model, &info));
    play_states(r, model);
    play_tokenizer(r, model);
    UNDER(sn_model_free(model)), back_home("free");
    uint8_t *bytes = read_file(path, &size);
    bytes_left left = { bytes, size };
    sn_source source = { .struct_size = sizeof source, .size = size, .read = on_read,
                         .user = &left };
    OK(sn_model_load_source(&source, &options, &other));
    play_states(r, other);
    UNDER(sn_model_free(other)), back_home("free");
    EXPECT(SN_E_FORMAT, sn_model_load_memory(bytes, size / 2, &options, &other));
    EXPECT(SN_E_IO, sn_model_load("no such file", NULL, &other));
    free(bytes);
}

static void play(results *r, const char *tiny) {
    char path[512];
    r->n = 0;
    play_model(r, tiny, NULL, 1);
    play_model(r, tiny, "scalar", 2);
    play_model(r, join(path, sizeof path, models, "rwkv7-k256.q4_k_m.gguf"), NULL, 2);
    play_sampler(r);
    play_convert(r, tiny);
}

/* ---- the hostile environments do matter ------------------------------------------------------ */

/* The table's kernels set nothing; under these environments they must give other bits, or the
 * checks above would prove little. A head of 1e-39 makes logits that are subnormal. */
static void check_hostility(void) {
    static _Alignas(64) float panel[16 * 64];
    float x[64], y[16], w[64], b[64], calm[2][64];
    check_random random = { 9 };
    for (int i = 0; i < 16 * 64; i++) panel[i] = 1e-39f * check_float(&random);
    for (int i = 0; i < 64; i++) x[i] = check_float(&random), w[i] = b[i] = 0.7f;
    for (size_t e = 0; e + 1 < N_ENVIRONMENTS; e++) {
        const unsigned control = environments[e].control;
        float norm[64];
        set_control(control);
        sn_simd_at(0)->matmul_f32[SN_LAYOUT_F32](y, 16, (const uint8_t *)panel, sizeof panel, 1, 64,
                                                 x, 64, 1);
        sn_simd_at(0)->layer_norm(norm, x, w, b, 64, 1e-5f);
        set_control(DEFAULT);
        if (e == 0) memcpy(calm[0], y, sizeof y), memcpy(calm[1], norm, sizeof norm);
        else CHECK(memcmp(calm[0], y, sizeof y), "'%s' changes no product", environments[e].name);
        if (control & (UP | DOWN))
            CHECK(memcmp(calm[1], norm, sizeof norm), "'%s' changes no norm", environments[e].name);
    }
}

int main(int argc, char **argv) {
    static results expected, got;
    const shape small = { 2, 64, 96, 16, 40, 8, 8, 8, 8, false, 1e-39f };
    char tiny[512];
    if (argc < 3) return fprintf(stderr, "usage: test_fpenv MODELS FOLDER\n"), 2;
    models = argv[1];
    folder = argv[2];
    write_model(&small, join(tiny, sizeof tiny, folder, "fpenv-tiny.gguf"));
    check_hostility();
    host = &environments[0];
    play(&expected, tiny);
    for (int meddling = 0; meddling < 2; meddling++)
        for (size_t e = 0; e < N_ENVIRONMENTS; e++) {
            host = &environments[e];
            callbacks_meddle = meddling;
            play(&got, tiny);
            check_equal(&expected, &got);
        }
    host = &environments[3];
    OK(sn_selftest(on_line, NULL));
    host = &environments[N_ENVIRONMENTS - 1]; /* its 0 / 0 and 1 / 0 would trap */
    OK(sn_selftest(on_line, NULL));
    remove(tiny);
    return check_report("fpenv");
}

#else

int main(void) {
    puts("fpenv: not applicable: written for x86-64 and AArch64");
    return 0;
}

#endif
