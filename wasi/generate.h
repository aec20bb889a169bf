/*
 * generate.h: the loop of run and chat: sample, show, step, until something ends it.
 */
#ifndef SN_WASI_GENERATE_H
#define SN_WASI_GENERATE_H

#include "common.h"

typedef enum end_reason { END_LENGTH, END_STOP, END_EOS, END_INTERRUPTED } end_reason;

/* Gets every token with the text that became certain (possibly empty; NULL without a tokenizer),
 * and last, with id -1, what was held back, if anything was. EXIT_DONE goes on. */
typedef int (*token_fn)(void *user, int32_t id, const char *text, size_t bytes);

typedef struct generation {
    sn_state *state;
    sn_sampler *sampler;
    const sn_tokenizer *tokenizer; /* NULL: there are ids and no text, and no stops */
    float *logits; /* in: the scores of the first token. Overwritten */
    const char *const *stops;
    int32_t n_stops;
    int32_t end_ids[SN_CHAT_ENDS]; /* tokens that end the text and are not part of it; -1: none */
    int64_t limit;      /* tokens; -1: none */
    token_fn token;
    void *user;

    /* out */
    end_reason reason;
    int64_t tokens;  /* generated, an end token not counted */
    int32_t pending; /* the last token if the state has not seen it, else -1 */
    double seconds;
} generation;

/* "length", "stop", ... */
const char *end_reason_name(end_reason reason);

int generate(generation *g);

#endif
