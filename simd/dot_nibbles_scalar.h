/*
 * dot_nibbles_scalar.h: exact dot products of 4-bit codes, the specification. A chunk is 32 bytes
 * of codes: low bits meet x[0..31], high ones x[32..63], all in -127..127. That is at most
 * 64 x 15 x 127 = 121,920; a sum takes up to NIBBLES_MOST chunks without leaving int32.
 */
#ifndef SN_SIMD_DOT_NIBBLES_H
#define SN_SIMD_DOT_NIBBLES_H

typedef int32_t nibble_sum;

SN_INLINE nibble_sum nibbles_start(void) { return 0; }

SN_INLINE nibble_sum nibbles_add(nibble_sum sum, const uint8_t *codes, const int8_t *x) {
    for (int k = 0; k < 32; k++) sum += (codes[k] & 15) * x[k] + (codes[k] >> 4) * x[k + 32];
    return sum;
}

SN_INLINE void nibbles_totals(int32_t total[4], const nibble_sum *sum) {
    memcpy(total, sum, 16);
}

#endif
