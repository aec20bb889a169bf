/*
 * blob_rwkv7.c: the layout of the packed RWKV-7 blob, version 3: each vector and matrix behind its
 * tag. Matrices lie as fp32 (in, out); in an INT4 blob, those whose inputs are whole groups of 64
 * as INT4 (out, in). docs/formats.md has the table. Layer 0 has no value residual, but the blob has
 * room for one: it gets what the model has there (GGUF files have dummies), else what llama.cpp's
 * converter puts there, layer 0's a0, a1 and a2. No reader uses them.
 */
#include "layout.h"

#include <stdio.h>

#define MAGIC 0x4b57524bu /* "KRWK" */
#define VERSION 3
#define GROUP_NORM_EPS 64e-5f /* the only one that a blob can mean */
#define INT4_GROUP 64

enum { TAG_FP32, TAG_INT4 };

enum { RANK_W, RANK_A, RANK_V, RANK_G, RANK_COUNT };

typedef struct shape {
    uint32_t layers, D, N, F;
    uint64_t vocab;
    float eps;
} shape;

static sn_status read_eps(const sn_blob_layout *layout, shape *s) {
    float group_eps = GROUP_NORM_EPS;
    s->eps = 1e-5f;
    SN_TRY(sn_gguf_get_f32(layout->gguf, "rwkv7.attention.layer_norm_epsilon", false, &s->eps));
    SN_TRY(sn_gguf_get_f32(layout->gguf, "sunnynet.group_norm_epsilon", false, &group_eps));
    if (group_eps == GROUP_NORM_EPS) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: an RWKV-7 blob cannot hold a group norm epsilon of "
                   "%g, only 64e-5", sn_gguf_name(layout->gguf), (double)group_eps);
}

static sn_status read_shape(const sn_blob_layout *layout, shape *s) {
    uint64_t k;
    SN_TRY(sn_layout_size(layout, "rwkv7.block_count", 1024, &s->layers));
    SN_TRY(sn_layout_size(layout, "rwkv7.embedding_length", 1 << 20, &s->D));
    SN_TRY(sn_layout_size(layout, "rwkv7.feed_forward_length", 1 << 22, &s->F));
    SN_TRY(sn_layout_size(layout, "rwkv7.wkv.head_size", 1 << 16, &s->N));
    SN_TRY(read_eps(layout, s));
    if (s->D % s->N)
        return sn_fail(SN_E_FORMAT, "%.300s: width %u is no multiple of the head size %u",
                       sn_gguf_name(layout->gguf), (unsigned)s->D, (unsigned)s->N);
    return sn_layout_shape(layout, "token_embd.weight", &s->vocab, &k);
}

static const char *name_of(char name[64], uint32_t layer, const char *tensor) {
    snprintf(name, 64, "blk.%u.%s", (unsigned)layer, tensor);
    return name;
}

/* The letter of a low-rank pair's tensors: layer 0's v may be missing. */
static char letter_of(const sn_blob_layout *layout, uint32_t layer, int which) {
    char name[64];
    const char letter = "wavg"[which];
    if (letter != 'v' || layer > 0) return letter;
    return sn_gguf_find_tensor(layout->gguf, name_of(name, 0, "time_mix_v1.weight")) ? 'v' : 'a';
}

static const char *factor(const sn_blob_layout *layout, char name[64], uint32_t layer, int which,
                          int part) {
    snprintf(name, 64, "blk.%u.time_mix_%c%d.weight", (unsigned)layer,
             letter_of(layout, layer, which), part);
    return name;
}

static sn_status rank_of(const sn_blob_layout *layout, uint32_t layer, int which, uint64_t *rank) {
    uint64_t k;
    char name[64];
    return sn_layout_shape(layout, factor(layout, name, layer, which, 1), rank, &k);
}

/* ---- items --------------------------------------------------------------------------------- */

static sn_status lay_header(sn_blob_layout *layout, const shape *s) {
    const uint64_t words[10] = {MAGIC, VERSION, s->layers, s->D,     s->N,
                                s->D / s->N, s->F, 0,      s->vocab, layout->int4};
    uint64_t rank;
    for (int i = 0; i < 10; i++) SN_TRY(sn_layout_int(layout, words[i]));
    SN_TRY(sn_layout_float(layout, s->eps));
    for (uint32_t l = 0; l < s->layers; l++)
        for (int which = 0; which < RANK_COUNT; which++) {
            SN_TRY(rank_of(layout, l, which, &rank));
            SN_TRY(sn_layout_int(layout, rank));
        }
    return SN_OK;
}

