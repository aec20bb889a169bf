/* backend_wasm128.c: the only file compiled for wasm128. */
#define SN_TABLE sn_simd_wasm128
#define SN_NAME "wasm128"
#include "vec_wasm128.h"
#include "dot_wasm128.h"
#include "kernels.inl"
