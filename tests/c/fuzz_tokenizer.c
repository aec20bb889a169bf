/*
 * fuzz_tokenizer FILE [MUTATIONS [SEED]]: mutates a tokenizer's file (tokenizer.json of either
 * schema, tokenizer.model, an RWKV vocabulary) in memory and imports the result; nothing may crash,
 * hang or leave the importer without an error text, and what is imported must be a GGUF.
 * Compiled with SN_LIBFUZZER and -fsanitize=fuzzer it is a libFuzzer target instead.
 */
#include "import/lexicon.h"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the importer promises about the keys, whatever the file was. */
static void check_keys(const sn_gguf *gguf) {
    const sn_gguf_value *tokens = sn_gguf_find(gguf, "tokenizer.ggml.tokens");
    const sn_gguf_value *types = sn_gguf_find(gguf, "tokenizer.ggml.token_type");
    if (!sn_gguf_find(gguf, "tokenizer.ggml.model") || !tokens || !types) abort();
    if (tokens->count == 0 || tokens->count != types->count) abort();
    for (uint64_t i = 0; i < tokens->count; i++) {
        int64_t type = sn_gguf_int_at(types, i);
        if (sn_gguf_string_at(tokens, i).size == 0 || type < 1 || type > 6) abort();
    }
    const sn_gguf_value *merges = sn_gguf_find(gguf, "sunnynet.tokenizer.merges");
    for (uint64_t i = 0; merges && i < merges->count; i++)
        if ((uint64_t)sn_gguf_int_at(merges, i) >= tokens->count) abort();
}

static void read_back(sn_build *build) {
    sn_input input;
    sn_gguf gguf;
    if (sn_build_input(build, NULL, &input) != SN_OK || sn_gguf_read(&input, &gguf) != SN_OK) {
        fprintf(stderr, "%s\n", sn_last_error());
        abort();
    }
    check_keys(&gguf);
    sn_gguf_close(&gguf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_build *build = NULL;
    if (sn_build_new("fuzz", &build) != SN_OK) abort();
    sn_status status = sn_import_tokenizer_bytes("fuzz.file", data, size, 0, build);
    if (status == SN_OK) {
        read_back(build); /* frees it */
        return 0;
    }
    if (strncmp(sn_last_error(), "fuzz.file: ", 11) != 0) {
        fprintf(stderr, "%s\n", sn_last_error());
        abort();
    }
    sn_build_free(build);
    return 0;
}

#ifndef SN_LIBFUZZER

/* Pieces that the formats are made of: most mutations are still read for a while. */
static const char *const words[] = {
    "0", "-1", "1", "16777216", "4294967296", "1e9", "null", "true", "false", "[]", "{}", "\"\"",
    "\"a\"", ",", ":", "\"", "\\u0000", "\xe2\x96\x81", "\xff", " ", "\x0a\x03", "\x08\x7f", "\x1a",
    "BPE", "Unigram", "Metaspace", "ByteLevel", "Sequence", "b'\\xff'", "\n"
};

/* Overwrites or inserts a word, deletes or doubles some bytes; at most 64 more of them. */
static size_t mutate_once(uint8_t *data, size_t size, check_random *random) {
    const char *word = words[check_below(random, sizeof words / sizeof *words)];
    size_t length = strlen(word), at = check_below(random, (uint32_t)size);
    size_t some = 1 + check_below(random, 16), left = size - at;
    switch (check_below(random, 5)) {
    case 0:
        data[at] = (uint8_t)check_next(random);
        return size;
    case 1:
        memcpy(data + at, word, length < left ? length : left);
        return size;
    case 2:
        memmove(data + at + length, data + at, left);
        memcpy(data + at, word, length);
        return size + length;
    case 3:
        if (some >= left) return size;
        memmove(data + at, data + at + some, left - some);
        return size - some;
    default:
        if (some > left) some = left;
        memmove(data + at + some, data + at, left);
        return size + some;
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
    if (!data || size == 0) {
        fprintf(stderr, "usage: fuzz_tokenizer FILE [MUTATIONS [SEED]]\n");
        return 2;
    }
    long mutations = argc > 2 ? atol(argv[2]) : 2000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    uint8_t *copy = malloc(size + 256);
    if (!copy) return 2;
    for (long i = 0; i < mutations; i++) {
        check_random random = { seed + (uint64_t)i };
        size_t now = size;
        memcpy(copy, data, size);
        for (uint32_t n = 1 + check_below(&random, 3); n && now; n--)
            now = mutate_once(copy, now, &random);
        /* every eighth one is cut off as well */
        if (now && check_below(&random, 8) == 0) now = check_below(&random, (uint32_t)now);
        LLVMFuzzerTestOneInput(copy, now);
    }
    free(copy);
    free(data);
    return 0;
}

#endif
