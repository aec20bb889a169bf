/*
 * sn_convert: round trips, the rule of types, refusals.
 * Usage: test_convert FOLDER-FOR-FILES [models/test]
 */
#include "check.h"

#include "formats/gguf_write.h"
#include "quant/packed.h"

#include <math.h>

static const char *folder, *models;
static char micro[512], k256[512], sunny[512]; /* paths of the models */

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

/* docs/formats.md: the type of most matrices, of those that carry, of the head; file_type. */
static const struct asked {
    const char *name;
    uint32_t most, carry, head, file_type;
} asked[] = {
    {"f32", SN_TYPE_F32, SN_TYPE_F32, SN_TYPE_F32, 0},
    {"f16", SN_TYPE_F16, SN_TYPE_F16, SN_TYPE_F16, 1},
    {"bf16", SN_TYPE_BF16, SN_TYPE_BF16, SN_TYPE_BF16, 32},
    {"q8_0", SN_TYPE_Q8_0, SN_TYPE_Q8_0, SN_TYPE_Q8_0, 7},
    {"q4_0", SN_TYPE_Q4_0, SN_TYPE_Q4_0, SN_TYPE_Q4_0, 2},
    {"q4_1", SN_TYPE_Q4_1, SN_TYPE_Q4_1, SN_TYPE_Q4_1, 3},
    {"q5_0", SN_TYPE_Q5_0, SN_TYPE_Q5_0, SN_TYPE_Q5_0, 8},
    {"q5_1", SN_TYPE_Q5_1, SN_TYPE_Q5_1, SN_TYPE_Q5_1, 9},
    {"iq4_nl", SN_TYPE_IQ4_NL, SN_TYPE_IQ4_NL, SN_TYPE_IQ4_NL, 25},
    {"iq4_xs", SN_TYPE_IQ4_XS, SN_TYPE_IQ4_XS, SN_TYPE_IQ4_XS, 30},
    {"q6_k", SN_TYPE_Q6_K, SN_TYPE_Q6_K, SN_TYPE_Q6_K, 18},
    {"q2_k", SN_TYPE_Q2_K, SN_TYPE_Q3_K, SN_TYPE_Q6_K, 10},
    {"q3_k_s", SN_TYPE_Q3_K, SN_TYPE_Q3_K, SN_TYPE_Q6_K, 11},
    {"q3_k_m", SN_TYPE_Q3_K, SN_TYPE_Q4_K, SN_TYPE_Q6_K, 12},
    {"q3_k_l", SN_TYPE_Q3_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 13},
    {"q4_k_s", SN_TYPE_Q4_K, SN_TYPE_Q4_K, SN_TYPE_Q6_K, 14},
    {"Q4_K_M", SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 15},
    {"q5_k_s", SN_TYPE_Q5_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 16},
    {"q5_k_m", SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q6_K, 17},
    {"q3_k", SN_TYPE_Q3_K, SN_TYPE_Q4_K, SN_TYPE_Q6_K, 12},
    {"q4_k", SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 15},
    {"q5_k", SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q6_K, 17},
};
#define N_ASKED (sizeof asked / sizeof asked[0])

static bool is_float(uint32_t id) {
    return id == SN_TYPE_F32 || id == SN_TYPE_F16 || id == SN_TYPE_BF16;
}

static bool names_one_of(const char *name, const char *const *parts) {
    for (; *parts; parts++)
        if (strstr(name, *parts)) return true;
    return false;
}

