#include "job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 200

/* ---- what has been taken ------------------------------------------------------------ */

sn_status sn_job_begin(sn_import_job *job, const char *architecture,
                       const sn_source_model *source, sn_build *build) {
    *job = (sn_import_job){ .source = source, .build = build, .architecture = architecture };
    size_t n = 64;
    while (n < 2 * sn_store_count(source->store)) n *= 2;
    job->taken = sn_alloc_array(n, sizeof *job->taken);
    job->n_slots = n;
    return job->taken ? SN_OK : SN_E_NOMEM;
}

/* The slot of a view, or the free one where it belongs. */
static const sn_view **slot_of(const sn_import_job *job, const sn_view *view) {
    size_t slot = (size_t)((uintptr_t)view / 16 * 2654435761u) & (job->n_slots - 1);
    while (job->taken[slot] && job->taken[slot] != view) slot = (slot + 1) & (job->n_slots - 1);
    return &job->taken[slot];
}

static sn_status refuse_untaken(const sn_import_job *job) {
    const sn_store *store = job->source->store;
    for (size_t i = 0; i < sn_store_count(store); i++) {
        const sn_view *view = sn_store_at(store, i);
        if (!*slot_of(job, view))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%.100s' has no place in a model of "
                           "architecture '%s'", job->source->name, view->name, job->architecture);
    }
    return SN_OK;
}

sn_status sn_job_end(sn_import_job *job, sn_status status) {
    uint64_t n_vocab = sn_build_rows(job->build, "token_embd.weight");
    if (status == SN_OK) status = sn_job_u32(job, "vocab_size", n_vocab);
    if (status == SN_OK) status = refuse_untaken(job);
    sn_free(job->taken);
    job->taken = NULL;
    return status;
}

/* ---- names -------------------------------------------------------------------------- */

/* The parts between '{' and '}'. */
static uint32_t count_parts(const char *group) {
    uint32_t n = 1;
    for (; *group != '}'; group++) n += *group == '|';
    return n;
}

/* A group's part number `which`, and its length. */
static const char *part_at(const char *group, uint32_t which, size_t *length) {
    while (which) which -= *group++ == '|';
    *length = strcspn(group, "|}");
    return group;
}

/* The pattern's name number `which`: a number whose digits choose the parts. False: no more. */
static bool expand(const char *pattern, uint32_t layer, uint32_t which, char *name) {
    size_t at = 0;
    for (; *pattern && at < NAME_BYTES - 16; pattern++) {
        if (*pattern == '{') {
            size_t length;
            uint32_t n = count_parts(pattern + 1);
            const char *part = part_at(pattern + 1, which % n, &length);
            which /= n;
            at += (size_t)snprintf(name + at, NAME_BYTES - at, "%.*s", (int)length, part);
            pattern = strchr(pattern, '}');
        } else if (*pattern == '#') {
            at += (size_t)snprintf(name + at, NAME_BYTES - at, "%" PRIu32, layer);
        } else {
            name[at++] = *pattern;
        }
    }
    name[at < NAME_BYTES ? at : NAME_BYTES - 1] = 0;
    return which == 0;
}

static const sn_view *find(const sn_source_model *source, const char *pattern, uint32_t layer) {
    char name[NAME_BYTES];
    for (uint32_t which = 0; expand(pattern, layer, which, name); which++) {
        const sn_view *view = sn_store_find(source->store, name);
        if (view) return view;
    }
    return NULL;
}

bool sn_source_has(const sn_source_model *source, const char *pattern, uint32_t layer) {
    return find(source, pattern, layer) != NULL;
}

const sn_view *sn_job_find(sn_import_job *job, const char *pattern, uint32_t layer) {
    const sn_view *view = find(job->source, pattern, layer);
    if (view) *slot_of(job, view) = view;
    return view;
}

sn_status sn_job_need(sn_import_job *job, const char *pattern, uint32_t layer,
                      const sn_view **view) {
    char name[NAME_BYTES];
    *view = sn_job_find(job, pattern, layer);
    if (*view) return SN_OK;
    expand(pattern, layer, 0, name);
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s' is missing", job->source->name, name);
}

/* ---- keys --------------------------------------------------------------------------- */

static const char *key_of(const sn_import_job *job, const char *key, char *buffer) {
    snprintf(buffer, NAME_BYTES, "%s.%s", job->architecture, key);
    return buffer;
}

sn_status sn_job_u32(sn_import_job *job, const char *key, uint64_t value) {
    char name[NAME_BYTES];
    if (value > UINT32_MAX)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: '%s' would be %" PRIu64, job->source->name, key,
                       value);
    return sn_build_u32(job->build, key_of(job, key, name), (uint32_t)value);
}

sn_status sn_job_f32(sn_import_job *job, const char *key, double value) {
    char name[NAME_BYTES];
    return sn_build_f32(job->build, key_of(job, key, name), (float)value);
}

