#include "blob_model.h"

#include "import/open.h"
#include "load.h"
#include "shared.h"

#include <string.h>

#define CACHE_BYTES (24 << 20) /* weights up to here: one thread is fastest (model.c) */

static sn_status check_architecture(const sn_gguf *gguf, const char *wanted) {
    sn_span name;
    SN_TRY(sn_gguf_get_text(gguf, "general.architecture", true, &name));
    if (name.size == strlen(wanted) && memcmp(name.data, wanted, name.size) == 0) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: holds a model of the kind '%.*s', not '%s'",
                   sn_gguf_name(gguf), (int)name.size, name.data, wanted);
}

static sn_status load_model(const char *path, const char *architecture, sn_model **model) {
    sn_model_options given, options;
    sn_gguf gguf = { 0 };
    sn_model_options_init(&given);
    given.n_threads = 1; /* none of its own */
    SN_TRY(sn_model_check_options(&given, &options));
    SN_TRY(sn_open_blob(path, &gguf));
    const sn_status status = check_architecture(&gguf, architecture);
    if (status == SN_OK) return sn_model_from(&gguf, &options, model); /* closes it */
    sn_gguf_close(&gguf);
    return status;
}

sn_status sn_blob_model_load(const char *path, const char *architecture, sn_blob_model **out) {
    sn_blob_model *m = sn_alloc(sizeof *m);
    if (!m) return SN_E_NOMEM;
    sn_status status = load_model(path, architecture, &m->model);
    if (status == SN_OK) status = sn_state_new(m->model, &m->state);
    if (status == SN_OK) *out = m;
    else sn_blob_model_free(m);
    return status;
}

void sn_blob_model_free(sn_blob_model *m) {
    if (!m) return;
    sn_state_free(m->state);
    sn_model_free(m->model);
    sn_free(m);
}

sn_status sn_blob_model_prefill(sn_blob_model *m, const int32_t *tokens, int32_t n,
                                float *logits) {
    sn_shared_pool *shared = m->model->weight_bytes > CACHE_BYTES ? sn_shared_pool_take() : NULL;
    m->state->exec.pool = sn_shared_pool_of(shared);
    const sn_status status = sn_state_prefill(m->state, tokens, n, logits);
    m->state->exec.pool = m->model->pool;
    sn_shared_pool_give(shared);
    return status;
}
