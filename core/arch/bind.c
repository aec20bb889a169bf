#include "bind.h"

#include <math.h> /* INFINITY, a constant */
#include <stdio.h>
#include <string.h>

sn_binder sn_binder_of(sn_loader *loader, sn_model *model) {
    return (sn_binder){ .loader = loader, .model = model, .layer = -1 };
}

/* ---- keys --------------------------------------------------------------------------------- */

static const sn_gguf *file_of(const sn_binder *b) {
    return sn_loader_gguf(b->loader);
}

/* Keys that begin with "sunnynet." of the other architectures are whole already. */
static const char *key_of(sn_binder *b, const char *key) {
    if (strncmp(key, "sunnynet.", 9) == 0) snprintf(b->name, sizeof b->name, "%s", key);
    else snprintf(b->name, sizeof b->name, "%s.%s", b->model->arch->name, key);
    return b->name;
}

sn_status sn_bind_fail(sn_binder *b, const char *key, const char *reason) {
    return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %s", sn_gguf_name(file_of(b)), key_of(b, key),
                   reason);
}

static sn_status read_size(sn_binder *b, const char *key, bool required, uint32_t limit,
                           int32_t *out) {
    uint32_t value = (uint32_t)*out;
    if (!required && !sn_gguf_find(file_of(b), key_of(b, key))) return SN_OK;
    SN_TRY(sn_gguf_get_u32(file_of(b), key_of(b, key), true, &value));
    if (value < 1 || value > limit)
        return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %u is outside 1..%u",
                       sn_gguf_name(file_of(b)), b->name, (unsigned)value, (unsigned)limit);
    *out = (int32_t)value;
    return SN_OK;
}

sn_status sn_bind_size(sn_binder *b, const char *key, uint32_t limit, int32_t *out) {
    return read_size(b, key, true, limit, out);
}

sn_status sn_bind_size_or(sn_binder *b, const char *key, uint32_t limit, int32_t *out) {
    return read_size(b, key, false, limit, out);
}

bool sn_bind_has_key(sn_binder *b, const char *key) {
    return sn_gguf_find(file_of(b), key_of(b, key)) != NULL;
}

sn_status sn_bind_flag(sn_binder *b, const char *key, bool *out) {
    return sn_gguf_get_bool(file_of(b), key_of(b, key), false, out);
}

sn_status sn_bind_f32(sn_binder *b, const char *key, float *out) {
    return sn_gguf_get_f32(file_of(b), key_of(b, key), false, out);
}

sn_status sn_bind_epsilon(sn_binder *b, const char *key, float *out) {
    SN_TRY(sn_bind_f32(b, key, out));
    if (*out > 0.0f) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %g is not positive", sn_gguf_name(file_of(b)),
                   b->name, (double)*out);
}

sn_status sn_bind_range(sn_binder *b, const char *key, float low, float high, float *out) {
    SN_TRY(sn_bind_f32(b, key, out));
    if (*out >= low && *out <= high) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: key '%s': %g is outside %g..%g", sn_gguf_name(file_of(b)),
                   b->name, (double)*out, (double)low, (double)high);
}

sn_status sn_bind_limits(sn_binder *b, const char *low_key, const char *high_key, bool *any,
                         float *low, float *high) {
    *low = 0.0f;
    *high = INFINITY;
    *any = sn_gguf_find(file_of(b), low_key) || sn_gguf_find(file_of(b), high_key);
    SN_TRY(sn_bind_range(b, low_key, 0.0f, INFINITY, low));
    SN_TRY(sn_bind_range(b, high_key, 0.0f, INFINITY, high));
    if (*low <= *high) return SN_OK;
    return sn_bind_fail(b, high_key, "is below the other limit");
}

sn_status sn_bind_choice(sn_binder *b, const char *key, const char *const *choices, int *out) {
    sn_span text = { "", 0 };
    if (!sn_bind_has_key(b, key)) return SN_OK;
    SN_TRY(sn_gguf_get_text(file_of(b), b->name, true, &text));
    for (int i = 0; choices[i]; i++)
        if (text.size == strlen(choices[i]) && !memcmp(text.data, choices[i], text.size)) {
            *out = i;
            return SN_OK;
        }
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: key '%s': '%.*s' is not supported",
                   sn_gguf_name(file_of(b)), b->name, (int)(text.size < 60 ? text.size : 60),
                   text.data);
}

