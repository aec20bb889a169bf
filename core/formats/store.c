#include "store_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_TENSORS 262144 /* as in a GGUF file */
#define MAX_NAME 1024      /* bytes of a tensor's name with its NUL */

typedef struct note {
    struct note *next;
    const char *key, *text; /* behind the struct, in the same allocation */
} note;

/*
 * Names are found in a binary trie of the bits in which they differ ("crit-bit tree"): it needs no
 * more steps than a name has bits, whatever a file's names are. A link is a view's index or
 * another node's.
 */
typedef struct link {
    uint32_t index;
    bool is_view;
} link;

typedef struct node {
    uint32_t byte; /* that decides */
    uint8_t mask;  /* one bit of it */
    link next[2];  /* where it is 0, where it is 1 */
} node;

struct sn_store {
    sn_file **files;
    sn_view **views; /* each with its name behind it, so that neither moves */
    size_t n_files, n_views, file_capacity, view_capacity;
    node *nodes; /* one fewer than views, at most */
    link root;
    note *notes;
    sn_gather *gather;
};

sn_status sn_store_new(sn_store **store) {
    sn_store *made = sn_alloc(sizeof *made);
    if (!made) return SN_E_NOMEM;
    *store = made;
    return SN_OK;
}

void sn_store_free(sn_store *store) {
    if (!store) return;
    sn_gather_free(store->gather);
    for (size_t i = 0; i < store->n_files; i++) {
        sn_file_close(store->files[i]);
        sn_free(store->files[i]);
    }
    for (size_t i = 0; i < store->n_views; i++) sn_free(store->views[i]);
    for (note *next, *n = store->notes; n; n = next) {
        next = n->next;
        sn_free(n);
    }
    sn_free(store->files);
    sn_free(store->views);
    sn_free(store->nodes);
    sn_free(store);
}

sn_gather **sn_store_gather(sn_store *store) {
    return &store->gather;
}

/* ---- files -------------------------------------------------------------------------- */

/* The capacity that n + 1 items need, if n is all there is room for. */
static size_t larger(size_t n) {
    return n ? 2 * n : 16;
}

static sn_status grow_files(sn_store *store) {
    if (store->n_files < store->file_capacity) return SN_OK;
    size_t capacity = larger(store->n_files);
    sn_file **files = sn_grow(store->files, store->n_files * sizeof *files,
                              capacity * sizeof *files);
    if (!files) return SN_E_NOMEM;
    store->files = files;
    store->file_capacity = capacity;
    return SN_OK;
}

sn_status sn_store_add_file(sn_store *store, sn_file *file, const sn_file **kept) {
    size_t length = strlen(file->name);
    sn_file *copy = sn_alloc(sizeof *copy + length + 1);
    if (!copy || grow_files(store) != SN_OK) {
        sn_free(copy);
        sn_file_close(file);
        return SN_E_NOMEM;
    }
    char *name = (char *)(copy + 1);
    memcpy(name, file->name, length);
    *copy = *file;
    copy->name = name;
    *file = (sn_file){ .size = 0 };
    store->files[store->n_files++] = copy;
    *kept = copy;
    return SN_OK;
}

/* ---- names -------------------------------------------------------------------------- */

static int side(const node *n, const char *name, size_t length) {
    uint8_t byte = n->byte < length ? (uint8_t)name[n->byte] : 0;
    return (byte & n->mask) != 0;
}

/* The only view that can have this name; there is at least one view. */
static const sn_view *candidate(const sn_store *store, const char *name, size_t length) {
    link at = store->root;
    while (!at.is_view) {
        const node *n = &store->nodes[at.index];
        at = n->next[side(n, name, length)];
    }
    return store->views[at.index];
}

/* Links the newest view, whose name first differs from all others' in this bit of this byte. */
static void link_newest(sn_store *store, uint32_t byte, uint8_t mask) {
    const sn_view *view = store->views[store->n_views - 1];
    size_t length = strlen(view->name);
    link *place = &store->root;
    while (!place->is_view) {
        node *n = &store->nodes[place->index];
        if (n->byte > byte || (n->byte == byte && n->mask < mask)) break;
        place = &n->next[side(n, view->name, length)];
    }
    uint32_t index = (uint32_t)store->n_views - 2;
    node *made = &store->nodes[index];
    *made = (node){ .byte = byte, .mask = mask };
    int own = side(made, view->name, length);
    made->next[own] = (link){ .index = (uint32_t)store->n_views - 1, .is_view = true };
    made->next[!own] = *place;
    *place = (link){ .index = index };
}

/* Where two names differ first; false if they do not. */
static bool first_difference(const char *a, const char *b, uint32_t *byte, uint8_t *mask) {
    uint32_t i = 0;
    while (a[i] == b[i])
        if (!a[i++]) return false;
    uint8_t bits = (uint8_t)(a[i] ^ b[i]);
    *byte = i;
    for (*mask = 0x80; !(bits & *mask); *mask >>= 1) continue;
    return true;
}

static sn_status grow_views(sn_store *store) {
    if (store->n_views < store->view_capacity) return SN_OK;
    size_t capacity = larger(store->n_views);
    sn_view **views = sn_grow(store->views, store->n_views * sizeof *views,
                              capacity * sizeof *views);
    if (!views) return SN_E_NOMEM;
    store->views = views;
    node *nodes = sn_grow(store->nodes, store->n_views * sizeof *nodes, capacity * sizeof *nodes);
    if (!nodes) return SN_E_NOMEM;
    store->nodes = nodes;
    store->view_capacity = capacity;
    return SN_OK;
}

