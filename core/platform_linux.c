/* platform_linux.c: huge pages, and the cores that affinity and control groups leave. */
#if defined(__linux__)

#define _GNU_SOURCE /* sched_getaffinity, MADV_HUGEPAGE */

#include "platform.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- pages -------------------------------------------------------------------------- */

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Maps one huge page more than asked for and cuts both ends off, so that the block begins on
 * a huge page. `bytes` is a multiple of the huge page. */
static void *map_pages(size_t bytes) {
    if (bytes > PTRDIFF_MAX - HUGE_PAGE_BYTES) return NULL;
    size_t mapped = bytes + HUGE_PAGE_BYTES;
    uint8_t *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
    if (start == (uint8_t *)MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE_BYTES - (uintptr_t)start % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    if (before) munmap(start, before);
    munmap(start + before + bytes, HUGE_PAGE_BYTES - before);
    madvise(start + before, bytes, MADV_HUGEPAGE); /* a refusal changes nothing */
    return start + before;
}

void *sn_platform_pages(size_t bytes) {
    if (bytes < HUGE_PAGE_BYTES) return sn_alloc(bytes);
    void *block = NULL;
    if (bytes <= PTRDIFF_MAX) block = map_pages(sn_round_up(bytes, HUGE_PAGE_BYTES));
    if (!block) sn_set_error("out of memory: %zu bytes", bytes);
    return block;
}

void sn_platform_pages_free(void *block, size_t bytes) {
    if (bytes < HUGE_PAGE_BYTES)
        sn_free(block);
    else if (block)
        munmap(block, sn_round_up(bytes, HUGE_PAGE_BYTES));
}

/* The line that a mapping of /proc/self/smaps begins with: its addresses. */
static bool begins_mapping(const char *line, uintptr_t *from, uintptr_t *to) {
    unsigned long long low, high;
    if (sscanf(line, "%llx-%llx ", &low, &high) != 2) return false;
    *from = (uintptr_t)low;
    *to = (uintptr_t)high;
    return true;
}

/* The system tells of whole mappings, of which the block may be a part. */
double sn_platform_huge_bytes(const void *block, size_t bytes) {
    FILE *file = fopen("/proc/self/smaps", "re");
    if (!file) return -1.0;
    const uintptr_t start = (uintptr_t)block;
    uintptr_t from = 0, to = 0;
    unsigned long long kib;
    double huge = 0.0;
    char line[512];
    while (fgets(line, sizeof line, file)) {
        if (begins_mapping(line, &from, &to) || to <= start || from >= start + bytes) continue;
        if (sscanf(line, "AnonHugePages: %llu", &kib) == 1 ||
            sscanf(line, "FilePmdMapped: %llu", &kib) == 1)
            huge += 1024.0 * (double)kib;
    }
    fclose(file);
    return huge < (double)bytes ? huge : (double)bytes;
}

/* ---- cores -------------------------------------------------------------------------- */

#define MAX_CPUS 8192
#define PATH_BYTES 640 /* of a control group's file */

/* The text of a small file, NUL-terminated; false if there is none. */
static bool read_text(const char *path, char *text, size_t capacity) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    size_t length = 0;
    ssize_t got;
    while (length < capacity - 1 &&
           (got = read(file, text + length, capacity - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    text[length] = '\0';
    return length > 0;
}

/* The first of the CPUs that share a core with `cpu`; `cpu` if the system does not tell. */
static long first_sibling(long cpu) {
    char path[96], text[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/topology/thread_siblings_list",
             cpu);
    if (!read_text(path, text, sizeof text)) return cpu;
    char *end;
    long first = strtol(text, &end, 10);
    return end != text && first >= 0 && first < MAX_CPUS ? first : cpu;
}

/* Physical cores among the CPUs this process may run on. Two threads of one core share its
 * load ports, so a second worker there gains next to nothing. */
static long allowed_cores(void) {
    cpu_set_t allowed[MAX_CPUS / CPU_SETSIZE], seen[MAX_CPUS / CPU_SETSIZE];
    CPU_ZERO_S(sizeof seen, seen);
    CPU_ZERO_S(sizeof allowed, allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed) != 0) return 1;
    for (long cpu = 0; cpu < MAX_CPUS; cpu++)
        if (CPU_ISSET_S((size_t)cpu, sizeof allowed, allowed))
            CPU_SET_S((size_t)first_sibling(cpu), sizeof seen, seen);
    return CPU_COUNT_S(sizeof seen, seen);
}

/* Whole cores that a quota of `quota` microseconds per `period` fills; 0: no limit. */
static long quota_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0 || quota / period >= MAX_CPUS) return 0;
    return (long)((quota + period - 1) / period);
}

