/*
 * pickle.h: Python's pickle format (PEP 307, PEP 3154, PEP 574), restricted to what checkpoints
 * consist of. A pickle is a program that builds objects; this one never runs anything: a callable
 * is compared with the few names that checkpoints need (containers, tensors, storages), and
 * whatever another one would build becomes a FOREIGN value that only carries its name.
 */
#ifndef SN_FORMATS_PICKLE_H
#define SN_FORMATS_PICKLE_H

#include "../memory.h"

typedef enum sn_pickle_kind {
    SN_PICKLE_NONE, SN_PICKLE_BOOL, SN_PICKLE_INT, SN_PICKLE_FLOAT, SN_PICKLE_TEXT,
    SN_PICKLE_LIST, SN_PICKLE_TUPLE, SN_PICKLE_DICT,
    SN_PICKLE_CALLABLE, /* one of those that are known; its name is the text */
    SN_PICKLE_STORAGE,  /* items: element type (a callable), key (text); integer: elements */
    SN_PICKLE_TENSOR,   /* items: storage, offset (int), sizes, strides (tuples) */
    SN_PICKLE_FOREIGN   /* anything else; the text says what */
} sn_pickle_kind;

/* Values may be shared and, in a hostile file, contain themselves: walk with a limit. */
typedef struct sn_pickle_value {
    sn_pickle_kind kind;
    uint32_t callable; /* of a callable: which (private) */
    union {
        int64_t integer; /* of a truth value, integer or storage */
        double number;   /* of a float */
    };
    union {
        const char *text;               /* NUL-terminated; may hold further NULs */
        struct sn_pickle_value **items; /* of a dictionary: keys and values in turn */
    };
    size_t size, capacity; /* of the text in bytes, or of items */
} sn_pickle_value;

typedef struct sn_pickle sn_pickle;

/* `name` is the file, for error texts. `data` is not needed after the call. */
sn_status sn_pickle_parse(const uint8_t *data, size_t bytes, const char *name,
                          sn_pickle **pickle);
void sn_pickle_free(sn_pickle *pickle); /* NULL is fine */
const sn_pickle_value *sn_pickle_root(const sn_pickle *pickle);

/* The value of a text key; of several the last, as in Python. NULL if there is none. */
const sn_pickle_value *sn_pickle_get(const sn_pickle_value *dict, const char *key);

/* The type of a storage's elements as types.h names it, "BF16"; NULL if it is unknown. */
const char *sn_pickle_storage_type(const sn_pickle_value *storage);

/* "a dict", "a torch.Tensor": for error texts; `buffer` may be used for it. */
const char *sn_pickle_describe(const sn_pickle_value *value, char *buffer, size_t bytes);

/*
 * A plain value (none, truth values, numbers, texts, lists, tuples, dictionaries of such) as
 * Python's json.dumps() writes it. Members that are not plain are left out, items null.
 * *text is NULL if the value itself is not plain; else sn_free() is due.
 */
sn_status sn_pickle_to_json(const sn_pickle_value *value, const char *name, char **text,
                            size_t *bytes);

#endif
