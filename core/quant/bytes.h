/*
 * bytes.h: little-endian words in byte arrays of any alignment, and the scale packings that the
 * decoder and the panel packer share. Private to quant/.
 */
#ifndef SN_QUANT_BYTES_H
#define SN_QUANT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * The sixteen scales of Q3_K, 6 bits each, stored plus 32: low nibbles of bytes 0..7 are those of
 * scales 0..7, high nibbles those of 8..15; the upper 2 bits of scale i are bits 2 (i / 4).. of
 * byte 8 + i % 4.
 */
static inline void sn_unpack_q3_k_scales(const uint8_t s[12], int8_t scale[16]) {
    for (int i = 0; i < 16; i++) {
        int low = s[i % 8] >> 4 * (i / 8) & 15, high = s[8 + i % 4] >> 2 * (i / 4) & 3;
        scale[i] = (int8_t)((low | high << 4) - 32);
    }
}

static inline void sn_pack_q3_k_scales(const int8_t scale[16], uint8_t s[12]) {
    memset(s, 0, 12);
    for (int i = 0; i < 16; i++) {
        unsigned stored = (unsigned)(scale[i] + 32) & 63;
        s[i % 8] |= (uint8_t)((stored & 15) << 4 * (i / 8));
        s[8 + i % 4] |= (uint8_t)(stored >> 4 << 2 * (i / 4));
    }
}

/* The eight scales of IQ4_XS, likewise: s is 2 bytes of upper pairs, then 4 of nibbles. */
static inline void sn_unpack_iq4_xs_scales(const uint8_t s[6], int8_t scale[8]) {
    uint32_t high = sn_load16(s), low = sn_load32(s + 2);
    for (int i = 0; i < 8; i++)
        scale[i] = (int8_t)((int)((low >> 4 * i & 15) | (high >> 2 * i & 3) << 4) - 32);
}

static inline void sn_pack_iq4_xs_scales(const int8_t scale[8], uint8_t s[6]) {
    uint32_t high = 0, low = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t stored = (uint32_t)(scale[i] + 32) & 63;
        low |= (stored & 15) << 4 * i;
        high |= stored >> 4 << 2 * i;
    }
    sn_store16(s, high);
    sn_store32(s + 2, low);
}

/* ---- is everything a number? ---- */

#define SN_F16_EXPONENT 0x7c00u
#define SN_BF16_EXPONENT 0x7f80u

/*
 * No one of n 16-bit floats has all the bits of the exponent set: one more would carry into the
 * sign's place. No early exit: the loop vectorises, and failure is rare.
 */
static inline bool sn_halves_finite(const uint8_t *src, size_t n, uint32_t exponent) {
    const uint16_t mask = (uint16_t)exponent, one = (uint16_t)(exponent & (0u - exponent));
    uint16_t sums = 0;
    for (size_t i = 0; i < n; i++)
        sums = (uint16_t)(sums | ((sn_load16(src + 2 * i) & mask) + one));
    return !(sums & 0x8000u);
}

#endif
