/*
 * terminal.h: what the command needs of the system beyond C11: whether a stream is a terminal or a
 * name a device, a steady clock, Ctrl-C, a random seed and the folder of the program. terminal.c
 * and terminal_windows.c are the only files of the command with operating system headers; each
 * function has a plain C11 fallback.
 */
#ifndef SN_WASI_TERMINAL_H
#define SN_WASI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "buffer.h"

/* Makes a closed pipe an error of write() instead of a signal, and stdout a byte stream. */
void terminal_start(void);

bool terminal_is(FILE *stream);

/* Seconds of a clock that does not jump; only differences mean something. */
double terminal_seconds(void);

/* From now on the first Ctrl-C only sets a flag, and the second ends the program. */
void terminal_catch_interrupt(void);
bool terminal_interrupted(void);

/* Forgets a Ctrl-C and catches the next one again. */
void terminal_clear_interrupt(void);

/* While on, Ctrl-C also ends a read that waits (it then fails); else reads and writes go on. */
void terminal_break_reads(bool on);

/* 32 random bits: short enough to be typed again, exact as a JSON number. */
uint32_t terminal_random(void);

/* The folder the program lies in, links resolved; empty if the system does not tell. */
void terminal_program_folder(const char *argv0, buffer *folder);

/* True if the name is that of something else than a file: a device, a pipe. Such a thing is
 * written to, never replaced. */
bool terminal_is_special(const char *path);

/* Puts the words of the command line in UTF-8 into *argv, where the system gave others; false if
 * there is no memory for them. */
bool terminal_arguments(int *argc, char ***argv);

/* fopen(), rename() over what is there, and remove(), with names in UTF-8 on every system; errno
 * says what went wrong. */
FILE *terminal_open(const char *path, const char *mode);
bool terminal_replace(const char *from, const char *to);
void terminal_delete(const char *path);

/* What to add to the report of a file that cannot be opened; may be "". */
const char *terminal_file_hint(void);

#endif
