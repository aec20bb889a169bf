/*
 * base.h: what every vector header and kernel of this room shares.
 */
#ifndef SN_SIMD_BASE_H
#define SN_SIMD_BASE_H

#include "simd.h"

#include <float.h>
#include <string.h>

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "float arithmetic must round to float after every operation (x87 is not supported)"
#endif
#ifdef __FAST_MATH__
#error "compile without -ffast-math: every operation must round as written"
#endif

#ifndef SN_INLINE
#define SN_INLINE static inline __attribute__((always_inline))
#endif
#define SN_NOINLINE static __attribute__((noinline))
#define SN_ALIGN64 __attribute__((aligned(64)))

/* Keeps gcc from adding up in an order of its own (sums of integers are free to): that takes all
 * products of an unrolled loop at once, and spills them. */
#if !defined(SN_KEEP) && defined(__GNUC__) && defined(__x86_64__)
#define SN_HAS_ASM /* which takes vectors as operands */
#ifdef __AVX512F__
#define SN_KEEP(vector) __extension__({ __asm__("" : "+v"(vector)); })
#else
#define SN_KEEP(vector) __extension__({ __asm__("" : "+x"(vector)); })
#endif
#endif

#define SN_STR_(x) #x
#define SN_STR(x) SN_STR_(x)

/* 1.5 * 2^23: added and subtracted, it rounds |x| < 2^22 to an integer, half to even; its low
 * mantissa bits then hold that integer. */
#define SN_ROUND_MAGIC 12582912.0f
#define SN_ROUND_MAGIC_BITS 0x4b400000

SN_INLINE uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

SN_INLINE float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

SN_INLINE int32_t load_i32(const void *p) {
    int32_t i;
    memcpy(&i, p, 4);
    return i;
}

#endif
