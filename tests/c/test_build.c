/*
 * test_build: GGUF files put together on the fly, and the binary64 functions that constants are
 * computed with.
 */
#include "import/import.h"
#include "quant/bytes.h"

#include "check.h"

#include <math.h>

static bool last_error_has(const char *text) {
    return strstr(sn_last_error(), text) != NULL;
}

static void must(sn_status status) {
    if (status == SN_OK) return;
    fprintf(stderr, "%s\n", sn_last_error());
    exit(1);
}

/* ---- real64 ------------------------------------------------------------------------------- */

/* Distance to the C library's value in units in the last place. */
static double ulps(double got, double expected) {
    if (got == expected) return 0;
    double magnitude = fabs(expected);
    double unit = magnitude < 0x1p-1022 ? 0x1p-1074 : ldexp(1.0, ilogb(magnitude) - 52);
    return fabs(got - expected) / unit;
}

static void test_real64(void) {
    check_random random = { 64 };
    double worst[3] = { 0 };
    for (int i = 0; i < 200000; i++) {
        double x = check_float(&random) * (i % 2 ? 700.0 : 3.0);
        worst[0] = fmax(worst[0], ulps(sn_exp64(x), exp(x)));
        worst[1] = fmax(worst[1], ulps(sn_log64(exp(x)), log(exp(x))));
        worst[2] = fmax(worst[2], ulps(sn_tanh64(x / 100), tanh(x / 100)));
    }
    /* ours stay below 2, the C library's below 2 as well */
    for (int i = 0; i < 3; i++) CHECK(worst[i] < 4, "%d: %g ulp", i, worst[i]);
    CHECK(sn_exp64(0) == 1 && sn_log64(1) == 0 && sn_tanh64(0) == 0, "exact values");
    CHECK(isinf(sn_exp64(710)) && sn_exp64(-746) == 0 && sn_exp64(-745) > 0, "ends of exp");
    CHECK(isinf(sn_log64(0)) && isnan(sn_log64(-1)) && isnan(sn_exp64(NAN)), "no numbers");
    CHECK(fabs(sn_log64(0x1p-1074) - log(0x1p-1074)) < 1e-12, "log of the smallest");
    CHECK(sn_tanh64(-30) == -1 && sn_tanh64(1e-300) == 1e-300 && isnan(sn_tanh64(NAN)), "tanh");
}

/* ---- the stream --------------------------------------------------------------------------- */

/* A store of one file in memory with one F32, one F64 and one integer tensor. */
static sn_store *made_store(uint8_t *bytes, uint64_t rows, uint64_t k) {
    sn_store *store;
    sn_file file;
    const sn_file *kept;
    size_t n = (size_t)(rows * k);
    for (size_t i = 0; i < n; i++) {
        double wide = (double)i + 0.1;
        sn_store32(bytes + 4 * i, sn_bits_of((float)i));
        memcpy(bytes + 4 * n + 8 * i, &wide, 8); /* little-endian hosts only, as all of ours */
    }
    must(sn_store_new(&store));
    sn_file_from_memory(&file, "made", bytes, 12 * n);
    must(sn_store_add_file(store, &file, &kept));
    sn_view view = { .name = "f32", .type = sn_type_find(SN_TYPE_F32), .n_dims = 2,
                     .dims = { rows, k }, .strides = { k, 1 }, .file = kept };
    must(sn_store_add(store, &view));
    view.name = "f64";
    view.type = sn_type_find(28);
    view.offset = 4 * n;
    must(sn_store_add(store, &view));
    view.name = "i32";
    view.type = sn_type_find(26);
    must(sn_store_add(store, &view));
    return store;
}

static double doubled(double x) {
    return x + x;
}

