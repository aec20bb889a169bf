/*
 * decode_tokens THREADS TOKENS MODEL...: decodes as many tokens with each model, in every way that
 * there is: alone, as a prompt, as a batch, with a sampler. All that it allocates itself comes
 * before the first token and does not depend on TOKENS: tests/allocations.test.mjs counts.
 */
#include "models.h"

#include "sunnynet.h"

#define MOST_TOKENS 64
#define N_STATES 3
#define CHUNK 8

#define MUST(call)                                                                            \
    do {                                                                                      \
        if ((call) != SN_OK) {                                                                \
            fprintf(stderr, "decode_tokens: %s\n", sn_last_error());                          \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

typedef struct decoder {
    sn_state *states[N_STATES];
    sn_batch *batch;
    sn_sampler *sampler;
    float *logits; /* [MOST_TOKENS][vocab] */
    int32_t tokens[MOST_TOKENS];
} decoder;

static void decode(decoder *d, int32_t n) {
    MUST(sn_state_prefill(d->states[0], d->tokens, n, d->logits));
    MUST(sn_state_prefill(d->states[1], d->tokens, n, NULL));
    MUST(sn_state_prefill_all(d->states[2], d->tokens, n, d->logits));
    for (int32_t i = 0; i < n; i++) {
        int32_t id;
        MUST(sn_state_step(d->states[0], d->tokens[i], NULL));
        MUST(sn_state_step(d->states[0], d->tokens[i], d->logits));
        MUST(sn_sampler_sample(d->sampler, d->logits, &id));
        MUST(sn_sampler_accept(d->sampler, id));
        MUST(sn_batch_step(d->batch, d->states, d->tokens + i % 8, N_STATES, d->logits));
    }
}

static void decode_with(const char *path, int32_t n_threads, int32_t n) {
    sn_model_options options;
    sn_model_options_init(&options);
    options.n_threads = n_threads;
    options.max_chunk = CHUNK;
    sn_model *model = load_model(path, &options);
    decoder d = { 0 };
    const int32_t vocab = sn_model_vocab(model);
    for (int i = 0; i < N_STATES; i++) d.states[i] = new_state(model);
    MUST(sn_batch_new(model, N_STATES, &d.batch));
    MUST(sn_sampler_new(vocab, NULL, NULL, &d.sampler));
    d.logits = malloc(MOST_TOKENS * (size_t)vocab * sizeof *d.logits);
    if (!d.logits) {
        fprintf(stderr, "decode_tokens: out of memory: %d rows of logits\n", MOST_TOKENS);
        exit(1);
    }
    random_tokens(d.tokens, MOST_TOKENS, vocab, 3);
    decode(&d, n);
    free(d.logits);
    sn_sampler_free(d.sampler);
    sn_batch_free(d.batch);
    for (int i = 0; i < N_STATES; i++) sn_state_free(d.states[i]);
    sn_model_free(model);
}

int main(int argc, char **argv) {
    const long n_threads = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
    const long n = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    if (n_threads < 1 || n < 1 || n_threads > 64 || n > MOST_TOKENS - 8) {
        fprintf(stderr, "usage: decode_tokens THREADS TOKENS MODEL..., at most %d tokens\n",
                MOST_TOKENS - 8);
        return 2;
    }
    for (int i = 3; i < argc; i++) decode_with(argv[i], (int32_t)n_threads, (int32_t)n);
    return 0;
}
