/*
 * sn_convert: round trips, the rule of types, refusals.
 * Usage: test_convert FOLDER-FOR-FILES [models/test]
 */
#include "check.h"

#include "formats/gguf_write.h"
#include "quant/packed.h"

#include <math.h>

static const char *folder, *models;
static char micro[512], k256[512]; /* paths of the models */

/* A path in the folder; four of them are valid at a time. */
static const char *file_at(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/convert-%s", folder, name);
    return path;
}

static bool exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

static sn_status convert(const char *in, const char *out, const char *type, int packed) {
    sn_convert_options options;
    sn_convert_options_init(&options);
    options.type = type;
    options.packed = packed;
    remove(out);
    return sn_convert(in, out, &options);
}

#define CONVERT(in, out, type, packed)                                                        \
    CHECK(convert(in, out, type, packed) == SN_OK, "%s", sn_last_error())

/* ---- models in memory --------------------------------------------------------------------- */

typedef struct model {
    sn_gguf gguf;
    uint8_t **data; /* of each tensor */
} model;

static model open_model(const char *path) {
    model m = {0};
    sn_status status = sn_gguf_open(path, &m.gguf);
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (status != SN_OK) exit(1);
    m.data = calloc(m.gguf.n_tensors + 1, sizeof *m.data);
    for (uint64_t i = 0; i < m.gguf.n_tensors; i++) {
        const sn_gguf_tensor *tensor = &m.gguf.tensors[i];
        sn_input *input = &m.gguf.parts[tensor->part].input;
        m.data[i] = malloc(tensor->bytes);
        CHECK(sn_input_skip_to(input, tensor->offset) == SN_OK &&
                  sn_input_read(input, m.data[i], (size_t)tensor->bytes) == SN_OK,
              "%s", sn_last_error());
    }
    return m;
}

static void close_model(model *m) {
    for (uint64_t i = 0; i < m->gguf.n_tensors; i++)
        free(m->data[i]);
    free(m->data);
    sn_gguf_close(&m->gguf);
}

static uint64_t find(const model *m, const char *name) {
    const sn_gguf_tensor *tensor = sn_gguf_find_tensor(&m->gguf, name);
    CHECK(tensor, "no tensor %s", name);
    return tensor ? (uint64_t)(tensor - m->gguf.tensors) : 0;
}

static bool same_tensor(const model *a, uint64_t i, const model *b, uint64_t j) {
    const sn_gguf_tensor *x = &a->gguf.tensors[i], *y = &b->gguf.tensors[j];
    return !strcmp(x->name, y->name) && x->type == y->type && x->n_dims == y->n_dims &&
           !memcmp(x->dims, y->dims, x->n_dims * sizeof x->dims[0]) && x->bytes == y->bytes &&
           !memcmp(a->data[i], b->data[j], (size_t)x->bytes);
}

static void check_same_model(const char *path_a, const char *path_b) {
    model a = open_model(path_a), b = open_model(path_b);
    CHECK(a.gguf.n_tensors == b.gguf.n_tensors, "%s, %s", path_a, path_b);
    for (uint64_t i = 0; i < a.gguf.n_tensors && i < b.gguf.n_tensors; i++)
        CHECK(same_tensor(&a, i, &b, i), "%s: %s", path_b, a.gguf.tensors[i].name);
    CHECK(a.gguf.n_values == b.gguf.n_values, "%s, %s", path_a, path_b);
    for (uint64_t i = 0; i < a.gguf.n_values && i < b.gguf.n_values; i++) {
        const sn_gguf_value *x = &a.gguf.values[i], *y = &b.gguf.values[i];
        CHECK(x->key.size == y->key.size && !memcmp(x->key.data, y->key.data, x->key.size) &&
                  x->kind == y->kind && x->bytes == y->bytes && !memcmp(x->data, y->data, x->bytes),
              "%s: %.*s", path_b, (int)x->key.size, x->key.data);
    }
    close_model(&a);
    close_model(&b);
}

/* ---- round trips -------------------------------------------------------------------------- */

