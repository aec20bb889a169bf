/*
 * blob_sunnynet.c: the layout of SunnyNet's packed fp32 blob, byte for byte that of the origin's
 * exporter; docs/formats.md has the table. The blob has no place for anything but the default
 * model, and its reader knows groups of 8 only: everything else is refused by name.
 */
#include "layout.h"

#include <stdio.h>

#define MAGIC 0x4e4e5355u /* "USNN" */
#define GROUP 8

typedef struct shape {
    uint32_t layers, D, inner, rank, taps, vocab;
    bool tied, clamped;
    float eps, floor; /* 1 / h_max */
} shape;

/* ---- what the blob cannot hold ------------------------------------------------------------- */

static sn_status cannot_hold(const sn_blob_layout *layout, const char *what) {
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: a SunnyNet blob cannot hold %s",
                   sn_gguf_name(layout->gguf), what);
}

static sn_status check_switches(const sn_blob_layout *layout) {
    static const struct {
        const char *key;
        bool fallback;
    } switches[] = {
        {"sunnynet.decay_gate", true}, {"sunnynet.local_taps", true},
        {"sunnynet.current", true},    {"sunnynet.residual", true},
        {"sunnynet.state_norm", false}, {"sunnynet.state_mul", false},
        {"sunnynet.h_norm", false},
    };
    char what[64];
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        bool value = switches[i].fallback;
        SN_TRY(sn_gguf_get_bool(layout->gguf, switches[i].key, false, &value));
        if (value == switches[i].fallback) continue;
        snprintf(what, sizeof what, "%s = %s", switches[i].key + sizeof "sunnynet." - 1,
                 value ? "true" : "false");
        return cannot_hold(layout, what);
    }
    return SN_OK;
}

static sn_status check_memory(const sn_blob_layout *layout, uint32_t layers) {
    char name[48];
    for (uint32_t l = 0; l < layers; l++) {
        snprintf(name, sizeof name, "blk.%u.assoc_mix.weight", (unsigned)l);
        if (sn_gguf_find_tensor(layout->gguf, name))
            return cannot_hold(layout, "assoc = true (an associative memory)");
    }
    return SN_OK;
}

