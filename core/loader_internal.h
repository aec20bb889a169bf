/*
 * loader_internal.h: what loader.c (binding) and load_pieces.c (bringing the bytes) share.
 */
#ifndef SN_CORE_LOADER_INTERNAL_H
#define SN_CORE_LOADER_INTERNAL_H

#include "load.h"
#include "loader.h"
#include "quant/packed.h"

/* What an architecture asked for one tensor to become. */
typedef enum sn_request_kind {
    REQUEST_VECTOR, REQUEST_TRANSPOSED, REQUEST_MATRIX, REQUEST_ROWS
} sn_request_kind;

typedef struct sn_request {
    sn_request_kind kind;
    size_t tensor; /* index in the file */
    const sn_type *type;
    uint64_t rows, k;
    const sn_packed_tensor *packed; /* the file holds panels already */
    const void **slot;              /* receives the pointer */
    size_t offset, bytes;           /* in the model's pages, unless mapped */
    uint8_t *to;                    /* where it lies in memory */
    bool mapped;                    /* in the file */
} sn_request;

struct sn_loader {
    const sn_gguf *gguf;
    sn_model *model;
    sn_packed packed;
    sn_request *requests;
    size_t n_requests, capacity;
    uint8_t *roles; /* per tensor: sn_role, of those that are bound */
    bool map;       /* what can be used as it lies in the file stays there */
    /* bringing the bytes */
    const sn_request **by_tensor; /* what each tensor of the file becomes; NULL: not needed */
    uint8_t *staging;          /* holds pieces that are packed or decoded */
    size_t staging_bytes;
    size_t next; /* the tensor at hand */
    uint64_t at; /* bytes of it taken so far */
    sn_progress_fn progress;
    void *progress_user;
    double done, total; /* bytes of the file, for progress */
};

/* Used as it lies in the file: embedding rows and ready-made panels. */
static inline bool sn_request_is_plain(const sn_request *r) {
    return r->kind == REQUEST_ROWS || r->packed;
}

sn_status sn_load_fail_tensor(const sn_loader *loader, sn_status code, const char *name,
                              const char *reason);

/* Bytes of staging that `most` pieces at a time need. */
size_t sn_load_staging_bytes(const sn_loader *loader, size_t most);

#endif
