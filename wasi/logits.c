/*
 * logits.c: `sunnynet logits`: the scores themselves, for comparison with other programs and of
 * the ways to compute them (step, prefill, batch) with each other.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "terminal.h"

typedef struct scorer {
    const arguments *args;
    loaded model;
    id_list ids;
    sink out;
    float *rows;
    size_t vocab;
} scorer;

static int read_tokens(scorer *s, const buffer *text) {
    int code = prompt_ids(&s->ids, &s->model, s->args, text, true);
    if (code == EXIT_DONE && s->ids.n == 0)
        code = fail_usage("logits", "there are no tokens: give at least one");
    return code;
}

static int rows_new(scorer *s, size_t rows) {
    s->rows = floats_new(rows, s->vocab);
    return s->rows == NULL ? fail_memory() : EXIT_DONE;
}

/* One call a token. */
static int score_steps(scorer *s, sn_state *state) {
    int code = rows_new(s, 1);
    for (int32_t i = 0; i < s->ids.n && code == EXIT_DONE; i++) {
        if (terminal_interrupted()) return EXIT_INTERRUPTED;
        bool wanted = s->args->all || i + 1 == s->ids.n;
        sn_status status = sn_state_step(state, s->ids.items[i], wanted ? s->rows : NULL);
        if (status != SN_OK) return fail_library(status, NULL);
        if (wanted) code = sink_floats(&s->out, s->rows, s->vocab);
    }
    return code;
}

/* One call for each --chunk tokens. */
static int score_chunks(scorer *s, sn_state *state) {
    int32_t chunk = (int32_t)s->args->chunk;
    int code = rows_new(s, s->args->all ? (size_t)chunk : 1);
    for (int32_t i = 0; i < s->ids.n && code == EXIT_DONE; i += chunk) {
        if (terminal_interrupted()) return EXIT_INTERRUPTED;
        int32_t n = s->ids.n - i < chunk ? s->ids.n - i : chunk;
        bool last = i + n == s->ids.n;
        sn_status status =
            s->args->all ? sn_state_prefill_all(state, s->ids.items + i, n, s->rows)
                         : sn_state_prefill(state, s->ids.items + i, n, last ? s->rows : NULL);
        if (status != SN_OK) return fail_library(status, NULL);
        if (s->args->all)
            code = sink_floats(&s->out, s->rows, (size_t)n * s->vocab);
        else if (last)
            code = sink_floats(&s->out, s->rows, s->vocab);
    }
    return code;
}

/* ---- batch ---- */

typedef struct batch_run {
    sn_batch *batch;
    sn_state **states; /* [n] */
    int32_t *tokens;   /* [n], of one tick */
    float *ends;       /* [n][vocab]: each state's scores after its last token */
    int32_t n;
} batch_run;

/*
 * State i starts i tokens late: at `tick` it takes token tick - i, so the states of a batch stand
 * at different places. These are states first..first+count-1.
 */
static int batch_tick(scorer *s, batch_run *r, int32_t tick) {
    int32_t first = tick < s->ids.n ? 0 : tick - s->ids.n + 1;
    int32_t count = (tick < r->n - 1 ? tick : r->n - 1) - first + 1;
    for (int32_t k = 0; k < count; k++) r->tokens[k] = s->ids.items[tick - first - k];
    sn_status status = sn_batch_step(r->batch, r->states + first, r->tokens, count, s->rows);
    if (status != SN_OK) return fail_library(status, NULL);
    if (tick - first == s->ids.n - 1)
        memcpy(r->ends + (size_t)first * s->vocab, s->rows, s->vocab * sizeof(float));
    bool wanted = s->args->all ? tick < s->ids.n : tick == s->ids.n - 1;
    return wanted ? sink_floats(&s->out, s->rows, s->vocab) : EXIT_DONE;
}

static int compare_ends(const scorer *s, const batch_run *r) {
    for (int32_t i = 1; i < r->n; i++) {
        double difference;
        sn_status status = sn_state_compare(r->states[0], r->states[i], &difference);
        if (status != SN_OK) return fail_library(status, NULL);
        if (difference != 0)
            return fail("batch: state %d ended %g away from state 0", (int)i, difference);
        if (memcmp(r->ends, r->ends + (size_t)i * s->vocab, s->vocab * sizeof(float)) != 0)
            return fail("batch: state %d ended with other scores than state 0", (int)i);
    }
    return EXIT_DONE;
}

static int batch_new(scorer *s, batch_run *r) {
    size_t n = (size_t)r->n;
    r->states = calloc(n, sizeof *r->states);
    r->tokens = calloc(n, sizeof *r->tokens);
    r->ends = floats_new(n, s->vocab);
    if (r->states == NULL || r->tokens == NULL || r->ends == NULL) return fail_memory();
    sn_status status = sn_batch_new(s->model.model, r->n, &r->batch);
    for (int32_t i = 0; i < r->n && status == SN_OK; i++)
        status = sn_state_new(s->model.model, &r->states[i]);
    return status == SN_OK ? rows_new(s, n) : fail_library(status, s->model.path.data);
}

static int score_batch(scorer *s) {
    batch_run r = {.n = (int32_t)s->args->batch};
    int code = batch_new(s, &r);
    for (int32_t tick = 0; tick < s->ids.n + r.n - 1 && code == EXIT_DONE; tick++)
        code = terminal_interrupted() ? EXIT_INTERRUPTED : batch_tick(s, &r, tick);
    if (code == EXIT_DONE) code = compare_ends(s, &r);
    for (int32_t i = 0; i < r.n && r.states != NULL; i++) sn_state_free(r.states[i]);
    sn_batch_free(r.batch);
    free(r.states);
    free(r.tokens);
    free(r.ends);
    return code;
}

/* ---- the command ---- */

static int score_one(scorer *s) {
    sn_state *state;
    sn_status status = sn_state_new(s->model.model, &state);
    if (status != SN_OK) return fail_library(status, s->model.path.data);
    int code = s->args->mode == MODE_STEP ? score_steps(s, state) : score_chunks(s, state);
    sn_state_free(state);
    return code;
}

static int score(scorer *s) {
    int code = sink_open(&s->out, s->args->output);
    if (code != EXIT_DONE) return code;
    s->vocab = (size_t)s->model.info.vocab;
    double start = terminal_seconds();
    code = s->args->mode == MODE_BATCH ? score_batch(s) : score_one(s);
    double seconds = terminal_seconds() - start;
    code = sink_close(&s->out, code);
    if (code != EXIT_DONE || !s->args->stats) return code;
    fprintf(stderr, "back end    %s, threads %d\ntokens      %d, %.3f s\n",
            s->model.info.backend, (int)s->model.info.n_threads, (int)s->ids.n, seconds);
    return run_show(&s->model);
}

int command_logits(const arguments *args) {
    scorer s;
    memset(&s, 0, sizeof s);
    s.args = args;
    buffer text = {0};
    bool given;
    int code = prompt_read(args, &text, &given);
    if (code == EXIT_DONE && given == (args->tokens != NULL))
        code = fail_usage("logits", "give one of -p TEXT, -f FILE and --tokens IDS");
    if (code == EXIT_DONE) code = model_open(&s.model, args, (int32_t)args->threads, false);
    if (code == EXIT_DONE) code = read_tokens(&s, &text);
    if (code == EXIT_DONE) code = score(&s);
    free(s.rows);
    ids_free(&s.ids);
    buffer_free(&text);
    model_close(&s.model);
    return code;
}
