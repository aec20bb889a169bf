#include "fla.h"

typedef struct gated_deltanet {
    sn_fla_folder frame;
    uint64_t n_value_heads;
    bool has_gate;
} gated_deltanet;

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source))
        return sn_config_is(source, "gated_deltanet", "GatedDeltaNetForCausalLM");
    return sn_source_has(source, SN_FLA_ATTN "b_proj.weight", 0) &&
           sn_source_has(source, SN_FLA_ATTN "a_proj.weight", 0);
}

static sn_status declare_keys(gated_deltanet *d) {
    sn_import_job *job = d->frame.job;
    const sn_source_model *source = job->source;
    uint32_t heads = 6, value_heads = 0, head_dim = 256;
    double expand = 2.0;
    bool negative = false;
    SN_TRY(sn_config_u32(source, "num_heads", &heads));
    SN_TRY(sn_config_u32(source, "num_v_heads", &value_heads));
    SN_TRY(sn_config_u32(source, "head_dim", &head_dim));
    SN_TRY(sn_config_f64(source, "expand_v", &expand));
    SN_TRY(sn_config_bool(source, "use_gate", &d->has_gate));
    SN_TRY(sn_config_bool(source, "allow_neg_eigval", &negative));
    double value = head_dim * expand;
    if (!(value >= 1.0 && value < 0x1p31)) return sn_config_unsupported(source, "expand_v");
    d->n_value_heads = value_heads ? value_heads : heads;
    if (d->n_value_heads % heads) return sn_config_unsupported(source, "num_v_heads");
    d->frame.n_heads = heads;
    d->frame.key = head_dim;
    d->frame.value = (uint64_t)value;
    SN_TRY(sn_fla_folder_heads(&d->frame));
    SN_TRY(sn_fla_folder_conv(&d->frame, true));
    if (d->n_value_heads != heads)
        SN_TRY(sn_job_u32(job, "attention.head_count_v", d->n_value_heads));
    return sn_job_f32(job, "beta_scale", negative ? 2.0 : 1.0);
}

/* alpha = exp(-exp(A_log) softplus(W_a h + dt_bias)) */
static sn_status declare_decay(const sn_fla_folder *f, uint32_t layer, uint64_t n) {
    static const sn_rule bias[] = {
        { "ssm_dt.bias", SN_FLA_ATTN "dt_bias", SN_RULE_VECTOR },
    };
    const sn_view *a_log;
    SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "a_proj.weight", "attn_alpha.weight", n,
                                f->width));
    SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "b_proj.weight", "attn_beta.weight", n,
                                f->width));
    SN_TRY(SN_JOB_DECLARE(f->job, bias, layer));
    SN_TRY(sn_job_need(f->job, SN_FLA_ATTN "A_log", layer, &a_log));
    return sn_job_minus_exp(f->job, "ssm_a", layer, a_log, 1, &n);
}

static sn_status declare_layer(const gated_deltanet *d, uint32_t layer) {
    const sn_fla_folder *f = &d->frame;
    uint64_t keys = f->n_heads * f->key, values = d->n_value_heads * f->value;
    SN_TRY(sn_fla_folder_layer(f, layer));
    SN_TRY(sn_fla_folder_projection(f, layer, "q", "attn_q", keys));
    SN_TRY(sn_fla_folder_projection(f, layer, "k", "attn_k", keys));
    SN_TRY(sn_fla_folder_projection(f, layer, "v", "attn_v", values));
    SN_TRY(declare_decay(f, layer, d->n_value_heads));
    if (d->has_gate)
        SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "g_proj.weight", "attn_gate.weight",
                                    values, f->width));
    SN_TRY(sn_fla_folder_norm(f, layer, SN_FLA_ATTN "o_norm.weight", "attn_head_norm.weight",
                              f->value));
    return sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "o_proj.weight", "attn_output.weight",
                                f->width, values);
}

static sn_status declare_model(sn_import_job *job) {
    gated_deltanet d = { .has_gate = true };
    SN_TRY(sn_fla_folder_begin(&d.frame, job, 21));
    SN_TRY(declare_keys(&d));
    for (uint32_t i = 0; i < d.frame.n_layers; i++) SN_TRY(declare_layer(&d, i));
    return SN_OK;
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "gated-deltanet", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_gated_deltanet = { "gated-deltanet", recognises, declare };
