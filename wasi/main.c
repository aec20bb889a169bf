/*
 * main.c: the command line program `sunnynet`; the same main() is the native command and the WASI
 * command. It uses the public API only.
 */
#include "common.h"
#include "terminal.h"

static int (*const commands[COMMAND_COUNT])(const arguments *) = {
    [COMMAND_RUN] = command_run,
    [COMMAND_CHAT] = command_chat,
    [COMMAND_LOGITS] = command_logits,
    [COMMAND_TOKENIZE] = command_tokenize,
    [COMMAND_DETOKENIZE] = command_detokenize,
    [COMMAND_INFO] = command_info,
    [COMMAND_CONVERT] = command_convert,
    [COMMAND_RELEASE] = command_release,
    [COMMAND_PERPLEXITY] = command_perplexity,
    [COMMAND_BENCH] = command_bench,
    [COMMAND_SELFTEST] = command_selftest,
};

static int print_version(void) {
    buffer b = {0};
    buffer_printf(&b, "sunnynet %s\n", sn_version());
    bool written = out_buffer(&b);
    buffer_free(&b);
    return written ? EXIT_DONE : OUT_CLOSED;
}

static int dispatch(int argc, char **argv) {
    arguments args;
    int code = arguments_parse(&args, argc, argv);
    if (code != EXIT_DONE) return code;
    if (args.version) return print_version();
    if (args.help && argv[1][0] == '-') return arguments_help_all();
    if (args.help) return arguments_help(args.command);
    return commands[args.command](&args);
}

int main(int argc, char **argv) {
    terminal_start();
    terminal_catch_interrupt();
    if (!terminal_arguments(&argc, &argv)) return fail_memory();
    return out_finish(dispatch(argc, argv));
}
