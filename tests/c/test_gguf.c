/*
 * test_gguf: memory, sources, files and the GGUF container: what the writer writes, the reader
 * reads; and everything survives an allocation that fails. Files lie beside the program.
 */
#include "check.h"
#include "formats/gguf_write.h"
#include "platform.h"
#include "quant/types.h"

static char base[1024]; /* of the names of all files written here */

static const char *file_name(const char *ending) {
    static char names[4][1100];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(names[turn], sizeof names[turn], "%s%s", base, ending);
    return names[turn];
}

static bool last_error_has(const char *text) {
    return strstr(sn_last_error(), text) != NULL;
}

/* ---- memory ------------------------------------------------------------------------- */

static bool all_zero(const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}

static void test_memory(void) {
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 4097, 1 << 20 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *block = sn_alloc(sizes[i]);
        CHECK(block && (uintptr_t)block % SN_ALIGNMENT == 0, "%zu bytes", sizes[i]);
        CHECK(block && all_zero(block, sizes[i]), "%zu bytes", sizes[i]);
        sn_free(block);
    }
    sn_free(NULL);
    CHECK(!sn_alloc(SIZE_MAX) && last_error_has("out of memory: "), "%s", sn_last_error());
    CHECK(!sn_alloc((size_t)PTRDIFF_MAX), "half of the address space");
    CHECK(!sn_alloc_array(SIZE_MAX / 2, 4) && last_error_has("items of 4"), "%s",
          sn_last_error());

    uint8_t *block = sn_alloc(10);
    memset(block, 7, 10);
    block = sn_grow(block, 10, 100);
    CHECK(block && block[9] == 7 && all_zero(block + 10, 90), "grown");
    block = sn_grow(block, 100, 5);
    CHECK(block && block[4] == 7, "shrunk");
    sn_alloc_fail_at(1);
    CHECK(!sn_grow(block, 5, 50) && block[4] == 7, "the old block stays");
    sn_free(block);
    block = sn_grow(NULL, 0, 8);
    CHECK(block && all_zero(block, 8), "from nothing");
    sn_free(block);

    long before = sn_alloc_count();
    sn_alloc_fail_at(2);
    void *first = sn_alloc(1), *second = sn_alloc(1), *third = sn_alloc(1);
    CHECK(first && !second && third, "only the second fails");
    CHECK(last_error_has("out of memory: 1 bytes"), "%s", sn_last_error());
    CHECK(sn_alloc_count() - before == 3, "%ld", sn_alloc_count() - before);
    sn_free(first);
    sn_free(third);
}

/* ---- sources ------------------------------------------------------------------------ */

/* Delivers bytes 0, 1, 2, ... in pieces of at most `piece`, and `left` of them at all. */
typedef struct counter {
    uint64_t at, left;
    size_t piece, largest_request;
    size_t excess; /* lies about what it delivered */
} counter;

static size_t read_counter(void *user, void *buffer, size_t bytes) {
    counter *source = user;
    if (bytes > source->largest_request) source->largest_request = bytes;
    size_t n = bytes < source->piece ? bytes : source->piece;
    if (n > source->left) n = (size_t)source->left;
    for (size_t i = 0; i < n; i++) ((uint8_t *)buffer)[i] = (uint8_t)source->at++;
    source->left -= n;
    return n + source->excess;
}

static void count_close(void *user) {
    ++*(int *)user;
}

