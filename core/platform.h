/*
 * platform.h: the operating system, as far as the library needs it: files, pages, cores.
 * platform.c is the only file that includes OS headers (threads.c apart).
 */
#ifndef SN_CORE_PLATFORM_H
#define SN_CORE_PLATFORM_H

#include "source.h"

/* Opens a regular file for reading. `path` must outlive the input (it becomes its name). */
sn_status sn_platform_open(const char *path, sn_input *input);

/* A file that appears under its name only when it is whole. */
typedef struct sn_output sn_output;
sn_status sn_platform_create(const char *path, sn_output **output);
sn_status sn_output_write(sn_output *output, const void *data, size_t bytes);
sn_status sn_output_commit(sn_output *output); /* flush, rename, free; frees on failure too */
void sn_output_discard(sn_output *output);     /* NULL is fine */

/* 1 if both paths name one existing file. */
int sn_platform_same_file(const char *a, const char *b);

/* Zeroed memory for weights, on huge pages where the system grants them; NULL if none. */
void *sn_platform_pages(size_t bytes);
void sn_platform_pages_free(void *block, size_t bytes);

/* min(cores this process may use, cgroup quota), at least 1. */
int32_t sn_platform_cores(void);

#endif
