/*
 * The stable ABI (sn_abi.h): versions, checks, recurrences, INT8 blocks, RWKV-7 handles, threads.
 * Usage: test_abi FOLDER-FOR-FILES
 */
#include "sn_abi.h"

#include "models.h"

#include "memory.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

static const char *folder;

static bool same(const void *a, const void *b, size_t n) {
    return memcmp(a, b, n * sizeof(float)) == 0;
}

static void fill(float *x, size_t n, uint64_t seed) {
    check_random random = { seed };
    for (size_t i = 0; i < n; i++) x[i] = check_float(&random);
}

/* ---- what it is ----------------------------------------------------------------------------- */

static void test_version(void) {
    char text[16] = "untouched";
    CHECK(sn_abi_version() == 0x10000 && SN_ABI_VERSION == 0x10000, "%x", sn_abi_version());
    CHECK(sn_abi_check(1) == SN_OK, "1");
    for (int32_t major = -1; major < 4; major++)
        if (major != 1) CHECK(sn_abi_check(major) == SN_E_UNSUPPORTED, "%d", major);
    CHECK((sn_abi_caps() & 31u) == 31u, "%x", (unsigned)sn_abi_caps());
    CHECK(sn_abi_caps() == 0xffu, "%x", (unsigned)sn_abi_caps());
    CHECK(sn_abi_version_string(NULL, 0) == 6 && sn_abi_version_string(NULL, 99) == 6, "length");
    CHECK(sn_abi_version_string(text, 5) == 6 && sn_abi_version_string(text, -1) == 6, "short");
    CHECK(strcmp(text, "untouched") == 0, "%s", text);
    CHECK(sn_abi_version_string(text, 6) == 6 && strcmp(text, "1.0.0") == 0, "%s", text);
    CHECK(sn_abi_backend_string(NULL, 0) == 2, "length");
    CHECK(sn_abi_backend_string(text, 16) == 2 && strcmp(text, "c") == 0, "%s", text);
    CHECK(SN_E_INVAL == -1 && SN_E_NOMEM == -2 && SN_E_IO == -3 && SN_E_FORMAT == -4 &&
          SN_E_UNSUPPORTED == -5, "codes");
}

static void test_thread_numbers(void) {
    CHECK(sn_abi_get_threads() >= 1, "%d", sn_abi_get_threads());
    CHECK(sn_abi_set_threads(3) == SN_OK && sn_abi_get_threads() == 3, "3");
    CHECK(sn_abi_set_threads(0) == SN_E_INVAL && sn_abi_set_threads(-7) == SN_E_INVAL, "0");
    CHECK(sn_abi_get_threads() == 3, "unchanged");
    CHECK(sn_abi_set_threads(INT32_MAX) == SN_OK && sn_abi_get_threads() == 256, "many");
    CHECK(sn_abi_set_threads(1) == SN_OK && sn_abi_get_threads() == 1, "1");
}

/* ---- arguments ------------------------------------------------------------------------------ */

#define REFUSED(call)                                                                          \
    do {                                                                                       \
        fill(out, 64, 9);                                                                      \
        memcpy(before, out, sizeof before);                                                     \
        CHECK((call) == SN_E_INVAL, "%s", sn_last_error());                                    \
        CHECK(same(out, before, 64), "nothing is written");                                    \
    } while (0)

