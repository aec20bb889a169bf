/*
 * text.h: a text that grows, and JSON as Python's json.dumps writes it, because the bytes of a
 * release shall be those of the origin's: characters beyond ASCII stay, numbers are the shortest
 * that read back as the same double.
 */
#ifndef SN_EXPORT_TEXT_H
#define SN_EXPORT_TEXT_H

#include "../formats/json.h"

typedef struct sn_growing {
    char *data; /* NUL-terminated; NULL while empty */
    size_t size, capacity;
    bool failed; /* memory ran out: the text is useless */
} sn_growing;

void sn_growing_free(sn_growing *text);

/* After the last one: SN_E_NOMEM if any of them failed. */
sn_status sn_growing_status(const sn_growing *text);

void sn_put_bytes(sn_growing *text, const char *data, size_t bytes);
void sn_put_text(sn_growing *text, const char *data);
void sn_put_number(sn_growing *text, uint64_t value);

/* A JSON string, quotes included. */
void sn_put_string(sn_growing *text, const char *data, size_t bytes);

/*
 * A JSON value: on one line with ", " and ": " between (indent < 0), or a line for each member,
 * `indent` levels of two spaces deep; members in their order or sorted by key.
 */
void sn_put_json(sn_growing *text, const sn_json *value, int indent, bool sorted);

/* A double as Python's repr() writes it: "2.0", "1e-05". */
void sn_put_double(sn_growing *text, double value);

/* A line break and `indent` levels of two spaces. */
void sn_put_line(sn_growing *text, int indent);

#endif
