/*
 * loader.h: how an architecture takes its tensors out of a file. bind() names every tensor
 * with the shape it must have; the loader then sizes one block of memory, reads the file once
 * from front to back and packs each tensor into its place.
 */
#ifndef SN_CORE_LOADER_H
#define SN_CORE_LOADER_H

#include "model.h"

/* The file's metadata, for hyperparameters. */
const sn_gguf *sn_loader_gguf(const sn_loader *loader);

/* Allocates the architecture's weights struct (zeroed) into model->weights. */
sn_status sn_loader_weights(sn_loader *loader, size_t bytes);

/* Whether the file holds the tensor; its logical (out, in) shape, rows = 1 for a vector. */
bool sn_loader_has(const sn_loader *loader, const char *name);
sn_status sn_loader_shape(const sn_loader *loader, const char *name, uint64_t *rows,
                          uint64_t *k);

/*
 * *vector receives n float32 values, *matrix a matrix in panels, *rows embedding rows as they
 * lie in the file. The pointers are filled in when the model is complete. `n` counts all
 * elements of the tensor, whatever its dimensions.
 */
sn_status sn_loader_vector(sn_loader *loader, const char *name, uint64_t n, const float **vector);
sn_status sn_loader_matrix(sn_loader *loader, const char *name, uint64_t rows, uint64_t k,
                           sn_matrix *matrix);
sn_status sn_loader_rows(sn_loader *loader, const char *name, uint64_t n, uint64_t k,
                         sn_rows *rows);

/* A vector of (rows, k) that lies as [k][rows] in memory. */
sn_status sn_loader_transposed(sn_loader *loader, const char *name, uint64_t rows, uint64_t k,
                               const float **vector);

/* One tensor as embedding rows and as a matrix: it lies in memory once, in panels. */
sn_status sn_loader_tied(sn_loader *loader, const char *name, uint64_t n, uint64_t k,
                         sn_rows *rows, sn_matrix *matrix);

#endif
