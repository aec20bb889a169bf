#include "store_internal.h"

#include <string.h>

/*
 * Strided views. A view is a stack of matrices, its last two dimensions. A row whose elements are
 * neighbours in the file is read as it is. Otherwise (a transposed matrix) a block of rows is
 * gathered along whichever of the two strides is the smaller, and kept: walking through
 * the view then takes each block once.
 */

#define BLOCK_BYTES ((size_t)4 << 20) /* of gathered rows */
#define LINE_BYTES ((size_t)16 << 10) /* of the file, read at once to pick elements from */

struct sn_gather {
    const sn_file *file; /* what the block was gathered from; NULL: nothing */
    uint64_t offset, row_stride, stride, n_rows, n_columns; /* of the matrix; strides in bytes */
    size_t element;
    uint64_t first_row, rows; /* those in the block */
    uint8_t *block;
    size_t capacity; /* of the block, at most BLOCK_BYTES */
    uint8_t line[LINE_BYTES];
};

void sn_gather_free(sn_gather *gather) {
    if (!gather) return;
    sn_free(gather->block);
    sn_free(gather);
}

/* Copies `count` elements from `from`, step by step, to `to`. */
static void spread(const uint8_t *from, uint64_t from_step, uint8_t *to, size_t to_step,
                   size_t count, size_t element) {
    for (size_t i = 0; i < count; i++, to += to_step, from += from_step)
        for (size_t j = 0; j < element; j++) to[j] = from[j];
}

/* Elements `stride` bytes apart from `offset` on, to places `step` bytes apart. */
static sn_status gather_line(sn_gather *g, uint64_t offset, uint64_t stride, size_t count,
                             uint8_t *to, size_t step) {
    size_t fit = 1;
    if (stride == 0)
        fit = count;
    else if (stride <= LINE_BYTES - g->element)
        fit = (LINE_BYTES - g->element) / (size_t)stride + 1;
    while (count) {
        size_t n = fit < count ? fit : count;
        size_t span = (n - 1) * (size_t)stride + g->element;
        SN_TRY(sn_file_read(g->file, offset, g->line, span));
        spread(g->line, stride, to, step, n, g->element);
        offset += n * stride;
        to += n * step;
        count -= n;
    }
    return SN_OK;
}

/* Room for as many rows as BLOCK_BYTES can hold or there are. */
static sn_status make_room(sn_gather *g, size_t row_bytes, uint64_t rows) {
    size_t needed = (size_t)rows * row_bytes;
    if (needed <= g->capacity) return SN_OK;
    sn_free(g->block);
    g->capacity = 0;
    g->block = sn_alloc(needed);
    if (!g->block) return SN_E_NOMEM;
    g->capacity = needed;
    return SN_OK;
}

/* Gathers the rows from first_row on that fit the block; at least one does. */
static sn_status gather_rows(sn_gather *g, uint64_t first_row) {
    size_t row_bytes = (size_t)g->n_columns * g->element;
    uint64_t rows = BLOCK_BYTES / row_bytes, left = g->n_rows - first_row;
    if (rows > left) rows = left;
    uint64_t start = g->offset + first_row * g->row_stride;
    g->rows = 0;
    SN_TRY(make_room(g, row_bytes, rows));
    if (g->stride <= g->row_stride) {
        for (size_t i = 0; i < rows; i++)
            SN_TRY(gather_line(g, start + i * g->row_stride, g->stride, (size_t)g->n_columns,
                               g->block + i * row_bytes, g->element));
    } else {
        for (size_t i = 0; i < g->n_columns; i++)
            SN_TRY(gather_line(g, start + i * g->stride, g->row_stride, (size_t)rows,
                               g->block + i * g->element, row_bytes));
    }
    g->first_row = first_row;
    g->rows = rows;
    return SN_OK;
}

/* Makes `g` stand for the matrix at `offset` of the view; keeps its block if it already did. */
static void aim(sn_gather *g, const sn_view *view, uint64_t offset) {
    uint32_t n = view->n_dims;
    size_t element = view->type->block_bytes;
    uint64_t rows = n > 1 ? view->dims[n - 2] : 1;
    uint64_t row_stride = n > 1 ? view->strides[n - 2] * element : 0;
    uint64_t stride = view->strides[n - 1] * element;
    if (g->file == view->file && g->offset == offset && g->row_stride == row_stride &&
        g->stride == stride && g->n_rows == rows && g->n_columns == view->dims[n - 1] &&
        g->element == element)
        return;
    g->file = view->file;
    g->offset = offset;
    g->row_stride = row_stride;
    g->stride = stride;
    g->n_rows = rows;
    g->n_columns = view->dims[n - 1];
    g->element = element;
    g->rows = 0;
}

