/*
 * Packed blobs and releases from inside: readers against every cut and many changes of small
 * blobs, failing allocations, what the writers write with.
 * Usage: test_blob FOLDER-FOR-FILES tests/data/family
 */
#include "check.h"

#include "export/export.h"
#include "export/sha256.h"
#include "export/text.h"
#include "import/blob_int4.h"
#include "import/computed.h"
#include "import/import.h"
#include "import/open.h"
#include "platform.h"

#include <stddef.h>

static const char *folder, *family;

/* A path in the folder, and one among the fixtures; four are valid at a time. */
static const char *path_in(const char *where, const char *name) {
    static char paths[4][640];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%.500s/%.100s", where, name);
    return path;
}

static bool exists(const char *path) {
    return sn_platform_same_file(path, path);
}

/* ---- SHA-256: FIPS 180-4's examples --------------------------------------------------------- */

static void check_sha(const char *text, size_t repeat, size_t piece, const char *expected) {
    sn_sha256 sha;
    char hex[SN_SHA256_HEX];
    const size_t length = strlen(text), total = length * repeat;
    char *all = malloc(total + 1);
    for (size_t i = 0; i < repeat; i++) memcpy(all + i * length, text, length);
    sn_sha256_init(&sha);
    for (size_t at = 0; at < total; at += piece)
        sn_sha256_update(&sha, all + at, total - at < piece ? total - at : piece);
    sn_sha256_finish(&sha, hex);
    CHECK(strcmp(hex, expected) == 0, "%.20s x %zu by %zu: %s", text, repeat, piece, hex);
    free(all);
}

