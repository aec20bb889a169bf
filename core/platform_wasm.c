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

int32_t sn_platform_cores(void) {
    return 1;
}

#endif
