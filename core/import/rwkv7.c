/*
 * RWKV-7 as BlinkDL keeps it: a PyTorch archive (or safetensors) without any config. Sizes come
 * from shapes. Low-rank factors are (in, out) there; a converter in circulation has turned them.
 */
#include "rwkv7.h"

#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- shared with fla's names -------------------------------------------------------- */

static uint64_t rank_of(const sn_import_job *job, uint32_t layer, char z) {
    char name[64];
    snprintf(name, sizeof name, "blk.%" PRIu32 ".time_mix_%c1.weight", layer, z);
    return sn_build_rows(job->build, name);
}

sn_status sn_rwkv7_keys(sn_import_job *job, const sn_rwkv7_sizes *sizes) {
    uint32_t last = sizes->n_layers > 1; /* layer 0 has no v of its own */
    SN_TRY(sn_job_u32(job, "context_length", 1048576));
    SN_TRY(sn_job_u32(job, "block_count", sizes->n_layers));
    SN_TRY(sn_job_u32(job, "embedding_length", sizes->width));
    SN_TRY(sn_job_u32(job, "feed_forward_length", sizes->n_ffn));
    SN_TRY(sn_job_u32(job, "wkv.head_size", sizes->head_size));
    SN_TRY(sn_job_u32(job, "attention.head_count", 0));
    SN_TRY(sn_job_f32(job, "attention.layer_norm_epsilon", sizes->norm_eps));
    SN_TRY(sn_job_u32(job, "attention.decay_lora_rank", rank_of(job, 0, 'w')));
    SN_TRY(sn_job_u32(job, "attention.iclr_lora_rank", rank_of(job, 0, 'a')));
    SN_TRY(sn_job_u32(job, "attention.value_residual_mix_lora_rank", rank_of(job, last, 'v')));
    SN_TRY(sn_job_u32(job, "attention.gate_lora_rank", rank_of(job, 0, 'g')));
    if ((float)sizes->group_norm_eps == 64e-5f) return SN_OK;
    return sn_build_f32(job->build, "sunnynet.group_norm_epsilon", (float)sizes->group_norm_eps);
}

sn_status sn_rwkv7_lerp(sn_import_job *job, const char *const *patterns, uint32_t layer,
                        uint64_t width) {
    size_t n;
    const sn_view *views[6];
    for (size_t i = 0; i < 6; i++) {
        SN_TRY(sn_job_need(job, patterns[i], layer, &views[i]));
        if (sn_view_elements(views[i]) != width)
            return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s': %" PRIu64 " elements, expected "
                           "%" PRIu64, job->source->name, views[i]->name,
                           sn_view_elements(views[i]), width);
    }
    if (width > SIZE_MAX || !sn_mul_size(6, (size_t)width, &n))
        return sn_fail(SN_E_NOMEM, "%.300s: too large", job->source->name);
    float *values = sn_alloc_array(n, sizeof *values);
    sn_status status = values ? SN_OK : SN_E_NOMEM;
    for (size_t i = 0; i < 6 && status == SN_OK; i++)
        status = sn_view_read_f32(views[i], 0, (size_t)width, values + i * (size_t)width);
    uint64_t dims[] = { width, 1, 1, 6 };
    if (status == SN_OK)
        status = sn_job_values(job, "time_mix_lerp_fused.weight", layer, values, 4, dims);
    sn_free(values);
    return status;
}

sn_status sn_rwkv7_low_rank(sn_import_job *job, char z, uint32_t layer, const sn_view *down,
                            const sn_view *up, uint64_t width) {
    char name[32];
    uint64_t rank = down->n_dims ? down->dims[0] : 0;
    SN_TRY(sn_job_check_shape(job, down, rank, width));
    SN_TRY(sn_job_check_shape(job, up, width, rank));
    snprintf(name, sizeof name, "time_mix_%c1.weight", z);
    SN_TRY(sn_job_matrix(job, name, layer, down));
    snprintf(name, sizeof name, "time_mix_%c2.weight", z);
    SN_TRY(sn_job_matrix(job, name, layer, up));
    return z == 'a' && layer == 0 ? sn_rwkv7_low_rank(job, 'v', 0, down, up, width) : SN_OK;
}

