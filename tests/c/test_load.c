/*
 * test_load: a model is the same however its file is read: by any number of threads, from memory
 * or a stream, packed or not, mapped or not. What cannot be mapped is refused, what is damaged is
 * named, and how a model runs can be asked. Usage: test_load MODELS FOLDER
 */
#include "models.h"

#include "formats/gguf.h"
#include "memory.h"
#include "sunnynet.h"

static const char *models, *folder;

static const char *const names[] = {
    "rwkv7-k256.q8_0.gguf", "rwkv7-k256.q4_k_m.gguf", "rwkv7-k256.q2_k.gguf",
    "rwkv7-micro.f16.gguf", "rwkv7-micro.f32.gguf", "mamba-micro.f16.gguf",
    "mamba2-micro-g2.q8_0.gguf", "gla-micro.q4_0.gguf", "sunnynet-micro.q8_0.gguf",
    "rwkv7-fairy-f16.gguf", /* more pieces than are read at once */
};
#define N_NAMES (sizeof names / sizeof names[0])

static char source_path[512], packed_path[512];

static void pack(const char *name) {
    sn_convert_options options;
    sn_convert_options_init(&options);
    options.packed = 1;
    join(source_path, sizeof source_path, models, name);
    join(packed_path, sizeof packed_path, folder, "load-packed.gguf");
    CHECK(sn_convert(source_path, packed_path, &options) == SN_OK, "%s", sn_last_error());
}

static sn_model_options options_of(int32_t n_threads, int32_t map) {
    sn_model_options options;
    sn_model_options_init(&options);
    options.n_threads = n_threads;
    options.map = map;
    return options;
}

/* ---- the same model -------------------------------------------------------------------------- */

/* A saved state holds the fingerprint of the weights and what was computed with them. */
static uint8_t *save_and_free(sn_model *model, size_t *size) {
    static const int32_t tokens[] = { 1, 2, 3, 4, 5 };
    sn_state *state = new_state(model);
    CHECK(sn_state_prefill(state, tokens, 5, NULL) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_save(state, NULL, NULL, 0, size) == SN_OK, "%s", sn_last_error());
    uint8_t *saved = malloc(*size);
    CHECK(sn_state_save(state, NULL, saved, *size, size) == SN_OK, "%s", sn_last_error());
    sn_state_free(state);
    sn_model_free(model);
    return saved;
}

static void check_saves(sn_model *model, const uint8_t *wanted, size_t wanted_size,
                        const char *how) {
    size_t size;
    uint8_t *saved = save_and_free(model, &size);
    CHECK(size == wanted_size && memcmp(saved, wanted, size) == 0, "%s, %s", source_path, how);
    free(saved);
}

static sn_status load_stream(const uint8_t *data, size_t size, const sn_model_options *options,
                             sn_model **model) {
    bytes_left left = { data, size };
    const sn_source source = { .struct_size = sizeof source, .size = size,
                               .read = read_bytes_left, .user = &left };
    return sn_model_load_source(&source, options, model);
}

static void check_bytes(const char *path, int32_t n_threads, const uint8_t *wanted, size_t n) {
    size_t size;
    uint8_t *data = read_file(path, &size);
    const sn_model_options options = options_of(n_threads, 0);
    sn_model *model = NULL;
    CHECK(sn_model_load_memory(data, size, &options, &model) == SN_OK, "%s", sn_last_error());
    check_saves(model, wanted, n, "from memory");
    CHECK(load_stream(data, size, &options, &model) == SN_OK, "%s", sn_last_error());
    check_saves(model, wanted, n, "from a stream");
    free(data);
}

