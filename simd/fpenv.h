/*
 * fpenv.h: the floating-point environment. Our sums need round-to-nearest with denormals on; a
 * host may have set anything. Arithmetic must not stand in the function that calls these (a
 * compiler may move it across): public entries call a worker in another function instead.
 */
#ifndef SN_SIMD_FPENV_H
#define SN_SIMD_FPENV_H

#include <stdint.h>

typedef struct sn_fpenv {
    uint64_t control;
} sn_fpenv;

/* Sets nearest, denormals on, no traps on this thread; returns what was set before. */
sn_fpenv sn_fpenv_enter(void);
void sn_fpenv_leave(sn_fpenv saved);

#endif
