#include "loader_internal.h"

#include "platform.h"
#include "weights.h"

#define MAP_ALIGNMENT 32 /* GGUF's own; panels of floats need 4 */

const sn_gguf *sn_loader_gguf(const sn_loader *loader) {
    return loader->gguf;
}

sn_status sn_loader_weights(sn_loader *loader, size_t bytes) {
    loader->model->weights = sn_alloc(bytes);
    return loader->model->weights ? SN_OK : SN_E_NOMEM;
}

/* ---- binding ------------------------------------------------------------------------------ */

sn_status sn_load_fail_tensor(const sn_loader *loader, sn_status code, const char *name,
                              const char *reason) {
    return sn_fail(code, "%.300s: tensor '%s': %s", sn_gguf_name(loader->gguf), name, reason);
}

static sn_status find(const sn_loader *loader, const char *name, size_t *index) {
    const sn_gguf_tensor *tensor = sn_gguf_find_tensor(loader->gguf, name);
    if (!tensor) return sn_load_fail_tensor(loader, SN_E_FORMAT, name, "missing");
    *index = (size_t)(tensor - loader->gguf->tensors);
    return SN_OK;
}

bool sn_loader_has(const sn_loader *loader, const char *name) {
    return sn_gguf_find_tensor(loader->gguf, name) != NULL;
}

/* Type and logical shape of a tensor, seen through panels. dims beyond 2 must be bound as a
 * vector. */
static void describe(const sn_loader *loader, size_t index, sn_request *r) {
    const sn_gguf_tensor *tensor = &loader->gguf->tensors[index];
    r->tensor = index;
    r->packed = sn_packed_at(&loader->packed, index);
    r->type = r->packed ? r->packed->type : sn_type_find(tensor->type);
    r->k = r->packed ? r->packed->k : tensor->dims[0];
    r->rows = 1;
    if (r->packed) r->rows = r->packed->rows;
    else
        for (uint32_t d = 1; d < tensor->n_dims; d++) r->rows *= tensor->dims[d];
}

sn_status sn_loader_shape(const sn_loader *loader, const char *name, uint64_t *rows,
                          uint64_t *k) {
    size_t index;
    sn_request r;
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    *rows = r.rows;
    *k = r.k;
    return SN_OK;
}

static sn_status check_shape(const sn_loader *loader, const char *name, const sn_request *r,
                             uint64_t rows, uint64_t k) {
    if (r->rows == rows && r->k == k) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': shape [%llu, %llu], expected [%llu, %llu]",
                   sn_gguf_name(loader->gguf), name, (unsigned long long)r->k,
                   (unsigned long long)r->rows, (unsigned long long)k, (unsigned long long)rows);
}

static sn_status check_type(const sn_loader *loader, const char *name, const sn_request *r) {
    if (r->type->decode && (r->kind != REQUEST_MATRIX || sn_panel_supports(r->type)))
        return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%s': type %s is not supported",
                   sn_gguf_name(loader->gguf), name, r->type->name);
}

/* Bytes the tensor takes in memory. */
static bool resident_bytes(const sn_request *r, size_t *bytes) {
    uint64_t n, total;
    if (!sn_mul_u64(r->rows, r->k, &n) || n > SIZE_MAX) return false;
    switch (r->kind) {
    case REQUEST_VECTOR:
    case REQUEST_TRANSPOSED:
        if (!sn_mul_u64(n, sizeof(float), &total)) return false;
        break;
    case REQUEST_MATRIX:
        if (r->k > SIZE_MAX / 64) return false;
        if (!sn_mul_u64((r->rows + SN_PANEL_ROWS - 1) / SN_PANEL_ROWS,
                        sn_panel_bytes(r->type, (size_t)r->k), &total))
            return false;
        break;
    default: total = sn_type_bytes(r->type, n);
    }
    *bytes = (size_t)total;
    return total <= SIZE_MAX / 2;
}

