/*
 * fuzz_store.h: what the fuzzers of safetensors and PyTorch checkpoints do with what was accepted.
 */
#ifndef SN_TESTS_FUZZ_STORE_H
#define SN_TESTS_FUZZ_STORE_H

#include "formats/store.h"

#include "check.h"

#define FUZZ_ELEMENTS 300 /* read of each tensor, at both ends */

/* Reads both ends of every tensor and of its transpose, so that a sanitizer sees a bad view. */
static inline void fuzz_visit(const sn_store *store) {
    static uint8_t bytes[8 * FUZZ_ELEMENTS];
    static float values[FUZZ_ELEMENTS];
    for (size_t i = 0; i < sn_store_count(store); i++) {
        const sn_view *view = sn_store_at(store, i);
        if (sn_store_find(store, view->name) != view) abort();
        sn_view both[2] = { *view, sn_view_transposed(view) };
        uint64_t all = sn_view_elements(view);
        size_t n = all < FUZZ_ELEMENTS ? (size_t)all : FUZZ_ELEMENTS;
        for (int j = 0; j < 2; j++) {
            if (sn_view_read(&both[j], 0, n, bytes) != SN_OK ||
                sn_view_read(&both[j], all - n, n, bytes) != SN_OK)
                abort();
            bool is_float = view->type->name[0] != 'I';
            bool read = sn_view_read_f32(&both[j], 0, n, values) == SN_OK;
            if (read != is_float) abort();
        }
    }
}

/* After a reader's call; `store` is freed. A failure must name the file "fuzz". */
static inline void fuzz_check(sn_store *store, sn_status status) {
    if (status == SN_OK)
        fuzz_visit(store);
    else if (strncmp(sn_last_error(), "fuzz: ", 6) != 0)
        abort();
    sn_store_free(store);
}

#endif
