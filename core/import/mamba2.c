#include "mamba.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

static const sn_rule mixer[] = {
    { "ssm_dt.bias", SN_MIXER "dt_bias", SN_RULE_VECTOR },
};

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source)) return sn_config_is(source, "mamba2", "Mamba2ForCausalLM");
    return sn_source_has(source, SN_MIXER "dt_bias", 0);
}

/* ---- limits of the time step -------------------------------------------------------- */

#define INFINITE DBL_MAX /* beyond every float32: no limit */

static bool text_is(const char *text, size_t size, const char *wanted) {
    return size == strlen(wanted) && memcmp(text, wanted, size) == 0;
}

/* "0.0", "inf", "Infinity": false if it is none of that. */
static bool limit_of_text(const char *text, size_t size, double *limit) {
    while (size && *text == ' ') text++, size--;
    while (size && text[size - 1] == ' ') size--;
    sn_json_document *number;
    if (text_is(text, size, "inf") || text_is(text, size, "Infinity")) {
        *limit = INFINITE;
        return true;
    }
    if (sn_json_parse(text, size, "", true, &number) != SN_OK) return false;
    const sn_json *root = sn_json_root(number);
    bool is_number = root->kind == SN_JSON_NUMBER;
    if (is_number) *limit = root->number;
    sn_json_free(number);
    return is_number;
}

/* A number, its text, or transformers' {"__float__": text}. */
static bool limit_of(const sn_json *value, double *limit) {
    if (value && value->kind == SN_JSON_OBJECT) value = sn_json_get(value, "__float__");
    if (!value) return false;
    if (value->kind == SN_JSON_STRING) return limit_of_text(value->text, value->size, limit);
    if (value->kind == SN_JSON_NUMBER) *limit = value->number;
    return value->kind == SN_JSON_NUMBER;
}

/* A list of two, or the text of a list or tuple. */
static bool limits_of(const sn_json *option, double *low, double *high) {
    if (option->kind == SN_JSON_ARRAY && option->size == 2)
        return limit_of(option->first, low) && limit_of(option->first->next, high);
    if (option->kind != SN_JSON_STRING || option->size < 2) return false;
    const char *text = option->text + 1, *end = option->text + option->size - 1;
    const char *comma = memchr(text, ',', option->size - 2);
    bool bracketed = (option->text[0] == '(' && *end == ')') ||
                     (option->text[0] == '[' && *end == ']');
    return bracketed && comma && limit_of_text(text, (size_t)(comma - text), low) &&
           limit_of_text(comma + 1, (size_t)(end - comma - 1), high);
}

static sn_status declare_limits(const sn_mamba *mamba) {
    const char *key = mamba->original ? "dt_limit" : "time_step_limit";
    const sn_json *option = sn_config_get(&mamba->cell, key);
    double low = 0.0, high = INFINITE;
    if (!option) return SN_OK;
    if (!limits_of(option, &low, &high) || !(low >= 0.0 && low <= high) || low > 3e38)
        return sn_config_unsupported(&mamba->cell, key);
    sn_build *build = mamba->job->build;
    if (low > 0.0) SN_TRY(sn_build_f32(build, "sunnynet.dt_min", (float)low));
    return high < 3e38 ? sn_build_f32(build, "sunnynet.dt_max", (float)high) : SN_OK;
}

/* ---- sizes -------------------------------------------------------------------------- */

typedef struct sizes {
    uint64_t n_heads, n_state, n_groups;
} sizes;

/* Options of mamba_ssm that change the mathematics. */
static sn_status check_original(const sn_mamba *mamba) {
    static const char *const acts[] = { "silu", "swish", NULL };
    const sn_source_model *cell = &mamba->cell;
    const char *act;
    SN_TRY(sn_config_agree(cell, "d_ssm", mamba->inner));
    SN_TRY(sn_config_must_be(cell, "rmsnorm", true));
    SN_TRY(sn_config_must_be(cell, "norm_before_gate", false));
    SN_TRY(sn_config_must_be(cell, "D_has_hdim", false));
    return sn_config_choice(cell, "activation", acts, &act);
}

