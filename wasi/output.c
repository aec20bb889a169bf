/* output.c: see output.h. */
#include "output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "terminal.h"

/* errno of the first failed write to stdout; stdout itself is as global as this. */
static int stdout_error;

bool out_write(const void *data, size_t bytes) {
    if (stdout_error != 0) return false;
    errno = 0;
    if (fwrite(data, 1, bytes, stdout) == bytes && fflush(stdout) == 0) return true;
    stdout_error = errno == 0 ? EIO : errno;
    return false;
}

bool out_buffer(buffer *b) {
    bool written = !b->failed && out_write(b->data, b->size);
    if (b->failed && stdout_error == 0) stdout_error = ENOMEM;
    buffer_clear(b);
    return written;
}

int out_finish(int code) {
    if (code != EXIT_DONE && code != OUT_CLOSED) return code;
    if (stdout_error == 0 || stdout_error == EPIPE) return EXIT_DONE;
    return fail("stdout: %s", strerror(stdout_error));
}

static void print_line(const char *prefix, const char *suffix, const char *format, va_list list) {
    char line[1024];
    vsnprintf(line, sizeof line, format, list);
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    fprintf(stderr, "sunnynet: %s%s%s\n", prefix, line, suffix);
}

int fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    print_line("", "", format, list);
    va_end(list);
    return EXIT_FAILED;
}

int fail_memory(void) {
    return fail("out of memory");
}

int fail_usage(const char *command, const char *format, ...) {
    char suffix[64];
    snprintf(suffix, sizeof suffix, " (see sunnynet %s%s--help)", command, *command ? " " : "");
    va_list list;
    va_start(list, format);
    print_line("", suffix, format, list);
    va_end(list);
    return EXIT_USAGE;
}

int fail_library(sn_status status, const char *file) {
    if (status == SN_E_ABORTED && terminal_interrupted()) return EXIT_INTERRUPTED;
    const char *reason = sn_last_error();
    if (*reason == '\0') reason = sn_status_text(status);
    const char *hint = status == SN_E_IO ? terminal_file_hint() : "";
    if (file == NULL || strncmp(reason, file, strlen(file)) == 0)
        return fail("%s%s", reason, hint);
    return fail("%s: %s%s", file, reason, hint);
}

void note(const char *format, ...) {
    va_list list;
    va_start(list, format);
    print_line("note: ", "", format, list);
    va_end(list);
}

int sink_open(sink *s, const char *path) {
    memset(s, 0, sizeof *s);
    s->path = path;
    if (path == NULL) return EXIT_DONE;
    buffer_printf(&s->temporary, "%s%s", path, terminal_is_special(path) ? "" : ".part");
    const char *temporary = buffer_string(&s->temporary);
    if (s->temporary.failed) return fail_memory();
    s->file = terminal_open(temporary, "wb");
    if (s->file != NULL) return EXIT_DONE;
    int reason = errno;
    buffer_free(&s->temporary);
    return fail("%s: cannot be created: %s", path, strerror(reason));
}

int sink_write(sink *s, const void *data, size_t bytes) {
    if (s->path == NULL) return out_write(data, bytes) ? EXIT_DONE : OUT_CLOSED;
    if (fwrite(data, 1, bytes, s->file) == bytes) return EXIT_DONE;
    return fail("%s: cannot be written: %s", s->path, strerror(errno));
}

int sink_floats(sink *s, const float *values, size_t n) {
    unsigned char bytes[2048];
    for (size_t i = 0; i < n;) {
        size_t used = 0;
        for (; i < n && used < sizeof bytes; i++, used += 4) {
            uint32_t bits;
            memcpy(&bits, values + i, 4);
            for (int k = 0; k < 4; k++) bytes[used + (size_t)k] = (unsigned char)(bits >> 8 * k);
        }
        int code = sink_write(s, bytes, used);
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}

int sink_close(sink *s, int code) {
    if (s->file == NULL) return code;
    const char *temporary = buffer_string(&s->temporary);
    errno = 0;
    if (fclose(s->file) != 0 && code == EXIT_DONE)
        code = fail("%s: cannot be written: %s", s->path, strerror(errno));
    if (strcmp(temporary, s->path) != 0) { /* not written in place */
        if (code == EXIT_DONE && !terminal_replace(temporary, s->path))
            code = fail("%s: cannot be put in place: %s", s->path, strerror(errno));
        if (code != EXIT_DONE) terminal_delete(temporary);
    }
    buffer_free(&s->temporary);
    s->file = NULL;
    return code;
}

static int read_stream(FILE *file, const char *name, buffer *b) {
    for (;;) {
        if (!buffer_reserve(b, 65536)) return fail("%s: too large for memory", name);
        errno = 0;
        terminal_break_reads(true);
        size_t got = fread(b->data + b->size, 1, 65536, file);
        int reason = errno;
        terminal_break_reads(false);
        b->size += got;
        if (terminal_interrupted()) return EXIT_INTERRUPTED;
        if (ferror(file)) return fail("%s: cannot be read: %s", name, strerror(reason));
        if (got == 0) return EXIT_DONE;
    }
}

int read_file(const char *path, buffer *b) {
    if (strcmp(path, "-") == 0) return read_stream(stdin, "stdin", b);
    FILE *file = terminal_open(path, "rb");
    if (file == NULL)
        return fail("%s: cannot be opened: %s%s", path, strerror(errno), terminal_file_hint());
    int code = read_stream(file, path, b);
    fclose(file);
    return code;
}
