/*
 * load.h: the loader as the model sees it (architectures see loader.h). The file is taken as a
 * sequence of pieces, each with a place to go, so that it does not matter who brings the bytes:
 * a file that is read, or a download that arrives when it likes.
 */
#ifndef SN_CORE_LOAD_H
#define SN_CORE_LOAD_H

#include "model.h"

/* `bytes` bytes at `offset` of file part `part` belong at `to`. */
typedef struct sn_piece {
    uint64_t part, offset;
    uint8_t *to;
    size_t bytes;
    bool mapped; /* they are there already */
    const struct sn_request *request; /* what they are a part of */
    uint64_t at;                      /* bytes of it before these */
} sn_piece;

/* Binds the architecture's tensors and, unless header_only, allocates the weights and room for
 * `most` pieces at a time. model->arch and model->tensors are set; gguf and model must outlive the
 * loader. */
sn_status sn_load_begin(const sn_gguf *gguf, sn_model *model, const sn_model_options *options,
                        size_t most, sn_loader **loader);

/* What the architecture makes of a tensor of the file. */
typedef enum sn_role { SN_ROLE_UNUSED, SN_ROLE_VECTOR, SN_ROLE_MATRIX, SN_ROLE_ROWS } sn_role;
sn_role sn_load_role(const sn_loader *loader, size_t tensor);

/* The next pieces, at most `most`; offsets ascend within a part. Those of the call before must
 * have been kept. 0: the model is complete. */
size_t sn_load_next(sn_loader *loader, sn_piece *pieces, size_t most);

/* The piece has been filled: checks it, and packs or decodes it to where it is used. Threads may
 * keep different pieces at the same time. */
sn_status sn_load_keep(const sn_loader *loader, const sn_piece *piece);

/* Tells the caller's progress callback that `bytes` more have been kept; it may ask to stop. */
sn_status sn_load_report(sn_loader *loader, size_t bytes);

/* Reads and keeps all pieces, on the threads of the pool. */
#define SN_PIECES_AT_ONCE 32
sn_status sn_load_read(sn_loader *loader, const sn_gguf *gguf, sn_pool *pool);

void sn_load_free(sn_loader *loader); /* NULL is fine */

/* ---- a model around it (model.c) ---- */

/* Checks what the caller gave (may be NULL) and fills in defaults. A wanted back end that is not
 * there is told here, before a long load. */
sn_status sn_model_check_options(const sn_model_options *given, sn_model_options *options);

/* A model that knows its file but has no weights yet, and the loader that brings them, at most
 * `most` pieces at a time. */
sn_status sn_model_begin(const sn_gguf *gguf, const sn_model_options *options, size_t most,
                         sn_model **model, sn_loader **loader);

/* All of it, from an open file, which is closed in any case. */
sn_status sn_model_from(sn_gguf *gguf, const sn_model_options *options, sn_model **model);

#endif
