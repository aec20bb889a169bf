#include "loader.h"

#include "hash.h"
#include "load.h"
#include "platform.h"
#include "quant/packed.h"
#include "worker.h"

#include <string.h>

#define PIECE_BYTES (4u << 20) /* read at a time */

/* What an architecture asked for one tensor to become. */
typedef enum request_kind {
    REQUEST_VECTOR, REQUEST_TRANSPOSED, REQUEST_MATRIX, REQUEST_ROWS
} request_kind;

typedef struct request {
    request_kind kind;
    size_t tensor; /* index in the file */
    const sn_type *type;
    uint64_t rows, k;
    const sn_packed_tensor *packed; /* the file holds panels already */
    const void **slot;              /* receives the pointer */
    size_t offset, bytes;           /* in the model's pages */
} request;

struct sn_loader {
    const sn_gguf *gguf;
    sn_model *model;
    sn_packed packed;
    request *requests;
    size_t n_requests, capacity;
    uint8_t *roles; /* per tensor: sn_role, of those that are bound */
    /* reading */
    const request **by_tensor; /* what each tensor of the file becomes; NULL: not needed */
    uint8_t *staging;          /* holds a piece that is packed or decoded */
    size_t next;               /* the tensor at hand */
    uint64_t at;               /* of it, taken so far: bytes if plain, else elements */
    uint64_t piece_at, piece_n; /* the piece at hand, in the same unit; its elements */
    size_t piece_bytes;
    sn_progress_fn progress;
    void *progress_user;
    double done, total; /* bytes of the file, for progress */
};

const sn_gguf *sn_loader_gguf(const sn_loader *loader) {
    return loader->gguf;
}

sn_status sn_loader_weights(sn_loader *loader, size_t bytes) {
    loader->model->weights = sn_alloc(bytes);
    return loader->model->weights ? SN_OK : SN_E_NOMEM;
}

/* ---- binding ------------------------------------------------------------------------------ */

static sn_status fail_tensor(const sn_loader *loader, sn_status code, const char *name,
                             const char *reason) {
    return sn_fail(code, "%.300s: tensor '%s': %s", sn_gguf_name(loader->gguf), name, reason);
}

static sn_status find(const sn_loader *loader, const char *name, size_t *index) {
    const sn_gguf_tensor *tensor = sn_gguf_find_tensor(loader->gguf, name);
    if (!tensor) return fail_tensor(loader, SN_E_FORMAT, name, "missing");
    *index = (size_t)(tensor - loader->gguf->tensors);
    return SN_OK;
}

bool sn_loader_has(const sn_loader *loader, const char *name) {
    return sn_gguf_find_tensor(loader->gguf, name) != NULL;
}

/* Type and logical shape of a tensor, seen through panels. dims beyond 2 must be bound as a
 * vector. */
static void describe(const sn_loader *loader, size_t index, request *r) {
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
    request r;
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    *rows = r.rows;
    *k = r.k;
    return SN_OK;
}

static sn_status check_shape(const sn_loader *loader, const char *name, const request *r,
                             uint64_t rows, uint64_t k) {
    if (r->rows == rows && r->k == k) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': shape [%llu, %llu], expected [%llu, %llu]",
                   sn_gguf_name(loader->gguf), name, (unsigned long long)r->k,
                   (unsigned long long)r->rows, (unsigned long long)k, (unsigned long long)rows);
}

static sn_status check_type(const sn_loader *loader, const char *name, const request *r) {
    if (r->type->decode && (r->kind != REQUEST_MATRIX || sn_panel_supports(r->type)))
        return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%s': type %s is not supported",
                   sn_gguf_name(loader->gguf), name, r->type->name);
}

