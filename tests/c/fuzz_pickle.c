/*
 * fuzz_pickle FILE [MUTATIONS [SEED]]: mutated PyTorch checkpoints (fuzz.h): the archive's
 * directories as well as the pickle in it.
 */
#include "fuzz.h"
#include "fuzz_store.h"

#include "formats/pickle.h"

static void read_checkpoint(const uint8_t *data, size_t size, const char *root) {
    sn_file file;
    sn_store *store = NULL;
    sn_file_from_memory(&file, "fuzz", data, size);
    if (sn_store_new(&store) != SN_OK) abort();
    sn_pickle_smells(&file);
    fuzz_check(store, sn_pickle_read(&file, root, store));
}

/* The pickle alone: behind an archive's checks few mutations would reach it. */
static void read_pickle(const uint8_t *data, size_t size) {
    sn_pickle *pickle = NULL;
    char *text = NULL;
    size_t bytes = 0;
    sn_status status = sn_pickle_parse(data, size, "fuzz", &pickle);
    if (status == SN_OK) status = sn_pickle_to_json(sn_pickle_root(pickle), "fuzz", &text, &bytes);
    if (status != SN_OK && strncmp(sn_last_error(), "fuzz: ", 6) != 0) abort();
    if (text && strlen(text) != bytes) abort(); /* JSON holds no NUL */
    sn_free(text);
    sn_pickle_free(pickle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_checkpoint(data, size, NULL);
    read_checkpoint(data, size, "model");
    for (size_t i = 0; i + 2 < size && i < 256; i++)
        if (data[i] == 0x80 && data[i + 1] <= 5) read_pickle(data + i, size - i);
    return 0;
}

#ifndef SN_LIBFUZZER

/* Everything: archives made for this are small. */
static void fuzz_structure(const uint8_t *data, size_t size, size_t *begin, size_t *end) {
    (void)data;
    *begin = 0;
    *end = size;
}

static const char *fuzz_word(check_random *random) {
    static const char *const words[] = { "(", "t", "R", "b", "Q", "}", "u", "s", "]", "e", "a", "0",
                                         "1", "2", "N", "\x85", "\x86", "\x87", "\x88", "\x94", ".",
                                         "h\x01", "q\x01", "K\xff", "PK\x05\x06", "PK\x06\x06",
                                         "PK\x06\x07", "\x80\x02}", "cos\nsystem\n",
                                         "\xff\xff\xff\xff" };
    return words[check_below(random, sizeof words / sizeof words[0])];
}

#endif
