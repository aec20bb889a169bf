/*
 * vec_neon.h: 16 lanes as four NEON registers (AArch64). What each operation means:
 * vec_scalar.h. No vfma: products and sums round apart.
 */
#ifndef SN_SIMD_VEC_H
#define SN_SIMD_VEC_H

#include "base.h"

#include <arm_neon.h>

#define VF_TILE 4   /* 16 of 32 registers hold sums */
#define VQ_TILE 4
#define VF_PANELS 2
#define VQ_PANELS 2
#define VF_NEAR 4
#define VF_HAS_ACROSS
#define SN_UNROLL _Pragma("GCC unroll 8") /* loops over tiles, panels and code words */

typedef struct { float32x4_t q[4]; } vf;
typedef struct { int32x4_t q[4]; } vi;
typedef struct { uint32x4_t q[4]; } vm;

#define VF_EACH(e) (vf){ { e(0), e(1), e(2), e(3) } }
#define VI_EACH(e) (vi){ { e(0), e(1), e(2), e(3) } }
#define VM_EACH(e) (vm){ { e(0), e(1), e(2), e(3) } }

SN_INLINE vf vf_set1(float x) { float32x4_t r = vdupq_n_f32(x); return (vf){ { r, r, r, r } }; }
SN_INLINE vf vf_zero(void) { return vf_set1(0.0f); }
SN_INLINE vf vf_load(const float *p) {
#define E(i) vld1q_f32(p + 4 * (i))
    return VF_EACH(E);
#undef E
}
SN_INLINE void vf_store(float *p, vf a) {
    for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, a.q[i]);
}

#define VF_BINARY(NAME, F)                                                                    \
    SN_INLINE vf NAME(vf a, vf b) {                                                           \
        return (vf){ { F(a.q[0], b.q[0]), F(a.q[1], b.q[1]), F(a.q[2], b.q[2]),               \
                       F(a.q[3], b.q[3]) } };                                                 \
    }
#define VI_BINARY(NAME, F)                                                                    \
    SN_INLINE vi NAME(vi a, vi b) {                                                           \
        return (vi){ { F(a.q[0], b.q[0]), F(a.q[1], b.q[1]), F(a.q[2], b.q[2]),               \
                       F(a.q[3], b.q[3]) } };                                                 \
    }

/* vmaxq and vminq treat NaN and zeros in their own way: compare and select instead. */
SN_INLINE float32x4_t max_of(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
SN_INLINE float32x4_t min_of(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

VF_BINARY(vf_add, vaddq_f32)
VF_BINARY(vf_sub, vsubq_f32)
VF_BINARY(vf_mul, vmulq_f32)
VF_BINARY(vf_div, vdivq_f32)
VF_BINARY(vf_max, max_of)
VF_BINARY(vf_min, min_of)

SN_INLINE vi vi_of_bits(vf a) {
#define E(i) vreinterpretq_s32_f32(a.q[i])
    return VI_EACH(E);
#undef E
}
SN_INLINE vf vf_of_bits(vi a) {
#define E(i) vreinterpretq_f32_s32(a.q[i])
    return VF_EACH(E);
#undef E
}
SN_INLINE vf vf_abs(vf a) {
#define E(i) vabsq_f32(a.q[i])
    return VF_EACH(E);
#undef E
}
SN_INLINE vf vf_neg(vf a) {
#define E(i) vnegq_f32(a.q[i])
    return VF_EACH(E);
#undef E
}

SN_INLINE vm vf_less(vf a, vf b) {
#define E(i) vcltq_f32(a.q[i], b.q[i])
    return VM_EACH(E);
#undef E
}
SN_INLINE vm vm_first(size_t n) {
    static const uint32_t index[4] = { 0, 1, 2, 3 };
    const uint32x4_t lane = vld1q_u32(index), count = vdupq_n_u32((uint32_t)n);
#define E(i) vcltq_u32(vaddq_u32(lane, vdupq_n_u32(4 * (i))), count)
    return VM_EACH(E);
#undef E
}
SN_INLINE vf vf_select(vm m, vf a, vf b) {
#define E(i) vbslq_f32(m.q[i], a.q[i], b.q[i])
    return VF_EACH(E);
#undef E
}

SN_INLINE vi vi_set1(int32_t x) { int32x4_t r = vdupq_n_s32(x); return (vi){ { r, r, r, r } }; }
SN_INLINE vi vi_load(const void *p) {
#define E(i) vreinterpretq_s32_u8(vld1q_u8((const uint8_t *)p + 16 * (i)))
    return VI_EACH(E);
#undef E
}
SN_INLINE void vi_store(void *p, vi a) {
    for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)p + 16 * i, vreinterpretq_u8_s32(a.q[i]));
}
SN_INLINE vi vi_load_u8(const uint8_t *p) {
    const uint8x16_t b = vld1q_u8(p);
    const uint16x8_t lo = vmovl_u8(vget_low_u8(b)), hi = vmovl_high_u8(b);
    return (vi){ { vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(lo))),
                   vreinterpretq_s32_u32(vmovl_high_u16(lo)),
                   vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(hi))),
                   vreinterpretq_s32_u32(vmovl_high_u16(hi)) } };
}
SN_INLINE vi vi_load_i8(const uint8_t *p) {
    const int8x16_t b = vreinterpretq_s8_u8(vld1q_u8(p));
    const int16x8_t lo = vmovl_s8(vget_low_s8(b)), hi = vmovl_high_s8(b);
    return (vi){ { vmovl_s16(vget_low_s16(lo)), vmovl_high_s16(lo), vmovl_s16(vget_low_s16(hi)),
                   vmovl_high_s16(hi) } };
}
SN_INLINE void vi_store_i8(int8_t *p, vi a) {
    const int16x8_t lo = vmovn_high_s32(vmovn_s32(a.q[0]), a.q[1]);
    const int16x8_t hi = vmovn_high_s32(vmovn_s32(a.q[2]), a.q[3]);
    vst1q_s8(p, vmovn_high_s16(vmovn_s16(lo), hi));
}
VI_BINARY(vi_add, vaddq_s32)
VI_BINARY(vi_sub, vsubq_s32)
VI_BINARY(vi_mul, vmulq_s32)
VI_BINARY(vi_and, vandq_s32)
VI_BINARY(vi_or, vorrq_s32)
SN_INLINE vi vi_shl(vi a, int n) {
#define E(i) vshlq_s32(a.q[i], vdupq_n_s32(n))
    return VI_EACH(E);
#undef E
}
SN_INLINE vi vi_shr(vi a, int n) {
#define E(i) vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a.q[i]), vdupq_n_s32(-n)))
    return VI_EACH(E);
#undef E
}
SN_INLINE vf vf_of_int(vi a) {
#define E(i) vcvtq_f32_s32(a.q[i])
    return VF_EACH(E);
#undef E
}

SN_INLINE vf vf_load_f16(const uint8_t *p) {
#define E(i) vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p + 8 * (i))))
    return VF_EACH(E);
#undef E
}
SN_INLINE vf vf_load_bf16(const uint8_t *p) {
#define E(i) vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p + 8 * (i))), 16))
    return VF_EACH(E);
#undef E
}

SN_INLINE float vf_hsum(vf a) {
    const float32x4_t s4 = vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
    const float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

SN_INLINE float vf_hmax(vf a) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.q[0], a.q[1]), vmaxq_f32(a.q[2], a.q[3])));
}
SN_INLINE int32_t vi_hsum(vi a) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.q[0], a.q[1]), vaddq_s32(a.q[2], a.q[3])));
}

SN_INLINE void prefetch(const void *p) { __builtin_prefetch(p); }

#endif