static void test_source(void) {
    uint8_t buffer[64];
    counter source = { .left = 1000, .piece = 7 };
    sn_input input = { .name = "numbers", .size = 1000, .read = read_counter, .user = &source };
    CHECK(sn_input_read(&input, buffer, 20) == SN_OK && buffer[19] == 19, "in pieces");
    CHECK(sn_input_left(&input) == 980 && input.position == 20, "position");
    CHECK(sn_input_skip_to(&input, 700) == SN_OK, "%s", sn_last_error());
    CHECK(sn_input_read(&input, buffer, 1) == SN_OK && buffer[0] == 700 % 256, "after a skip");
    CHECK(sn_input_read(&input, buffer, 0) == SN_OK, "nothing");
    CHECK(sn_input_skip_to(&input, 700) == SN_E_FORMAT && last_error_has("byte 701"), "%s",
          sn_last_error());
    CHECK(sn_input_skip_to(&input, 1001) == SN_E_FORMAT, "beyond the end");
    CHECK(sn_input_skip_to(&input, 990) == SN_OK, "%s", sn_last_error());
    CHECK(sn_input_read(&input, buffer, 13) == SN_E_FORMAT &&
              last_error_has("numbers: ends at byte 1000, 3 more"), "%s", sn_last_error());

    source = (counter){ .left = 5, .piece = 100 };
    input.position = 0;
    CHECK(sn_input_read(&input, buffer, 9) == SN_E_FORMAT &&
              last_error_has("numbers: ends at byte 5, 4 more"), "%s", sn_last_error());
    source = (counter){ .left = 50, .piece = 100, .excess = 1 };
    input.position = 0;
    CHECK(sn_input_read(&input, buffer, 9) == SN_E_IO, "%s", sn_last_error());

    size_t big = ((size_t)8 << 20) + 5;
    uint8_t *block = sn_alloc(big);
    source = (counter){ .left = big, .piece = big };
    input = (sn_input){ .name = "big", .size = big, .read = read_counter, .user = &source };
    CHECK(sn_input_read(&input, block, big) == SN_OK, "%s", sn_last_error());
    CHECK(source.largest_request == (size_t)8 << 20, "%zu", source.largest_request);
    sn_free(block);

    int closed = 0;
    input = (sn_input){ .close = count_close, .user = &closed };
    sn_input_close(&input);
    sn_input_close(&input);
    CHECK(closed == 1, "closed %d times", closed);
}

/* ---- platform ----------------------------------------------------------------------- */

static bool exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

static void write_file(const char *path, const char *text) {
    sn_output *output;
    sn_status status = sn_platform_create(path, &output);
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (status != SN_OK) return;
    CHECK(sn_output_write(output, text, strlen(text)) == SN_OK, "%s", sn_last_error());
    CHECK(sn_output_commit(output) == SN_OK, "%s", sn_last_error());
}

static void test_files(void) {
    const char *path = file_name(".txt");
    char text[16] = "";
    sn_input input;
    sn_output *output, *twin;
    remove(path);
    CHECK(sn_platform_open(path, &input) == SN_E_IO && last_error_has("cannot open"), "%s",
          sn_last_error());
    CHECK(sn_platform_open(".", &input) == SN_E_IO && last_error_has("is a directory"), "%s",
          sn_last_error());
    CHECK(sn_platform_create(".", &output) == SN_E_IO, "%s", sn_last_error());

    CHECK(sn_platform_create(path, &output) == SN_OK, "%s", sn_last_error());
    CHECK(sn_platform_create(path, &twin) == SN_OK, "%s", sn_last_error());
    CHECK(sn_output_write(output, "lost", 4) == SN_OK && !exists(path), "not there yet");
    sn_output_discard(output);
    sn_output_discard(NULL);
    CHECK(!exists(path), "discarded");
    CHECK(sn_output_write(twin, "kept", 4) == SN_OK, "%s", sn_last_error());
    CHECK(sn_output_commit(twin) == SN_OK && exists(path), "%s", sn_last_error());
    write_file(path, "replaced");

    CHECK(sn_platform_open(path, &input) == SN_OK && input.size == 8, "%s", sn_last_error());
    CHECK(sn_input_read(&input, text, 8) == SN_OK && strcmp(text, "replaced") == 0, "%s", text);
    sn_input_close(&input);

    write_file(file_name(".other"), "replaced");
    CHECK(sn_platform_same_file(path, path), "itself");
    CHECK(!sn_platform_same_file(path, file_name(".other")), "another");
    CHECK(!sn_platform_same_file(path, file_name(".absent")), "none");
    remove(path);
    remove(file_name(".other"));
}

static void test_pages(void) {
    static const size_t sizes[] = { 0, 1, 100000, (2 << 20) - 1, 2 << 20, (5 << 20) + 3 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *block = sn_platform_pages(sizes[i]);
        CHECK(block && (uintptr_t)block % SN_ALIGNMENT == 0 && all_zero(block, sizes[i]),
              "%zu bytes", sizes[i]);
        if (block) memset(block, 1, sizes[i]);
        sn_platform_pages_free(block, sizes[i]);
    }
    sn_platform_pages_free(NULL, 4 << 20);
    CHECK(!sn_platform_pages(SIZE_MAX) && last_error_has("out of memory"), "%s",
          sn_last_error());
    CHECK(sn_platform_cores() >= 1, "%d", (int)sn_platform_cores());
}

