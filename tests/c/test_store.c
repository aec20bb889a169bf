/* test_store FOLDER: files read at any place, stores, views of every kind against plain loops. */
#include "formats/store.h"
#include "platform.h"

#include "check.h"

#include <math.h>

#define BYTES 65536

/* Element i of a made file is i in its lowest bytes, so that every place can be told. */
static uint8_t data[BYTES];

static void number_elements(size_t size) {
    for (size_t i = 0; i < BYTES; i++) {
        uint64_t element = i / size;
        data[i] = (uint8_t)(element >> (8 * (i % size)));
    }
}

/* ---- files -------------------------------------------------------------------------- */

static void check_file(const sn_file *file) {
    uint8_t bytes[40];
    CHECK(file->size == BYTES, "%llu bytes", (unsigned long long)file->size);
    for (uint64_t offset = BYTES - 40; offset > 1500; offset -= 1501) { /* backwards */
        CHECK(sn_file_read(file, offset, bytes, sizeof bytes) == SN_OK, "%s", sn_last_error());
        CHECK(memcmp(bytes, data + offset, sizeof bytes) == 0, "at %d", (int)offset);
    }
    CHECK(sn_file_read(file, BYTES, bytes, 0) == SN_OK, "nothing at the end");
    static const struct { uint64_t offset; size_t n; } outside[] = {
        { BYTES - 39, 40 }, { BYTES, 1 }, { BYTES + 1, 0 }, { UINT64_MAX, 1 },
        { UINT64_MAX - 7, 40 }, { 0, BYTES + 1 },
    };
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        CHECK(sn_file_read(file, outside[i].offset, bytes, outside[i].n) == SN_E_FORMAT &&
                  strstr(sn_last_error(), file->name), "case %zu: %s", i, sn_last_error());
    char *all = NULL;
    size_t n = 0;
    CHECK(sn_file_read_all(file, BYTES, &all, &n) == SN_OK && n == BYTES && all[n] == '\0' &&
              memcmp(all, data, n) == 0, "all of it");
    sn_free(all);
    all = NULL;
    CHECK(sn_file_read_all(file, BYTES - 1, &all, &n) == SN_E_FORMAT && !all, "a limit");
}

static sn_status note_name(void *user, const char *name) {
    int *found = user;
    if (strcmp(name, "store.bin") == 0) *found += 1;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) *found += 100;
    return SN_OK;
}

static sn_status refuse_name(void *user, const char *name) {
    ++*(int *)user;
    return sn_fail(SN_E_ABORTED, "%s", name);
}

static void check_platform(const char *folder) {
    char path[1024], missing[1024];
    snprintf(path, sizeof path, "%s/store.bin", folder);
    snprintf(missing, sizeof missing, "%s/no-such-file", folder);
    FILE *out = fopen(path, "wb");
    CHECK(out && fwrite(data, 1, BYTES, out) == BYTES && fclose(out) == 0, "%s", path);
    sn_file file;
    CHECK(sn_platform_open_file(path, &file) == SN_OK, "%s", sn_last_error());
    check_file(&file);
    sn_file_close(&file);
    sn_file_close(&file); /* of a closed one */
    CHECK(sn_platform_open_file(missing, &file) == SN_E_IO && strstr(sn_last_error(), missing),
          "%s", sn_last_error());
    CHECK(sn_platform_open_file(folder, &file) == SN_E_IO, "a folder is no file");
    CHECK(sn_platform_is_folder(folder) && !sn_platform_is_folder(path) &&
              !sn_platform_is_folder(missing), "folders");
    int found = 0;
    CHECK(sn_platform_list(folder, note_name, &found) == SN_OK && found == 1, "%d", found);
    found = 0;
    CHECK(sn_platform_list(folder, refuse_name, &found) == SN_E_ABORTED && found == 1, "stops");
    CHECK(sn_platform_list(missing, note_name, &found) == SN_E_IO, "no folder");
    remove(path);
}

/* ---- stores ------------------------------------------------------------------------- */

static size_t closed;

static size_t read_data(void *user, uint64_t offset, void *buffer, size_t bytes) {
    uint64_t *asked = user;
    *asked += bytes;
    memcpy(buffer, data + offset, bytes);
    return bytes;
}

