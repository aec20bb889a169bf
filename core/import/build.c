#include "build.h"

#include "../formats/gguf_head.h"
#include "../formats/index_sort.h"
#include "../quant/bytes.h"

#include <inttypes.h>
#include <string.h>

#define NAME_BYTES 64                 /* of a tensor, with its NUL, as GGUF has it */
#define TYPE_F64 28
#define STEP ((size_t)64 << 10)       /* elements of a tensor at a time */

typedef struct build_tensor {
    char name[NAME_BYTES];
    const sn_type *type; /* in the stream */
    uint32_t n_dims;
    uint64_t dims[4]; /* fastest first */
    uint64_t n;       /* elements */
    sn_view view;     /* where they come from, unless computed */
    double (*map)(double);
    uint8_t *computed; /* the bytes of the stream, owned; else NULL */
} build_tensor;

struct sn_build {
    char *name;
    sn_gguf_head head;
    build_tensor *tensors;
    size_t n_tensors, capacity;
};

sn_status sn_build_new(const char *name, sn_build **build) {
    size_t bytes = strlen(name) + 1;
    sn_build *created = sn_alloc(sizeof *created);
    if (!created) return SN_E_NOMEM;
    sn_status status = SN_E_NOMEM;
    created->name = sn_alloc(bytes);
    if (created->name) {
        memcpy(created->name, name, bytes);
        status = sn_gguf_head_init(&created->head, created->name);
    }
    if (status == SN_OK)
        *build = created;
    else
        sn_build_free(created);
    return status;
}

void sn_build_free(sn_build *build) {
    if (!build) return;
    for (size_t i = 0; i < build->n_tensors; i++) sn_free(build->tensors[i].computed);
    sn_free(build->tensors);
    sn_gguf_head_free(&build->head);
    sn_free(build->name);
    sn_free(build);
}

const char *sn_build_name(const sn_build *build) {
    return build->name;
}

/* ---- keys --------------------------------------------------------------------------- */

sn_status sn_build_u32(sn_build *build, const char *key, uint32_t value) {
    return sn_gguf_head_put_number(&build->head, key, SN_GGUF_U32, value);
}

sn_status sn_build_f32(sn_build *build, const char *key, float value) {
    return sn_gguf_head_put_number(&build->head, key, SN_GGUF_F32, sn_bits_of(value));
}

sn_status sn_build_bool(sn_build *build, const char *key, bool value) {
    return sn_gguf_head_put_number(&build->head, key, SN_GGUF_BOOL, value);
}

sn_status sn_build_text(sn_build *build, const char *key, const char *text, size_t bytes) {
    return sn_gguf_head_put_text(&build->head, key, (sn_span){ .data = text, .size = bytes });
}

sn_status sn_build_texts(sn_build *build, const char *key, const sn_span *texts, uint64_t n) {
    return sn_gguf_head_put_texts(&build->head, key, texts, n);
}

sn_status sn_build_u32s(sn_build *build, const char *key, const uint32_t *values, uint64_t n) {
    return sn_gguf_head_put_words(&build->head, key, SN_GGUF_U32, values, n);
}

/* As words: int32_t and float have the size of their bits. */
static sn_status put_words(sn_build *build, const char *key, sn_gguf_kind kind,
                           const void *values, uint64_t n) {
    uint32_t *words = n <= SIZE_MAX ? sn_alloc_array((size_t)n, sizeof *words) : NULL;
    if (!words) return SN_E_NOMEM;
    if (n) memcpy(words, values, (size_t)n * sizeof *words);
    sn_status status = sn_gguf_head_put_words(&build->head, key, kind, words, n);
    sn_free(words);
    return status;
}

sn_status sn_build_i32s(sn_build *build, const char *key, const int32_t *values, uint64_t n) {
    return put_words(build, key, SN_GGUF_I32, values, n);
}

sn_status sn_build_f32s(sn_build *build, const char *key, const float *values, uint64_t n) {
    return put_words(build, key, SN_GGUF_F32, values, n);
}

bool sn_build_has(const sn_build *build, const char *key) {
    return sn_gguf_head_has(&build->head, key);
}

/* ---- tensors ------------------------------------------------------------------------ */

static sn_status add(sn_build *build, const char *name, const build_tensor *tensor) {
    size_t length = strlen(name), n = build->n_tensors;
    if (length >= NAME_BYTES)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: the tensor name '%.80s' is too long",
                       build->name, name);
    if (n == build->capacity) {
        size_t wanted = n ? 2 * n : 64, bytes;
        if (!sn_mul_size(wanted, sizeof *tensor, &bytes))
            return sn_fail(SN_E_NOMEM, "%.300s: too many tensors", build->name);
        build_tensor *grown = sn_grow(build->tensors, n * sizeof *tensor, bytes);
        if (!grown) return SN_E_NOMEM;
        build->tensors = grown;
        build->capacity = wanted;
    }
    build->tensors[n] = *tensor;
    memcpy(build->tensors[n].name, name, length + 1);
    build->n_tensors++;
    return SN_OK;
}

