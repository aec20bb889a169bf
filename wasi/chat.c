/*
 * chat.c: `sunnynet chat`: one line a turn, the state goes from turn to turn.
 *
 * The text that the state sees, whatever was typed or generated (format of the RWKV models):
 *
 *   System: text\n\n User: text\n\n Assistant: answer\n\n User: ...     (without the spaces)
 *
 * "\n\n" ends a message, so a message holds none: it is trimmed, and newlines in a row become one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "terminal.h"

/* "\n\nUser:" needs no place here: it begins with "\n\n". */
static const char *const stops[] = {"\n\n", "\nUser:"};
#define N_STOPS 2

typedef struct chat {
    const arguments *args;
    loaded model;
    sn_state *state, *before;      /* before: at the start of the last turn; NULL: none to undo */
    sn_sampler *sampler, *sampler_before;
    float *logits;
    buffer line;    /* as typed */
    buffer message; /* of the last turn */
    buffer text;    /* being fed */
    buffer answer;  /* bytes of the generated tokens */
    size_t seen;    /* of these, bytes that the state has seen */
    id_list ids;
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

/* Appends a message: trimmed, CRLF and CR as LF, newlines in a row as one. */
static void append_message(buffer *to, const char *text, size_t bytes) {
    size_t start = to->size;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '\r' && i + 1 < bytes && text[i + 1] == '\n') continue;
        if (c == '\r') c = '\n';
        if (to->size == start && is_space(c)) continue;
        if (c == '\n' && to->data[to->size - 1] == '\n') continue;
        buffer_append(to, &c, 1);
        if (to->failed) return;
    }
    while (to->size > start && is_space(to->data[to->size - 1])) to->size--;
}

/* Feeds c->text; logits may be NULL. The sampler learns nothing of it. */
static int feed_state(chat *c, float *logits) {
    if (c->text.failed) return fail_memory();
    c->ids.n = 0;
    int code = ids_encode(&c->ids, c->model.tokenizer, c->text.data, c->text.size);
    return code == EXIT_DONE ? state_feed(c->state, c->ids.items, c->ids.n, logits) : code;
}

static int feed_text(chat *c, float *logits) {
    int code = feed_state(c, logits);
    for (int32_t i = 0; i < c->ids.n && code == EXIT_DONE; i++) {
        sn_status status = sn_sampler_accept(c->sampler, c->ids.items[i]);
        if (status != SN_OK) code = fail_library(status, NULL);
    }
    return code;
}

static int feed_system(chat *c) {
    if (c->args->system == NULL) return EXIT_DONE;
    buffer_clear(&c->text);
    buffer_text(&c->text, "System: ");
    append_message(&c->text, c->args->system, strlen(c->args->system));
    buffer_text(&c->text, "\n\n");
    return feed_text(c, NULL);
}

static void set_question(chat *c) {
    buffer_clear(&c->text);
    buffer_text(&c->text, "User: ");
    buffer_append(&c->text, c->message.data, c->message.size);
    buffer_text(&c->text, "\n\nAssistant:");
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

/* What of the answer belongs into the format: up to the first stop, without white space behind. */
static size_t answer_length(const chat *c) {
    const char *a = c->answer.data;
    size_t length = c->answer.size;
    for (size_t i = 0; i < length; i++)
        for (int k = 0; k < N_STOPS && i < length; k++) {
            size_t stop = strlen(stops[k]);
            if (length - i >= stop && memcmp(a + i, stops[k], stop) == 0) length = i;
        }
    while (length > 0 && is_space(a[length - 1])) length--;
    return length;
}

/* How many bytes of "answer\n\n" the state has seen; SIZE_MAX if it has seen something else. */
static size_t seen_of_turn(const chat *c, size_t length) {
    if (c->seen > length + 2) return SIZE_MAX;
    for (size_t i = length; i < c->seen; i++)
        if (c->answer.data[i] != '\n') return SIZE_MAX;
    return c->seen;
}

/*
 * Makes the state see "answer\n\n" and nothing else. Usually it has seen a beginning of that and
 * gets the rest. Where it has seen more (half a stop text, white space), it reads the turn again
 * from the snapshot; the sampler has noted these tokens already.
 */
static int close_turn(chat *c) {
    if (c->g.pending < 0) c->seen = c->answer.size;
    size_t length = answer_length(c), seen = seen_of_turn(c, length);
    buffer_clear(&c->text);
    if (seen == SIZE_MAX) {
        int code = restore_state(c);
        if (code != EXIT_DONE) return code;
        set_question(c);
        seen = 0;
    }
    if (seen < length) buffer_append(&c->text, c->answer.data + seen, length - seen);
    buffer_append(&c->text, "\n\n", seen > length ? length + 2 - seen : 2);
    return feed_state(c, NULL);
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
    const sn_tokenizer *tokenizer = c->model.tokenizer;
    set_question(c);
    double start = terminal_seconds();
    int code = feed_text(c, c->logits);
    double seconds = terminal_seconds() - start;
    int32_t read = c->ids.n;
    if (code == EXIT_DONE) code = skip_draws(c);
    if (code != EXIT_DONE) return code;

    buffer_clear(&c->answer);
    c->seen = 0;
    c->blank = true;
    c->g = (generation){
        .state = c->state,
        .sampler = c->sampler,
        .tokenizer = tokenizer,
        .logits = c->logits,
        .stops = stops,
        .n_stops = N_STOPS,
        .end_ids = {sn_tokenizer_eos(tokenizer), sn_tokenizer_eot(tokenizer)},
        .limit = c->args->predict,
        .token = show_token,
        .user = c,
    };
    code = generate(&c->g);
    if (code == EXIT_DONE && !out_write("\n", 1)) code = OUT_CLOSED;
    if (code != EXIT_DONE) return code;
    if (c->g.reason == END_INTERRUPTED && !c->keyboard) return EXIT_INTERRUPTED;
    if (c->g.reason == END_INTERRUPTED) terminal_clear_interrupt();
    code = close_turn(c);
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
    append_message(&c->text, c->line.data, c->line.size);
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

static int start(chat *c) {
    const arguments *args = c->args;
    if (args->system != NULL && args->state_load != NULL)
        return fail_usage("chat", "--system and --state-load exclude each other");
    if (args->context_given) note("--ctx-size has no meaning here: the state does not grow");
    int code = model_open(&c->model, args, (int32_t)args->threads, false);
    if (code == EXIT_DONE) code = model_need_tokenizer(&c->model);
    if (code == EXIT_DONE) code = sampler_open(&c->sampler, args, &c->model, &c->seed);
    if (code != EXIT_DONE) return code;
    sn_status status = sn_state_new(c->model.model, &c->state);
    if (status != SN_OK) return fail_library(status, c->model.path.data);
    c->logits = floats_new(1, (size_t)c->model.info.vocab);
    if (c->logits == NULL) return fail_memory();
    c->keyboard = terminal_is(stdin);
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
    buffer_free(&c.answer);
    return code;
}