static sn_status add_request(sn_loader *loader, const char *name, sn_request r) {
    SN_TRY(check_type(loader, name, &r));
    if (!resident_bytes(&r, &r.bytes))
        return sn_load_fail_tensor(loader, SN_E_NOMEM, name, "larger than the address space");
    if (loader->roles[r.tensor] != SN_ROLE_UNUSED)
        return sn_load_fail_tensor(loader, SN_E_FORMAT, name, "serves two purposes");
    loader->roles[r.tensor] = r.kind == REQUEST_MATRIX ? SN_ROLE_MATRIX
                            : r.kind == REQUEST_ROWS   ? SN_ROLE_ROWS
                                                       : SN_ROLE_VECTOR;
    if (loader->n_requests == loader->capacity) {
        const size_t old = loader->capacity * sizeof r;
        sn_request *more = sn_grow(loader->requests, old, old ? 2 * old : 64 * sizeof r);
        if (!more) return SN_E_NOMEM;
        loader->requests = more;
        loader->capacity = loader->capacity ? 2 * loader->capacity : 64;
    }
    loader->requests[loader->n_requests++] = r;
    return SN_OK;
}

/* A tensor that becomes n float32 values. */
static sn_status add_vector(sn_loader *loader, const char *name, sn_request r, uint64_t n) {
    if (r.packed)
        return sn_load_fail_tensor(loader, SN_E_FORMAT, name, "a vector cannot be packed");
    loader->model->vector_bytes += (double)n * sizeof(float);
    return add_request(loader, name, r);
}

sn_status sn_loader_vector(sn_loader *loader, const char *name, uint64_t n, const float **vector) {
    size_t index;
    sn_request r = { .kind = REQUEST_VECTOR, .slot = (const void **)(void *)vector };
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    if (!r.packed && r.rows * r.k != n) /* the reader has bounded the product */
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': %llu elements, expected %llu",
                       sn_gguf_name(loader->gguf), name, (unsigned long long)(r.rows * r.k),
                       (unsigned long long)n);
    return add_vector(loader, name, r, n);
}

sn_status sn_loader_transposed(sn_loader *loader, const char *name, uint64_t rows, uint64_t k,
                               const float **vector) {
    size_t index;
    sn_request r = { .kind = REQUEST_TRANSPOSED, .slot = (const void **)(void *)vector };
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    if (k == 1 && !r.packed && r.rows == 1 && r.k == rows) { /* a trailing 1 was dropped */
        r.rows = rows;
        r.k = 1;
    }
    SN_TRY(check_shape(loader, name, &r, rows, k));
    return add_vector(loader, name, r, rows * k);
}

sn_status sn_loader_matrix(sn_loader *loader, const char *name, uint64_t rows, uint64_t k,
                           sn_matrix *matrix) {
    size_t index;
    sn_request r = { .kind = REQUEST_MATRIX, .slot = (const void **)(void *)&matrix->panels };
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    SN_TRY(check_shape(loader, name, &r, rows, k));
    SN_TRY(add_request(loader, name, r));
    matrix->type = r.type;
    matrix->layout = sn_layout_of(r.type);
    matrix->rows = (size_t)rows;
    matrix->k = (size_t)k;
    matrix->n_panels = (size_t)((rows + SN_PANEL_ROWS - 1) / SN_PANEL_ROWS);
    matrix->panel_bytes = sn_panel_bytes(r.type, (size_t)k);
    loader->model->matrix_bytes += (double)matrix->n_panels * (double)matrix->panel_bytes;
    if (r.type->block > 1 && matrix->k > loader->model->max_int8_k)
        loader->model->max_int8_k = matrix->k;
    return SN_OK;
}

