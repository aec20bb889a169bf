#include "fpenv.h"

#if defined(__x86_64__)

/* MXCSR: all exceptions masked, round to nearest, neither flush-to-zero nor denormals-are-zero. */
#define OURS 0x1f80u

sn_fpenv sn_fpenv_enter(void) {
    sn_fpenv saved = { __builtin_ia32_stmxcsr() };
    __builtin_ia32_ldmxcsr(OURS);
    return saved;
}

void sn_fpenv_leave(sn_fpenv saved) {
    __builtin_ia32_ldmxcsr((unsigned)saved.control);
}

#elif defined(__aarch64__)

/* FPCR 0: round to nearest, no flush-to-zero, IEEE halves, no traps. */
sn_fpenv sn_fpenv_enter(void) {
    sn_fpenv saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved.control));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return saved;
}

void sn_fpenv_leave(sn_fpenv saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved.control));
}

#else

/* No control over rounding here (WebAssembly always rounds to nearest, denormals on). */
sn_fpenv sn_fpenv_enter(void) {
    return (sn_fpenv){ 0 };
}

void sn_fpenv_leave(sn_fpenv saved) {
    (void)saved;
}

#endif
