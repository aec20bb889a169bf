/*
 * open.h: any model file or folder as GGUF, found out by content: GGUF itself, Hugging Face
 * folders, safetensors, PyTorch archives, packed blobs.
 */
#ifndef SN_IMPORT_OPEN_H
#define SN_IMPORT_OPEN_H

#include "../formats/gguf.h"

/* Opens a file or folder. sn_gguf_close() also closes what lies behind it. */
sn_status sn_open_model(const char *path, sn_gguf *gguf);

/* The same from bytes in memory (one self-contained file; borrowed until closed). */
sn_status sn_open_model_memory(const char *name, const void *data, size_t bytes, sn_gguf *gguf);

/* A packed blob, and nothing of what may lie beside it. SN_E_FORMAT if the file is none. */
sn_status sn_open_blob(const char *path, sn_gguf *gguf);

/* Whether a file of `size` bytes that begins with these is worth collecting for that: n is size or
 * at least SN_BEGINNING_BYTES. SN_E_FORMAT if not. */
#define SN_BEGINNING_BYTES 256
sn_status sn_open_check_beginning(const char *name, const void *first, size_t n, uint64_t size);

/* Only what a tokenizer needs: a folder or file without weights will do (tokenizer.json,
 * tokenizer.model, an RWKV vocabulary, a GGUF, a model of any architecture). */
sn_status sn_open_tokenizer(const char *path, sn_gguf *gguf);

/* What can be said of a model without its weights: sn_open_model(), or, if it is of a kind that is
 * not supported or has no weights at all, sn_open_tokenizer(). */
sn_status sn_open_header(const char *path, sn_gguf *gguf);

/* True if `path` is one of the files that the model was opened from. */
bool sn_opened_from(const sn_gguf *gguf, const char *path);

#endif
