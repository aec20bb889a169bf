/*
 * fuzz_gguf FILE [MUTATIONS [SEED]]: mutates the file's header in memory and reads the result;
 * nothing may crash, hang or leave a reader without an error text. Compiled with SN_LIBFUZZER
 * and -fsanitize=fuzzer it is a libFuzzer target instead.
 */
#include "formats/gguf.h"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every byte that a successful read hands out, so that a sanitizer sees a bad one. */
static uint64_t visit(const sn_gguf *gguf) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < gguf->n_values; i++) {
        const sn_gguf_value *value = &gguf->values[i];
        for (size_t j = 0; j < value->key.size; j++) sum += (uint8_t)value->key.data[j];
        for (size_t j = 0; j < value->bytes; j++) sum += value->data[j];
        if (value->kind != SN_GGUF_ARRAY) continue;
        for (uint64_t j = 0; j < value->count; j++) {
            if (value->element == SN_GGUF_STRING)
                sum += sn_gguf_string_at(value, j).size;
            else if (value->element == SN_GGUF_F32 || value->element == SN_GGUF_F64)
                sum += sn_gguf_float_at(value, j) > 0;
            else
                sum += (uint64_t)sn_gguf_int_at(value, j);
        }
    }
    for (uint64_t i = 0; i < gguf->n_tensors; i++) {
        const sn_gguf_tensor *tensor = &gguf->tensors[i];
        uint64_t file = gguf->file_bytes;
        if (tensor->offset > file || tensor->bytes > file - tensor->offset ||
            sn_gguf_find_tensor(gguf, tensor->name) != tensor)
            abort();
        sum += tensor->bytes;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_memory_cursor cursor;
    sn_input input;
    sn_gguf gguf;
    static volatile uint64_t sum; /* keeps visit() from being optimised away */
    sn_input_from_memory(&input, "fuzz.gguf", data, size, &cursor);
    sn_status status = sn_gguf_read(&input, &gguf);
    if (status != SN_OK) {
        if (strncmp(sn_last_error(), "fuzz.gguf: ", 11) != 0) abort();
        return 0;
    }
    sum += visit(&gguf);
    sn_gguf_close(&gguf);
    return 0;
}

#ifndef SN_LIBFUZZER

/* Where the data begins: mutations there would change nothing that this reader looks at. */
static size_t header_size(const uint8_t *data, size_t size) {
    sn_memory_cursor cursor;
    sn_input input;
    sn_gguf gguf;
    sn_input_from_memory(&input, "file", data, size, &cursor);
    if (sn_gguf_read(&input, &gguf) != SN_OK) return size;
    size_t start = (size_t)gguf.parts[0].input.position;
    sn_gguf_close(&gguf);
    return start;
}

static void mutate(uint8_t *data, size_t header, check_random *random) {
    static const uint64_t words[] = { 0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000,
                                      0xffffffff, 0x100000000, 0x7fffffffffffffff,
                                      0x8000000000000000, 0xffffffffffffffff,
                                      0x2000000000000001 };
    uint32_t changes = 1 + check_below(random, 3);
    while (changes--) {
        /* half of them near the start, where the structure is densest */
        size_t range = check_below(random, 2) && header > 1024 ? 1024 : header;
        size_t at = check_below(random, (uint32_t)range);
        uint32_t width = 1u << check_below(random, 4);
        uint64_t word = check_below(random, 2)
                            ? check_next(random)
                            : words[check_below(random, sizeof words / sizeof *words)];
        for (uint32_t i = 0; i < width && at + i < header; i++)
            data[at + i] = (uint8_t)(word >> (8 * i));
    }
}

static uint8_t *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size ? *size : 1);
    if (data && fread(data, 1, *size, file) != *size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv) {
    size_t size = 0;
    uint8_t *data = argc > 1 ? load(argv[1], &size) : NULL;
    if (!data) {
        fprintf(stderr, "usage: fuzz_gguf FILE [MUTATIONS [SEED]]\n");
        return 2;
    }
    long mutations = argc > 2 ? atol(argv[2]) : 4000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    size_t header = header_size(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 2;
    memcpy(copy, data, size);
    for (long i = 0; i < mutations; i++) {
        check_random random = { seed + (uint64_t)i };
        mutate(copy, header, &random);
        /* every fourth one is cut off as well, inside the header or just behind it */
        size_t cut = check_below(&random, 4) ? size : check_below(&random, (uint32_t)header + 64);
        LLVMFuzzerTestOneInput(copy, cut < size ? cut : size);
        memcpy(copy, data, header);
    }
    free(copy);
    free(data);
    return 0;
}

#endif
