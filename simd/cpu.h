/*
 * cpu.h: what this CPU, with its operating system, can execute.
 */
#ifndef SN_SIMD_CPU_H
#define SN_SIMD_CPU_H

/* Feature bits; a back end needs a set of them. */
#define SN_CPU_AVX2 1u        /* AVX2 and F16C, ymm state saved by the system */
#define SN_CPU_AVX_VNNI 2u
#define SN_CPU_AVX512 4u      /* F, BW, VL, DQ and F16C, zmm and mask state saved */
#define SN_CPU_AVX512_VNNI 8u
#define SN_CPU_DOTPROD 16u    /* AArch64: FEAT_DotProd */
#define SN_CPU_I8MM 32u       /* AArch64: FEAT_I8MM */

unsigned sn_cpu_features(void);

#endif