static void count_closing(void *user) {
    (void)user;
    closed++;
}

static uint64_t asked; /* bytes of the file */

static sn_store *new_store(const sn_file **kept) {
    char name[] = "data.bin"; /* copied: it need not stay */
    sn_file file = { .name = name, .size = BYTES, .read_at = read_data, .user = &asked,
                     .close = count_closing };
    sn_store *store = NULL;
    if (sn_store_new(&store) != SN_OK || sn_store_add_file(store, &file, kept) != SN_OK) exit(2);
    CHECK(!file.close, "the file has been taken over");
    memset(name, 'x', sizeof name - 1);
    return store;
}

static sn_view make_view(const sn_file *file, const char *type, uint32_t n, const uint64_t *dims) {
    sn_view view = { .name = "t", .type = sn_type_by_name(type), .n_dims = n, .file = file };
    uint64_t stride = 1;
    for (uint32_t i = n; i-- > 0;) {
        view.dims[i] = dims[i];
        view.strides[i] = stride;
        stride *= dims[i];
    }
    return view;
}

static void check_store(void) {
    const sn_file *file;
    sn_store *store = new_store(&file);
    const uint64_t dims[2] = { 3, 4 };
    char name[32];
    const sn_view *first = NULL;
    for (int i = 0; i < 3000; i++) {
        sn_view view = make_view(file, "F32", 2, dims);
        snprintf(name, sizeof name, "blk.%d.weight", i);
        view.name = name;
        view.offset = (uint64_t)i * 4;
        CHECK(sn_store_add(store, &view) == SN_OK, "%s", sn_last_error());
        if (i == 0) first = sn_store_at(store, 0);
    }
    CHECK(sn_store_count(store) == 3000 && !sn_store_at(store, 3000), "count");
    CHECK(sn_store_at(store, 0) == first && strcmp(first->name, "blk.0.weight") == 0, "it moved");
    for (int i = 0; i < 3000; i += 7) {
        snprintf(name, sizeof name, "blk.%d.weight", i);
        const sn_view *found = sn_store_find(store, name);
        CHECK(found == sn_store_at(store, (size_t)i) && found->offset == (uint64_t)i * 4, "%s",
              name);
    }
    CHECK(!sn_store_find(store, "blk.3000.weight") && !sn_store_find(store, ""), "absent");
    sn_view again = make_view(file, "F32", 2, dims);
    again.name = "blk.7.weight";
    CHECK(sn_store_add(store, &again) == SN_E_FORMAT &&
              strcmp(sn_last_error(), "data.bin: tensor 'blk.7.weight': it occurs twice") == 0,
          "%s", sn_last_error());
    CHECK(!sn_store_note(store, "k"), "no note yet");
    CHECK(sn_store_set_note(store, "k", "one", 3) == SN_OK &&
              sn_store_set_note(store, "k", "twoX", 3) == SN_OK &&
              sn_store_set_note(store, "other", "", 0) == SN_OK, "%s", sn_last_error());
    CHECK(strcmp(sn_store_note(store, "k"), "two") == 0, "the second note");
    CHECK(!*sn_store_note(store, "other"), "an empty note");
    closed = 0;
    sn_store_free(store);
    CHECK(closed == 1, "%zu files closed", closed);
    sn_store_free(NULL);
}

/* Names that begin one another, and names that differ in one bit. */
static void check_names(void) {
    const sn_file *file;
    sn_store *store = new_store(&file);
    sn_view view = make_view(file, "I8", 0, NULL);
    char name[1024] = "";
    size_t wrong = 0;
    for (size_t i = 0; i < 1023; i++) {
        size_t length = 1 + i * 512 % 1023; /* every length once */
        memset(name, 'a', length);
        name[length] = '\0';
        view.name = name;
        wrong += sn_store_find(store, name) != NULL;
        wrong += sn_store_add(store, &view) != SN_OK || sn_store_add(store, &view) == SN_OK;
        name[length / 2] ^= (char)(1 << i % 7);
        wrong += sn_store_find(store, name) != NULL;
        if (name[length / 2]) wrong += sn_store_add(store, &view) != SN_OK;
    }
    for (size_t i = 0; i < sn_store_count(store); i++)
        wrong += sn_store_find(store, sn_store_at(store, i)->name) != sn_store_at(store, i);
    CHECK(wrong == 0 && sn_store_count(store) == 2046, "%zu of %zu", wrong, sn_store_count(store));
    view.name = "";
    CHECK(sn_store_add(store, &view) == SN_E_FORMAT, "no name");
    sn_store_free(store);
}

