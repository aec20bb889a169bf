/*
 * fla.h: what the folders of the flash-linear-attention library share (GLA, DeltaNet, Gated
 * DeltaNet, HGRN2): embedding, norms, feed-forward network, projections with short convolutions.
 */
#ifndef SN_IMPORT_FLA_H
#define SN_IMPORT_FLA_H

#include "config.h"
#include "job.h"

#define SN_FLA_ATTN "model.layers.#.attn."

typedef struct sn_fla_folder {
    sn_import_job *job;
    uint64_t n_layers, width;
    uint64_t n_heads, key, value; /* channels a head */
    uint32_t taps;                /* 0: no short convolutions */
    bool affine;                  /* false: norms of heads may lack their weights */
} sn_fla_folder;

/* Options, keys and tensors outside the layers. `n_layers` is what the kind has by default. */
sn_status sn_fla_folder_begin(sn_fla_folder *f, sn_import_job *job, uint32_t n_layers);

/* Reads use_short_conv (default given) and conv_size, and declares the key. */
sn_status sn_fla_folder_conv(sn_fla_folder *f, bool by_default);

/* int(width expand) / n_heads, as in PyTorch; SN_E_FORMAT if that is no whole number. */
sn_status sn_fla_per_head(const sn_fla_folder *f, const char *option, double expand,
                          uint64_t *channels);

/* Keys of heads, from the fields. */
sn_status sn_fla_folder_heads(const sn_fla_folder *f);

/* Norms and feed-forward network of a layer. */
sn_status sn_fla_folder_layer(const sn_fla_folder *f, uint32_t layer);

/* A matrix (rows, width), "attn.<from>_proj.weight", and "attn.<from>_conv1d" if there are
 * convolutions, as "<target>.weight", "<target>_conv.weight", "<target>_conv.bias". */
sn_status sn_fla_folder_projection(const sn_fla_folder *f, uint32_t layer, const char *from,
                                   const char *target, uint64_t rows);

/* A matrix of the attention block with its shape checked. */
sn_status sn_fla_folder_matrix(const sn_fla_folder *f, uint32_t layer, const char *pattern,
                               const char *target, uint64_t rows, uint64_t k);

/* A norm's n weights; ones if it has none and need not have them (`affine`). */
sn_status sn_fla_folder_norm(const sn_fla_folder *f, uint32_t layer, const char *pattern,
                             const char *target, uint64_t n);

#endif
