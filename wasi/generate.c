/* generate.c: see generate.h. */
#include "generate.h"

#include "terminal.h"

const char *end_reason_name(end_reason reason) {
    static const char *const names[] = {"length", "stop", "eos", "interrupted"};
    return names[reason];
}

static bool is_end(const generation *g, int32_t id) {
    for (int i = 0; i < SN_CHAT_ENDS; i++)
        if (g->end_ids[i] == id) return true;
    return false;
}

/* Samples one token and shows it; *ended once the text is over. */
static int next_token(generation *g, sn_text *text, bool *ended) {
    int32_t id, stopped = 0;
    const char *out = NULL;
    size_t length = 0;
    sn_status status = sn_sampler_sample(g->sampler, g->logits, &id);
    if (status != SN_OK) return fail_library(status, NULL);
    *ended = is_end(g, id);
    g->reason = END_EOS;
    if (*ended) return EXIT_DONE;

    status = sn_sampler_accept(g->sampler, id);
    if (status == SN_OK && text != NULL)
        status = sn_text_push(text, id, &out, &length, &stopped);
    if (status != SN_OK) return fail_library(status, NULL);
    g->pending = id;
    g->tokens++;
    *ended = stopped != 0;
    g->reason = END_STOP;
    return g->token(g->user, id, out, length);
}

static int generate_text(generation *g, sn_text *text) {
    for (;;) {
        bool ended = false;
        g->reason = terminal_interrupted() ? END_INTERRUPTED : END_LENGTH;
        if (g->reason == END_INTERRUPTED || g->tokens == g->limit) return EXIT_DONE;
        if (g->pending >= 0) {
            sn_status status = sn_state_step(g->state, g->pending, g->logits);
            if (status != SN_OK) return fail_library(status, NULL);
            g->pending = -1;
        }
        int code = next_token(g, text, &ended);
        if (code != EXIT_DONE || ended) return code;
    }
}

static int finish_text(generation *g, sn_text *text) {
    const char *out;
    size_t length;
    sn_status status = sn_text_finish(text, &out, &length);
    if (status != SN_OK) return fail_library(status, NULL);
    return length == 0 ? EXIT_DONE : g->token(g->user, -1, out, length);
}

int generate(generation *g) {
    g->tokens = 0;
    g->pending = -1;
    g->reason = END_LENGTH;
    sn_text *text = NULL;
    sn_status status = SN_OK;
    if (g->tokenizer != NULL) status = sn_text_new(g->tokenizer, g->stops, g->n_stops, &text);
    sn_text_resume(text); /* behind the prompt */
    if (status != SN_OK) return fail_library(status, NULL);
    double start = terminal_seconds();
    int code = generate_text(g, text);
    g->seconds = terminal_seconds() - start;
    if (code == EXIT_DONE && text != NULL && g->reason != END_STOP) code = finish_text(g, text);
    sn_text_free(text);
    return code;
}
