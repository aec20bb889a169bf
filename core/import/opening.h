/*
 * opening.h: a model on its way to a GGUF stream, as far as open.c (which model it is) and
 * weights.c (which files it lies in) share it.
 */
#ifndef SN_IMPORT_OPENING_H
#define SN_IMPORT_OPENING_H

#include "import.h"

typedef struct sn_opening {
    const char *name; /* what the user gave */
    bool is_folder;
    char *folder; /* where its companions lie; NULL: it comes from memory */
    sn_store *store;
    sn_build *build;
    sn_json_document *document; /* config.json, if there is one */
    char *origins;              /* as in sn_gguf */
    size_t origins_bytes;       /* without the empty path */
    bool is_blob;               /* which declares itself while it is read */
} sn_opening;

/* Notes a file that the model is made from. */
sn_status sn_opening_add_origin(sn_opening *o, const char *path);

/* A JSON file, which must be an object, as a tree. */
sn_status sn_opening_read_json(const char *path, size_t limit, sn_json_document **document);

/* Adds the tensors of a file, whatever it is; the first takes over the file. */
sn_status sn_opening_add_weights(sn_opening *o, sn_file *file);
sn_status sn_opening_add_file(sn_opening *o, const char *path);

/* Adds the tensors of all files that an index of shards names. */
sn_status sn_opening_add_shards(sn_opening *o, const char *index);

#endif
