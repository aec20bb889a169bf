/*
 * blob_model.h: a model from a packed blob with one state, as the seed's interfaces have it: the
 * stable ABI and the compatibility libraries. It computes on the threads of the process
 * (shared.h) unless the weights are small enough for a cache.
 */
#ifndef SN_CORE_BLOB_MODEL_H
#define SN_CORE_BLOB_MODEL_H

#include "state.h"

typedef struct sn_blob_model {
    sn_model *model;
    sn_state *state;
} sn_blob_model;

/* Only blobs of this architecture; nothing that lies beside the file is looked at. */
sn_status sn_blob_model_load(const char *path, const char *architecture, sn_blob_model **out);
void sn_blob_model_free(sn_blob_model *m); /* NULL is fine */

/* As sn_state_prefill: all tokens are checked first. logits may be NULL. */
sn_status sn_blob_model_prefill(sn_blob_model *m, const int32_t *tokens, int32_t n, float *logits);

#endif
