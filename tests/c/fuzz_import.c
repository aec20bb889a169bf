/*
 * fuzz_import FILE [MUTATIONS [SEED]]: a config.json, a NUL and a safetensors file, mutated
 * (fuzz.h), as a model: what an importer accepts must stream to its end as valid GGUF.
 */
#include "import/import.h"

#include "fuzz.h"

static const sn_importer *const importers[] = {
    &sn_import_rwkv7, &sn_import_rwkv7_fla, &sn_import_mamba2, &sn_import_mamba,
    &sn_import_deltanet, &sn_import_gated_deltanet, &sn_import_gla, &sn_import_hgrn2,
    &sn_import_sunnynet,
};

static sn_status declare(const sn_source_model *source, sn_build *build) {
    for (size_t i = 0; i < sizeof importers / sizeof importers[0]; i++)
        if (importers[i]->recognises(source)) return importers[i]->declare(source, build);
    return sn_fail(SN_E_UNSUPPORTED, "fuzz: nobody's");
}

static void drain(sn_input *input) {
    static uint8_t bytes[1 << 16];
    sn_gguf gguf;
    if (sn_gguf_read(input, &gguf) != SN_OK) {
        if (strncmp(sn_last_error(), "fuzz: ", 6) != 0) abort();
        return;
    }
    sn_input *rest = &gguf.parts[0].input;
    while (sn_input_left(rest)) {
        uint64_t left = sn_input_left(rest);
        size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
        if (sn_input_read(rest, bytes, n) != SN_OK) abort();
    }
    sn_gguf_close(&gguf);
}

/* All of them belong to the stream, or are freed here. */
static void import(sn_source_model *source, sn_build *build) {
    sn_input input;
    sn_status status = declare(source, build);
    if (status == SN_OK) {
        status = sn_build_input(build, source->store, &input);
        if (status == SN_OK) drain(&input);
    } else {
        sn_build_free(build);
        sn_store_free(source->store);
    }
    if (status != SN_OK && strncmp(sn_last_error(), "fuzz: ", 6) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t n = end ? (size_t)(end - data) : 0;
    sn_source_model source = { .name = "fuzz" };
    sn_json_document *config = NULL;
    sn_build *build = NULL;
    sn_file file;
    if (!end) return 0;
    if (n && sn_json_parse((const char *)data, n, "fuzz", true, &config) != SN_OK) return 0;
    if (config) source.config = sn_json_root(config);
    sn_file_from_memory(&file, "fuzz", end + 1, size - n - 1);
    if (sn_store_new(&source.store) != SN_OK) abort();
    if (sn_safetensors_read(&file, source.store) != SN_OK)
        sn_store_free(source.store);
    else if (sn_build_new("fuzz", &build) != SN_OK)
        abort();
    else
        import(&source, build);
    sn_json_free(config);
    return 0;
}

#ifndef SN_LIBFUZZER

/* The config and the header behind it. */
static void fuzz_structure(const uint8_t *data, size_t size, size_t *begin, size_t *end) {
    const uint8_t *nul = memchr(data, 0, size);
    size_t at = nul ? (size_t)(nul - data) + 1 : 0;
    size_t header = size - at > 8 ? (size_t)data[at] + 256 * (size_t)data[at + 1] : 0;
    *begin = 0;
    *end = at + 8 + header < size ? at + 8 + header : size;
}

static const char *fuzz_word(check_random *random) {
    static const char *const words[] = { "null", "true", "-1", "99999999", "0", "{}", "[]", "\"\"",
                                         "[0,64]", "F64", "BF16", "I32", "\"n_groups\"",
                                         "\"num_heads\"", "blocks", "[64,64]", "1e9" };
    return words[check_below(random, sizeof words / sizeof words[0])];
}

#endif
