/*
 * load_read.c: loading from inputs, several pieces at a time. The pool's threads check, pack and
 * decode them; where the input allows it they read them too, each its own.
 */
#include "load.h"

typedef struct batch {
    const sn_loader *loader;
    const sn_gguf *gguf;
    size_t n;
    sn_piece pieces[SN_PIECES_AT_ONCE];
    bool failed[SN_PIECES_AT_ONCE];
} batch;

static sn_input *input_of(const batch *b, const sn_piece *piece) {
    return &b->gguf->parts[piece->part].input;
}

/* What only one thread can do: a stream is read in order. */
static sn_status read_in_order(const batch *b) {
    for (size_t i = 0; i < b->n; i++) {
        const sn_piece *piece = &b->pieces[i];
        sn_input *input = input_of(b, piece);
        if (piece->mapped || input->read_at) continue;
        SN_TRY(sn_input_skip_to(input, piece->offset));
        SN_TRY(sn_input_read(input, piece->to, piece->bytes));
    }
    return SN_OK;
}

static sn_status take(const batch *b, const sn_piece *piece) {
    const sn_input *input = input_of(b, piece);
    if (!piece->mapped && input->read_at)
        SN_TRY(sn_input_read_at(input, piece->offset, piece->to, piece->bytes));
    return sn_load_keep(b->loader, piece);
}

static void take_range(void *context, size_t begin, size_t end) {
    batch *b = context;
    for (size_t i = begin; i < end; i++) b->failed[i] = take(b, &b->pieces[i]) != SN_OK;
}

/* The line that tells of a failure belongs to the thread that met it: so the first piece that
 * failed is taken again here. */
static sn_status take_failed_again(const batch *b) {
    for (size_t i = 0; i < b->n; i++)
        if (b->failed[i]) SN_TRY(take(b, &b->pieces[i]));
    return SN_OK;
}

static sn_status report(const batch *b, sn_loader *loader) {
    for (size_t i = 0; i < b->n; i++) SN_TRY(sn_load_report(loader, b->pieces[i].bytes));
    return SN_OK;
}

sn_status sn_load_read(sn_loader *loader, const sn_gguf *gguf, sn_pool *pool) {
    batch b = { .loader = loader, .gguf = gguf };
    while ((b.n = sn_load_next(loader, b.pieces, SN_PIECES_AT_ONCE)) > 0) {
        SN_TRY(read_in_order(&b));
        sn_pool_run(pool, b.n, take_range, &b);
        SN_TRY(take_failed_again(&b));
        SN_TRY(report(&b, loader));
    }
    return SN_OK;
}
