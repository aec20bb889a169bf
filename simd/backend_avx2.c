/* backend_avx2.c: the only file compiled for avx2. */
#define SN_TABLE sn_simd_avx2
#define SN_NAME "avx2"
#include "vec_avx2.h"
#include "dot_avx2.h"
#include "kernels.inl"
