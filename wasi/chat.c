/*
 * chat.c: `sunnynet chat`: one line a turn, the state goes from turn to turn.
 *
 * The state sees the turns as the model's chat format writes them (sn_chat_format), whatever was
 * typed or generated. Where an empty line ends a message, a message holds none: it is trimmed,
 * and newlines in a row become one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "terminal.h"

/* What the state has seen of the chat. */
typedef enum stage {
    STAGE_EMPTY,  /* nothing */
    STAGE_SYSTEM, /* the system message; the first turn comes next */
    STAGE_OPENED, /* the system message, and the first turn is open before it */
    STAGE_TURNS
} stage;

typedef struct chat {
    const arguments *args;
    loaded model;
    sn_chat_format format;
    const char *stops[SN_CHAT_STOPS];
    sn_state *state, *before;      /* before: at the start of the last turn; NULL: none to undo */
    sn_sampler *sampler, *sampler_before;
    stage stage, stage_before;
    float *logits;
    buffer line;    /* as typed */
    buffer message; /* of the last turn */
    buffer text;    /* a message being fed */
    buffer opening; /* the format's text before it */
    buffer answer;  /* bytes of the generated tokens */
    size_t seen;    /* of these, bytes that the state has seen */
    id_list ids;    /* of what is being fed */
    int64_t seed;
    int32_t refused; /* answers to the last message that /regen threw away */
    bool keyboard;
    bool blank; /* nothing of the answer is on the screen yet: drop its leading space */
    bool quit;
    generation g;
} chat;

/* ---- messages ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n';
}

/* Appends a message: trimmed, CRLF and CR as LF, newlines in a row as one where the format needs
 * it. */
static void append_message(const chat *c, buffer *to, const char *text, size_t bytes) {
    size_t start = to->size;
    for (size_t i = 0; i < bytes; i++) {
        char one = text[i];
        if (one == '\r' && i + 1 < bytes && text[i + 1] == '\n') continue;
        if (one == '\r') one = '\n';
        if (to->size == start && is_space(one)) continue;
        bool again = one == '\n' && to->data[to->size - 1] == '\n';
        if (again && c->format.one_paragraph) continue;
        buffer_append(to, &one, 1);
        if (to->failed) return;
    }
    while (to->size > start && is_space(to->data[to->size - 1])) to->size--;
}

/* Feeds c->ids; logits may be NULL. */
static int feed_ids(chat *c, float *logits) {
    return state_feed(c->state, c->ids.items, c->ids.n, logits);
}

/* The sampler, too, learns what was fed. */
static int accept_ids(chat *c) {
    for (int32_t i = 0; i < c->ids.n; i++) {
        sn_status status = sn_sampler_accept(c->sampler, c->ids.items[i]);
        if (status != SN_OK) return fail_library(status, NULL);
    }
    return EXIT_DONE;
}

/* c->ids becomes: the opening, c->text, `after`. */
static int encode_text(chat *c, const char *after) {
    const char *before = buffer_string(&c->opening);
    if (c->text.failed || c->opening.failed) return fail_memory();
    c->ids.n = 0;
    return ids_encode_chat(&c->ids, c->model.tokenizer, before, c->text.data, c->text.size, after);
}

static int feed_system(chat *c) {
    const sn_chat_format *f = &c->format;
    c->stage = STAGE_EMPTY;
    if (c->args->system == NULL) return EXIT_DONE;
    c->stage = f->system_inside ? STAGE_OPENED : STAGE_SYSTEM;
    buffer_clear(&c->opening);
    buffer_text(&c->opening, f->start);
    if (f->system_inside) buffer_text(&c->opening, f->user_prefix);
    buffer_text(&c->opening, f->system_prefix);
    buffer_clear(&c->text);
    append_message(c, &c->text, c->args->system, strlen(c->args->system));
    int code = encode_text(c, f->system_suffix);
    if (code == EXIT_DONE) code = feed_ids(c, NULL);
    return code == EXIT_DONE ? accept_ids(c) : code;
}

/* c->ids becomes the question, up to where the answer begins. */
static int encode_question(chat *c) {
    const sn_chat_format *f = &c->format;
    char after[2 * SN_CHAT_TEXT];
    snprintf(after, sizeof after, "%s%s", f->user_suffix, f->assistant_prefix);
    buffer_clear(&c->opening);
    if (c->stage == STAGE_EMPTY) buffer_text(&c->opening, f->start);
    if (c->stage != STAGE_OPENED) buffer_text(&c->opening, f->user_prefix);
    buffer_clear(&c->text);
    buffer_append(&c->text, c->message.data, c->message.size);
    return encode_text(c, after);
}