static void test_build(void) {
    enum { ROWS = 300, K = 701 }; /* more than one step of the stream */
    uint8_t *bytes = malloc(12 * ROWS * K);
    sn_store *store = made_store(bytes, ROWS, K);
    sn_build *build;
    sn_input input;
    sn_gguf gguf;
    const sn_view *f32 = sn_store_find(store, "f32"), *f64 = sn_store_find(store, "f64");
    sn_view turned = sn_view_transposed(f32);
    const float three[] = { 1.5f, -2.5f, 3.5f };
    uint64_t n = ROWS * K, few = 3, most[] = { K, ROWS };
    must(sn_build_new("made", &build));
    must(sn_build_u32(build, "a.number", 7));
    must(sn_build_matrix(build, "wide", f64));
    must(sn_build_matrix(build, "turned", &turned));
    must(sn_build_mapped(build, "twice", f32, 2, most, doubled));
    must(sn_build_vector(build, "flat", f32, 1, &n));
    must(sn_build_values(build, "three", three, 1, &few));
    CHECK(sn_build_rows(build, "turned") == K && sn_build_rows(build, "none") == 0, "rows");
    CHECK(sn_build_has(build, "a.number") && !sn_build_has(build, "a.numbe"), "keys");
    CHECK(sn_build_matrix(build, "x", sn_store_find(store, "i32")) == SN_E_UNSUPPORTED &&
          last_error_has("'i32' is of type I32"), "%s", sn_last_error());
    CHECK(sn_build_vector(build, "x", f32, 1, &few) == SN_E_FORMAT, "%s", sn_last_error());
    must(sn_build_input(build, store, &input));
    must(sn_gguf_read(&input, &gguf));
    CHECK(gguf.n_tensors == 5 && !strcmp(gguf.tensors[0].name, "three") &&
          !strcmp(gguf.tensors[4].name, "wide"), "computed first, then by place");
    for (uint64_t i = 0; i < gguf.n_tensors; i++) {
        const sn_gguf_tensor *tensor = &gguf.tensors[i];
        float *got = malloc((size_t)tensor->bytes);
        must(sn_input_skip_to(&gguf.parts[0].input, tensor->offset));
        must(sn_input_read(&gguf.parts[0].input, got, (size_t)tensor->bytes));
        uint64_t wrong = 0;
        for (uint64_t k = 0; k < tensor->bytes / 4; k++) {
            float expected = (float)k;
            if (tensor->name[0] == 'w') expected = (float)((double)k + 0.1);
            if (!strcmp(tensor->name, "turned")) expected = (float)(k % ROWS * K + k / ROWS);
            if (!strcmp(tensor->name, "twice")) expected = 2 * (float)k;
            if (!strcmp(tensor->name, "three")) expected = three[k];
            wrong += got[k] != expected;
        }
        CHECK(wrong == 0, "%s: %d wrong", tensor->name, (int)wrong);
        free(got);
    }
    sn_gguf_close(&gguf);
    free(bytes);
}

/* A disk that fails: nothing comes from byte 100000 on. */
static size_t read_broken(void *user, uint64_t offset, void *buffer, size_t bytes) {
    (void)user;
    if (offset >= 100000) return 0;
    memset(buffer, 0, bytes);
    return bytes;
}

static void test_broken_disk(void) {
    sn_store *store;
    sn_build *build;
    sn_input input;
    sn_gguf gguf;
    const sn_file *kept;
    static uint8_t bytes[1 << 20];
    sn_file file = { .name = "disk", .size = sizeof bytes, .read_at = read_broken };
    sn_view view = { .name = "all", .type = sn_type_find(SN_TYPE_F16), .n_dims = 2,
                     .dims = { 512, 1024 }, .strides = { 1024, 1 } };
    must(sn_store_new(&store));
    must(sn_store_add_file(store, &file, &kept));
    view.file = kept;
    must(sn_store_add(store, &view));
    must(sn_build_new("made", &build));
    must(sn_build_matrix(build, "all", &view));
    must(sn_build_input(build, store, &input));
    must(sn_gguf_read(&input, &gguf));
    sn_status status = sn_input_read(&gguf.parts[0].input, bytes, sizeof bytes);
    CHECK(status == SN_E_IO && last_error_has("disk: cannot read"), "%d: %s", (int)status,
          sn_last_error());
    sn_gguf_close(&gguf);
}

static void test_twice(void) {
    sn_build *build;
    sn_input input;
    must(sn_build_new("made", &build));
    must(sn_build_u32(build, "twin", 1));
    must(sn_build_f32(build, "twin", 1));
    CHECK(sn_build_input(build, NULL, &input) == SN_E_INVAL && last_error_has("twin"), "%s",
          sn_last_error());
}

int main(void) {
    test_real64();
    test_build();
    test_twice();
    test_broken_disk();
    return check_report("test_build");
}
