/*
 * panel_layout.h: how the types that have panels lie in a file, in the terms that packing needs.
 * A group is 32 codes of one row, as eight words of four codes each, one code a byte: word g
 * holds elements 4g .. 4g + 3. Private to quant/.
 */
#ifndef SN_QUANT_PANEL_LAYOUT_H
#define SN_QUANT_PANEL_LAYOUT_H

#include "types.h"

#define SN_NIBBLES 0x0f0f0f0fu
#define SN_PAIRS 0x03030303u
#define SN_BITS 0x01010101u

/* Most bytes that a block of codes takes in a file: Q6_K's. */
#define SN_BLOCK_BYTES_MAX 210

typedef struct sn_panel_layout {
    uint32_t type;
    uint8_t value_bytes; /* of a plain float; 0: codes and scales as follows */
    uint8_t bits;        /* of a code */
    uint8_t n_halves;    /* scales of a block, 1 or 2 */
    uint8_t half_bytes;  /* of each: 2, f16; 4, I4's f32 */
    uint8_t half_at[2];  /* where they are in the file's block */
    uint8_t low_at;      /* the codes' low bits in the block */
    uint8_t high_at;     /* their upper bits */
    uint8_t n_scales;    /* scale bytes of each group; 0: the f16 scales are all there is */
    void (*read)(const uint8_t *low, const uint8_t *high, unsigned group, uint32_t code[8]);
    void (*write)(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]);
    /* the scale bytes of a block, as the panel holds them, one group after another */
    void (*read_scales)(const uint8_t *block, uint8_t scales[16]);
    void (*write_scales)(const uint8_t scales[16], uint8_t *block);
} sn_panel_layout;

/* NULL if the type has no panels. */
const sn_panel_layout *sn_panel_layout_of(const sn_type *type);

#endif
