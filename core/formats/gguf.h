/*
 * gguf.h: the GGUF container (versions 2 and 3, little-endian, single or split), read from
 * untrusted bytes that come in order. Everything is checked before it is used; what is
 * handed out afterwards can be trusted. docs/formats.md lists the checks.
 */
#ifndef SN_FORMATS_GGUF_H
#define SN_FORMATS_GGUF_H

#include "../source.h"

typedef struct sn_span { /* bytes inside the header; not NUL-terminated */
    const char *data;
    size_t size;
} sn_span;

typedef enum sn_gguf_kind {
    SN_GGUF_U8, SN_GGUF_I8, SN_GGUF_U16, SN_GGUF_I16, SN_GGUF_U32, SN_GGUF_I32, SN_GGUF_F32,
    SN_GGUF_BOOL, SN_GGUF_STRING, SN_GGUF_ARRAY, SN_GGUF_U64, SN_GGUF_I64, SN_GGUF_F64
} sn_gguf_kind;

typedef struct sn_gguf_value {
    sn_span key;
    sn_gguf_kind kind;
    sn_gguf_kind element;   /* of an array */
    uint64_t count;         /* elements of an array, else 1 */
    const uint8_t *data;    /* first byte of the value; of a string: after its length */
    size_t bytes;           /* of the value's payload */
    const uint32_t *string_at; /* arrays of strings: count + 1 offsets from `data` to lengths */
} sn_gguf_value;

typedef struct sn_gguf_tensor {
    const char *name; /* NUL-terminated */
    uint32_t type;    /* a ggml type id known to sn_type_find() */
    uint32_t n_dims;  /* trailing dimensions of 1 dropped, at least 1 */
    uint64_t dims[4]; /* fastest first, all >= 1 */
    uint64_t part;    /* file it lies in */
    uint64_t offset;  /* absolute, in that file */
    uint64_t bytes;
} sn_gguf_tensor;

typedef struct sn_gguf {
    uint32_t version;
    uint64_t n_values, n_tensors, n_parts;
    sn_gguf_value *values;   /* of the first part */
    sn_gguf_tensor *tensors; /* of all parts, in file order */
    struct sn_gguf_part *parts;
    uint64_t file_bytes;     /* of all parts */
    uint32_t *by_name;       /* tensor indices in the order of their names */
    char *origins;           /* owned, may be NULL: paths of the files that a part without path is
                              * made from, each ended by NUL, an empty one last */
} sn_gguf;

struct sn_gguf_part {
    sn_input input;      /* stands at the data section's start or later */
    char *path;          /* owned; NULL unless opened from a path */
    uint8_t *header;     /* owned header bytes; values and names point into it */
    size_t header_bytes;
    char *names;         /* owned, NUL-terminated tensor names */
    uint32_t *string_offsets; /* owned */
};

/* Takes over `input` (closes it on failure too). A split file is refused unless from a path. */
sn_status sn_gguf_read(sn_input *input, sn_gguf *gguf);

/* Opens `path` and, if it is part one of a split file, the others beside it. */
sn_status sn_gguf_open(const char *path, sn_gguf *gguf);

void sn_gguf_close(sn_gguf *gguf); /* also of a zeroed struct */

const char *sn_gguf_name(const sn_gguf *gguf); /* of the first part, for error texts */

const sn_gguf_value *sn_gguf_find(const sn_gguf *gguf, const char *key);

/* A tensor by name; "X" and "X.weight" are the same. NULL if absent. */
const sn_gguf_tensor *sn_gguf_find_tensor(const sn_gguf *gguf, const char *name);

/*
 * A number, float, flag or text under `key`. Absent: *out keeps its value and, if `required`,
 * SN_E_FORMAT names file and key. Any integer kind serves for an integer (range-checked), an
 * array's first element for a scalar, f32 and f64 for a float (finite only).
 */
sn_status sn_gguf_get_u32(const sn_gguf *gguf, const char *key, bool required, uint32_t *out);
sn_status sn_gguf_get_f32(const sn_gguf *gguf, const char *key, bool required, float *out);
sn_status sn_gguf_get_bool(const sn_gguf *gguf, const char *key, bool required, bool *out);
sn_status sn_gguf_get_text(const sn_gguf *gguf, const char *key, bool required, sn_span *out);

/* Elements of arrays; the index must be below count and the element kind right. */
sn_span sn_gguf_string_at(const sn_gguf_value *array, uint64_t index);
int64_t sn_gguf_int_at(const sn_gguf_value *array, uint64_t index);
double sn_gguf_float_at(const sn_gguf_value *array, uint64_t index);

#endif