static void test_refusals(void) {
    static const int32_t big = INT32_MAX;
    float a[64] = { 0 }, out[64], before[64];
    int8_t q[64];
    REFUSED(sn_abi_recur_step(NULL, a, out, 2, 8, 0));
    REFUSED(sn_abi_recur_step(a, NULL, out, 2, 8, 0));
    REFUSED(sn_abi_recur_step(a, a, NULL, 2, 8, 0));
    REFUSED(sn_abi_recur_step(a, a, out, 2, -8, 0));
    REFUSED(sn_abi_recur_step(a, a, out, 0, 8, 1));
    REFUSED(sn_abi_recur_scan(NULL, a, a, out, out, 1, 1, 8, 0));
    REFUSED(sn_abi_recur_scan(a, NULL, a, out, out, 1, 1, 8, 0));
    REFUSED(sn_abi_recur_scan(a, a, NULL, out, out, 1, 1, 8, 0));
    REFUSED(sn_abi_recur_scan(a, a, a, NULL, out, 1, 1, 8, 0));
    REFUSED(sn_abi_recur_scan(a, a, a, out, NULL, 1, 1, 8, 0));
    REFUSED(sn_abi_recur_scan(a, a, a, out, out, 0, 1, 8, 0));
    REFUSED(sn_abi_recur_scan(a, a, a, out, out, 1, 0, 8, 0));
    REFUSED(sn_abi_recur_scan(a, a, a, out, out, 1, 1, 0, 0));
    REFUSED(sn_abi_recur_scan(a, a, a, out, out, big, big, big, 0));
    if (sizeof(size_t) == 4) REFUSED(sn_abi_recur_scan(a, a, a, out, out, 1, big, 1, 0));
    REFUSED(sn_abi_quant_i8(NULL, q, out, 1, 8, 8));
    REFUSED(sn_abi_quant_i8(a, NULL, out, 1, 8, 8));
    REFUSED(sn_abi_quant_i8(a, q, NULL, 1, 8, 8));
    REFUSED(sn_abi_quant_i8(a, q, out, -1, 8, 8));
    REFUSED(sn_abi_quant_i8(a, q, out, 1, 0, 8));
    REFUSED(sn_abi_dequant_i8(NULL, a, out, 1, 8, 8));
    REFUSED(sn_abi_dequant_i8(q, NULL, out, 1, 8, 8));
    REFUSED(sn_abi_dequant_i8(q, a, NULL, 1, 8, 8));
    REFUSED(sn_abi_dequant_i8(q, a, out, 1, 0, 8));
    REFUSED(sn_abi_rwkv7_step(NULL, 1, out));
    REFUSED(sn_abi_rwkv7_prefill(NULL, (const int32_t[]){ 1 }, 1, out));
    REFUSED(sn_abi_rwkv7_reset(NULL));
    CHECK(sn_abi_rwkv7_vocab(NULL) == 0, "no vocabulary");
    CHECK(sn_abi_rwkv7_load(NULL) == NULL, "no path");
    sn_abi_rwkv7_free(NULL);
}

/* ---- recurrence ----------------------------------------------------------------------------- */

/* The definition, every operation rounded by itself. */
static float next(float a, float b, float s, bool gated) {
    volatile float kept = a * s, rest = 1.0f - a;
    volatile float added = gated ? rest * b : b;
    return kept + added;
}

static void check_scan(size_t B, size_t T, size_t N, bool gated) {
    const size_t n = B * T * N;
    float *a = malloc(4 * n), *b = malloc(4 * n), *out = malloc(4 * n), *s0 = malloc(4 * B * N);
    float *send = malloc(4 * B * N), *s = malloc(4 * B * N);
    bool equal = true;
    fill(a, n, 1 + n);
    fill(b, n, 2 + n);
    fill(s0, B * N, 3 + n);
    memcpy(s, s0, 4 * B * N);
    CHECK(sn_abi_recur_scan(a, b, s0, out, send, (int32_t)B, (int32_t)T, (int32_t)N,
                            gated ? 7 : 0) == SN_OK, "%s", sn_last_error());
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < B * N; i++) {
            const size_t o = (i / N * T + t) * N + i % N;
            s[i] = next(a[o], b[o], s[i], gated);
            equal = equal && same(&s[i], &out[o], 1);
        }
    CHECK(equal, "%zu x %zu x %zu", B, T, N);
    CHECK(same(s, send, B * N), "the end of %zu x %zu x %zu", B, T, N);
    memcpy(s, s0, 4 * B * N);
    CHECK(sn_abi_recur_scan(a, b, s, out, s, (int32_t)B, (int32_t)T, (int32_t)N, gated) == SN_OK,
          "in place");
    CHECK(same(s, send, B * N), "in place, %zu x %zu x %zu", B, T, N);
    if (T == 1) {
        CHECK(sn_abi_recur_step(a, b, s0, (int32_t)B, (int32_t)N, gated) == SN_OK, "step");
        CHECK(same(s0, send, B * N), "step of %zu x %zu", B, N);
    }
    free(a), free(b), free(out), free(s0), free(send), free(s);
}

