/*
 * types.h: the ggml tensor types and one of the seed's: names, block shapes, exact decoding to
 * float32 and, for the types that convert writes, encoding. Layouts and formulas: docs/formats.md.
 */
#ifndef SN_QUANT_TYPES_H
#define SN_QUANT_TYPES_H

#include "../memory.h"

/* ids as GGUF files hold them */
typedef enum sn_type_id {
    SN_TYPE_F32 = 0, SN_TYPE_F16 = 1, SN_TYPE_Q4_0 = 2, SN_TYPE_Q4_1 = 3, SN_TYPE_Q5_0 = 6,
    SN_TYPE_Q5_1 = 7, SN_TYPE_Q8_0 = 8, SN_TYPE_Q2_K = 10, SN_TYPE_Q3_K = 11, SN_TYPE_Q4_K = 12,
    SN_TYPE_Q5_K = 13, SN_TYPE_Q6_K = 14, SN_TYPE_IQ4_NL = 20, SN_TYPE_IQ4_XS = 23,
    SN_TYPE_I8 = 24, SN_TYPE_BF16 = 30, SN_TYPE_TQ1_0 = 34, SN_TYPE_TQ2_0 = 35,
    SN_TYPE_MXFP4 = 39,
    /* not ggml's: the INT4 of packed blobs, which no GGUF file holds */
    SN_TYPE_I4 = 0x10004
} sn_type_id;

#define SN_TYPE_PRIVATE 0x10000u /* ids from here on are only found in streams of our own */

typedef struct sn_type {
    uint32_t id;
    const char *name;     /* "Q4_K" */
    uint32_t block;       /* elements per block */
    uint32_t block_bytes;
    /* n elements (a multiple of block) at src to float32; NULL: known but not computable here */
    void (*decode)(const uint8_t *src, float *dst, size_t n);
    /* the way back; NULL: convert does not write this type. Inputs are finite. */
    void (*encode)(const float *src, uint8_t *dst, size_t n);
    /* false if a block holds a NaN or infinity (scales; for floats, the values) */
    bool (*finite)(const uint8_t *src, size_t n);
} sn_type;

/* True if no GGUF file may hold the type. */
static inline bool sn_type_is_private(const sn_type *type) {
    return type->id >= SN_TYPE_PRIVATE;
}

/* NULL if the id is not in the table. Types that are known by name only have decode == NULL. */
const sn_type *sn_type_find(uint32_t id);

/* By name in either case, "q8_0"; NULL if unknown. */
const sn_type *sn_type_by_name(const char *name);

/* Equal but for the case of ASCII letters. */
bool sn_type_same_name(const char *a, const char *b);

/* Bytes of n elements; n must be a multiple of the block. */
static inline uint64_t sn_type_bytes(const sn_type *type, uint64_t n) {
    return n / type->block * type->block_bytes;
}

/* IEEE half and bfloat16 bits; exact one way, round to nearest even (NaN stays) the other. */
float sn_f16_to_f32(uint16_t half);
uint16_t sn_f32_to_f16(float value);
float sn_bf16_to_f32(uint16_t half);
uint16_t sn_f32_to_bf16(float value);

#endif