/* The limit of one group of version 2: "max 100000" or "150000 100000". */
static long limit_v2(const char *group) {
    char path[PATH_BYTES + 64], text[64];
    long long quota, period;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    if (!read_text(path, text, sizeof text)) return 0;
    return sscanf(text, "%lld %lld", &quota, &period) == 2 ? quota_cores(quota, period) : 0;
}

/* The limit of one group of version 1: a quota of -1 is none. */
static long limit_v1(const char *group) {
    char path[PATH_BYTES + 64], quota[32], period[32];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
    if (!read_text(path, quota, sizeof quota)) return 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
    if (!read_text(path, period, sizeof period)) return 0;
    return quota_cores(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The smallest limit of a group and those it lies in. Inside a container the path may name
 * groups that only the host sees; the mount's root is then the group that counts. */
static long tightest(char *group, long (*limit)(const char *), long cores) {
    for (;;) {
        long found = limit(group);
        if (found && found < cores) cores = found;
        char *slash = strrchr(group, '/');
        if (!slash) return cores;
        *slash = '\0';
    }
}

/* True if `controllers` ("cpu,cpuacct") holds "cpu". */
static bool has_cpu(const char *controllers) {
    while (*controllers) {
        size_t length = strcspn(controllers, ",");
        if (length == 3 && memcmp(controllers, "cpu", 3) == 0) return true;
        controllers += length + (controllers[length] == ',');
    }
    return false;
}

/* Lines of /proc/self/cgroup are "number:controllers:path"; version 2 has no controllers. */
static long limit_by_groups(long cores) {
    char text[2048];
    if (!read_text("/proc/self/cgroup", text, sizeof text)) return cores;
    for (char *line = text, *next; *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        line[length] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || strlen(group + 1) >= PATH_BYTES) continue;
        *group++ = '\0';
        if (controllers[1] == '\0')
            cores = tightest(group, limit_v2, cores);
        else if (has_cpu(controllers + 1))
            cores = tightest(group, limit_v1, cores);
    }
    return cores;
}

/* Ranges like "0-3,8". */
static long count_listed(const char *list) {
    long n = 0;
    for (char *end; *list >= '0' && *list <= '9'; list = end + (*end == ',')) {
        const long first = strtol(list, &end, 10);
        n += (*end == '-' ? strtol(end + 1, &end, 10) : first) - first + 1;
    }
    return n;
}

static bool has_affinity(void) {
    char text[1024];
    cpu_set_t allowed[MAX_CPUS / CPU_SETSIZE];
    CPU_ZERO_S(sizeof allowed, allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed) != 0) return false;
    return read_text("/sys/devices/system/cpu/online", text, sizeof text) &&
           CPU_COUNT_S(sizeof allowed, allowed) < count_listed(text);
}

int32_t sn_platform_cores_reason(void) {
    const long allowed = allowed_cores();
    if (limit_by_groups(allowed) < allowed) return SN_THREADS_QUOTA;
    return has_affinity() ? SN_THREADS_AFFINITY : SN_THREADS_CORES;
}

int32_t sn_platform_cores(void) {
    long cores = limit_by_groups(allowed_cores());
    return cores > 1 ? (int32_t)cores : 1;
}

#else
#include "platform.h" /* C wants something in a file */
#endif
