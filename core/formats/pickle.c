#include "pickle_machine.h"

#include "../text/utf8.h"

#include <inttypes.h>
#include <string.h>

#define MAX_PROTOCOL 5
#define FIRST_CHUNK ((size_t)4096)

/* ---- plain values ------------------------------------------------------------------- */

static sn_status push_int(sn_pickle_machine *m, int64_t integer) {
    sn_pickle_value *made = NULL;
    SN_TRY(sn_pickle_new(m, SN_PICKLE_INT, &made));
    made->integer = integer;
    return sn_pickle_push(m, made);
}

static sn_status push_unsigned(sn_pickle_machine *m, size_t bytes) {
    uint64_t number = 0;
    SN_TRY(sn_pickle_take_number(m, bytes, &number));
    return push_int(m, (int64_t)number);
}

static sn_status push_int32(sn_pickle_machine *m) {
    uint64_t bits = 0;
    SN_TRY(sn_pickle_take_number(m, 4, &bits));
    return push_int(m, (int64_t)(bits ^ 0x80000000u) - 0x80000000ll);
}

static sn_status push_foreign(sn_pickle_machine *m, const char *what) {
    return sn_pickle_push_foreign(m, what, strlen(what));
}

/* A little-endian two's complement number whose length is given in `length_bytes`. */
static sn_status push_long(sn_pickle_machine *m, size_t length_bytes) {
    uint64_t length = 0, bits = 0;
    const uint8_t *sign = NULL;
    SN_TRY(sn_pickle_take_number(m, length_bytes, &length));
    if (length > 8) {
        SN_TRY(sn_pickle_take(m, length, &sign));
        return push_foreign(m, "integer of more than 64 bits");
    }
    SN_TRY(sn_pickle_take_number(m, (size_t)length, &bits));
    if (length && length < 8 && bits >> (8 * length - 1))
        bits |= ~(uint64_t)0 << (8 * length);
    int64_t integer;
    memcpy(&integer, &bits, sizeof integer);
    return push_int(m, integer);
}

static sn_status push_float(sn_pickle_machine *m) {
    const uint8_t *p = NULL;
    sn_pickle_value *made = NULL;
    uint64_t bits = 0;
    SN_TRY(sn_pickle_take(m, 8, &p));
    SN_TRY(sn_pickle_new(m, SN_PICKLE_FLOAT, &made));
    for (int i = 0; i < 8; i++) bits = bits << 8 | p[i]; /* big-endian, alone of all */
    memcpy(&made->number, &bits, sizeof bits);
    return sn_pickle_push(m, made);
}

static sn_status push_text(sn_pickle_machine *m, size_t length_bytes) {
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    sn_pickle_value *made = NULL;
    SN_TRY(sn_pickle_take_number(m, length_bytes, &length));
    SN_TRY(sn_pickle_take(m, length, &bytes));
    if (!sn_utf8_valid(bytes, (size_t)length))
        return sn_pickle_reject(m, "a text that is not UTF-8");
    SN_TRY(sn_pickle_new_text(m, SN_PICKLE_TEXT, bytes, (size_t)length, &made));
    return sn_pickle_push(m, made);
}

/* Python's bytes: no checkpoint needs them, numpy scalars hold some. */
static sn_status push_bytes(sn_pickle_machine *m, size_t length_bytes) {
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    SN_TRY(sn_pickle_take_number(m, length_bytes, &length));
    SN_TRY(sn_pickle_take(m, length, &bytes));
    return push_foreign(m, "bytes");
}

/* ---- containers --------------------------------------------------------------------- */

static sn_status push_container(sn_pickle_machine *m, sn_pickle_kind kind,
                                sn_pickle_value *const *items, size_t n) {
    sn_pickle_value *made = NULL;
    if (kind == SN_PICKLE_DICT && n % 2) return sn_pickle_reject(m, "a key without a value");
    SN_TRY(sn_pickle_new(m, kind, &made));
    SN_TRY(sn_pickle_extend(m, made, items, n));
    return sn_pickle_push(m, made);
}

static sn_status push_from_mark(sn_pickle_machine *m, sn_pickle_kind kind) {
    sn_pickle_value **items = NULL;
    size_t n = 0;
    SN_TRY(sn_pickle_pop_to_mark(m, &items, &n));
    return push_container(m, kind, items, n);
}

static sn_status push_small_tuple(sn_pickle_machine *m, size_t n) {
    sn_pickle_value *items[3] = { NULL };
    for (size_t i = n; i-- > 0;) SN_TRY(sn_pickle_pop(m, &items[i]));
    return push_container(m, SN_PICKLE_TUPLE, items, n);
}

/* Adds to the container on top. What is added to a foreign object is dropped. */
static sn_status add(sn_pickle_machine *m, sn_pickle_kind kind, sn_pickle_value *const *items,
                     size_t n) {
    sn_pickle_value *container = NULL;
    SN_TRY(sn_pickle_top(m, &container));
    if (container->kind == SN_PICKLE_FOREIGN) return SN_OK;
    if (container->kind != kind)
        return sn_pickle_reject(m, "items for what is no %s",
                                kind == SN_PICKLE_LIST ? "list" : "dict");
    if (kind == SN_PICKLE_DICT && n % 2) return sn_pickle_reject(m, "a key without a value");
    return sn_pickle_extend(m, container, items, n);
}