static sn_status lay_vector(sn_blob_layout *layout, const char *name, uint64_t n) {
    SN_TRY(sn_layout_int(layout, TAG_FP32));
    return sn_layout_vector(layout, name, n);
}

static sn_status lay_matrix(sn_blob_layout *layout, const char *name, uint64_t out, uint64_t in) {
    const bool int4 = layout->int4 && in % INT4_GROUP == 0;
    SN_TRY(sn_layout_int(layout, int4 ? TAG_INT4 : TAG_FP32));
    return (int4 ? sn_layout_int4 : sn_layout_columns)(layout, name, out, in);
}

static sn_status lay_low_rank(sn_blob_layout *layout, uint32_t layer, int which, uint64_t D) {
    char name[64];
    uint64_t rank;
    SN_TRY(rank_of(layout, layer, which, &rank));
    SN_TRY(lay_matrix(layout, factor(layout, name, layer, which, 1), rank, D));
    return lay_matrix(layout, factor(layout, name, layer, which, 2), D, rank);
}

static sn_status lay_vectors(sn_blob_layout *layout, uint32_t layer, const char *const *tensors,
                             uint64_t n) {
    char name[64];
    for (; *tensors; tensors++) SN_TRY(lay_vector(layout, name_of(name, layer, *tensors), n));
    return SN_OK;
}

static sn_status lay_time_mix(sn_blob_layout *layout, uint32_t l, const shape *s) {
    static const char *const square[] = {"time_mix_receptance.weight", "time_mix_key.weight",
                                         "time_mix_value.weight", "time_mix_output.weight"};
    static const char *const rest[] = {"time_mix_k_k.weight", "time_mix_k_a.weight",
                                       "time_mix_r_k.weight", "time_mix_ln.weight",
                                       "time_mix_ln.bias", NULL};
    const uint64_t D = s->D;
    char name[64];
    SN_TRY(lay_vector(layout, name_of(name, l, "time_mix_lerp_fused.weight"), 6 * D));
    for (int i = 0; i < 4; i++) SN_TRY(lay_matrix(layout, name_of(name, l, square[i]), D, D));
    for (int i = 0; i < RANK_COUNT; i++) SN_TRY(lay_low_rank(layout, l, i, D));
    for (int i = 0; i < RANK_G; i++) /* the gate has no bias */
        SN_TRY(lay_vector(layout, factor(layout, name, l, i, 0), D));
    return lay_vectors(layout, l, rest, D);
}

static sn_status lay_layer(sn_blob_layout *layout, uint32_t l, const shape *s) {
    static const char *const norms[] = {"attn_norm.weight", "attn_norm.bias",
                                        "attn_norm_2.weight", "attn_norm_2.bias", NULL};
    char name[64];
    SN_TRY(lay_vectors(layout, l, norms, s->D));
    SN_TRY(lay_time_mix(layout, l, s));
    SN_TRY(lay_matrix(layout, name_of(name, l, "channel_mix_key.weight"), s->F, s->D));
    SN_TRY(lay_matrix(layout, name_of(name, l, "channel_mix_value.weight"), s->D, s->F));
    return lay_vector(layout, name_of(name, l, "channel_mix_lerp_k.weight"), s->D);
}

static sn_status lay_tail(sn_blob_layout *layout, const shape *s) {
    const bool tied = !sn_gguf_find_tensor(layout->gguf, "output.weight");
    SN_TRY(lay_vector(layout, "token_embd_norm.weight", s->D));
    SN_TRY(lay_vector(layout, "token_embd_norm.bias", s->D));
    SN_TRY(lay_vector(layout, "output_norm.weight", s->D));
    SN_TRY(lay_vector(layout, "output_norm.bias", s->D));
    SN_TRY(sn_layout_int(layout, TAG_FP32));
    SN_TRY(sn_layout_rows(layout, "token_embd.weight", s->vocab, s->D));
    return lay_matrix(layout, tied ? "token_embd.weight" : "output.weight", s->vocab, s->D);
}

sn_status sn_layout_rwkv7(sn_blob_layout *layout) {
    shape s;
    SN_TRY(read_shape(layout, &s));
    SN_TRY(lay_header(layout, &s));
    for (uint32_t l = 0; l < s.layers; l++) SN_TRY(lay_layer(layout, l, &s));
    return lay_tail(layout, &s);
}
