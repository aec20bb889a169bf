/* tools.c: `sunnynet convert` and `sunnynet selftest`. */
#include "common.h"

#include <string.h>

int command_convert(const arguments *args) {
    if (args->n_positional != 2)
        return fail_usage("convert", "convert wants two file names: IN OUT.gguf");
    sn_convert_options options;
    sn_convert_options_init(&options);
    options.type = args->type;
    options.packed = args->packed;
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