sn_status sn_loader_rows(sn_loader *loader, const char *name, uint64_t n, uint64_t k,
                         sn_rows *rows) {
    size_t index;
    sn_request r = { .kind = REQUEST_ROWS, .slot = (const void **)(void *)&rows->data };
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    if (r.packed)
        return sn_load_fail_tensor(loader, SN_E_FORMAT, name, "embedding rows cannot be packed");
    SN_TRY(check_shape(loader, name, &r, n, k));
    SN_TRY(add_request(loader, name, r));
    rows->type = r.type;
    rows->n = (size_t)n;
    rows->k = (size_t)k;
    rows->row_bytes = (size_t)sn_type_bytes(r.type, k);
    loader->model->row_bytes += (double)rows->row_bytes;
    return SN_OK;
}

sn_status sn_loader_tied(sn_loader *loader, const char *name, uint64_t n, uint64_t k,
                         sn_rows *rows, sn_matrix *matrix) {
    SN_TRY(sn_loader_matrix(loader, name, n, k, matrix));
    rows->tied = matrix;
    rows->type = matrix->type;
    rows->n = (size_t)n;
    rows->k = (size_t)k;
    rows->row_bytes = (size_t)sn_type_bytes(matrix->type, k);
    loader->model->row_bytes += (double)rows->row_bytes;
    return SN_OK;
}

sn_role sn_load_role(const sn_loader *loader, size_t tensor) {
    return (sn_role)loader->roles[tensor];
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Where each tensor lies in memory, in the order of the requests (the order of use). */
static sn_status place(sn_loader *loader, size_t *total) {
    sn_model *m = loader->model;
    for (size_t i = 0; i < loader->n_requests; i++) {
        sn_request *r = &loader->requests[i];
        const size_t room = sn_round_up(r->bytes, SN_ALIGNMENT);
        r->mapped = loader->map && sn_request_is_plain(r);
        r->offset = *total;
        if (!sn_add_size(m->weight_bytes, room, &m->weight_bytes))
            return sn_fail(SN_E_NOMEM, "%.300s: larger than the address space",
                           sn_gguf_name(loader->gguf));
        if (!r->mapped) *total += room;
        m->tensors[r->tensor].resident_bytes = r->bytes;
    }
    return SN_OK;
}

/*
 * Shapes that no real model has take many times the file's room: a panel of 16 rows for a matrix
 * of one, a head of 65536 keys and values. A file must not be able to ask for more than this.
 */
#define FREE_BYTES (64 << 20)
#define TIMES_FILE 8
#define CHUNK 32 /* tokens that scratch is counted for, whatever the caller's max_chunk */

static sn_status check_size(const sn_loader *loader) {
    const sn_model *m = loader->model;
    const double floats = (double)m->state_floats + CHUNK * (double)m->scratch_floats;
    const double needed = (double)m->weight_bytes + floats * sizeof(float);
    const double file = (double)loader->gguf->file_bytes;
    if (needed <= FREE_BYTES + TIMES_FILE * file) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: weights and state would take %.0f bytes, the file "
                   "has %.0f", sn_gguf_name(loader->gguf), needed, file);
}

/* The weights of a mapped file are used where they lie, so they have to lie well. */
static sn_status check_mapped(const sn_loader *loader) {
    const char *name = sn_gguf_name(loader->gguf);
    size_t panels = 0;
    for (size_t i = 0; i < loader->n_requests; i++) {
        const sn_request *r = &loader->requests[i];
        const sn_gguf_tensor *tensor = &loader->gguf->tensors[r->tensor];
        panels += r->packed != NULL;
        if (r->mapped && tensor->offset % MAP_ALIGNMENT)
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%s': byte %llu is no multiple of %d, "
                           "so it cannot be mapped", name, tensor->name,
                           (unsigned long long)tensor->offset, MAP_ALIGNMENT);
    }
    if (panels) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: is not packed, so it cannot be mapped: convert it "
                   "with --packed", name);
}

static sn_status map_parts(sn_loader *loader, sn_weights *w) {
    if (!loader->map) return SN_OK;
    SN_TRY(check_mapped(loader));
    w->maps = sn_alloc_array((size_t)loader->gguf->n_parts, sizeof *w->maps);
    if (!w->maps) return SN_E_NOMEM;
    w->n_maps = (size_t)loader->gguf->n_parts;
    for (size_t i = 0; i < w->n_maps; i++) {
        sn_input *input = &loader->gguf->parts[i].input;
        if (!input->map)
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: cannot be mapped: it is no file, or this "
                           "system maps none", input->name);
        SN_TRY(input->map(input, &w->maps[i].data));
        w->maps[i].bytes = (size_t)input->size;
    }
    return SN_OK;
}