static void test_same(const char *name) {
    size_t size;
    pack(name);
    sn_model_options options = options_of(1, 0);
    uint8_t *wanted = save_and_free(load_model(source_path, &options), &size);
    for (int32_t n_threads = 1; n_threads <= 5; n_threads += 2) {
        options = options_of(n_threads, 0);
        check_saves(load_model(source_path, &options), wanted, size, "not packed");
        check_saves(load_model(packed_path, &options), wanted, size, "packed");
        options.map = 1;
        check_saves(load_model(packed_path, &options), wanted, size, "mapped");
        check_bytes(source_path, n_threads, wanted, size);
        check_bytes(packed_path, n_threads, wanted, size);
    }
    free(wanted);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void check_refused(sn_status status, sn_status wanted, const char *part) {
    CHECK(status == wanted && strstr(sn_last_error(), part), "%d, not %d with '%s': %s",
          (int)status, (int)wanted, part, sn_last_error());
}

static void test_cannot_map(void) {
    size_t size;
    sn_model *model = NULL;
    sn_model_options options = options_of(2, 1);
    pack("rwkv7-k256.q8_0.gguf");
    uint8_t *data = read_file(packed_path, &size);
    check_refused(sn_model_load(source_path, &options, &model), SN_E_UNSUPPORTED, "is not packed");
    check_refused(sn_model_load_memory(data, size, &options, &model), SN_E_UNSUPPORTED,
                  "it is no file");
    check_refused(load_stream(data, size, &options, &model), SN_E_UNSUPPORTED, "it is no file");
    options.map = 2;
    check_refused(sn_model_load(packed_path, &options, &model), SN_E_INVAL, "map is 2");
    CHECK(model == NULL, "nothing was made");
    free(data);
}

/* Puts a NaN into the first scale of the panels of every tensor behind the first `spared`: behind
 * 32 codes of 16 rows. Copies the name of the first one. */
static void spoil(uint8_t *data, int spared, char name[64]) {
    sn_gguf gguf = { 0 };
    CHECK(sn_gguf_open(packed_path, &gguf) == SN_OK, "%s", sn_last_error());
    for (uint64_t i = 0; i < gguf.n_tensors; i++) {
        const sn_gguf_tensor *tensor = &gguf.tensors[i];
        if (tensor->type != SN_TYPE_I8 || spared-- > 0) continue;
        memcpy(data + tensor->offset + 512, "\x01\x7e", 2);
        if (spared == -1) snprintf(name, 64, "%s", tensor->name);
    }
    CHECK(spared < -1, "several are bad");
    sn_gguf_close(&gguf);
}

static void write_file(const char *path, const uint8_t *data, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(data, 1, size, file) == size, "%s", path);
    if (file) fclose(file);
}

/* Of several bad tensors the first one in the file is named, whoever finds which when. */
static void test_first_bad_tensor(void) {
    size_t size;
    char bad[512], name[64] = "";
    sn_model *model = NULL;
    pack("rwkv7-k256.q8_0.gguf");
    uint8_t *data = read_file(packed_path, &size);
    spoil(data, 2, name);
    write_file(join(bad, sizeof bad, folder, "load-bad.gguf"), data, size);
    for (int32_t n_threads = 1; n_threads <= 5; n_threads++) {
        const sn_model_options read = options_of(n_threads, 0);
        const sn_model_options mapped = options_of(n_threads, 1);
        check_refused(sn_model_load(bad, &read, &model), SN_E_NUMERIC, name);
        check_refused(sn_model_load(bad, &mapped, &model), SN_E_NUMERIC, name);
        check_refused(sn_model_load_memory(data, size, &read, &model), SN_E_NUMERIC, name);
    }
    CHECK(model == NULL, "nothing was made");
    free(data);
}

static size_t read_little(void *user, uint64_t offset, void *buffer, size_t bytes) {
    const size_t *end = user;
    if (offset >= *end) return 0;
    const size_t left = *end - (size_t)offset, n = left < 7 ? left : 7;
    memset(buffer, (int)offset, n < bytes ? n : bytes);
    return n < bytes ? n : bytes;
}

