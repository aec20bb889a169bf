#include "fla.h"

#include <inttypes.h>
#include <stdio.h>

static const sn_rule whole[] = {
    { "token_embd.weight", "model.embeddings.weight", SN_RULE_MATRIX },
    { "output_norm.weight", "model.norm.weight", SN_RULE_VECTOR },
};

static const sn_rule layers[] = {
    { "attn_norm.weight", "model.layers.#.attn_norm.weight", SN_RULE_VECTOR },
    { "ffn_norm.weight", "model.layers.#.mlp_norm.weight", SN_RULE_VECTOR },
    { "ffn_down.weight", "model.layers.#.mlp.down_proj.weight", SN_RULE_MATRIX },
};

/* ---- options ------------------------------------------------------------------------ */

static sn_status check_options(const sn_source_model *source) {
    static const char *const acts[] = { "swish", "silu", NULL };
    const char *act;
    if (!source->config)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: the model's config.json must lie beside it",
                       source->name);
    SN_TRY(sn_config_choice(source, "hidden_act", acts, &act));
    SN_TRY(sn_config_refuse(source, "attn", "hybrid models with softmax attention"));
    return sn_config_refuse(source, "attnres_block_size", "residual connections across layers");
}

static sn_status measure(sn_fla_folder *f, uint64_t *n_ffn) {
    sn_import_job *job = f->job;
    const sn_view *embedding, *down;
    uint32_t n_layers = (uint32_t)f->n_layers;
    SN_TRY(sn_job_need(job, whole[0].pattern, SN_NO_LAYER, &embedding));
    SN_TRY(sn_job_need(job, layers[2].pattern, 0, &down));
    if (embedding->n_dims != 2 || down->n_dims != 2)
        return sn_fail(SN_E_FORMAT, "%.300s: tensors '%.100s' and '%.100s' must have two "
                       "dimensions", job->source->name, embedding->name, down->name);
    f->width = embedding->dims[1];
    *n_ffn = down->dims[1];
    SN_TRY(sn_config_agree(job->source, "hidden_size", f->width));
    SN_TRY(sn_config_agree(job->source, "intermediate_size", *n_ffn));
    SN_TRY(sn_config_u32(job->source, "num_hidden_layers", &n_layers));
    f->n_layers = n_layers;
    return SN_OK;
}

sn_status sn_fla_folder_begin(sn_fla_folder *f, sn_import_job *job, uint32_t n_layers) {
    const sn_source_model *source = job->source;
    double norm_eps = 1e-6;
    bool tied = false;
    uint64_t n_ffn;
    *f = (sn_fla_folder){ .job = job, .n_layers = n_layers, .affine = true };
    SN_TRY(check_options(source));
    SN_TRY(measure(f, &n_ffn));
    SN_TRY(sn_config_bool(source, "tie_word_embeddings", &tied));
    SN_TRY(sn_config_bool(source, "elementwise_affine", &f->affine));
    SN_TRY(sn_config_f64(source, "norm_eps", &norm_eps));
    SN_TRY(SN_JOB_DECLARE(job, whole, SN_NO_LAYER));
    SN_TRY(sn_job_head(job, "lm_head.weight", tied));
    SN_TRY(sn_job_u32(job, "block_count", f->n_layers));
    SN_TRY(sn_job_u32(job, "embedding_length", f->width));
    SN_TRY(sn_job_u32(job, "feed_forward_length", n_ffn));
    return sn_job_f32(job, "attention.layer_norm_rms_epsilon", norm_eps);
}

sn_status sn_fla_folder_conv(sn_fla_folder *f, bool by_default) {
    bool use = by_default;
    uint32_t taps = 4;
    SN_TRY(sn_config_bool(f->job->source, "use_short_conv", &use));
    SN_TRY(sn_config_u32(f->job->source, "conv_size", &taps));
    if (!use) return SN_OK;
    SN_TRY(sn_config_must_be(f->job->source, "share_conv_kernel", false));
    f->taps = taps;
    return sn_job_u32(f->job, "conv_kernel", taps);
}

