/* tokens.c: `sunnynet tokenize` and `detokenize`: they need a tokenizer, and no model. */
#include <string.h>

#include "common.h"

static int print_ids(buffer *b, const id_list *ids) {
    for (int32_t i = 0; i < ids->n; i++)
        buffer_printf(b, "%s%d", i == 0 ? "" : " ", (int)ids->items[i]);
    buffer_text(b, "\n");
    return EXIT_DONE;
}

static int json_ids(buffer *b, const loaded *m, const id_list *ids) {
    buffer_text(b, "{\"ids\":[");
    for (int32_t i = 0; i < ids->n; i++)
        buffer_printf(b, "%s%d", i == 0 ? "" : ",", (int)ids->items[i]);
    buffer_text(b, "],\"pieces\":[");
    for (int32_t i = 0; i < ids->n; i++) {
        const char *bytes;
        size_t length;
        sn_status status = sn_tokenizer_token(m->tokenizer, ids->items[i], &bytes, &length);
        if (status != SN_OK) return fail_library(status, NULL);
        if (i > 0) buffer_text(b, ",");
        json_string(b, bytes, length);
    }
    buffer_text(b, "]}\n");
    return EXIT_DONE;
}

int command_tokenize(const arguments *args) {
    loaded m = {0};
    id_list ids = {0};
    buffer text = {0}, b = {0};
    bool given;
    int code = prompt_read(args, &text, &given);
    if (code == EXIT_DONE && !given)
        code = fail_usage("tokenize", "a text is missing: give -p TEXT or -f FILE");
    if (code == EXIT_DONE) code = tokenizer_open(&m, args);
    if (code == EXIT_DONE)
        code = ids_encode(&ids, m.tokenizer, text.data, text.size,
                          (args->special ? SN_ENCODE_SPECIAL : 0) |
                              (args->ends ? SN_ENCODE_ENDS : 0));
    if (code == EXIT_DONE) code = args->json ? json_ids(&b, &m, &ids) : print_ids(&b, &ids);
    if (code == EXIT_DONE && !out_buffer(&b)) code = OUT_CLOSED;
    buffer_free(&b);
    buffer_free(&text);
    ids_free(&ids);
    model_close(&m);
    return code;
}

int command_detokenize(const arguments *args) {
    loaded m = {0};
    id_list ids = {0};
    buffer b = {0};
    int code = args->tokens == NULL
                   ? fail_usage("detokenize", "ids are missing: give --tokens 1,2,3")
                   : ids_parse(&ids, args, args->tokens);
    if (code == EXIT_DONE) code = tokenizer_open(&m, args);
    for (int32_t i = 0; i < ids.n && code == EXIT_DONE; i++)
        code = id_bytes(m.tokenizer, ids.items[i], &b);
    if (code == EXIT_DONE && !out_buffer(&b)) code = OUT_CLOSED;
    buffer_free(&b);
    ids_free(&ids);
    model_close(&m);
    return code;
}
