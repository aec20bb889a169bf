/* fuzz_safetensors FILE [MUTATIONS [SEED]]: mutated safetensors headers (fuzz.h). */
#include "fuzz.h"
#include "fuzz_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_file file;
    sn_store *store = NULL;
    sn_file_from_memory(&file, "fuzz", data, size);
    if (sn_store_new(&store) != SN_OK) abort();
    bool smells = sn_safetensors_smells(&file);
    sn_status status = sn_safetensors_read(&file, store);
    if (status == SN_OK && !smells && size > 10 && data[8] == '{') abort();
    fuzz_check(store, status);
    return 0;
}

#ifndef SN_LIBFUZZER

/* The header, and of the length before it the lower two bytes. */
static void fuzz_structure(const uint8_t *data, size_t size, size_t *begin, size_t *end) {
    size_t header = size > 8 ? (size_t)data[0] + 256 * (size_t)data[1] : 0;
    *begin = 0;
    *end = header + 8 < size ? header + 8 : size;
}

static const char *fuzz_word(check_random *random) {
    static const char *const words[] = { "[0,", "0]", "9999999999", "-1", "F64", "I64", "BF16",
                                         "F8_E4M3", "\"dtype\"", "\"shape\"", "\"data_offsets\"",
                                         "[]", "{}", "null", "\"", "[1,1,1,1,1]" };
    return words[check_below(random, sizeof words / sizeof words[0])];
}

#endif
