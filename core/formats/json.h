/*
 * json.h: a JSON text as a tree (RFC 8259), from untrusted bytes. Nesting is limited, escapes
 * are decoded to UTF-8, duplicate keys are refused. So are invalid UTF-8, a surrogate without its
 * other half (it is no character) and numbers beyond the range of a double. The tree is built in
 * O(n log n) and never changes: any number of threads may read it.
 */
#ifndef SN_FORMATS_JSON_H
#define SN_FORMATS_JSON_H

#include "../memory.h"

#define SN_JSON_MAX_DEPTH 128
#define SN_JSON_MAX_VALUES ((size_t)4 << 20) /* tokenizers have up to 2 million */

typedef enum sn_json_kind {
    SN_JSON_NULL, SN_JSON_FALSE, SN_JSON_TRUE, SN_JSON_NUMBER, SN_JSON_STRING, SN_JSON_ARRAY,
    SN_JSON_OBJECT
} sn_json_kind;

/* One value. Members of an object and items of an array are a list; a member has a key. */
typedef struct sn_json {
    sn_json_kind kind;
    bool is_integer;   /* written without fraction and exponent, magnitude at most 2^53 */
    const char *key;   /* of a member: NUL-terminated, may hold further NULs; else NULL */
    size_t key_size;
    union {
        double number; /* of a number: the nearest double; exact for integers up to 2^53 */
        const struct sn_json *const *sorted; /* of an object: sn_json_get's, NULL if it is small */
    };
    const char *text;  /* of a string: UTF-8, NUL-terminated, may hold further NULs */
    size_t size;       /* of a string: bytes; of an array or object: how many */
    const struct sn_json *first, *next;
} sn_json;

typedef struct sn_json_document sn_json_document;

/* `name` is the file, for error texts. Python's NaN, Infinity and -Infinity are accepted where
 * `python_numbers` (config.json has them). `text` is not needed after the call. */
sn_status sn_json_parse(const char *text, size_t bytes, const char *name, bool python_numbers,
                        sn_json_document **document);
void sn_json_free(sn_json_document *document); /* NULL is fine */
const sn_json *sn_json_root(const sn_json_document *document);

/* A member of an object; NULL if absent, or if `object` is NULL or no object. O(log n). */
const sn_json *sn_json_get(const sn_json *object, const char *key);

/* The same for a key that may hold NULs. */
const sn_json *sn_json_get_sized(const sn_json *object, const char *key, size_t key_size);

/* True for a string that equals `text`. */
bool sn_json_is(const sn_json *value, const char *text);

#endif