/* ---- snapshots ---- */

static void drop_snapshot(chat *c) {
    sn_state_free(c->before);
    sn_sampler_free(c->sampler_before);
    c->before = NULL;
    c->sampler_before = NULL;
}

static int take_snapshot(chat *c) {
    drop_snapshot(c);
    c->stage_before = c->stage;
    sn_status status = sn_state_clone(c->state, &c->before);
    if (status == SN_OK) status = sn_sampler_clone(c->sampler, &c->sampler_before);
    return status == SN_OK ? EXIT_DONE : fail_library(status, NULL);
}

/* Back to the snapshot, which stays for another time. */
static int restore_state(chat *c) {
    sn_state *state;
    sn_status status = sn_state_clone(c->before, &state);
    if (status != SN_OK) return fail_library(status, NULL);
    sn_state_free(c->state);
    c->state = state;
    c->stage = c->stage_before;
    return EXIT_DONE;
}

static int restore_snapshot(chat *c) {
    sn_sampler *sampler;
    sn_status status = sn_sampler_clone(c->sampler_before, &sampler);
    if (status != SN_OK) return fail_library(status, NULL);
    sn_sampler_free(c->sampler);
    c->sampler = sampler;
    return restore_state(c);
}

/* ---- one turn ---- */

static int show_token(void *user, int32_t id, const char *text, size_t bytes) {
    chat *c = user;
    if (id >= 0) {
        c->seen = c->answer.size;
        int code = id_bytes(c->model.tokenizer, id, &c->answer);
        if (code != EXIT_DONE) return code;
        if (c->answer.failed) return fail_memory();
    }
    while (c->blank && bytes > 0 && is_space(*text)) text++, bytes--;
    if (bytes > 0) c->blank = false;
    return bytes == 0 || out_write(text, bytes) ? EXIT_DONE : OUT_CLOSED;
}

/* What of the answer belongs into the format: up to the first stop. */
static size_t answer_length(const chat *c) {
    const char *a = c->answer.data;
    size_t length = c->answer.size;
    for (size_t i = 0; i < length; i++)
        for (int32_t k = 0; k < c->format.n_stops && i < length; k++) {
            size_t stop = strlen(c->stops[k]);
            if (length - i >= stop && memcmp(a + i, c->stops[k], stop) == 0) length = i;
        }
    while (c->format.trims && length > 0 && is_space(a[length - 1])) length--;
    return length;
}

/* Its end is a token, not text. */
static bool closes_with_control(const chat *c) {
    return c->format.end_ids[SN_CHAT_ENDS - 1] >= 0;
}

/* How many bytes of the answer and its suffix the state has seen; SIZE_MAX if it has seen something
 * else, which a control token in the suffix is, too: nobody can have written that out. */
static size_t seen_of_turn(const chat *c, size_t length) {
    const char *suffix = c->format.assistant_suffix;
    if (c->seen <= length) return c->seen;
    size_t more = c->seen - length;
    if (closes_with_control(c) || more > strlen(suffix)) return SIZE_MAX;
    return memcmp(c->answer.data + length, suffix, more) == 0 ? c->seen : SIZE_MAX;
}

/* From the snapshot: the question, then the first `length` bytes of the answer and its suffix. A
 * turn without control tokens is one text. */
static int read_again(chat *c, size_t length) {
    const sn_chat_format *f = &c->format;
    int code = restore_state(c);
    if (code == EXIT_DONE) code = encode_question(c);
    if (code != EXIT_DONE) return code;
    if (closes_with_control(c)) {
        code = feed_ids(c, NULL);
        buffer_clear(&c->text);
        buffer_clear(&c->opening);
    } else {
        buffer_text(&c->text, f->user_suffix);
        buffer_text(&c->text, f->assistant_prefix);
    }
    buffer_append(&c->text, c->answer.data, length);
    if (code == EXIT_DONE) code = encode_text(c, f->assistant_suffix);
    return code == EXIT_DONE ? feed_ids(c, NULL) : code;
}

/*
 * Makes the state see the answer, its suffix and nothing else. Usually it has seen a beginning of
 * that and gets the rest. Where it has seen more (half a stop text, white space), it reads the
 * turn again from the snapshot; the sampler has noted these tokens already.
 */
