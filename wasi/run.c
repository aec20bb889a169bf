/* run.c: `sunnynet run`: goes on with a prompt. */
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "terminal.h"

/* What plain `sunnynet` tells. */
static const char opening[] = "Once upon a time";

typedef struct runner {
    const arguments *args;
    loaded model;
    sn_state *state;
    sn_sampler *sampler;
    float *logits;
    buffer prompt, stop_texts[MAX_LIST], line;
    id_list ids;
    bool given; /* false: the opening stands in for a prompt */
    int64_t seed; /* -1: from the state file */
    double prompt_seconds;
    generation g;
} runner;

/* Everything that can be wrong with the command line, before a large model is read. */
static int check_usage(runner *r) {
    const arguments *args = r->args;
    int code = prompt_read(args, &r->prompt, &r->given);
    if (code != EXIT_DONE) return code;
    bool text = r->given;
    r->given = text || args->tokens != NULL;
    if (args->state_load != NULL && (!r->given || (text && r->prompt.size == 0)))
        return fail_usage("run", "--state-load needs a prompt to go on with: give -p TEXT");
    if (args->model != NULL && !r->given)
        return fail_usage("run", "a prompt is missing: give -p TEXT, -f FILE or --tokens IDS");
    if (args->context_given) note("--ctx-size has no meaning here: the state does not grow");

    bool typed = args->prompt != NULL && strcmp(args->prompt, "-") != 0;
    if (typed && args->escape) unescape(&r->prompt);
    if (!typed && r->prompt.size > 0 && r->prompt.data[r->prompt.size - 1] == '\n')
        r->prompt.size--;
    if (!r->given) buffer_text(&r->prompt, opening);
    return r->prompt.failed ? fail_memory() : EXIT_DONE;
}

static int set_stops(runner *r, const char **stops) {
    const text_list *given = &r->args->stops;
    for (int32_t i = 0; i < given->n; i++) {
        buffer_text(&r->stop_texts[i], given->items[i]);
        if (r->args->escape) unescape(&r->stop_texts[i]);
        stops[i] = buffer_string(&r->stop_texts[i]);
        if (r->stop_texts[i].failed) return fail_memory();
        if (strlen(stops[i]) != r->stop_texts[i].size)
            return fail_usage("run", "--stop cannot hold a NUL");
    }
    return EXIT_DONE;
}

/* The opening stands at the beginning of a text, whatever the file says. */
static int encode_prompt(runner *r) {
    const loaded *m = &r->model;
    int32_t bos = sn_tokenizer_bos(m->tokenizer);
    int code = EXIT_DONE;
    if (r->args->stops.n > 0) code = model_need_tokenizer(m);
    if (code == EXIT_DONE && !r->given && bos >= 0 && !r->args->bos && !r->args->no_bos)
        code = ids_push(&r->ids, bos);
    if (code == EXIT_DONE)
        code = prompt_ids(&r->ids, m, r->args, &r->prompt,
                          r->given && r->args->state_load == NULL);
    if (code == EXIT_DONE && r->ids.n == 0)
        code = fail_usage("run", "the prompt is empty: give at least one token, or --bos");
    return code;
}

static int read_prompt(runner *r) {
    sn_status status = sn_state_new(r->model.model, &r->state);
    if (status != SN_OK) return fail_library(status, r->model.path.data);
    int code = sampler_open(&r->sampler, r->args, &r->model, &r->seed);
    if (code == EXIT_DONE && r->args->state_load != NULL)
        code = state_load(r->state, r->sampler, r->args);
    if (code != EXIT_DONE) return code;
    r->logits = floats_new(1, (size_t)r->model.info.vocab);
    if (r->logits == NULL) return fail_memory();

    double start = terminal_seconds();
    code = state_feed(r->state, r->ids.items, r->ids.n, r->logits);
    r->prompt_seconds = terminal_seconds() - start;
    for (int32_t i = 0; i < r->ids.n && code == EXIT_DONE; i++) {
        status = sn_sampler_accept(r->sampler, r->ids.items[i]);
        if (status != SN_OK) code = fail_library(status, NULL);
    }
    return code;
}

/* Without a tokenizer: ids with spaces between. */
static int show_id(runner *r, int32_t id) {
    buffer_printf(&r->line, "%s%d", r->g.tokens > 1 ? " " : "", (int)id);
    return out_buffer(&r->line) ? EXIT_DONE : OUT_CLOSED;
}

