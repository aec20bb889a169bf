/*
 * pickle_machine.h: the stack machine that a pickle is a program for. Private to pickle*.c.
 */
#ifndef SN_FORMATS_PICKLE_MACHINE_H
#define SN_FORMATS_PICKLE_MACHINE_H

#include "pickle.h"

struct sn_pickle_chunk { /* of memory for values, which never move */
    struct sn_pickle_chunk *next;
};

struct sn_pickle {
    struct sn_pickle_chunk *chunks;
    const sn_pickle_value *root;
    sn_pickle_value none, yes, no, empty_tuple; /* those without content are there once */
};

typedef struct sn_pickle_machine {
    const char *name;
    const uint8_t *data;
    size_t size, at, op_at; /* op_at: of the operation at hand */
    sn_pickle *pickle;
    char *free_bytes; /* in the newest chunk */
    size_t n_free, chunk_bytes, n_values;
    sn_pickle_value **stack, **memo; /* NULL on the stack is a mark */
    size_t n_stack, stack_capacity, n_memo, memo_capacity;
} sn_pickle_machine;

/* ---- pickle_machine.c --------------------------------------------------------------- */

/* SN_E_FORMAT, with file and byte in front of the reason. */
sn_status sn_pickle_reject(const sn_pickle_machine *m, const char *format, ...) SN_PRINTF(2, 3);

void *sn_pickle_memory(sn_pickle_machine *m, size_t bytes); /* zeroed, aligned to 16 */
sn_status sn_pickle_new(sn_pickle_machine *m, sn_pickle_kind kind, sn_pickle_value **made);
sn_status sn_pickle_new_text(sn_pickle_machine *m, sn_pickle_kind kind, const void *bytes,
                             size_t size, sn_pickle_value **made);

/* Appends items to a list, tuple or dictionary. */
sn_status sn_pickle_extend(sn_pickle_machine *m, sn_pickle_value *container,
                           sn_pickle_value *const *items, size_t n);

/* Room for one more in an array of pointers that holds n. */
sn_status sn_pickle_grow(sn_pickle_machine *m, sn_pickle_value ***array, size_t n,
                         size_t *capacity, size_t limit);

/* The next bytes of the pickle; an unsigned little-endian number of at most 8 bytes. */
sn_status sn_pickle_take(sn_pickle_machine *m, uint64_t bytes, const uint8_t **taken);
sn_status sn_pickle_take_number(sn_pickle_machine *m, size_t bytes, uint64_t *number);

sn_status sn_pickle_push(sn_pickle_machine *m, sn_pickle_value *pushed); /* NULL: a mark */
sn_status sn_pickle_pop(sn_pickle_machine *m, sn_pickle_value **popped); /* fails at a mark */
sn_status sn_pickle_top(sn_pickle_machine *m, sn_pickle_value **found);
sn_status sn_pickle_push_foreign(sn_pickle_machine *m, const char *what, size_t size);

/* Everything above the last mark, which goes too. Valid until the next push. */
sn_status sn_pickle_pop_to_mark(sn_pickle_machine *m, sn_pickle_value ***items, size_t *n);

/* ---- pickle_objects.c: operations that would look up or call something in Python ------ */

sn_status sn_pickle_push_global(sn_pickle_machine *m);
sn_status sn_pickle_push_stack_global(sn_pickle_machine *m);
sn_status sn_pickle_reduce(sn_pickle_machine *m);
sn_status sn_pickle_new_object(sn_pickle_machine *m);
sn_status sn_pickle_build(sn_pickle_machine *m);
sn_status sn_pickle_push_storage(sn_pickle_machine *m);

#endif
