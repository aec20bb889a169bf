/*
 * store_dump FILE [ROOT]: the tensors of a safetensors file or PyTorch checkpoint, one a line:
 * name, type, shape and the values of small ones; then the notes asked for by tests. ROOT is the
 * member that holds the tensors. Exit code 1 and the reason on stderr if the file is refused.
 */
#include "formats/store.h"
#include "platform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 256 /* values */

static sn_status read_store(const char *path, const char *root, sn_store *store) {
    sn_file file;
    SN_TRY(sn_platform_open_file(path, &file));
    if (sn_pickle_smells(&file)) return sn_pickle_read(&file, root, store);
    return sn_safetensors_read(&file, store);
}

/* Integers as hexadecimal, lowest byte last; floats so that they can be read back. */
static sn_status print_values(const sn_view *view, size_t n) {
    static float values[SHOWN];
    static uint8_t bytes[8 * SHOWN];
    size_t size = view->type->block_bytes;
    if (view->type->name[0] != 'I') {
        SN_TRY(sn_view_read_f32(view, 0, n, values));
        for (size_t i = 0; i < n; i++) printf(" %.9g", (double)values[i]);
        return SN_OK;
    }
    SN_TRY(sn_view_read(view, 0, n, bytes));
    for (size_t i = 0; i < n; i++) {
        printf(" 0x");
        for (size_t j = size; j-- > 0;) printf("%02x", bytes[i * size + j]);
    }
    return SN_OK;
}

static sn_status print_tensor(const sn_view *view) {
    uint64_t n = sn_view_elements(view);
    printf("%s %s [", view->name, view->type->name);
    for (uint32_t i = 0; i < view->n_dims; i++)
        printf("%s%" PRIu64, i ? "," : "", view->dims[i]);
    printf("]");
    if (n <= SHOWN) SN_TRY(print_values(view, (size_t)n));
    printf("\n");
    return SN_OK;
}

static sn_status dump(const char *path, const char *root, sn_store *store) {
    static const char *const notes[] = { "arch", "config", "format", "sunnynet.config", "summary" };
    SN_TRY(read_store(path, root, store));
    for (size_t i = 0; i < sn_store_count(store); i++)
        SN_TRY(print_tensor(sn_store_at(store, i)));
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        const char *note = sn_store_note(store, notes[i]);
        if (note) printf("# %s %s\n", notes[i], note);
    }
    return SN_OK;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: store_dump FILE [ROOT]\n");
        return 2;
    }
    sn_store *store = NULL;
    sn_status status = sn_store_new(&store);
    if (status == SN_OK) status = dump(argv[1], argc > 2 ? argv[2] : NULL, store);
    sn_store_free(store);
    if (status == SN_OK) return 0;
    fprintf(stderr, "sunnynet: %s\n", sn_last_error());
    return 1;
}