/* The type that a row of k elements can have. */
static uint32_t fitting(uint32_t wanted, uint64_t k, uint32_t as_float) {
    static const uint32_t smaller[][2] = {
        {SN_TYPE_Q2_K, SN_TYPE_IQ4_NL}, {SN_TYPE_Q3_K, SN_TYPE_IQ4_NL},
        {SN_TYPE_IQ4_XS, SN_TYPE_IQ4_NL}, {SN_TYPE_Q4_K, SN_TYPE_Q5_0},
        {SN_TYPE_Q5_K, SN_TYPE_Q5_1},   {SN_TYPE_Q6_K, SN_TYPE_Q8_0}};
    for (size_t i = 0; k % 256 && i < sizeof smaller / sizeof smaller[0]; i++)
        if (smaller[i][0] == wanted) wanted = smaller[i][1];
    return k % sn_type_find(wanted)->block ? as_float : wanted;
}

/* What docs/formats.md says of the tensors of RWKV-7 and SunnyNet. */
static uint32_t expected_type(const sn_gguf_tensor *from, bool tied, const struct asked *type) {
    static const char *const vectors[] = {"norm", "lerp", "taps", "bias", "time_mix_ln", NULL};
    static const char *const decays[] = {"time_mix_w", "assoc_g", NULL};
    static const char *const spared[] = {"time_mix_a", "time_mix_v1", "time_mix_v2", "time_mix_g",
                                         NULL};
    static const char *const carries[] = {"_mix_value", ".mix.", "assoc_v", NULL};
    const uint32_t as_float = is_float(from->type) ? from->type : SN_TYPE_F32;
    if (from->n_dims != 2 || names_one_of(from->name, vectors)) return SN_TYPE_F32;
    if (names_one_of(from->name, decays)) return is_float(type->most) ? SN_TYPE_F32 : as_float;
    if (names_one_of(from->name, spared)) return is_float(type->most) ? type->most : as_float;
    if (!strcmp(from->name, tied ? "token_embd.weight" : "output.weight"))
        return fitting(type->head, from->dims[0], as_float);
    return fitting(names_one_of(from->name, carries) ? type->carry : type->most, from->dims[0],
                   as_float);
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
    if (source == target) memcpy(bytes, from->data[i], b->bytes);
    else target->encode(values, bytes, n);
    CHECK(sn_type_bytes(target, n) == b->bytes && !memcmp(bytes, to->data[i], b->bytes),
          "%s as %s", b->name, target->name);
    free(values);
    free(bytes);
}

static void check_types(const model *from, const model *to, const struct asked *type) {
    const bool tied = !sn_gguf_find_tensor(&from->gguf, "output.weight");
    CHECK(from->gguf.n_tensors == to->gguf.n_tensors, "%s", type->name);
    for (uint64_t i = 0; i < to->gguf.n_tensors; i++) {
        const sn_gguf_tensor *tensor = &to->gguf.tensors[i];
        const uint32_t expected = expected_type(&from->gguf.tensors[i], tied, type);
        CHECK(tensor->type == expected, "%s: %s is %u, not %u", type->name, tensor->name,
              (unsigned)tensor->type, (unsigned)expected);
        check_values(from, to, i);
    }
    uint32_t number = 99;
    CHECK(sn_gguf_get_u32(&to->gguf, "general.file_type", true, &number) == SN_OK &&
              number == type->file_type, "%s: file type %u", type->name, (unsigned)number);
    number = 0;
    sn_gguf_get_u32(&to->gguf, "general.quantization_version", false, &number);
    CHECK(number == 2 || is_float(type->most), "%s: version %u", type->name, (unsigned)number);
}

static void test_types(const char *path) {
    model from = open_model(path);
    for (size_t t = 0; t < N_ASKED; t++) {
        CONVERT(path, file_at("typed.gguf"), asked[t].name, 0);
        model to = open_model(file_at("typed.gguf"));
        check_types(&from, &to, &asked[t]);
        close_model(&to);
    }
    close_model(&from);
}

/* ---- made-up models ----------------------------------------------------------------------- */

/* A tensor that is not as the base has it: its values in another type, the last one replaced. */
typedef struct change {
    const char *name;
    uint32_t type;
    float last; /* 0: as it was */
} change;

static void must(sn_status status) {
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (status != SN_OK) exit(1);
}