static sn_status allocate_weights(sn_loader *loader, size_t page_bytes) {
    sn_weights *w = loader->model->memory = sn_alloc(sizeof *w);
    if (!w) return SN_E_NOMEM;
    w->page_bytes = page_bytes;
    w->n_tensors = loader->n_requests;
    w->tensors = sn_alloc_array(w->n_tensors, sizeof *w->tensors);
    if (!w->tensors) return SN_E_NOMEM;
    SN_TRY(map_parts(loader, w));
    w->pages = sn_platform_pages(page_bytes);
    if (w->pages) return SN_OK;
    return sn_fail(SN_E_NOMEM, "%.300s: %zu bytes for the weights could not be had",
                   sn_gguf_name(loader->gguf), page_bytes);
}

static void tell_places(sn_loader *loader) {
    const sn_weights *w = loader->model->memory;
    for (size_t i = 0; i < loader->n_requests; i++) {
        sn_request *r = &loader->requests[i];
        const sn_gguf_tensor *tensor = &loader->gguf->tensors[r->tensor];
        /* Nothing is written where it is mapped: such a piece is only checked. */
        r->to = r->mapped ? (uint8_t *)(uintptr_t)w->maps[tensor->part].data + tensor->offset
                          : w->pages + r->offset;
        *r->slot = r->to;
        w->tensors[i] = (sn_region){ r->to, r->bytes };
        loader->by_tensor[r->tensor] = r;
        loader->total += (double)tensor->bytes;
    }
}

static sn_status allocate(sn_loader *loader, size_t page_bytes, size_t most) {
    loader->by_tensor = sn_alloc_array((size_t)loader->gguf->n_tensors, sizeof(sn_request *));
    loader->staging_bytes = sn_load_staging_bytes(loader, most);
    loader->staging = sn_alloc(loader->staging_bytes);
    if (!loader->by_tensor || !loader->staging) return SN_E_NOMEM;
    SN_TRY(allocate_weights(loader, page_bytes));
    tell_places(loader);
    return SN_OK;
}

static sn_status bind(sn_loader *loader, bool header_only, size_t most) {
    size_t page_bytes = 0;
    SN_TRY(sn_packed_read(loader->gguf, &loader->packed));
    loader->roles = sn_alloc_array((size_t)loader->gguf->n_tensors, sizeof *loader->roles);
    if (!loader->roles) return SN_E_NOMEM;
    if (loader->model->arch) SN_TRY(loader->model->arch->bind(loader, loader->model));
    SN_TRY(place(loader, &page_bytes));
    SN_TRY(check_size(loader));
    if (!header_only) return allocate(loader, page_bytes, most);
    loader->next = (size_t)loader->gguf->n_tensors;
    return SN_OK;
}

sn_status sn_load_begin(const sn_gguf *gguf, sn_model *model, const sn_model_options *options,
                        size_t most, sn_loader **out) {
    sn_loader *loader = sn_alloc(sizeof *loader);
    if (!loader) return SN_E_NOMEM;
    loader->gguf = gguf;
    loader->model = model;
    loader->map = options->map != 0;
    loader->progress = options->progress;
    loader->progress_user = options->progress_user;
    const sn_status status = bind(loader, options->header_only, most);
    if (status == SN_OK) *out = loader;
    else sn_load_free(loader);
    return status;
}

void sn_load_free(sn_loader *loader) {
    if (!loader) return;
    sn_free(loader->roles);
    sn_free(loader->requests);
    sn_free(loader->by_tensor);
    sn_free(loader->staging);
    sn_packed_free(&loader->packed);
    sn_free(loader);
}