/* Floats, and what blobs hold. */
static bool can_be_taken(const sn_type *type) {
    return type->id == SN_TYPE_F32 || type->id == SN_TYPE_F16 || type->id == SN_TYPE_BF16 ||
           type->id == TYPE_F64 || type->id == SN_TYPE_I4;
}

static sn_status check_view(const sn_build *build, const sn_view *view) {
    if (!can_be_taken(view->type))
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%.100s' is of type %s; F32, F16, BF16 "
                       "or F64 is needed", build->name, view->name, view->type->name);
    if (sn_view_elements(view)) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' holds no elements", build->name,
                   view->name);
}

static sn_status set_dims(const sn_build *build, const char *name, uint32_t n_dims,
                          const uint64_t *dims, build_tensor *tensor) {
    tensor->n = 1;
    tensor->n_dims = n_dims;
    bool fits = n_dims >= 1 && n_dims <= 4;
    for (uint32_t i = 0; fits && i < n_dims; i++) {
        tensor->dims[i] = dims[i];
        fits = dims[i] && sn_mul_u64(tensor->n, dims[i], &tensor->n);
    }
    if (fits) return SN_OK;
    return sn_fail(SN_E_INVAL, "%.300s: tensor '%.64s' cannot have its dimensions", build->name,
                   name);
}

sn_status sn_build_matrix(sn_build *build, const char *name, const sn_view *view) {
    build_tensor tensor = { .view = *view, .type = view->type, .n_dims = 2 };
    if (view->n_dims != 2)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' has %" PRIu32 " dimensions; it must "
                       "be a matrix", build->name, view->name, view->n_dims);
    SN_TRY(check_view(build, view));
    if (tensor.type->id == TYPE_F64) tensor.type = sn_type_find(SN_TYPE_F32);
    tensor.dims[0] = view->dims[1];
    tensor.dims[1] = view->dims[0];
    tensor.n = sn_view_elements(view);
    return add(build, name, &tensor);
}

sn_status sn_build_mapped(sn_build *build, const char *name, const sn_view *view, uint32_t n_dims,
                          const uint64_t *dims, double (*map)(double)) {
    build_tensor tensor = { .view = *view, .type = sn_type_find(SN_TYPE_F32), .map = map };
    SN_TRY(check_view(build, view));
    SN_TRY(set_dims(build, name, n_dims, dims, &tensor));
    if (tensor.n != sn_view_elements(view))
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s': %" PRIu64 " elements, expected %"
                       PRIu64, build->name, view->name, sn_view_elements(view), tensor.n);
    return add(build, name, &tensor);
}

sn_status sn_build_vector(sn_build *build, const char *name, const sn_view *view, uint32_t n_dims,
                          const uint64_t *dims) {
    return sn_build_mapped(build, name, view, n_dims, dims, NULL);
}

sn_status sn_build_values(sn_build *build, const char *name, const float *values, uint32_t n_dims,
                          const uint64_t *dims) {
    build_tensor tensor = { .type = sn_type_find(SN_TYPE_F32) };
    SN_TRY(set_dims(build, name, n_dims, dims, &tensor));
    if (tensor.n <= SIZE_MAX) tensor.computed = sn_alloc_array((size_t)tensor.n, 4);
    if (!tensor.computed) return SN_E_NOMEM;
    for (size_t i = 0; i < tensor.n; i++)
        sn_store32(tensor.computed + 4 * i, sn_bits_of(values[i]));
    sn_status status = add(build, name, &tensor);
    if (status != SN_OK) sn_free(tensor.computed);
    return status;
}

uint64_t sn_build_rows(const sn_build *build, const char *name) {
    for (size_t i = 0; i < build->n_tensors; i++) {
        const build_tensor *tensor = &build->tensors[i];
        if (strcmp(tensor->name, name) == 0) return tensor->n_dims == 2 ? tensor->dims[1] : 0;
    }
    return 0;
}

/* ---- the stream --------------------------------------------------------------------- */

typedef struct stream {
    sn_build *build;
    sn_store *store;
    uint64_t at;      /* of the stream */
    size_t current;   /* the tensor that lies there, or comes next */
    uint64_t n_read;  /* of its elements */
    uint8_t *staging; /* the last ones read, as the stream has them */
    size_t staged, taken; /* bytes there, and how many have been handed out */
    sn_status failed;
} stream;

/* Elements read together. */
static size_t step_of(const build_tensor *tensor) {
    return tensor->n < STEP ? (size_t)tensor->n : STEP;
}

static sn_status stage(stream *s, const build_tensor *tensor) {
    uint64_t left = tensor->n - s->n_read, first = s->n_read;
    size_t n = left < step_of(tensor) ? (size_t)left : step_of(tensor);
    s->taken = 0;
    s->n_read += n;
    s->staged = (size_t)sn_type_bytes(tensor->type, n);
    if (tensor->computed) {
        memcpy(s->staging, tensor->computed + 4 * (size_t)first, s->staged);
        return SN_OK;
    }
    bool as_stored = tensor->type == tensor->view.type && !tensor->map;
    if (as_stored) return sn_view_read(&tensor->view, first, n, s->staging);
    float *values = (float *)(void *)s->staging; /* turned into bytes where they lie */
    SN_TRY(sn_view_read_f32(&tensor->view, first, n, values));
    for (size_t i = 0; i < n; i++) {
        float value = tensor->map ? (float)tensor->map(values[i]) : values[i];
        sn_store32(s->staging + 4 * i, sn_bits_of(value));
    }
    return SN_OK;
}

