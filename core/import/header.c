/*
 * header.c: what can be said of a model without its weights, also if it has none.
 */
#include "open.h"

#include "../formats/store.h"
#include "../platform.h"
#include "folder.h"
#include "import.h"

#include <stdio.h>

/* False where weights lie: what is wrong with them is then the whole answer. */
static bool is_bare_file(const char *path) {
    sn_file file;
    if (sn_platform_open_file(path, &file) != SN_OK) return false;
    bool weights = sn_safetensors_smells(&file) || sn_pickle_smells(&file) || sn_blob_smells(&file);
    sn_file_close(&file);
    return !weights;
}

static bool is_bare_folder(const char *path) {
    char *weights = NULL;
    bool is_index;
    if (sn_folder_weights(path, &weights, &is_index) != SN_OK) return false;
    sn_free(weights);
    return weights == NULL;
}

/* A model of another kind, or none at all: then there may still be a tokenizer. */
static bool may_have_tokenizer(const char *path, sn_status status) {
    if (status == SN_E_UNSUPPORTED) return true;
    if (status != SN_E_FORMAT) return false;
    return sn_platform_is_folder(path) ? is_bare_folder(path) : is_bare_file(path);
}

sn_status sn_open_header(const char *path, sn_gguf *gguf) {
    char reason[600];
    sn_status status = sn_open_model(path, gguf);
    if (status == SN_OK) return SN_OK;
    snprintf(reason, sizeof reason, "%s", sn_last_error());
    *gguf = (sn_gguf){ 0 };
    if (may_have_tokenizer(path, status) && sn_open_tokenizer(path, gguf) == SN_OK) return SN_OK;
    return sn_fail(status, "%s", reason);
}
