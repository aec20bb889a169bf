/* tools.c: `sunnynet convert` and `sunnynet selftest`. */
#include "common.h"

#include <string.h>

/* NULL: the library's choice. */
static const char *choose_format(const arguments *args) {
    static const char *const names[] = {[FORMAT_GGUF] = "gguf", [FORMAT_BLOB] = "blob"};
    if (args->format_given) return names[args->format];
    const char *out = args->positional[1];
    size_t length = strlen(out);
    return length > 4 && strcmp(out + length - 4, ".bin") == 0 ? "blob" : NULL;
}

int command_convert(const arguments *args) {
    if (args->n_positional != 2)
        return fail_usage("convert", "convert wants two file names: IN OUT");
    sn_convert_options options;
    sn_convert_options_init(&options);
    options.type = args->type;
    options.packed = args->packed;
    options.format = choose_format(args);
    progress p;
    progress_start(&p, "converting");
    options.progress = progress_report;
    options.progress_user = &p;
    sn_status status = sn_convert(args->positional[0], args->positional[1], &options);
    progress_end(&p);
    return status == SN_OK ? EXIT_DONE : fail_library(status, NULL);
}

static void print_line(void *user, const char *line) {
    buffer *b = user;
    buffer_printf(b, "%s\n", line);
    out_buffer(b);
}

int command_selftest(const arguments *args) {
    (void)args;
    buffer b = {0};
    sn_status status = sn_selftest(print_line, &b);
    buffer_free(&b);
    return status == SN_OK ? EXIT_DONE : fail_library(status, NULL);
}