static void test_recurrence(void) {
    for (size_t N = 1; N < 68; N += N < 20 ? 1 : 9)
        for (size_t T = 1; T < 6; T += 2) {
            check_scan(1, T, N, false);
            check_scan(3, T, N, true);
        }
    for (int32_t threads = 1; threads < 5; threads++) { /* large enough for a pool */
        sn_abi_set_threads(threads);
        check_scan(3, 37, 1021, threads % 2);
        check_scan(2, 1, 70001, threads % 2);
    }
}

/* The caller's environment changes no bit and comes back. */
static void test_environment(void) {
    enum { N = 33 };
    float a[N], b[N], plain[N], upward[N];
    fill(a, N, 5);
    fill(b, N, 6);
    fill(plain, N, 7);
    memcpy(upward, plain, sizeof plain);
    sn_abi_recur_step(a, b, plain, 1, N, 1);
    fesetround(FE_UPWARD);
    sn_abi_recur_step(a, b, upward, 1, N, 1);
    CHECK(fegetround() == FE_UPWARD, "it is restored");
    fesetround(FE_TONEAREST);
    CHECK(same(plain, upward, N), "it changes nothing");
}

/* ---- INT8 ----------------------------------------------------------------------------------- */

static void test_int8(void) {
    enum { B = 3, N = 70 };
    float x[B * N], back[B * N], scale[B * N];
    int8_t q[B * N];
    fill(x, B * N, 8);
    for (int32_t block = -1; block < 80; block += 9) {
        const int32_t size = block > 0 && block < N ? block : N, blocks = (N + size - 1) / size;
        CHECK(sn_abi_quant_i8(x, q, scale, B, N, block) == SN_OK, "%s", sn_last_error());
        CHECK(sn_abi_dequant_i8(q, scale, back, B, N, block) == SN_OK, "%s", sn_last_error());
        for (int32_t i = 0; i < B * N; i++) {
            const float s = scale[i / N * blocks + i % N / size];
            CHECK(fabsf(x[i] - back[i]) <= s * 0.5001f && q[i] != -128, "block %d, %d", block, i);
        }
    }
    const float edges[8] = { 127, 2.5f, -1.5f, 0.5f, NAN, -127, 0, 3.5f };
    static const int8_t expected[8] = { 127, 2, -2, 0, 0, -127, 0, 4 };
    sn_abi_quant_i8(edges, q, scale, 1, 8, 0);
    CHECK(scale[0] == 1.0f && memcmp(q, expected, 8) == 0, "ties go to even, NaN to 0");
    memset(x, 0, sizeof x);
    sn_abi_quant_i8(x, q, scale, 1, 8, 0);
    CHECK(scale[0] == 1.0f && q[0] == 0, "zeros");
}

/* ---- RWKV-7 --------------------------------------------------------------------------------- */

#define VOCAB 101
#define WIDTH 48
#define HEAD (VOCAB * WIDTH) /* floats, at the end of a blob */

