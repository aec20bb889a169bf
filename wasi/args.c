/* args.c: parses a command line by the table of options.c. See args.h. */
#include "args.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

#define MAX_NAMES (sizeof option_table[0].names / sizeof option_table[0].names[0])

const char *command_name(const arguments *args) {
    return command_table[args->command].name;
}

/* ---- values ---- */

bool parse_int(const char *text, double low, double high, int64_t *value) {
    if (*text != '-' && (*text < '0' || *text > '9')) return false;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') return false;
    if ((double)parsed < low || (double)parsed > high) return false;
    *value = parsed;
    return true;
}

static bool parse_real(const char *text, double low, double high, double *value) {
    if (strchr("-.0123456789", *text) == NULL || *text == '\0') return false;
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(parsed)) return false;
    if (parsed < low || parsed > high) return false;
    *value = parsed;
    return true;
}

static bool parse_ints(const char *text, double low, double high, int_list *list) {
    list->n = 0;
    while (list->n < MAX_LIST) {
        char item[24];
        size_t length = strcspn(text, ",");
        if (length >= sizeof item) return false;
        memcpy(item, text, length);
        item[length] = '\0';
        int64_t value;
        if (!parse_int(item, low, high, &value)) return false;
        list->items[list->n++] = (int32_t)value;
        if (text[length] == '\0') return true;
        text += length + 1;
    }
    return false;
}

/* "ID+X" or "ID-X"; X may be inf after a minus, which forbids the token. */
static bool parse_bias(const char *text, bias_list *list) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || list->n == MAX_BIAS) return false;
    if (text[digits] != '+' && text[digits] != '-') return false;
    long long id = strtoll(text, NULL, 10);
    const char *amount = text + digits + 1;
    double bias = INFINITY;
    if (strcmp(amount, "inf") != 0 && !parse_real(amount, 0, 1e6, &bias)) return false;
    if (text[digits] == '-') bias = -bias;
    if (id > INT32_MAX || bias == INFINITY) return false;
    list->items[list->n].id = (int32_t)id;
    list->items[list->n++].bias = (float)bias;
    return true;
}

/* Index of a word in "a|b|c"; false if it is none of them. */
static bool parse_choice(const char *text, const char *choices, int64_t *value) {
    size_t length = strlen(text);
    for (int64_t i = 0;; i++) {
        size_t word = strcspn(choices, "|");
        if (word == length && memcmp(choices, text, word) == 0) {
            *value = i;
            return true;
        }
        if (choices[word] == '\0') return false;
        choices += word + 1;
    }
}

static bool add_text(text_list *list, const char *text) {
    if (list->n == MAX_LIST || *text == '\0') return false;
    list->items[list->n++] = text;
    return true;
}

static bool store(arguments *args, const option *o, const char *text) {
    void *field = (char *)args + o->offset;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)field = true; return true;
    case OPTION_OFF: *(bool *)field = false; return true;
    case OPTION_TEXT: *(const char **)field = text; return true;
    case OPTION_TEXTS: return add_text(field, text);
    case OPTION_INT: return parse_int(text, o->low, o->high, field);
    case OPTION_REAL: return parse_real(text, o->low, o->high, field);
    case OPTION_INTS: return parse_ints(text, o->low, o->high, field);
    case OPTION_CHOICE: return parse_choice(text, o->value, field);
    case OPTION_BIAS: return parse_bias(text, field);
    }
    return false;
}

/* name[0..length) is the option as it was typed. */
static int fail_value(const arguments *args, const option *o, const char *name, int length,
                      const char *text) {
    const char *command = command_name(args);
    switch (o->kind) {
    case OPTION_TEXTS:
        return fail_usage(command, "%.*s takes a text that is not empty, at most %d times",
                          length, name, MAX_LIST);
    case OPTION_BIAS:
        return fail_usage(command, "%.*s wants ID+X or ID-X, at most %d times, not '%s'",
                          length, name, MAX_BIAS, text);
    case OPTION_CHOICE:
        return fail_usage(command, "%.*s wants %s, not '%s'", length, name, o->value, text);
    default:
        return fail_usage(command, "%.*s wants %s from %.16g to %.16g, not '%s'", length, name,
                          o->kind == OPTION_REAL  ? "a number"
                          : o->kind == OPTION_INT ? "a whole number"
                                                  : "whole numbers with commas between",
                          o->low, o->high, text);
    }
}

/* ---- names ---- */

/* Edits (insert, delete, replace) that turn a into b[0..length); names are short. */
static size_t distance(const char *a, const char *b, size_t length) {
    size_t row[64];
    if (length >= sizeof row / sizeof row[0]) return SIZE_MAX;
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[length];
}

