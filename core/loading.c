/*
 * loading.c: loading in steps. First the header is collected until it can be read, in a buffer
 * that doubles; then every piece of the file gets its place from the loader.
 */
#include "fpenv.h"
#include "import/open.h"
#include "load.h"
#include "platform.h"
#include "worker.h"

#include <string.h>

#define FIRST_HEADER_BYTES (64u << 10)
#define SKIP_BYTES (64u << 10) /* padding and tensors that nobody needs go through here */

struct sn_loading {
    sn_model_options options;
    char *name;
    uint64_t size, position; /* of the file; bytes taken */
    sn_status failed;        /* the first failure; nothing works afterwards */
    /* until the header can be read */
    uint8_t *header;
    size_t have, room;
    /* after that */
    bool open; /* gguf is */
    sn_gguf gguf;
    sn_model *model;
    sn_loader *loader;
    bool complete;
    sn_piece piece; /* the one being filled */
    size_t filled;
    uint8_t *skipped;
};

/* ---- the header ----------------------------------------------------------------------------- */

typedef struct partial { /* the bytes at hand, as an input that may run dry */
    const uint8_t *data;
    size_t left;
    bool ran_dry;
} partial;

static size_t read_partial(void *user, void *buffer, size_t bytes) {
    partial *p = user;
    if (bytes > p->left) {
        p->ran_dry = true;
        return 0;
    }
    memcpy(buffer, p->data, bytes);
    p->data += bytes;
    p->left -= bytes;
    return bytes;
}

static void next_piece(sn_loading *l) {
    l->filled = 0;
    l->complete = sn_load_next(l->loader, &l->piece, 1) == 0;
}

/* Stores n bytes of the file where sn_loading_next would have them. */
static sn_status take(sn_loading *l, const uint8_t *bytes, size_t n);

static sn_status make_room(sn_loading *l, uint64_t room) {
    uint8_t *more = room <= SIZE_MAX ? sn_grow(l->header, l->room, (size_t)room) : NULL;
    if (!more) return sn_fail(SN_E_NOMEM, "%.300s: larger than the memory", l->name);
    l->header = more;
    l->room = (size_t)room;
    return SN_OK;
}

/* Other formats than GGUF are read back and forth: they are collected whole. */
static sn_status try_whole(sn_loading *l) {
    sn_gguf gguf = { 0 };
    if (l->have < l->size) {
        SN_TRY(sn_open_check_beginning(l->name, l->header, l->have, l->size));
        return make_room(l, l->size);
    }
    SN_TRY(sn_open_model_memory(l->name, l->header, l->have, &gguf));
    SN_TRY(sn_model_from(&gguf, &l->options, &l->model));
    sn_free(l->header);
    l->header = NULL;
    l->complete = true;
    return SN_OK;
}

/* Reads the header if it is all there; else asks for twice as many bytes. */
static sn_status try_header(sn_loading *l) {
    if (l->have >= 4 && memcmp(l->header, "GGUF", 4) != 0) return try_whole(l);
    partial at_hand = { l->header, l->have, false };
    sn_input input = { .name = l->name, .size = l->size, .read = read_partial,
                       .user = &at_hand };
    const sn_status status = sn_gguf_read(&input, &l->gguf);
    if (status != SN_OK && at_hand.ran_dry && l->have < l->size) {
        const uint64_t room = 2 * (uint64_t)l->room;
        return make_room(l, room < l->size ? room : l->size);
    }
    SN_TRY(status);
    l->open = true;
    SN_TRY(sn_model_begin(&l->gguf, &l->options, 1, &l->model, &l->loader));
    next_piece(l);
    l->position = l->have - at_hand.left;
    return take(l, at_hand.data, at_hand.left);
}

/* ---- the data -------------------------------------------------------------------------------- */

/* Bytes before the piece that nobody needs. */
static size_t gap(const sn_loading *l) {
    const uint64_t bytes = l->piece.offset > l->position ? l->piece.offset - l->position : 0;
    return bytes < SKIP_BYTES ? (size_t)bytes : SKIP_BYTES;
}

/* n more bytes lie where they belong. */
static sn_status advance(sn_loading *l, size_t n) {
    const bool skipping = gap(l) > 0;
    l->position += n;
    if (skipping) return SN_OK;
    l->filled += n;
    if (l->filled < l->piece.bytes) return SN_OK;
    SN_TRY(sn_load_keep(l->loader, &l->piece));
    SN_TRY(sn_load_report(l->loader, l->piece.bytes));
    next_piece(l);
    return SN_OK;
}