/* ---- writing and reading ------------------------------------------------------------ */

#define N_WORDS 3
static const char *const words[N_WORDS] = { "", "a", "three words here" };
static const uint32_t numbers[4] = { 7, 0, 4294967295u, 1 };

/* Values of kinds that the writer's own functions do not make. */
static sn_gguf_value raw_value(const char *key, sn_gguf_kind kind, const void *data,
                               size_t bytes) {
    return (sn_gguf_value){ .key = { .data = key, .size = strlen(key) }, .kind = kind,
                            .count = 1, .data = data, .bytes = bytes };
}

static sn_status put_raw(sn_gguf_writer *writer) {
    static const uint8_t half[] = { 0, 0, 0, 0x3f }, minus[] = { 0xfe, 0xff }, yes[] = { 2 };
    static const uint8_t third[] = { 0, 0, 0, 0, 0, 0, 0xd0, 0x3f };
    static const uint8_t infinite[] = { 0, 0, 0x80, 0x7f };
    static const uint8_t huge[] = { 0, 0, 0, 0, 0, 0, 0xe0, 0x7f };
    static const uint8_t wide[] = { 9, 0, 0, 0, 1, 0, 0, 0 };
    static const uint8_t halves[] = { 0, 0, 0, 0x3f, 0, 0, 0, 0xbf };
    sn_gguf_value floats = raw_value("floats", SN_GGUF_ARRAY, halves, 8);
    floats.element = SN_GGUF_F32;
    floats.count = 2;
    sn_gguf_value values[] = {
        raw_value("half", SN_GGUF_F32, half, 4),       raw_value("minus", SN_GGUF_I16, minus, 2),
        raw_value("yes", SN_GGUF_BOOL, yes, 1),        raw_value("third", SN_GGUF_F64, third, 8),
        raw_value("inf", SN_GGUF_F32, infinite, 4),    raw_value("huge", SN_GGUF_F64, huge, 8),
        raw_value("wide", SN_GGUF_U64, wide, 8),       raw_value("byte", SN_GGUF_U8, yes, 1),
        raw_value("text", SN_GGUF_STRING, "a\0b", 3),  floats,
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        SN_TRY(sn_gguf_put_value(writer, &values[i]));
    return SN_OK;
}

static sn_status declare_and_fill(sn_gguf_writer *writer) {
    static const uint64_t row[] = { 5 }, matrix[] = { 64, 3 }, deep[] = { 2, 1, 3, 1 };
    uint8_t data[20 + 204 + 12];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i + 1);
    SN_TRY(sn_gguf_declare(writer, "row.weight", SN_TYPE_F32, 1, row, 20));
    SN_TRY(sn_gguf_declare(writer, "matrix", SN_TYPE_Q8_0, 2, matrix, 204));
    SN_TRY(sn_gguf_declare(writer, "deep", SN_TYPE_F16, 4, deep, 12));
    SN_TRY(sn_gguf_write_data(writer, data, 3)); /* pieces that end inside and across */
    SN_TRY(sn_gguf_write_data(writer, data + 3, 200));
    SN_TRY(sn_gguf_write_data(writer, data + 203, 0));
    return sn_gguf_write_data(writer, data + 203, sizeof data - 203);
}

static sn_status fill(sn_gguf_writer *writer) {
    SN_TRY(sn_gguf_put_text(writer, "general.name", "sample"));
    SN_TRY(sn_gguf_put_u32(writer, "answer", 42));
    SN_TRY(sn_gguf_put_u32s(writer, "numbers", numbers, 4));
    SN_TRY(sn_gguf_put_texts(writer, "words", words, N_WORDS));
    SN_TRY(sn_gguf_put_texts(writer, "none", words, 0));
    SN_TRY(put_raw(writer));
    return declare_and_fill(writer);
}

static sn_status write_sample(const char *path) {
    sn_gguf_writer *writer;
    SN_TRY(sn_gguf_writer_new(path, &writer));
    sn_status status = fill(writer);
    if (status == SN_OK) return sn_gguf_writer_finish(writer);
    sn_gguf_writer_discard(writer);
    return status;
}

