#include "blob_int4.h"

#include <string.h>

#define BLOCK_BYTES (SN_INT4_CODE_BYTES + 4)
#define GROUPS_AT_ONCE 32 /* on the stack */

/* `n` groups from `first` on, as blocks of I4. */
static sn_status read_blocks(const sn_int4 *m, uint64_t first, size_t n, uint8_t *blocks) {
    uint8_t codes[GROUPS_AT_ONCE * SN_INT4_CODE_BYTES], scales[GROUPS_AT_ONCE * 4];
    SN_TRY(sn_file_read(m->file, m->codes + first * SN_INT4_CODE_BYTES, codes,
                        n * SN_INT4_CODE_BYTES));
    SN_TRY(sn_file_read(m->file, m->scales + first * 4, scales, n * 4));
    for (size_t i = 0; i < n; i++, blocks += BLOCK_BYTES) {
        memcpy(blocks, codes + i * SN_INT4_CODE_BYTES, SN_INT4_CODE_BYTES);
        memcpy(blocks + SN_INT4_CODE_BYTES, scales + 4 * i, 4);
    }
    return SN_OK;
}

static size_t int4_read(void *user, uint64_t offset, void *buffer, size_t bytes) {
    const sn_int4 *m = user;
    const uint64_t groups = m->rows * (m->k / SN_INT4_GROUP);
    uint8_t blocks[GROUPS_AT_ONCE * BLOCK_BYTES], *to = buffer;
    uint64_t group = offset / BLOCK_BYTES;
    size_t at = (size_t)(offset % BLOCK_BYTES), done = 0;
    while (done < bytes && group < groups) {
        const size_t wanted = (at + bytes - done + BLOCK_BYTES - 1) / BLOCK_BYTES;
        size_t n = wanted < GROUPS_AT_ONCE ? wanted : GROUPS_AT_ONCE;
        if (n > groups - group) n = (size_t)(groups - group);
        if (read_blocks(m, group, n, blocks) != SN_OK) break;
        size_t part = n * BLOCK_BYTES - at;
        if (part > bytes - done) part = bytes - done;
        memcpy(to + done, blocks + at, part);
        done += part;
        group += n;
        at = 0;
    }
    return done;
}

sn_status sn_int4_view(sn_store *store, const sn_int4 *matrix, sn_view *view) {
    sn_int4 *copy = sn_alloc(sizeof *copy);
    const sn_file *kept;
    if (!copy) return SN_E_NOMEM;
    *copy = *matrix;
    sn_file file = {.name = matrix->file->name, .read_at = int4_read, .user = copy,
                    .close = sn_free,
                    .size = matrix->rows * (matrix->k / SN_INT4_GROUP) * BLOCK_BYTES};
    SN_TRY(sn_store_add_file(store, &file, &kept));
    *view = (sn_view){.name = "", .type = sn_type_find(SN_TYPE_I4), .n_dims = 2,
                      .dims = {matrix->rows, matrix->k}, .strides = {matrix->k, 1},
                      .file = kept};
    return SN_OK;
}
