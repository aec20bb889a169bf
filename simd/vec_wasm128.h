/*
 * vec_wasm128.h: 16 lanes as four v128. What each operation means: vec_scalar.h. No relaxed
 * float operation: engines may fuse those or not.
 */
#ifndef SN_SIMD_VEC_H
#define SN_SIMD_VEC_H

#include "base.h"

#include <wasm_simd128.h>

#define VF_TILE 2   /* 8 sums: engines map v128 to 16 registers */
#define VQ_TILE 2
#define VF_PANELS 4
#define VQ_PANELS 1
#define VF_HAS_ACROSS
#define SN_UNROLL   /* the compiler's choice; unrolling whole blocks halves the speed */

typedef struct { v128_t q[4]; } vf;
typedef struct { v128_t q[4]; } vi;
typedef struct { v128_t q[4]; } vm;

#define V_EACH(e) { { e(0), e(1), e(2), e(3) } }

SN_INLINE vf vf_set1(float x) { v128_t r = wasm_f32x4_splat(x); return (vf){ { r, r, r, r } }; }
SN_INLINE vf vf_zero(void) { return vf_set1(0.0f); }
SN_INLINE vf vf_load(const float *p) {
#define E(i) wasm_v128_load(p + 4 * (i))
    return (vf)V_EACH(E);
#undef E
}
SN_INLINE void vf_store(float *p, vf a) {
    for (int i = 0; i < 4; i++) wasm_v128_store(p + 4 * i, a.q[i]);
}

#define V_BINARY(TYPE, NAME, F)                                                               \
    SN_INLINE TYPE NAME(TYPE a, TYPE b) {                                                     \
        return (TYPE){ { F(a.q[0], b.q[0]), F(a.q[1], b.q[1]), F(a.q[2], b.q[2]),             \
                         F(a.q[3], b.q[3]) } };                                               \
    }

/* pmax(x, y) is x < y ? y : x: with its operands swapped, our a > b ? a : b. pmin likewise. */
#define MAX_OF(a, b) wasm_f32x4_pmax(b, a)
#define MIN_OF(a, b) wasm_f32x4_pmin(b, a)

V_BINARY(vf, vf_add, wasm_f32x4_add)
V_BINARY(vf, vf_sub, wasm_f32x4_sub)
V_BINARY(vf, vf_mul, wasm_f32x4_mul)
V_BINARY(vf, vf_div, wasm_f32x4_div)
V_BINARY(vf, vf_max, MAX_OF)
V_BINARY(vf, vf_min, MIN_OF)

SN_INLINE vi vi_of_bits(vf a) { return (vi){ { a.q[0], a.q[1], a.q[2], a.q[3] } }; }
SN_INLINE vf vf_of_bits(vi a) { return (vf){ { a.q[0], a.q[1], a.q[2], a.q[3] } }; }
SN_INLINE vf vf_abs(vf a) {
#define E(i) wasm_f32x4_abs(a.q[i])
    return (vf)V_EACH(E);
#undef E
}
SN_INLINE vf vf_neg(vf a) {
#define E(i) wasm_f32x4_neg(a.q[i])
    return (vf)V_EACH(E);
#undef E
}

SN_INLINE vm vf_less(vf a, vf b) {
#define E(i) wasm_f32x4_lt(a.q[i], b.q[i])
    return (vm)V_EACH(E);
#undef E
}
SN_INLINE vm vm_first(size_t n) {
    const v128_t count = wasm_i32x4_splat((int32_t)n);
#define E(i) wasm_i32x4_lt(wasm_i32x4_const(4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3), count)
    return (vm)V_EACH(E);
#undef E
}
SN_INLINE vf vf_select(vm m, vf a, vf b) {
#define E(i) wasm_v128_bitselect(a.q[i], b.q[i], m.q[i])
    return (vf)V_EACH(E);
#undef E
}

SN_INLINE vi vi_set1(int32_t x) { v128_t r = wasm_i32x4_splat(x); return (vi){ { r, r, r, r } }; }
SN_INLINE vi vi_load(const void *p) {
#define E(i) wasm_v128_load((const uint8_t *)p + 16 * (i))
    return (vi)V_EACH(E);
#undef E
}
SN_INLINE void vi_store(void *p, vi a) {
    for (int i = 0; i < 4; i++) wasm_v128_store((uint8_t *)p + 16 * i, a.q[i]);
}
SN_INLINE vi vi_load_u8(const uint8_t *p) {
#define E(i)                                                                                  \
    wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p + 4 * (i))))
    return (vi)V_EACH(E);
