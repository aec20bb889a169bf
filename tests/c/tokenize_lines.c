/*
 * tokenize_lines.c: encodes many texts in one process, for the tests.
 * Usage: tokenize_lines PATH FLAGS < texts. PATH is whatever holds a tokenizer; each text is its
 * length (4 bytes, little-endian) and its bytes. For each it prints one line: the ids with spaces
 * between, a tab, and in hexadecimal the text that the ids become again; or "!" and the error.
 */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
    fprintf(stderr, "%s\n", sn_last_error());
    return 1;
}

static void print_hex(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) printf("%02x", (unsigned char)bytes[i]);
}

static sn_status print_text(const sn_tokenizer *tokenizer, const int32_t *ids, int32_t n) {
    sn_text *text = NULL;
    const char *out;
    size_t length;
    int32_t stopped;
    sn_status status = sn_text_new(tokenizer, NULL, 0, &text);
    for (int32_t i = 0; i < n && status == SN_OK; i++) {
        status = sn_text_push(text, ids[i], &out, &length, &stopped);
        if (status == SN_OK) print_hex(out, length);
    }
    if (status == SN_OK) status = sn_text_finish(text, &out, &length);
    if (status == SN_OK) print_hex(out, length);
    sn_text_free(text);
    return status;
}

static sn_status one(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                     int32_t flags) {
    int32_t n = 0;
    sn_status status = sn_tokenizer_encode_with(tokenizer, text, bytes, flags, NULL, 0, &n);
    int32_t *ids = malloc(((size_t)n + 1) * sizeof *ids);
    if (status == SN_OK && ids)
        status = sn_tokenizer_encode_with(tokenizer, text, bytes, flags, ids, n, &n);
    for (int32_t i = 0; i < n && status == SN_OK; i++)
        printf(i ? " %d" : "%d", (int)ids[i]);
    if (status == SN_OK) {
        putchar('\t');
        status = print_text(tokenizer, ids, n);
    }
    if (status != SN_OK) printf("! %s", sn_last_error());
    putchar('\n');
    free(ids);
    return status;
}

static int all(const sn_tokenizer *tokenizer, int32_t flags) {
    unsigned char size[4];
    while (fread(size, 1, 4, stdin) == 4) {
        size_t bytes = size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 |
                       (size_t)size[3] << 24;
        char *text = malloc(bytes + 1);
        if (!text || fread(text, 1, bytes, stdin) != bytes) return 1;
        one(tokenizer, text, bytes, flags);
        free(text);
    }
    return 0;
}

int main(int argc, char **argv) {
    sn_tokenizer *tokenizer = NULL;
    if (argc != 3) return 2;
    if (sn_tokenizer_load(argv[1], &tokenizer) != SN_OK) return fail();
    if (sn_tokenizer_advice(tokenizer)[0])
        fprintf(stderr, "%s\n", sn_tokenizer_advice(tokenizer));
    int code = all(tokenizer, (int32_t)strtol(argv[2], NULL, 10));
    sn_tokenizer_free(tokenizer);
    return code;
}
