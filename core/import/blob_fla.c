/*
 * blob_fla.c: the blobs of DeltaNet, GLA and HGRN2. They share a frame: a header, the layers (norm,
 * mixer, norm, feed-forward), embedding, norm and an untied head. Matrices lie as (out, in); in a
 * file with the INT4 magic each has a tag in front, vectors and what is called plain below never.
 * Unlike the Hugging Face folders they know one form of each model. docs/formats.md has the table.
 */
#include "blob.h"

#include <stdio.h>
#include <string.h>

#define MAGIC_DELTANET_INT4 0x51444e44u
#define MAGIC_GLA_INT4 0x51414c47u
#define MAGIC_HGRN2_INT4 0x51474853u

typedef struct shape {
    const char *architecture;
    bool tagged;
    int32_t layers, D, H, K, V, F; /* K keys and V values per head */
    int32_t vocab, tied;
    float eps;
} shape;

static sn_status check_shape(const sn_blob *blob, const shape *s, int32_t version) {
    if (version != 1)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s blob of version %d (supported: 1)",
                       blob->file->name, s->architecture, (int)version);
    SN_TRY(sn_blob_check(blob, "layers", s->layers, 1, 1024));
    SN_TRY(sn_blob_check(blob, "width", s->D, 1, 1 << 20));
    SN_TRY(sn_blob_check(blob, "heads", s->H, 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "key width", s->K, 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "value width", s->V, 1, 1 << 16));
    SN_TRY(sn_blob_check(blob, "feed-forward width", s->F, 1, 1 << 22));
    SN_TRY(sn_blob_check(blob, "vocabulary", s->vocab, 1, 1 << 24));
    SN_TRY(sn_blob_check(blob, "tied", s->tied, 0, 1));
    return sn_blob_positive(blob, "eps", s->eps);
}

/* The heads' keys and values together must be as wide as the model. */
static sn_status check_square(const sn_blob *blob, const shape *s) {
    if ((int64_t)s->H * s->K == s->D && (int64_t)s->H * s->V == s->D) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: header: %d heads of %d keys and %d values are not the "
                   "width %d", blob->file->name, (int)s->H, (int)s->K, (int)s->V, (int)s->D);
}

/* Our models scale the read-out by 1 / sqrt(K), and so must the blob. */
static sn_status check_scale(const sn_blob *blob, const shape *s, float scale) {
    const double square = (double)scale * (double)scale * (double)s->K;
    if (scale > 0.0f && square > 1.0 - 1e-6 && square < 1.0 + 1e-6) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: header: scale %g is not 1/sqrt of the key width %d",
                   blob->file->name, (double)scale, (int)s->K);
}

static sn_status put(const sn_blob *blob, const shape *s, const char *key, int32_t value) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", s->architecture, key);
    return sn_build_u32(blob->build, name, (uint32_t)value);
}

static sn_status put_float(const sn_blob *blob, const shape *s, const char *key, float value) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", s->architecture, key);
    return sn_build_f32(blob->build, name, value);
}

static sn_status declare_shape(const sn_blob *blob, const shape *s) {
    SN_TRY(sn_build_text(blob->build, "general.architecture", s->architecture,
                         strlen(s->architecture)));
    SN_TRY(put(blob, s, "block_count", s->layers));
    SN_TRY(put(blob, s, "embedding_length", s->D));
    SN_TRY(put(blob, s, "vocab_size", s->vocab));
    SN_TRY(put(blob, s, "feed_forward_length", s->F));
    SN_TRY(put(blob, s, "attention.head_count", s->H));
    SN_TRY(put(blob, s, "attention.key_length", s->K));
    SN_TRY(put(blob, s, "attention.value_length", s->V));
    return put_float(blob, s, "attention.layer_norm_rms_epsilon", s->eps);
}

/* ---- what layers are made of --------------------------------------------------------------- */

typedef struct layer_cursor {
    sn_blob *blob;
    const shape *s;
    uint32_t layer;
} layer_cursor;

static sn_status vector(const layer_cursor *c, const char *tensor, uint64_t n) {
    return sn_blob_vector(c->blob, sn_blob_name(c->blob, c->layer, tensor), n);
}

static sn_status matrix_of(sn_blob *blob, const shape *s, const char *name, uint64_t rows,
                           uint64_t k) {
    if (s->tagged) return sn_blob_tagged(blob, name, rows, k, SN_BLOB_ROWS);
    return sn_blob_matrix(blob, name, rows, k, SN_BLOB_ROWS);
}

static sn_status matrix(const layer_cursor *c, const char *tensor, uint64_t rows, uint64_t k) {
    return matrix_of(c->blob, c->s, sn_blob_name(c->blob, c->layer, tensor), rows, k);
}

