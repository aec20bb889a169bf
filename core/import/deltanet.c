#include "fla.h"

typedef struct deltanet {
    sn_fla_folder frame;
    bool has_gate, has_beta;
} deltanet;

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source)) return sn_config_is(source, "delta_net", "DeltaNetForCausalLM");
    return sn_source_has(source, SN_FLA_ATTN "b_proj.weight", 0) &&
           !sn_source_has(source, SN_FLA_ATTN "a_proj.weight", 0);
}

static sn_status declare_keys(deltanet *d) {
    static const char *const acts[] = { "silu", "relu", "elu", "identity", NULL };
    static const char *const norms[] = { "l2", "sum", NULL };
    sn_import_job *job = d->frame.job;
    const sn_source_model *source = job->source;
    const char *act = acts[0], *norm = norms[0];
    uint32_t heads = 16;
    bool negative = false;
    SN_TRY(sn_config_choice(source, "qk_activation", acts, &act));
    SN_TRY(sn_config_choice(source, "qk_norm", norms, &norm));
    SN_TRY(sn_config_u32(source, "num_heads", &heads));
    SN_TRY(sn_config_bool(source, "use_gate", &d->has_gate));
    SN_TRY(sn_config_bool(source, "use_beta", &d->has_beta));
    SN_TRY(sn_config_bool(source, "allow_neg_eigval", &negative));
    d->frame.n_heads = heads;
    SN_TRY(sn_fla_per_head(&d->frame, "expand_k", 1.0, &d->frame.key));
    SN_TRY(sn_fla_per_head(&d->frame, "expand_v", 1.0, &d->frame.value));
    SN_TRY(sn_fla_folder_heads(&d->frame));
    SN_TRY(sn_fla_folder_conv(&d->frame, true));
    SN_TRY(sn_job_text(job, "qk_activation", act));
    SN_TRY(sn_job_text(job, "qk_norm", norm));
    return sn_job_f32(job, "beta_scale", negative ? 2.0 : 1.0);
}

static sn_status declare_layer(const deltanet *d, uint32_t layer) {
    const sn_fla_folder *f = &d->frame;
    uint64_t keys = f->n_heads * f->key, values = f->n_heads * f->value;
    SN_TRY(sn_fla_folder_layer(f, layer));
    SN_TRY(sn_fla_folder_projection(f, layer, "q", "attn_q", keys));
    SN_TRY(sn_fla_folder_projection(f, layer, "k", "attn_k", keys));
    SN_TRY(sn_fla_folder_projection(f, layer, "v", "attn_v", values));
    if (d->has_beta)
        SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "b_proj.weight", "attn_beta.weight",
                                    f->n_heads, f->width));
    if (d->has_gate)
        SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "g_proj.weight", "attn_gate.weight",
                                    values, f->width));
    SN_TRY(sn_fla_folder_norm(f, layer, SN_FLA_ATTN "o_norm.weight", "attn_head_norm.weight",
                              f->value));
    return sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "o_proj.weight", "attn_output.weight",
                                f->width, values);
}

static sn_status declare_model(sn_import_job *job) {
    deltanet d = { .has_beta = true };
    SN_TRY(sn_fla_folder_begin(&d.frame, job, 24));
    SN_TRY(declare_keys(&d));
    for (uint32_t i = 0; i < d.frame.n_layers; i++) SN_TRY(declare_layer(&d, i));
    return SN_OK;
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "deltanet", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_deltanet = { "deltanet", recognises, declare };