/* Copies bytes that all come from one place: the header, a gap, or the staged elements. */
static size_t copy_some(stream *s, uint8_t *to, size_t bytes) {
    const sn_gguf_head *head = &s->build->head;
    if (s->at < head->n_bytes) {
        size_t left = head->n_bytes - (size_t)s->at, n = bytes < left ? bytes : left;
        memcpy(to, head->bytes + s->at, n);
        return n;
    }
    uint64_t offset = s->at - head->n_bytes;
    uint64_t start = s->current ? sn_gguf_head_align(head, head->ends[s->current - 1]) : 0;
    if (offset < start) {
        size_t n = bytes < start - offset ? bytes : (size_t)(start - offset);
        memset(to, 0, n);
        return n;
    }
    if (s->taken == s->staged) {
        s->failed = stage(s, &s->build->tensors[s->current]);
        if (s->failed) return 0;
    }
    size_t left = s->staged - s->taken, n = bytes < left ? bytes : left;
    memcpy(to, s->staging + s->taken, n);
    s->taken += n;
    if (offset + n == head->ends[s->current]) {
        s->current++;
        s->n_read = 0;
    }
    return n;
}

/* sn_input never asks for more than the stream has. */
static size_t stream_read(void *user, void *buffer, size_t bytes) {
    stream *s = user;
    size_t done = 0;
    while (done < bytes && !s->failed) {
        size_t n = copy_some(s, (uint8_t *)buffer + done, bytes - done);
        done += n;
        s->at += n;
    }
    return s->failed ? 0 : done;
}

static void stream_close(void *user) {
    stream *s = user;
    sn_build_free(s->build);
    sn_store_free(s->store);
    sn_free(s->staging);
    sn_free(s);
}

/* ---- the order of the tensors ------------------------------------------------------- */

/* Where a tensor's bytes come from: computed ones first, then file by file, front to back. */
static int compare_places(const void *table, uint32_t a, uint32_t b) {
    const build_tensor *x = (const build_tensor *)table + a, *y = (const build_tensor *)table + b;
    int by_index = (a > b) - (a < b);
    if (x->computed || y->computed)
        return x->computed && y->computed ? by_index : x->computed ? -1 : 1;
    int order = strcmp(x->view.file->name, y->view.file->name);
    if (order) return order;
    if (x->view.offset != y->view.offset) return x->view.offset > y->view.offset ? 1 : -1;
    return by_index;
}

static sn_status sort(sn_build *build) {
    uint32_t *order = sn_alloc_array(build->n_tensors, sizeof *order);
    build_tensor *sorted = sn_alloc_array(build->n_tensors, sizeof *sorted);
    sn_status status = order && sorted ? SN_OK : SN_E_NOMEM;
    if (status == SN_OK) {
        sn_index_sort(order, build->n_tensors, compare_places, build->tensors);
        for (size_t i = 0; i < build->n_tensors; i++) sorted[i] = build->tensors[order[i]];
        build_tensor *unsorted = build->tensors;
        build->tensors = sorted;
        build->capacity = build->n_tensors;
        sorted = unsorted;
    }
    sn_free(order);
    sn_free(sorted);
    return status;
}

static sn_status declare(sn_build *build) {
    SN_TRY(sort(build));
    for (size_t i = 0; i < build->n_tensors; i++) {
        const build_tensor *tensor = &build->tensors[i];
        SN_TRY(sn_gguf_head_declare(&build->head, tensor->name, tensor->type->id, tensor->n_dims,
                                    tensor->dims, sn_type_bytes(tensor->type, tensor->n)));
    }
    return sn_gguf_head_finish(&build->head);
}

static sn_status prepare(stream *s) {
    size_t most = 1;
    SN_TRY(declare(s->build));
    for (size_t i = 0; i < s->build->n_tensors; i++) {
        size_t step = step_of(&s->build->tensors[i]);
        if (step > most) most = step;
    }
    s->staging = sn_alloc_array(most, 4);
    return s->staging ? SN_OK : SN_E_NOMEM;
}

sn_status sn_build_input(sn_build *build, sn_store *store, sn_input *input) {
    stream *s = sn_alloc(sizeof *s);
    if (!s) {
        sn_build_free(build);
        sn_store_free(store);
        return SN_E_NOMEM;
    }
    s->build = build;
    s->store = store;
    sn_status status = prepare(s);
    if (status != SN_OK) {
        stream_close(s);
        return status;
    }
    const sn_gguf_head *head = &build->head;
    uint64_t data = build->n_tensors ? head->ends[build->n_tensors - 1] : 0;
    *input = (sn_input){ .name = build->name, .size = head->n_bytes + data, .read = stream_read,
                         .user = s, .close = stream_close, .own_types = true,
                         .failed = &s->failed };
    return SN_OK;
}