sn_status sn_job_text(sn_import_job *job, const char *key, const char *value) {
    char name[NAME_BYTES];
    return sn_build_text(job->build, key_of(job, key, name), value, strlen(value));
}

/* ---- tensors ------------------------------------------------------------------------ */

static const char *target_of(const char *target, uint32_t layer, char *buffer) {
    if (layer == SN_NO_LAYER) return target;
    snprintf(buffer, NAME_BYTES, "blk.%" PRIu32 ".%s", layer, target);
    return buffer;
}

sn_status sn_job_matrix(sn_import_job *job, const char *target, uint32_t layer,
                        const sn_view *view) {
    char name[NAME_BYTES];
    return sn_build_matrix(job->build, target_of(target, layer, name), view);
}

sn_status sn_job_array(sn_import_job *job, const char *target, uint32_t layer,
                       const sn_view *view, uint32_t n_dims, const uint64_t *dims) {
    char name[NAME_BYTES];
    return sn_build_vector(job->build, target_of(target, layer, name), view, n_dims, dims);
}

sn_status sn_job_vector(sn_import_job *job, const char *target, uint32_t layer,
                        const sn_view *view) {
    uint64_t n = sn_view_elements(view);
    return sn_job_array(job, target, layer, view, 1, &n);
}

static sn_status declare_conv(sn_import_job *job, const char *target, uint32_t layer,
                              const sn_view *view) {
    uint32_t last = view->n_dims - 1;
    bool fits = view->n_dims == 2 || (view->n_dims == 3 && view->dims[1] == 1);
    if (!fits)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' must have the shape (channels, 1, "
                       "taps)", job->source->name, view->name);
    uint64_t dims[2] = { view->dims[last], view->dims[0] };
    return sn_job_array(job, target, layer, view, 2, dims);
}

sn_status sn_job_declare(sn_import_job *job, const sn_rule *rules, size_t n, uint32_t layer) {
    for (size_t i = 0; i < n; i++) {
        const sn_rule *rule = &rules[i];
        const sn_view *view = sn_job_find(job, rule->pattern, layer);
        if (!view && rule->kind & SN_RULE_OPTIONAL) continue;
        if (!view) SN_TRY(sn_job_need(job, rule->pattern, layer, &view));
        switch (rule->kind & ~SN_RULE_OPTIONAL) {
        case SN_RULE_MATRIX: SN_TRY(sn_job_matrix(job, rule->target, layer, view)); break;
        case SN_RULE_VECTOR: SN_TRY(sn_job_vector(job, rule->target, layer, view)); break;
        default: SN_TRY(declare_conv(job, rule->target, layer, view)); break;
        }
    }
    return SN_OK;
}

sn_status sn_job_values(sn_import_job *job, const char *target, uint32_t layer,
                        const float *values, uint32_t n_dims, const uint64_t *dims) {
    char name[NAME_BYTES];
    return sn_build_values(job->build, target_of(target, layer, name), values, n_dims, dims);
}

sn_status sn_job_fill(sn_import_job *job, const char *target, uint32_t layer, uint64_t n,
                      float value) {
    float *values = n <= SIZE_MAX ? sn_alloc_array((size_t)n, sizeof *values) : NULL;
    if (!values) return SN_E_NOMEM;
    for (size_t i = 0; i < n; i++) values[i] = value;
    sn_status status = sn_job_values(job, target, layer, values, 1, &n);
    sn_free(values);
    return status;
}

static double minus_exp(double x) {
    return -sn_exp64(x);
}

sn_status sn_job_minus_exp(sn_import_job *job, const char *target, uint32_t layer,
                           const sn_view *view, uint32_t n_dims, const uint64_t *dims) {
    char name[NAME_BYTES];
    return sn_build_mapped(job->build, target_of(target, layer, name), view, n_dims, dims,
                           minus_exp);
}

sn_status sn_job_head(sn_import_job *job, const char *pattern, bool tied) {
    const sn_view *head = sn_job_find(job, pattern, SN_NO_LAYER);
    return head && !tied ? sn_job_matrix(job, "output.weight", SN_NO_LAYER, head) : SN_OK;
}

sn_status sn_job_check_shape(const sn_import_job *job, const sn_view *view, uint64_t rows,
                             uint64_t k) {
    if (view->n_dims == 2 && view->dims[0] == rows && view->dims[1] == k) return SN_OK;
    uint64_t has_rows = view->n_dims ? view->dims[0] : 0;
    uint64_t has_k = view->n_dims > 1 ? view->dims[1] : 0;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' has %" PRIu32 " dimensions, %" PRIu64
                   " x %" PRIu64 "; expected is %" PRIu64 " x %" PRIu64, job->source->name,
                   view->name, view->n_dims, has_rows, has_k, rows, k);
}
