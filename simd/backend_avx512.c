/* backend_avx512.c: the only file compiled for avx512. */
#define SN_TABLE sn_simd_avx512
#define SN_NAME "avx512"
#include "vec_avx512.h"
#include "dot_avx512.h"
#include "kernels.inl"
