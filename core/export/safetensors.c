#include "safetensors.h"

#include "../formats/index_sort.h"
#include "../platform.h"
#include "../quant/bytes.h"
#include "text.h"

#include <string.h>

#define PIECE 16384 /* elements at a time */
#define METADATA "__metadata__"

typedef struct plan {
    const sn_store *store;
    const char *without;
    uint32_t *order; /* the store's tensors by name */
    size_t n;
} plan;

static int compare_names(const void *table, uint32_t a, uint32_t b) {
    const sn_store *store = table;
    return strcmp(sn_store_at(store, a)->name, sn_store_at(store, b)->name);
}

static bool is_left_out(const plan *p, const sn_view *view) {
    return p->without && !strcmp(view->name, p->without);
}

/* ---- the header ---------------------------------------------------------------------------- */

static void put_key(sn_growing *text, const char *key) {
    if (text->size > 1) sn_put_text(text, ",");
    sn_put_string(text, key, strlen(key));
    sn_put_text(text, ":");
}

static void put_metadata(sn_growing *text, const sn_meta *meta, size_t n) {
    put_key(text, METADATA);
    sn_put_text(text, "{");
    for (size_t i = 0; i < n; i++) {
        if (i) sn_put_text(text, ",");
        sn_put_string(text, meta[i].key, strlen(meta[i].key));
        sn_put_text(text, ":");
        sn_put_string(text, meta[i].text, strlen(meta[i].text));
    }
    sn_put_text(text, "}");
}

static void put_tensor(sn_growing *text, const sn_view *view, uint64_t begin, uint64_t end) {
    put_key(text, view->name);
    sn_put_text(text, "{\"data_offsets\":[");
    sn_put_number(text, begin);
    sn_put_text(text, ",");
    sn_put_number(text, end);
    sn_put_text(text, "],\"dtype\":\"F32\",\"shape\":[");
    for (uint32_t d = 0; d < view->n_dims; d++) {
        if (d) sn_put_text(text, ",");
        sn_put_number(text, view->dims[d]);
    }
    sn_put_text(text, "]}");
}

/* The metadata stands among the tensors, where its name belongs. */
static void put_header(sn_growing *text, const plan *p, const sn_meta *meta, size_t n_meta) {
    uint64_t at = 0;
    bool waiting = true;
    sn_put_text(text, "{");
    for (size_t i = 0; i < p->n; i++) {
        const sn_view *view = sn_store_at(p->store, p->order[i]);
        if (waiting && strcmp(view->name, METADATA) > 0) {
            put_metadata(text, meta, n_meta);
            waiting = false;
        }
        if (is_left_out(p, view)) continue;
        const uint64_t end = at + 4 * sn_view_elements(view);
        put_tensor(text, view, at, end);
        at = end;
    }
    if (waiting) put_metadata(text, meta, n_meta);
    sn_put_text(text, "}");
}

static sn_status write_header(sn_output *output, const sn_growing *text) {
    uint8_t length[8];
    sn_store32(length, (uint32_t)text->size);
    sn_store32(length + 4, (uint32_t)((uint64_t)text->size >> 32));
    SN_TRY(sn_output_write(output, length, sizeof length));
    return sn_output_write(output, text->data, text->size);
}

/* ---- the data ------------------------------------------------------------------------------ */

typedef struct piece {
    float values[PIECE];
    uint8_t bytes[4 * PIECE];
} piece;

static sn_status write_tensor(sn_output *output, const sn_view *view, piece *buffer) {
    const uint64_t n = sn_view_elements(view);
    for (uint64_t at = 0; at < n;) {
        const size_t count = n - at < PIECE ? (size_t)(n - at) : PIECE;
        SN_TRY(sn_view_read_f32(view, at, count, buffer->values));
        for (size_t i = 0; i < count; i++)
            sn_store32(buffer->bytes + 4 * i, sn_bits_of(buffer->values[i]));
        SN_TRY(sn_output_write(output, buffer->bytes, 4 * count));
        at += count;
    }
    return SN_OK;
}

static sn_status write_file(sn_output *output, const plan *p, const sn_growing *text) {
    SN_TRY(write_header(output, text));
    piece *buffer = sn_alloc(sizeof *buffer);
    if (!buffer) return SN_E_NOMEM;
    sn_status status = SN_OK;
    for (size_t i = 0; i < p->n && status == SN_OK; i++) {
        const sn_view *view = sn_store_at(p->store, p->order[i]);
        if (!is_left_out(p, view)) status = write_tensor(output, view, buffer);
    }
    sn_free(buffer);
    return status;
}

static sn_status write_plan(const plan *p, const sn_growing *text, const char *path) {
    sn_output *output;
    SN_TRY(sn_growing_status(text));
    SN_TRY(sn_platform_create(path, &output));
    sn_status status = write_file(output, p, text);
    if (status == SN_OK) return sn_output_commit(output);
    sn_output_discard(output);
    return status;
}

sn_status sn_safetensors_write(const sn_store *store, const char *without, const sn_meta *meta,
                               size_t n_meta, const char *path) {
    plan p = {.store = store, .without = without, .n = sn_store_count(store)};
    sn_growing text = {.data = NULL};
    p.order = sn_alloc_array(p.n, sizeof *p.order);
    if (!p.order) return SN_E_NOMEM;
    sn_index_sort(p.order, p.n, compare_names, store);
    put_header(&text, &p, meta, n_meta);
    sn_status status = write_plan(&p, &text, path);
    sn_growing_free(&text);
    sn_free(p.order);
    return status;
}
