/*
 * blob_sunnynet.c: SunnyNet's packed fp32 blob. Ten words (magic, V, D, I, R, K, L, group, tied,
 * clamp), then for each layer norms, taps, the matrices as (in, out), 1/H, tanh(a) and b_gain,
 * then eps, the floor of the decay, the last norm, the embedding as rows and the head as (D, V),
 * which is there though tied. docs/formats.md has the table.
 */
#include "blob.h"

#include <stdio.h>
#include <string.h>

#define GROUP 8 /* the only one that a blob can mean */

typedef struct shape {
    int32_t vocab, D, inner, rank, taps, layers, group, tied, clamp;
} shape;

static sn_status check(const sn_blob *blob, const shape *s) {
    SN_TRY(sn_blob_check(blob, "vocabulary", s->vocab, 1, 1 << 24));
    SN_TRY(sn_blob_check(blob, "dim", s->D, 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "inner", s->inner, 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "rank", s->rank, 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "taps", s->taps, 1, 1 << 12));
    SN_TRY(sn_blob_check(blob, "layers", s->layers, 1, 1024));
    SN_TRY(sn_blob_check(blob, "group", s->group, GROUP, GROUP));
    SN_TRY(sn_blob_check(blob, "tied", s->tied, 0, 1));
    SN_TRY(sn_blob_check(blob, "clamp flag", s->clamp, 0, 1));
    if (s->D % GROUP == 0) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: header: dim %d is no multiple of the group, %d",
                   blob->file->name, (int)s->D, GROUP);
}

static sn_status declare_shape(const sn_blob *blob, const shape *s) {
    sn_build *build = blob->build;
    SN_TRY(sn_build_text(build, "general.architecture", "sunnynet", 8));
    SN_TRY(sn_build_u32(build, "sunnynet.block_count", (uint32_t)s->layers));
    SN_TRY(sn_build_u32(build, "sunnynet.embedding_length", (uint32_t)s->D));
    SN_TRY(sn_build_u32(build, "sunnynet.vocab_size", (uint32_t)s->vocab));
    SN_TRY(sn_build_u32(build, "sunnynet.inner_length", (uint32_t)s->inner));
    SN_TRY(sn_build_u32(build, "sunnynet.rank", (uint32_t)s->rank));
    SN_TRY(sn_build_u32(build, "sunnynet.taps", (uint32_t)s->taps));
    return sn_build_u32(build, "sunnynet.group_size", GROUP);
}

/* Tap-major in the blob, channel-major in GGUF. */
static sn_status read_taps(sn_blob *blob, uint32_t layer, const shape *s) {
    const char *name = sn_blob_name(blob, layer, "taps.weight");
    const uint64_t K = (uint64_t)s->taps, D = (uint64_t)s->D, dims[2] = {K, D};
    const uint64_t start = blob->at;
    SN_TRY(sn_blob_skip(blob, name, K * D));
    if (K == 1) return SN_OK; /* no convolution: the floats mean nothing */
    const sn_view view = {.name = name, .type = sn_type_find(SN_TYPE_F32), .n_dims = 2,
                          .dims = {D, K}, .strides = {1, D}, .file = blob->file, .offset = start};
    SN_TRY(sn_store_add(blob->store, &view));
    return sn_build_vector(blob->build, name, sn_store_find(blob->store, name), 2, dims);
}

static sn_status read_norm(sn_blob *blob, uint32_t layer, const char *norm, uint64_t n) {
    char tensor[32];
    const char *const parts[2] = {"weight", "bias"};
    for (int i = 0; i < 2; i++) {
        snprintf(tensor, sizeof tensor, "%s.%s", norm, parts[i]);
        SN_TRY(sn_blob_vector(blob, sn_blob_name(blob, layer, tensor), n));
    }
    return SN_OK;
}

static sn_status read_matrix(sn_blob *blob, uint32_t layer, const char *tensor, uint64_t rows,
                             uint64_t k) {
    return sn_blob_matrix(blob, sn_blob_name(blob, layer, tensor), rows, k, SN_BLOB_COLUMNS);
}

