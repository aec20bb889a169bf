/* backend_avx2_vnni.c: the only file compiled for avx2-vnni. */
#define SN_TABLE sn_simd_avx2_vnni
#define SN_NAME "avx2-vnni"
#include "vec_avx2.h"
#include "dot_avx2_vnni.h"
#include "kernels.inl"
