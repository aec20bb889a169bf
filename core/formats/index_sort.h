/*
 * index_sort.h: puts the indices 0..n-1 of any table in order. Heapsort: no input, however
 * hostile, takes more than n log n comparisons, and no memory is needed.
 */
#ifndef SN_FORMATS_INDEX_SORT_H
#define SN_FORMATS_INDEX_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Negative, 0 or positive, as item a stands before, beside or after item b. */
typedef int (*sn_compare_fn)(const void *table, uint32_t a, uint32_t b);

/* Fills index[0..n). Equal items come in no particular order. */
void sn_index_sort(uint32_t *index, size_t n, sn_compare_fn compare, const void *table);

#endif