/* `n` elements of one row, from `column` on. */
static sn_status read_gathered(sn_gather *g, const sn_view *view, uint64_t matrix, uint64_t row,
                               uint64_t column, size_t n, uint8_t *to) {
    aim(g, view, matrix);
    if (g->n_columns > BLOCK_BYTES / g->element) /* a single row would not fit */
        return gather_line(g, matrix + row * g->row_stride + column * g->stride, g->stride, n, to,
                           g->element);
    if (row < g->first_row || row - g->first_row >= g->rows) SN_TRY(gather_rows(g, row));
    size_t row_bytes = (size_t)g->n_columns * g->element;
    memcpy(to, g->block + (size_t)(row - g->first_row) * row_bytes + (size_t)column * g->element,
           n * g->element);
    return SN_OK;
}

/* Where the matrix of index `index` begins, in bytes. */
static uint64_t matrix_offset(const sn_view *view, uint64_t index) {
    uint64_t elements = 0;
    for (uint32_t i = view->n_dims; i-- > 0;) {
        if (i + 2 >= view->n_dims) continue;
        elements += index % view->dims[i] * view->strides[i];
        index /= view->dims[i];
    }
    return view->offset + elements * view->type->block_bytes;
}

static sn_status read_strided(sn_gather *g, const sn_view *view, uint64_t first, size_t n,
                              uint8_t *to) {
    uint32_t d = view->n_dims; /* at least 1: a scalar is contiguous */
    size_t element = view->type->block_bytes;
    uint64_t columns = view->dims[d - 1], rows = d > 1 ? view->dims[d - 2] : 1;
    uint64_t row_stride = d > 1 ? view->strides[d - 2] * element : 0;
    bool neighbours = view->strides[d - 1] == 1;
    while (n) {
        uint64_t column = first % columns, row = first / columns % rows;
        uint64_t matrix = matrix_offset(view, first / columns / rows);
        size_t part = n < columns - column ? n : (size_t)(columns - column);
        if (neighbours)
            SN_TRY(sn_file_read(view->file, matrix + row * row_stride + column * element, to,
                                part * element));
        else
            SN_TRY(read_gathered(g, view, matrix, row, column, part, to));
        first += part;
        to += part * element;
        n -= part;
    }
    return SN_OK;
}

/* The store's gathering block, made at its first use. A view without a store has its own. */
static sn_status read_with_block(const sn_view *view, uint64_t first, size_t n, uint8_t *to) {
    sn_gather *own = NULL;
    sn_gather **place = view->store ? sn_store_gather(view->store) : &own;
    if (!*place) *place = sn_alloc(sizeof **place);
    if (!*place) return SN_E_NOMEM;
    sn_status status = read_strided(*place, view, first, n, to);
    sn_gather_free(own);
    return status;
}

sn_status sn_view_read(const sn_view *view, uint64_t first, size_t n, void *elements) {
    const sn_type *type = view->type;
    uint64_t all = sn_view_elements(view);
    if (first > all || n > all - first || first % type->block || n % type->block)
        return sn_fail(SN_E_INVAL, "%.300s: tensor '%.64s': no such elements", view->file->name,
                       view->name);
    if (n == 0) return SN_OK;
    if (!sn_view_is_contiguous(view)) return read_with_block(view, first, n, elements);
    return sn_file_read(view->file, view->offset + sn_type_bytes(type, first), elements,
                        (size_t)sn_type_bytes(type, n));
}

/* ---- as float32 --------------------------------------------------------------------- */

#define TYPE_F64 28u
#define PIECE_BYTES 2048 /* on the stack; several blocks of any type */

static void decode_f64(const uint8_t *bytes, float *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (size_t j = 8; j-- > 0;) bits = bits << 8 | bytes[8 * i + j];
        double value;
        memcpy(&value, &bits, sizeof value);
        values[i] = (float)value;
    }
}

sn_status sn_view_read_f32(const sn_view *view, uint64_t first, size_t n, float *values) {
    const sn_type *type = view->type;
    void (*decode)(const uint8_t *, float *, size_t) =
        type->id == TYPE_F64 ? decode_f64 : type->decode;
    if (!decode)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%.64s': is of type %s, floats are needed",
                       view->file->name, view->name, type->name);
    uint8_t piece[PIECE_BYTES];
    size_t most = PIECE_BYTES / type->block_bytes * type->block;
    while (n) {
        size_t part = n < most ? n : most;
        SN_TRY(sn_view_read(view, first, part, piece));
        decode(piece, values, part);
        first += part;
        values += part;
        n -= part;
    }
    return SN_OK;
}

sn_view sn_view_transposed(const sn_view *view) {
    sn_view swapped = *view;
    uint32_t n = view->n_dims;
    if (n < 2) return swapped;
    swapped.dims[n - 1] = view->dims[n - 2];
    swapped.dims[n - 2] = view->dims[n - 1];
    swapped.strides[n - 1] = view->strides[n - 2];
    swapped.strides[n - 2] = view->strides[n - 1];
    return swapped;
}