static void refuses(const sn_file *file, sn_store *store, const char *type, uint32_t n,
                    const uint64_t *dims, const uint64_t *strides, uint64_t offset,
                    const char *reason) {
    sn_view view = { .name = "t", .type = sn_type_by_name(type), .n_dims = n, .file = file,
                     .offset = offset };
    if (n <= SN_STORE_MAX_DIMS) {
        memcpy(view.dims, dims, n * sizeof dims[0]);
        memcpy(view.strides, strides, n * sizeof dims[0]);
    }
    CHECK(sn_store_add(store, &view) == SN_E_FORMAT && strstr(sn_last_error(), reason) &&
              strstr(sn_last_error(), "data.bin: tensor 't': "), "%s: %s", reason, sn_last_error());
    CHECK(sn_store_count(store) == 0, "it was added");
}

static void check_extents(void) {
    const uint64_t huge = UINT64_MAX, half = (uint64_t)1 << 63, root = (uint64_t)1 << 32;
    const sn_file *file;
    sn_store *store = new_store(&file);
    const char *outside = "its elements do not lie in the file of 65536 bytes";
#define REFUSES(type, n, dims, strides, offset, reason)                                       \
    refuses(file, store, type, n, (const uint64_t[])dims, (const uint64_t[])strides, offset, reason)
#define LIST(...) { __VA_ARGS__ }
    REFUSES("F32", 1, LIST(16385), LIST(1), 0, outside);
    REFUSES("F32", 1, LIST(16384), LIST(1), 1, outside);
    REFUSES("F32", 1, LIST(1), LIST(1), BYTES - 3, outside);
    REFUSES("F32", 1, LIST(1), LIST(1), huge - 3, outside);
    REFUSES("F32", 1, LIST(2), LIST(huge), 0, outside);
    REFUSES("F32", 1, LIST(2), LIST(half), 0, outside);
    REFUSES("F32", 1, LIST(huge), LIST(0), 0, outside);
    REFUSES("F32", 2, LIST(root, root), LIST(0, 0), 0, outside);
    REFUSES("F32", 2, LIST(128, 129), LIST(0, 1), 0, outside);
    REFUSES("F32", 3, LIST(3, 3, 3), LIST(half, half, 1), 0, outside);
    REFUSES("F32", 4, LIST(65536, 65536, 65536, 65536), LIST(1, 1, 1, 1), 0, outside);
    REFUSES("Q8_0", 1, LIST(33), LIST(1), 0, "rows of 33 elements are not whole blocks of Q8_0");
    REFUSES("Q8_0", 2, LIST(32, 32), LIST(1, 32), 0, "not whole blocks");
    REFUSES("Q8_0", 2, LIST(2, 32), LIST(32, 1), BYTES - 67, outside);
    REFUSES("F32", 5, LIST(1), LIST(1), 0, "5 dimensions, at most 4");
    sn_view view = make_view(file, "F32", 2, (const uint64_t[]){ 0, half });
    view.offset = huge; /* nothing is ever read of it */
    CHECK(sn_store_add(store, &view) == SN_OK, "no elements: %s", sn_last_error());
    sn_store_free(store);
}

/* ---- views -------------------------------------------------------------------------- */

/* What the view's element of this row-major index is, in the numbered file. */
static uint64_t expected_element(const sn_view *view, uint64_t index) {
    uint64_t at = view->offset / view->type->block_bytes;
    for (uint32_t i = view->n_dims; i-- > 0;) {
        at += index % view->dims[i] * view->strides[i];
        index /= view->dims[i];
    }
    return at;
}

static bool read_matches(const sn_view *view, uint64_t first, size_t n) {
    static uint8_t bytes[BYTES];
    size_t size = view->type->block_bytes;
    if (sn_view_read(view, first, n, bytes) != SN_OK) return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t expected = expected_element(view, first + i);
        for (size_t j = 0; j < size; j++)
            if (bytes[i * size + j] != (uint8_t)(expected >> (8 * j))) return false;
    }
    return true;
}

