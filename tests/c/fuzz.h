/*
 * fuzz.h: what the fuzzers of the containers share. A program defines LLVMFuzzerTestOneInput() and
 * `fuzz_structure`, then includes this. As it is, `fuzz_x FILE [MUTATIONS [SEED]]` mutates the
 * file in memory, with a seeded generator, and gives each mutation to the reader. Compiled with
 * SN_LIBFUZZER and -fsanitize=fuzzer it is a libFuzzer target instead.
 */
#ifndef SN_TESTS_FUZZ_H
#define SN_TESTS_FUZZ_H

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef SN_LIBFUZZER

/* The part of a file that is worth mutating: the rest is read as it is. */
static void fuzz_structure(const uint8_t *data, size_t size, size_t *begin, size_t *end);

/* Pieces of text that mean something to the reader. */
static const char *fuzz_word(check_random *random);

static void fuzz_mutate(uint8_t *data, size_t size, check_random *random) {
    static const uint64_t numbers[] = { 0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000,
                                        0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff };
    uint32_t changes = 1 + check_below(random, 3);
    while (changes--) {
        size_t at = check_below(random, (uint32_t)size);
        uint32_t kind = check_below(random, 4);
        uint8_t bytes[16];
        size_t n = (size_t)1 << check_below(random, 4);
        uint64_t number = kind ? check_next(random)
                               : numbers[check_below(random, sizeof numbers / sizeof *numbers)];
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(number >> (8 * (i % 8)));
        if (kind == 1) { /* one bit */
            n = 1;
            bytes[0] = (uint8_t)(data[at] ^ 1u << (number % 8));
        } else if (kind == 2) {
            const char *word = fuzz_word(random);
            n = strlen(word) < sizeof bytes ? strlen(word) : sizeof bytes;
            memcpy(bytes, word, n);
        }
        memcpy(data + at, bytes, n < size - at ? n : size - at);
    }
}

static uint8_t *fuzz_load(const char *path, size_t *size) {
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
    size_t size = 0, begin = 0, end = 0;
    uint8_t *data = argc > 1 ? fuzz_load(argv[1], &size) : NULL;
    if (!data || size == 0) {
        fprintf(stderr, "usage: %s FILE [MUTATIONS [SEED]]\n", argv[0]);
        return 2;
    }
    long mutations = argc > 2 ? atol(argv[2]) : 4000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    end = size;
    fuzz_structure(data, size, &begin, &end);
    for (long i = 0; i < mutations; i++) {
        check_random random = { seed + (uint64_t)i };
        uint8_t *copy = malloc(size); /* anew: a sanitizer sees what is read behind its end */
        if (!copy) return 2;
        memcpy(copy, data, size);
        fuzz_mutate(copy + begin, end - begin, &random);
        size_t cut = check_below(&random, 4) ? size : check_below(&random, (uint32_t)size);
        uint8_t *exact = malloc(cut ? cut : 1);
        if (!exact) return 2;
        memcpy(exact, copy, cut);
        LLVMFuzzerTestOneInput(exact, cut);
        free(exact);
        free(copy);
    }
    free(data);
    return 0;
}

#endif
#endif