static void check_numbers(const sn_gguf *gguf) {
    uint32_t n = 0;
    float x = 0;
    CHECK(sn_gguf_get_u32(gguf, "answer", true, &n) == SN_OK && n == 42, "%u", n);
    CHECK(sn_gguf_get_u32(gguf, "numbers", true, &n) == SN_OK && n == 7, "first of an array");
    CHECK(sn_gguf_get_u32(gguf, "byte", true, &n) == SN_OK && n == 2, "%u", n);
    n = 5;
    CHECK(sn_gguf_get_u32(gguf, "absent", false, &n) == SN_OK && n == 5, "keeps its value");
    CHECK(sn_gguf_get_u32(gguf, "absent", true, &n) == SN_E_FORMAT &&
              last_error_has("key 'absent' is missing"), "%s", sn_last_error());
    CHECK(sn_gguf_get_u32(gguf, "half", false, &n) == SN_E_FORMAT &&
              last_error_has("'half' is of type f32, needed is an integer"), "%s",
          sn_last_error());
    CHECK(sn_gguf_get_u32(gguf, "minus", true, &n) == SN_E_FORMAT && last_error_has("-2"), "%s",
          sn_last_error());
    CHECK(sn_gguf_get_u32(gguf, "wide", true, &n) == SN_E_FORMAT, "%s", sn_last_error());
    CHECK(sn_gguf_get_u32(gguf, "none", true, &n) == SN_E_FORMAT && last_error_has("0 x string"),
          "%s", sn_last_error());
    CHECK(sn_gguf_get_f32(gguf, "half", true, &x) == SN_OK && x == 0.5f, "%g", x);
    CHECK(sn_gguf_get_f32(gguf, "third", true, &x) == SN_OK && x == 0.25f, "%g", x);
    CHECK(sn_gguf_get_f32(gguf, "floats", true, &x) == SN_OK && x == 0.5f, "%g", x);
    CHECK(sn_gguf_get_f32(gguf, "inf", true, &x) == SN_E_FORMAT, "infinite");
    CHECK(sn_gguf_get_f32(gguf, "huge", true, &x) == SN_E_FORMAT, "beyond a float");
    CHECK(sn_gguf_get_f32(gguf, "answer", false, &x) == SN_E_FORMAT, "an integer is no float");
}

static void check_texts(const sn_gguf *gguf) {
    sn_span text = { 0 };
    bool flag = false;
    CHECK(sn_gguf_get_text(gguf, "general.name", true, &text) == SN_OK && text.size == 6 &&
              memcmp(text.data, "sample", 6) == 0, "%zu", text.size);
    CHECK(sn_gguf_get_text(gguf, "text", true, &text) == SN_OK && text.size == 3, "%zu",
          text.size);
    CHECK(sn_gguf_get_text(gguf, "answer", false, &text) == SN_E_FORMAT, "no text");
    CHECK(sn_gguf_get_bool(gguf, "yes", true, &flag) == SN_OK && flag, "2 is true");
    CHECK(sn_gguf_get_bool(gguf, "byte", true, &flag) == SN_E_FORMAT, "no flag");
    const sn_gguf_value *value = sn_gguf_find(gguf, "words");
    CHECK(value && value->kind == SN_GGUF_ARRAY && value->count == N_WORDS, "words");
    for (uint64_t i = 0; value && i < N_WORDS; i++) {
        text = sn_gguf_string_at(value, i);
        CHECK(text.size == strlen(words[i]) && memcmp(text.data, words[i], text.size) == 0,
              "word %d", (int)i);
    }
    value = sn_gguf_find(gguf, "numbers");
    for (uint64_t i = 0; value && i < 4; i++)
        CHECK(sn_gguf_int_at(value, i) == numbers[i], "number %d", (int)i);
    value = sn_gguf_find(gguf, "floats");
    CHECK(value && sn_gguf_float_at(value, 1) == -0.5, "floats");
    CHECK(!sn_gguf_find(gguf, "word") && !sn_gguf_find(gguf, "words2"), "no prefixes");
}

