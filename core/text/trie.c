/*
 * trie.c: the nodes lie level by level in flat arrays, siblings side by side in the order of
 * their bytes: nine bytes per node, no pointers. Built from the sorted tokens in one pass.
 */
#include "trie.h"

#include <string.h>

struct sn_trie {
    size_t n_nodes;  /* node 0 is the root */
    uint32_t *child; /* [n_nodes + 1]: node's children are child[node] to child[node + 1] */
    int32_t *id;     /* [n_nodes]: the token that ends here, -1 if none does */
    uint8_t *label;  /* [n_nodes]: the byte that leads here */
};

/* ---- sorting ------------------------------------------------------------------------ */

typedef struct entry {
    uint64_t prefix; /* first eight bytes, the first one on top: decides most comparisons */
    int32_t id;
} entry;

static uint64_t prefix_of(const uint8_t *bytes, size_t length) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < length ? bytes[i] : 0);
    return prefix;
}

static bool is_greater(const sn_tokenizer *vocabulary, const entry *a, const entry *b) {
    if (a->prefix != b->prefix) return a->prefix > b->prefix;
    size_t a_length, b_length;
    const uint8_t *a_bytes = sn_vocabulary_token(vocabulary, a->id, &a_length);
    const uint8_t *b_bytes = sn_vocabulary_token(vocabulary, b->id, &b_length);
    int order = memcmp(a_bytes, b_bytes, a_length < b_length ? a_length : b_length);
    return order ? order > 0 : a_length > b_length;
}

/* from[0, middle) and from[middle, end) are sorted; middle >= end: there is only the first. */
static void merge(const sn_tokenizer *vocabulary, const entry *from, size_t middle, size_t end,
                  entry *to) {
    size_t a = 0, b = middle;
    for (size_t i = 0; i < end; i++) {
        bool take_b = a == middle || (b < end && is_greater(vocabulary, &from[a], &from[b]));
        to[i] = from[take_b ? b++ : a++];
    }
}

/* Stable, so that equal tokens stay in the order of their ids. Returns the array of the two
 * that holds the result. */
static entry *sort(const sn_tokenizer *vocabulary, entry *entries, entry *scratch, size_t n) {
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t i = 0; i < n; i += 2 * run) {
            size_t end = n - i < 2 * run ? n - i : 2 * run;
            merge(vocabulary, entries + i, run, end, scratch + i);
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

static size_t collect(const sn_tokenizer *vocabulary, entry *entries) {
    size_t n = 0;
    for (int32_t id = 0; id < vocabulary->n_ids; id++) {
        size_t length;
        const uint8_t *bytes = sn_vocabulary_token(vocabulary, id, &length);
        if (vocabulary->roles[id] != SN_TOKEN_TEXT || length == 0) continue;
        entries[n++] = (entry){ .prefix = prefix_of(bytes, length), .id = id };
    }
    return n;
}

/* Every byte of a token that it does not share with the token before it is a node. */
static size_t count_nodes(const sn_tokenizer *vocabulary, const entry *sorted, size_t n) {
    const uint8_t *previous = NULL;
    size_t previous_length = 0, nodes = 1;
    for (size_t i = 0; i < n; i++) {
        size_t length, shared = 0;
        const uint8_t *bytes = sn_vocabulary_token(vocabulary, sorted[i].id, &length);
        while (shared < length && shared < previous_length && bytes[shared] == previous[shared])
            shared++;
        nodes += length - shared;
        previous = bytes;
        previous_length = length;
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
static void connect(sn_trie *trie, const sn_tokenizer *vocabulary, const entry *sorted, size_t n,
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
            size_t length;
            const uint8_t *bytes = sn_vocabulary_token(vocabulary, sorted[i].id, &length);
            if (length == depth) { /* such come first, the lowest id in front */
                if (trie->id[node] < 0) trie->id[node] = sorted[i].id;
                continue;
            }
            if (next == trie->child[node] || trie->label[next - 1] != bytes[depth]) {
                trie->label[next] = bytes[depth];
                ranges[next++].low = i;
            }
            ranges[next - 1].high = i + 1;
        }
    }
    trie->child[trie->n_nodes] = next;
}

static sn_status build(const sn_tokenizer *vocabulary, entry *entries, entry *scratch,
                       sn_trie **trie) {
    size_t n = collect(vocabulary, entries);
    const entry *sorted = sort(vocabulary, entries, scratch, n);
    size_t n_nodes = count_nodes(vocabulary, sorted, n);
    range *ranges = sn_alloc_array(n_nodes, sizeof(range));
    if (!ranges) return SN_E_NOMEM;
    sn_status status = allocate(n_nodes, trie);
    if (status == SN_OK) connect(*trie, vocabulary, sorted, n, ranges);
    sn_free(ranges);
    return status;
}

sn_status sn_trie_new(const sn_tokenizer *vocabulary, sn_trie **trie) {
    size_t n_ids = (size_t)vocabulary->n_ids;
    entry *entries = sn_alloc_array(n_ids, 2 * sizeof(entry));
    if (!entries) return SN_E_NOMEM;
    sn_status status = build(vocabulary, entries, entries + n_ids, trie);
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
