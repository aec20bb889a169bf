/*
 * args.h: the command line as one struct. options.c holds the table of all options with their
 * ranges, defaults and help; args.c parses any command line by that table and prints its help.
 */
#ifndef SN_WASI_ARGS_H
#define SN_WASI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sunnynet.h"

typedef enum command_id {
    COMMAND_RUN,
    COMMAND_CHAT,
    COMMAND_LOGITS,
    COMMAND_TOKENIZE,
    COMMAND_DETOKENIZE,
    COMMAND_INFO,
    COMMAND_CONVERT,
    COMMAND_RELEASE,
    COMMAND_PERPLEXITY,
    COMMAND_BENCH,
    COMMAND_SELFTEST,
    COMMAND_COUNT
} command_id;

#define MAX_LIST 16
#define MAX_BIAS 64

typedef struct text_list {
    const char *items[MAX_LIST];
    int32_t n;
} text_list;

typedef struct int_list {
    int32_t items[MAX_LIST];
    int32_t n;
} int_list;

typedef struct bias_list {
    sn_logit_bias items[MAX_BIAS];
    int32_t n;
} bias_list;

/* What --mode and --format say, in the order of their choices. */
enum { MODE_STEP, MODE_PREFILL, MODE_BATCH };
enum { FORMAT_GGUF, FORMAT_BLOB };

/* Texts point into argv; NULL where none was given. Counts are checked against their ranges. */
typedef struct arguments {
    command_id command;
    const char *program; /* argv[0] */
    const char *model, *tokenizer, *hf_arch, *isa;
    const char *prompt, *file, *tokens, *system, *chat_format;
    const char *state_load, *state_save, *output, *type;
    const char *out_dir, *name, *publisher, *license; /* of a release */
    const char *positional[2]; /* convert: IN OUT; release: CHECKPOINT */
    int64_t n_positional;
    int64_t predict, top_k, repeat_last_n, seed, threads, activations, chunk, context;
    int64_t mode, batch, gen_tokens, repeat, format;
    double temperature, top_p, min_p;
    double repeat_penalty, presence_penalty, frequency_penalty;
    bool ignore_eos, bos, no_bos, special, ends, escape, stats, json, all, tensors, packed;
    bool map, help, version;
    bool context_given, seed_given, format_given;
    text_list stops;
    int_list batches, prompt_sizes, thread_counts;
    bias_list bias;
} arguments;

typedef enum option_kind {
    OPTION_FLAG,   /* bool = true */
    OPTION_OFF,    /* bool = false */
    OPTION_TEXT,   /* const char * */
    OPTION_TEXTS,  /* text_list, one more each time */
    OPTION_INT,    /* int64_t */
    OPTION_REAL,   /* double */
    OPTION_INTS,   /* int_list from 1,2,3 */
    OPTION_CHOICE, /* int64_t: index of the word in `choices` */
    OPTION_BIAS    /* bias_list, one more each time */
} option_kind;

typedef struct option {
    const char *names[6]; /* the first two are shown in the help, the rest are quiet aliases */
    option_kind kind;
    uint32_t commands; /* bit 1 << command_id */
    size_t offset;     /* of the value in `arguments` */
    size_t given;      /* of a bool that notes its use; 0: none */
    double low, high;  /* OPTION_INT, OPTION_INTS, OPTION_REAL */
    const char *value; /* what the help calls the value; of a choice the words: "a|b" */
    const char *fallback; /* the default, parsed like a given value; NULL: zero */
    const char *help;
} option;

typedef struct command_text {
    const char *name, *usage, *summary;
    const char *details; /* paragraphs after the options; may be "" */
    int n_positional;
} command_text;

extern const option option_table[];
extern const size_t option_count;
extern const command_text command_table[COMMAND_COUNT];

/* EXIT_DONE, or EXIT_USAGE after saying what is wrong. */
int arguments_parse(arguments *args, int argc, char **argv);

/* The help of all commands, or of one; EXIT_DONE. */
int arguments_help_all(void);
int arguments_help(command_id command);

/* "run", "chat", ... */
const char *command_name(const arguments *args);

/* Parses a whole decimal number in [low, high]; false if it is anything else. */
bool parse_int(const char *text, double low, double high, int64_t *value);

#endif
