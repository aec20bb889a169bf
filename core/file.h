/*
 * file.h: bytes that can be read at any position, for containers that are no stream: archives,
 * safetensors, packed blobs. platform_<system>.c open files; memory serves as well.
 */
#ifndef SN_CORE_FILE_H
#define SN_CORE_FILE_H

#include "memory.h"

typedef struct sn_file {
    const char *name; /* for error texts; outlives the file */
    uint64_t size;
    /* Stores `bytes` bytes from `offset` on; fewer only at the end or after a failure. */
    size_t (*read_at)(void *user, uint64_t offset, void *buffer, size_t bytes);
    void *user;
    void (*close)(void *user); /* may be NULL */
} sn_file;

/* Reads exactly `bytes` bytes. SN_E_FORMAT if they do not all lie in the file. */
sn_status sn_file_read(const sn_file *file, uint64_t offset, void *buffer, size_t bytes);

/* `data` is borrowed until the file is closed. */
void sn_file_from_memory(sn_file *file, const char *name, const void *data, size_t bytes);

void sn_file_close(sn_file *file); /* also of a zeroed struct */

/* The whole file, with a NUL behind it; at most `limit` bytes. The caller frees *data. */
sn_status sn_file_read_all(const sn_file *file, size_t limit, char **data, size_t *bytes);

#endif
