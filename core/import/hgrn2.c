#include "fla.h"

#include <inttypes.h>

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source)) return sn_config_is(source, "hgrn2", "HGRN2ForCausalLM");
    return sn_source_has(source, SN_FLA_ATTN "f_proj.weight", 0) &&
           sn_source_has(source, SN_FLA_ATTN "g_norm.weight", 0);
}

/* expand_ratio keys a head; num_heads counts only without it. */
static sn_status measure(sn_fla_folder *f) {
    const sn_source_model *source = f->job->source;
    uint32_t ratio = 0, heads = 0;
    SN_TRY(sn_config_u32(source, "expand_ratio", &ratio));
    SN_TRY(sn_config_u32(source, "num_heads", &heads));
    if (!ratio && heads) ratio = (uint32_t)(f->width / heads);
    if (!ratio && !heads) ratio = 128;
    f->key = ratio;
    f->n_heads = ratio ? f->width / ratio : 0;
    if (f->n_heads == 0 || f->width % f->n_heads)
        return sn_fail(SN_E_FORMAT, "%.300s: option 'expand_ratio' = %" PRIu32 " (num_heads = %"
                       PRIu32 "): a width of %" PRIu64 " has no such heads", source->name, ratio,
                       heads, f->width);
    f->value = f->width / f->n_heads;
    return SN_OK;
}

/* ---- lower bounds ------------------------------------------------------------------- */

/* Column c of (n, width): its softmax P over the layers, then lambda_l = P_1 + ... + P_l. */
static void column_of_bounds(float *bounds, size_t n, size_t width, size_t c) {
    double greatest = bounds[c], total = 0.0, sum = 0.0;
    for (size_t l = 0; l < n; l++)
        if (bounds[l * width + c] > greatest) greatest = bounds[l * width + c];
    for (size_t l = 0; l < n; l++) total += sn_exp64(bounds[l * width + c] - greatest);
    for (size_t l = 0; l < n; l++) {
        double p = sn_exp64(bounds[l * width + c] - greatest) / total;
        if (l > 0) sum += p;
        bounds[l * width + c] = (float)sum;
    }
}

/* Layer 0 has lambda = 0, that is, none. */
static sn_status declare_bounds(const sn_fla_folder *f) {
    bool use = true;
    const sn_view *view;
    sn_import_job *job = f->job;
    SN_TRY(sn_config_bool(job->source, "use_lower_bound", &use));
    if (!use) return SN_OK;
    SN_TRY(sn_job_need(job, "model.lower_bounds", SN_NO_LAYER, &view));
    SN_TRY(sn_job_check_shape(job, view, f->n_layers, f->n_heads * f->key));
    uint64_t n = sn_view_elements(view);
    size_t width = (size_t)view->dims[1], rows = (size_t)view->dims[0];
    float *bounds = n <= SIZE_MAX ? sn_alloc_array((size_t)n, sizeof *bounds) : NULL;
    if (!bounds) return SN_E_NOMEM;
    sn_status status = sn_view_read_f32(view, 0, (size_t)n, bounds);
    for (size_t c = 0; c < width && status == SN_OK; c++)
        column_of_bounds(bounds, rows, width, c);
    for (uint32_t l = 1; l < rows && status == SN_OK; l++)
        status = sn_job_values(job, "attn_lower_bound.weight", l, bounds + l * width, 1,
                               &view->dims[1]);
    sn_free(bounds);
    return status;
}

/* ---- the whole ---------------------------------------------------------------------- */

static sn_status declare_layer(const sn_fla_folder *f, uint32_t layer) {
    uint64_t keys = f->n_heads * f->key, values = f->n_heads * f->value;
    SN_TRY(sn_fla_folder_layer(f, layer));
    SN_TRY(sn_fla_folder_projection(f, layer, "q", "attn_q", keys));
    SN_TRY(sn_fla_folder_projection(f, layer, "f", "attn_forget", keys));
    SN_TRY(sn_fla_folder_projection(f, layer, "i", "attn_v", values));
    SN_TRY(sn_fla_folder_norm(f, layer, SN_FLA_ATTN "g_norm.weight", "attn_out_norm.weight",
                              values));
    return sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "o_proj.weight", "attn_output.weight",
                                f->width, values);
}

static sn_status declare_model(sn_import_job *job) {
    sn_fla_folder f;
    SN_TRY(sn_fla_folder_begin(&f, job, 24));
    SN_TRY(measure(&f));
    SN_TRY(sn_fla_folder_heads(&f));
    SN_TRY(sn_fla_folder_conv(&f, false));
    SN_TRY(declare_bounds(&f));
    for (uint32_t i = 0; i < f.n_layers; i++) SN_TRY(declare_layer(&f, i));
    return SN_OK;
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "hgrn2", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_hgrn2 = { "hgrn2", recognises, declare };