/* A file may give less than it was asked for, and end before its size. */
static void test_read_at(void) {
    uint8_t bytes[40];
    size_t end = 50;
    const sn_input input = { .name = "short", .size = 60, .read_at = read_little, .user = &end };
    CHECK(sn_input_read_at(&input, 10, bytes, 40) == SN_OK, "%s", sn_last_error());
    CHECK(bytes[0] == 10 && bytes[39] == 45, "%d %d", bytes[0], bytes[39]);
    check_refused(sn_input_read_at(&input, 15, bytes, 40), SN_E_FORMAT, "ends at byte 50, 5 more");
    check_refused(sn_input_read_at(&input, 50, bytes, 11), SN_E_FORMAT, "ends at byte 60, 1 more");
    check_refused(sn_input_read_at(&input, UINT64_MAX, bytes, 2), SN_E_FORMAT, "ends at byte 60");
}

/* Whichever allocation fails, nothing leaks and nothing crashes. */
static void test_no_memory(void) {
    sn_status status = SN_E_NOMEM;
    const sn_model_options options = options_of(2, 1);
    pack("mamba2-micro-g2.q8_0.gguf");
    for (long n = 1; n < 1000 && status != SN_OK; n++) {
        sn_model *model = NULL;
        sn_alloc_fail_at(n);
        status = sn_model_load(packed_path, &options, &model);
        sn_alloc_fail_at(0);
        CHECK(status == SN_OK || status == SN_E_NOMEM, "allocation %ld: %s", n, sn_last_error());
        sn_model_free(model);
    }
    CHECK(status == SN_OK, "there are fewer than 1000");
}

/* ---- how it runs ----------------------------------------------------------------------------- */

static sn_model_run run_of(int32_t n_threads, int32_t map) {
    sn_model_run run = { .struct_size = sizeof run };
    const sn_model_options options = options_of(n_threads, map);
    sn_model *model = load_model(packed_path, &options);
    CHECK(sn_model_get_run(model, &run) == SN_OK, "%s", sn_last_error());
    for (int32_t alone = 0; alone < 2; alone++) {
        double bytes = 0.0;
        CHECK(sn_model_read_weights(model, alone, &bytes) == SN_OK, "%s", sn_last_error());
        CHECK(bytes >= run.weight_bytes - 128.0, "%.0f of %.0f", bytes, run.weight_bytes);
    }
    sn_model_free(model);
    return run;
}

static void test_run(void) {
    pack("rwkv7-micro.f32.gguf");
    sn_model_run run = run_of(3, 0);
    CHECK(run.n_threads == 3 && run.threads_reason == SN_THREADS_ASKED, "%d", (int)run.n_threads);
    CHECK(run.weight_bytes > 1e6 && run.mapped_bytes == 0.0, "%.0f", run.weight_bytes);
    CHECK(run.huge_bytes >= -1.0 && run.huge_bytes <= run.weight_bytes, "%.0f", run.huge_bytes);
    run = run_of(0, 1);
    CHECK(run.n_threads == 1 && run.threads_reason == SN_THREADS_CACHE, "%d", (int)run.n_threads);
    CHECK(run.mapped_bytes > 0.9 * run.weight_bytes && run.mapped_bytes < run.weight_bytes,
          "%.0f of %.0f", run.mapped_bytes, run.weight_bytes);
}

static void test_run_refuses(void) {
    double bytes;
    sn_model_run run = { .struct_size = sizeof run - 1 };
    sn_model_options options = options_of(1, 0);
    sn_model *model = load_model(packed_path, &options);
    check_refused(sn_model_get_run(model, &run), SN_E_INVAL, "struct_size");
    check_refused(sn_model_get_run(NULL, &run), SN_E_INVAL, "model is NULL");
    check_refused(sn_model_read_weights(model, 0, NULL), SN_E_INVAL, "bytes is NULL");
    sn_model_free(model);
    options.header_only = 1;
    model = load_model(packed_path, &options);
    run.struct_size = sizeof run;
    check_refused(sn_model_get_run(model, &run), SN_E_INVAL, "without its weights");
    check_refused(sn_model_read_weights(model, 0, &bytes), SN_E_INVAL, "without its weights");
    sn_model_free(model);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    models = argv[1];
    folder = argv[2];
    for (size_t i = 0; i < N_NAMES; i++) test_same(names[i]);
    test_cannot_map();
    test_first_bad_tensor();
    test_read_at();
    test_no_memory();
    test_run();
    test_run_refuses();
    return check_report("load");
}