static sn_status add_one(sn_pickle_machine *m, sn_pickle_kind kind, size_t n) {
    sn_pickle_value *items[2] = { NULL };
    for (size_t i = n; i-- > 0;) SN_TRY(sn_pickle_pop(m, &items[i]));
    return add(m, kind, items, n);
}

static sn_status add_from_mark(sn_pickle_machine *m, sn_pickle_kind kind) {
    sn_pickle_value **items = NULL;
    size_t n = 0;
    SN_TRY(sn_pickle_pop_to_mark(m, &items, &n));
    return add(m, kind, items, n);
}

/* Python's sets: foreign, what they hold is dropped. */
static sn_status push_frozen_set(sn_pickle_machine *m) {
    sn_pickle_value **items = NULL;
    size_t n = 0;
    SN_TRY(sn_pickle_pop_to_mark(m, &items, &n));
    return push_foreign(m, "frozenset");
}

/* ---- the memo ----------------------------------------------------------------------- */

/* Every pickler numbers its entries in order, so that the memo is never larger than the file. */
static sn_status put(sn_pickle_machine *m, uint64_t index) {
    sn_pickle_value *found = NULL;
    SN_TRY(sn_pickle_top(m, &found));
    if (index > m->n_memo)
        return sn_pickle_reject(m, "memo entry %" PRIu64 " follows entry %zu", index, m->n_memo);
    SN_TRY(sn_pickle_grow(m, &m->memo, m->n_memo, &m->memo_capacity, SIZE_MAX));
    m->memo[index] = found;
    if (index == m->n_memo) m->n_memo++;
    return SN_OK;
}

static sn_status put_numbered(sn_pickle_machine *m, size_t bytes) {
    uint64_t index = 0;
    SN_TRY(sn_pickle_take_number(m, bytes, &index));
    return put(m, index);
}

static sn_status get(sn_pickle_machine *m, size_t bytes) {
    uint64_t index = 0;
    SN_TRY(sn_pickle_take_number(m, bytes, &index));
    if (index >= m->n_memo) return sn_pickle_reject(m, "there is no memo entry %" PRIu64, index);
    return sn_pickle_push(m, m->memo[index]);
}

/* ---- the machine -------------------------------------------------------------------- */

static sn_status check_protocol(sn_pickle_machine *m) {
    uint64_t protocol = 0;
    SN_TRY(sn_pickle_take_number(m, 1, &protocol));
    return protocol >= 2 && protocol <= MAX_PROTOCOL
               ? SN_OK : sn_pickle_reject(m, "protocol %d, possible are 2 to 5", (int)protocol);
}

/* A frame only says how much to read at once. */
static sn_status check_frame(sn_pickle_machine *m) {
    uint64_t bytes = 0;
    SN_TRY(sn_pickle_take_number(m, 8, &bytes));
    return bytes <= m->size - m->at ? SN_OK : sn_pickle_reject(m, "a frame that does not end");
}

static sn_status drop(sn_pickle_machine *m) {
    if (m->n_stack == 0) return sn_pickle_reject(m, "a value is missing on the stack");
    m->n_stack--;
    return SN_OK;
}

static sn_status drop_to_mark(sn_pickle_machine *m) {
    sn_pickle_value **items = NULL;
    size_t n = 0;
    return sn_pickle_pop_to_mark(m, &items, &n);
}

static sn_status duplicate(sn_pickle_machine *m) {
    sn_pickle_value *found = NULL;
    SN_TRY(sn_pickle_top(m, &found));
    return sn_pickle_push(m, found);
}