/* Bytes the tensor takes in memory. */
static bool resident_bytes(const request *r, size_t *bytes) {
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

static sn_status add_request(sn_loader *loader, const char *name, request r) {
    SN_TRY(check_type(loader, name, &r));
    if (!resident_bytes(&r, &r.bytes))
        return fail_tensor(loader, SN_E_NOMEM, name, "larger than the address space");
    if (loader->roles[r.tensor] != SN_ROLE_UNUSED)
        return fail_tensor(loader, SN_E_FORMAT, name, "serves two purposes");
    loader->roles[r.tensor] = r.kind == REQUEST_MATRIX ? SN_ROLE_MATRIX
                            : r.kind == REQUEST_ROWS   ? SN_ROLE_ROWS
                                                       : SN_ROLE_VECTOR;
    if (loader->n_requests == loader->capacity) {
        const size_t old = loader->capacity * sizeof r;
        request *more = sn_grow(loader->requests, old, old ? 2 * old : 64 * sizeof r);
        if (!more) return SN_E_NOMEM;
        loader->requests = more;
        loader->capacity = loader->capacity ? 2 * loader->capacity : 64;
    }
    loader->requests[loader->n_requests++] = r;
    return SN_OK;
}

/* A tensor that becomes n float32 values. */
static sn_status add_vector(sn_loader *loader, const char *name, request r, uint64_t n) {
    if (r.packed) return fail_tensor(loader, SN_E_FORMAT, name, "a vector cannot be packed");
    loader->model->vector_bytes += (double)n * sizeof(float);
    return add_request(loader, name, r);
}

sn_status sn_loader_vector(sn_loader *loader, const char *name, uint64_t n, const float **vector) {
    size_t index;
    request r = { .kind = REQUEST_VECTOR, .slot = (const void **)(void *)vector };
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
    request r = { .kind = REQUEST_TRANSPOSED, .slot = (const void **)(void *)vector };
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
    request r = { .kind = REQUEST_MATRIX, .slot = (const void **)(void *)&matrix->panels };
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
    request r = { .kind = REQUEST_ROWS, .slot = (const void **)(void *)&rows->data };
    SN_TRY(find(loader, name, &index));
    describe(loader, index, &r);
    if (r.packed) return fail_tensor(loader, SN_E_FORMAT, name, "embedding rows cannot be packed");
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

/* ---- reading: the file's bytes in order, piece by piece ------------------------------------- */

static sn_status report(sn_loader *loader, size_t bytes) {
    loader->done += (double)bytes;
    if (sn_asked_to_stop(loader->progress, loader->progress_user, loader->done, loader->total))
        return sn_fail(SN_E_ABORTED, "%.300s: loading was stopped", sn_gguf_name(loader->gguf));
    return SN_OK;
}

static sn_status fail_not_finite(const sn_loader *loader, const request *r) {
    return fail_tensor(loader, SN_E_NUMERIC, loader->gguf->tensors[r->tensor].name,
                       "holds a NaN or an infinity");
}

/* Used as it lies in the file: embedding rows and ready-made panels. */
static bool is_plain(const request *r) {
    return r->kind == REQUEST_ROWS || r->packed;
}

/* Elements that the next piece of a request holds: whole rows of a panel, whole blocks. */
static uint64_t piece_elements(const request *r, uint64_t left) {
    const uint64_t most = r->kind == REQUEST_MATRIX ? SN_PANEL_ROWS * r->k
                                                    : PIECE_BYTES / 512 * 128;
    return left < most ? left : most;
}

bool sn_load_next(sn_loader *loader, sn_piece *piece) {
    while (loader->next < loader->gguf->n_tensors && !loader->by_tensor[loader->next])
        loader->next++;
    if (loader->next == loader->gguf->n_tensors) return false;
    const request *r = loader->by_tensor[loader->next];
    const sn_gguf_tensor *tensor = &loader->gguf->tensors[loader->next];
    uint64_t bytes;
    if (is_plain(r)) {
        bytes = r->bytes - loader->at;
        if (bytes > PIECE_BYTES) bytes = PIECE_BYTES;
        loader->piece_at = loader->at;
        loader->at += bytes;
        piece->to = loader->model->pages + r->offset + loader->piece_at;
        piece->offset = tensor->offset + loader->piece_at;
    } else {
        loader->piece_n = piece_elements(r, r->rows * r->k - loader->at);
        loader->piece_at = loader->at;
        loader->at += loader->piece_n;
        bytes = sn_type_bytes(r->type, loader->piece_n);
        piece->to = loader->staging;
        piece->offset = tensor->offset + sn_type_bytes(r->type, loader->piece_at);
    }
    piece->part = tensor->part;
    piece->bytes = (size_t)bytes;
    loader->piece_bytes = (size_t)bytes;
    return true;
}

/* A packed file's scales are checked like any other's. */
static sn_status check_panels(sn_loader *loader, const request *r) {
    const size_t k = (size_t)r->k, panel_bytes = sn_panel_bytes(r->type, k);
    const uint8_t *panel = loader->model->pages + r->offset;
    for (uint64_t row = 0; row < r->rows; row += SN_PANEL_ROWS, panel += panel_bytes) {
        const size_t n = r->rows - row < SN_PANEL_ROWS ? (size_t)(r->rows - row) : SN_PANEL_ROWS;
        sn_panel_unpack(r->type, panel, n, k, loader->staging);
        if (!r->type->finite(loader->staging, n * k)) return fail_not_finite(loader, r);
    }
    return SN_OK;
}

/* Scatters `n` elements in the staging buffer, the first being number `first` of the tensor. */
static void keep_transposed(const request *r, const uint8_t *from, uint64_t first, size_t n,
                            float *to) {
    enum { STEP = 256 }; /* whole blocks of every type */
    float values[STEP];
    const size_t k = (size_t)r->k, rows = (size_t)r->rows;
    for (size_t done = 0; done < n; done += STEP) {
        const size_t count = n - done < STEP ? n - done : STEP;
        r->type->decode(from + sn_type_bytes(r->type, done), values, count);
        for (size_t i = 0; i < count; i++) {
            const size_t element = (size_t)first + done + i;
            to[element % k * rows + element / k] = values[i];
        }
    }
}

static sn_status keep_piece(sn_loader *loader, const request *r) {
    uint8_t *to = loader->model->pages + r->offset;
    const size_t n = (size_t)loader->piece_n;
    if (is_plain(r)) {
        if (loader->at < r->bytes) return SN_OK;
        if (r->packed) return check_panels(loader, r);
        return r->type->finite(to, (size_t)(r->rows * r->k)) ? SN_OK : fail_not_finite(loader, r);
    }
    if (r->kind == REQUEST_VECTOR) {
        if (!r->type->finite(loader->staging, n)) return fail_not_finite(loader, r);
        r->type->decode(loader->staging, (float *)(void *)to + loader->piece_at, n);
        return SN_OK;
    }
    if (r->kind == REQUEST_TRANSPOSED) {
        if (!r->type->finite(loader->staging, n)) return fail_not_finite(loader, r);
        keep_transposed(r, loader->staging, loader->piece_at, n, (float *)(void *)to);
        return SN_OK;
    }
    const size_t k = (size_t)r->k, panel = (size_t)(loader->piece_at / (SN_PANEL_ROWS * r->k));
    if (!sn_panel_pack(r->type, loader->staging, n / k, k, to + panel * sn_panel_bytes(r->type, k)))
        return fail_not_finite(loader, r);
    return SN_OK;
}

sn_status sn_load_keep(sn_loader *loader) {
    const request *r = loader->by_tensor[loader->next];
    SN_TRY(keep_piece(loader, r));
    if (loader->at == (is_plain(r) ? r->bytes : r->rows * r->k)) {
        loader->next++;
        loader->at = 0;
    }
    return report(loader, loader->piece_bytes);
}

/* Where each tensor lies in memory, in the order of the requests (the order of use). */
static sn_status place(sn_loader *loader) {
    sn_model *m = loader->model;
    size_t total = 0;
    for (size_t i = 0; i < loader->n_requests; i++) {
        request *r = &loader->requests[i];
        r->offset = total;
        if (!sn_add_size(total, sn_round_up(r->bytes, SN_ALIGNMENT), &total))
            return sn_fail(SN_E_NOMEM, "%.300s: larger than the address space",
                           sn_gguf_name(loader->gguf));
        m->tensors[r->tensor].resident_bytes = r->bytes;
    }
    m->page_bytes = total;
    return SN_OK;
}

/* The order of the requests names the tensors, so files that hold the same weights in another
 * order, or as panels, have the same fingerprint. */
static uint64_t fingerprint(const sn_loader *loader) {
    uint64_t h = 0;
    for (size_t i = 0; i < loader->n_requests; i++) {
        const request *r = &loader->requests[i];
        h = sn_hash(loader->model->pages + r->offset, r->bytes, sn_hash_mix(h + i));
    }
    return h;
}

/* Bytes of the largest piece that is read before it is packed. */
static size_t staging_bytes(const sn_loader *loader) {
    size_t most = PIECE_BYTES;
    for (size_t i = 0; i < loader->n_requests; i++) {
        const request *r = &loader->requests[i];
        if (r->kind != REQUEST_MATRIX) continue;
        const uint64_t rows = r->rows < SN_PANEL_ROWS ? r->rows : SN_PANEL_ROWS;
        const size_t bytes = (size_t)sn_type_bytes(r->type, rows * r->k);
        if (bytes > most) most = bytes;
    }
    return most;
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
    const double needed = (double)m->page_bytes + floats * sizeof(float);
    const double file = (double)loader->gguf->file_bytes;
    if (needed <= FREE_BYTES + TIMES_FILE * file) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: weights and state would take %.0f bytes, the file "
                   "has %.0f", sn_gguf_name(loader->gguf), needed, file);
}

static sn_status allocate(sn_loader *loader) {
    sn_model *m = loader->model;
    loader->by_tensor = sn_alloc_array((size_t)loader->gguf->n_tensors, sizeof(request *));
    loader->staging = sn_alloc(staging_bytes(loader));
    if (!loader->by_tensor || !loader->staging) return SN_E_NOMEM;
    m->pages = sn_platform_pages(m->page_bytes);
    if (!m->pages)
        return sn_fail(SN_E_NOMEM, "%.300s: %zu bytes for the weights could not be had",
                       sn_gguf_name(loader->gguf), m->page_bytes);
    for (size_t i = 0; i < loader->n_requests; i++) {
        const request *r = &loader->requests[i];
        loader->by_tensor[r->tensor] = r;
        loader->total += (double)loader->gguf->tensors[r->tensor].bytes;
        *r->slot = m->pages + r->offset;
    }
    return SN_OK;
}

static sn_status bind(sn_loader *loader, bool header_only) {
    SN_TRY(sn_packed_read(loader->gguf, &loader->packed));
    loader->roles = sn_alloc_array((size_t)loader->gguf->n_tensors, sizeof *loader->roles);
    if (!loader->roles) return SN_E_NOMEM;
    if (loader->model->arch) SN_TRY(loader->model->arch->bind(loader, loader->model));
    SN_TRY(place(loader));
    SN_TRY(check_size(loader));
    if (header_only) {
        loader->next = (size_t)loader->gguf->n_tensors;
        return SN_OK;
    }
    return allocate(loader);
}

sn_status sn_load_begin(const sn_gguf *gguf, sn_model *model, const sn_model_options *options,
                        sn_loader **out) {
    sn_loader *loader = sn_alloc(sizeof *loader);
    if (!loader) return SN_E_NOMEM;
    loader->gguf = gguf;
    loader->model = model;
    loader->progress = options->progress;
    loader->progress_user = options->progress_user;
    const sn_status status = bind(loader, options->header_only);
    if (status == SN_OK) *out = loader;
    else sn_load_free(loader);
    return status;
}

void sn_load_end(sn_loader *loader) {
    if (loader->model->pages) loader->model->fingerprint = fingerprint(loader);
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
