#include "mamba.h"

#include <inttypes.h>

/* ---- what both have ----------------------------------------------------------------- */

bool sn_mamba_is_original(const sn_source_model *source) {
    return !sn_config_kind(source) && sn_config_get(source, "d_model") &&
           sn_config_get(source, "n_layer");
}

static const sn_rule whole[] = {
    { "token_embd.weight", "{|model.}backbone.{embeddings|embedding}.weight", SN_RULE_MATRIX },
    { "output_norm.weight", "{|model.}backbone.norm_f.weight", SN_RULE_VECTOR },
};

static const sn_rule layers[] = {
    { "attn_norm.weight", "{|model.}backbone.layers.#.norm.weight", SN_RULE_VECTOR },
    { "ssm_conv1d.weight", SN_MIXER "conv1d.weight", SN_RULE_CONV },
    { "ssm_in.weight", SN_MIXER "in_proj.weight", SN_RULE_MATRIX },
    { "ssm_out.weight", SN_MIXER "out_proj.weight", SN_RULE_MATRIX },
};

static const sn_rule biases[] = {
    { "ssm_in.bias", SN_MIXER "in_proj.bias", SN_RULE_VECTOR },
    { "ssm_out.bias", SN_MIXER "out_proj.bias", SN_RULE_VECTOR },
};

static const sn_rule conv_bias[] = {
    { "ssm_conv1d.bias", SN_MIXER "conv1d.bias", SN_RULE_VECTOR },
};

/* A list that must be empty, e.g. of attention layers. */
static sn_status refuse_items(const sn_source_model *source, const char *key) {
    const sn_json *list = sn_config_get(source, key);
    if (!list || (list->kind == SN_JSON_ARRAY && list->size == 0)) return SN_OK;
    return sn_config_unsupported(source, key);
}

static sn_status read_original(sn_mamba *mamba, bool *tied) {
    const sn_source_model *source = mamba->job->source;
    const sn_json *mlp = sn_config_get(source, "d_intermediate");
    uint32_t n_layers = 0;
    *tied = true;
    mamba->cell = (sn_source_model){ source->name, source->store,
                                     sn_config_get(source, "ssm_cfg") };
    SN_TRY(sn_config_u32(source, "n_layer", &n_layers));
    mamba->n_layers = n_layers;
    SN_TRY(sn_config_agree(source, "d_model", mamba->width));
    SN_TRY(sn_config_bool(source, "tie_embeddings", tied));
    SN_TRY(sn_config_must_be(source, "rms_norm", true));
    SN_TRY(refuse_items(source, "attn_layer_idx"));
    if (mlp && (mlp->kind != SN_JSON_NUMBER || mlp->number != 0))
        return sn_config_unsupported(source, "d_intermediate");
    SN_TRY(sn_config_bool(&mamba->cell, "bias", &mamba->bias));
    SN_TRY(sn_config_bool(&mamba->cell, "conv_bias", &mamba->conv_bias));
    return sn_config_agree(&mamba->cell, "d_conv", mamba->taps);
}

static sn_status read_config(sn_mamba *mamba, bool *tied, double *norm_eps) {
    static const char *const acts[] = { "silu", "swish", NULL };
    const sn_source_model *source = mamba->job->source;
    const char *act;
    uint32_t n_layers = 0;
    mamba->cell = *source;
    SN_TRY(sn_config_u32(source, "num_hidden_layers", &n_layers));
    mamba->n_layers = n_layers;
    SN_TRY(sn_config_agree(source, "hidden_size", mamba->width));
    SN_TRY(sn_config_agree(source, "intermediate_size", mamba->inner));
    SN_TRY(sn_config_agree(source, "conv_kernel", mamba->taps));
    SN_TRY(sn_config_bool(source, "tie_word_embeddings", tied));
    SN_TRY(sn_config_f64(source, "layer_norm_epsilon", norm_eps));
    SN_TRY(sn_config_choice(source, "hidden_act", acts, &act));
    SN_TRY(sn_config_bool(source, "use_bias", &mamba->bias));
    return sn_config_bool(source, "use_conv_bias", &mamba->conv_bias);
}

/* expand may be a fraction. */
static sn_status check_expand(const sn_mamba *mamba) {
    double expand = 2.0;
    if (!sn_config_get(&mamba->cell, "expand")) return SN_OK;
    SN_TRY(sn_config_f64(&mamba->cell, "expand", &expand));
    double inner = expand * (double)mamba->width;
    if (inner >= (double)mamba->inner && inner < (double)mamba->inner + 1.0) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: option 'expand' = %g, but the tensors' shapes say %"
                   PRIu64 " / %" PRIu64, mamba->job->source->name, expand, mamba->inner,
                   mamba->width);
}

static sn_status measure(sn_mamba *mamba) {
    sn_import_job *job = mamba->job;
    const sn_view *conv, *out;
    SN_TRY(sn_job_need(job, SN_MIXER "out_proj.weight", 0, &out));
    SN_TRY(sn_job_need(job, SN_MIXER "conv1d.weight", 0, &conv));
    if (out->n_dims != 2 || conv->n_dims < 2)
        return sn_fail(SN_E_FORMAT, "%.300s: tensors '%.100s' and '%.100s' must have 2 and 3 "
                       "dimensions", job->source->name, out->name, conv->name);
    mamba->width = out->dims[0];
    mamba->inner = out->dims[1];
    mamba->taps = conv->dims[conv->n_dims - 1];
    return SN_OK;
}