static void walk(const sn_view *view, size_t step) {
    uint64_t all = sn_view_elements(view);
    for (uint64_t at = 0; at < all; at += step) {
        size_t n = all - at < step ? (size_t)(all - at) : step;
        if (!read_matches(view, at, n)) {
            CHECK(0, "[%d %d %d %d] at %d, step %zu", (int)view->dims[0], (int)view->dims[1],
                  (int)view->dims[2], (int)view->dims[3], (int)at, step);
            return;
        }
    }
    CHECK(1, "walked");
}

/* A view of random shape whose dimensions are then put in random order, some of them sliced. */
static sn_view random_view(const sn_file *file, const char *type, check_random *random) {
    uint64_t dims[4];
    uint32_t n = check_below(random, 5);
    for (uint32_t i = 0; i < n; i++) dims[i] = 1 + check_below(random, 9);
    sn_view view = make_view(file, type, n, dims);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = check_below(random, n);
        uint64_t dim = view.dims[i], stride = view.strides[i];
        view.dims[i] = view.dims[j];
        view.strides[i] = view.strides[j];
        view.dims[j] = dim;
        view.strides[j] = stride;
        if (check_below(random, 4) == 0 && view.dims[i] > 2) { /* every second */
            view.dims[i] /= 2;
            view.strides[i] *= 2;
        }
        if (check_below(random, 16) == 0) view.strides[i] = 0; /* repeated */
    }
    view.offset = check_below(random, 50) * view.type->block_bytes;
    return view;
}

static void check_views(void) {
    static const char *const types[] = { "I8", "F16", "F32", "F64" };
    check_random random = { 3 };
    const sn_file *file;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        sn_store *store = new_store(&file);
        number_elements(sn_type_by_name(types[t])->block_bytes);
        for (int i = 0; i < 400; i++) {
            char name[24];
            sn_view view = random_view(file, types[t], &random);
            snprintf(name, sizeof name, "v%d", i);
            view.name = name;
            CHECK(sn_store_add(store, &view) == SN_OK, "%s", sn_last_error());
            const sn_view *kept = sn_store_at(store, (size_t)i);
            size_t step = 1 + check_below(&random, 30);
            walk(kept, step);
            sn_view turned = sn_view_transposed(kept);
            walk(&turned, step);
            walk(&view, step); /* not of a store */
            uint64_t all = sn_view_elements(kept);
            uint8_t none;
            CHECK(sn_view_read(kept, all, 0, &none) == SN_OK &&
                      sn_view_read(kept, all, 1, &none) == SN_E_INVAL &&
                      sn_view_read(kept, UINT64_MAX, 2, &none) == SN_E_INVAL, "outside");
        }
        sn_store_free(store);
    }
}

/* Walking through a transposed matrix asks for each byte once, and for a slice for the gaps too. */
static void check_traffic(void) {
    const sn_file *file;
    sn_store *store = new_store(&file);
    number_elements(2);
    sn_view view = make_view(file, "F16", 2, (const uint64_t[]){ 128, 256 });
    CHECK(sn_store_add(store, &view) == SN_OK, "%s", sn_last_error());
    sn_view turned = sn_view_transposed(sn_store_at(store, 0));
    asked = 0;
    walk(&turned, 100);
    CHECK(asked == BYTES, "%d bytes read of %d", (int)asked, BYTES);
    turned.dims[0] /= 2; /* every second column of the file */
    turned.strides[0] *= 2;
    asked = 0;
    walk(&turned, 100);
    CHECK(asked <= BYTES, "%d bytes read of %d", (int)asked, BYTES);
    sn_store_free(store);
}