sn_status sn_rwkv7_bias(sn_import_job *job, char z, uint32_t layer, const sn_view *bias) {
    char name[32];
    snprintf(name, sizeof name, "time_mix_%c0.weight", z);
    SN_TRY(sn_job_vector(job, name, layer, bias));
    return z == 'a' && layer == 0 ? sn_rwkv7_bias(job, 'v', 0, bias) : SN_OK;
}

/* ---- BlinkDL's names ---------------------------------------------------------------- */

static const sn_rule whole[] = {
    { "token_embd.weight", "emb.weight", SN_RULE_MATRIX },
    { "token_embd_norm.weight", "blocks.0.ln0.weight", SN_RULE_VECTOR },
    { "token_embd_norm.bias", "blocks.0.ln0.bias", SN_RULE_VECTOR },
    { "output_norm.weight", "ln_out.weight", SN_RULE_VECTOR },
    { "output_norm.bias", "ln_out.bias", SN_RULE_VECTOR },
    { "output.weight", "head.weight", SN_RULE_MATRIX },
};

static const sn_rule layers[] = {
    { "attn_norm.weight", "blocks.#.ln1.weight", SN_RULE_VECTOR },
    { "attn_norm.bias", "blocks.#.ln1.bias", SN_RULE_VECTOR },
    { "attn_norm_2.weight", "blocks.#.ln2.weight", SN_RULE_VECTOR },
    { "attn_norm_2.bias", "blocks.#.ln2.bias", SN_RULE_VECTOR },
    { "time_mix_k_k.weight", "blocks.#.att.k_k", SN_RULE_VECTOR },
    { "time_mix_k_a.weight", "blocks.#.att.k_a", SN_RULE_VECTOR },
    { "time_mix_r_k.weight", "blocks.#.att.r_k", SN_RULE_VECTOR },
    { "time_mix_receptance.weight", "blocks.#.att.receptance.weight", SN_RULE_MATRIX },
    { "time_mix_key.weight", "blocks.#.att.key.weight", SN_RULE_MATRIX },
    { "time_mix_value.weight", "blocks.#.att.value.weight", SN_RULE_MATRIX },
    { "time_mix_output.weight", "blocks.#.att.output.weight", SN_RULE_MATRIX },
    { "time_mix_ln.weight", "blocks.#.att.ln_x.weight", SN_RULE_VECTOR },
    { "time_mix_ln.bias", "blocks.#.att.ln_x.bias", SN_RULE_VECTOR },
    { "channel_mix_lerp_k.weight", "blocks.#.ffn.x_k", SN_RULE_VECTOR },
    { "channel_mix_key.weight", "blocks.#.ffn.key.weight", SN_RULE_MATRIX },
    { "channel_mix_value.weight", "blocks.#.ffn.value.weight", SN_RULE_MATRIX },
};

static const char *const lerps[] = { "blocks.#.att.x_r", "blocks.#.att.x_w", "blocks.#.att.x_k",
                                     "blocks.#.att.x_v", "blocks.#.att.x_a", "blocks.#.att.x_g" };

static bool recognises(const sn_source_model *source) {
    return (!sn_config_kind(source) || sn_config_is(source, "rwkv7", "RWKV7ForCausalLM")) &&
           sn_source_has(source, "emb.weight", 0) &&
           sn_source_has(source, "blocks.0.{att|ffn}.key.weight", 0);
}

/* Other models whose blocks look alike. */
static sn_status refuse_relatives(const sn_source_model *source) {
    static const struct {
        const char *part, *model;
    } relatives[] = {
        { ".att.time_decay", "RWKV-4, 5 or 6" },
        { ".att.time_first", "RWKV-4, 5 or 6" },
        { ".att.time_maa", "RWKV-6" },
        { ".att.time_state", "initial states, which are no model" },
        { ".ffn.s_emb", "RWKV-7 with DeepEmbed" },
    };
    for (size_t i = 0; i < sn_store_count(source->store); i++) {
        const char *name = sn_store_at(source->store, i)->name;
        for (size_t k = 0; k < sizeof relatives / sizeof relatives[0]; k++)
            if (strstr(name, relatives[k].part))
                return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%.100s' belongs to %s; "
                               "supported is RWKV-7", source->name, name, relatives[k].model);
    }
    return SN_OK;
}