/* The option of this command with the name word[0..length), or NULL and the most like name. */
static const option *find_option(command_id command, const char *word, size_t length,
                                 const char **nearest) {
    size_t best = SIZE_MAX;
    *nearest = "--help";
    for (size_t i = 0; i < option_count; i++) {
        if (!(option_table[i].commands >> command & 1)) continue;
        for (size_t k = 0; k < MAX_NAMES && option_table[i].names[k] != NULL; k++) {
            const char *name = option_table[i].names[k];
            size_t edits = distance(name, word, length);
            if (edits == 0) return &option_table[i];
            if (edits >= best) continue;
            best = edits;
            *nearest = name;
        }
    }
    return NULL;
}

static int find_command(const char *word, command_id *command) {
    size_t best = SIZE_MAX;
    const char *nearest = "run";
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t edits = distance(command_table[i].name, word, strlen(word));
        if (edits == 0) {
            *command = (command_id)i;
            return EXIT_DONE;
        }
        if (edits < best) nearest = command_table[i].name;
        if (edits < best) best = edits;
    }
    return fail_usage("", "there is no command '%s'; did you mean '%s'?", word, nearest);
}

/* ---- parsing ---- */

static void set_defaults(arguments *args) {
    for (size_t i = 0; i < option_count; i++) {
        const option *o = &option_table[i];
        if (o->fallback != NULL && (o->commands >> args->command & 1)) store(args, o, o->fallback);
    }
}

/* Handles the option at argv[*at] and moves *at to the last word it used. */
static int parse_option(arguments *args, int argc, char **argv, int *at) {
    const char *word = argv[*at], *command = command_name(args), *nearest;
    size_t length = strcspn(word, "=");
    const option *o = find_option(args->command, word, length, &nearest);
    if (o == NULL)
        return fail_usage(command, "there is no option '%.*s'; did you mean '%s'?", (int)length,
                          word, nearest);
    bool flag = o->kind == OPTION_FLAG || o->kind == OPTION_OFF;
    const char *text = word[length] == '=' ? word + length + 1 : NULL;
    if (flag && text != NULL)
        return fail_usage(command, "%.*s takes no value", (int)length, word);
    if (!flag && text == NULL) {
        if (*at + 1 == argc) return fail_usage(command, "%s wants a value", word);
        text = argv[++*at];
    }
    if (o->given != 0) *(bool *)((char *)args + o->given) = true;
    if (store(args, o, text)) return EXIT_DONE;
    return fail_value(args, o, word, (int)length, text);
}

static int take_positional(arguments *args, const char *word) {
    if (args->n_positional == command_table[args->command].n_positional)
        return fail_usage(command_name(args), "'%s' is one word too many", word);
    args->positional[args->n_positional++] = word;
    return EXIT_DONE;
}

int arguments_parse(arguments *args, int argc, char **argv) {
    memset(args, 0, sizeof *args);
    args->program = argc > 0 ? argv[0] : NULL;
    int first = 1;
    if (argc > 1 && argv[1][0] != '-') {
        int code = find_command(argv[1], &args->command);
        if (code != EXIT_DONE) return code;
        first = 2;
    }
    set_defaults(args);
    bool options = true;
    for (int i = first; i < argc; i++) {
        int code;
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
            continue;
        }
        if (options && argv[i][0] == '-' && argv[i][1] != '\0')
            code = parse_option(args, argc, argv, &i);
        else
            code = take_positional(args, argv[i]);
        if (code != EXIT_DONE) return code;
        if (args->help || args->version) return EXIT_DONE;
    }
    return EXIT_DONE;
}

/* ---- help ---- */

#define HELP_COLUMN 30

static void print_option(buffer *b, const option *o) {
    size_t start = b->size;
    buffer_printf(b, "  %s", o->names[0]);
    if (o->names[1] != NULL) buffer_printf(b, ", %s", o->names[1]);
    if (o->value != NULL) buffer_printf(b, " %s", o->value);
    size_t width = b->size - start;
    if (width > HELP_COLUMN - 2) {
        buffer_text(b, "\n");
        width = 0;
    }
    buffer_printf(b, "%*s%s", (int)(HELP_COLUMN - width), "", o->help);
    if (o->fallback != NULL) buffer_printf(b, " [%s]", o->fallback);
    buffer_text(b, "\n");
}

static int print_help(buffer *b) {
    bool written = out_buffer(b);
    buffer_free(b);
    return written ? EXIT_DONE : OUT_CLOSED;
}

int arguments_help(command_id command) {
    const command_text *text = &command_table[command];
    buffer b = {0};
    buffer_printf(&b, "usage: sunnynet %s%s%s\n%s\n\n", text->name, *text->usage ? " " : "",
                  text->usage, text->summary);
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].commands >> command & 1) print_option(&b, &option_table[i]);
    if (*text->details != '\0') buffer_printf(&b, "\n%s", text->details);
    return print_help(&b);
}

int arguments_help_all(void) {
    buffer b = {0};
    buffer_text(&b, "usage: sunnynet [COMMAND] [options]\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        buffer_printf(&b, "  %-12s%s\n", command_table[i].name, command_table[i].summary);
    buffer_text(&b,
                "\nWithout a command: run. sunnynet COMMAND --help lists the options of one.\n"
                "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C.\n");
    return print_help(&b);
}
