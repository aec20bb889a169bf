/*
 * packed.h: the keys that say which tensors of a GGUF file hold panels (docs/formats.md,
 * "Packed files"), read and checked. convert writes them; the loader and convert read them.
 */
#ifndef SN_QUANT_PACKED_H
#define SN_QUANT_PACKED_H

#include "../formats/gguf.h"
#include "panel.h"

#define SN_PACKED_VERSION "sunnynet.panel.version" /* u32: 1, of the layout in panel.h */
#define SN_PACKED_ROWS "sunnynet.panel.rows"       /* u32: SN_PANEL_ROWS */
#define SN_PACKED_NAMES "sunnynet.panel.names"     /* texts: tensors, in the file's order */
#define SN_PACKED_TYPES "sunnynet.panel.types"     /* u32 for each: its ggml type id */
#define SN_PACKED_DIMS "sunnynet.panel.dims"       /* two u32 for each: k, rows */

/* Longest row that is packed: 16 rows must fit into a few MB. */
#define SN_PACKED_MAX_K (1u << 18)

typedef struct sn_packed_tensor {
    const sn_type *type; /* of the matrix; NULL: the tensor is as the file says, not packed */
    uint32_t k, rows;
} sn_packed_tensor;

typedef struct sn_packed {
    uint64_t n_tensors;
    sn_packed_tensor *tensors; /* one for each tensor of the file; NULL: nothing is packed */
} sn_packed;

/*
 * On success every packed tensor is an I8 vector of exactly the bytes that its panels take.
 * A file without the keys is fine: out->tensors is NULL then.
 */
sn_status sn_packed_read(const sn_gguf *gguf, sn_packed *out);

/* The matrix behind tensor `index`, or NULL if it is not packed. */
static inline const sn_packed_tensor *sn_packed_at(const sn_packed *packed, uint64_t index) {
    if (!packed->tensors || !packed->tensors[index].type) return NULL;
    return &packed->tensors[index];
}

/* Bytes of all panels of a matrix. */
static inline uint64_t sn_packed_bytes(const sn_packed_tensor *matrix) {
    uint64_t panels = ((uint64_t)matrix->rows + SN_PANEL_ROWS - 1) / SN_PANEL_ROWS;
    return panels * sn_panel_bytes(matrix->type, matrix->k);
}

void sn_packed_free(sn_packed *packed); /* also of a zeroed struct */

#endif
