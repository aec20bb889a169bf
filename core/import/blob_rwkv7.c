/*
 * blob_rwkv7.c: the packed RWKV-7 blob, version 3. Ten words (magic, version, L, D, N, H, F, one
 * without meaning, V, a flag that the tags make superfluous), eps, four ranks for each layer, then
 * every vector and matrix behind its tag. fp32 matrices lie as (in, out), INT4 ones as (out, in).
 * The group norm's eps is not in it: 64e-5, our default. docs/formats.md has the table.
 */
#include "blob.h"

#include <stdio.h>

#define VERSION 3
#define MAX_RANK (1 << 16)

typedef struct shape {
    int32_t layers, D, N, H, F, vocab;
    float eps;
} shape;

/* Of the low-rank factors of one layer. */
enum { RANK_W, RANK_A, RANK_V, RANK_G, RANK_COUNT };

static sn_status read_header(sn_blob *blob, shape *s) {
    int32_t w[10];
    SN_TRY(sn_blob_ints(blob, 10, w));
    *s = (shape){.layers = w[2], .D = w[3], .N = w[4], .H = w[5], .F = w[6], .vocab = w[8]};
    if (w[1] != VERSION)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: RWKV-7 blob of version %d (supported: %d)",
                       blob->file->name, (int)w[1], VERSION);
    SN_TRY(sn_blob_check(blob, "layers", s->layers, 1, 1024));
    SN_TRY(sn_blob_check(blob, "width", s->D, 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "head size", s->N, 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "heads", s->H, 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "feed-forward width", s->F, 1, 1 << 22));
    SN_TRY(sn_blob_check(blob, "vocabulary", s->vocab, 1, 1 << 24));
    if ((int64_t)s->H * s->N != s->D)
        return sn_fail(SN_E_FORMAT, "%.300s: header: %d heads of %d are not the width %d",
                       blob->file->name, (int)s->H, (int)s->N, (int)s->D);
    SN_TRY(sn_blob_floats(blob, "header", 1, &s->eps));
    return sn_blob_positive(blob, "eps", s->eps);
}

static sn_status declare_shape(const sn_blob *blob, const shape *s) {
    sn_build *build = blob->build;
    SN_TRY(sn_build_text(build, "general.architecture", "rwkv7", 5));
    SN_TRY(sn_build_u32(build, "rwkv7.context_length", 1048576)); /* by convention */
    SN_TRY(sn_build_u32(build, "rwkv7.embedding_length", (uint32_t)s->D));
    SN_TRY(sn_build_u32(build, "rwkv7.block_count", (uint32_t)s->layers));
    SN_TRY(sn_build_f32(build, "rwkv7.attention.layer_norm_epsilon", s->eps));
    SN_TRY(sn_build_u32(build, "rwkv7.wkv.head_size", (uint32_t)s->N));
    SN_TRY(sn_build_u32(build, "rwkv7.feed_forward_length", (uint32_t)s->F));
    return sn_build_u32(build, "rwkv7.attention.head_count", 0);
}

/* Informative; those of the last layer, because the first one's value residual is a dummy. */
static sn_status declare_ranks(const sn_blob *blob, const int32_t *ranks) {
    static const char *const names[RANK_COUNT] = {"decay", "iclr", "value_residual_mix", "gate"};
    char key[64];
    for (int i = 0; i < RANK_COUNT; i++) {
        snprintf(key, sizeof key, "rwkv7.attention.%s_lora_rank", names[i]);
        SN_TRY(sn_build_u32(blob->build, key, (uint32_t)ranks[i]));
    }
    return SN_OK;
}

/* ranks: [layers][RANK_COUNT] */
static sn_status read_ranks(sn_blob *blob, const shape *s, int32_t *ranks) {
    static const char *const names[RANK_COUNT] = {"rank of w", "rank of a", "rank of v",
                                                  "rank of g"};
    const size_t n = (size_t)s->layers * RANK_COUNT;
    SN_TRY(sn_blob_ints(blob, n, ranks));
    for (size_t i = 0; i < n; i++)
        SN_TRY(sn_blob_check(blob, names[i % RANK_COUNT], ranks[i], 1, MAX_RANK));
    return declare_ranks(blob, ranks + n - RANK_COUNT);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static sn_status take_tag(sn_blob *blob, const char *name) {
    int32_t tag;
    SN_TRY(sn_blob_ints(blob, 1, &tag));
    if (tag == 0) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': tag %d of a vector is not 0",
                   blob->file->name, name, (int)tag);
}

static sn_status vector(sn_blob *blob, const char *name, uint64_t n) {
    SN_TRY(take_tag(blob, name));
    return sn_blob_vector(blob, name, n);
}

typedef struct layer_cursor {
    sn_blob *blob;
    uint32_t layer;
} layer_cursor;

static sn_status layer_vector(const layer_cursor *c, const char *tensor, uint64_t n) {
    return vector(c->blob, sn_blob_name(c->blob, c->layer, tensor), n);
}

static sn_status layer_matrix(const layer_cursor *c, const char *tensor, uint64_t in,
                              uint64_t out) {
    return sn_blob_tagged(c->blob, sn_blob_name(c->blob, c->layer, tensor), out, in,
                          SN_BLOB_COLUMNS);
}