static void check_tensors(sn_gguf *gguf) {
    uint8_t data[20];
    CHECK(gguf->n_tensors == 3, "%d", (int)gguf->n_tensors);
    const sn_gguf_tensor *tensor = sn_gguf_find_tensor(gguf, "row");
    CHECK(tensor && tensor == sn_gguf_find_tensor(gguf, "row.weight") && tensor->bytes == 20,
          "row");
    CHECK(sn_gguf_find_tensor(gguf, "matrix.weight") == &gguf->tensors[1], "matrix.weight");
    CHECK(!sn_gguf_find_tensor(gguf, "matri") && !sn_gguf_find_tensor(gguf, ".weight"), "none");
    tensor = &gguf->tensors[2];
    CHECK(strcmp(tensor->name, "deep") == 0 && tensor->n_dims == 3 && tensor->dims[2] == 3 &&
              tensor->dims[3] == 1, "trailing ones are dropped");
    sn_input *input = &gguf->parts[0].input;
    for (uint64_t i = 0, first = 1; i < 3; i++) {
        tensor = &gguf->tensors[i];
        CHECK(tensor->offset % 32 == 0, "%s", tensor->name);
        CHECK(sn_input_skip_to(input, tensor->offset) == SN_OK &&
                  sn_input_read(input, data, 12) == SN_OK && data[0] == (uint8_t)first &&
                  data[11] == (uint8_t)(first + 11), "%s", tensor->name);
        first += tensor->bytes;
    }
}

static uint8_t *load_file(const char *path, size_t *size) {
    sn_input input;
    uint8_t *data = NULL;
    if (sn_platform_open(path, &input) != SN_OK) return NULL;
    *size = (size_t)input.size;
    data = sn_alloc(*size);
    if (sn_input_read(&input, data, *size) != SN_OK) *size = 0;
    sn_input_close(&input);
    return data;
}

/* Hands the sample out one byte at a time. */
static size_t read_drop(void *user, void *buffer, size_t bytes) {
    sn_memory_cursor *cursor = user;
    if (!bytes || !cursor->left) return 0;
    *(uint8_t *)buffer = *cursor->data++;
    cursor->left--;
    return 1;
}

static sn_status read_bytes(const void *data, size_t size, bool in_drops, sn_gguf *gguf,
                            sn_memory_cursor *cursor) {
    sn_input input;
    sn_input_from_memory(&input, "bytes", data, size, cursor);
    if (in_drops) input.read = read_drop;
    return sn_gguf_read(&input, gguf);
}

static void test_round_trip(void) {
    const char *path = file_name(".gguf");
    size_t size = 0;
    sn_gguf gguf;
    sn_memory_cursor cursor;
    CHECK(write_sample(path) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_open(path, &gguf) == SN_OK, "%s", sn_last_error());
    CHECK(strcmp(sn_gguf_name(&gguf), path) == 0 && gguf.version == 3, "%s", sn_gguf_name(&gguf));
    check_numbers(&gguf);
    check_texts(&gguf);
    check_tensors(&gguf);
    sn_gguf_close(&gguf);
    sn_gguf_close(&gguf);

    uint8_t *data = load_file(path, &size);
    for (int in_drops = 0; in_drops < 2; in_drops++) {
        CHECK(read_bytes(data, size, in_drops, &gguf, &cursor) == SN_OK, "%s", sn_last_error());
        check_texts(&gguf);
        check_tensors(&gguf);
        sn_gguf_close(&gguf);
    }
    for (size_t cut = 0; cut + 20 < size; cut++) /* the last 20 bytes are padding */
        if (read_bytes(data, cut, false, &gguf, &cursor) == SN_OK) {
            CHECK(false, "cut at %zu of %zu", cut, size);
            sn_gguf_close(&gguf);
        }
    sn_free(data);
    remove(path);
}

