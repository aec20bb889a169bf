/*
 * load_pieces.c: the file's bytes in order, cut into pieces, and what becomes of each: checked
 * where it lies, packed into panels or decoded.
 */
#include "loader_internal.h"

#include "worker.h"

#define STAGED_BYTES ((size_t)256 << 10) /* a piece that is packed: stays in a core's cache */
#define PLAIN_BYTES ((size_t)512 << 10)  /* one that is used as it lies in the file */
#define UNIT_ELEMENTS 256                /* whole blocks of every type */

/* ---- cutting ------------------------------------------------------------------------------- */

/* Bytes of the file that belong together: a block, a panel, the rows of one. */
static uint64_t unit_bytes(const sn_request *r) {
    if (r->packed) return sn_panel_bytes(r->type, (size_t)r->k);
    if (r->kind == REQUEST_MATRIX) return sn_type_bytes(r->type, SN_PANEL_ROWS * r->k);
    return sn_type_bytes(r->type, UNIT_ELEMENTS);
}

/* As many units as fit, at least one; the tensor's last one may be shorter. */
static uint64_t piece_bytes(const sn_request *r, uint64_t left) {
    const uint64_t unit = unit_bytes(r), most = sn_request_is_plain(r) ? PLAIN_BYTES : STAGED_BYTES;
    const uint64_t bytes = unit < most ? most / unit * unit : unit;
    return left < bytes ? left : bytes;
}

size_t sn_load_staging_bytes(const sn_loader *loader, size_t most) {
    uint64_t all = 0;
    size_t largest = 0;
    for (size_t i = 0; i < loader->n_requests; i++) {
        const sn_request *r = &loader->requests[i];
        if (sn_request_is_plain(r)) continue;
        const uint64_t bytes = loader->gguf->tensors[r->tensor].bytes;
        const size_t piece = (size_t)piece_bytes(r, bytes);
        if (piece > largest) largest = piece;
        all += bytes + SN_ALIGNMENT;
    }
    const uint64_t wanted = all < most * STAGED_BYTES ? all : most * STAGED_BYTES;
    return wanted > largest ? (size_t)wanted : largest;
}

/* False if there is no room left in the staging buffer, of which `*staged` bytes are in use. */
static bool cut(sn_loader *loader, const sn_request *r, size_t *staged, sn_piece *piece) {
    const sn_gguf_tensor *tensor = &loader->gguf->tensors[r->tensor];
    const size_t bytes = (size_t)piece_bytes(r, tensor->bytes - loader->at);
    *piece = (sn_piece){ .part = tensor->part, .offset = tensor->offset + loader->at,
                         .bytes = bytes, .mapped = r->mapped, .request = r, .at = loader->at };
    if (sn_request_is_plain(r)) {
        piece->to = r->to + loader->at;
    } else {
        if (bytes > loader->staging_bytes - *staged) return false;
        piece->to = loader->staging + *staged;
        *staged = sn_round_up(*staged + bytes, SN_ALIGNMENT);
        if (*staged > loader->staging_bytes) *staged = loader->staging_bytes;
    }
    loader->at += bytes;
    if (loader->at < tensor->bytes) return true;
    loader->next++;
    loader->at = 0;
    return true;
}

size_t sn_load_next(sn_loader *loader, sn_piece *pieces, size_t most) {
    size_t n = 0, staged = 0;
    while (n < most && loader->next < loader->gguf->n_tensors) {
        const sn_request *r = loader->by_tensor[loader->next];
        if (!r) {
            loader->next++;
            continue;
        }
        if (!cut(loader, r, &staged, &pieces[n])) break;
        n++;
    }
    return n;
}

/* ---- keeping ------------------------------------------------------------------------------- */

static sn_status fail_not_finite(const sn_loader *loader, const sn_request *r) {
    return sn_load_fail_tensor(loader, SN_E_NUMERIC, loader->gguf->tensors[r->tensor].name,
                               "holds a NaN or an infinity");
}

static uint64_t elements(const sn_request *r, uint64_t bytes) {
    return bytes / r->type->block_bytes * r->type->block;
}

/* A packed file's scales are checked like any other's. */
static bool panels_finite(const sn_request *r, const sn_piece *piece) {
    const size_t k = (size_t)r->k, panel_bytes = sn_panel_bytes(r->type, k);
    for (size_t at = 0; at < piece->bytes; at += panel_bytes)
        if (!sn_panel_finite(r->type, piece->to + at, k)) return false;
    return true;
}

static bool pack(const sn_request *r, const sn_piece *piece) {
    const size_t k = (size_t)r->k, panel_bytes = sn_panel_bytes(r->type, k);
    const size_t unit = (size_t)unit_bytes(r);
    uint8_t *panel = r->to + piece->at / unit * panel_bytes;
    for (size_t at = 0; at < piece->bytes; at += unit, panel += panel_bytes) {
        const size_t left = piece->bytes - at, bytes = left < unit ? left : unit;
        if (!sn_panel_pack(r->type, piece->to + at, (size_t)elements(r, bytes) / k, k, panel))
            return false;
    }
    return true;
}

/* Scatters `n` elements, the first being number `first` of the tensor. */
static void keep_transposed(const sn_request *r, const uint8_t *from, uint64_t first, size_t n,
                            float *to) {
    float values[UNIT_ELEMENTS];
    const size_t k = (size_t)r->k, rows = (size_t)r->rows;
    for (size_t done = 0; done < n; done += UNIT_ELEMENTS) {
        const size_t count = n - done < UNIT_ELEMENTS ? n - done : UNIT_ELEMENTS;
        r->type->decode(from + sn_type_bytes(r->type, done), values, count);
        for (size_t i = 0; i < count; i++) {
            const size_t element = (size_t)first + done + i;
            to[element % k * rows + element / k] = values[i];
        }
    }
}

sn_status sn_load_keep(const sn_loader *loader, const sn_piece *piece) {
    const sn_request *r = piece->request;
    const size_t n = (size_t)elements(r, piece->bytes);
    if (r->packed) return panels_finite(r, piece) ? SN_OK : fail_not_finite(loader, r);
    if (r->kind == REQUEST_MATRIX) return pack(r, piece) ? SN_OK : fail_not_finite(loader, r);
    if (!r->type->finite(piece->to, n)) return fail_not_finite(loader, r);
    const uint64_t first = elements(r, piece->at);
    float *floats = (float *)(void *)r->to;
    if (r->kind == REQUEST_VECTOR) r->type->decode(piece->to, floats + first, n);
    if (r->kind == REQUEST_TRANSPOSED) keep_transposed(r, piece->to, first, n, floats);
    return SN_OK;
}

sn_status sn_load_report(sn_loader *loader, size_t bytes) {
    loader->done += (double)bytes;
    if (sn_asked_to_stop(loader->progress, loader->progress_user, loader->done, loader->total))
        return sn_fail(SN_E_ABORTED, "%.300s: loading was stopped", sn_gguf_name(loader->gguf));
    return SN_OK;
}