/* Where the next bytes belong: nowhere, or in the piece. */
static void *place(const sn_loading *l, size_t *bytes) {
    const size_t skip = gap(l);
    *bytes = skip ? skip : l->piece.bytes - l->filled;
    return skip ? l->skipped : l->piece.to + l->filled;
}

static sn_status take(sn_loading *l, const uint8_t *bytes, size_t n) {
    while (n && !l->complete) {
        size_t room;
        void *to = place(l, &room);
        if (room > n) room = n;
        memcpy(to, bytes, room);
        SN_TRY(advance(l, room));
        bytes += room;
        n -= room;
    }
    return SN_OK;
}

/* ---- the public calls ---------------------------------------------------------------------- */

sn_status sn_loading_new(const char *name, double size, const sn_model_options *given,
                         sn_loading **out) {
    sn_model_options options;
    if (!out) return sn_fail(SN_E_INVAL, "loading is NULL");
    if (!(size >= 0.0 && size <= 0x1p53))
        return sn_fail(SN_E_INVAL, "size %g is not that of a file", size);
    if (!name) name = "model";
    if (size == 0.0) return sn_fail(SN_E_FORMAT, "%.300s: is empty", name);
    SN_TRY(sn_model_check_options(given, &options));
    sn_loading *l = sn_alloc(sizeof *l);
    if (!l) return SN_E_NOMEM;
    l->options = options;
    l->size = (uint64_t)size;
    l->room = l->size < FIRST_HEADER_BYTES ? (size_t)l->size : FIRST_HEADER_BYTES;
    l->name = sn_alloc(strlen(name) + 1);
    l->header = sn_alloc(l->room);
    l->skipped = sn_alloc(SKIP_BYTES);
    if (!l->name || !l->header || !l->skipped) {
        sn_loading_free(l);
        return SN_E_NOMEM;
    }
    memcpy(l->name, name, strlen(name));
    *out = l;
    return SN_OK;
}

void sn_loading_free(sn_loading *l) {
    if (!l) return;
    sn_load_free(l->loader);
    sn_model_free(l->model);
    if (l->open) sn_gguf_close(&l->gguf);
    sn_free(l->header);
    sn_free(l->skipped);
    sn_free(l->name);
    sn_free(l);
}

static sn_status check_usable(const sn_loading *l) {
    if (!l) return sn_fail(SN_E_INVAL, "loading is NULL");
    if (l->failed) return sn_fail(l->failed, "%.300s: loading failed before", l->name);
    return SN_OK;
}

sn_status sn_loading_next(sn_loading *l, void **buffer, size_t *bytes) {
    SN_TRY(check_usable(l));
    if (!buffer || !bytes) return sn_fail(SN_E_INVAL, "buffer or bytes is NULL");
    *buffer = NULL;
    *bytes = 0;
    if (l->complete) return SN_OK;
    if (l->open) {
        *buffer = place(l, bytes);
    } else {
        *buffer = l->header + l->have;
        *bytes = l->room - l->have;
    }
    return SN_OK;
}

SN_WORKER static sn_status work(sn_loading *l, size_t bytes) {
    if (l->open) return advance(l, bytes);
    l->have += bytes;
    return l->have < l->room ? SN_OK : try_header(l);
}

sn_status sn_loading_advance(sn_loading *l, size_t bytes) {
    void *buffer;
    size_t allowed;
    SN_TRY(sn_loading_next(l, &buffer, &allowed));
    if (bytes > allowed)
        return sn_fail(SN_E_INVAL, "%.300s: %zu bytes stored where %zu fit", l->name, bytes,
                       allowed);
    const sn_fpenv saved = sn_fpenv_enter();
    l->failed = work(l, bytes);
    sn_fpenv_leave(saved);
    return l->failed;
}

sn_status sn_loading_finish(sn_loading *l, sn_model **model) {
    SN_TRY(check_usable(l));
    if (!model) return sn_fail(SN_E_INVAL, "model is NULL");
    if (!l->complete || !l->model)
        return sn_fail(SN_E_FORMAT, "%.300s: %llu of %llu bytes came", l->name,
                       (unsigned long long)(l->open ? l->position : l->have),
                       (unsigned long long)l->size);
    *model = l->model;
    l->model = NULL;
    return SN_OK;
}
