/*
 * blob_mamba2.c: the fp32 Mamba-2 blob. Eight words (magic, version, L, D, heads H, head width P,
 * state N, groups G), eps, vocabulary, convolution width, tied; then, untagged, the layers and the
 * tail. Matrices lie as (out, in). docs/formats.md has the table.
 */
#include "blob.h"

typedef struct shape {
    int32_t layers, D, H, P, N, G, vocab, W, tied;
    float eps;
    uint64_t E, C; /* H P; channels of the convolution, E + 2 G N */
} shape;

static sn_status read_header(sn_blob *blob, shape *s) {
    int32_t w[8], more[3];
    SN_TRY(sn_blob_ints(blob, 8, w));
    SN_TRY(sn_blob_floats(blob, "header", 1, &s->eps));
    SN_TRY(sn_blob_ints(blob, 3, more));
    if (w[1] != 1)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: Mamba-2 blob of version %d (supported: 1)",
                       blob->file->name, (int)w[1]);
    SN_TRY(sn_blob_check(blob, "layers", s->layers = w[2], 1, 1024));
    SN_TRY(sn_blob_check(blob, "width", s->D = w[3], 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "heads", s->H = w[4], 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "head width", s->P = w[5], 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "state size", s->N = w[6], 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "groups", s->G = w[7], 1, s->H));
    SN_TRY(sn_blob_positive(blob, "eps", s->eps));
    SN_TRY(sn_blob_check(blob, "vocabulary", s->vocab = more[0], 1, 1 << 24));
    SN_TRY(sn_blob_check(blob, "convolution width", s->W = more[1], 1, 1 << 12));
    SN_TRY(sn_blob_check(blob, "tied", s->tied = more[2], 0, 1));
    if (s->H % s->G)
        return sn_fail(SN_E_FORMAT, "%.300s: header: %d heads in %d groups", blob->file->name,
                       (int)s->H, (int)s->G);
    s->E = (uint64_t)s->H * (uint64_t)s->P;
    s->C = s->E + 2 * (uint64_t)s->G * (uint64_t)s->N;
    return SN_OK;
}

static sn_status declare_shape(const sn_blob *blob, const shape *s) {
    sn_build *build = blob->build;
    if (s->E > UINT32_MAX)
        return sn_fail(SN_E_FORMAT, "%.300s: header: %d heads of %d", blob->file->name,
                       (int)s->H, (int)s->P);
    SN_TRY(sn_build_text(build, "general.architecture", "mamba2", 6));
    SN_TRY(sn_build_u32(build, "mamba2.context_length", 1048576)); /* by convention */
    SN_TRY(sn_build_u32(build, "mamba2.embedding_length", (uint32_t)s->D));
    SN_TRY(sn_build_u32(build, "mamba2.feed_forward_length", 0));
    SN_TRY(sn_build_u32(build, "mamba2.attention.head_count", 0));
    SN_TRY(sn_build_u32(build, "mamba2.block_count", (uint32_t)s->layers));
    SN_TRY(sn_build_u32(build, "mamba2.ssm.conv_kernel", (uint32_t)s->W));
    SN_TRY(sn_build_u32(build, "mamba2.ssm.inner_size", (uint32_t)s->E));
    SN_TRY(sn_build_u32(build, "mamba2.ssm.state_size", (uint32_t)s->N));
    SN_TRY(sn_build_u32(build, "mamba2.ssm.time_step_rank", (uint32_t)s->H));
    SN_TRY(sn_build_u32(build, "mamba2.ssm.group_count", (uint32_t)s->G));
    return sn_build_f32(build, "mamba2.attention.layer_norm_rms_epsilon", s->eps);
}

/* A = -exp(A_log), in binary64 and rounded once. */
static sn_status read_decay(sn_blob *blob, uint32_t layer, const shape *s) {
    const char *name = sn_blob_name(blob, layer, "ssm_a");
    const uint64_t dims[2] = {1, (uint64_t)s->H};
    const size_t H = (size_t)s->H;
    float *a = sn_alloc_array(H, sizeof *a);
    if (!a) return SN_E_NOMEM;
    sn_status status = sn_blob_floats(blob, name, H, a);
    for (size_t h = 0; h < H && status == SN_OK; h++) a[h] = (float)-sn_exp64((double)a[h]);
    if (status == SN_OK) status = sn_build_values(blob->build, name, a, 2, dims);
    sn_free(a);
    return status;
}

static sn_status read_layer(sn_blob *blob, uint32_t l, const shape *s) {
    const uint64_t D = (uint64_t)s->D, H = (uint64_t)s->H, W = (uint64_t)s->W, G = (uint64_t)s->G;
    const uint64_t conv[2] = {W, s->C}, skip[2] = {1, H}, norm[2] = {s->E / G, G};
    SN_TRY(sn_blob_vector(blob, sn_blob_name(blob, l, "attn_norm.weight"), D));
    SN_TRY(sn_blob_matrix(blob, sn_blob_name(blob, l, "ssm_in.weight"), s->E + s->C + H, D,
                          SN_BLOB_ROWS));
    SN_TRY(sn_blob_array(blob, sn_blob_name(blob, l, "ssm_conv1d.weight"), 2, conv));
    SN_TRY(sn_blob_vector(blob, sn_blob_name(blob, l, "ssm_conv1d.bias"), s->C));
    SN_TRY(read_decay(blob, l, s));
    SN_TRY(sn_blob_array(blob, sn_blob_name(blob, l, "ssm_d"), 2, skip));
    SN_TRY(sn_blob_vector(blob, sn_blob_name(blob, l, "ssm_dt.bias"), H));
    SN_TRY(sn_blob_array(blob, sn_blob_name(blob, l, "ssm_norm.weight"), 2, norm));
    return sn_blob_matrix(blob, sn_blob_name(blob, l, "ssm_out.weight"), D, s->E, SN_BLOB_ROWS);
}

sn_status sn_blob_read_mamba2(sn_blob *blob) {
    shape s;
    SN_TRY(read_header(blob, &s));
    SN_TRY(declare_shape(blob, &s));
    const uint64_t D = (uint64_t)s.D, V = (uint64_t)s.vocab;
    for (uint32_t l = 0; l < (uint32_t)s.layers; l++) SN_TRY(read_layer(blob, l, &s));
    SN_TRY(sn_blob_matrix(blob, "token_embd.weight", V, D, SN_BLOB_ROWS));
    SN_TRY(sn_blob_vector(blob, "output_norm.weight", D));
    if (!s.tied) SN_TRY(sn_blob_matrix(blob, "output.weight", V, D, SN_BLOB_ROWS));
    return sn_blob_end(blob);
}
