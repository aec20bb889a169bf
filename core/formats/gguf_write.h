/*
 * gguf_write.h: writes a GGUF version 3 file: metadata first, then tensor infos, then data in
 * the same order. Sizes are declared up front, so data can be streamed.
 */
#ifndef SN_FORMATS_GGUF_WRITE_H
#define SN_FORMATS_GGUF_WRITE_H

#include "../platform.h"
#include "gguf.h"

typedef struct sn_gguf_writer sn_gguf_writer;

sn_status sn_gguf_writer_new(const char *path, sn_gguf_writer **writer);

/* Metadata, before the first tensor. The key must not have been written yet. */
sn_status sn_gguf_put_u32(sn_gguf_writer *writer, const char *key, uint32_t value);
sn_status sn_gguf_put_text(sn_gguf_writer *writer, const char *key, const char *value);
sn_status sn_gguf_put_u32s(sn_gguf_writer *writer, const char *key, const uint32_t *values,
                           uint64_t n);
sn_status sn_gguf_put_texts(sn_gguf_writer *writer, const char *key, const char *const *values,
                            uint64_t n);
/* A value as another file holds it, byte for byte. */
sn_status sn_gguf_put_value(sn_gguf_writer *writer, const sn_gguf_value *value);

/* Declares a tensor; dims fastest first. All declarations come before all data. */
sn_status sn_gguf_declare(sn_gguf_writer *writer, const char *name, uint32_t type,
                          uint32_t n_dims, const uint64_t *dims, uint64_t bytes);

/* Appends data of the declared tensors in order; exactly the declared bytes in total. The
 * writer inserts the padding between tensors. */
sn_status sn_gguf_write_data(sn_gguf_writer *writer, const void *data, size_t bytes);

/* Checks that all data came, commits the file and frees the writer (on failure too). */
sn_status sn_gguf_writer_finish(sn_gguf_writer *writer);
void sn_gguf_writer_discard(sn_gguf_writer *writer); /* NULL is fine */

#endif
