/*
 * trie.c: the nodes lie level by level in flat arrays, siblings side by side in the order of
 * their bytes: nine bytes per node, no pointers. Built from the sorted words in one pass.
 */
#include "trie.h"

#include <string.h>

struct sn_trie {
    size_t n_nodes;  /* node 0 is the root */
    uint32_t *child; /* [n_nodes + 1]: node's children are child[node] to child[node + 1] */
    int32_t *id;     /* [n_nodes]: of the word that ends here, -1 if none does */
    uint8_t *label;  /* [n_nodes]: the byte that leads here */
};

/* ---- sorting ------------------------------------------------------------------------ */

typedef struct entry {
    uint64_t prefix; /* first eight bytes, the first one on top: decides most comparisons */
    uint32_t word;   /* which of the words */
} entry;

static uint64_t prefix_of(const uint8_t *bytes, size_t length) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < length ? bytes[i] : 0);
    return prefix;
}

static bool is_greater(const sn_word *words, const entry *a, const entry *b) {
    if (a->prefix != b->prefix) return a->prefix > b->prefix;
    const sn_word *x = &words[a->word], *y = &words[b->word];
    int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
    return order ? order > 0 : x->length > y->length;
}

/* from[0, middle) and from[middle, end) are sorted; middle >= end: there is only the first. */
static void merge(const sn_word *words, const entry *from, size_t middle, size_t end,
                  entry *to) {
    size_t a = 0, b = middle;
    for (size_t i = 0; i < end; i++) {
        bool take_b = a == middle || (b < end && is_greater(words, &from[a], &from[b]));
        to[i] = from[take_b ? b++ : a++];
    }
}

/* Stable, so that equal words stay in their order. Returns the array of the two that holds the
 * result. */
static entry *sort(const sn_word *words, entry *entries, entry *scratch, size_t n) {
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t i = 0; i < n; i += 2 * run) {
            size_t end = n - i < 2 * run ? n - i : 2 * run;
            merge(words, entries + i, run, end, scratch + i);
        }
        entry *swap = entries;
        entries = scratch;
        scratch = swap;
    }
    return entries;
}

/* ---- building ----------------------------------------------------------------------- */

typedef struct range { /* of the sorted entries: those that go through a node */
    uint32_t low, high;
} range;

/* Every byte of a word that it does not share with the word before it is a node. */
static size_t count_nodes(const sn_word *words, const entry *sorted, size_t n) {
    sn_word previous = { .length = 0 };
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) {
        sn_word word = words[sorted[i].word];
        size_t shared = 0;
        while (shared < word.length && shared < previous.length &&
               word.bytes[shared] == previous.bytes[shared])
            shared++;
        nodes += word.length - shared;
        previous = word;
    }
    return nodes;
}

static sn_status allocate(size_t n_nodes, sn_trie **trie) {
    size_t per_node = sizeof(uint32_t) + sizeof(int32_t) + sizeof(uint8_t), arrays, total;
    if (!sn_mul_size(n_nodes + 1, per_node, &arrays) ||
        !sn_add_size(arrays, sizeof(sn_trie), &total))
        return sn_fail(SN_E_NOMEM, "out of memory: a trie of %zu nodes", n_nodes);
    sn_trie *made = sn_alloc(total);
    if (!made) return SN_E_NOMEM;
    made->n_nodes = n_nodes;
    made->child = (uint32_t *)(made + 1);
    made->id = (int32_t *)(made->child + n_nodes + 1);
    made->label = (uint8_t *)(made->id + n_nodes);
    *trie = made;
    return SN_OK;
}

/* Gives each node, level after level, its id and its children. ranges[] has one per node. */
static void connect(sn_trie *trie, const sn_word *words, const entry *sorted, size_t n,
                    range *ranges) {
    uint32_t next = 1;
    size_t depth = 0, level_end = 1;
    ranges[0] = (range){ .low = 0, .high = (uint32_t)n };
    for (size_t node = 0; node < trie->n_nodes; node++) {
        if (node == level_end) {
            depth++;
            level_end = next;
        }
        trie->id[node] = -1;
        trie->child[node] = next;
        for (uint32_t i = ranges[node].low; i < ranges[node].high; i++) {
            const sn_word *word = &words[sorted[i].word];
            if (word->length == depth) { /* such come first, the first of them in front */
                if (trie->id[node] < 0) trie->id[node] = word->id;
                continue;
            }
            if (next == trie->child[node] || trie->label[next - 1] != word->bytes[depth]) {
                trie->label[next] = word->bytes[depth];
                ranges[next++].low = i;
            }
            ranges[next - 1].high = i + 1;
        }
    }
    trie->child[trie->n_nodes] = next;
}

static sn_status build(const sn_word *words, size_t n, entry *entries, sn_trie **trie) {
    for (size_t i = 0; i < n; i++)
        entries[i] = (entry){ .prefix = prefix_of(words[i].bytes, words[i].length),
                              .word = (uint32_t)i };
    const entry *sorted = sort(words, entries, entries + n, n);
    size_t n_nodes = count_nodes(words, sorted, n);
    range *ranges = sn_alloc_array(n_nodes, sizeof(range));
    if (!ranges) return SN_E_NOMEM;
    sn_status status = allocate(n_nodes, trie);
    if (status == SN_OK) connect(*trie, words, sorted, n, ranges);
    sn_free(ranges);
    return status;
}

sn_status sn_trie_new(const sn_word *words, size_t n, sn_trie **trie) {
    entry *entries = sn_alloc_array(n, 2 * sizeof(entry));
    if (!entries) return SN_E_NOMEM;
    sn_status status = build(words, n, entries, trie);
    sn_free(entries);
    return status;
}

void sn_trie_free(sn_trie *trie) {
    sn_free(trie);
}

/* ---- finding ------------------------------------------------------------------------ */

/* The child of `node` by its byte; 0, which is nobody's child, if there is none. */
static uint32_t find_child(const sn_trie *trie, uint32_t node, uint8_t byte) {
    uint32_t low = trie->child[node], high = trie->child[node + 1];
    if (high - low == 256) return low + byte; /* the root, as a rule */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trie->label[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trie->child[node + 1] && trie->label[low] == byte ? low : 0;
}

size_t sn_trie_longest(const sn_trie *trie, const uint8_t *text, size_t bytes, int32_t *id) {
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < bytes; i++) {
        node = find_child(trie, node, text[i]);
        if (node == 0) break;
        if (trie->id[node] < 0) continue;
        *id = trie->id[node];
        longest = i + 1;
    }
    return longest;
}