#undef E
}
SN_INLINE vi vi_load_i8(const uint8_t *p) {
#define E(i)                                                                                  \
    wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(p + 4 * (i))))
    return (vi)V_EACH(E);
#undef E
}
SN_INLINE void vi_store_i8(int8_t *p, vi a) {
    const v128_t lo = wasm_i16x8_narrow_i32x4(a.q[0], a.q[1]);
    const v128_t hi = wasm_i16x8_narrow_i32x4(a.q[2], a.q[3]);
    wasm_v128_store(p, wasm_i8x16_narrow_i16x8(lo, hi));
}
V_BINARY(vi, vi_add, wasm_i32x4_add)
V_BINARY(vi, vi_sub, wasm_i32x4_sub)
V_BINARY(vi, vi_mul, wasm_i32x4_mul)
V_BINARY(vi, vi_and, wasm_v128_and)
V_BINARY(vi, vi_or, wasm_v128_or)
SN_INLINE vi vi_shl(vi a, int n) {
#define E(i) wasm_i32x4_shl(a.q[i], (uint32_t)n)
    return (vi)V_EACH(E);
#undef E
}
SN_INLINE vi vi_shr(vi a, int n) {
#define E(i) wasm_u32x4_shr(a.q[i], (uint32_t)n)
    return (vi)V_EACH(E);
#undef E
}
SN_INLINE vf vf_of_int(vi a) {
#define E(i) wasm_f32x4_convert_i32x4(a.q[i])
    return (vf)V_EACH(E);
#undef E
}

/* 2^-112 times the values; the mask removes what sign extension put into the exponent. */
#define VF_HAS_F16_SMALL
SN_INLINE vf vf_load_f16_small(const uint8_t *p) {
    const v128_t mask = wasm_i32x4_splat((int32_t)0x8fffffff);
#define E(i) wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_load16x4(p + 8 * (i)), 13), mask)
    return (vf)V_EACH(E);
#undef E
}
/* As in vec_scalar.h. */
SN_INLINE vf vf_load_f16(const uint8_t *p) {
    return vf_mul(vf_load_f16_small(p), vf_set1(0x1p112f));
}
SN_INLINE vf vf_load_bf16(const uint8_t *p) {
#define E(i) wasm_i32x4_shl(wasm_u32x4_load16x4(p + 8 * (i)), 16)
    return (vf)V_EACH(E);
#undef E
}

SN_INLINE float vf_hsum(vf a) {
    const v128_t s4 = wasm_f32x4_add(wasm_f32x4_add(a.q[0], a.q[2]),
                                     wasm_f32x4_add(a.q[1], a.q[3]));
    return (wasm_f32x4_extract_lane(s4, 0) + wasm_f32x4_extract_lane(s4, 2)) +
           (wasm_f32x4_extract_lane(s4, 1) + wasm_f32x4_extract_lane(s4, 3));
}

SN_INLINE float vf_hmax(vf a) {
    const v128_t m4 = MAX_OF(MAX_OF(a.q[0], a.q[1]), MAX_OF(a.q[2], a.q[3]));
    const v128_t m2 = MAX_OF(m4, wasm_i32x4_shuffle(m4, m4, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(MAX_OF(m2, wasm_i32x4_shuffle(m2, m2, 1, 0, 3, 2)), 0);
}
SN_INLINE int32_t vi_hsum(vi a) {
    const v128_t s4 = wasm_i32x4_add(wasm_i32x4_add(a.q[0], a.q[1]),
                                     wasm_i32x4_add(a.q[2], a.q[3]));
    const v128_t s2 = wasm_i32x4_add(s4, wasm_i32x4_shuffle(s4, s4, 2, 3, 0, 1));
    return wasm_i32x4_extract_lane(wasm_i32x4_add(s2, wasm_i32x4_shuffle(s2, s2, 1, 0, 3, 2)), 0);
}

SN_INLINE void prefetch(const void *p) { (void)p; }

#endif