static int close_turn(chat *c) {
    if (c->g.pending < 0) c->seen = c->answer.size;
    size_t length = answer_length(c), seen = seen_of_turn(c, length);
    buffer_clear(&c->text);
    buffer_clear(&c->opening);
    const char *suffix = c->format.assistant_suffix;
    if (seen == SIZE_MAX) return read_again(c, length);
    if (seen < length) buffer_append(&c->text, c->answer.data + seen, length - seen);
    int code = encode_text(c, seen > length ? suffix + (seen - length) : suffix);
    return code == EXIT_DONE ? feed_ids(c, NULL) : code;
}

/* Other random numbers than those of the answers that were refused. */
static int skip_draws(chat *c) {
    for (int32_t i = 0; i < c->refused; i++) {
        int32_t id;
        sn_status status = sn_sampler_sample(c->sampler, c->logits, &id);
        if (status != SN_OK) return fail_library(status, NULL);
    }
    return EXIT_DONE;
}

static void show_stats(const chat *c, int32_t read, double seconds) {
    fprintf(stderr, "seed %lld, back end %s, threads %d; read %d tokens, %.1f tokens/s; ",
            (long long)c->seed, c->model.info.backend, (int)c->model.info.n_threads,
            (int)read, seconds > 0 ? read / seconds : 0);
    fprintf(stderr, "wrote %lld, %.1f tokens/s; position %.0f\n", (long long)c->g.tokens,
            c->g.seconds > 0 ? (double)c->g.tokens / c->g.seconds : 0,
            sn_state_position(c->state));
}

static int answer_message(chat *c) {
    int code = encode_question(c);
    if (code != EXIT_DONE) return code;
    double start = terminal_seconds();
    code = feed_ids(c, c->logits);
    double seconds = terminal_seconds() - start;
    int32_t read = c->ids.n;
    if (code == EXIT_DONE) code = accept_ids(c);
    if (code == EXIT_DONE) code = skip_draws(c);
    if (code != EXIT_DONE) return code;

    buffer_clear(&c->answer);
    c->seen = 0;
    c->blank = true;
    c->g = (generation){
        .state = c->state,
        .sampler = c->sampler,
        .tokenizer = c->model.tokenizer,
        .logits = c->logits,
        .stops = c->stops,
        .n_stops = c->format.n_stops,
        .limit = c->args->predict,
        .token = show_token,
        .user = c,
    };
    memcpy(c->g.end_ids, c->format.end_ids, sizeof c->g.end_ids);
    code = generate(&c->g);
    if (code == EXIT_DONE && !out_write("\n", 1)) code = OUT_CLOSED;
    if (code != EXIT_DONE) return code;
    if (c->g.reason == END_INTERRUPTED && !c->keyboard) return EXIT_INTERRUPTED;
    if (c->g.reason == END_INTERRUPTED) terminal_clear_interrupt();
    code = close_turn(c);
    c->stage = STAGE_TURNS;
    if (code == EXIT_DONE && c->args->stats) show_stats(c, read, seconds);
    return code;
}

/* ---- commands ---- */

static int start_afresh(chat *c) {
    drop_snapshot(c);
    c->message.size = 0;
    sn_status status = sn_state_reset(c->state);
    if (status == SN_OK) status = sn_sampler_reset(c->sampler);
    return status == SN_OK ? feed_system(c) : fail_library(status, NULL);
}

static int undo(chat *c) {
    if (c->before == NULL) {
        fprintf(stderr, "there is no turn to take back\n");
        return EXIT_DONE;
    }
    int code = restore_snapshot(c);
    drop_snapshot(c);
    return code;
}

static int answer_again(chat *c) {
    if (c->before == NULL) {
        fprintf(stderr, "there is no turn to answer anew\n");
        return EXIT_DONE;
    }
    c->refused++;
    int code = restore_snapshot(c);
    return code == EXIT_DONE ? answer_message(c) : code;
}

static int slash_command(chat *c, const char *word) {
    c->quit = strcmp(word, "/exit") == 0;
    if (c->quit) return EXIT_DONE;
    if (strcmp(word, "/reset") == 0) return start_afresh(c);
    if (strcmp(word, "/undo") == 0) return undo(c);
    if (strcmp(word, "/regen") == 0) return answer_again(c);
    if (strcmp(word, "/help") != 0) fprintf(stderr, "there is no command %s\n", word);
    fprintf(stderr, "/undo    take the last turn back\n"
                    "/regen   answer the last message anew\n"
                    "/reset   begin afresh\n"
                    "/exit    end the chat (so does the end of the input)\n");
    return EXIT_DONE;
}

