#include "bpe.h"

static sn_status grow(void **block, size_t *room, size_t used, size_t size) {
    size_t bytes, more = *room ? *room * 2 : 64;
    if (!sn_mul_size(more, size, &bytes))
        return sn_fail(SN_E_NOMEM, "out of memory: a text of %zu symbols", more);
    void *grown = sn_grow(*block, used * size, bytes);
    if (!grown) return SN_E_NOMEM;
    *block = grown;
    *room = more;
    return SN_OK;
}

sn_status sn_bpe_add(sn_bpe *bpe, int32_t id, size_t at, size_t length) {
    if (bpe->n == bpe->room) {
        void *symbols = bpe->symbols;
        SN_TRY(grow(&symbols, &bpe->room, bpe->n, sizeof(sn_symbol)));
        bpe->symbols = symbols;
    }
    uint32_t place = (uint32_t)bpe->n++;
    bpe->symbols[place] = (sn_symbol){ .id = id, .at = (uint32_t)at, .length = (uint32_t)length,
                                       .previous = place ? place - 1 : SN_BPE_NONE,
                                       .next = SN_BPE_NONE };
    if (place) bpe->symbols[place - 1].next = place;
    return SN_OK;
}

/* ---- the heap ----------------------------------------------------------------------- */

static sn_status wait(sn_bpe *bpe, sn_waiting merge) {
    if (bpe->waiting == bpe->heap_room) {
        void *heap = bpe->heap;
        SN_TRY(grow(&heap, &bpe->heap_room, bpe->waiting, sizeof(sn_waiting)));
        bpe->heap = heap;
    }
    size_t at = bpe->waiting++;
    for (; at > 0 && bpe->heap[(at - 1) / 2].order > merge.order; at = (at - 1) / 2)
        bpe->heap[at] = bpe->heap[(at - 1) / 2];
    bpe->heap[at] = merge;
    return SN_OK;
}

static sn_waiting take_first(sn_bpe *bpe) {
    sn_waiting first = bpe->heap[0], last = bpe->heap[--bpe->waiting];
    size_t at = 0, n = bpe->waiting;
    for (size_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && bpe->heap[child + 1].order < bpe->heap[child].order) child++;
        if (bpe->heap[child].order >= last.order) break;
        bpe->heap[at] = bpe->heap[child];
        at = child;
    }
    bpe->heap[at] = last;
    return first;
}

/* ---- merging ------------------------------------------------------------------------ */

/* Lets the pair that begins at `left` wait, if it can be merged. */
static sn_status consider(sn_bpe *bpe, sn_bpe_find find, const void *context, uint32_t left) {
    if (left == SN_BPE_NONE || bpe->symbols[left].next == SN_BPE_NONE) return SN_OK;
    const sn_symbol *a = &bpe->symbols[left], *b = &bpe->symbols[a->next];
    uint32_t rank;
    int32_t id;
    if (!find(context, bpe, a, b, &rank, &id)) return SN_OK;
    return wait(bpe, (sn_waiting){ .order = (uint64_t)rank << 32 | left, .id = id });
}

/* A merge that has waited may be out of date: one of its symbols has been merged since. */
static bool is_current(const sn_bpe *bpe, sn_bpe_find find, const void *context, uint32_t left,
                       int32_t id) {
    const sn_symbol *a = &bpe->symbols[left];
    uint32_t rank;
    int32_t now;
    return a->length > 0 && a->next != SN_BPE_NONE &&
           find(context, bpe, a, &bpe->symbols[a->next], &rank, &now) && now == id;
}

static void join(sn_bpe *bpe, uint32_t left, int32_t id) {
    sn_symbol *a = &bpe->symbols[left], *b = &bpe->symbols[a->next];
    a->id = id;
    a->length += b->length;
    a->next = b->next;
    b->length = 0;
    if (a->next != SN_BPE_NONE) bpe->symbols[a->next].previous = left;
}

sn_status sn_bpe_merge(sn_bpe *bpe, sn_bpe_find find, const void *context) {
    bpe->waiting = 0;
    for (size_t i = 0; i + 1 < bpe->n; i++)
        SN_TRY(consider(bpe, find, context, (uint32_t)i));
    while (bpe->waiting) {
        sn_waiting merge = take_first(bpe);
        uint32_t left = (uint32_t)(merge.order & UINT32_MAX);
        if (!is_current(bpe, find, context, left, merge.id)) continue;
        join(bpe, left, merge.id);
        SN_TRY(consider(bpe, find, context, bpe->symbols[left].previous));
        SN_TRY(consider(bpe, find, context, left));
    }
    return SN_OK;
}

void sn_bpe_free(sn_bpe *bpe) {
    sn_free(bpe->symbols);
    sn_free(bpe->heap);
    *bpe = (sn_bpe){ .text = NULL };
}
