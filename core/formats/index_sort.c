#include "index_sort.h"

/* Lets the item at `root` sink until no child in [0, n) is greater. */
static void sink(uint32_t *index, size_t root, size_t n, sn_compare_fn compare,
                 const void *table) {
    uint32_t item = index[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && compare(table, index[child], index[child + 1]) < 0) child++;
        if (compare(table, item, index[child]) >= 0) break;
        index[root] = index[child];
    }
    index[root] = item;
}

void sn_index_sort(uint32_t *index, size_t n, sn_compare_fn compare, const void *table) {
    for (size_t i = 0; i < n; i++) index[i] = (uint32_t)i;
    for (size_t root = n / 2; root-- > 0;) sink(index, root, n, compare, table);
    for (size_t end = n; end-- > 1;) {
        uint32_t last = index[end];
        index[end] = index[0];
        index[0] = last;
        sink(index, 0, end, compare, table);
    }
}
