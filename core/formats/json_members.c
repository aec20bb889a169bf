#include "json_internal.h"

#include <string.h>

/*
 * Members are found by binary search in a sorted table. Sorting, not hashing: no choice of keys
 * makes it slow.
 */

/* A key's first eight bytes decide most comparisons without a look at the key itself. */
typedef struct sort_entry {
    uint64_t prefix;
    const sn_json *member;
} sort_entry;

static uint64_t prefix_of(const char *key, size_t size) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < size ? (uint8_t)key[i] : 0);
    return prefix;
}

/* Bytewise; a key that begins another stands before it. */
static int compare_keys(const char *a, size_t a_size, const char *b, size_t b_size) {
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

static bool goes_before(const sort_entry *a, const sort_entry *b) {
    if (a->prefix != b->prefix) return a->prefix < b->prefix;
    return compare_keys(a->member->key, a->member->key_size, b->member->key,
                        b->member->key_size) < 0;
}

/* Merges from[low, middle) and from[middle, high) to `to`. */
static void merge(const sort_entry *from, sort_entry *to, size_t low, size_t middle,
                  size_t high) {
    size_t a = low, b = middle;
    for (size_t i = low; i < high; i++)
        to[i] = b == high || (a < middle && !goes_before(&from[b], &from[a])) ? from[a++]
                                                                              : from[b++];
}

/* Sorts n entries with the help of n more behind them; where the result lies is returned. */
static sort_entry *merge_sort(sort_entry *entries, size_t n) {
    sort_entry *from = entries, *to = entries + n;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t middle = low + width < n ? low + width : n;
            merge(from, to, low, middle, middle + width < n ? middle + width : n);
        }
        sort_entry *swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

static sn_status sort_members(const sn_json *object, const sn_json **table) {
    size_t n = object->size, i = 0;
    sort_entry *entries = sn_alloc_array(n, 2 * sizeof *entries);
    if (!entries) return SN_E_NOMEM;
    for (const sn_json *member = object->first; member; member = member->next)
        entries[i++] = (sort_entry){ prefix_of(member->key, member->key_size), member };
    const sort_entry *ordered = merge_sort(entries, n);
    for (i = 0; i < n; i++) table[i] = ordered[i].member;
    sn_free(entries);
    return SN_OK;
}

static bool same_key(const sn_json *a, const sn_json *b) {
    return compare_keys(a->key, a->key_size, b->key, b->key_size) == 0;
}

sn_status sn_json_order_members(sn_json *object, const sn_json **table, const sn_json **twice) {
    *twice = NULL;
    if (!table) {
        for (const sn_json *a = object->first; a; a = a->next)
            for (const sn_json *b = a->next; b; b = b->next)
                if (same_key(a, b)) *twice = b;
        return SN_OK;
    }
    SN_TRY(sort_members(object, table));
    for (size_t i = 1; i < object->size; i++)
        if (same_key(table[i - 1], table[i])) *twice = table[i];
    object->sorted = (const sn_json *const *)table;
    return SN_OK;
}

/* ---- looking things up -------------------------------------------------------------- */

const sn_json *sn_json_get_sized(const sn_json *object, const char *key, size_t key_size) {
    if (!object || object->kind != SN_JSON_OBJECT) return NULL;
    if (!object->sorted) {
        const sn_json *member = object->first;
        while (member && compare_keys(key, key_size, member->key, member->key_size) != 0)
            member = member->next;
        return member;
    }
    size_t low = 0, high = object->size;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sn_json *member = object->sorted[middle];
        int order = compare_keys(key, key_size, member->key, member->key_size);
        if (order == 0) return member;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const sn_json *sn_json_get(const sn_json *object, const char *key) {
    return sn_json_get_sized(object, key, strlen(key));
}

bool sn_json_is(const sn_json *value, const char *text) {
    return value && value->kind == SN_JSON_STRING && value->size == strlen(text) &&
           memcmp(value->text, text, value->size) == 0;
}