static sn_status low_rank(const layer_cursor *c, char letter, uint64_t D, uint64_t rank) {
    char tensor[32];
    snprintf(tensor, sizeof tensor, "time_mix_%c1.weight", letter);
    SN_TRY(layer_matrix(c, tensor, D, rank));
    snprintf(tensor, sizeof tensor, "time_mix_%c2.weight", letter);
    return layer_matrix(c, tensor, rank, D);
}

/* Layer 0 has no value residual: its factors are dummies. */
static sn_status value_residual(const layer_cursor *c, uint64_t D, uint64_t rank) {
    if (c->layer > 0) return low_rank(c, 'v', D, rank);
    SN_TRY(sn_blob_skip_tagged(c->blob, "blk.0.time_mix_v1.weight", rank, D));
    return sn_blob_skip_tagged(c->blob, "blk.0.time_mix_v2.weight", D, rank);
}

static sn_status value_bias(const layer_cursor *c, uint64_t D) {
    if (c->layer > 0) return layer_vector(c, "time_mix_v0.weight", D);
    SN_TRY(take_tag(c->blob, "blk.0.time_mix_v0.weight"));
    return sn_blob_skip(c->blob, "blk.0.time_mix_v0.weight", D);
}

static sn_status read_lerp(const layer_cursor *c, uint64_t D) {
    const char *name = sn_blob_name(c->blob, c->layer, "time_mix_lerp_fused.weight");
    const uint64_t dims[4] = {D, 1, 1, 6};
    SN_TRY(take_tag(c->blob, name));
    return sn_blob_array(c->blob, name, 4, dims);
}

static sn_status read_time_mix(const layer_cursor *c, uint64_t D, const int32_t *ranks) {
    SN_TRY(read_lerp(c, D));
    SN_TRY(layer_matrix(c, "time_mix_receptance.weight", D, D));
    SN_TRY(layer_matrix(c, "time_mix_key.weight", D, D));
    SN_TRY(layer_matrix(c, "time_mix_value.weight", D, D));
    SN_TRY(layer_matrix(c, "time_mix_output.weight", D, D));
    SN_TRY(low_rank(c, 'w', D, (uint64_t)ranks[RANK_W]));
    SN_TRY(low_rank(c, 'a', D, (uint64_t)ranks[RANK_A]));
    SN_TRY(value_residual(c, D, (uint64_t)ranks[RANK_V]));
    SN_TRY(low_rank(c, 'g', D, (uint64_t)ranks[RANK_G]));
    SN_TRY(layer_vector(c, "time_mix_w0.weight", D));
    SN_TRY(layer_vector(c, "time_mix_a0.weight", D));
    SN_TRY(value_bias(c, D));
    SN_TRY(layer_vector(c, "time_mix_k_k.weight", D));
    SN_TRY(layer_vector(c, "time_mix_k_a.weight", D));
    SN_TRY(layer_vector(c, "time_mix_r_k.weight", D));
    SN_TRY(layer_vector(c, "time_mix_ln.weight", D));
    return layer_vector(c, "time_mix_ln.bias", D);
}

static sn_status read_layer(const layer_cursor *c, const shape *s, const int32_t *ranks) {
    const uint64_t D = (uint64_t)s->D, F = (uint64_t)s->F;
    SN_TRY(layer_vector(c, "attn_norm.weight", D));
    SN_TRY(layer_vector(c, "attn_norm.bias", D));
    SN_TRY(layer_vector(c, "attn_norm_2.weight", D));
    SN_TRY(layer_vector(c, "attn_norm_2.bias", D));
    SN_TRY(read_time_mix(c, D, ranks));
    SN_TRY(layer_matrix(c, "channel_mix_key.weight", D, F));
    SN_TRY(layer_matrix(c, "channel_mix_value.weight", F, D));
    return layer_vector(c, "channel_mix_lerp_k.weight", D);
}

static sn_status read_tail(sn_blob *blob, const shape *s) {
    const uint64_t D = (uint64_t)s->D, V = (uint64_t)s->vocab;
    SN_TRY(vector(blob, "token_embd_norm.weight", D));
    SN_TRY(vector(blob, "token_embd_norm.bias", D));
    SN_TRY(vector(blob, "output_norm.weight", D));
    SN_TRY(vector(blob, "output_norm.bias", D));
    SN_TRY(take_tag(blob, "token_embd.weight"));
    SN_TRY(sn_blob_matrix(blob, "token_embd.weight", V, D, SN_BLOB_ROWS));
    SN_TRY(sn_blob_tagged(blob, "output.weight", V, D, SN_BLOB_COLUMNS));
    return sn_blob_end(blob);
}

static sn_status read_model(sn_blob *blob, const shape *s, int32_t *ranks) {
    SN_TRY(read_ranks(blob, s, ranks));
    for (uint32_t l = 0; l < (uint32_t)s->layers; l++) {
        const layer_cursor c = {blob, l};
        SN_TRY(read_layer(&c, s, ranks + (size_t)l * RANK_COUNT));
    }
    return read_tail(blob, s);
}

sn_status sn_blob_read_rwkv7(sn_blob *blob) {
    shape s;
    SN_TRY(read_header(blob, &s));
    SN_TRY(declare_shape(blob, &s));
    int32_t *ranks = sn_alloc_array((size_t)s.layers * RANK_COUNT, sizeof *ranks);
    if (!ranks) return SN_E_NOMEM;
    sn_status status = read_model(blob, &s, ranks);
    sn_free(ranks);
    return status;
}
