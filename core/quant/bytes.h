/*
 * bytes.h: little-endian words in byte arrays of any alignment, and the scale packing that the
 * decoder and the panel packer share. Private to quant/.
 */
#ifndef SN_QUANT_BYTES_H
#define SN_QUANT_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t sn_load16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t sn_load32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void sn_store16(uint8_t *p, uint32_t value) {
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static inline void sn_store32(uint8_t *p, uint32_t value) {
    sn_store16(p, value & 0xffff);
    sn_store16(p + 2, value >> 16);
}

static inline float sn_float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t sn_bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * The eight (scale, minimum) pairs of Q4_K and Q5_K, 6 bits each, in 12 bytes: bytes 0..3 and
 * 4..7 hold scales and minima 0..3 in their low 6 bits; bytes 8..11 the low nibbles of scales
 * (low) and minima (high) 4..7, whose upper 2 bits top the first eight bytes.
 * pair[2 j] is scale j, pair[2 j + 1] minimum j.
 */
static inline void sn_unpack_pairs(const uint8_t s[12], uint8_t pair[16]) {
    for (int j = 0; j < 4; j++) {
        pair[2 * j] = s[j] & 63;
        pair[2 * j + 1] = s[j + 4] & 63;
        pair[2 * j + 8] = (uint8_t)((s[j + 8] & 15) | (s[j] >> 6) << 4);
        pair[2 * j + 9] = (uint8_t)(s[j + 8] >> 4 | (s[j + 4] >> 6) << 4);
    }
}

static inline void sn_pack_pairs(const uint8_t pair[16], uint8_t s[12]) {
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(pair[2 * j] | (pair[2 * j + 8] >> 4) << 6);
        s[j + 4] = (uint8_t)(pair[2 * j + 1] | (pair[2 * j + 9] >> 4) << 6);
        s[j + 8] = (uint8_t)((pair[2 * j + 8] & 15) | pair[2 * j + 9] << 4);
    }
}

#endif
