/* backend_avx512_vnni.c: the only file compiled for avx512-vnni. */
#define SN_TABLE sn_simd_avx512_vnni
#define SN_NAME "avx512-vnni"
#include "vec_avx512.h"
#include "dot_avx512_vnni.h"
#include "kernels.inl"
