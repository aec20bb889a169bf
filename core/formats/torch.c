#include "store.h"

#include "pickle.h"
#include "zip.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * PyTorch's checkpoints since 1.6: a ZIP archive "<top>/data.pkl", "<top>/data/<key>", ... whose
 * pickle describes tensors as views of the storages "data/<key>". Only views are made here.
 */

#define MAX_PICKLE ((uint64_t)64 << 20) /* real ones have some 200 bytes a tensor */
#define MAX_NAME 1024
#define MAX_DEPTH 32
#define MAX_VISITS ((size_t)1 << 20) /* a value may be reached many times over */

typedef struct reader {
    const sn_file *file;
    sn_store *store;
    sn_zip zip;
    const char *pickle_member; /* "<top>/data.pkl" */
    size_t top_length;         /* of "<top>/" */
    size_t visits;
    char name[MAX_NAME]; /* of the value at hand */
} reader;

/* ---- members ------------------------------------------------------------------------ */

/* "<top>/<name>"; NULL if there is none. */
static const sn_zip_member *find_member(const reader *r, const char *name) {
    char path[2 * MAX_NAME];
    if (strlen(name) >= MAX_NAME) return NULL;
    snprintf(path, sizeof path, "%.*s%s", (int)r->top_length, r->pickle_member, name);
    return sn_zip_find(&r->zip, path);
}

static sn_status find_pickle(reader *r, const sn_zip_member **found) {
    static const char name[] = "data.pkl";
    *found = NULL;
    for (size_t i = 0; i < r->zip.n_members; i++) {
        const sn_zip_member *member = &r->zip.members[i];
        const char *slash = strchr(member->name, '/');
        if (!slash || strcmp(slash + 1, name) != 0) continue;
        if (*found)
            return sn_fail(SN_E_FORMAT, "%.300s: two members data.pkl in one archive",
                           r->file->name);
        *found = member;
        r->pickle_member = member->name;
        r->top_length = (size_t)(slash + 1 - member->name);
    }
    if (!*found)
        return sn_fail(SN_E_FORMAT, "%.300s: a ZIP archive without <folder>/data.pkl, so no "
                       "PyTorch checkpoint", r->file->name);
    if ((*found)->bytes > MAX_PICKLE)
        return sn_fail(SN_E_FORMAT, "%.300s: data.pkl has %" PRIu64 " bytes, at most %" PRIu64
                       " are read", r->file->name, (*found)->bytes, MAX_PICKLE);
    return SN_OK;
}

/* Storages are in the byte order of the machine that wrote them; old files do not say which. */
static sn_status check_byte_order(const reader *r) {
    char order[7] = "";
    const sn_zip_member *member = find_member(r, "byteorder");
    if (!member) return SN_OK;
    if (member->bytes != 6 ||
        sn_file_read(r->file, member->offset, order, 6) != SN_OK || strcmp(order, "little") != 0)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: its byte order is not little-endian",
                       r->file->name);
    return SN_OK;
}

static sn_status parse_member(const reader *r, const sn_zip_member *member, sn_pickle **pickle) {
    size_t bytes = (size_t)member->bytes;
    uint8_t *data = sn_alloc(bytes);
    if (!data) return SN_E_NOMEM;
    sn_status status = sn_file_read(r->file, member->offset, data, bytes);
    if (status == SN_OK) status = sn_pickle_parse(data, bytes, r->file->name, pickle);
    sn_free(data);
    return status;
}

/* ---- tensors ------------------------------------------------------------------------ */

#define REJECT(reader_, code, format, ...)                                                    \
    sn_fail(code, "%.300s: tensor '%.64s': " format, (reader_)->file->name, (reader_)->name,  \
            __VA_ARGS__)

/* The member that holds a storage, of exactly the announced size. */
static sn_status find_storage(const reader *r, const sn_pickle_value *storage,
                              const sn_type *type, const sn_zip_member **member) {
    char path[MAX_NAME];
    const char *key = storage->items[1]->text;
    uint64_t bytes;
    int length = snprintf(path, sizeof path, "data/%s", key);
    *member = length < MAX_NAME ? find_member(r, path) : NULL;
    if (!*member) return REJECT(r, SN_E_FORMAT, "there is no member data/%.64s", key);
    if (!sn_mul_u64((uint64_t)storage->integer, type->block_bytes, &bytes) ||
        bytes != (*member)->bytes)
        return REJECT(r, SN_E_FORMAT, "member data/%.64s has %" PRIu64 " bytes where %" PRId64
                      " elements of %s are announced", key, (*member)->bytes, storage->integer,
                      type->name);
    return SN_OK;
}