static sn_status read_layer(sn_blob *blob, uint32_t l, const shape *s) {
    const uint64_t D = (uint64_t)s->D, I = (uint64_t)s->inner, R = (uint64_t)s->rank;
    SN_TRY(read_norm(blob, l, "norm_in", D));
    SN_TRY(read_norm(blob, l, "norm_mix", I));
    SN_TRY(read_taps(blob, l, s));
    SN_TRY(read_matrix(blob, l, "map_in.weight", R, D));
    SN_TRY(read_matrix(blob, l, "map_out.weight", 2 * D, R));
    SN_TRY(read_matrix(blob, l, "z.weight", I, D));
    SN_TRY(read_matrix(blob, l, "mix.weight", D, I));
    SN_TRY(read_matrix(blob, l, "feedback.weight", D, D));
    SN_TRY(sn_blob_vector(blob, sn_blob_name(blob, l, "delta.weight"), D));
    SN_TRY(sn_blob_vector(blob, sn_blob_name(blob, l, "wedge.weight"), 1));
    return sn_blob_vector(blob, sn_blob_name(blob, l, "gain.weight"), 1);
}

/*
 * A float whose reciprocal is `floor`, if there is one within 2 ulp of 1 / floor: the blob holds
 * only 1 / h_max, and one written from this model should hold the same.
 */
static float span_limit(float floor) {
    const float nearest = (float)(1.0 / (double)floor);
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    for (uint32_t candidate = bits - 2; candidate <= bits + 2; candidate++) {
        float h_max;
        memcpy(&h_max, &candidate, sizeof h_max);
        if ((float)(1.0 / (double)h_max) == floor) return h_max;
    }
    return nearest;
}

/* eps, 1 / h_max */
static sn_status declare_numbers(const sn_blob *blob, const shape *s, const float numbers[2]) {
    SN_TRY(sn_blob_positive(blob, "eps", numbers[0]));
    SN_TRY(sn_blob_positive(blob, "decay floor", numbers[1]));
    if (numbers[1] > 1.0f || numbers[1] < 1e-30f)
        return sn_fail(SN_E_FORMAT, "%.300s: decay floor %g is outside 1e-30..1",
                       blob->file->name, (double)numbers[1]);
    SN_TRY(sn_build_f32(blob->build, "sunnynet.layer_norm_epsilon", numbers[0]));
    SN_TRY(sn_build_f32(blob->build, "sunnynet.h_max", span_limit(numbers[1])));
    if (!s->clamp) return SN_OK;
    return sn_build_f32(blob->build, "sunnynet.decay_floor", numbers[1]);
}

static sn_status read_tail(sn_blob *blob, const shape *s) {
    const uint64_t D = (uint64_t)s->D, V = (uint64_t)s->vocab;
    float numbers[2];
    SN_TRY(sn_blob_floats(blob, "eps and decay floor", 2, numbers));
    SN_TRY(sn_blob_vector(blob, "output_norm.weight", D));
    SN_TRY(sn_blob_vector(blob, "output_norm.bias", D));
    SN_TRY(sn_blob_matrix(blob, "token_embd.weight", V, D, SN_BLOB_ROWS));
    if (s->tied)
        SN_TRY(sn_blob_skip(blob, "head", V * D)); /* the embedding once more */
    else
        SN_TRY(sn_blob_matrix(blob, "output.weight", V, D, SN_BLOB_COLUMNS));
    SN_TRY(sn_blob_end(blob)); /* a header that lies would make any float of these numbers */
    return declare_numbers(blob, s, numbers);
}

sn_status sn_blob_read_sunnynet(sn_blob *blob) {
    int32_t w[10];
    SN_TRY(sn_blob_ints(blob, 10, w));
    const shape s = {w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]};
    SN_TRY(check(blob, &s));
    SN_TRY(declare_shape(blob, &s));
    for (uint32_t l = 0; l < (uint32_t)s.layers; l++) SN_TRY(read_layer(blob, l, &s));
    return read_tail(blob, &s);
}
