/*
 * build.h: a GGUF file that is put together on the fly: keys and tensors are declared, then it
 * is a stream of bytes like any other (sn_input). Foreign containers are read this way, so that
 * the loader, the tokenizers and convert know one format. Nothing is held but the header and
 * small computed tensors; the others are read from their views while the stream is read.
 */
#ifndef SN_IMPORT_BUILD_H
#define SN_IMPORT_BUILD_H

#include "../formats/gguf.h"
#include "../formats/json.h"
#include "../formats/store.h"

typedef struct sn_build sn_build;

/* `name` is the file or folder, for error texts (copied). */
sn_status sn_build_new(const char *name, sn_build **build);
void sn_build_free(sn_build *build); /* NULL is fine */
const char *sn_build_name(const sn_build *build);

/* ---- keys; a key may be set once ---- */
sn_status sn_build_u32(sn_build *build, const char *key, uint32_t value);
sn_status sn_build_f32(sn_build *build, const char *key, float value);
sn_status sn_build_bool(sn_build *build, const char *key, bool value);
sn_status sn_build_text(sn_build *build, const char *key, const char *text, size_t bytes);
sn_status sn_build_texts(sn_build *build, const char *key, const sn_span *texts, uint64_t n);
sn_status sn_build_u32s(sn_build *build, const char *key, const uint32_t *values, uint64_t n);
sn_status sn_build_i32s(sn_build *build, const char *key, const int32_t *values, uint64_t n);
sn_status sn_build_f32s(sn_build *build, const char *key, const float *values, uint64_t n);
bool sn_build_has(const sn_build *build, const char *key);

/* ---- tensors. Names: docs/formats.md. The stream has computed ones first, then the others in
 * the order in which they lie in their files, so that a disk reads forward ---- */

/* A matrix (out, in), or embedding rows, as the view has it; F64 becomes F32, other types (a blob's
 * I4 among them) stay. The
 * view must have two dimensions and belong to a store that lives as long as the build. */
sn_status sn_build_matrix(sn_build *build, const char *name, const sn_view *view);

/* A vector or small array: always F32. dims fastest first; their product is the view's number of
 * elements, which are taken in row-major order. */
sn_status sn_build_vector(sn_build *build, const char *name, const sn_view *view, uint32_t n_dims,
                          const uint64_t *dims);

/* The same with each value (as float32) taken through `map`, whose result is rounded to F32. */
sn_status sn_build_mapped(sn_build *build, const char *name, const sn_view *view, uint32_t n_dims,
                          const uint64_t *dims, double (*map)(double));

/* Rows of a declared matrix; 0 if there is none of that name. */
uint64_t sn_build_rows(const sn_build *build, const char *name);

/* Computed values (copied), F32. */
sn_status sn_build_values(sn_build *build, const char *name, const float *values, uint32_t n_dims,
                          const uint64_t *dims);

/*
 * The file as an input that is read from front to back, header first. The input takes over
 * `build` and `store` (may be NULL), on failure too, and frees both when it is closed.
 */
sn_status sn_build_input(sn_build *build, sn_store *store, sn_input *input);

#endif
