/*
 * job.h: one import at work: finds a checkpoint's tensors by name, declares them under their
 * names in GGUF, and remembers which it has taken. A tensor that nobody has taken in the end is
 * one whose part in the model is not understood, and is refused.
 *
 * Names are patterns: '#' is the layer's number, {a|b|} stands for one of its parts; the first
 * name that exists is taken, and the first of all is shown if none does.
 */
#ifndef SN_IMPORT_JOB_H
#define SN_IMPORT_JOB_H

#include "import.h"

#define SN_NO_LAYER UINT32_MAX

typedef struct sn_import_job {
    const sn_source_model *source;
    sn_build *build;
    const char *architecture; /* begins the keys */
    const sn_view **taken;    /* a hash table of pointers */
    size_t n_slots;
} sn_import_job;

sn_status sn_job_begin(sn_import_job *job, const char *architecture,
                       const sn_source_model *source, sn_build *build);

/* Frees the job. If all went well until now, refuses tensors that were not taken. */
sn_status sn_job_end(sn_import_job *job, sn_status status);

/* ---- keys: "<architecture>.<key>" ---- */
sn_status sn_job_u32(sn_import_job *job, const char *key, uint64_t value);
sn_status sn_job_f32(sn_import_job *job, const char *key, double value);
sn_status sn_job_text(sn_import_job *job, const char *key, const char *value);

/* ---- finding: both take the tensor ---- */
const sn_view *sn_job_find(sn_import_job *job, const char *pattern, uint32_t layer);
sn_status sn_job_need(sn_import_job *job, const char *pattern, uint32_t layer,
                      const sn_view **view);

/* True if the name exists; takes nothing. */
bool sn_source_has(const sn_source_model *source, const char *pattern, uint32_t layer);

/* ---- declaring: `target` is below "blk.<layer>.", or the whole name with SN_NO_LAYER ---- */
typedef enum sn_rule_kind {
    SN_RULE_MATRIX,
    SN_RULE_VECTOR, /* all elements, whatever the shape */
    SN_RULE_CONV,   /* (n, 1, W) or (n, W) becomes [W, n] */
    SN_RULE_OPTIONAL = 4
} sn_rule_kind;

typedef struct sn_rule {
    const char *target, *pattern;
    int kind; /* of sn_rule_kind, perhaps with SN_RULE_OPTIONAL */
} sn_rule;

sn_status sn_job_declare(sn_import_job *job, const sn_rule *rules, size_t n, uint32_t layer);
#define SN_JOB_DECLARE(job, rules, layer)                                                     \
    sn_job_declare(job, rules, sizeof(rules) / sizeof((rules)[0]), layer)

sn_status sn_job_matrix(sn_import_job *job, const char *target, uint32_t layer,
                        const sn_view *view);
sn_status sn_job_vector(sn_import_job *job, const char *target, uint32_t layer,
                        const sn_view *view);
/* The same with other dimensions, fastest first. */
sn_status sn_job_array(sn_import_job *job, const char *target, uint32_t layer,
                       const sn_view *view, uint32_t n_dims, const uint64_t *dims);
sn_status sn_job_values(sn_import_job *job, const char *target, uint32_t layer,
                        const float *values, uint32_t n_dims, const uint64_t *dims);

/* n times the same value. */
sn_status sn_job_fill(sn_import_job *job, const char *target, uint32_t layer, uint64_t n,
                      float value);

/* -exp of each element: the state matrix A of Mamba and Gated DeltaNet from its logarithm. */
sn_status sn_job_minus_exp(sn_import_job *job, const char *target, uint32_t layer,
                           const sn_view *view, uint32_t n_dims, const uint64_t *dims);

/* The output matrix, unless it is tied to the embedding: by option, or because it is absent. */
sn_status sn_job_head(sn_import_job *job, const char *pattern, bool tied);

/* `view` must have the shape (rows, k). */
sn_status sn_job_check_shape(const sn_import_job *job, const sn_view *view, uint64_t rows,
                             uint64_t k);

#endif
