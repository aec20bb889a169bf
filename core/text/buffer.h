/*
 * buffer.h: bytes that grow.
 */
#ifndef SN_TEXT_BUFFER_H
#define SN_TEXT_BUFFER_H

#include "../memory.h"

#include <string.h>

typedef struct sn_buffer { /* zeroed: empty */
    uint8_t *data;
    size_t size, room;
} sn_buffer;

/* Makes room for `more` bytes behind data + size. */
static inline sn_status sn_buffer_reserve(sn_buffer *buffer, size_t more) {
    size_t needed;
    if (more <= buffer->room - buffer->size) return SN_OK;
    if (!sn_add_size(buffer->size, more, &needed) || needed > ((size_t)-1 >> 1))
        return sn_fail(SN_E_NOMEM, "out of memory: a text of %zu bytes more", more);
    if (needed < buffer->room * 2) needed = buffer->room * 2;
    if (needed < 256) needed = 256;
    uint8_t *grown = sn_grow(buffer->data, buffer->size, needed);
    if (!grown) return SN_E_NOMEM;
    buffer->data = grown;
    buffer->room = needed;
    return SN_OK;
}

static inline sn_status sn_buffer_append(sn_buffer *buffer, const void *bytes, size_t n) {
    SN_TRY(sn_buffer_reserve(buffer, n));
    if (n) memcpy(buffer->data + buffer->size, bytes, n);
    buffer->size += n;
    return SN_OK;
}

static inline void sn_buffer_free(sn_buffer *buffer) {
    sn_free(buffer->data);
    *buffer = (sn_buffer){ .data = NULL };
}

#endif
