/* backend_wasm_relaxed.c: the only file compiled for wasm-relaxed. */
#define SN_TABLE sn_simd_wasm_relaxed
#define SN_NAME "wasm-relaxed"
#include "vec_wasm128.h"
#include "dot_wasm_relaxed.h"
#include "kernels.inl"
