/*
 * dot_scalar.h: exact integer dot products, the specification.
 *
 * A block of 32 activations x in -127..127 meets 16 rows of weight codes u, four at a time:
 * word g of a row holds u of k = 4g .. 4g+3. `bits` is 2 to 6 (codes 0 .. 2^bits - 1) or 8
 * (codes q + 128 with q in -128..127, offset always 128).
 *
 *   dot_start(), then dot_add() for ascending g, then dot_total(): sum of (u - offset) x
 *
 * over all eight g or, unless bits is 4, over g = 0..3 or 4..7 alone; the caller gives bias =
 * -offset * sum(x) of the same elements. Largest magnitude inside: 32 * 255 * 127 = 1,036,320:
 * far from the end of int32, and every total is below 2^24, hence exact as float.
 *
 * A header that defines DOT_NEAR(bits), true where matmul_near.inl is worth its trouble, has
 * dot_start_at(bias) in place of dot_start(); dot_total() is then given 0.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_nibbles_scalar.h"

typedef vi vdot;

SN_INLINE vdot dot_start(void) { return vi_set1(0); }

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    (void)bits, (void)g;
    for (int l = 0; l < 16; l++)
        for (int j = 0; j < 4; j++) {
            int32_t u = (int32_t)((uint32_t)w.v[l] >> (8 * j) & 0xff);
            int32_t x = (int8_t)((uint32_t)x4 >> (8 * j));
            a->v[l] += u * x;
        }
}

/* Each byte of the codes, 0..15, becomes the entry of the table. */
SN_INLINE vi dot_lookup(vi codes, const uint8_t table[16]) {
    for (int l = 0; l < 16; l++) {
        uint32_t word = 0;
        for (int j = 0; j < 4; j++)
            word |= (uint32_t)table[(uint32_t)codes.v[l] >> (8 * j) & 15] << (8 * j);
        codes.v[l] = (int32_t)word;
    }
    return codes;
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    (void)bits;
    return vi_add(*a, vi_set1(bias));
}

#endif
