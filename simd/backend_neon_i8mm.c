/* backend_neon_i8mm.c: the only file compiled for neon-i8mm. */
#define SN_TABLE sn_simd_neon_i8mm
#define SN_NAME "neon-i8mm"
#include "vec_neon.h"
#include "dot_neon_i8mm.h"
#include "kernels.inl"