/* One line an operation: names as in Python's pickletools. */
static sn_status execute(sn_pickle_machine *m, uint8_t operation) {
    switch (operation) {
    case 0x80: return check_protocol(m);                       /* PROTO */
    case 0x95: return check_frame(m);                          /* FRAME */
    case '(': return sn_pickle_push(m, NULL);                            /* MARK */
    case '0': return drop(m);                                  /* POP */
    case '1': return drop_to_mark(m);                          /* POP_MARK */
    case '2': return duplicate(m);                             /* DUP */
    case 'N': return sn_pickle_push(m, &m->pickle->none);                /* NONE */
    case 0x88: return sn_pickle_push(m, &m->pickle->yes);                /* NEWTRUE */
    case 0x89: return sn_pickle_push(m, &m->pickle->no);                 /* NEWFALSE */
    case 'J': return push_int32(m);                            /* BININT */
    case 'K': return push_unsigned(m, 1);                      /* BININT1 */
    case 'M': return push_unsigned(m, 2);                      /* BININT2 */
    case 0x8a: return push_long(m, 1);                         /* LONG1 */
    case 0x8b: return push_long(m, 4);                         /* LONG4 */
    case 'G': return push_float(m);                            /* BINFLOAT */
    case 0x8c: return push_text(m, 1);                         /* SHORT_BINUNICODE */
    case 'X': return push_text(m, 4);                          /* BINUNICODE */
    case 0x8d: return push_text(m, 8);                         /* BINUNICODE8 */
    case 'U': return push_text(m, 1);                          /* SHORT_BINSTRING */
    case 'T': return push_text(m, 4);                          /* BINSTRING */
    case 'C': return push_bytes(m, 1);                         /* SHORT_BINBYTES */
    case 'B': return push_bytes(m, 4);                         /* BINBYTES */
    case 0x8e: return push_bytes(m, 8);                        /* BINBYTES8 */
    case 0x96: return push_bytes(m, 8);                        /* BYTEARRAY8 */
    case ']': return push_container(m, SN_PICKLE_LIST, NULL, 0);   /* EMPTY_LIST */
    case 'l': return push_from_mark(m, SN_PICKLE_LIST);        /* LIST */
    case 'a': return add_one(m, SN_PICKLE_LIST, 1);            /* APPEND */
    case 'e': return add_from_mark(m, SN_PICKLE_LIST);         /* APPENDS */
    case ')': return sn_pickle_push(m, &m->pickle->empty_tuple);         /* EMPTY_TUPLE */
    case 't': return push_from_mark(m, SN_PICKLE_TUPLE);       /* TUPLE */
    case 0x85: return push_small_tuple(m, 1);                  /* TUPLE1 */
    case 0x86: return push_small_tuple(m, 2);                  /* TUPLE2 */
    case 0x87: return push_small_tuple(m, 3);                  /* TUPLE3 */
    case '}': return push_container(m, SN_PICKLE_DICT, NULL, 0);   /* EMPTY_DICT */
    case 'd': return push_from_mark(m, SN_PICKLE_DICT);        /* DICT */
    case 's': return add_one(m, SN_PICKLE_DICT, 2);            /* SETITEM */
    case 'u': return add_from_mark(m, SN_PICKLE_DICT);         /* SETITEMS */
    case 0x8f: return push_foreign(m, "set");                  /* EMPTY_SET */
    case 0x90: return drop_to_mark(m);                         /* ADDITEMS */
    case 0x91: return push_frozen_set(m);                      /* FROZENSET */
    case 'q': return put_numbered(m, 1);                       /* BINPUT */
    case 'r': return put_numbered(m, 4);                       /* LONG_BINPUT */
    case 0x94: return put(m, m->n_memo);                       /* MEMOIZE */
    case 'h': return get(m, 1);                                /* BINGET */
    case 'j': return get(m, 4);                                /* LONG_BINGET */
    case 'c': return sn_pickle_push_global(m);                           /* GLOBAL */
    case 0x93: return sn_pickle_push_stack_global(m);                    /* STACK_GLOBAL */
    case 'R': return sn_pickle_reduce(m);                                /* REDUCE */
    case 0x81: return sn_pickle_reduce(m);                               /* NEWOBJ */
    case 0x92: return sn_pickle_new_object(m);                        /* NEWOBJ_EX */
    case 'b': return sn_pickle_build(m);                                 /* BUILD */
    case 'Q': return sn_pickle_push_storage(m);                          /* BINPERSID */
    default: return sn_pickle_reject(m, "operation 0x%02x is not supported", operation);
    }
}

static sn_status run(sn_pickle_machine *m) {
    sn_pickle_value *root = NULL;
    for (;;) {
        m->op_at = m->at;
        const uint8_t *operation = NULL;
        SN_TRY(sn_pickle_take(m, 1, &operation));
        if (m->op_at == 0 && *operation != 0x80)
            return sn_pickle_reject(m, "no pickle of protocol 2 to 5");
        if (*operation == '.') break; /* STOP */
        SN_TRY(execute(m, *operation));
    }
    SN_TRY(sn_pickle_pop(m, &root));
    m->pickle->root = root;
    return SN_OK;
}

sn_status sn_pickle_parse(const uint8_t *data, size_t bytes, const char *name,
                          sn_pickle **pickle) {
    sn_pickle *made = sn_alloc(sizeof *made);
    if (!made) return SN_E_NOMEM;
    made->yes = (sn_pickle_value){ .kind = SN_PICKLE_BOOL, .integer = 1 };
    made->no = (sn_pickle_value){ .kind = SN_PICKLE_BOOL };
    made->empty_tuple = (sn_pickle_value){ .kind = SN_PICKLE_TUPLE };
    sn_pickle_machine m = { .name = name, .data = data, .size = bytes, .pickle = made,
                  .chunk_bytes = FIRST_CHUNK };
    sn_status status = run(&m);
    sn_free(m.stack);
    sn_free(m.memo);
    if (status != SN_OK)
        sn_pickle_free(made);
    else
        *pickle = made;
    return status;
}

void sn_pickle_free(sn_pickle *pickle) {
    if (!pickle) return;
    for (struct sn_pickle_chunk *next, *c = pickle->chunks; c; c = next) {
        next = c->next;
        sn_free(c);
    }
    sn_free(pickle);
}

const sn_pickle_value *sn_pickle_root(const sn_pickle *pickle) {
    return pickle->root;
}

