/* terminal_windows.c: see terminal.h. Names are UTF-8 in the command and UTF-16 to the system. */
#define _CRT_RAND_S /* rand_s */

#include "terminal.h"

#if defined(_WIN32)

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <shellapi.h> /* needs windows.h before it */

static volatile sig_atomic_t interrupts;

void terminal_start(void) {
    SetConsoleOutputCP(CP_UTF8);
    SetConsoleCP(CP_UTF8);
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
}

bool terminal_is(FILE *stream) {
    return _isatty(_fileno(stream)) != 0;
}

double terminal_seconds(void) {
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    return (double)ticks.QuadPart / (double)per_second.QuadPart;
}

/* ---- Ctrl-C ---- */

static void on_interrupt(int number) {
    interrupts = 1;
    signal(number, SIG_DFL);
}

void terminal_catch_interrupt(void) {
    signal(SIGINT, on_interrupt);
}

bool terminal_interrupted(void) {
    return interrupts != 0;
}

void terminal_clear_interrupt(void) {
    interrupts = 0;
    terminal_catch_interrupt();
}

/* A read of the console ends by itself when Ctrl-C is pressed. */
void terminal_break_reads(bool on) {
    (void)on;
}

/* ---- random numbers ---- */

uint32_t terminal_random(void) {
    unsigned bits;
    if (rand_s(&bits) == 0) return bits;
    return (uint32_t)GetTickCount64();
}

/* ---- names ---- */

/* The caller frees it; NULL, with errno set, if `text` is not UTF-8 or there is no memory. */
static wchar_t *widen(const char *text) {
    int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = length > 0 ? malloc((size_t)length * sizeof *wide) : NULL;
    errno = length > 0 ? ENOMEM : EILSEQ;
    if (wide != NULL) MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, length);
    return wide;
}

static char *narrow(const wchar_t *wide) {
    int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (text != NULL) WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, bytes, NULL, NULL);
    return text;
}

/* They stay until the end of the program. */
bool terminal_arguments(int *argc, char ***argv) {
    int n = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    char **words = wide == NULL ? NULL : calloc((size_t)n + 1, sizeof *words);
    bool done = words != NULL;
    for (int i = 0; done && i < n; i++) {
        words[i] = narrow(wide[i]);
        done = words[i] != NULL;
    }
    LocalFree(wide);
    if (!done) return false;
    *argc = n;
    *argv = words;
    return true;
}

FILE *terminal_open(const char *path, const char *mode) {
    wchar_t *wide = widen(path), *how = widen(mode);
    FILE *file = wide == NULL || how == NULL ? NULL : _wfopen(wide, how);
    free(how);
    free(wide);
    return file;
}

bool terminal_replace(const char *from, const char *to) {
    wchar_t *wide_from = widen(from), *wide_to = widen(to);
    bool moved = wide_from != NULL && wide_to != NULL &&
                 MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING);
    if (!moved && wide_from != NULL && wide_to != NULL) errno = EACCES;
    free(wide_to);
    free(wide_from);
    return moved;
}

void terminal_delete(const char *path) {
    wchar_t *wide = widen(path);
    if (wide != NULL) DeleteFileW(wide);
    free(wide);
}

bool terminal_is_special(const char *path) {
    wchar_t *wide = widen(path);
    if (wide == NULL) return false;
    HANDLE file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0,
                              NULL);
    free(wide);
    if (file == INVALID_HANDLE_VALUE) return false;
    bool special = GetFileType(file) != FILE_TYPE_DISK;
    CloseHandle(file);
    return special;
}

void terminal_program_folder(const char *argv0, buffer *folder) {
    (void)argv0;
    wchar_t wide[1024]; /* a program in a longer folder does not find the bundled model */
    buffer_clear(folder);
    DWORD length = GetModuleFileNameW(NULL, wide, 1024);
    wchar_t *slash = length > 0 && length < 1024 ? wcsrchr(wide, L'\\') : NULL;
    if (slash == NULL) return;
    *slash = L'\0';
    char *text = narrow(wide);
    if (text != NULL) buffer_append(folder, text, strlen(text));
    free(text);
}

const char *terminal_file_hint(void) {
    return "";
}

#endif
