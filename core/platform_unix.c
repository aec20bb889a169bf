/* platform_unix.c: pages and cores on macOS and other Unix systems than Linux. */
#include "platform.h"

#if defined(__APPLE__) || (defined(__unix__) && !defined(__linux__) && !defined(__wasm__))

#include <sys/mman.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#define MANY_CORES 8192

/* Smaller blocks are not worth a mapping of their own. */
#define MAPPED_BYTES ((size_t)2 << 20)

void *sn_platform_pages(size_t bytes) {
    if (bytes < MAPPED_BYTES) return sn_alloc(bytes);
    void *block = MAP_FAILED;
    if (bytes <= PTRDIFF_MAX)
        block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (block != MAP_FAILED) return block;
    sn_set_error("out of memory: %zu bytes", bytes);
    return NULL;
}

void sn_platform_pages_free(void *block, size_t bytes) {
    if (bytes < MAPPED_BYTES)
        sn_free(block);
    else if (block)
        munmap(block, bytes);
}

double sn_platform_huge_bytes(const void *block, size_t bytes) {
    (void)block;
    (void)bytes;
    return -1.0;
}

#if defined(__APPLE__)

/* Of a chip with two kinds of cores the fast ones: work is split evenly, so that a slow core would
 * be what all others wait for. */
static long counted_cores(void) {
    static const char *const names[] = { "hw.perflevel0.physicalcpu", "hw.physicalcpu" };
    for (int i = 0; i < 2; i++) {
        int cores = 0;
        size_t size = sizeof cores;
        if (sysctlbyname(names[i], &cores, &size, NULL, 0) == 0 && cores > 0) return cores;
    }
    return 1;
}

#else

static long counted_cores(void) {
    return sysconf(_SC_NPROCESSORS_ONLN);
}

#endif

int32_t sn_platform_cores(void) {
    long cores = counted_cores();
    return cores > 1 && cores < MANY_CORES ? (int32_t)cores : 1;
}

int32_t sn_platform_cores_reason(void) {
    return SN_THREADS_CORES;
}

#endif
