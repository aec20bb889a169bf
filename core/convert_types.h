/*
 * convert_types.h: which type each tensor takes when a model is converted (docs/formats.md,
 * "convert").
 */
#ifndef SN_CORE_CONVERT_TYPES_H
#define SN_CORE_CONVERT_TYPES_H

#include "load.h"
#include "quant/types.h"

/* What people ask for by name: one type, or several that go together. */
typedef struct sn_mix {
    const char *name;
    sn_type_id most;     /* of the matrices without a rule of their own */
    sn_type_id carry;    /* of those that write into the state or back into the residual stream */
    sn_type_id head;     /* of the output, or of the embedding that serves as one */
    uint32_t file_type;  /* llama.cpp's number of it, general.file_type */
} sn_mix;

/* By name in either case; *mix is NULL if name is. SN_E_UNSUPPORTED lists what there is. */
sn_status sn_mix_find(const char *name, const sn_mix **mix);

/* True if there are quantised types in it. */
bool sn_mix_quantises(const sn_mix *mix);

typedef struct sn_mix_tensor {
    const char *name;
    sn_role role;
    const sn_type *source;
    uint64_t k; /* elements of a row */
    bool tied;  /* the model has no output of its own */
} sn_mix_tensor;

/* The type that the tensor takes; types that cannot be decoded stay. */
const sn_type *sn_mix_type(const sn_mix *mix, const sn_mix_tensor *tensor);

/* True for the small matrices that no quantised type is good enough for. */
bool sn_mix_spares(const char *name);

#endif
