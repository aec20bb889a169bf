/* platform_windows.c: names, pages and cores on Windows. platform_windows_files.c has the files. */
#include "platform.h"

#if defined(_WIN32)

#include "platform_windows.h"

#include <string.h>
#include <windows.h>

/* ---- names -------------------------------------------------------------------------- */

#define LONG_PATH 248 /* folders from here on need the prefix that lifts the limit of MAX_PATH */

static sn_status widen(const char *path, wchar_t **wide) {
    int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    if (length <= 0) return sn_fail(SN_E_IO, "%.300s: the name is not UTF-8", path);
    wchar_t *made = sn_alloc_array((size_t)length, sizeof *made);
    if (!made) return SN_E_NOMEM;
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, made, length);
    *wide = made;
    return SN_OK;
}

/* Whole paths behind \\?\, or \\?\UNC\ in place of \\, may have 32767 characters. */
static sn_status lengthen(const wchar_t *path, wchar_t **longer) {
    const DWORD room = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *made = sn_alloc_array((size_t)room + 8, sizeof *made);
    if (!made) return SN_E_NOMEM;
    wchar_t *whole = made + 7; /* behind the room for the longer prefix */
    GetFullPathNameW(path, room, whole, NULL);
    const bool share = whole[0] == L'\\' && whole[1] == L'\\';
    const wchar_t *prefix = share ? L"\\\\?\\UNC\\" : L"\\\\?\\";
    const size_t length = wcslen(prefix), skipped = share ? 2 : 0;
    memcpy(made, prefix, length * sizeof *made);
    memmove(made + length, whole + skipped, (wcslen(whole + skipped) + 1) * sizeof *made);
    *longer = made;
    return SN_OK;
}

sn_status sn_windows_path(const char *path, wchar_t **out) {
    wchar_t *wide = NULL;
    SN_TRY(widen(path, &wide));
    const bool prefixed = wcsncmp(wide, L"\\\\?\\", 4) == 0;
    if (prefixed || GetFullPathNameW(wide, 0, NULL, NULL) < LONG_PATH) {
        *out = wide;
        return SN_OK;
    }
    sn_status status = lengthen(wide, out);
    sn_free(wide);
    return status;
}

sn_status sn_windows_error(const char *path, const char *what) {
    const DWORD code = GetLastError();
    wchar_t wide[256];
    char text[512] = "";
    const DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                        FORMAT_MESSAGE_MAX_WIDTH_MASK; /* one line */
    const DWORD length = FormatMessageW(flags, NULL, code, 0, wide, 256, NULL);
    int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, (int)length, text, sizeof text - 1, NULL,
                                    NULL);
    while (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '.')) bytes--;
    text[bytes] = '\0';
    if (bytes == 0) return sn_fail(SN_E_IO, "%.300s: cannot %s: error %lu", path, what, code);
    return sn_fail(SN_E_IO, "%.300s: cannot %s: %s", path, what, text);
}

/* ---- pages -------------------------------------------------------------------------- */

/* Smaller blocks are not worth pages of their own. Huge pages would need a privilege. */
#define MAPPED_BYTES ((size_t)2 << 20)

void *sn_platform_pages(size_t bytes) {
    if (bytes < MAPPED_BYTES) return sn_alloc(bytes);
    void *block = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!block) sn_set_error("out of memory: %zu bytes", bytes);
    return block;
}

void sn_platform_pages_free(void *block, size_t bytes) {
    if (bytes < MAPPED_BYTES)
        sn_free(block);
    else if (block)
        VirtualFree(block, 0, MEM_RELEASE);
}

double sn_platform_huge_bytes(const void *block, size_t bytes) {
    (void)block;
    (void)bytes;
    return 0.0; /* none were asked for */
}

/* ---- cores -------------------------------------------------------------------------- */

/* Physical cores of which this process may use at least one thread. */
static int32_t allowed_cores(void) {
    DWORD_PTR allowed = 0, all = 0;
    DWORD bytes = 0;
    GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all);
    GetLogicalProcessorInformation(NULL, &bytes);
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION *list = sn_alloc(bytes);
    int32_t cores = 0;
    if (list && GetLogicalProcessorInformation(list, &bytes))
        for (size_t i = 0; i < bytes / sizeof *list; i++)
            if (list[i].Relationship == RelationProcessorCore && list[i].ProcessorMask & allowed)
                cores++;
    sn_free(list);
    return cores;
}

/* Whole cores that the hard limit of a job (a container) fills; 0: no limit. It is given in
 * hundredths of a percent of all logical processors. */
static int32_t job_cores(void) {
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate;
    SYSTEM_INFO system;
    const DWORD capped = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &rate, sizeof rate,
                                   NULL) ||
        (rate.ControlFlags & capped) != capped)
        return 0;
    GetSystemInfo(&system);
    return (int32_t)(((uint64_t)rate.CpuRate * system.dwNumberOfProcessors + 9999) / 10000);
}

int32_t sn_platform_cores(void) {
    int32_t cores = allowed_cores(), limit = job_cores();
    if (limit && limit < cores) cores = limit;
    return cores > 1 ? cores : 1;
}

static bool has_affinity(void) {
    DWORD_PTR allowed = 0, all = 0;
    GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all);
    return allowed != all;
}

int32_t sn_platform_cores_reason(void) {
    const int32_t limit = job_cores();
    if (limit && limit < allowed_cores()) return SN_THREADS_QUOTA;
    return has_affinity() ? SN_THREADS_AFFINITY : SN_THREADS_CORES;
}

/* ---- unloading ---------------------------------------------------------------------- */

void sn_platform_keep_loaded(void) {
    HMODULE self;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                       (LPCWSTR)(uintptr_t)sn_platform_keep_loaded, &self);
}

#endif