/* True if offset, sizes and strides stay inside the storage. */
static bool fits(const sn_view *view, uint64_t offset, uint64_t elements) {
    uint64_t last = offset, span;
    for (uint32_t i = 0; i < view->n_dims; i++)
        if (view->dims[i] == 0) return true;
    for (uint32_t i = 0; i < view->n_dims; i++) {
        if (!sn_mul_u64(view->dims[i] - 1, view->strides[i], &span) || span > UINT64_MAX - last)
            return false;
        last += span;
    }
    return last < elements;
}

static sn_status add_tensor(reader *r, const sn_pickle_value *tensor) {
    const sn_pickle_value *storage = tensor->items[0], *sizes = tensor->items[2],
                          *strides = tensor->items[3];
    const sn_type *type = sn_type_by_name(sn_pickle_storage_type(storage));
    uint64_t offset = (uint64_t)tensor->items[1]->integer;
    sn_view view = { .name = r->name, .type = type, .file = r->file };
    const sn_zip_member *member = NULL;
    if (sizes->size > SN_STORE_MAX_DIMS)
        return REJECT(r, SN_E_UNSUPPORTED, "%zu dimensions, at most %d are supported",
                      sizes->size, SN_STORE_MAX_DIMS);
    view.n_dims = (uint32_t)sizes->size;
    for (size_t i = 0; i < sizes->size; i++) {
        view.dims[i] = (uint64_t)sizes->items[i]->integer;
        view.strides[i] = (uint64_t)strides->items[i]->integer;
    }
    SN_TRY(find_storage(r, storage, type, &member));
    if (!fits(&view, offset, (uint64_t)storage->integer))
        return REJECT(r, SN_E_FORMAT, "it does not lie in its storage of %" PRId64 " elements",
                      storage->integer);
    view.offset = member->offset + offset * type->block_bytes;
    return sn_store_add(r->store, &view);
}

/* ---- the tree ----------------------------------------------------------------------- */

/* Appends ".part" to the name; false if it does not fit. */
static bool extend_name(reader *r, size_t length, const char *part, size_t size) {
    size_t dot = length > 0;
    if (size >= MAX_NAME - 1 - length || memchr(part, '\0', size)) return false;
    if (dot) r->name[length] = '.';
    memcpy(r->name + length + dot, part, size);
    r->name[length + dot + size] = '\0';
    return true;
}

static sn_status add_value(reader *r, const sn_pickle_value *value, size_t length, int depth);

/* What a key or an index names. Python's keys are texts or, at times, integers. */
static sn_status add_member(reader *r, const sn_pickle_value *key, size_t index,
                            const sn_pickle_value *value, size_t length, int depth) {
    char number[24];
    const char *part = number;
    if (key && key->kind != SN_PICKLE_TEXT && key->kind != SN_PICKLE_INT) {
        char buffer[128];
        return sn_fail(SN_E_FORMAT, "%.300s: '%.64s': a key that is %s", r->file->name, r->name,
                       sn_pickle_describe(key, buffer, sizeof buffer));
    }
    if (key && key->kind == SN_PICKLE_TEXT)
        part = key->text;
    else if (key)
        snprintf(number, sizeof number, "%" PRId64, key->integer);
    else
        snprintf(number, sizeof number, "%zu", index);
    if (!extend_name(r, length, part, part == number ? strlen(part) : key->size))
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.64s': its name is too long or holds a NUL",
                       r->file->name, part);
    SN_TRY(add_value(r, value, strlen(r->name), depth));
    r->name[length] = '\0';
    return SN_OK;
}

static sn_status add_members(reader *r, const sn_pickle_value *container, size_t length,
                             int depth) {
    bool dict = container->kind == SN_PICKLE_DICT;
    if (depth == MAX_DEPTH)
        return sn_fail(SN_E_FORMAT, "%.300s: '%.64s' is nested more than %d deep", r->file->name,
                       r->name, MAX_DEPTH);
    for (size_t i = 0; i < container->size; i += dict ? 2 : 1)
        SN_TRY(add_member(r, dict ? container->items[i] : NULL, i, container->items[i + dict],
                          length, depth + 1));
    return SN_OK;
}

static sn_status add_value(reader *r, const sn_pickle_value *value, size_t length, int depth) {
    char buffer[128];
    if (++r->visits > MAX_VISITS)
        return sn_fail(SN_E_FORMAT, "%.300s: more than %zu values", r->file->name, MAX_VISITS);
    switch (value->kind) {
    case SN_PICKLE_TENSOR: return add_tensor(r, value);
    case SN_PICKLE_LIST:
    case SN_PICKLE_TUPLE:
    case SN_PICKLE_DICT: return add_members(r, value, length, depth);
    case SN_PICKLE_STORAGE:
    case SN_PICKLE_CALLABLE:
    case SN_PICKLE_FOREIGN:
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: '%.64s' is %s, not a tensor", r->file->name,
                       r->name, sn_pickle_describe(value, buffer, sizeof buffer));
    default: return SN_OK; /* numbers and texts beside the tensors */
    }
}