/* A line that is one word with a slash before it is a command; every other one is a message. */
static int take_line(chat *c) {
    buffer_clear(&c->text);
    append_message(c, &c->text, c->line.data, c->line.size);
    if (c->text.failed) return fail_memory();
    if (c->text.size == 0) return EXIT_DONE;
    if (c->text.data[0] == '/' && memchr(c->text.data, ' ', c->text.size) == NULL)
        return slash_command(c, buffer_string(&c->text));

    buffer_clear(&c->message);
    buffer_append(&c->message, c->text.data, c->text.size);
    c->refused = 0;
    int code = take_snapshot(c);
    return code == EXIT_DONE ? answer_message(c) : code;
}

/* One line of stdin without its newline; *more false at the end. */
static int read_line(chat *c, bool *more) {
    buffer_clear(&c->line);
    if (c->keyboard) fputs("> ", stderr);
    terminal_break_reads(true);
    int byte = getc(stdin);
    *more = byte != EOF;
    for (; byte != EOF && byte != '\n'; byte = getc(stdin)) {
        char one = (char)byte;
        buffer_append(&c->line, &one, 1);
    }
    terminal_break_reads(false);
    if (c->keyboard && byte == EOF) fputs("\n", stderr);
    if (terminal_interrupted()) return EXIT_INTERRUPTED;
    if (ferror(stdin)) return fail("stdin: cannot be read");
    return c->line.failed ? fail_memory() : EXIT_DONE;
}

static int talk(chat *c) {
    for (;;) {
        bool more;
        int code = read_line(c, &more);
        if (code != EXIT_DONE || !more) return code;
        code = take_line(c);
        if (code != EXIT_DONE || c->quit) return code;
    }
}

/* Before a model is read. */
static int check_usage(const arguments *args) {
    if (args->system != NULL && args->state_load != NULL)
        return fail_usage("chat", "--system and --state-load exclude each other");
    if (args->context_given) note("--ctx-size has no meaning here: the state does not grow");
    if (args->chat_format == NULL) return EXIT_DONE;
    sn_chat_format format = {.struct_size = sizeof format};
    if (sn_chat_named(args->chat_format, NULL, &format) == SN_OK) return EXIT_DONE;
    return fail_usage("chat", "%s", sn_last_error());
}

static int choose_format(chat *c) {
    const char *name = c->args->chat_format, *path = c->model.path.data;
    sn_chat_format *f = &c->format;
    f->struct_size = sizeof *f;
    sn_status status = name != NULL ? sn_chat_named(name, c->model.tokenizer, f)
                                    : sn_model_chat(c->model.model, c->model.tokenizer, f);
    if (status == SN_E_UNSUPPORTED && name == NULL)
        return fail("%s: %s; --chat-format NAME chooses one", path, sn_last_error());
    if (status != SN_OK) return fail_library(status, path);
    if (c->args->system != NULL && !f->has_system)
        return fail("%s: the chat format %s has no system messages", path, f->name);
    for (int32_t i = 0; i < f->n_stops; i++) c->stops[i] = f->stops[i];
    return EXIT_DONE;
}

static int start(chat *c) {
    const arguments *args = c->args;
    int code = check_usage(args);
    if (code == EXIT_DONE)
        code = model_open(&c->model, args, (int32_t)args->threads, false);
    if (code == EXIT_DONE) code = model_need_tokenizer(&c->model);
    if (code == EXIT_DONE) code = choose_format(c);
    if (code == EXIT_DONE && args->stats) code = run_show(&c->model);
    if (code == EXIT_DONE) code = sampler_open(&c->sampler, args, &c->model, &c->seed);
    if (code != EXIT_DONE) return code;
    sn_status status = sn_state_new(c->model.model, &c->state);
    if (status != SN_OK) return fail_library(status, c->model.path.data);
    c->logits = floats_new(1, (size_t)c->model.info.vocab);
    if (c->logits == NULL) return fail_memory();
    c->keyboard = terminal_is(stdin);
    c->stage = STAGE_TURNS;
    if (args->state_load != NULL) return state_load(c->state, c->sampler, args);
    return feed_system(c);
}

int command_chat(const arguments *args) {
    chat c;
    memset(&c, 0, sizeof c);
    c.args = args;
    int code = start(&c);
    if (code == EXIT_DONE) code = talk(&c);
    if (code == EXIT_DONE && args->state_save != NULL)
        code = state_save(c.state, c.sampler, args->state_save);
    drop_snapshot(&c);
    free(c.logits);
    sn_sampler_free(c.sampler);
    sn_state_free(c.state);
    model_close(&c.model);
    ids_free(&c.ids);
    buffer_free(&c.line);
    buffer_free(&c.message);
    buffer_free(&c.text);
    buffer_free(&c.opening);
    buffer_free(&c.answer);
    return code;
}