const sn_view *sn_store_find(const sn_store *store, const char *name) {
    if (!store->n_views) return NULL;
    const sn_view *found = candidate(store, name, strlen(name));
    return strcmp(found->name, name) == 0 ? found : NULL;
}

size_t sn_store_count(const sn_store *store) {
    return store->n_views;
}

const sn_view *sn_store_at(const sn_store *store, size_t index) {
    return index < store->n_views ? store->views[index] : NULL;
}

/* ---- tensors ------------------------------------------------------------------------ */

uint64_t sn_view_elements(const sn_view *view) {
    uint64_t n = 1; /* a product that sn_store_add() has checked */
    for (uint32_t i = 0; i < view->n_dims; i++) n *= view->dims[i];
    return n;
}

bool sn_view_is_contiguous(const sn_view *view) {
    uint64_t stride = 1;
    for (uint32_t i = view->n_dims; i-- > 0;) {
        if (view->dims[i] != 1 && view->strides[i] != stride) return false;
        stride *= view->dims[i];
    }
    return true;
}

SN_PRINTF(2, 3)
static sn_status reject(const sn_view *view, const char *format, ...) {
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.64s': %s", view->file->name, view->name,
                   reason);
}

/* The bytes of all elements; false if they are more than the file could hold. */
static bool bytes_fit(const sn_view *view, uint64_t *bytes) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < view->n_dims; i++)
        if (!sn_mul_u64(n, view->dims[i], &n)) return false;
    return sn_mul_u64(n / view->type->block, view->type->block_bytes, bytes) &&
           *bytes <= view->file->size;
}

/* Bytes from element 0 to the end of the farthest; false if they are not all in the file. */
static bool extent_fits(const sn_view *view) {
    uint64_t last = 0, span;
    for (uint32_t i = 0; i < view->n_dims; i++) {
        if (!sn_mul_u64(view->dims[i] - 1, view->strides[i], &span) || span > UINT64_MAX - last)
            return false;
        last += span;
    }
    if (last == UINT64_MAX) return false; /* one more would wrap */
    if (!sn_mul_u64(last / view->type->block + 1, view->type->block_bytes, &span)) return false;
    return span <= view->file->size && view->offset <= view->file->size - span;
}

static sn_status check_view(const sn_view *view) {
    uint64_t bytes, row = view->n_dims ? view->dims[view->n_dims - 1] : 1;
    bool empty = false;
    for (uint32_t i = 0; i < view->n_dims; i++) empty |= view->dims[i] == 0;
    if (empty) return SN_OK;
    if (view->type->block > 1 && (!sn_view_is_contiguous(view) || row % view->type->block))
        return reject(view, "rows of %" PRIu64 " elements are not whole blocks of %s", row,
                      view->type->name);
    if (!bytes_fit(view, &bytes) || !extent_fits(view))
        return reject(view, "its elements do not lie in the file of %" PRIu64 " bytes",
                      view->file->size);
    return SN_OK;
}

sn_status sn_store_add(sn_store *store, const sn_view *view) {
    size_t length = strlen(view->name);
    if (length == 0 || length >= MAX_NAME)
        return reject(view, "a name of %zu bytes, possible are 1 to %d", length, MAX_NAME - 1);
    if (view->n_dims > SN_STORE_MAX_DIMS)
        return reject(view, "%u dimensions, at most %d are supported", (unsigned)view->n_dims,
                      SN_STORE_MAX_DIMS);
    SN_TRY(check_view(view));
    if (store->n_views == MAX_TENSORS)
        return reject(view, "more than %d tensors", MAX_TENSORS);
    SN_TRY(grow_views(store));
    uint32_t byte = 0;
    uint8_t mask = 0;
    if (store->n_views && !first_difference(candidate(store, view->name, length)->name,
                                            view->name, &byte, &mask))
        return reject(view, "it occurs twice");
    sn_view *copy = sn_alloc(sizeof *copy + length + 1);
    if (!copy) return SN_E_NOMEM;
    char *name = (char *)(copy + 1);
    memcpy(name, view->name, length);
    *copy = *view;
    copy->name = name;
    copy->store = store;
    store->views[store->n_views++] = copy;
    if (store->n_views > 1)
        link_newest(store, byte, mask);
    else
        store->root = (link){ .is_view = true };
    return SN_OK;
}

/* ---- notes -------------------------------------------------------------------------- */

sn_status sn_store_set_note(sn_store *store, const char *key, const char *text, size_t bytes) {
    size_t length = strlen(key), all;
    if (!sn_add_size(sizeof(note) + length + 2, bytes, &all))
        return sn_fail(SN_E_NOMEM, "out of memory: a text of %zu bytes", bytes);
    note *made = sn_alloc(all);
    if (!made) return SN_E_NOMEM;
    char *copy = (char *)(made + 1);
    memcpy(copy, key, length);
    memcpy(copy + length + 1, text, bytes);
    /* In front of the list, where it is found before an older one of the same key. */
    *made = (note){ .next = store->notes, .key = copy, .text = copy + length + 1 };
    store->notes = made;
    return SN_OK;
}

const char *sn_store_note(const sn_store *store, const char *key) {
    for (const note *n = store->notes; n; n = n->next)
        if (strcmp(n->key, key) == 0) return n->text;
    return NULL;
}
