/*
 * vec_scalar.h: the vector layer as plain loops over 16 floats. This is the specification: the
 * comments here say what each operation means on every back end.
 */
#ifndef SN_SIMD_VEC_H
#define SN_SIMD_VEC_H

#define SN_INLINE static inline /* forcing these loops into each other takes minutes to compile */
#include "base.h"

#define VF_TILE 2   /* tokens per register tile of a float matrix product */
#define VQ_TILE 1   /* the same for integer products */
#define VF_PANELS 1 /* panels in flight for one token */
#define VQ_PANELS 1
#define SN_UNROLL   /* nothing to gain from unrolling loops over loops */

typedef struct { float v[16]; } vf;    /* 16 floats */
typedef struct { int32_t v[16]; } vi;  /* 16 int32, or 16 rows x 4 bytes */
typedef struct { uint32_t v[16]; } vm; /* 16 truth values, each all ones or zero */

#define SN_LANES for (int l = 0; l < 16; l++)

SN_INLINE vf vf_set1(float x) { vf r; SN_LANES r.v[l] = x; return r; }
SN_INLINE vf vf_zero(void) { return vf_set1(0.0f); }
SN_INLINE vf vf_load(const float *p) { vf r; memcpy(r.v, p, 64); return r; }
SN_INLINE void vf_store(float *p, vf a) { memcpy(p, a.v, 64); }

SN_INLINE vf vf_add(vf a, vf b) { SN_LANES a.v[l] = a.v[l] + b.v[l]; return a; }
SN_INLINE vf vf_sub(vf a, vf b) { SN_LANES a.v[l] = a.v[l] - b.v[l]; return a; }
SN_INLINE vf vf_mul(vf a, vf b) { SN_LANES a.v[l] = a.v[l] * b.v[l]; return a; }
SN_INLINE vf vf_div(vf a, vf b) { SN_LANES a.v[l] = a.v[l] / b.v[l]; return a; }

/* a > b ? a : b, a < b ? a : b: a NaN, or equal values, give b. */
SN_INLINE vf vf_max(vf a, vf b) { SN_LANES a.v[l] = a.v[l] > b.v[l] ? a.v[l] : b.v[l]; return a; }
SN_INLINE vf vf_min(vf a, vf b) { SN_LANES a.v[l] = a.v[l] < b.v[l] ? a.v[l] : b.v[l]; return a; }

SN_INLINE vi vi_of_bits(vf a) { vi r; memcpy(r.v, a.v, 64); return r; }
SN_INLINE vf vf_of_bits(vi a) { vf r; memcpy(r.v, a.v, 64); return r; }
SN_INLINE vf vf_abs(vf a) { SN_LANES a.v[l] = float_of(bits_of(a.v[l]) & 0x7fffffffu); return a; }
SN_INLINE vf vf_neg(vf a) { SN_LANES a.v[l] = float_of(bits_of(a.v[l]) ^ 0x80000000u); return a; }

/* a < b (false for a NaN); lanes below n; a where m holds, else b. */
SN_INLINE vm vf_less(vf a, vf b) { vm r; SN_LANES r.v[l] = a.v[l] < b.v[l] ? ~0u : 0; return r; }
SN_INLINE vm vm_first(size_t n) { vm r; SN_LANES r.v[l] = (size_t)l < n ? ~0u : 0; return r; }
SN_INLINE vf vf_select(vm m, vf a, vf b) { SN_LANES a.v[l] = m.v[l] ? a.v[l] : b.v[l]; return a; }

SN_INLINE vi vi_set1(int32_t x) { vi r; SN_LANES r.v[l] = x; return r; }
SN_INLINE vi vi_load(const void *p) { vi r; memcpy(r.v, p, 64); return r; }
SN_INLINE void vi_store(void *p, vi a) { memcpy(p, a.v, 64); }

/* 16 bytes widened to int32. */
SN_INLINE vi vi_load_u8(const uint8_t *p) { vi r; SN_LANES r.v[l] = p[l]; return r; }
SN_INLINE vi vi_load_i8(const uint8_t *p) { vi r; SN_LANES r.v[l] = (int8_t)p[l]; return r; }
/* Values in -128..127 as 16 bytes. */
SN_INLINE void vi_store_i8(int8_t *p, vi a) { SN_LANES p[l] = (int8_t)a.v[l]; }

/* Modulo 2^32; shr is logical; counts 0..31. */
SN_INLINE vi vi_add(vi a, vi b) {
    SN_LANES a.v[l] = (int32_t)((uint32_t)a.v[l] + (uint32_t)b.v[l]);
    return a;
}
SN_INLINE vi vi_sub(vi a, vi b) {
    SN_LANES a.v[l] = (int32_t)((uint32_t)a.v[l] - (uint32_t)b.v[l]);
    return a;
}
SN_INLINE vi vi_mul(vi a, vi b) {
    SN_LANES a.v[l] = (int32_t)((uint32_t)a.v[l] * (uint32_t)b.v[l]);
    return a;
}
SN_INLINE vi vi_and(vi a, vi b) { SN_LANES a.v[l] &= b.v[l]; return a; }
SN_INLINE vi vi_or(vi a, vi b) { SN_LANES a.v[l] |= b.v[l]; return a; }
SN_INLINE vi vi_shl(vi a, int n) { SN_LANES a.v[l] = (int32_t)((uint32_t)a.v[l] << n); return a; }
SN_INLINE vi vi_shr(vi a, int n) { SN_LANES a.v[l] = (int32_t)((uint32_t)a.v[l] >> n); return a; }

/* int32 to float, used where |a| < 2^24 so that it is exact. */
SN_INLINE vf vf_of_int(vi a) { vf r; SN_LANES r.v[l] = (float)a.v[l]; return r; }

/* 16 finite halves or bfloat16 widened exactly. A half's exponent bias differs by 112: shifting
 * its bits into place and multiplying by 2^112 also serves the subnormals. */
SN_INLINE vf vf_load_f16(const uint8_t *p) {
    vf r;
    SN_LANES {
        uint32_t h = (uint32_t)p[2 * l] | (uint32_t)p[2 * l + 1] << 8;
        float magnitude = float_of((h & 0x7fffu) << 13) * 0x1p112f;
        r.v[l] = float_of(bits_of(magnitude) | (h & 0x8000u) << 16);
    }
    return r;
}
SN_INLINE vf vf_load_bf16(const uint8_t *p) {
    vf r;
    SN_LANES r.v[l] = float_of(((uint32_t)p[2 * l] | (uint32_t)p[2 * l + 1] << 8) << 16);
    return r;
}

/* The tree of every true reduction: i with i+8, i with i+4, then (0 with 2) with (1 with 3). */
SN_INLINE float vf_hsum(vf a) {
    for (int l = 0; l < 8; l++) a.v[l] = a.v[l] + a.v[l + 8];
    for (int l = 0; l < 4; l++) a.v[l] = a.v[l] + a.v[l + 4];
    return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
}

SN_INLINE void prefetch(const void *p) { (void)p; }

#endif