/* Shapes give only groups times state size; without options that is one group. */
static sn_status measure(const sn_mamba *mamba, sizes *s) {
    const sn_source_model *cell = &mamba->cell;
    sn_import_job *job = mamba->job;
    const sn_view *dt_bias, *conv;
    uint32_t n_state = 0, n_groups = 0;
    SN_TRY(sn_job_need(job, SN_MIXER "dt_bias", 0, &dt_bias));
    SN_TRY(sn_job_need(job, SN_MIXER "conv1d.weight", 0, &conv));
    SN_TRY(sn_config_u32(cell, mamba->original ? "d_state" : "state_size", &n_state));
    SN_TRY(sn_config_u32(cell, mamba->original ? "ngroups" : "n_groups", &n_groups));
    uint64_t both = (conv->dims[0] - mamba->inner) / 2; /* wraps, and is refused, if negative */
    s->n_heads = sn_view_elements(dt_bias);
    s->n_groups = n_groups ? n_groups : n_state && !mamba->original ? both / n_state : 1;
    s->n_state = n_state ? n_state : s->n_groups ? both / s->n_groups : 0;
    bool fits = s->n_heads && s->n_groups && conv->dims[0] > mamba->inner &&
                s->n_groups * s->n_state == both && mamba->inner % s->n_heads == 0 &&
                conv->dims[0] == mamba->inner + 2 * both;
    if (fits) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " channels, %" PRIu64 " convolved ones, %"
                   PRIu64 " heads, %" PRIu64 " groups and a state of %" PRIu64 " do not fit "
                   "together", job->source->name, mamba->inner, conv->dims[0], s->n_heads,
                   s->n_groups, s->n_state);
}

static sn_status declare_sizes(const sn_mamba *mamba, const sizes *s) {
    const sn_source_model *cell = &mamba->cell;
    sn_import_job *job = mamba->job;
    SN_TRY(sn_config_agree(cell, "num_heads", s->n_heads));
    SN_TRY(sn_config_agree(cell, mamba->original ? "headdim" : "head_dim",
                           mamba->inner / s->n_heads));
    SN_TRY(sn_job_u32(job, "ssm.state_size", s->n_state));
    SN_TRY(sn_job_u32(job, "ssm.time_step_rank", s->n_heads));
    return sn_job_u32(job, "ssm.group_count", s->n_groups);
}

/* ---- tensors ------------------------------------------------------------------------ */

static sn_status declare_layer(const sn_mamba *mamba, const sizes *s, uint32_t layer) {
    sn_import_job *job = mamba->job;
    const sn_view *a_log, *d, *norm;
    uint64_t heads[] = { 1, s->n_heads };
    uint64_t groups[] = { mamba->inner / s->n_groups, s->n_groups };
    SN_TRY(sn_mamba_layer(mamba, layer));
    SN_TRY(SN_JOB_DECLARE(job, mixer, layer));
    SN_TRY(sn_job_need(job, SN_MIXER "A_log", layer, &a_log));
    SN_TRY(sn_job_need(job, SN_MIXER "D", layer, &d));
    SN_TRY(sn_job_need(job, SN_MIXER "norm.weight", layer, &norm));
    SN_TRY(sn_job_minus_exp(job, "ssm_a", layer, a_log, 2, heads));
    SN_TRY(sn_job_array(job, "ssm_d", layer, d, 2, heads));
    return sn_job_array(job, "ssm_norm.weight", layer, norm, 2, groups);
}

static sn_status declare_model(sn_import_job *job) {
    sn_mamba mamba;
    sizes s;
    SN_TRY(sn_mamba_begin(&mamba, job, false));
    if (mamba.original) SN_TRY(check_original(&mamba));
    SN_TRY(measure(&mamba, &s));
    SN_TRY(declare_sizes(&mamba, &s));
    SN_TRY(declare_limits(&mamba));
    for (uint32_t i = 0; i < mamba.n_layers; i++) SN_TRY(declare_layer(&mamba, &s, i));
    return SN_OK;
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "mamba2", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_mamba2 = { "mamba2", recognises, declare };
