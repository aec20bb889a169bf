/*
 * output.h: where the command's words go. stdout carries the answer and nothing else, stderr the
 * rest. A reader that closes stdout has had enough: the command then ends quietly with 0.
 */
#ifndef SN_WASI_OUTPUT_H
#define SN_WASI_OUTPUT_H

#include <stdio.h>

#include "buffer.h"
#include "sunnynet.h"

/* Exit codes; the functions of the command return them, after they have said what is wrong. */
#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_INTERRUPTED 130

/* Not an exit code: stdout takes no more, and out_finish() decides what that means. */
#define OUT_CLOSED (-1)

/* ---- stdout ---- */

/* Writes and flushes. False once stdout failed: stop working, main() reports it. */
bool out_write(const void *data, size_t bytes);

/* Writes a report and empties it; false also if the buffer ran out of memory. */
bool out_buffer(buffer *b);

/* Call last, with the command's code. A closed pipe is EXIT_DONE, any other failure of stdout is
 * reported and EXIT_FAILED. */
int out_finish(int code);

/* ---- errors, one line each ---- */

/* Prints "sunnynet: ..." and returns EXIT_FAILED. Control characters become '?'. */
int fail(const char *format, ...) FORMAT_LIKE_PRINTF(1, 2);
int fail_memory(void);

/* Prints "sunnynet: ... (see sunnynet COMMAND --help)", returns EXIT_USAGE. */
int fail_usage(const char *command, const char *format, ...) FORMAT_LIKE_PRINTF(2, 3);

/*
 * Reports a failure of the library, with `file` before the reason unless that names it already
 * (file may be NULL). A stop that Ctrl-C asked for is EXIT_INTERRUPTED and needs no words.
 */
int fail_library(sn_status status, const char *file);

/* "sunnynet: note: ..." on stderr. */
void note(const char *format, ...) FORMAT_LIKE_PRINTF(1, 2);

/* ---- files ---- */

/* A file that appears under its name only when it is whole; path NULL is stdout. */
typedef struct sink {
    FILE *file; /* NULL: stdout */
    const char *path;
    buffer temporary;
} sink;

int sink_open(sink *s, const char *path);
int sink_write(sink *s, const void *data, size_t bytes);

/* float32, little-endian whatever the machine is. */
int sink_floats(sink *s, const float *values, size_t n);

/* Puts the file in its place if `code` is EXIT_DONE, else removes it. Returns the worse code. */
int sink_close(sink *s, int code);

/* Appends a whole file ("-": stdin) to b. */
int read_file(const char *path, buffer *b);

#endif