sn_status sn_fla_per_head(const sn_fla_folder *f, const char *option, double expand,
                          uint64_t *channels) {
    SN_TRY(sn_config_f64(f->job->source, option, &expand));
    double total = (double)f->width * expand;
    if (total >= 1.0 && total < 0x1p40) {
        *channels = (uint64_t)total / f->n_heads;
        if (*channels * f->n_heads == (uint64_t)total) return SN_OK;
    }
    return sn_fail(SN_E_FORMAT, "%.300s: option '%s' = %g: %" PRIu64 " heads cannot share %g "
                   "channels", f->job->source->name, option, expand, f->n_heads, total);
}

sn_status sn_fla_folder_heads(const sn_fla_folder *f) {
    SN_TRY(sn_job_u32(f->job, "attention.head_count", f->n_heads));
    SN_TRY(sn_job_u32(f->job, "attention.key_length", f->key));
    return sn_job_u32(f->job, "attention.value_length", f->value);
}

/* ---- tensors ------------------------------------------------------------------------ */

/* Rows [first, first + n) of a matrix. */
static sn_view rows_of(const sn_view *view, uint64_t first, uint64_t n) {
    sn_view rows = *view;
    rows.dims[0] = n;
    rows.offset += first * view->strides[0] * view->type->block_bytes;
    return rows;
}

/* gate and up; earlier versions of fla kept both in gate_proj, one above the other. */
static sn_status declare_gate_and_up(const sn_fla_folder *f, uint32_t layer) {
    sn_import_job *job = f->job;
    const sn_view *gate, *up = sn_job_find(job, "model.layers.#.mlp.up_proj.weight", layer);
    SN_TRY(sn_job_need(job, "model.layers.#.mlp.gate_proj.weight", layer, &gate));
    if (up) {
        SN_TRY(sn_job_matrix(job, "ffn_gate.weight", layer, gate));
        return sn_job_matrix(job, "ffn_up.weight", layer, up);
    }
    if (gate->n_dims != 2 || gate->dims[0] % 2)
        return sn_job_need(job, "model.layers.#.mlp.up_proj.weight", layer, &up);
    uint64_t half = gate->dims[0] / 2;
    sn_view upper = rows_of(gate, 0, half), lower = rows_of(gate, half, half);
    SN_TRY(sn_job_matrix(job, "ffn_gate.weight", layer, &upper));
    return sn_job_matrix(job, "ffn_up.weight", layer, &lower);
}

sn_status sn_fla_folder_layer(const sn_fla_folder *f, uint32_t layer) {
    SN_TRY(SN_JOB_DECLARE(f->job, layers, layer));
    return declare_gate_and_up(f, layer);
}

sn_status sn_fla_folder_matrix(const sn_fla_folder *f, uint32_t layer, const char *pattern,
                               const char *target, uint64_t rows, uint64_t k) {
    const sn_view *view;
    SN_TRY(sn_job_need(f->job, pattern, layer, &view));
    SN_TRY(sn_job_check_shape(f->job, view, rows, k));
    return sn_job_matrix(f->job, target, layer, view);
}

sn_status sn_fla_folder_projection(const sn_fla_folder *f, uint32_t layer, const char *from,
                                   const char *target, uint64_t rows) {
    char pattern[64], weight[64], bias[64], name[64];
    snprintf(pattern, sizeof pattern, SN_FLA_ATTN "%s_proj.weight", from);
    snprintf(name, sizeof name, "%s.weight", target);
    SN_TRY(sn_fla_folder_matrix(f, layer, pattern, name, rows, f->width));
    if (!f->taps) return SN_OK;
    snprintf(pattern, sizeof pattern, SN_FLA_ATTN "%s_conv1d.weight", from);
    snprintf(weight, sizeof weight, "%s_conv.weight", target);
    snprintf(name, sizeof name, SN_FLA_ATTN "%s_conv1d.bias", from);
    snprintf(bias, sizeof bias, "%s_conv.bias", target);
    const sn_rule rules[] = {
        { weight, pattern, SN_RULE_CONV },
        { bias, name, SN_RULE_VECTOR | SN_RULE_OPTIONAL },
    };
    return SN_JOB_DECLARE(f->job, rules, layer);
}

sn_status sn_fla_folder_norm(const sn_fla_folder *f, uint32_t layer, const char *pattern,
                             const char *target, uint64_t n) {
    const sn_view *view = sn_job_find(f->job, pattern, layer);
    if (!view && !f->affine) return sn_job_fill(f->job, target, layer, n, 1.0f);
    SN_TRY(sn_job_need(f->job, pattern, layer, &view));
    return sn_job_vector(f->job, target, layer, view);
}
