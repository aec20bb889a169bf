#include "source.h"

#include <inttypes.h>
#include <string.h>

#define PIECE_BYTES ((size_t)8 << 20) /* one request to a source */
#define SKIP_BYTES 2048               /* on the stack */

uint64_t sn_input_left(const sn_input *input) {
    return input->size - input->position;
}

static sn_status too_short(const sn_input *input, uint64_t end, uint64_t missing) {
    return sn_fail(SN_E_FORMAT, "%.300s: ends at byte %" PRIu64 ", %" PRIu64
                   " more were expected", input->name, end, missing);
}

sn_status sn_input_read(sn_input *input, void *buffer, size_t bytes) {
    if (bytes > sn_input_left(input))
        return too_short(input, input->size, bytes - sn_input_left(input));
    uint8_t *to = buffer;
    while (bytes) {
        size_t piece = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
        size_t got = input->read(input->user, to, piece);
        if (got > piece)
            return sn_fail(SN_E_IO, "%.300s: the source returned %zu bytes where %zu were "
                           "asked for", input->name, got, piece);
        /* The size was known, so the end came early: a file cut short meanwhile, a download
         * that broke off, a disk that failed. */
        if (got == 0 && input->failed && *input->failed) return *input->failed;
        if (got == 0) return too_short(input, input->position, bytes);
        to += got;
        bytes -= got;
        input->position += got;
    }
    return SN_OK;
}

sn_status sn_input_read_at(const sn_input *input, uint64_t offset, void *buffer, size_t bytes) {
    uint8_t *to = buffer;
    const uint64_t left = offset < input->size ? input->size - offset : 0;
    if (bytes > left) return too_short(input, input->size, bytes - left);
    while (bytes) {
        const size_t got = input->read_at(input->user, offset, to, bytes);
        if (got == 0 || got > bytes) return too_short(input, offset, bytes);
        to += got;
        bytes -= got;
        offset += got;
    }
    return SN_OK;
}

sn_status sn_input_skip_to(sn_input *input, uint64_t position) {
    uint8_t discarded[SKIP_BYTES];
    if (position < input->position)
        return sn_fail(SN_E_FORMAT, "%.300s: cannot go back from byte %" PRIu64
                       " to byte %" PRIu64, input->name, input->position, position);
    if (position > input->size) return too_short(input, input->size, position - input->size);
    while (input->position < position) {
        uint64_t gap = position - input->position;
        SN_TRY(sn_input_read(input, discarded, gap < SKIP_BYTES ? (size_t)gap : SKIP_BYTES));
    }
    return SN_OK;
}

void sn_input_close(sn_input *input) {
    if (input->close) input->close(input->user);
    input->close = NULL;
}

static size_t read_memory(void *user, void *buffer, size_t bytes) {
    sn_memory_cursor *cursor = user;
    size_t n = bytes < cursor->left ? bytes : cursor->left;
    if (n == 0) return 0;
    memcpy(buffer, cursor->data, n);
    cursor->data += n;
    cursor->left -= n;
    return n;
}

static size_t read_memory_at(void *user, uint64_t offset, void *buffer, size_t bytes) {
    const sn_memory_cursor *cursor = user;
    memcpy(buffer, cursor->start + (size_t)offset, bytes); /* sn_input_read_at() has checked */
    return bytes;
}

void sn_input_from_memory(sn_input *input, const char *name, const void *data, size_t bytes,
                          sn_memory_cursor *cursor) {
    *cursor = (sn_memory_cursor){ .data = data, .left = bytes, .start = data };
    *input = (sn_input){ .name = name, .size = bytes, .read = read_memory, .user = cursor,
                         .read_at = read_memory_at };
}
