/*
 * fuzz_json FILE [MUTATIONS [SEED]]: mutated JSON texts (fuzz.h). Nothing may crash or hang; what
 * is accepted is walked, and every member must be found again under its key.
 */
#include "formats/json.h"

#include "fuzz.h"

static uint64_t visit(const sn_json *value) {
    uint64_t sum = 0;
    size_t count = 0;
    for (size_t i = 0; value->text && i <= value->size; i++) sum += (uint8_t)value->text[i];
    for (const sn_json *item = value->first; item; item = item->next, count++) {
        sum += visit(item); /* as deep as the parser lets it be */
        if (value->kind == SN_JSON_OBJECT &&
            sn_json_get_sized(value, item->key, item->key_size) != item)
            abort();
    }
    if (value->kind >= SN_JSON_ARRAY && count != value->size) abort();
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static volatile uint64_t sum; /* keeps visit() from being optimised away */
    sn_json_document *document = NULL;
    sn_status status = sn_json_parse((const char *)data, size, "fuzz", size % 2, &document);
    if (status != SN_OK) {
        if (strncmp(sn_last_error(), "fuzz: JSON, line ", 17) != 0) abort();
        return 0;
    }
    sum += visit(sn_json_root(document));
    sn_json_free(document);
    return 0;
}

#ifndef SN_LIBFUZZER

static void fuzz_structure(const uint8_t *data, size_t size, size_t *begin, size_t *end) {
    (void)data;
    *begin = 0;
    *end = size;
}

static const char *fuzz_word(check_random *random) {
    static const char *const words[] = { "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800",
                                         "\\udc00", "1e308", "-", "0.", "null", "NaN", "e-400",
                                         "\xef\xbb\xbf", "\xf0\x9f\x98\x80", "\"\":", "[[[[[[[[" };
    return words[check_below(random, sizeof words / sizeof words[0])];
}

#endif
