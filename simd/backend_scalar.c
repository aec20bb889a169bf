/* backend_scalar.c: the only file compiled for scalar. */
#define SN_TABLE sn_simd_scalar
#define SN_NAME "scalar"
#include "vec_scalar.h"
#include "dot_scalar.h"
#include "kernels.inl"