static const change *change_of(const char *name, const change *changes, int n) {
    for (int i = 0; i < n; i++)
        if (!strcmp(changes[i].name, name)) return &changes[i];
    return NULL;
}

static void write_changed(sn_gguf_writer *writer, const model *base, uint64_t i, const change *to) {
    const sn_type *source = sn_type_find(base->gguf.tensors[i].type);
    const sn_type *type = sn_type_find(to->type);
    size_t n = (size_t)base->gguf.tensors[i].bytes / source->block_bytes * source->block;
    size_t bytes = (size_t)sn_type_bytes(type, n);
    float *values = malloc(n * sizeof *values);
    uint8_t *data = calloc(bytes, 1); /* types that cannot be written: zeros */
    source->decode(base->data[i], values, n);
    if (to->last != 0) values[n - 1] = to->last;
    if (type->encode) type->encode(values, data, n);
    must(sn_gguf_write_data(writer, data, bytes));
    free(values);
    free(data);
}

/* Copies the base with some tensors changed, and a vector of five integers that nothing uses. */
static void make_model(const char *path, const char *base_path, const change *changes, int n) {
    model base = open_model(base_path);
    sn_gguf_writer *writer;
    const uint64_t five[1] = {5};
    const uint8_t counts[20] = {1, 2, 3};
    must(sn_gguf_writer_new(path, &writer));
    for (uint64_t i = 0; i < base.gguf.n_values; i++)
        must(sn_gguf_put_value(writer, &base.gguf.values[i]));
    for (uint64_t i = 0; i < base.gguf.n_tensors; i++) {
        const sn_gguf_tensor *t = &base.gguf.tensors[i];
        const change *to = change_of(t->name, changes, n);
        const sn_type *source = sn_type_find(t->type), *type = to ? sn_type_find(to->type) : source;
        must(sn_gguf_declare(writer, t->name, type->id, t->n_dims, t->dims,
                             sn_type_bytes(type, t->bytes / source->block_bytes * source->block)));
    }
    must(sn_gguf_declare(writer, "counts", 26, 1, five, sizeof counts));
    for (uint64_t i = 0; i < base.gguf.n_tensors; i++) {
        const change *to = change_of(base.gguf.tensors[i].name, changes, n);
        if (to) write_changed(writer, &base, i, to);
        else must(sn_gguf_write_data(writer, base.data[i], (size_t)base.gguf.tensors[i].bytes));
    }
    must(sn_gguf_write_data(writer, counts, sizeof counts));
    must(sn_gguf_writer_finish(writer));
    close_model(&base);
}

