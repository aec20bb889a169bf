/*
 * platform_windows.h: what the files of the Windows platform share: names in UTF-16 and the texts
 * of errors. The library's own strings are UTF-8.
 */
#ifndef SN_CORE_PLATFORM_WINDOWS_H
#define SN_CORE_PLATFORM_WINDOWS_H

#include "platform.h"

#include <wchar.h>

/* The path as the system's functions take it, also one longer than they usually allow. The caller
 * frees it. SN_E_IO if it is not UTF-8. */
sn_status sn_windows_path(const char *path, wchar_t **wide);

/* SN_E_IO with what GetLastError() means: "x.gguf: cannot open: ...". */
sn_status sn_windows_error(const char *path, const char *what);

#endif