static void test_round_trip(const char *path) {
    CONVERT(path, file_at("copy.gguf"), NULL, 0);
    check_same_model(path, file_at("copy.gguf"));

    CONVERT(path, file_at("packed.gguf"), NULL, 1);
    CONVERT(file_at("packed.gguf"), file_at("plain.gguf"), NULL, 0);
    check_same_model(path, file_at("plain.gguf"));
    CONVERT(file_at("packed.gguf"), file_at("packed2.gguf"), NULL, 1);
    check_same_model(file_at("packed.gguf"), file_at("packed2.gguf"));
}

static void test_packed_file(void) {
    CONVERT(micro, file_at("packed.gguf"), NULL, 1);
    model plain = open_model(micro), m = open_model(file_at("packed.gguf"));
    sn_packed packed;
    CHECK(sn_packed_read(&m.gguf, &packed) == SN_OK && packed.tensors, "%s", sn_last_error());
    uint64_t n = 0;
    for (uint64_t i = 0; i < m.gguf.n_tensors; i++) {
        const sn_gguf_tensor *was = &plain.gguf.tensors[i], *is = &m.gguf.tensors[i];
        const sn_packed_tensor *matrix = sn_packed_at(&packed, i);
        bool expected = was->n_dims == 2 && strcmp(was->name, "token_embd.weight") != 0;
        CHECK(!!matrix == expected, "%s", was->name);
        if (!matrix) continue;
        n++;
        CHECK(matrix->type->id == was->type && matrix->k == was->dims[0] &&
                  matrix->rows == was->dims[1], "%s", was->name);
        CHECK(is->type == SN_TYPE_I8 && is->bytes == sn_packed_bytes(matrix), "%s", is->name);
    }
    CHECK(n == 3 * 14 + 1, "%d tensors packed", (int)n);
    sn_packed_free(&packed);
    CHECK(sn_packed_read(&plain.gguf, &packed) == SN_OK && !packed.tensors, "plain file");
    close_model(&plain);
    close_model(&m);
}

/* First one, then the other, or both at once: the same file. */
static void test_type_and_packed(void) {
    static const char *const types[] = {"f16", "q8_0", "q4_0"};
    for (int i = 0; i < 3; i++) {
        CONVERT(k256, file_at("typed.gguf"), types[i], 0);
        CONVERT(file_at("typed.gguf"), file_at("two.gguf"), NULL, 1);
        CONVERT(k256, file_at("one.gguf"), types[i], 1);
        check_same_model(file_at("two.gguf"), file_at("one.gguf"));
        CONVERT(k256, file_at("packed.gguf"), NULL, 1);
        CONVERT(file_at("packed.gguf"), file_at("back.gguf"), types[i], 0);
        check_same_model(file_at("typed.gguf"), file_at("back.gguf"));
    }
}

/* ---- types and values --------------------------------------------------------------------- */

/* What docs/formats.md says of the micro models, whose sources are F32 or quantised. */
static uint32_t expected_type(const sn_gguf_tensor *tensor, uint32_t wanted) {
    static const char *const low_rank[] = {"time_mix_a1", "time_mix_a2", "time_mix_v1",
                                           "time_mix_v2", "time_mix_g1", "time_mix_g2"};
    if (tensor->n_dims != 2 || strstr(tensor->name, "time_mix_w")) return SN_TYPE_F32;
    for (int i = 0; i < 6; i++)
        if (strstr(tensor->name, low_rank[i]))
            return wanted == SN_TYPE_F16 || wanted == SN_TYPE_BF16 ? wanted : SN_TYPE_F32;
    return wanted;
}

static void check_values(const model *from, const model *to, uint64_t i) {
    const sn_gguf_tensor *a = &from->gguf.tensors[i], *b = &to->gguf.tensors[i];
    const sn_type *source = sn_type_find(a->type), *target = sn_type_find(b->type);
    uint64_t n = 1;
    for (uint32_t d = 0; d < a->n_dims; d++)
        n *= a->dims[d];
    float *values = malloc(n * sizeof *values);
    uint8_t *bytes = malloc(b->bytes);
    source->decode(from->data[i], values, n);
    target->encode(values, bytes, n);
    CHECK(sn_type_bytes(target, n) == b->bytes && !memcmp(bytes, to->data[i], b->bytes),
          "%s as %s", b->name, target->name);
    free(values);
    free(bytes);
}

