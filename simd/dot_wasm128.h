/*
 * dot_wasm128.h: integer dots without relaxed instructions. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_wasm_wide.h"

#define DOT_UNROLLS(bits) ((bits) < 8 && (bits) != 4)

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    (void)bits, (void)g;
    wide_add(a, w, x4);
}

SN_INLINE vi dot_total(const vdot *a, int bits, int32_t bias) {
    (void)bits;
    return vi_add(wide_total(a), vi_set1(bias));
}

#endif
