#include "cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>

/* Extended control register 0: which register state the operating system saves. */
static unsigned read_xcr0(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Bits as named in Intel's SDM, volume 2A, CPUID, and volume 1, section 13.3. */
unsigned sn_cpu_features(void) {
    const unsigned osxsave = 1u << 27, f16c = 1u << 29;                   /* leaf 1, ecx */
    const unsigned avx2 = 1u << 5;                                        /* leaf 7.0, ebx */
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;    /* F DQ BW VL */
    const unsigned avx512_vnni = 1u << 11;                                /* leaf 7.0, ecx */
    const unsigned avx_vnni = 1u << 4;                                    /* leaf 7.1, eax */
    const unsigned ymm_state = 0x6, zmm_state = 0xe6;                     /* XCR0 */
    unsigned a, b, c, d, features = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    if ((c & (osxsave | f16c)) != (osxsave | f16c)) return 0;
    const unsigned xcr0 = read_xcr0();
    if ((xcr0 & ymm_state) != ymm_state) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2)) return 0;
    features |= SN_CPU_AVX2;
    const unsigned subleaves = a;
    if ((xcr0 & zmm_state) == zmm_state && (b & avx512) == avx512) {
        features |= SN_CPU_AVX512;
        if (c & avx512_vnni) features |= SN_CPU_AVX512_VNNI;
    }
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avx_vnni))
        features |= SN_CPU_AVX_VNNI;
    return features;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

/* Bits as in the kernel's arch/arm64 ELF hwcaps documentation. */
unsigned sn_cpu_features(void) {
    const unsigned long asimddp = 1ul << 20; /* AT_HWCAP */
    const unsigned long i8mm = 1ul << 13;    /* AT_HWCAP2 */
    unsigned features = 0;
    if (getauxval(AT_HWCAP) & asimddp) features |= SN_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) & i8mm) features |= SN_CPU_I8MM;
    return features;
}

#elif defined(__aarch64__) && defined(__APPLE__)

#include <sys/sysctl.h>

static unsigned has(const char *name, unsigned feature) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value ? feature : 0;
}

/* Names as in Apple's "Determining instruction set characteristics". */
unsigned sn_cpu_features(void) {
    return has("hw.optional.arm.FEAT_DotProd", SN_CPU_DOTPROD) |
           has("hw.optional.arm.FEAT_I8MM", SN_CPU_I8MM);
}

#else

unsigned sn_cpu_features(void) {
    return 0;
}

#endif
