/*
 * rwkv7.h: what the two ways of keeping RWKV-7 share: BlinkDL's names (rwkv7.c) and those of fla
 * (rwkv7_fla.c).
 */
#ifndef SN_IMPORT_RWKV7_H
#define SN_IMPORT_RWKV7_H

#include "job.h"

typedef struct sn_rwkv7_sizes {
    uint64_t n_layers, width, n_ffn, head_size;
    double norm_eps, group_norm_eps;
} sn_rwkv7_sizes;

/* The keys; ranks are those of the low-rank pairs as declared. */
sn_status sn_rwkv7_keys(sn_import_job *job, const sn_rwkv7_sizes *sizes);

/* blk.N.time_mix_lerp_fused: the six vectors r, w, k, v, a, g one after the other. patterns[6]
 * are in that order. */
sn_status sn_rwkv7_lerp(sn_import_job *job, const char *const *patterns, uint32_t layer,
                        uint64_t width);

/* blk.N.time_mix_<z>1 (rank, width) and _<z>2 (width, rank). Layer 0 gets those of `a` again as
 * v: nobody reads them there, but llama.cpp wants them to exist. */
sn_status sn_rwkv7_low_rank(sn_import_job *job, char z, uint32_t layer, const sn_view *down,
                            const sn_view *up, uint64_t width);

/* blk.N.time_mix_<z>0, with the same addition. */
sn_status sn_rwkv7_bias(sn_import_job *job, char z, uint32_t layer, const sn_view *bias);

#endif
