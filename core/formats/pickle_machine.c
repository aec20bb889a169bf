#include "pickle_machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_VALUES ((size_t)4 << 20)
#define MAX_STACK ((size_t)1 << 20)
#define LAST_CHUNK ((size_t)1 << 20) /* each is twice as large as the one before */

/* ---- errors and memory -------------------------------------------------------------- */

sn_status sn_pickle_reject(const sn_pickle_machine *m, const char *format, ...) {
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return sn_fail(SN_E_FORMAT, "%.300s: pickle, byte %zu: %s", m->name, m->op_at, reason);
}

void *sn_pickle_memory(sn_pickle_machine *m, size_t bytes) {
    size_t needed = sn_round_up(bytes, 16);
    if (needed > m->n_free) {
        size_t header = SN_ALIGNMENT, room = m->chunk_bytes > needed ? m->chunk_bytes : needed;
        struct sn_pickle_chunk *made = sn_alloc(header + room);
        if (!made) return NULL;
        made->next = m->pickle->chunks;
        m->pickle->chunks = made;
        m->free_bytes = (char *)made + header;
        m->n_free = room;
        if (m->chunk_bytes < LAST_CHUNK) m->chunk_bytes *= 2;
    }
    void *taken = m->free_bytes;
    m->free_bytes += needed;
    m->n_free -= needed;
    return taken;
}

sn_status sn_pickle_new(sn_pickle_machine *m, sn_pickle_kind kind, sn_pickle_value **made) {
    if (++m->n_values > MAX_VALUES) return sn_pickle_reject(m, "more than %zu values", MAX_VALUES);
    *made = sn_pickle_memory(m, sizeof **made);
    if (!*made) return SN_E_NOMEM;
    (*made)->kind = kind;
    return SN_OK;
}

sn_status sn_pickle_grow(sn_pickle_machine *m, sn_pickle_value ***array, size_t n,
                         size_t *capacity, size_t limit) {
    if (n < *capacity) return SN_OK;
    if (n >= limit) return sn_pickle_reject(m, "more than %zu values on the stack", limit);
    size_t larger = n ? 2 * n : 64;
    sn_pickle_value **grown = sn_grow(*array, n * sizeof *grown, larger * sizeof *grown);
    if (!grown) return SN_E_NOMEM;
    *array = grown;
    *capacity = larger;
    return SN_OK;
}

sn_status sn_pickle_new_text(sn_pickle_machine *m, sn_pickle_kind kind, const void *bytes,
                             size_t size, sn_pickle_value **made) {
    SN_TRY(sn_pickle_new(m, kind, made));
    char *text = sn_pickle_memory(m, size + 1);
    if (!text) return SN_E_NOMEM;
    memcpy(text, bytes, size);
    text[size] = '\0';
    (*made)->text = text;
    (*made)->size = size;
    return SN_OK;
}

sn_status sn_pickle_extend(sn_pickle_machine *m, sn_pickle_value *container,
                           sn_pickle_value *const *items, size_t n) {
    size_t needed = container->size + n; /* both are bounded by the file's size */
    if (needed > container->capacity) {
        size_t capacity = 2 * container->capacity > needed ? 2 * container->capacity : needed;
        sn_pickle_value **grown = sn_pickle_memory(m, capacity * sizeof *grown);
        if (!grown) return SN_E_NOMEM;
        if (container->size)
            memcpy(grown, container->items, container->size * sizeof *grown);
        container->items = grown;
        container->capacity = capacity;
    }
    for (size_t i = 0; i < n; i++) container->items[container->size++] = items[i];
    return SN_OK;
}

sn_status sn_pickle_push_foreign(sn_pickle_machine *m, const char *what, size_t size) {
    sn_pickle_value *made = NULL;
    SN_TRY(sn_pickle_new_text(m, SN_PICKLE_FOREIGN, what, size, &made));
    return sn_pickle_push(m, made);
}

/* ---- bytes and the stack ------------------------------------------------------------ */

sn_status sn_pickle_take(sn_pickle_machine *m, uint64_t bytes, const uint8_t **taken) {
    if (bytes > m->size - m->at)
        return sn_pickle_reject(m, "%" PRIu64 " bytes needed, %zu left", bytes, m->size - m->at);
    *taken = m->data + m->at;
    m->at += (size_t)bytes;
    return SN_OK;
}

sn_status sn_pickle_take_number(sn_pickle_machine *m, size_t bytes, uint64_t *number) {
    const uint8_t *p = NULL;
    SN_TRY(sn_pickle_take(m, bytes, &p));
    *number = 0;
    for (size_t i = bytes; i-- > 0;) *number = *number << 8 | p[i];
    return SN_OK;
}

sn_status sn_pickle_push(sn_pickle_machine *m, sn_pickle_value *pushed) {
    SN_TRY(sn_pickle_grow(m, &m->stack, m->n_stack, &m->stack_capacity, MAX_STACK));
    m->stack[m->n_stack++] = pushed;
    return SN_OK;
}

sn_status sn_pickle_pop(sn_pickle_machine *m, sn_pickle_value **popped) {
    if (m->n_stack == 0 || !m->stack[m->n_stack - 1])
        return sn_pickle_reject(m, "a value is missing on the stack");
    *popped = m->stack[--m->n_stack];
    return SN_OK;
}

sn_status sn_pickle_top(sn_pickle_machine *m, sn_pickle_value **found) {
    SN_TRY(sn_pickle_pop(m, found));
    m->n_stack++;
    return SN_OK;
}

sn_status sn_pickle_pop_to_mark(sn_pickle_machine *m, sn_pickle_value ***items, size_t *n) {
    size_t at = m->n_stack;
    while (at && m->stack[at - 1]) at--;
    if (at == 0) return sn_pickle_reject(m, "a mark is missing on the stack");
    *items = m->stack + at;
    *n = m->n_stack - at;
    m->n_stack = at - 1;
    return SN_OK;
}
