/*
 * cpu.c: in place of simd/cpu.c where tests/emulated/immintrin.h serves as every x86 extension:
 * all of them are there.
 */
#include "cpu.h"

unsigned sn_cpu_features(void) {
    return SN_CPU_AVX2 | SN_CPU_AVX_VNNI | SN_CPU_AVX512 | SN_CPU_AVX512_VNNI;
}
