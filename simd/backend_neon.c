/* backend_neon.c: the only file compiled for neon. */
#define SN_TABLE sn_simd_neon
#define SN_NAME "neon"
#include "vec_neon.h"
#include "dot_neon.h"
#include "kernels.inl"