static sn_status check_group(const sn_blob_layout *layout) {
    uint32_t group = 0;
    char what[48];
    SN_TRY(sn_layout_size(layout, "sunnynet.group_size", 1 << 20, &group));
    if (group == GROUP) return SN_OK;
    snprintf(what, sizeof what, "groups of %u, only of %d", (unsigned)group, GROUP);
    return cannot_hold(layout, what);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static sn_status read_floor(const sn_blob_layout *layout, shape *s) {
    float h_max = 0.0f;
    s->clamped = sn_gguf_find(layout->gguf, "sunnynet.decay_floor") != NULL;
    if (s->clamped)
        return sn_gguf_get_f32(layout->gguf, "sunnynet.decay_floor", true, &s->floor);
    SN_TRY(sn_gguf_get_f32(layout->gguf, "sunnynet.h_max", true, &h_max));
    if (!(h_max > 0.0f))
        return sn_fail(SN_E_FORMAT, "%.300s: key 'sunnynet.h_max': %g is not above zero",
                       sn_gguf_name(layout->gguf), (double)h_max);
    s->floor = (float)(1.0 / (double)h_max);
    return SN_OK;
}

static sn_status read_shape(const sn_blob_layout *layout, shape *s) {
    uint64_t vocab, k;
    SN_TRY(sn_layout_size(layout, "sunnynet.block_count", 1024, &s->layers));
    SN_TRY(sn_layout_size(layout, "sunnynet.embedding_length", 1 << 20, &s->D));
    SN_TRY(sn_layout_size(layout, "sunnynet.inner_length", 1 << 20, &s->inner));
    SN_TRY(sn_layout_size(layout, "sunnynet.rank", 1 << 20, &s->rank));
    SN_TRY(sn_layout_size(layout, "sunnynet.taps", 1 << 12, &s->taps));
    SN_TRY(check_switches(layout));
    SN_TRY(check_memory(layout, s->layers));
    SN_TRY(check_group(layout));
    s->eps = (float)(0.02 * 0.02 + 1e-5);
    SN_TRY(sn_gguf_get_f32(layout->gguf, "sunnynet.layer_norm_epsilon", false, &s->eps));
    SN_TRY(read_floor(layout, s));
    SN_TRY(sn_layout_shape(layout, "token_embd.weight", &vocab, &k));
    s->tied = !sn_gguf_find_tensor(layout->gguf, "output.weight");
    s->vocab = vocab <= INT32_MAX ? (uint32_t)vocab : 0; /* then no tensor has its shape */
    return SN_OK;
}

/* ---- items --------------------------------------------------------------------------------- */

static sn_status lay_header(sn_blob_layout *layout, const shape *s) {
    const uint32_t words[10] = {MAGIC,   s->vocab,  s->D,  s->inner, s->rank,
                                s->taps, s->layers, GROUP, s->tied,  s->clamped};
    for (int i = 0; i < 10; i++) SN_TRY(sn_layout_int(layout, words[i]));
    return SN_OK;
}

static const char *name_of(char name[48], uint32_t layer, const char *tensor) {
    snprintf(name, 48, "blk.%u.%s", (unsigned)layer, tensor);
    return name;
}

/* Without a convolution the origin's reader skips D floats. */
static sn_status lay_taps(sn_blob_layout *layout, uint32_t layer, const shape *s) {
    char name[48];
    if (s->taps == 1) return sn_layout_zeros(layout, s->D);
    return sn_layout_columns(layout, name_of(name, layer, "taps.weight"), s->D, s->taps);
}

static sn_status lay_layer(sn_blob_layout *layout, uint32_t l, const shape *s) {
    const uint64_t D = s->D, I = s->inner, R = s->rank;
    char n[48];
    SN_TRY(sn_layout_vector(layout, name_of(n, l, "norm_in.weight"), D));
    SN_TRY(sn_layout_vector(layout, name_of(n, l, "norm_in.bias"), D));
    SN_TRY(sn_layout_vector(layout, name_of(n, l, "norm_mix.weight"), I));
    SN_TRY(sn_layout_vector(layout, name_of(n, l, "norm_mix.bias"), I));
    SN_TRY(lay_taps(layout, l, s));
    SN_TRY(sn_layout_columns(layout, name_of(n, l, "map_in.weight"), R, D));
    SN_TRY(sn_layout_columns(layout, name_of(n, l, "map_out.weight"), 2 * D, R));
    SN_TRY(sn_layout_columns(layout, name_of(n, l, "z.weight"), I, D));
    SN_TRY(sn_layout_columns(layout, name_of(n, l, "mix.weight"), D, I));
    SN_TRY(sn_layout_columns(layout, name_of(n, l, "feedback.weight"), D, D));
    SN_TRY(sn_layout_vector(layout, name_of(n, l, "delta.weight"), D));
    SN_TRY(sn_layout_vector(layout, name_of(n, l, "wedge.weight"), 1));
    return sn_layout_vector(layout, name_of(n, l, "gain.weight"), 1);
}

static sn_status lay_tail(sn_blob_layout *layout, const shape *s) {
    SN_TRY(sn_layout_float(layout, s->eps));
    SN_TRY(sn_layout_float(layout, s->floor));
    SN_TRY(sn_layout_vector(layout, "output_norm.weight", s->D));
    SN_TRY(sn_layout_vector(layout, "output_norm.bias", s->D));
    SN_TRY(sn_layout_rows(layout, "token_embd.weight", s->vocab, s->D));
    return sn_layout_columns(layout, s->tied ? "token_embd.weight" : "output.weight", s->vocab,
                             s->D);
}

sn_status sn_layout_sunnynet(sn_blob_layout *layout) {
    shape s;
    SN_TRY(read_shape(layout, &s));
    SN_TRY(lay_header(layout, &s));
    for (uint32_t l = 0; l < s.layers; l++) SN_TRY(lay_layer(layout, l, &s));
    return lay_tail(layout, &s);
}
