/*
 * dot_wasm128.h: integer dots without relaxed instructions. Contract: dot_scalar.h.
 */
#ifndef SN_SIMD_DOT_H
#define SN_SIMD_DOT_H

#include "dot_wasm_wide.h"

#define DOT_UNROLLS(bits) ((bits) < 8 && (bits) != 4)
#define DOT_UNROLLS_TILE(bits) 0

SN_INLINE void dot_add(vdot *a, int bits, int g, vi w, int32_t x4) {
    (void)bits, (void)g;
    wide_add(a, w, x4);
}

#endif
