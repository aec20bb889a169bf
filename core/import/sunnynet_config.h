/*
 * sunnynet_config.h: the configuration of a SunnyNet checkpoint, read and checked. A switch that
 * is not known is refused by name: it would be another model.
 */
#ifndef SN_IMPORT_SUNNYNET_CONFIG_H
#define SN_IMPORT_SUNNYNET_CONFIG_H

#include "build.h"

typedef enum sn_sunnynet_switch {
    SN_DECAY_GATE, SN_CIRCULANT, SN_LOCAL_TAPS, SN_CURRENT, SN_RESIDUAL, SN_STATE_NORM,
    SN_STATE_MUL, SN_H_NORM, SN_ASSOC, SN_SWITCH_COUNT
} sn_sunnynet_switch;

typedef struct sn_sunnynet_config {
    uint32_t vocab, D, inner, rank, layers;
    uint32_t taps;                 /* at least 1, which means no convolution */
    uint32_t slots, values, every; /* of the associative memory: on each layer l, l % every == 0 */
    double h_min, h_max;
    bool tied;
    bool on[SN_SWITCH_COUNT];
} sn_sunnynet_config;

/* `name` is the file, for error texts; `object` may be NULL: then there is no config. */
sn_status sn_sunnynet_read_config(const char *name, const sn_json *object,
                                  sn_sunnynet_config *config);

/* As keys, architecture included. */
sn_status sn_sunnynet_declare_config(const sn_sunnynet_config *config, sn_build *build);

#endif
