/*
 * store_internal.h: what store.c keeps for view.c. Private to both.
 */
#ifndef SN_FORMATS_STORE_INTERNAL_H
#define SN_FORMATS_STORE_INTERNAL_H

#include "store.h"

/* A block of a strided view, gathered into row-major order (view.c). */
typedef struct sn_gather sn_gather;
void sn_gather_free(sn_gather *gather); /* NULL is fine */

/* Where a store keeps its block; *place is NULL until the first. */
sn_gather **sn_store_gather(sn_store *store);

/* True if the elements lie one behind the other in row-major order. */
bool sn_view_is_contiguous(const sn_view *view);

#endif
