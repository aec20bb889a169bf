/*
 * gguf_layout.h: what a GGUF file looks like, for its reader and its writer: limits, value
 * sizes, little-endian words. Private to formats/.
 */
#ifndef SN_FORMATS_GGUF_LAYOUT_H
#define SN_FORMATS_GGUF_LAYOUT_H

#include "gguf.h"

#define GGUF_FIXED_BYTES 24        /* magic, version, two counts */
#define GGUF_MIN_KEY_BYTES 13      /* length, no text, kind, one byte */
#define GGUF_MIN_INFO_BYTES 24     /* length, no text, no dimension, type, offset */
#define GGUF_NAME_BYTES 64         /* of a tensor, with its NUL */
#define GGUF_MAX_TENSORS 262144
#define GGUF_ALIGNMENT 32          /* unless general.alignment says otherwise */
#define GGUF_MAX_ALIGNMENT 1048576
#define GGUF_MAX_HEADER ((uint64_t)1 << 30) /* keeps offsets inside it in 32 bits */

/* Bytes of one value; 0 for strings and arrays, whose sizes vary. */
static inline uint32_t gguf_kind_bytes(uint32_t kind) {
    static const uint8_t bytes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return bytes[kind];
}

static inline const char *gguf_kind_name(uint32_t kind) {
    static const char *const names[] = { "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool",
                                         "string", "array", "u64", "i64", "f64" };
    return names[kind];
}

static inline uint64_t gguf_load(const uint8_t *bytes, uint32_t n) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < n; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static inline uint32_t gguf_load_u32(const uint8_t *bytes) {
    return (uint32_t)gguf_load(bytes, 4);
}

static inline uint64_t gguf_load_u64(const uint8_t *bytes) {
    return gguf_load(bytes, 8);
}

static inline void gguf_store(uint8_t *bytes, uint32_t n, uint64_t value) {
    for (uint32_t i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

static inline bool gguf_alignment_ok(uint64_t alignment) {
    return alignment && alignment <= GGUF_MAX_ALIGNMENT && (alignment & (alignment - 1)) == 0;
}

/*
 * Reads the header of gguf->parts[0].input and fills values, tensors and that part; tensors
 * come in the order of their data, by_name stays empty. On failure sn_gguf_close() frees what
 * there is.
 */
sn_status sn_gguf_read_header(sn_gguf *gguf);

#endif
