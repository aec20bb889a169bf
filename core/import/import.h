/*
 * import.h: what the files of the import room share. A model's importer looks at a store (and
 * the config, if there is one), and declares keys and tensors under their names in GGUF.
 */
#ifndef SN_IMPORT_IMPORT_H
#define SN_IMPORT_IMPORT_H

#include "build.h"

/* What has been found. */
typedef struct sn_source_model {
    const char *name;      /* file or folder, for error texts */
    sn_store *store; /* may take computed rows (computed.h) */
    const sn_json *config; /* config.json or the checkpoint's own; NULL if there is none */
} sn_source_model;

/* One kind of model, as people keep it. */
typedef struct sn_importer {
    const char *architecture; /* ours: "mamba2" */
    /* True if this is its kind, judged by config's model_type (architectures) or tensor names. */
    bool (*recognises)(const sn_source_model *source);
    /* Declares everything but the tokenizer. Options of the config that are not honoured are
     * refused by name: SN_E_UNSUPPORTED. */
    sn_status (*declare)(const sn_source_model *source, sn_build *build);
} sn_importer;

extern const sn_importer sn_import_rwkv7, sn_import_rwkv7_fla, sn_import_mamba2, sn_import_mamba,
    sn_import_gla, sn_import_deltanet, sn_import_gated_deltanet, sn_import_hgrn2,
    sn_import_sunnynet;

/* Packed blobs: adds the blob's matrices to the store as views and declares the model. */
bool sn_blob_smells(const sn_file *file);
sn_status sn_blob_import(sn_file *file, sn_store *store, sn_build *build); /* takes over file */

/*
 * The tokenizer that lies in `folder` (tokenizer.json, tokenizer_config.json, tokenizer.model,
 * rwkv_vocab*.txt; generation_config.json for end-of-text ids), as tokenizer.* keys padded to
 * n_vocab ids (0: as many as there are). Declares nothing if there is none; *found says so.
 */
sn_status sn_import_tokenizer(const char *folder, uint64_t n_vocab, const sn_json *config,
                              sn_build *build, bool *found);

/* The same from one file: tokenizer.json (Hugging Face's or SunnyNet's schema), tokenizer.model,
 * RWKV vocabulary. */
sn_status sn_import_tokenizer_file(const char *path, uint64_t n_vocab, sn_build *build);

/* exp, ln and tanh in binary64 out of + - * / alone, so that constants computed at import are the
 * same on every target; error below 2 ulp of binary64 (real64.c). */
double sn_exp64(double x);
double sn_log64(double x); /* x > 0 */
double sn_tanh64(double x);

#endif