static sn_status plain_matrix(const layer_cursor *c, const char *tensor, uint64_t rows,
                              uint64_t k) {
    return sn_blob_matrix(c->blob, sn_blob_name(c->blob, c->layer, tensor), rows, k, SN_BLOB_ROWS);
}

static sn_status convolution(const layer_cursor *c, const char *tensor, uint64_t width,
                             uint64_t n) {
    const uint64_t dims[2] = {width, n};
    return sn_blob_array(c->blob, sn_blob_name(c->blob, c->layer, tensor), 2, dims);
}

static sn_status feed_forward(const layer_cursor *c) {
    const uint64_t D = (uint64_t)c->s->D, F = (uint64_t)c->s->F;
    SN_TRY(vector(c, "ffn_norm.weight", D));
    SN_TRY(matrix(c, "ffn_gate.weight", F, D));
    SN_TRY(matrix(c, "ffn_up.weight", F, D));
    return matrix(c, "ffn_down.weight", D, F);
}

static sn_status read_tail(sn_blob *blob, const shape *s) {
    const uint64_t D = (uint64_t)s->D, vocab = (uint64_t)s->vocab;
    SN_TRY(sn_blob_matrix(blob, "token_embd.weight", vocab, D, SN_BLOB_ROWS));
    SN_TRY(sn_blob_vector(blob, "output_norm.weight", D));
    if (!s->tied) SN_TRY(matrix_of(blob, s, "output.weight", vocab, D));
    return sn_blob_end(blob);
}

/* ---- DeltaNet ------------------------------------------------------------------------------ */

static sn_status deltanet_layer(const layer_cursor *c, uint64_t width) {
    const uint64_t D = (uint64_t)c->s->D;
    SN_TRY(vector(c, "attn_norm.weight", D));
    SN_TRY(matrix(c, "attn_q.weight", D, D));
    SN_TRY(matrix(c, "attn_k.weight", D, D));
    SN_TRY(matrix(c, "attn_v.weight", D, D));
    SN_TRY(matrix(c, "attn_output.weight", D, D));
    SN_TRY(convolution(c, "attn_q_conv.weight", width, D));
    SN_TRY(convolution(c, "attn_k_conv.weight", width, D));
    SN_TRY(convolution(c, "attn_v_conv.weight", width, D));
    SN_TRY(vector(c, "attn_head_norm.weight", (uint64_t)c->s->V));
    SN_TRY(plain_matrix(c, "attn_beta.weight", (uint64_t)c->s->H, D));
    return feed_forward(c);
}

sn_status sn_blob_read_deltanet(sn_blob *blob) {
    int32_t w[8], more[3]; /* vocabulary, width of the convolutions, tied */
    float eps;
    SN_TRY(sn_blob_ints(blob, 8, w));
    SN_TRY(sn_blob_floats(blob, "header", 1, &eps));
    SN_TRY(sn_blob_ints(blob, 3, more));
    const shape s = {.architecture = "deltanet", .tagged = (uint32_t)w[0] == MAGIC_DELTANET_INT4,
                     .layers = w[2], .D = w[3], .H = w[4], .K = w[5], .V = w[6], .F = w[7],
                     .vocab = more[0], .tied = more[2], .eps = eps};
    SN_TRY(check_shape(blob, &s, w[1]));
    SN_TRY(check_square(blob, &s));
    SN_TRY(sn_blob_check(blob, "convolution width", more[1], 1, 1 << 12));
    SN_TRY(declare_shape(blob, &s));
    SN_TRY(put(blob, &s, "conv_kernel", more[1]));
    SN_TRY(sn_build_text(blob->build, "deltanet.qk_activation", "silu", 4));
    SN_TRY(sn_build_text(blob->build, "deltanet.qk_norm", "l2", 2));
    for (uint32_t l = 0; l < (uint32_t)s.layers; l++) {
        const layer_cursor c = {blob, &s, l};
        SN_TRY(deltanet_layer(&c, (uint64_t)more[1]));
    }
    return read_tail(blob, &s);
}

/* ---- GLA ----------------------------------------------------------------------------------- */

static sn_status gla_layer(const layer_cursor *c, uint64_t rank) {
    const uint64_t D = (uint64_t)c->s->D, keys = (uint64_t)c->s->H * (uint64_t)c->s->K;
    const uint64_t values = (uint64_t)c->s->H * (uint64_t)c->s->V;
    SN_TRY(vector(c, "attn_norm.weight", D));
    SN_TRY(matrix(c, "attn_q.weight", keys, D));
    SN_TRY(matrix(c, "attn_k.weight", keys, D));
    SN_TRY(matrix(c, "attn_v.weight", values, D));
    SN_TRY(matrix(c, "attn_output.weight", D, values));
    SN_TRY(matrix(c, "attn_decay_a.weight", rank, D));
    SN_TRY(matrix(c, "attn_decay_b.weight", keys, rank));
    SN_TRY(vector(c, "attn_decay_b.bias", keys));
    SN_TRY(matrix(c, "attn_gate.weight", values, D));
    SN_TRY(vector(c, "attn_head_norm.weight", (uint64_t)c->s->V));
    return feed_forward(c);
}