/* A copy of all values and tensors has the same bytes. */
static void test_copy(void) {
    const char *path = file_name(".gguf"), *copied = file_name(".copy");
    sn_gguf gguf;
    sn_gguf_writer *writer;
    size_t size = 0, copied_size = 0;
    CHECK(write_sample(path) == SN_OK, "%s", sn_last_error());
    uint8_t *data = load_file(path, &size);
    CHECK(sn_gguf_open(path, &gguf) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_writer_new(copied, &writer) == SN_OK, "%s", sn_last_error());
    for (uint64_t i = 0; i < gguf.n_values; i++)
        CHECK(sn_gguf_put_value(writer, &gguf.values[i]) == SN_OK, "%s", sn_last_error());
    CHECK(declare_and_fill(writer) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_writer_finish(writer) == SN_OK, "%s", sn_last_error());
    uint8_t *copy = load_file(copied, &copied_size);
    CHECK(size == copied_size && memcmp(data, copy, size) == 0, "%zu and %zu bytes", size,
          copied_size);
    sn_free(data);
    sn_free(copy);
    sn_gguf_close(&gguf);
    remove(path);
    remove(copied);
}

static void test_writer_misuse(void) {
    static const uint64_t dims[] = { 4 }, odd[] = { 33 };
    const char *path = file_name(".gguf");
    sn_gguf_writer *writer;
    sn_gguf gguf;
    CHECK(sn_gguf_writer_new(path, &writer) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_put_u32(writer, "", 1) == SN_E_INVAL, "no key");
    CHECK(sn_gguf_put_u32(writer, "general.alignment", 48) == SN_E_INVAL, "alignment 48");
    CHECK(sn_gguf_put_u32(writer, "general.alignment", 128) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_declare(writer, "", SN_TYPE_F32, 1, dims, 16) == SN_E_INVAL, "no name");
    CHECK(sn_gguf_declare(writer, "a", SN_TYPE_F32, 1, dims, 15) == SN_E_INVAL, "15 bytes");
    CHECK(sn_gguf_declare(writer, "a", SN_TYPE_Q8_0, 1, odd, 34) == SN_E_INVAL, "33 in a row");
    CHECK(sn_gguf_declare(writer, "a", 99, 1, dims, 16) == SN_E_INVAL, "type 99");
    CHECK(sn_gguf_declare(writer, "a", SN_TYPE_F32, 1, dims, 16) == SN_OK, "%s",
          sn_last_error());
    CHECK(sn_gguf_declare(writer, "b", SN_TYPE_F32, 1, dims, 16) == SN_OK, "%s",
          sn_last_error());
    CHECK(sn_gguf_put_u32(writer, "late", 1) == SN_E_INVAL, "a key after a tensor");
    CHECK(sn_gguf_write_data(writer, numbers, 16) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_declare(writer, "c", SN_TYPE_F32, 1, dims, 16) == SN_E_INVAL, "too late");
    CHECK(sn_gguf_write_data(writer, numbers, 16) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_write_data(writer, numbers, 1) == SN_E_INVAL, "too much");
    CHECK(sn_gguf_writer_finish(writer) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_open(path, &gguf) == SN_OK, "%s", sn_last_error());
    CHECK(gguf.tensors[1].offset - gguf.tensors[0].offset == 128, "keeps to its alignment");
    sn_gguf_close(&gguf);
    remove(path);

    CHECK(sn_gguf_writer_new(path, &writer) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_put_u32(writer, "twin", 1) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_put_text(writer, "twin", "") == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_writer_finish(writer) == SN_E_INVAL && last_error_has("'twin'"), "%s",
          sn_last_error());
    CHECK(sn_gguf_writer_new(path, &writer) == SN_OK, "%s", sn_last_error());
    CHECK(sn_gguf_declare(writer, "a", SN_TYPE_F32, 1, dims, 16) == SN_OK, "%s",
          sn_last_error());
    CHECK(sn_gguf_writer_finish(writer) == SN_E_INVAL && last_error_has("0 of 1"), "%s",
          sn_last_error());
    CHECK(!exists(path), "an unfinished file appears nowhere");
    sn_gguf_writer_discard(NULL);
}

/* ---- split files -------------------------------------------------------------------- */

static void write_part(const char *path, uint32_t number, uint32_t count, const char *tensor,
                       uint32_t total) {
    static const uint64_t dims[] = { 4 };
    sn_gguf_writer *writer;
    CHECK(sn_gguf_writer_new(path, &writer) == SN_OK, "%s", sn_last_error());
    sn_gguf_put_u32(writer, "split.no", number);
    sn_gguf_put_u32(writer, "split.count", count);
    sn_gguf_put_u32(writer, "split.tensors.count", total);
    sn_gguf_declare(writer, tensor, SN_TYPE_F32, 1, dims, 16);
    sn_gguf_write_data(writer, numbers, 16);
    CHECK(sn_gguf_writer_finish(writer) == SN_OK, "%s", sn_last_error());
}