static void test_types(const char *path) {
    static const char *const names[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};
    static const uint32_t file_types[] = {0, 1, 32, 7, 2};
    model from = open_model(path);
    for (int t = 0; t < 5; t++) {
        CONVERT(path, file_at("typed.gguf"), names[t], 0);
        model to = open_model(file_at("typed.gguf"));
        CHECK(from.gguf.n_tensors == to.gguf.n_tensors, "%s", names[t]);
        for (uint64_t i = 0; i < to.gguf.n_tensors; i++) {
            const sn_gguf_tensor *tensor = &to.gguf.tensors[i];
            uint32_t expected = expected_type(tensor, sn_type_by_name(names[t])->id);
            CHECK(tensor->type == expected, "%s: %s", names[t], tensor->name);
            check_values(&from, &to, i);
        }
        uint32_t file_type = 99;
        CHECK(sn_gguf_get_u32(&to.gguf, "general.file_type", true, &file_type) == SN_OK &&
                  file_type == file_types[t], "%s: file type %u", names[t], (unsigned)file_type);
        close_model(&to);
    }
    close_model(&from);
}

/* ---- made-up models ----------------------------------------------------------------------- */

typedef struct made_tensor {
    const char *name;
    uint32_t type, k, rows;
    float fill;
} made_tensor;

static void must(sn_status status) {
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (status != SN_OK) exit(1);
}

/* Declares the tensors and fills each with one value (F32, F16), or zeros. */
static void write_tensors(sn_gguf_writer *writer, const made_tensor *tensors, int n) {
    for (int i = 0; i < n; i++) {
        uint64_t dims[2] = {tensors[i].k, tensors[i].rows};
        const sn_type *type = sn_type_find(tensors[i].type);
        must(sn_gguf_declare(writer, tensors[i].name, type->id, 2, dims,
                             sn_type_bytes(type, dims[0] * dims[1])));
    }
    for (int i = 0; i < n; i++) {
        const sn_type *type = sn_type_find(tensors[i].type);
        size_t count = (size_t)tensors[i].k * tensors[i].rows;
        size_t bytes = (size_t)sn_type_bytes(type, count);
        uint8_t *data = calloc(bytes, 1);
        float *values = calloc(count, sizeof *values);
        values[count - 1] = tensors[i].fill;
        if (type->encode) type->encode(values, data, count);
        must(sn_gguf_write_data(writer, data, bytes));
        free(data);
        free(values);
    }
}

static void make_model(const char *path, const char *architecture, const made_tensor *tensors,
                       int n) {
    sn_gguf_writer *writer;
    must(sn_gguf_writer_new(path, &writer));
    must(sn_gguf_put_text(writer, "general.architecture", architecture));
    write_tensors(writer, tensors, n);
    must(sn_gguf_writer_finish(writer));
}

