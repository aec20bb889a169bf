/* terminal.c: see terminal.h; all systems but Windows, which has terminal_windows.c. */
#define _DEFAULT_SOURCE /* sigaction, realpath, readlink under -std=c11 */

#include "terminal.h"

#if !defined(_WIN32)

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__unix__) || defined(__APPLE__)
#define HAVE_POSIX 1
#else
#define HAVE_POSIX 0
#endif

#if HAVE_POSIX || defined(__wasi__)
#include <sys/stat.h>
#include <unistd.h>
#define HAVE_UNISTD 1
#else
#define HAVE_UNISTD 0
#endif

#if !defined(__wasi__) /* a WASI command gets no signals */
#include <signal.h>
static volatile sig_atomic_t interrupts;
#endif

void terminal_start(void) {
#if HAVE_POSIX
    signal(SIGPIPE, SIG_IGN);
#endif
}

bool terminal_is(FILE *stream) {
#if HAVE_UNISTD
    return isatty(fileno(stream)) == 1;
#else
    (void)stream;
    return false;
#endif
}

bool terminal_is_special(const char *path) {
#if HAVE_UNISTD
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
#else
    (void)path;
    return false;
#endif
}

double terminal_seconds(void) {
    struct timespec now;
#if HAVE_UNISTD
    clock_gettime(CLOCK_MONOTONIC, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#if HAVE_POSIX

static void on_interrupt(int number) {
    (void)number;
    interrupts = 1;
}

/* SA_RESETHAND lets the second Ctrl-C kill. */
static void catch_interrupt(int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND | flags;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void terminal_catch_interrupt(void) {
    catch_interrupt(SA_RESTART);
}

void terminal_break_reads(bool on) {
    if (!interrupts) catch_interrupt(on ? 0 : SA_RESTART);
}

#elif !defined(__wasi__)

static void on_interrupt(int number) {
    interrupts = 1;
    signal(number, SIG_DFL);
}

void terminal_catch_interrupt(void) {
    signal(SIGINT, on_interrupt);
}

#endif

#if !HAVE_POSIX

void terminal_break_reads(bool on) {
    (void)on;
}

#endif

#if defined(__wasi__)

const char *terminal_file_hint(void) {
    return " (a WASI command sees only the folders given with --dir)";
}

void terminal_catch_interrupt(void) {}

bool terminal_interrupted(void) {
    return false;
}

void terminal_clear_interrupt(void) {}

#else

const char *terminal_file_hint(void) {
    return "";
}

bool terminal_interrupted(void) {
    return interrupts != 0;
}

void terminal_clear_interrupt(void) {
    interrupts = 0;
    terminal_catch_interrupt();
}

#endif

/* Where there is no source of entropy, two programs started in the same nanosecond agree. */
static uint32_t random_from_clock(void) {
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    uint64_t mix = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    mix ^= mix >> 29;
    mix *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(mix >> 32);
}

#if HAVE_POSIX

/* Not getentropy(), which older C libraries lack. */
uint32_t terminal_random(void) {
    uint32_t bits;
    FILE *source = fopen("/dev/urandom", "rb");
    bool got = source != NULL && fread(&bits, sizeof bits, 1, source) == 1;
    if (source != NULL) fclose(source);
    return got ? bits : random_from_clock();
}

#else

uint32_t terminal_random(void) {
#if HAVE_UNISTD
    uint32_t bits;
    if (getentropy(&bits, sizeof bits) == 0) return bits;
#endif
    return random_from_clock();
}

#endif

#if HAVE_POSIX

/* /proc names the file even if the shell found it through PATH; elsewhere argv[0] must do. */
void terminal_program_folder(const char *argv0, buffer *folder) {
    buffer_clear(folder);
    char *resolved = realpath("/proc/self/exe", NULL);
    if (resolved == NULL && argv0 != NULL && strchr(argv0, '/') != NULL)
        resolved = realpath(argv0, NULL);
    char *slash = resolved == NULL ? NULL : strrchr(resolved, '/');
    if (slash != NULL) buffer_append(folder, resolved, (size_t)(slash - resolved));
    free(resolved);
}

#else

void terminal_program_folder(const char *argv0, buffer *folder) {
    buffer_clear(folder);
    const char *slash = argv0 == NULL ? NULL : strrchr(argv0, '/');
    if (slash != NULL) buffer_append(folder, argv0, (size_t)(slash - argv0));
}

#endif

/* ---- files: names are bytes to these systems, as they are to us ---- */

bool terminal_arguments(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    return true;
}

FILE *terminal_open(const char *path, const char *mode) {
    return fopen(path, mode);
}

bool terminal_replace(const char *from, const char *to) {
    return rename(from, to) == 0;
}

void terminal_delete(const char *path) {
    remove(path);
}

#endif
