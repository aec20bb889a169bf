/*
 * computed.h: matrices whose rows are computed while they are read: folded or decoded weights
 * then stream like stored ones, and one row at a time is held.
 */
#ifndef SN_IMPORT_COMPUTED_H
#define SN_IMPORT_COMPUTED_H

#include "../formats/store.h"

/* Stores the `k` values of row `row`. */
typedef sn_status (*sn_row_fn)(const void *context, uint64_t row, uint64_t k, float *values);

/*
 * A (rows, k) float32 matrix whose rows come from `fn`, which gets a copy of the `bytes` bytes at
 * `context` (64 at most). It lives as long as the store. `file_name` is for error texts and
 * outlives the store's files; *view has no name of its own.
 */
sn_status sn_computed_rows(sn_store *store, const char *file_name, uint64_t rows, uint64_t k,
                           sn_row_fn fn, const void *context, size_t bytes, sn_view *view);

#endif