static void test_sha256(void) {
    static const char long_text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (size_t piece = 1; piece < 200; piece += 33) {
        check_sha("", 1, piece, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        check_sha("abc", 1, piece,
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        check_sha(long_text, 1, piece,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
    check_sha("a", 1000000, 4093,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* ---- JSON as Python writes it --------------------------------------------------------------- */

static void test_numbers(void) {
    static const struct {
        double value;
        const char *text; /* repr() of Python 3 */
    } cases[] = {
        {0.0, "0.0"}, {-0.0, "-0.0"}, {1.0, "1.0"}, {-2.5, "-2.5"}, {0.1, "0.1"},
        {1.0 / 3.0, "0.3333333333333333"}, {4.1e-4, "0.00041"}, {1e-4, "0.0001"},
        {1e-5, "1e-05"}, {1.25e-7, "1.25e-07"}, {123456789.125, "123456789.125"},
        {1e15, "1000000000000000.0"}, {1e16, "1e+16"}, {1.5e16, "1.5e+16"},
        {9007199254740993.0, "9007199254740992.0"}, {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"}, {2e100, "2e+100"},
        {0.1 + 0.2, "0.30000000000000004"}, {1000.1, "1000.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_growing text = {.data = NULL};
        sn_put_double(&text, cases[i].value);
        CHECK(text.data && strcmp(text.data, cases[i].text) == 0, "%s: %s", cases[i].text,
              text.data);
        sn_growing_free(&text);
    }
}

static void check_json(const char *source, int indent, bool sorted, const char *expected) {
    sn_json_document *document;
    sn_growing text = {.data = NULL};
    if (sn_json_parse(source, strlen(source), "text", true, &document) != SN_OK) {
        CHECK(false, "%s", sn_last_error());
        return;
    }
    sn_put_json(&text, sn_json_root(document), indent, sorted);
    CHECK(text.data && strcmp(text.data, expected) == 0, "%s", text.data);
    sn_growing_free(&text);
    sn_json_free(document);
}

static void test_json(void) {
    static const char source[] = "{\"b\":[1,2.0,-3e5,true,null],\"a\":{\"z\":{},\"\\u00e9\":[]},"
                                 "\"c\":\"\\u0001\\n\\\"\\\\/\\u5b50\",\"B\":9007199254740991}";
    check_json(source, -1, false,
               "{\"b\": [1, 2.0, -300000.0, true, null], \"a\": {\"z\": {}, \"\xc3\xa9\": []}, "
               "\"c\": \"\\u0001\\n\\\"\\\\/\xe5\xad\x90\", \"B\": 9007199254740991}");
    check_json(source, 0, true,
               "{\n  \"B\": 9007199254740991,\n  \"a\": {\n    \"z\": {},\n    \"\xc3\xa9\": []\n"
               "  },\n  \"b\": [\n    1,\n    2.0,\n    -300000.0,\n    true,\n    null\n  ],\n"
               "  \"c\": \"\\u0001\\n\\\"\\\\/\xe5\xad\x90\"\n}");
    check_json("[NaN, Infinity, -Infinity]", -1, true, "[NaN, Infinity, -Infinity]");
}

/* ---- computed rows --------------------------------------------------------------------------- */

static int rows_made;

static sn_status make_row(const void *context, uint64_t row, uint64_t k, float *values) {
    const float *scale = context;
    rows_made++;
    if (row == 7) return sn_fail(SN_E_IO, "row 7 cannot be had");
    for (uint64_t i = 0; i < k; i++) values[i] = *scale * (float)(row * 100 + i);
    return SN_OK;
}

static void test_computed(void) {
    enum { ROWS = 8, K = 11 };
    const float scale = 0.5f;
    sn_store *store;
    sn_view view;
    float got[7 * K];
    CHECK(sn_store_new(&store) == SN_OK, "%s", sn_last_error());
    CHECK(sn_computed_rows(store, "made", ROWS, K, make_row, &scale, sizeof scale, &view) == SN_OK,
          "%s", sn_last_error());
    CHECK(sn_view_read_f32(&view, 0, 7 * K, got) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < 7 * K; i++)
        CHECK(got[i] == 0.5f * (float)(i / K * 100 + i % K), "%d: %g", i, (double)got[i]);
    CHECK(rows_made == 7, "%d rows", rows_made);
    for (uint64_t first = 0; first < 60; first += 7) {
        CHECK(sn_view_read_f32(&view, first, 13, got) == SN_OK, "%s", sn_last_error());
        CHECK(got[12] == 0.5f * (float)((first + 12) / K * 100 + (first + 12) % K), "%g",
              (double)got[12]);
    }
    CHECK(sn_view_read_f32(&view, 7 * K, 1, got) == SN_E_IO, "a row that fails");
    CHECK(sn_computed_rows(store, "made", UINT64_MAX / 2, 3, make_row, &scale, sizeof scale,
                           &view) == SN_E_INVAL, "too large");
    sn_store_free(store);
}

/* ---- INT4 ------------------------------------------------------------------------------------ */

/* Codes and scales that lie apart, as blocks: from any byte on, over any number of groups. */
static void test_int4_view(void) {
    enum { ROWS = 7, K = 64 * 9, GROUPS = ROWS * 9, BEFORE = 5, SCALES = BEFORE + 32 * GROUPS + 3 };
    static uint8_t bytes[SCALES + 4 * GROUPS], wanted[36 * GROUPS], got[36 * GROUPS];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t g = 0; g < GROUPS; g++) {
        memcpy(wanted + 36 * g, bytes + BEFORE + 32 * g, 32);
        memcpy(wanted + 36 * g + 32, bytes + SCALES + 4 * g, 4);
    }
    sn_store *store;
    sn_view view;
    sn_file memory;
    const sn_file *file;
    CHECK(sn_store_new(&store) == SN_OK, "%s", sn_last_error());
    sn_file_from_memory(&memory, "made", bytes, sizeof bytes);
    CHECK(sn_store_add_file(store, &memory, &file) == SN_OK, "%s", sn_last_error());
    const sn_int4 matrix = {.file = file, .codes = BEFORE, .scales = SCALES, .rows = ROWS, .k = K};
    CHECK(sn_int4_view(store, &matrix, &view) == SN_OK, "%s", sn_last_error());
    CHECK(view.type->id == SN_TYPE_I4 && view.file->size == sizeof wanted, "another view");
    for (size_t first = 0; first < sizeof wanted; first += first < 80 ? 1 : 97)
        for (size_t n = 1; n <= sizeof wanted - first; n += n < 80 ? 1 : 331) {
            memset(got, 0, sizeof got);
            CHECK(sn_file_read(view.file, first, got, n) == SN_OK, "%s", sn_last_error());
            CHECK(memcmp(got, wanted + first, n) == 0, "%zu bytes from %zu on", n, first);
        }
    CHECK(sn_view_read(&view, 64, K, got) == SN_OK, "%s", sn_last_error());
    CHECK(memcmp(got, wanted + 36, K / 64 * 36) == 0, "blocks 1 to 9");
    CHECK(sn_view_read(&view, 32, 64, got) == SN_E_INVAL, "half a block");
    sn_store_free(store);
}

/* ---- small blobs ----------------------------------------------------------------------------- */

typedef struct blob {
    uint8_t data[32768];
    size_t size, header; /* bytes */
} blob;

static check_random noise = {11};

static void put_int(blob *b, uint32_t value) {
    for (int i = 0; i < 4; i++) b->data[b->size++] = (uint8_t)(value >> (8 * i));
}

static void put_float(blob *b, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_int(b, bits);
}

static void put_ints(blob *b, size_t n, const uint32_t *values) {
    for (size_t i = 0; i < n; i++) put_int(b, values[i]);
}

static void put_noise(blob *b, size_t n) {
    for (size_t i = 0; i < n; i++) put_float(b, check_float(&noise));
}

/* Behind a tag. */
static void put_tagged(blob *b, size_t n) {
    put_int(b, 0);
    put_noise(b, n);
}

static void put_int4(blob *b, size_t rows, size_t k) {
    put_int(b, 1);
    for (size_t i = 0; i < rows * k / 2; i++) b->data[b->size++] = (uint8_t)check_next(&noise);
    put_noise(b, rows * k / 64);
}

static void make_sunnynet(blob *b) {
    enum { V = 5, D = 8, I = 4, R = 2, K = 3, L = 2 };
    put_ints(b, 10, (const uint32_t[]){0x4e4e5355, V, D, I, R, K, L, 8, 1, 1});
    b->header = b->size;
    put_noise(b, L * (2 * D + 2 * I + K * D + 3 * D * R + 2 * D * I + D * D + D + 2));
    put_float(b, 4.1e-4f);
    put_float(b, 1.0f / 300.0f);
    put_noise(b, 2 * D + 2 * V * D);
}

static void make_rwkv7(blob *b) {
    enum { V = 5, D = 16, N = 8, F = 64, R = 2, L = 2 };
    put_ints(b, 10, (const uint32_t[]){0x4b57524b, 3, L, D, N, D / N, F, 0, V, 1});
    put_float(b, 1e-5f);
    for (int i = 0; i < 4 * L; i++) put_int(b, R);
    b->header = b->size;
    for (int l = 0; l < L; l++) {
        for (int i = 0; i < 4; i++) put_tagged(b, D);
        put_tagged(b, 6 * D);
        for (int i = 0; i < 4; i++) put_tagged(b, D * D);
        for (int i = 0; i < 8; i++) put_tagged(b, D * R);
        for (int i = 0; i < 8; i++) put_tagged(b, D);
        put_tagged(b, D * F);
        put_int4(b, D, F); /* channel_mix_value */
        put_tagged(b, D);
    }
    for (int i = 0; i < 4; i++) put_tagged(b, D);
    put_tagged(b, V * D);
    put_tagged(b, V * D);
}

static void make_mamba2(blob *b) {
    enum { V = 5, D = 6, H = 4, P = 3, N = 2, G = 2, K = 3, L = 2, E = H * P, C = E + 2 * G * N };
    put_ints(b, 8, (const uint32_t[]){0x324e4d53, 1, L, D, H, P, N, G});
    put_float(b, 1e-5f);
    put_ints(b, 3, (const uint32_t[]){V, K, 0});
    b->header = b->size;
    put_noise(b, L * (D + (E + C + H) * D + C * K + C + 3 * H + E + D * E));
    put_noise(b, 2 * V * D + D);
}

static void make_deltanet(blob *b) {
    enum { V = 5, D = 6, H = 2, F = 7, W = 4, L = 2 };
    put_ints(b, 8, (const uint32_t[]){0x4e4e4444, 1, L, D, H, D / H, D / H, F});
    put_float(b, 1e-6f);
    put_ints(b, 3, (const uint32_t[]){V, W, 0});
    b->header = b->size;
    put_noise(b, L * (2 * D + 4 * D * D + 3 * D * W + D / H + H * D + 3 * D * F));
    put_noise(b, 2 * V * D + D);
}

static void make_gla(blob *b) {
    enum { V = 5, D = 6, H = 2, K = 4, VD = 3, F = 7, R = 2, L = 2 };
    put_ints(b, 8, (const uint32_t[]){0x414c4753, 1, L, D, H, K, VD, R});
    put_float(b, 1e-6f);
    put_float(b, 0.5f);
    put_float(b, 16.0f);
    put_float(b, -0.25f);
    put_ints(b, 5, (const uint32_t[]){V, F, 0, 1, 0});
    b->header = b->size;
    put_noise(b, L * (2 * D + 2 * H * K * D + 3 * H * VD * D + R * D + H * K * R + H * K + VD +
                      3 * D * F));
    put_noise(b, 2 * V * D + D);
}

static void make_hgrn2(blob *b) {
    enum { V = 5, D = 8, H = 2, F = 7, L = 2 };
    put_ints(b, 8, (const uint32_t[]){0x32474853, 1, L, D, H, D / H, D / H, 0});
    put_float(b, 1e-6f);
    put_float(b, 0.5f);
    put_float(b, 0.0f);
    put_float(b, 1.0f);
    put_ints(b, 5, (const uint32_t[]){V, F, 0, 0, 0});
    b->header = b->size;
    put_noise(b, L * (4 * D + 4 * D * D + 3 * D * F));
    put_noise(b, 2 * V * D + D);
}

static const struct {
    const char *name;
    void (*make)(blob *b);
} kinds[] = {
    {"sunnynet", make_sunnynet}, {"rwkv7", make_rwkv7}, {"mamba2", make_mamba2},
    {"deltanet", make_deltanet}, {"gla", make_gla},     {"hgrn2", make_hgrn2},
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Everything that the stream has. */
static sn_status drain(sn_gguf *gguf) {
    sn_input *input = &gguf->parts[0].input;
    return sn_input_skip_to(input, input->size);
}

static sn_status open_and_drain(const void *data, size_t size) {
    sn_gguf gguf;
    SN_TRY(sn_open_model_memory("small.bin", data, size, &gguf));
    sn_status status = drain(&gguf);
    sn_gguf_close(&gguf);
    return status;
}

static void check_cuts(const char *name, const blob *b) {
    for (size_t n = 0; n < b->size; n += n < b->header + 64 ? 1 : 29) {
        uint8_t *exact = malloc(n + 1); /* a sanitizer sees what is read behind it */
        memcpy(exact, b->data, n);
        CHECK(open_and_drain(exact, n) == SN_E_FORMAT, "%s: %zu bytes", name, n);
        CHECK(sn_last_error()[0], "%s: %zu bytes without a reason", name, n);
        free(exact);
    }
    for (size_t more = 1; more < 6; more++)
        CHECK(open_and_drain(b->data, b->size + more) == SN_E_FORMAT, "%s: %zu more", name, more);
}

/* Whatever a header says, it is refused or read, and nothing else. */
static void check_changes(const char *name, blob *b) {
    static const uint32_t values[] = {0, 1, 2, 7, 0x7fffffff, 0x80000000, 0xffffffff,
                                      0x7f800000, 0x10000, 0x100000};
    uint8_t kept[4];
    for (size_t at = 0; at < b->header; at += 4)
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            memcpy(kept, b->data + at, 4);
            for (int j = 0; j < 4; j++) b->data[at + (size_t)j] = (uint8_t)(values[i] >> (8 * j));
            sn_status status = open_and_drain(b->data, b->size);
            CHECK(status == SN_OK || status == SN_E_FORMAT || status == SN_E_UNSUPPORTED,
                  "%s: word %zu = %x: %d", name, at / 4, (unsigned)values[i], (int)status);
            memcpy(b->data + at, kept, 4);
        }
    for (int i = 0; i < 500; i++) {
        const size_t at = check_below(&noise, (uint32_t)b->size);
        const uint8_t old = b->data[at];
        b->data[at] = (uint8_t)check_next(&noise);
        sn_status status = open_and_drain(b->data, b->size);
        CHECK(status == SN_OK || status == SN_E_FORMAT || status == SN_E_UNSUPPORTED,
              "%s: byte %zu: %d", name, at, (int)status);
        b->data[at] = old;
    }
}

static void check_no_memory(const char *name, const blob *b) {
    sn_status status = SN_E_NOMEM;
    for (long n = 1; status == SN_E_NOMEM && n < 5000; n++) {
        sn_alloc_fail_at(n);
        status = open_and_drain(b->data, b->size);
        CHECK(status == SN_OK || status == SN_E_NOMEM, "%s: allocation %ld: %d", name, n,
              (int)status);
    }
    sn_alloc_fail_at(0);
    CHECK(status == SN_OK, "%s: never enough memory", name);
}

static void test_small_blobs(void) {
    static blob b;
    for (size_t i = 0; i < N_KINDS; i++) {
        b.size = 0;
        memset(b.data, 0, sizeof b.data);
        kinds[i].make(&b);
        CHECK(open_and_drain(b.data, b.size) == SN_OK, "%s: %s", kinds[i].name, sn_last_error());
        check_cuts(kinds[i].name, &b);
        check_changes(kinds[i].name, &b);
        check_no_memory(kinds[i].name, &b);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Written and read again, the blob is itself: SunnyNet's is. */
static void test_round_trip(void) {
    static blob b;
    sn_gguf gguf;
    sn_file file;
    char *again;
    size_t bytes;
    b.size = 0;
    make_sunnynet(&b);
    const char *path = path_in(folder, "blob-again.bin");
    CHECK(sn_open_model_memory("small.bin", b.data, b.size, &gguf) == SN_OK, "%s",
          sn_last_error());
    CHECK(sn_blob_write(&gguf, path, false, NULL, NULL) == SN_OK, "%s", sn_last_error());
    sn_gguf_close(&gguf);
    CHECK(sn_platform_open_file(path, &file) == SN_OK, "%s", sn_last_error());
    CHECK(sn_file_read_all(&file, sizeof b.data, &again, &bytes) == SN_OK, "%s", sn_last_error());
    sn_file_close(&file);
    /* all but the head, which was noise here and is the embedding there */
    const size_t head = 4 * 5 * 8;
    CHECK(bytes == b.size, "%zu, %zu", bytes, b.size);
    CHECK(bytes != b.size || memcmp(again, b.data, b.size - head) == 0, "another blob");
    sn_free(again);
    remove(path);
}

static void check_write_no_memory(bool int4) {
    static blob b;
    const char *path = path_in(folder, "blob-memory.bin");
    sn_status status = SN_E_NOMEM;
    b.size = 0;
    make_rwkv7(&b);
    for (long n = 1; status == SN_E_NOMEM && n < 5000; n++) {
        sn_gguf gguf;
        if (sn_open_model_memory("small.bin", b.data, b.size, &gguf) != SN_OK) break;
        sn_alloc_fail_at(n);
        status = sn_blob_write(&gguf, path, int4, NULL, NULL);
        sn_alloc_fail_at(0);
        CHECK(status == SN_OK || status == SN_E_NOMEM, "allocation %ld: %s", n, sn_last_error());
        CHECK(status == SN_OK || !exists(path), "allocation %ld: half a file", n);
        sn_gguf_close(&gguf);
    }
    CHECK(status == SN_OK, "never enough memory");
    CHECK(remove(path) == 0, "no file");
}

static int32_t stop_at(void *user, double done, double total) {
    const double *share = user;
    return done >= *share * total;
}

static void test_stopped(void) {
    const char *out = path_in(folder, "blob-stopped.bin");
    const char *in = path_in(family, "sunnynet-micro/sunnynet-micro.pt");
    sn_convert_options options;
    double share = 0.5;
    sn_convert_options_init(&options);
    options.format = "blob";
    options.progress = stop_at;
    options.progress_user = &share;
    CHECK(sn_convert(in, out, &options) == SN_E_ABORTED, "%s", sn_last_error());
    CHECK(!exists(out), "half a file");
    share = 2.0;
    CHECK(sn_convert(in, out, &options) == SN_OK, "%s", sn_last_error());
    CHECK(remove(out) == 0, "no file");
    options.format = "zip";
    CHECK(sn_convert(in, out, &options) == SN_E_UNSUPPORTED &&
              strstr(sn_last_error(), "format 'zip' cannot be written"), "%s", sn_last_error());
    /* a caller from before there were formats */
    options.struct_size = offsetof(sn_convert_options, format);
    options.format = "nonsense";
    CHECK(sn_convert(in, out, &options) == SN_OK, "%s", sn_last_error());
    CHECK(remove(out) == 0, "no file");
}

static void test_cannot_write(void) {
    static blob b;
    sn_gguf gguf;
    b.size = 0;
    make_rwkv7(&b);
    CHECK(sn_open_model_memory("small.bin", b.data, b.size, &gguf) == SN_OK, "%s",
          sn_last_error());
    CHECK(sn_blob_write(&gguf, path_in(folder, "no/folder.bin"), false, NULL, NULL) == SN_E_IO,
          "a folder that is not there");
    sn_gguf_close(&gguf);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static sn_status declare_with_notes(const char *arch, const char *config) {
    sn_store *store;
    sn_build *build;
    if (sn_store_new(&store) != SN_OK || sn_build_new("made.pt", &build) != SN_OK) exit(1);
    sn_status noted = arch ? sn_store_set_note(store, "arch", arch, strlen(arch)) : SN_OK;
    CHECK(noted == SN_OK, "%s", sn_last_error());
    noted = config ? sn_store_set_note(store, "config", config, strlen(config)) : SN_OK;
    CHECK(noted == SN_OK, "%s", sn_last_error());
    const sn_source_model source = {.name = "made.pt", .store = store};
    CHECK(sn_import_sunnynet.recognises(&source) == (arch && config), "%s", arch);
    sn_status status = sn_import_sunnynet.declare(&source, build);
    sn_build_free(build);
    sn_store_free(store);
    return status;
}

static void test_checkpoint_notes(void) {
    CHECK(declare_with_notes("\"transformer\"", "{}") == SN_E_UNSUPPORTED &&
              strstr(sn_last_error(), "checkpoint of \"transformer\""), "%s", sn_last_error());
    CHECK(declare_with_notes("\"sunnynet\"", "{}") == SN_E_FORMAT &&
              strstr(sn_last_error(), "'embed.weight' is missing"), "%s", sn_last_error());
    CHECK(declare_with_notes("\"sunnynet\"", "[]") == SN_E_FORMAT &&
              strstr(sn_last_error(), "has no config"), "%s", sn_last_error());
    CHECK(declare_with_notes("\"sunnynet\"", "{") == SN_E_FORMAT, "half a config");
    CHECK(declare_with_notes(NULL, NULL) == SN_E_FORMAT &&
              strstr(sn_last_error(), "has no config"), "%s", sn_last_error());
}

/* ---- releases -------------------------------------------------------------------------------- */

static void remove_release(const char *out) {
    static const char *const files[] = {"sunnynet-micro.pt", "sunnynet-micro.safetensors",
                                        "sunnynet-micro.runtime.bin", "tokenizer.json",
                                        "sunnynet-micro.card.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) remove(path_in(out, files[i]));
    remove(out);
}

static void test_release(void) {
    char in[512], out[512];
    snprintf(in, sizeof in, "%.400s/sunnynet-micro/sunnynet-micro.pt", family);
    snprintf(out, sizeof out, "%.400s/blob-release", folder);
    sn_release_options options;
    sn_release_options_init(&options);
    CHECK(sn_release(NULL, out, NULL) == SN_E_INVAL, "no checkpoint");
    CHECK(sn_release(in, NULL, NULL) == SN_E_INVAL, "no folder");
    options.struct_size = 2;
    CHECK(sn_release(in, out, &options) == SN_E_INVAL, "options of no size");
    sn_release_options_init(&options);
    double share = 0.0;
    options.progress = stop_at;
    options.progress_user = &share;
    CHECK(sn_release(in, out, &options) == SN_E_ABORTED, "%s", sn_last_error());
    CHECK(!exists(path_in(out, "sunnynet-micro.pt")), "stopped at once");
    share = 0.6;
    CHECK(sn_release(in, out, &options) == SN_E_ABORTED, "%s", sn_last_error());
    CHECK(!exists(path_in(out, "sunnynet-micro.card.json")), "a card of half a release");
    sn_status status = SN_E_NOMEM;
    for (long n = 1; status == SN_E_NOMEM && n < 20000; n += 1 + n / 16) {
        sn_alloc_fail_at(n);
        status = sn_release(in, out, NULL);
        sn_alloc_fail_at(0);
        CHECK(status == SN_OK || status == SN_E_NOMEM, "allocation %ld: %s", n, sn_last_error());
    }
    CHECK(status == SN_OK, "never enough memory");
    CHECK(exists(path_in(out, "sunnynet-micro.card.json")), "no card");
    remove_release(out);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: test_blob FOLDER tests/data/family\n");
        return 2;
    }
    folder = argv[1];
    family = argv[2];
    test_sha256();
    test_numbers();
    test_json();
    test_computed();
    test_int4_view();
    test_small_blobs();
    test_round_trip();
    check_write_no_memory(false);
    check_write_no_memory(true);
    test_stopped();
    test_cannot_write();
    test_checkpoint_notes();
    test_release();
    return check_report("blob");
}
