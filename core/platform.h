/*
 * platform.h: the operating system, as far as the library needs it: files, pages, cores.
 * platform_<system>.c are the only files that include OS headers (threads.c apart).
 */
#ifndef SN_CORE_PLATFORM_H
#define SN_CORE_PLATFORM_H

#include "file.h"
#include "source.h"

/* Opens a regular file for reading. `path` must outlive the input (it becomes its name). */
sn_status sn_platform_open(const char *path, sn_input *input);

/* The same for reading at any position, by one thread at a time. */
sn_status sn_platform_open_file(const char *path, sn_file *file);

bool sn_platform_is_folder(const char *path);

/* Calls visit() with the name of everything in a folder, in no particular order, until it fails;
 * its failure is the result. SN_E_UNSUPPORTED where there are no folders. */
sn_status sn_platform_list(const char *path, sn_status (*visit)(void *user, const char *name),
                           void *user);

/* A folder that need not be there yet; the one that holds it must. */
sn_status sn_platform_make_folder(const char *path);

/* A file that appears under its name only when it is whole. */
typedef struct sn_output sn_output;
sn_status sn_platform_create(const char *path, sn_output **output);
sn_status sn_output_write(sn_output *output, const void *data, size_t bytes);
/* The same from byte `offset` on; bytes that are never written are zero. */
sn_status sn_output_write_at(sn_output *output, uint64_t offset, const void *data, size_t bytes);
sn_status sn_output_commit(sn_output *output); /* flush, rename, free; frees on failure too */
void sn_output_discard(sn_output *output);     /* NULL is fine */

/* 1 if both paths name one existing file. */
int sn_platform_same_file(const char *a, const char *b);

/* Zeroed memory for weights, on huge pages where the system grants them; NULL if none. */
void *sn_platform_pages(size_t bytes);
void sn_platform_pages_free(void *block, size_t bytes);

/* What sn_input.map gave; `bytes` is the file's size. */
void sn_platform_unmap(const void *data, size_t bytes);

/* Bytes of a block that lie on huge pages; -1 if the system does not tell. Reads files. */
double sn_platform_huge_bytes(const void *block, size_t bytes);

/* min(cores this process may use, cgroup quota), at least 1. */
int32_t sn_platform_cores(void);

/* What set that number: SN_THREADS_CORES, SN_THREADS_AFFINITY or SN_THREADS_QUOTA. */
int32_t sn_platform_cores_reason(void);

/* Before threads are started that only the library's end would end: Windows cannot wait for them
 * then, so there the library stays loaded from now on. Elsewhere it does nothing. */
void sn_platform_keep_loaded(void);

#endif
