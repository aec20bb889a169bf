/*
 * mamba.h: what Mamba-1 and Mamba-2 share: Hugging Face folders (transformers) and those of the
 * mamba_ssm package, whose options have other names and lie partly in ssm_cfg.
 */
#ifndef SN_IMPORT_MAMBA_H
#define SN_IMPORT_MAMBA_H

#include "config.h"
#include "job.h"

#define SN_MIXER "{|model.}backbone.layers.#.mixer."

typedef struct sn_mamba {
    sn_import_job *job;
    sn_source_model cell; /* where options of one layer stand: the config, or its ssm_cfg */
    bool original;        /* mamba_ssm's config */
    bool bias, conv_bias; /* of the projections, of the convolution */
    uint64_t n_layers, width, inner, taps;
} sn_mamba;

/* True for the config of the mamba_ssm package, which does not name its model. */
bool sn_mamba_is_original(const sn_source_model *source);

/* Reads and checks the options that both have, measures layer 0, declares keys and tensors outside
 * the layers. `tied`: whether the head is unless the config says something. */
sn_status sn_mamba_begin(sn_mamba *mamba, sn_import_job *job, bool tied);

/* Norm, convolution and both projections of one layer. */
sn_status sn_mamba_layer(const sn_mamba *mamba, uint32_t layer);

#endif
