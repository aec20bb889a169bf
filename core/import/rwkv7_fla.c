/*
 * RWKV-7 as Hugging Face folders have it: fla's names, and those of older ports.
 */
#include "config.h"
#include "rwkv7.h"

#include <stdio.h>

#define EMBEDDING "{model.|}embeddings.weight"
#define LAYER "{model.|}{layers|blocks}.#."
#define ATTN LAYER "{attn|attention|self_attn}.{|time_mixer.}"
#define FFN LAYER "{ffn|feed_forward}."
#define LN0 "{model.layers.0.pre_norm|model.blocks.0.pre_norm|layers.0.pre_norm|model.pre_ln}."
#define LN_OUT "{model.norm|model.ln_out|norm|ln_out}."

static const sn_rule whole[] = {
    { "token_embd.weight", EMBEDDING, SN_RULE_MATRIX },
    { "token_embd_norm.weight", LN0 "weight", SN_RULE_VECTOR },
    { "output_norm.weight", LN_OUT "weight", SN_RULE_VECTOR },
};

static const sn_rule layers[] = {
    { "attn_norm.weight", LAYER "{attn_norm|ln1}.weight", SN_RULE_VECTOR },
    { "attn_norm_2.weight", LAYER "{ffn_norm|ln2}.weight", SN_RULE_VECTOR },
    { "time_mix_k_k.weight", ATTN "k_k", SN_RULE_VECTOR },
    { "time_mix_k_a.weight", ATTN "k_a", SN_RULE_VECTOR },
    { "time_mix_r_k.weight", ATTN "r_k", SN_RULE_VECTOR },
    { "time_mix_receptance.weight", ATTN "r_proj.weight", SN_RULE_MATRIX },
    { "time_mix_key.weight", ATTN "k_proj.weight", SN_RULE_MATRIX },
    { "time_mix_value.weight", ATTN "v_proj.weight", SN_RULE_MATRIX },
    { "time_mix_output.weight", ATTN "o_proj.weight", SN_RULE_MATRIX },
    { "time_mix_ln.weight", ATTN "{g_norm|ln_x}.weight", SN_RULE_VECTOR },
    { "time_mix_ln.bias", ATTN "{g_norm|ln_x}.bias", SN_RULE_VECTOR },
    { "channel_mix_lerp_k.weight", FFN "x_k", SN_RULE_VECTOR },
    { "channel_mix_key.weight", FFN "key.weight", SN_RULE_MATRIX },
    { "channel_mix_value.weight", FFN "value.weight", SN_RULE_MATRIX },
};

static const char *const lerps[] = { ATTN "x_r", ATTN "x_w", ATTN "x_k", ATTN "x_v", ATTN "x_a",
                                     ATTN "x_g" };

static bool recognises(const sn_source_model *source) {
    if (sn_config_kind(source)) return sn_config_is(source, "rwkv7", "RWKV7ForCausalLM");
    return sn_source_has(source, ATTN "w_lora.lora.0.weight", 0);
}

/* value_dim: a number, or one for each layer. */
static sn_status check_value_dim(const sn_source_model *source, uint64_t width) {
    const sn_json *option = sn_config_get(source, "value_dim");
    const sn_json *item = option && option->kind == SN_JSON_ARRAY ? option->first : option;
    for (; item; item = item == option ? NULL : item->next)
        if (item->kind != SN_JSON_NUMBER || item->number != (double)width)
            return sn_config_unsupported(source, "value_dim");
    return SN_OK;
}

static sn_status check_options(const sn_source_model *source, const sn_rwkv7_sizes *sizes) {
    static const char *const acts[] = { "sqrelu", NULL };
    const char *act;
    SN_TRY(sn_config_choice(source, "hidden_act", acts, &act));
    SN_TRY(sn_config_refuse(source, "attn", "softmax attention layers"));
    SN_TRY(sn_config_must_be(source, "norm_first", true));
    SN_TRY(check_value_dim(source, sizes->width));
    SN_TRY(sn_config_agree(source, "hidden_size", sizes->width));
    SN_TRY(sn_config_agree(source, "intermediate_size", sizes->n_ffn));
    SN_TRY(sn_config_agree(source, "num_heads", sizes->width / sizes->head_size));
    SN_TRY(sn_config_agree(source, "head_size", sizes->head_size));
    return sn_config_agree(source, "head_dim", sizes->head_size);
}

static uint32_t count_layers(const sn_source_model *source) {
    uint32_t n = 0;
    while (sn_source_has(source, ATTN "r_k", n)) n++;
    return n;
}