static void refuse_open(const char *path, const char *reason) {
    sn_gguf gguf;
    sn_status status = sn_gguf_open(path, &gguf);
    CHECK(status != SN_OK && last_error_has(reason), "wanted: %s, got: %s", reason,
          sn_last_error());
    if (status == SN_OK) sn_gguf_close(&gguf);
}

static void test_split(void) {
    char one[1100], two[1100];
    sn_gguf gguf;
    snprintf(one, sizeof one, "%s-00001-of-00002.gguf", base);
    snprintf(two, sizeof two, "%s-00002-of-00002.gguf", base);
    write_part(one, 0, 2, "b", 2);
    refuse_open(one, "00002-of-00002.gguf: cannot open");
    write_part(two, 1, 2, "a", 2);
    CHECK(sn_gguf_open(one, &gguf) == SN_OK, "%s", sn_last_error());
    CHECK(gguf.n_parts == 2 && gguf.n_tensors == 2 && gguf.tensors[1].part == 1 &&
              sn_gguf_find_tensor(&gguf, "a") == &gguf.tensors[1], "two parts");
    CHECK(gguf.file_bytes == gguf.parts[0].input.size + gguf.parts[1].input.size, "size");
    sn_gguf_close(&gguf);
    refuse_open(two, "is part 2 of 2; give the first part");
    write_part(two, 1, 2, "b", 2);
    refuse_open(one, "00002-of-00002.gguf: tensor 'b': it occurs twice");
    write_part(two, 1, 3, "a", 2);
    refuse_open(one, "says it is part 2 of 3");
    write_part(two, 1, 2, "a", 2);
    write_part(one, 0, 2, "b", 5);
    refuse_open(one, "5 tensors announced, the 2 parts hold 2");
    write_part(two, 0, 2, "a", 2);
    refuse_open(two, "its name does not end in -00001-of-00002.gguf");

    size_t size = 0;
    sn_memory_cursor cursor;
    uint8_t *data = load_file(one, &size);
    CHECK(read_bytes(data, size, false, &gguf, &cursor) == SN_E_UNSUPPORTED, "%s",
          sn_last_error());
    sn_free(data);
    remove(one);
    remove(two);
}

/* ---- failing allocations ------------------------------------------------------------ */

/* Fails every allocation in turn until `work` needs no more; nothing may leak or crash. */
static void fail_each(const char *what, sn_status (*work)(const char *), const char *path) {
    for (long n = 1; n < 1000; n++) {
        sn_alloc_fail_at(n);
        sn_status status = work(path);
        sn_alloc_fail_at(0);
        if (status == SN_OK) {
            CHECK(n > 5, "%s: %ld allocations seem too few", what, n);
            return;
        }
        CHECK(status == SN_E_NOMEM && last_error_has("out of memory"), "%s: %ld: %s", what, n,
              sn_last_error());
    }
    CHECK(false, "%s never ends", what);
}

static sn_status open_and_close(const char *path) {
    sn_gguf gguf;
    SN_TRY(sn_gguf_open(path, &gguf));
    sn_gguf_close(&gguf);
    return SN_OK;
}

static void test_failing_memory(void) {
    char one[1100], two[1100];
    const char *path = file_name(".gguf");
    snprintf(one, sizeof one, "%s-00001-of-00002.gguf", base);
    snprintf(two, sizeof two, "%s-00002-of-00002.gguf", base);
    fail_each("writing", write_sample, path);
    fail_each("reading", open_and_close, path);
    write_part(one, 0, 2, "b", 2);
    write_part(two, 1, 2, "a", 2);
    fail_each("reading parts", open_and_close, one);
    remove(path);
    remove(one);
    remove(two);
}

int main(int argc, char **argv) {
    snprintf(base, sizeof base, "%s.tmp", argc > 1 ? argv[1] : argv[0]);
    test_memory();
    test_source();
    test_files();
    test_pages();
    test_round_trip();
    test_copy();
    test_writer_misuse();
    test_split();
    test_failing_memory();
    return check_report("gguf");
}
