/* backend_neon_dotprod.c: the only file compiled for neon-dotprod. */
#define SN_TABLE sn_simd_neon_dotprod
#define SN_NAME "neon-dotprod"
#include "vec_neon.h"
#include "dot_neon_dotprod.h"
#include "kernels.inl"