/* One more than the highest N of "blocks.N.". */
static uint64_t count_layers(const sn_source_model *source) {
    uint64_t n = 0;
    for (size_t i = 0; i < sn_store_count(source->store); i++) {
        const char *name = sn_store_at(source->store, i)->name;
        if (strncmp(name, "blocks.", 7) != 0) continue;
        uint64_t layer = 0;
        for (name += 7; *name >= '0' && *name <= '9' && layer < 1000000; name++)
            layer = 10 * layer + (uint64_t)(*name - '0');
        if (layer >= n) n = layer + 1;
    }
    return n;
}

static sn_status measure(sn_import_job *job, sn_rwkv7_sizes *sizes) {
    const sn_view *embedding, *r_k, *key;
    SN_TRY(sn_job_need(job, "emb.weight", 0, &embedding));
    SN_TRY(sn_job_need(job, "blocks.0.att.r_k", 0, &r_k));
    SN_TRY(sn_job_need(job, "blocks.0.ffn.key.weight", 0, &key));
    if (embedding->n_dims != 2 || r_k->n_dims != 2 || key->n_dims != 2)
        return sn_fail(SN_E_FORMAT, "%.300s: 'emb.weight', 'blocks.0.att.r_k' and "
                       "'blocks.0.ffn.key.weight' must have two dimensions", job->source->name);
    *sizes = (sn_rwkv7_sizes){ .n_layers = count_layers(job->source),
                               .width = embedding->dims[1], .n_ffn = key->dims[0],
                               .head_size = r_k->dims[1], .norm_eps = 1e-5,
                               .group_norm_eps = 64e-5 };
    return SN_OK;
}

/* A factor as (out, in). It is (in, out) if its shape allows that. */
static sn_view turned(const sn_view *view, uint32_t in_dim, uint64_t in) {
    return view->n_dims == 2 && view->dims[in_dim] == in ? sn_view_transposed(view) : *view;
}

static sn_status declare_low_rank(sn_import_job *job, char z, uint32_t layer, uint64_t width) {
    char pattern[40];
    const sn_view *parts[3] = { NULL };
    for (int i = 0; i < 3; i++) {
        snprintf(pattern, sizeof pattern, "blocks.#.att.%c%d", z, i);
        if (z == 'g' && i == 0) continue; /* the gate has no bias */
        if (z == 'v' && layer == 0)
            sn_job_find(job, pattern, layer); /* perhaps there, never used */
        else
            SN_TRY(sn_job_need(job, pattern, layer, &parts[i]));
    }
    if (!parts[1] || !parts[2]) return SN_OK;
    sn_view down = turned(parts[1], 0, width), up = turned(parts[2], 1, width);
    SN_TRY(sn_rwkv7_low_rank(job, z, layer, &down, &up, width));
    return parts[0] ? sn_rwkv7_bias(job, z, layer, parts[0]) : SN_OK;
}

static sn_status declare_model(sn_import_job *job) {
    sn_rwkv7_sizes sizes;
    SN_TRY(refuse_relatives(job->source));
    SN_TRY(measure(job, &sizes));
    SN_TRY(SN_JOB_DECLARE(job, whole, SN_NO_LAYER));
    for (uint32_t i = 0; i < sizes.n_layers; i++) {
        SN_TRY(SN_JOB_DECLARE(job, layers, i));
        SN_TRY(sn_rwkv7_lerp(job, lerps, i, sizes.width));
        for (const char *z = "wavg"; *z; z++)
            SN_TRY(declare_low_rank(job, *z, i, sizes.width));
    }
    return sn_rwkv7_keys(job, &sizes);
}

static sn_status declare(const sn_source_model *source, sn_build *build) {
    sn_import_job job;
    SN_TRY(sn_job_begin(&job, "rwkv7", source, build));
    return sn_job_end(&job, declare_model(&job));
}

const sn_importer sn_import_rwkv7 = { "rwkv7", recognises, declare };
