/*
 * dispatch.c: the back ends linked in and what each needs of the CPU. The build says which there
 * are, by one SN_HAVE_<name> for each; scalar always is. The order is from slow to fast.
 */
#include "cpu.h"
#include "simd.h"

#include <stdlib.h>
#include <string.h>

extern const sn_simd sn_simd_scalar, sn_simd_avx2, sn_simd_avx2_vnni, sn_simd_avx512,
    sn_simd_avx512_vnni, sn_simd_neon, sn_simd_neon_dotprod, sn_simd_neon_i8mm, sn_simd_wasm128,
    sn_simd_wasm_relaxed;

static const struct {
    const sn_simd *table;
    unsigned needs;
} backends[] = {
    { &sn_simd_scalar, 0 },
#ifdef SN_HAVE_avx2
    { &sn_simd_avx2, SN_CPU_AVX2 },
#endif
#ifdef SN_HAVE_avx2_vnni
    { &sn_simd_avx2_vnni, SN_CPU_AVX2 | SN_CPU_AVX_VNNI },
#endif
#ifdef SN_HAVE_avx512
    { &sn_simd_avx512, SN_CPU_AVX512 },
#endif
#ifdef SN_HAVE_avx512_vnni
    { &sn_simd_avx512_vnni, SN_CPU_AVX512 | SN_CPU_AVX512_VNNI },
#endif
#ifdef SN_HAVE_neon
    { &sn_simd_neon, 0 }, /* part of every AArch64 */
#endif
#ifdef SN_HAVE_neon_dotprod
    { &sn_simd_neon_dotprod, SN_CPU_DOTPROD },
#endif
#ifdef SN_HAVE_neon_i8mm
    { &sn_simd_neon_i8mm, SN_CPU_DOTPROD | SN_CPU_I8MM },
#endif
#ifdef SN_HAVE_wasm128
    { &sn_simd_wasm128, 0 }, /* an engine without it does not accept the module */
#endif
#ifdef SN_HAVE_wasm_relaxed
    { &sn_simd_wasm_relaxed, 0 },
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