static sn_status measure(sn_import_job *job, sn_rwkv7_sizes *sizes) {
    const sn_view *embedding, *r_k, *key;
    uint32_t n_layers = 0;
    SN_TRY(sn_job_need(job, whole[0].pattern, SN_NO_LAYER, &embedding));
    SN_TRY(sn_job_need(job, ATTN "r_k", 0, &r_k));
    SN_TRY(sn_job_need(job, FFN "key.weight", 0, &key));
    if (embedding->n_dims != 2 || r_k->n_dims != 2 || key->n_dims != 2)
        return sn_fail(SN_E_FORMAT, "%.300s: '%.100s', '%.100s' and '%.100s' must have two "
                       "dimensions", job->source->name, embedding->name, r_k->name, key->name);
    SN_TRY(sn_config_u32(job->source, "num_hidden_layers", &n_layers));
    if (!n_layers) n_layers = count_layers(job->source);
    *sizes = (sn_rwkv7_sizes){ .n_layers = n_layers, .width = embedding->dims[1],
                               .n_ffn = key->dims[0], .head_size = r_k->dims[1],
                               .norm_eps = 1e-5 };
    if (sizes->head_size == 0)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' holds no elements",
                       job->source->name, r_k->name);
    SN_TRY(sn_config_f64(job->source, "layer_norm_epsilon", &sizes->norm_eps));
    SN_TRY(sn_config_f64(job->source, "norm_eps", &sizes->norm_eps));
    sizes->group_norm_eps = (double)sizes->head_size * sizes->norm_eps;
    return check_options(job->source, sizes);
}

/* Norms without bias (norm_bias = false) have one of zeros here. */
static sn_status declare_bias(sn_import_job *job, const char *target, const char *pattern,
                              uint32_t layer, uint64_t width, bool may_miss) {
    const sn_view *bias = sn_job_find(job, pattern, layer);
    if (!bias && may_miss) return sn_job_fill(job, target, layer, width, 0.0f);
    SN_TRY(sn_job_need(job, pattern, layer, &bias));
    return sn_job_vector(job, target, layer, bias);
}

static sn_status declare_low_rank(sn_import_job *job, char z, uint32_t layer, uint64_t width) {
    char pattern[120];
    const sn_view *down, *up, *bias;
    if (z == 'v' && layer == 0) return SN_OK;
    snprintf(pattern, sizeof pattern, ATTN "%c_lora.lora.0.weight", z);
    SN_TRY(sn_job_need(job, pattern, layer, &down));
    snprintf(pattern, sizeof pattern, ATTN "%c_lora.lora.2.weight", z);
    SN_TRY(sn_job_need(job, pattern, layer, &up));
    SN_TRY(sn_rwkv7_low_rank(job, z, layer, down, up, width));
    if (z == 'g') return SN_OK;
    snprintf(pattern, sizeof pattern, ATTN "%c_lora.lora.2.bias", z);
    SN_TRY(sn_job_need(job, pattern, layer, &bias));
    return sn_rwkv7_bias(job, z, layer, bias);
}

/* Six vectors, or one tensor with all of them in the same order. */
static sn_status declare_lerp(sn_import_job *job, uint32_t layer, uint64_t width) {
    uint64_t dims[] = { width, 1, 1, 6 };
    const sn_view *stacked = sn_job_find(job, ATTN "x_x", layer);
    if (!stacked) return sn_rwkv7_lerp(job, lerps, layer, width);
    return sn_job_array(job, "time_mix_lerp_fused.weight", layer, stacked, 4, dims);
}

static sn_status declare_layer(sn_import_job *job, uint32_t layer, uint64_t width, bool bias) {
    SN_TRY(SN_JOB_DECLARE(job, layers, layer));
    SN_TRY(declare_bias(job, "attn_norm.bias", LAYER "{attn_norm|ln1}.bias", layer, width,
                        !bias));
    SN_TRY(declare_bias(job, "attn_norm_2.bias", LAYER "{ffn_norm|ln2}.bias", layer, width,
                        !bias));
    SN_TRY(declare_lerp(job, layer, width));
    for (const char *z = "wavg"; *z; z++) SN_TRY(declare_low_rank(job, *z, layer, width));
    return SN_OK;
}

/* A tied head is written out: GGUF files of RWKV-7 have none that is tied. */
static sn_status declare_head(sn_import_job *job, bool tied) {
    const sn_view *head = sn_job_find(job, "{lm_head|model.head|head}.weight", SN_NO_LAYER);
    if (!head || tied) SN_TRY(sn_job_need(job, EMBEDDING, SN_NO_LAYER, &head));
    return sn_job_matrix(job, "output.weight", SN_NO_LAYER, head);
}

static sn_status declare_model(sn_import_job *job) {
    sn_rwkv7_sizes sizes;
    bool tied = false, bias = true;
    SN_TRY(measure(job, &sizes));
    SN_TRY(sn_config_bool(job->source, "tie_word_embeddings", &tied));
    SN_TRY(sn_config_bool(job->source, "norm_bias", &bias));
    SN_TRY(SN_JOB_DECLARE(job, whole, SN_NO_LAYER));
    SN_TRY(declare_bias(job, "token_embd_norm.bias", LN0 "bias", SN_NO_LAYER, sizes.width, !bias));
    SN_TRY(declare_bias(job, "output_norm.bias", LN_OUT "bias", SN_NO_LAYER, sizes.width, !bias));
    SN_TRY(declare_head(job, tied));
    for (uint32_t i = 0; i < sizes.n_layers; i++)
        SN_TRY(declare_layer(job, i, sizes.width, bias));
    return sn_rwkv7_keys(job, &sizes);
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "rwkv7", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_rwkv7_fla = { "rwkv7", recognises, declare };