static uint64_t count_layers(const sn_source_model *source) {
    uint32_t n = 0;
    while (sn_source_has(source, layers[0].pattern, n)) n++;
    return n;
}

sn_status sn_mamba_begin(sn_mamba *mamba, sn_import_job *job, bool tied) {
    double norm_eps = 1e-5;
    if (!job->source->config) tied = false; /* a head that is there is used */
    *mamba = (sn_mamba){ .job = job, .conv_bias = true };
    mamba->original = sn_mamba_is_original(job->source);
    SN_TRY(measure(mamba));
    SN_TRY(mamba->original ? read_original(mamba, &tied) : read_config(mamba, &tied, &norm_eps));
    SN_TRY(check_expand(mamba));
    if (!mamba->n_layers) mamba->n_layers = count_layers(job->source);
    SN_TRY(SN_JOB_DECLARE(job, whole, SN_NO_LAYER));
    SN_TRY(sn_job_head(job, "{|model.}lm_head.weight", tied));
    SN_TRY(sn_job_u32(job, "context_length", 1048576));
    SN_TRY(sn_job_u32(job, "block_count", mamba->n_layers));
    SN_TRY(sn_job_u32(job, "embedding_length", mamba->width));
    SN_TRY(sn_job_u32(job, "feed_forward_length", 0));
    SN_TRY(sn_job_u32(job, "attention.head_count", 0));
    SN_TRY(sn_job_f32(job, "attention.layer_norm_rms_epsilon", norm_eps));
    SN_TRY(sn_job_u32(job, "ssm.conv_kernel", mamba->taps));
    return sn_job_u32(job, "ssm.inner_size", mamba->inner);
}

sn_status sn_mamba_layer(const sn_mamba *mamba, uint32_t layer) {
    SN_TRY(SN_JOB_DECLARE(mamba->job, layers, layer));
    if (mamba->bias) SN_TRY(SN_JOB_DECLARE(mamba->job, biases, layer));
    return mamba->conv_bias ? SN_JOB_DECLARE(mamba->job, conv_bias, layer) : SN_OK;
}

/* ---- Mamba-1 ------------------------------------------------------------------------ */

static const sn_rule mixer[] = {
    { "ssm_x.weight", SN_MIXER "x_proj.weight", SN_RULE_MATRIX },
    { "ssm_dt.weight", SN_MIXER "dt_proj.weight", SN_RULE_MATRIX },
    { "ssm_dt.bias", SN_MIXER "dt_proj.bias", SN_RULE_VECTOR },
    { "ssm_d", SN_MIXER "D", SN_RULE_VECTOR },
};

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source)) return sn_config_is(source, "mamba", "MambaForCausalLM");
    return sn_source_has(source, SN_MIXER "x_proj.weight", 0);
}

static sn_status declare_sizes(const sn_mamba *mamba) {
    const sn_source_model *cell = &mamba->cell;
    const sn_view *a_log, *dt;
    sn_import_job *job = mamba->job;
    SN_TRY(sn_job_need(job, SN_MIXER "A_log", 0, &a_log));
    SN_TRY(sn_job_need(job, SN_MIXER "dt_proj.weight", 0, &dt));
    if (a_log->n_dims != 2 || dt->n_dims != 2)
        return sn_fail(SN_E_FORMAT, "%.300s: tensors '%.100s' and '%.100s' must have two "
                       "dimensions", job->source->name, a_log->name, dt->name);
    const char *rank = mamba->original ? "dt_rank" : "time_step_rank";
    if (!sn_json_is(sn_config_get(cell, rank), "auto"))
        SN_TRY(sn_config_agree(cell, rank, dt->dims[1]));
    SN_TRY(sn_config_agree(cell, mamba->original ? "d_state" : "state_size", a_log->dims[1]));
    SN_TRY(sn_job_u32(job, "ssm.state_size", a_log->dims[1]));
    SN_TRY(sn_job_u32(job, "ssm.time_step_rank", dt->dims[1]));
    return sn_build_bool(job->build, "mamba.ssm.dt_b_c_rms", false);
}

static sn_status declare_layer(const sn_mamba *mamba, uint32_t layer) {
    const sn_view *a_log;
    SN_TRY(sn_mamba_layer(mamba, layer));
    SN_TRY(SN_JOB_DECLARE(mamba->job, mixer, layer));
    SN_TRY(sn_job_need(mamba->job, SN_MIXER "A_log", layer, &a_log));
    uint64_t dims[] = { a_log->n_dims == 2 ? a_log->dims[1] : 1, mamba->inner };
    return sn_job_minus_exp(mamba->job, "ssm_a", layer, a_log, 2, dims);
}

static sn_status declare_model(sn_import_job *job) {
    sn_mamba mamba;
    SN_TRY(sn_mamba_begin(&mamba, job, true));
    SN_TRY(declare_sizes(&mamba));
    for (uint32_t i = 0; i < mamba.n_layers; i++) SN_TRY(declare_layer(&mamba, i));
    return SN_OK;
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "mamba", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_mamba = { "mamba", recognises, declare };