/* A blob in a folder of its own, with files beside it that no tokenizer or config could be. */
static const char *make_blob(const char *gguf) {
    static char path[600], beside[600];
    const shape s = { .layers = 2, .embd = WIDTH, .ffn = 80, .head_size = 16, .vocab = VOCAB,
                      .rank_w = 5, .rank_a = 16, .rank_v = 3, .rank_g = 20 };
    sn_convert_options options;
    write_model(&s, gguf);
    snprintf(path, sizeof path, "%.500s/blob", folder);
    mkdir(path, 0777);
    for (int i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%.500s/blob/%s", folder,
                 i ? "tokenizer.json" : "config.json");
        FILE *file = fopen(beside, "w");
        fputs("{ no JSON", file);
        fclose(file);
    }
    snprintf(path, sizeof path, "%.500s/blob/model.bin", folder);
    sn_convert_options_init(&options);
    options.format = "blob";
    CHECK(sn_convert(gguf, path, &options) == SN_OK, "%s", sn_last_error());
    return path;
}

static void check_handle(SnAbiRwkv7 *m, sn_state *state) {
    float logits[VOCAB], expected[VOCAB];
    int32_t tokens[40];
    random_tokens(tokens, 40, VOCAB, 11);
    CHECK(sn_abi_rwkv7_vocab(m) == VOCAB, "%d", sn_abi_rwkv7_vocab(m));
    for (int round = 0; round < 2; round++) {
        sn_state_prefill(state, tokens, 35, expected);
        CHECK(sn_abi_rwkv7_prefill(m, tokens, 35, logits) == SN_OK, "%s", sn_last_error());
        CHECK(same(logits, expected, VOCAB), "prefill");
        for (int i = 35; i < 40; i++) {
            sn_state_step(state, tokens[i], expected);
            CHECK(sn_abi_rwkv7_step(m, tokens[i], logits) == SN_OK, "%s", sn_last_error());
            CHECK(same(logits, expected, VOCAB), "step %d", i);
        }
        CHECK(sn_abi_rwkv7_reset(m) == SN_OK && sn_state_reset(state) == SN_OK, "reset");
    }
}

/* A refused call changes neither logits nor state. */
static void check_handle_refusals(SnAbiRwkv7 *m) {
    float out[VOCAB], before[64], *logits = out;
    const int32_t good[] = { 1, 2, 3 }, low[] = { 1, -1 }, high[] = { 1, 2, VOCAB };
    REFUSED(sn_abi_rwkv7_step(m, -1, logits));
    REFUSED(sn_abi_rwkv7_step(m, VOCAB, logits));
    REFUSED(sn_abi_rwkv7_step(m, 1, NULL));
    REFUSED(sn_abi_rwkv7_prefill(m, low, 2, logits));
    REFUSED(sn_abi_rwkv7_prefill(m, high, 3, logits));
    REFUSED(sn_abi_rwkv7_prefill(m, NULL, 3, logits));
    REFUSED(sn_abi_rwkv7_prefill(m, good, 3, NULL));
    REFUSED(sn_abi_rwkv7_prefill(m, good, 0, logits));
    REFUSED(sn_abi_rwkv7_prefill(m, good, -1, logits));
}

static void test_handles(const char *blob, const char *gguf) {
    sn_model *model = load_model(gguf, NULL);
    sn_state *state = new_state(model);
    SnAbiRwkv7 *m = sn_abi_rwkv7_load(blob), *other = sn_abi_rwkv7_load(blob);
    CHECK(m && other, "%s", sn_last_error());
    if (m && other) {
        float logits[VOCAB];
        check_handle(m, state);
        check_handle_refusals(m);
        sn_abi_rwkv7_step(other, 5, logits);
        check_handle(m, state); /* neither the refusals nor the other handle left a trace */
    }
    sn_abi_rwkv7_free(m);
    sn_abi_rwkv7_free(other);
    sn_state_free(state);
    sn_model_free(model);
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, n, file) == n, "%s", path);
    if (file) fclose(file);
}

static bool loads(const char *path) {
    SnAbiRwkv7 *m = sn_abi_rwkv7_load(path);
    sn_abi_rwkv7_free(m);
    return m != NULL;
}