/* Rows that are no multiple of the block, types that cannot be computed with. */
static void test_odd_tensors(void) {
    const made_tensor tensors[] = {
        {"blk.0.time_mix_key.weight", SN_TYPE_F32, 48, 3, 1},
        {"blk.0.time_mix_value.weight", SN_TYPE_F16, 48, 3, 1},
        {"blk.0.time_mix_output.weight", SN_TYPE_BF16, 48, 3, 1},
        {"blk.0.channel_mix_key.weight", SN_TYPE_F16, 64, 3, 1},
        {"blk.0.time_mix_a1.weight", SN_TYPE_F16, 64, 3, 1},
        {"blk.0.time_mix_w1.weight", SN_TYPE_BF16, 64, 3, 1},
        {"blk.0.time_mix_g1.weight", SN_TYPE_Q8_0, 64, 3, 1},
        {"blk.0.time_mix_receptance.weight", SN_TYPE_F32, 64, 1, 1},
        {"counts", 26, 5, 2, 0},
    };
    const uint32_t expected[] = {SN_TYPE_F32, SN_TYPE_F16, SN_TYPE_BF16, SN_TYPE_Q8_0, SN_TYPE_F16,
                                 SN_TYPE_BF16, SN_TYPE_F32, SN_TYPE_F32, 26};
    make_model(file_at("odd.gguf"), "rwkv7", tensors, 9);
    CONVERT(file_at("odd.gguf"), file_at("odd-q8.gguf"), "q8_0", 0);
    model m = open_model(file_at("odd-q8.gguf"));
    for (int i = 0; i < 9; i++)
        CHECK(m.gguf.tensors[find(&m, tensors[i].name)].type == expected[i], "%s",
              tensors[i].name);
    uint32_t version = 0;
    sn_gguf_get_u32(&m.gguf, "general.quantization_version", false, &version);
    CHECK(version == 2, "quantization version %u", (unsigned)version);
    close_model(&m);
    CONVERT(file_at("odd.gguf"), file_at("packed.gguf"), NULL, 1);
    CONVERT(file_at("packed.gguf"), file_at("plain.gguf"), NULL, 0);
    check_same_model(file_at("odd.gguf"), file_at("plain.gguf"));
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* Fails with `code` and a line that holds `text`; leaves no file behind. */
static void check_refused(const char *in, const char *type, int packed, sn_status code,
                          const char *text) {
    const char *out = file_at("refused.gguf");
    sn_status status = convert(in, out, type, packed);
    CHECK(status == code && strstr(sn_last_error(), text), "%d %s", (int)status,
          sn_last_error());
    CHECK(!exists(out), "%s: a file is left", text);
}

static void test_bad_arguments(void) {
    const char *out = file_at("refused.gguf");
    sn_convert_options options = {0};
    CHECK(sn_convert(NULL, out, NULL) == SN_E_INVAL, "NULL input");
    CHECK(sn_convert(micro, NULL, NULL) == SN_E_INVAL, "NULL output");
    CHECK(sn_convert(micro, out, &options) == SN_E_INVAL, "options not initialised");
    CHECK(sn_convert("", out, NULL) == SN_E_IO, "empty input: %s", sn_last_error());
    CHECK(sn_convert(micro, "", NULL) == SN_E_IO, "empty output: %s", sn_last_error());
    check_refused(file_at("no-such-file"), NULL, 0, SN_E_IO, "no-such-file");
    check_refused(folder, NULL, 0, SN_E_IO, folder);
    check_refused(micro, "q4_k", 0, SN_E_UNSUPPORTED, "q4_k");
    check_refused(micro, "int4", 0, SN_E_UNSUPPORTED, "supported: f32");
    check_refused(micro, "", 0, SN_E_UNSUPPORTED, "type ''");
    CHECK(sn_convert(micro, file_at("no/such/folder.gguf"), NULL) == SN_E_IO, "%s",
          sn_last_error());
    sn_convert_options_init(NULL);
}

static void test_same_file(void) {
    char other_spelling[1024];
    CONVERT(k256, file_at("same.gguf"), NULL, 0);
    snprintf(other_spelling, sizeof other_spelling, "%s/./convert-same.gguf", folder);
    CHECK(sn_convert(file_at("same.gguf"), other_spelling, NULL) == SN_E_INVAL, "%s",
          sn_last_error());
    check_same_model(k256, file_at("same.gguf"));
}

static void test_bad_values(void) {
    const struct {
        float fill;
        const char *type;
        int packed;
        sn_status status;
    } cases[] = {
        {NAN, NULL, 0, SN_E_NUMERIC},     {-INFINITY, "f16", 0, SN_E_NUMERIC},
        {NAN, NULL, 1, SN_E_NUMERIC},     {70000.0f, "f16", 0, SN_E_NUMERIC},
        {9e6f, "q8_0", 0, SN_E_NUMERIC},  {-6e5f, "q4_0", 1, SN_E_NUMERIC},
        {3.4e38f, "bf16", 0, SN_E_NUMERIC},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const made_tensor tensor = {"output.weight", SN_TYPE_F32, 64, 40, cases[i].fill};
        make_model(file_at("bad.gguf"), "rwkv7", &tensor, 1);
        check_refused(file_at("bad.gguf"), cases[i].type, cases[i].packed, cases[i].status,
                      "tensor 'output.weight'");
    }
    const made_tensor unknown = {"output.weight", 10, 256, 2, 0};
    make_model(file_at("bad.gguf"), "rwkv7", &unknown, 1);
    check_refused(file_at("bad.gguf"), "f16", 0, SN_E_UNSUPPORTED, "Q2_K");
    CONVERT(file_at("bad.gguf"), file_at("copy.gguf"), NULL, 1);
    check_same_model(file_at("bad.gguf"), file_at("copy.gguf"));

    make_model(file_at("bad.gguf"), "foo", &unknown, 1);
    check_refused(file_at("bad.gguf"), NULL, 0, SN_E_UNSUPPORTED,
                  "architecture 'foo' cannot be converted (supported: rwkv7)");
}

typedef struct stopper {
    int calls, stop_at;
    double done, total;
} stopper;

static int32_t count_and_stop(void *user, double done, double total) {
    stopper *stop = user;
    CHECK(done > stop->done && done <= total, "%g after %g of %g", done, stop->done, total);
    stop->done = done;
    stop->total = total;
    return ++stop->calls == stop->stop_at;
}

static void test_progress(void) {
    const char *out = file_at("stopped.gguf");
    for (int packed = 0; packed < 2; packed++)
        for (int stop_at = 1; stop_at < 30; stop_at += 14) {
            stopper stop = {.stop_at = stop_at};
            sn_convert_options options;
            sn_convert_options_init(&options);
            options.progress = count_and_stop;
            options.progress_user = &stop;
            options.packed = packed;
            remove(out);
            CHECK(sn_convert(micro, out, &options) == SN_E_ABORTED, "%s", sn_last_error());
            CHECK(stop.calls == stop_at && !exists(out), "%d calls", stop.calls);
            stop = (stopper){.stop_at = -1};
            CHECK(sn_convert(micro, out, &options) == SN_OK, "%s", sn_last_error());
            CHECK(stop.done == stop.total, "%g of %g", stop.done, stop.total);
        }
}

/* A conversion that fails leaves an older file of that name alone. */
static void test_old_file_stays(void) {
    const char *out = file_at("old.gguf");
    CONVERT(k256, out, NULL, 0);
    stopper stop = {.stop_at = 2};
    sn_convert_options options;
    sn_convert_options_init(&options);
    options.progress = count_and_stop;
    options.progress_user = &stop;
    CHECK(sn_convert(micro, out, &options) == SN_E_ABORTED, "%s", sn_last_error());
    check_same_model(k256, out);
}

static void test_no_memory(void) {
    const char *out = file_at("memory.gguf");
    sn_status status = SN_E_NOMEM;
    for (long n = 1; status != SN_OK && n < 1000; n++) {
        sn_alloc_fail_at(n);
        status = convert(k256, out, "q8_0", 1);
        sn_alloc_fail_at(0);
        CHECK(status == SN_OK || (status == SN_E_NOMEM && !exists(out)), "allocation %ld: %d %s",
              n, (int)status, sn_last_error());
    }
    CHECK(status == SN_OK, "%s", sn_last_error());
}

/* ---- packed files that lie ----------------------------------------------------------------- */

typedef struct packed_keys {
    uint32_t version, rows, n_names, types[2], n_types, dims[4], n_dims;
    const char *names[2];
} packed_keys;

/* Two vectors of I8, as panels of Q8_0 16 x 32 (544 bytes) and F32 4 x 3 (256 bytes). */
static void make_packed(const char *path, const packed_keys *keys) {
    sn_gguf_writer *writer;
    const made_tensor tensors[] = {{"a.weight", SN_TYPE_I8, 544, 1, 0},
                                   {"b.weight", SN_TYPE_I8, 256, 1, 0}};
    must(sn_gguf_writer_new(path, &writer));
    must(sn_gguf_put_text(writer, "general.architecture", "rwkv7"));
    if (keys->version) must(sn_gguf_put_u32(writer, SN_PACKED_VERSION, keys->version));
    must(sn_gguf_put_u32(writer, SN_PACKED_ROWS, keys->rows));
    must(sn_gguf_put_texts(writer, SN_PACKED_NAMES, keys->names, keys->n_names));
    must(sn_gguf_put_u32s(writer, SN_PACKED_TYPES, keys->types, keys->n_types));
    must(sn_gguf_put_u32s(writer, SN_PACKED_DIMS, keys->dims, keys->n_dims));
    write_tensors(writer, tensors, 2);
    must(sn_gguf_writer_finish(writer));
}

static const packed_keys good_keys = {
    .version = 1, .rows = 16, .n_names = 2, .names = {"a.weight", "b.weight"},
    .types = {SN_TYPE_Q8_0, SN_TYPE_F32}, .n_types = 2, .dims = {32, 16, 4, 3}, .n_dims = 4,
};

static void check_lie(const packed_keys *keys, sn_status code, const char *text) {
    make_packed(file_at("lie.gguf"), keys);
    check_refused(file_at("lie.gguf"), NULL, 0, code, text);
}

static void test_packed_lies(void) {
    packed_keys keys = good_keys;
    make_packed(file_at("true.gguf"), &keys);
    CONVERT(file_at("true.gguf"), file_at("plain.gguf"), NULL, 0);
    model m = open_model(file_at("plain.gguf"));
    const sn_gguf_tensor *b = &m.gguf.tensors[find(&m, "b.weight")];
    CHECK(b->type == SN_TYPE_F32 && b->n_dims == 2 && b->dims[0] == 4 && b->dims[1] == 3, "b");
    close_model(&m);

    const struct {
        size_t at; /* of a u32 in packed_keys */
        uint32_t value;
        sn_status code;
        const char *text;
    } lies[] = {
        {offsetof(packed_keys, version), 0, SN_E_FORMAT, SN_PACKED_VERSION},
        {offsetof(packed_keys, version), 2, SN_E_UNSUPPORTED, SN_PACKED_VERSION},
        {offsetof(packed_keys, rows), 8, SN_E_UNSUPPORTED, SN_PACKED_ROWS},
        {offsetof(packed_keys, n_types), 1, SN_E_FORMAT, SN_PACKED_TYPES},
        {offsetof(packed_keys, n_dims), 3, SN_E_FORMAT, SN_PACKED_DIMS},
        {offsetof(packed_keys, n_names), 1, SN_E_FORMAT, SN_PACKED_TYPES},
        {offsetof(packed_keys, types), 10, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, types), SN_TYPE_I8, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, types), 77, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, types), SN_TYPE_Q4_0, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, dims), 0, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, dims), 33, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, dims), 0xffffffe0u, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, dims) + 4, 0, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, dims) + 4, 17, SN_E_FORMAT, "'a.weight'"},
        {offsetof(packed_keys, dims) + 4, 0xffffffffu, SN_E_FORMAT, "'a.weight'"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        keys = good_keys;
        memcpy((char *)&keys + lies[i].at, &lies[i].value, sizeof lies[i].value);
        check_lie(&keys, lies[i].code, lies[i].text);
    }
    static const char *const names[][3] = {
        {"a.weight", "a.weight", SN_PACKED_NAMES}, {"b.weight", "a.weight", "'b.weight'"},
        {"a.weight", "c.weight", SN_PACKED_NAMES}, {"a.weight", "", SN_PACKED_NAMES},
        {"a", "b", SN_PACKED_NAMES}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        keys = good_keys;
        memcpy(keys.names, names[i], sizeof keys.names);
        check_lie(&keys, SN_E_FORMAT, names[i][2]);
    }
}

static void remove_files(void) {
    static const char *const names[] = {
        "copy", "packed", "plain", "packed2", "typed", "two", "one", "back", "odd", "odd-q8",
        "same", "bad", "stopped", "old", "memory", "lie", "true"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.gguf", names[i]);
        CHECK(remove(file_at(name)) == 0, "%s was not made", name);
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: test_convert FOLDER [models/test]\n");
        return 2;
    }
    folder = argv[1];
    models = argc > 2 ? argv[2] : "models/test";
    snprintf(micro, sizeof micro, "%s/rwkv7-micro.f32.gguf", models);
    snprintf(k256, sizeof k256, "%s/rwkv7-k256.q4_k_m.gguf", models);
    test_round_trip(micro);
    test_round_trip(k256);
    test_packed_file();
    test_type_and_packed();
    test_types(micro);
    test_types(k256);
    test_odd_tensors();
    test_bad_arguments();
    test_same_file();
    test_bad_values();
    test_progress();
    test_old_file_stays();
    test_no_memory();
    test_packed_lies();
    remove_files();
    return check_report("convert");
}