static void check_floats(void) {
    static const uint8_t bytes[] = {
        0x00, 0x3c, 0x01, 0x00, 0x00, 0xfc,                                     /* f16 */
        0x80, 0x3f, 0x00, 0xc0, 0x80, 0x7f,                                     /* bf16 */
        0, 0, 0x80, 0x3f, 1, 0, 0, 0,                                           /* f32 */
        0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f, /* f64 */
    };
    static const struct { const char *type; uint64_t offset, n; float values[3]; } cases[] = {
        { "F16", 0, 3, { 1, 0x1p-24f, -INFINITY } }, { "BF16", 6, 3, { 1, -2, INFINITY } },
        { "F32", 12, 2, { 1, 0x1p-149f, 0 } }, { "F64", 20, 2, { 0.1f, INFINITY, 0 } },
    };
    const sn_file *file;
    sn_store *store = new_store(&file);
    memcpy(data, bytes, sizeof bytes);
    float values[3];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_view view = make_view(file, cases[i].type, 1, &cases[i].n);
        view.offset = cases[i].offset;
        CHECK(sn_view_read_f32(&view, 0, (size_t)cases[i].n, values) == SN_OK &&
                  memcmp(values, cases[i].values, (size_t)cases[i].n * sizeof values[0]) == 0,
              "%s: %g %g", cases[i].type, (double)values[0], (double)values[1]);
    }
    sn_view view = make_view(file, "I32", 1, &cases[0].n);
    CHECK(sn_view_read_f32(&view, 0, 1, values) == SN_E_UNSUPPORTED &&
              strstr(sn_last_error(), "is of type I32"), "%s", sn_last_error());
    sn_store_free(store);
}

/* Whole blocks only, decoded as types.h does. */
static void check_blocks(void) {
    const sn_file *file;
    sn_store *store = new_store(&file);
    check_random random = { 9 };
    for (size_t i = 0; i < BYTES; i++) data[i] = (uint8_t)(check_next(&random) & 0x3f);
    sn_view view = make_view(file, "Q8_0", 2, (const uint64_t[]){ 40, 64 });
    view.offset = 7;
    CHECK(sn_store_add(store, &view) == SN_OK, "%s", sn_last_error());
    static float values[40 * 64], expected[40 * 64];
    view.type->decode(data + 7, expected, 40 * 64);
    CHECK(sn_view_read_f32(sn_store_at(store, 0), 32, 39 * 64, values) == SN_OK &&
              memcmp(values, expected + 32, 39 * 64 * sizeof values[0]) == 0, "Q8_0");
    CHECK(sn_view_read(&view, 16, 32, values) == SN_E_INVAL &&
              sn_view_read(&view, 0, 16, values) == SN_E_INVAL, "half a block");
    sn_store_free(store);
}

/* ---- memory ------------------------------------------------------------------------- */

/* Whichever allocation fails while a container is read: SN_E_NOMEM, and nothing stays behind. */
static void check_memory(void) {
    char text[4096] = "        {", *at = text + 9;
    for (int i = 0; i < 20; i++)
        at += sprintf(at, "\"t%d\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[%d,%d]},",
                      i, 8 * i, 8 * i + 8);
    at += sprintf(at, "\"__metadata__\":{\"k\":\"v\"}}");
    size_t header = (size_t)(at - text) - 8, all = header + 8 + 160;
    memset(text, 0, 8);
    text[0] = (char)(header & 255);
    text[1] = (char)(header >> 8);
    uint8_t four[8];
    for (long n = 1; n < 200; n++) {
        sn_file file;
        sn_store *store = NULL;
        sn_file_from_memory(&file, "m", text, all);
        sn_alloc_fail_at(n);
        sn_status status = sn_store_new(&store);
        if (status == SN_OK) status = sn_safetensors_read(&file, store);
        if (status == SN_OK) {
            sn_view turned = sn_view_transposed(sn_store_find(store, "t7"));
            status = sn_view_read(&turned, 0, 4, four);
        }
        sn_alloc_fail_at(0);
        sn_store_free(store);
        if (status == SN_OK) {
            CHECK(n > 25, "only %ld allocations", n - 1);
            return;
        }
        CHECK(status == SN_E_NOMEM, "allocation %ld: status %d: %s", n, (int)status,
              sn_last_error());
    }
    CHECK(0, "never enough memory");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: test_store FOLDER\n");
        return 2;
    }
    number_elements(4);
    sn_file memory;
    sn_file_from_memory(&memory, "memory", data, BYTES);
    check_file(&memory);
    sn_file_close(&memory);
    check_platform(argv[1]);
    check_store();
    check_names();
    check_extents();
    check_views();
    check_traffic();
    check_floats();
    check_blocks();
    check_memory();
    return check_report("test_store");
}
