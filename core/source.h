/*
 * source.h: bytes that come in order, the one way the readers see a file. A file, a block of
 * memory and the caller's callback all become one; platform_<system>.c open files.
 */
#ifndef SN_CORE_SOURCE_H
#define SN_CORE_SOURCE_H

#include "memory.h"

typedef struct sn_input {
    const char *name; /* for error texts; outlives the input */
    uint64_t size;    /* of all the bytes */
    uint64_t position;
    size_t (*read)(void *user, void *buffer, size_t bytes); /* 0: no more */
    void *user;
    void (*close)(void *user); /* may be NULL */
    /* NULL, or the same at any offset, for threads at the same time; moves nothing. */
    size_t (*read_at)(void *user, uint64_t offset, void *buffer, size_t bytes);
    /* NULL, or puts all of it into memory, as it lies on the disk: platform.h */
    sn_status (*map)(const struct sn_input *input, const uint8_t **data);
    bool own_types;            /* it may hold private types (quant/types.h): it is no file */
    const sn_status *failed;   /* NULL, or why read() gave nothing: its error text stands */
} sn_input;

/* Reads exactly `bytes` bytes, in pieces of at most 8 MiB. SN_E_FORMAT if fewer are left. */
sn_status sn_input_read(sn_input *input, void *buffer, size_t bytes);

/* The same from `offset` on, by read_at. */
sn_status sn_input_read_at(const sn_input *input, uint64_t offset, void *buffer, size_t bytes);

/* Moves forward to an absolute position. */
sn_status sn_input_skip_to(sn_input *input, uint64_t position);

uint64_t sn_input_left(const sn_input *input);

void sn_input_close(sn_input *input);

/* `data` is borrowed until the input is closed. `memory` holds the cursor. */
typedef struct sn_memory_cursor {
    const uint8_t *data;
    size_t left;
    const uint8_t *start; /* of all of it; NULL: there is no reading at an offset */
} sn_memory_cursor;
void sn_input_from_memory(sn_input *input, const char *name, const void *data, size_t bytes,
                          sn_memory_cursor *cursor);

#endif
