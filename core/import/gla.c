#include "fla.h"

typedef struct gla {
    sn_fla_folder frame;
    uint64_t n_kv;
    bool has_gate;
} gla;

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source)) return sn_config_is(source, "gla", "GLAForCausalLM");
    return sn_source_has(source, SN_FLA_ATTN "gk_proj.0.weight", 0);
}

static sn_status check_options(const sn_source_model *source) {
    static const char *const swish[] = { "swish", "silu", NULL };
    const sn_json *normalizer = sn_config_get(source, "gate_logit_normalizer");
    const char *gate;
    SN_TRY(sn_config_must_be(source, "use_gk", true));
    SN_TRY(sn_config_must_be(source, "use_gv", false));
    SN_TRY(sn_config_refuse(source, "feature_map", "feature maps of queries and keys"));
    SN_TRY(sn_config_choice(source, "gate_fn", swish, &gate));
    /* fla itself ignores it and takes 16: another value may mean either */
    if (normalizer && (normalizer->kind != SN_JSON_NUMBER || normalizer->number != 16))
        return sn_config_unsupported(source, "gate_logit_normalizer");
    return SN_OK;
}

static sn_status declare_keys(gla *g) {
    sn_import_job *job = g->frame.job;
    const sn_source_model *source = job->source;
    uint32_t heads = 4, kv = 0;
    double clamp = 0;
    SN_TRY(check_options(source));
    SN_TRY(sn_config_u32(source, "num_heads", &heads));
    SN_TRY(sn_config_u32(source, "num_kv_heads", &kv));
    SN_TRY(sn_config_bool(source, "use_output_gate", &g->has_gate));
    SN_TRY(sn_config_f64(source, "clamp_min", &clamp));
    g->n_kv = kv ? kv : heads;
    if (heads % g->n_kv) return sn_config_unsupported(source, "num_kv_heads");
    g->frame.n_heads = heads;
    SN_TRY(sn_fla_per_head(&g->frame, "expand_k", 0.5, &g->frame.key));
    SN_TRY(sn_fla_per_head(&g->frame, "expand_v", 1.0, &g->frame.value));
    SN_TRY(sn_fla_folder_heads(&g->frame));
    SN_TRY(sn_fla_folder_conv(&g->frame, false));
    if (g->n_kv != heads) SN_TRY(sn_job_u32(job, "attention.head_count_kv", g->n_kv));
    return sn_config_get(source, "clamp_min") ? sn_job_f32(job, "clamp_min", clamp) : SN_OK;
}

static sn_status declare_decay(const sn_fla_folder *f, uint32_t layer, uint64_t keys) {
    static const sn_rule bias[] = {
        { "attn_decay_b.bias", SN_FLA_ATTN "gk_proj.1.bias", SN_RULE_VECTOR },
    };
    const sn_view *down;
    SN_TRY(sn_job_need(f->job, SN_FLA_ATTN "gk_proj.0.weight", layer, &down));
    uint64_t rank = down->n_dims ? down->dims[0] : 0;
    SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "gk_proj.0.weight", "attn_decay_a.weight",
                                rank, f->width));
    SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "gk_proj.1.weight", "attn_decay_b.weight",
                                keys, rank));
    return SN_JOB_DECLARE(f->job, bias, layer);
}

static sn_status declare_layer(const gla *g, uint32_t layer) {
    const sn_fla_folder *f = &g->frame;
    uint64_t values = f->n_heads * f->value;
    SN_TRY(sn_fla_folder_layer(f, layer));
    SN_TRY(sn_fla_folder_projection(f, layer, "q", "attn_q", f->n_heads * f->key));
    SN_TRY(sn_fla_folder_projection(f, layer, "k", "attn_k", g->n_kv * f->key));
    SN_TRY(sn_fla_folder_projection(f, layer, "v", "attn_v", g->n_kv * f->value));
    SN_TRY(declare_decay(f, layer, g->n_kv * f->key));
    SN_TRY(sn_fla_folder_norm(f, layer, SN_FLA_ATTN "{g_norm_swish_gate|g_norm}.weight",
                              "attn_head_norm.weight", f->value));
    if (g->has_gate)
        SN_TRY(sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "g_proj.weight", "attn_gate.weight",
                                    values, f->width));
    return sn_fla_folder_matrix(f, layer, SN_FLA_ATTN "o_proj.weight", "attn_output.weight",
                                f->width, values);
}

static sn_status declare_model(sn_import_job *job) {
    gla g = { .has_gate = true };
    SN_TRY(sn_fla_folder_begin(&g.frame, job, 24));
    SN_TRY(declare_keys(&g));
    for (uint32_t i = 0; i < g.frame.n_layers; i++) SN_TRY(declare_layer(&g, i));
    return SN_OK;
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "gla", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_gla = { "gla", recognises, declare };
