#include "file.h"

#include <inttypes.h>
#include <string.h>

#define PIECE_BYTES ((size_t)8 << 20) /* one request */

sn_status sn_file_read(const sn_file *file, uint64_t offset, void *buffer, size_t bytes) {
    uint8_t *to = buffer;
    if (offset > file->size || bytes > file->size - offset)
        return sn_fail(SN_E_FORMAT, "%.300s: %zu bytes needed at byte %" PRIu64
                       ", the file has %" PRIu64, file->name, bytes, offset, file->size);
    while (bytes) {
        size_t piece = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
        size_t got = file->read_at(file->user, offset, to, piece);
        if (got > piece)
            return sn_fail(SN_E_IO, "%.300s: %zu bytes were returned where %zu were asked for",
                           file->name, got, piece);
        /* The size was known: the file was cut short meanwhile, or a disk failed. */
        if (got == 0)
            return sn_fail(SN_E_IO, "%.300s: cannot read at byte %" PRIu64, file->name, offset);
        to += got;
        offset += got;
        bytes -= got;
    }
    return SN_OK;
}

/* sn_file_read asks only for what lies inside. */
static size_t read_memory(void *user, uint64_t offset, void *buffer, size_t bytes) {
    memcpy(buffer, (const uint8_t *)user + offset, bytes);
    return bytes;
}

void sn_file_from_memory(sn_file *file, const char *name, const void *data, size_t bytes) {
    union { /* read_memory only reads; `user` of other kinds of files is not const */
        const void *in;
        void *out;
    } pointer = { .in = data };
    *file = (sn_file){ .name = name, .size = bytes, .read_at = read_memory,
                       .user = pointer.out };
}

void sn_file_close(sn_file *file) {
    if (file->close) file->close(file->user);
    *file = (sn_file){ .size = 0 };
}

sn_status sn_file_read_all(const sn_file *file, size_t limit, char **data, size_t *bytes) {
    if (file->size > limit)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " bytes, at most %zu are expected",
                       file->name, file->size, limit);
    size_t size = (size_t)file->size, with_nul;
    if (!sn_add_size(size, 1, &with_nul)) return sn_fail(SN_E_NOMEM, "out of memory");
    char *read = sn_alloc(with_nul);
    if (!read) return SN_E_NOMEM;
    sn_status status = sn_file_read(file, 0, read, size);
    if (status != SN_OK) {
        sn_free(read);
        return status;
    }
    *data = read;
    *bytes = size;
    return SN_OK;
}