/* Sources of every kind side by side, and a tensor that is none of the model's. */
static void test_mixed_sources(void) {
    static const change changes[] = {
        {"blk.0.time_mix_key.weight", SN_TYPE_Q5_1, 0},
        {"blk.0.time_mix_value.weight", SN_TYPE_F16, 0},
        {"blk.0.time_mix_output.weight", SN_TYPE_BF16, 0},
        {"blk.0.channel_mix_key.weight", SN_TYPE_Q4_0, 0},
        {"blk.0.time_mix_a1.weight", SN_TYPE_F16, 0},
        {"blk.0.time_mix_w1.weight", SN_TYPE_BF16, 0},
        {"blk.0.time_mix_g1.weight", SN_TYPE_Q8_0, 0},
        {"blk.0.time_mix_k_k.weight", SN_TYPE_F16, 0},
        {"token_embd.weight", SN_TYPE_TQ2_0, 0},
    };
    make_model(file_at("odd.gguf"), k256, changes, sizeof changes / sizeof changes[0]);
    model from = open_model(file_at("odd.gguf"));
    const uint64_t counts = find(&from, "counts");
    for (size_t t = 0; t < N_ASKED; t++) {
        CONVERT(file_at("odd.gguf"), file_at("odd-typed.gguf"), asked[t].name, 0);
        model to = open_model(file_at("odd-typed.gguf"));
        CHECK(same_tensor(&from, counts, &to, counts), "counts as %s", asked[t].name);
        from.gguf.n_tensors--; /* it stands last, and the rule knows nothing of it */
        to.gguf.n_tensors--;
        check_types(&from, &to, &asked[t]);
        from.gguf.n_tensors++;
        to.gguf.n_tensors++;
        close_model(&to);
    }
    close_model(&from);
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
    CHECK(convert("docs", out, NULL, 0) != SN_OK && strstr(sn_last_error(), "docs"), "%s",
          sn_last_error()); /* it holds no model */
    check_refused(micro, "q8_k", 0, SN_E_UNSUPPORTED, "q8_k");
    check_refused(micro, "tq2_0", 0, SN_E_UNSUPPORTED, "iq4_xs, q3_k");
    check_refused(micro, "q4_k_", 0, SN_E_UNSUPPORTED, "q3_k_s, q2_k)");
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
        {3.4e38f, "bf16", 0, SN_E_NUMERIC}, {3e38f, "q6_k", 0, SN_E_NUMERIC},
        {-3e38f, "q4_k_m", 1, SN_E_NUMERIC}, {9e6f, "iq4_nl", 0, SN_E_NUMERIC},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const change to = {"output.weight", SN_TYPE_F32, cases[i].fill};
        make_model(file_at("bad.gguf"), k256, &to, 1);
        check_refused(file_at("bad.gguf"), cases[i].type, cases[i].packed, cases[i].status,
                      "tensor 'output.weight'");
    }
    const change unknown = {"output.weight", 16, 0};
    make_model(file_at("bad.gguf"), k256, &unknown, 1);
    check_refused(file_at("bad.gguf"), "f16", 0, SN_E_UNSUPPORTED, "IQ2_XXS");
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
    static const uint8_t zeros[544];
    const uint64_t a[1] = {544}, b[1] = {256};
    must(sn_gguf_writer_new(path, &writer));
    must(sn_gguf_put_text(writer, "general.architecture", "rwkv7"));
    if (keys->version) must(sn_gguf_put_u32(writer, SN_PACKED_VERSION, keys->version));
    must(sn_gguf_put_u32(writer, SN_PACKED_ROWS, keys->rows));
    must(sn_gguf_put_texts(writer, SN_PACKED_NAMES, keys->names, keys->n_names));
    must(sn_gguf_put_u32s(writer, SN_PACKED_TYPES, keys->types, keys->n_types));
    must(sn_gguf_put_u32s(writer, SN_PACKED_DIMS, keys->dims, keys->n_dims));
    must(sn_gguf_declare(writer, "a.weight", SN_TYPE_I8, 1, a, 544));
    must(sn_gguf_declare(writer, "b.weight", SN_TYPE_I8, 1, b, 256));
    must(sn_gguf_write_data(writer, zeros, 544));
    must(sn_gguf_write_data(writer, zeros, 256));
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
    model m = open_model(file_at("true.gguf"));
    sn_packed packed;
    CHECK(sn_packed_read(&m.gguf, &packed) == SN_OK && packed.tensors, "%s", sn_last_error());
    const sn_packed_tensor *b = sn_packed_at(&packed, find(&m, "b.weight"));
    CHECK(b && b->type->id == SN_TYPE_F32 && b->k == 4 && b->rows == 3, "b");
    sn_packed_free(&packed);
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
        "copy", "packed", "plain", "packed2", "typed", "two", "one", "back", "odd", "odd-typed",
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
    snprintf(sunny, sizeof sunny, "%s/sunnynet-micro-ablation.f16.gguf", models);
    test_round_trip(micro);
    test_round_trip(k256);
    test_round_trip(sunny);
    test_packed_file();
    test_type_and_packed();
    test_types(micro);
    test_types(k256);
    test_types(sunny);
    test_mixed_sources();
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
