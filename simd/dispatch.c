/*
 * dispatch.c: the back ends linked in and what each needs of the CPU. A fat library links all
 * of its CPU family; a library for one back end is compiled with SN_ONE_ISA and SN_ONLY_<name>
 * and links scalar and it.
 */
#include "cpu.h"
#include "simd.h"

#include <stdlib.h>
#include <string.h>

extern const sn_simd sn_simd_scalar, sn_simd_avx2, sn_simd_avx2_vnni, sn_simd_avx512,
    sn_simd_avx512_vnni;

static const struct {
    const sn_simd *table;
    unsigned needs;
} backends[] = {
    { &sn_simd_scalar, 0 },
#if defined(__x86_64__)
#if !defined(SN_ONE_ISA) || defined(SN_ONLY_avx2)
    { &sn_simd_avx2, SN_CPU_AVX2 },
#endif
#if !defined(SN_ONE_ISA) || defined(SN_ONLY_avx2_vnni)
    { &sn_simd_avx2_vnni, SN_CPU_AVX2 | SN_CPU_AVX_VNNI },
#endif
#if !defined(SN_ONE_ISA) || defined(SN_ONLY_avx512)
    { &sn_simd_avx512, SN_CPU_AVX512 },
#endif
#if !defined(SN_ONE_ISA) || defined(SN_ONLY_avx512_vnni)
    { &sn_simd_avx512_vnni, SN_CPU_AVX512 | SN_CPU_AVX512_VNNI },
#endif
#endif
};

#define COUNT (sizeof backends / sizeof backends[0])

const sn_simd *sn_simd_at(size_t index) {
    return index < COUNT ? backends[index].table : NULL;
}

int sn_simd_usable(const sn_simd *table) {
    const unsigned features = sn_cpu_features();
    for (size_t i = 0; i < COUNT; i++)
        if (backends[i].table == table) return (backends[i].needs & ~features) == 0;
    return 0;
}

const sn_simd *sn_simd_find(const char *name) {
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(backends[i].table->name, name) == 0) return backends[i].table;
    return NULL;
}

const char *sn_simd_wanted(void) {
    const char *name = getenv("SN_ISA");
    return name && *name ? name : NULL;
}

const sn_simd *sn_simd_best(void) {
    size_t i = COUNT - 1;
    while (i && !sn_simd_usable(backends[i].table)) i--;
    return backends[i].table;
}
