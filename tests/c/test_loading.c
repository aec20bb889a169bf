/*
 * test_loading.c: loading in steps gives the model that loading from a path gives, whatever the
 * sizes in which bytes come; what is missing or wrong is told; nothing leaks at any point.
 * argv[1]: models/test
 */
#include "check.h"

#include "memory.h"
#include "status.h"
#include "sunnynet.h"

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot open\n", path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size + 1);
    if (fread(data, 1, *size, file) != *size) exit(1);
    fclose(file);
    return data;
}

/* Feeds `size` bytes in steps of at most `step` (0: random ones). */
static sn_status feed(sn_loading *loading, const uint8_t *data, size_t size, size_t step,
                      check_random *random) {
    size_t at = 0;
    for (;;) {
        void *buffer;
        size_t bytes;
        SN_TRY(sn_loading_next(loading, &buffer, &bytes));
        if (!bytes || at == size) return SN_OK;
        const size_t most = step ? step : 1 + check_below(random, 100000);
        if (bytes > most) bytes = most;
        if (bytes > size - at) bytes = size - at;
        memcpy(buffer, data + at, bytes);
        at += bytes;
        SN_TRY(sn_loading_advance(loading, bytes));
    }
}

static void logits_of(const sn_model *model, float *logits) {
    static const int32_t tokens[] = { 1, 2, 3, 4, 5 };
    sn_state *state = NULL;
    CHECK(sn_state_new(model, &state) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_prefill(state, tokens, 5, logits) == SN_OK, "%s", sn_last_error());
    sn_state_free(state);
}

static void same_as_from_path(const char *path, const uint8_t *data, size_t size) {
    static const size_t steps[] = { 1u << 30, 65536, 4099, 0, 0, 0 };
    float want[4096], got[4096];
    check_random random = { 7 };
    sn_model *model = NULL;
    CHECK(sn_model_load(path, NULL, &model) == SN_OK, "%s", sn_last_error());
    const size_t vocab = (size_t)sn_model_vocab(model);
    logits_of(model, want);
    sn_model_free(model);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        sn_loading *loading = NULL;
        model = NULL;
        CHECK(sn_loading_new("download", (double)size, NULL, &loading) == SN_OK, "new");
        CHECK(feed(loading, data, size, steps[i], &random) == SN_OK, "%s", sn_last_error());
        CHECK(sn_loading_finish(loading, &model) == SN_OK, "%s: %s", path, sn_last_error());
        sn_loading_free(loading);
        if (!model) return;
        logits_of(model, got);
        CHECK(memcmp(want, got, vocab * sizeof(float)) == 0, "%s, steps of %zu", path, steps[i]);
        sn_model_free(model);
    }
}

/* Stopping anywhere leaves nothing behind and finish() says how much came. */
static void every_cut(const uint8_t *data, size_t size) {
    check_random random = { 11 };
    for (size_t cut = 0; cut < size; cut += 1 + size / 97) {
        sn_loading *loading = NULL;
        sn_model *model = NULL;
        CHECK(sn_loading_new("cut", (double)size, NULL, &loading) == SN_OK, "new");
        CHECK(feed(loading, data, cut, 0, &random) == SN_OK, "%s", sn_last_error());
        CHECK(sn_loading_finish(loading, &model) == SN_E_FORMAT && !model, "cut at %zu", cut);
        CHECK(strstr(sn_last_error(), "bytes came") != NULL, "%s", sn_last_error());
        sn_loading_free(loading);
    }
}

/* A file that claims to be as short as what came is refused like any truncated file. */
static void every_truncation(const uint8_t *data, size_t size) {
    check_random random = { 13 };
    for (size_t cut = 1; cut < size; cut += 1 + size / 97) {
        sn_loading *loading = NULL;
        sn_model *model = NULL;
        CHECK(sn_loading_new("short", (double)cut, NULL, &loading) == SN_OK, "new");
        const sn_status status = feed(loading, data, cut, 0, &random);
        CHECK(status == SN_E_FORMAT, "cut at %zu: %d", cut, (int)status);
        CHECK(strncmp(sn_last_error(), "short: ", 7) == 0, "%s", sn_last_error());
        CHECK(sn_loading_finish(loading, &model) == SN_E_FORMAT && !model, "finish");
        sn_loading_free(loading);
    }
}

static void every_allocation(const uint8_t *data, size_t size) {
    check_random random = { 17 };
    for (long n = 1;; n++) {
        sn_loading *loading = NULL;
        sn_model *model = NULL;
        sn_alloc_fail_at(n);
        sn_status status = sn_loading_new("model", (double)size, NULL, &loading);
        if (status == SN_OK) status = feed(loading, data, size, 1 << 16, &random);
        if (status == SN_OK) status = sn_loading_finish(loading, &model);
        sn_alloc_fail_at(0);
        sn_loading_free(loading);
        sn_model_free(model);
        if (status == SN_OK) break;
        CHECK(status == SN_E_NOMEM, "allocation %ld: %d %s", n, (int)status, sn_last_error());
    }
}

static void misuse(const uint8_t *data, size_t size) {
    sn_loading *loading = NULL;
    sn_model *model = NULL;
    void *buffer;
    size_t bytes;
    CHECK(sn_loading_new("x", -1.0, NULL, &loading) == SN_E_INVAL, "negative size");
    CHECK(sn_loading_new("x", 0.0, NULL, &loading) == SN_E_FORMAT, "empty");
    CHECK(sn_loading_new("x", 100.0, NULL, NULL) == SN_E_INVAL, "NULL");
    CHECK(sn_loading_next(NULL, &buffer, &bytes) == SN_E_INVAL, "NULL");
    CHECK(sn_loading_advance(NULL, 0) == SN_E_INVAL, "NULL");
    CHECK(sn_loading_finish(NULL, &model) == SN_E_INVAL, "NULL");
    sn_loading_free(NULL);
    CHECK(sn_loading_new(NULL, (double)size, NULL, &loading) == SN_OK, "new");
    CHECK(sn_loading_next(loading, NULL, &bytes) == SN_E_INVAL, "NULL");
    CHECK(sn_loading_next(loading, &buffer, &bytes) == SN_OK && bytes > 0, "next");
    CHECK(sn_loading_advance(loading, bytes + 1) == SN_E_INVAL, "too much");
    memset(buffer, 'x', bytes);
    CHECK(sn_loading_advance(loading, bytes) == SN_E_FORMAT, "not a GGUF file");
    CHECK(sn_loading_next(loading, &buffer, &bytes) == SN_E_FORMAT, "stays failed");
    sn_loading_free(loading);
    (void)data;
}

int main(int argc, char **argv) {
    static const char *const names[] = { "rwkv7-micro.f16.gguf", "rwkv7-k256.q4_k_m.gguf",
                                         "rwkv7-k256.q8_0.gguf" };
    if (argc < 2) return 2;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]);
        uint8_t *data = read_file(path, &size);
        same_as_from_path(path, data, size);
        every_cut(data, size);
        every_truncation(data, size);
        if (i == 1) every_allocation(data, size);
        misuse(data, size);
        free(data);
    }
    return check_report("test_loading");
}