/* Both with four floats and five words after the first eight. */
static sn_status read_long_header(sn_blob *blob, const char *architecture, uint32_t int4_magic,
                                  int32_t w[8], float f[4], int32_t more[5], shape *s) {
    SN_TRY(sn_blob_ints(blob, 8, w));
    SN_TRY(sn_blob_floats(blob, "header", 4, f));
    SN_TRY(sn_blob_ints(blob, 5, more));
    *s = (shape){.architecture = architecture, .tagged = (uint32_t)w[0] == int4_magic,
                 .layers = w[2], .D = w[3], .H = w[4], .K = w[5], .V = w[6], .F = more[1],
                 .vocab = more[0], .tied = more[2], .eps = f[0]};
    SN_TRY(check_shape(blob, s, w[1]));
    SN_TRY(check_scale(blob, s, f[1]));
    return declare_shape(blob, s);
}

static sn_status declare_gla(const sn_blob *blob, const shape *s, float normalizer, float clamp,
                             int32_t clamped) {
    SN_TRY(sn_blob_positive(blob, "header: gate normaliser", normalizer));
    SN_TRY(sn_blob_check(blob, "clamp flag", clamped, 0, 1));
    SN_TRY(put_float(blob, s, "gate_normalizer", normalizer));
    if (!clamped) return SN_OK;
    if (clamp <= 0.0f && clamp >= -3.402823466e38f) return put_float(blob, s, "clamp_min", clamp);
    return sn_fail(SN_E_FORMAT, "%.300s: header: clamp_min %g is not a finite number below zero",
                   blob->file->name, (double)clamp);
}

sn_status sn_blob_read_gla(sn_blob *blob) {
    int32_t w[8], more[5];
    float f[4]; /* eps, scale, normaliser, clamp_min */
    shape s;
    SN_TRY(read_long_header(blob, "gla", MAGIC_GLA_INT4, w, f, more, &s));
    SN_TRY(sn_blob_check(blob, "rank", w[7], 1, 1 << 16));
    SN_TRY(declare_gla(blob, &s, f[2], f[3], more[3]));
    for (uint32_t l = 0; l < (uint32_t)s.layers; l++) {
        const layer_cursor c = {blob, &s, l};
        SN_TRY(gla_layer(&c, (uint64_t)w[7]));
    }
    return read_tail(blob, &s);
}

/* ---- HGRN2 --------------------------------------------------------------------------------- */

/* Layer 0 has no lower bound whatever the file holds there; without the flag none has. */
static sn_status lower_bound(const layer_cursor *c, bool bounded) {
    const uint64_t D = (uint64_t)c->s->D;
    if (bounded && c->layer > 0) return vector(c, "attn_lower_bound.weight", D);
    return sn_blob_skip(c->blob, "lower bound", D);
}

static sn_status hgrn2_layer(const layer_cursor *c, bool bounded) {
    const uint64_t D = (uint64_t)c->s->D;
    SN_TRY(lower_bound(c, bounded));
    SN_TRY(vector(c, "attn_norm.weight", D));
    SN_TRY(matrix(c, "attn_q.weight", D, D));
    SN_TRY(matrix(c, "attn_forget.weight", D, D));
    SN_TRY(matrix(c, "attn_v.weight", D, D));
    SN_TRY(matrix(c, "attn_output.weight", D, D));
    SN_TRY(vector(c, "attn_out_norm.weight", D));
    return feed_forward(c);
}

sn_status sn_blob_read_hgrn2(sn_blob *blob) {
    int32_t w[8], more[5];
    float f[4]; /* eps, scale, nothing, whether there are lower bounds */
    shape s;
    SN_TRY(read_long_header(blob, "hgrn2", MAGIC_HGRN2_INT4, w, f, more, &s));
    SN_TRY(check_square(blob, &s));
    if (f[3] != 0.0f && f[3] != 1.0f)
        return sn_fail(SN_E_FORMAT, "%.300s: header: lower-bound flag %g is neither 0 nor 1",
                       blob->file->name, (double)f[3]);
    for (uint32_t l = 0; l < (uint32_t)s.layers; l++) {
        const layer_cursor c = {blob, &s, l};
        SN_TRY(hgrn2_layer(&c, f[3] != 0.0f));
    }
    return read_tail(blob, &s);
}