/* ---- the whole ---------------------------------------------------------------------- */

/* Everything beside the tensors that is plain, as JSON. */
static sn_status add_notes(const reader *r, const sn_pickle_value *top, const char *root) {
    for (size_t i = 0; i < top->size; i += 2) {
        const sn_pickle_value *key = top->items[i], *value = top->items[i + 1];
        char *text = NULL;
        size_t bytes = 0;
        if (key->kind != SN_PICKLE_TEXT || strlen(key->text) != key->size ||
            strcmp(key->text, root) == 0)
            continue;
        char name[400];
        snprintf(name, sizeof name, "%.300s: '%.64s'", r->file->name, key->text);
        sn_status status = sn_pickle_to_json(value, name, &text, &bytes);
        if (text) status = sn_store_set_note(r->store, key->text, text, bytes);
        sn_free(text);
        SN_TRY(status);
    }
    return SN_OK;
}

static sn_status add_all(reader *r, const sn_pickle_value *top, const char *root) {
    char buffer[128];
    if (top->kind != SN_PICKLE_DICT)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: holds %s, a dictionary of tensors is needed",
                       r->file->name, sn_pickle_describe(top, buffer, sizeof buffer));
    const sn_pickle_value *tensors = root ? sn_pickle_get(top, root) : NULL;
    if (!tensors || tensors->kind == SN_PICKLE_TENSOR) return add_value(r, top, 0, 0);
    if (tensors->kind != SN_PICKLE_DICT)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: '%.64s' is %s, a dictionary of tensors is needed",
                       r->file->name, root, sn_pickle_describe(tensors, buffer, sizeof buffer));
    SN_TRY(add_notes(r, top, root));
    return add_value(r, tensors, 0, 0);
}

static sn_status read_archive(reader *r, const char *root) {
    const sn_zip_member *member = NULL;
    sn_pickle *pickle = NULL;
    SN_TRY(find_pickle(r, &member));
    SN_TRY(check_byte_order(r));
    SN_TRY(parse_member(r, member, &pickle));
    sn_status status = add_all(r, sn_pickle_root(pickle), root);
    sn_pickle_free(pickle);
    return status;
}

/* ---- other files -------------------------------------------------------------------- */

static const struct {
    const char *start;
    size_t n;
    const char *what;
} OTHERS[] = {
    /* the pickled number 0x1950a86a20f9469cfc6c */
    { "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14,
      "a checkpoint of PyTorch before 1.6; load and save it with a newer one" },
    { "\x93NUMPY", 6, "a NumPy array, not a PyTorch checkpoint" },
    { "\x89HDF\r\n\x1a\n", 8, "an HDF5 file, not a PyTorch checkpoint" },
    { "\x1f\x8b", 2, "gzip-compressed; unpack it first" },
};

#define N_OTHERS (sizeof OTHERS / sizeof OTHERS[0])
#define START_BYTES 16

/* A protocol, then an operation that checkpoints begin with. */
static bool is_bare_pickle(const char *start, size_t n) {
    return n > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5 && start[2] &&
           strchr("}](c\x95\x8a", start[2]);
}

/* What else the file may be; NULL if nothing is known of it. */
static const char *other_kind(const sn_file *file) {
    char start[START_BYTES] = "";
    size_t n = file->size < START_BYTES ? (size_t)file->size : START_BYTES;
    if (sn_file_read(file, 0, start, n) != SN_OK) return NULL;
    for (size_t i = 0; i < N_OTHERS; i++)
        if (OTHERS[i].n <= n && memcmp(start, OTHERS[i].start, OTHERS[i].n) == 0)
            return OTHERS[i].what;
    if (is_bare_pickle(start, n)) return "a bare pickle, not a PyTorch checkpoint (a ZIP archive)";
    return NULL;
}

bool sn_pickle_smells(const sn_file *file) {
    return sn_zip_smells(file) || other_kind(file);
}

sn_status sn_pickle_read(sn_file *file, const char *root, sn_store *store) {
    reader r = { .store = store };
    SN_TRY(sn_store_add_file(store, file, &r.file));
    if (!sn_zip_smells(r.file)) {
        const char *other = other_kind(r.file);
        return sn_fail(SN_E_FORMAT, "%.300s: %s", r.file->name,
                       other ? other : "not a PyTorch checkpoint (a ZIP archive)");
    }
    SN_TRY(sn_zip_read(r.file, &r.zip));
    sn_status status = read_archive(&r, root);
    sn_zip_free(&r.zip);
    return status;
}
