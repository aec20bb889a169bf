/* platform_wasm.c: WebAssembly has one block of memory, and one core as far as we can tell. */
#include "platform.h"

#if defined(__wasm__)

void *sn_platform_pages(size_t bytes) {
    return sn_alloc(bytes);
}

void sn_platform_pages_free(void *block, size_t bytes) {
    (void)bytes;
    sn_free(block);
}

double sn_platform_huge_bytes(const void *block, size_t bytes) {
    (void)block;
    (void)bytes;
    return -1.0;
}

int32_t sn_platform_cores(void) {
    return 1;
}

int32_t sn_platform_cores_reason(void) {
    return SN_THREADS_CORES;
}

#endif
