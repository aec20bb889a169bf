/*
 * main.c: the self-test and the logits of small models by every usable back end, as text. The
 * same program runs under Linux and alone on an emulated PC (boot.S, system.c).
 */
#include "sunnynet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TOKENS 9

/* What a model file holds; the build gives the bytes as assembly. */
typedef struct embedded { const char *name; const uint8_t *begin, *end; } embedded;
extern const embedded models[];

static void say(void *user, const char *line) {
    (void)user;
    puts(line);
}

static uint64_t fnv1a(const void *data, size_t bytes) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return h;
}

static int check(sn_status status) {
    if (status != SN_OK) printf("FAILED: %s\n", sn_last_error());
    return status == SN_OK;
}

/* Prefill and single steps must agree; prints the hash of all the logits. */
static int run_model(const embedded *m, const char *backend, int32_t activations) {
    sn_model_options options;
    sn_model_options_init(&options);
    options.backend = backend;
    options.n_threads = 1;
    options.activations = activations;
    sn_model *model = NULL;
    sn_state *prefill = NULL, *steps = NULL;
    if (!check(sn_model_load_memory(m->begin, (size_t)(m->end - m->begin), &options, &model)) ||
        !check(sn_state_new(model, &prefill)) || !check(sn_state_new(model, &steps))) return 0;
    const size_t vocab = (size_t)sn_model_vocab(model);
    int32_t tokens[N_TOKENS];
    for (int32_t i = 0; i < N_TOKENS; i++) tokens[i] = (int32_t)((size_t)(i * i * 7 + 3) % vocab);
    float *logits = calloc(2 * N_TOKENS * vocab, sizeof(float));
    if (!logits || !check(sn_state_prefill_all(prefill, tokens, N_TOKENS, logits))) return 0;
    float *other = logits + N_TOKENS * vocab;
    for (size_t i = 0; i < N_TOKENS; i++)
        if (!check(sn_state_step(steps, tokens[i], other + i * vocab))) return 0;
    const size_t bytes = N_TOKENS * vocab * sizeof(float);
    const int same = memcmp(logits, other, bytes) == 0;
    printf("%-12s %-20s activations %s  %016" PRIx64 "%s\n", backend, m->name,
           activations == SN_ACTIVATIONS_F32 ? "f32 " : "int8", fnv1a(logits, bytes),
           same ? "" : "  FAILED: steps differ from prefill");
    free(logits);
    sn_state_free(steps);
    sn_state_free(prefill);
    sn_model_free(model);
    return same;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    int good = check(sn_selftest(say, NULL));
    for (int32_t i = 0; i < sn_backend_count(); i++)
        for (const embedded *m = models; m->name && sn_backend_usable(i); m++)
            for (int32_t a = 0; a < 2; a++) good &= run_model(m, sn_backend_name(i), a);
    puts(good ? "end: all good" : "end: FAILED");
    return !good;
}