sn_status sn_bind_common(sn_binder *b) {
    SN_TRY(sn_bind_size(b, "block_count", 1024, &b->model->n_layers));
    return sn_bind_size(b, "embedding_length", 1 << 20, &b->model->n_embd);
}

/* ---- tensors ------------------------------------------------------------------------------ */

static const char *name_of(sn_binder *b, const char *tensor) {
    if (b->layer < 0) snprintf(b->name, sizeof b->name, "%s", tensor);
    else snprintf(b->name, sizeof b->name, "blk.%d.%s", (int)b->layer, tensor);
    return b->name;
}

bool sn_bind_has(sn_binder *b, const char *tensor) {
    return sn_loader_has(b->loader, name_of(b, tensor));
}

sn_status sn_bind_shape(sn_binder *b, const char *tensor, uint64_t *rows, uint64_t *k) {
    return sn_loader_shape(b->loader, name_of(b, tensor), rows, k);
}

sn_status sn_bind_vector(sn_binder *b, const char *tensor, uint64_t n, const float **out) {
    return sn_loader_vector(b->loader, name_of(b, tensor), n, out);
}

sn_status sn_bind_vector_or(sn_binder *b, const char *tensor, uint64_t n, const float **out) {
    return sn_bind_has(b, tensor) ? sn_bind_vector(b, tensor, n, out) : SN_OK;
}

sn_status sn_bind_transposed(sn_binder *b, const char *tensor, uint64_t rows, uint64_t k,
                             const float **out) {
    return sn_loader_transposed(b->loader, name_of(b, tensor), rows, k, out);
}

sn_status sn_bind_matrix(sn_binder *b, const char *tensor, uint64_t rows, uint64_t k,
                         sn_matrix *out) {
    return sn_loader_matrix(b->loader, name_of(b, tensor), rows, k, out);
}

sn_status sn_bind_matrix_or(sn_binder *b, const char *tensor, uint64_t rows, uint64_t k,
                            sn_matrix *out) {
    return sn_bind_has(b, tensor) ? sn_bind_matrix(b, tensor, rows, k, out) : SN_OK;
}

sn_status sn_bind_norm(sn_binder *b, const char *stem, uint64_t n, sn_norm *out) {
    char tensor[64];
    snprintf(tensor, sizeof tensor, "%s.weight", stem);
    SN_TRY(sn_bind_vector(b, tensor, n, &out->weight));
    snprintf(tensor, sizeof tensor, "%s.bias", stem);
    return sn_bind_vector(b, tensor, n, &out->bias);
}

sn_status sn_bind_vocabulary(sn_binder *b) {
    uint64_t vocab, k;
    SN_TRY(sn_loader_shape(b->loader, "token_embd.weight", &vocab, &k));
    if (vocab > 1 << 24)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor 'token_embd.weight': a vocabulary of %llu is "
                       "too large", sn_gguf_name(file_of(b)), (unsigned long long)vocab);
    b->model->vocab = (int32_t)vocab;
    return SN_OK;
}

sn_status sn_bind_ends(sn_binder *b, sn_rows *embedding, sn_matrix *head) {
    const uint64_t V = (uint64_t)b->model->vocab, D = (uint64_t)b->model->n_embd;
    if (!sn_loader_has(b->loader, "output.weight"))
        return sn_loader_tied(b->loader, "token_embd.weight", V, D, embedding, head);
    SN_TRY(sn_loader_rows(b->loader, "token_embd.weight", V, D, embedding));
    return sn_loader_matrix(b->loader, "output.weight", V, D, head);
}

sn_status sn_bind_state(sn_binder *b, uint64_t layer_floats) {
    uint64_t state;
    /* a saved state must fit too */
    if (!sn_mul_u64((uint64_t)b->model->n_layers, layer_floats, &state) || state > SIZE_MAX / 16)
        return sn_fail(SN_E_NOMEM, "%.300s: states of %llu numbers a layer do not fit the address "
                       "space", sn_gguf_name(file_of(b)), (unsigned long long)layer_floats);
    b->model->state_floats = (size_t)state;
    return SN_OK;
}