static void check_overflow(const char *path) {
    float logits[VOCAB];
    SnAbiRwkv7 *m = sn_abi_rwkv7_load(path);
    CHECK(m, "%s", sn_last_error());
    CHECK(sn_abi_rwkv7_step(m, 1, logits) == SN_E_UNSUPPORTED, "an infinity");
    CHECK(sn_abi_rwkv7_prefill(m, (const int32_t[]){ 2 }, 1, logits) == SN_E_UNSUPPORTED, "still");
    CHECK(sn_abi_rwkv7_reset(m) == SN_OK, "reset");
    sn_abi_rwkv7_free(m);
}

static void test_not_blobs(const char *blob, const char *gguf) {
    char path[600];
    size_t size;
    uint8_t *bytes = read_file(blob, &size);
    snprintf(path, sizeof path, "%.500s/changed.bin", folder);
    CHECK(!loads(gguf) && !loads(folder) && !loads("absent/file") && !loads(""), "no blobs");
    for (uint8_t version = 0; version < 6; version++) {
        bytes[4] = version;
        write_bytes(path, bytes, size);
        CHECK(loads(path) == (version == 3), "version %d", version);
    }
    bytes[4] = 3;
    write_bytes(path, bytes, size - 4);
    CHECK(!loads(path), "cut short");
    bytes[0] ^= 1;
    write_bytes(path, bytes, size);
    CHECK(!loads(path), "other magic");
    bytes[0] ^= 1;
    memset(bytes + size - 4 * HEAD, 0xff, 4);
    write_bytes(path, bytes, size);
    CHECK(!loads(path), "a NaN");
    memset(bytes + size - 4 * HEAD, 0x7f, 4 * HEAD); /* 3.4e38 each: their sums overflow */
    write_bytes(path, bytes, size);
    check_overflow(path);
    free(bytes);
}

static void test_no_memory(const char *blob) {
    for (long n = 1;; n++) {
        sn_alloc_fail_at(n);
        const bool loaded = loads(blob);
        sn_alloc_fail_at(0);
        if (loaded) {
            CHECK(n > 20, "%ld allocations", n);
            return;
        }
    }
}

/* ---- from several threads ------------------------------------------------------------------- */

enum { CALLERS = 3, ROUNDS = 12, LONG = 80000 };

/* Works on its own arrays while others do and the number of threads changes under it. */
static void *caller(void *argument) {
    const uint64_t seed = *(const uint64_t *)argument;
    float *a = malloc(4 * LONG), *s = malloc(4 * LONG), *t = malloc(4 * LONG);
    bool *equal = calloc(1, sizeof *equal);
    *equal = true;
    fill(a, LONG, seed);
    for (int i = 0; i < ROUNDS; i++) {
        fill(s, LONG, seed + 1);
        fill(t, LONG, seed + 1);
        sn_abi_set_threads(1 + (int32_t)(seed + (uint64_t)i) % 3);
        sn_abi_recur_step(a, a, s, 1, LONG, i % 2);
        for (size_t k = 0; k < LONG; k++) *equal = *equal && s[k] == next(a[k], a[k], t[k], i % 2);
    }
    free(a), free(s), free(t);
    return equal;
}

static void test_callers(void) {
    pthread_t threads[CALLERS];
    uint64_t seeds[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        seeds[i] = 100 + i;
        CHECK(pthread_create(&threads[i], NULL, caller, &seeds[i]) == 0, "thread %zu", i);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        void *equal = NULL;
        pthread_join(threads[i], &equal);
        CHECK(equal && *(bool *)equal, "caller %zu", i);
        free(equal);
    }
}

int main(int argc, char **argv) {
    char gguf[600];
    if (argc != 2) return 2;
    folder = argv[1];
    snprintf(gguf, sizeof gguf, "%.500s/abi.gguf", folder);
    test_version();
    test_thread_numbers();
    test_refusals();
    test_recurrence();
    test_environment();
    test_int8();
    const char *blob = make_blob(gguf);
    test_handles(blob, gguf);
    test_not_blobs(blob, gguf);
    test_no_memory(blob);
    test_callers();
    return check_report("test_abi");
}