static int show_token(void *user, int32_t id, const char *text, size_t bytes) {
    runner *r = user;
    if (!r->args->json && text == NULL) return show_id(r, id);
    if (!r->args->json)
        return bytes == 0 || out_write(text, bytes) ? EXIT_DONE : OUT_CLOSED;
    buffer *b = &r->line;
    buffer_text(b, "{\"id\":");
    if (id < 0)
        buffer_text(b, "null");
    else
        json_number(b, id);
    json_name(b, "text");
    if (text == NULL)
        buffer_text(b, "null");
    else
        json_string(b, text, bytes);
    buffer_text(b, "}\n");
    return out_buffer(b) ? EXIT_DONE : OUT_CLOSED;
}

static int generate_answer(runner *r) {
    const char *stops[MAX_LIST];
    int code = set_stops(r, stops);
    if (code != EXIT_DONE) return code;
    if (!r->given && !r->args->json && !out_write(opening, strlen(opening))) return OUT_CLOSED;
    r->g = (generation){
        .state = r->state,
        .sampler = r->sampler,
        .tokenizer = r->model.tokenizer,
        .logits = r->logits,
        .stops = stops,
        .n_stops = r->args->stops.n,
        .end_ids = {sn_tokenizer_eos(r->model.tokenizer), -1, -1},
        .limit = r->args->predict,
        .token = show_token,
        .user = r,
    };
    return generate(&r->g);
}

/* The saved state has seen the last token too, so that any prompt can follow it. */
static int save(runner *r) {
    if (r->args->state_save == NULL) return EXIT_DONE;
    if (r->g.pending >= 0) {
        sn_status status = sn_state_step(r->state, r->g.pending, NULL);
        if (status != SN_OK) return fail_library(status, r->model.path.data);
    }
    return state_save(r->state, r->sampler, r->args->state_save);
}

static bool show_end(runner *r) {
    bool line = terminal_is(stdout) || r->model.tokenizer == NULL;
    if (!r->args->json) return !line || out_write("\n", 1);
    buffer *b = &r->line;
    buffer_text(b, "{\"done\":true");
    json_pair_text(b, "reason", end_reason_name(r->g.reason));
    json_pair(b, "prompt_tokens", r->ids.n);
    json_pair(b, "tokens", (double)r->g.tokens);
    json_name(b, "seed");
    if (r->seed < 0)
        buffer_text(b, "null");
    else
        json_number(b, (double)r->seed);
    buffer_text(b, "}\n");
    return out_buffer(b);
}

static void show_rate(const char *what, int64_t n, double seconds) {
    fprintf(stderr, "%-11s %lld tokens, %.3f s, %.1f tokens/s\n", what, (long long)n, seconds,
            seconds > 0 ? (double)n / seconds : 0);
}

static int show_stats(const runner *r) {
    const sn_model_info *info = &r->model.info;
    if (r->seed < 0)
        fprintf(stderr, "seed        of the state file\n");
    else
        fprintf(stderr, "seed        %lld\n", (long long)r->seed);
    fprintf(stderr, "back end    %s, threads %d\n", info->backend, (int)info->n_threads);
    int code = run_show(&r->model);
    fprintf(stderr, "load        %.3f s\n", r->model.seconds);
    show_rate("prompt", r->ids.n, r->prompt_seconds);
    show_rate("generated", r->g.tokens, r->g.seconds);
    fprintf(stderr, "state       %.0f bytes\n", info->state_bytes);
    return code;
}

static int run(runner *r) {
    int code = check_usage(r);
    if (code == EXIT_DONE)
        code = model_open(&r->model, r->args, (int32_t)r->args->threads, false);
    if (code == EXIT_DONE) code = encode_prompt(r);
    if (code == EXIT_DONE) code = read_prompt(r);
    if (code == EXIT_DONE) code = generate_answer(r);
    if (code == EXIT_DONE && !show_end(r)) code = OUT_CLOSED;
    if (code == EXIT_DONE) code = save(r);
    if (code == EXIT_DONE && r->args->stats) code = show_stats(r);
    if (code == EXIT_DONE && r->g.reason == END_INTERRUPTED) code = EXIT_INTERRUPTED;
    return code;
}

int command_run(const arguments *args) {
    runner r;
    memset(&r, 0, sizeof r);
    r.args = args;
    int code = run(&r);
    free(r.logits);
    sn_sampler_free(r.sampler);
    sn_state_free(r.state);
    model_close(&r.model);
    ids_free(&r.ids);
    buffer_free(&r.prompt);
    buffer_free(&r.line);
    for (int i = 0; i < MAX_LIST; i++) buffer_free(&r.stop_texts[i]);
    return code;
}
