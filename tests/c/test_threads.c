/*
 * test_threads: one model serves several threads at once, each with states of its own, and each
 * gets the bits it would get alone. A pool does every part of a job once. Clean under
 * -fsanitize=thread.
 * Usage: test_threads models/test
 */
#include "models.h"

#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>

#define N_THREADS 4
#define N 24
#define ROUNDS 3

static char path[512];
static sn_model *shared;
static float *expected; /* [N_THREADS][vocab], by one thread alone */

typedef struct worker {
    int index;
    float *logits;
    int failures;
} worker;

static void run_threads(worker *workers, void *(*work)(void *)) {
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        workers[i].index = i;
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "a thread could not be started\n");
            exit(1);
        }
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        CHECK(workers[i].failures == 0, "thread %d: %d failures", i, workers[i].failures);
}

/* Every thread has its own tokens. Ways to go through them take turns. */
static sn_status play(const sn_model *model, int index, int round, float *logits) {
    int32_t tokens[N];
    sn_state *state;
    sn_status status = SN_OK;
    random_tokens(tokens, N, sn_model_vocab(model), (uint64_t)index + 1);
    SN_TRY(sn_state_new(model, &state));
    if (round % 2) status = sn_state_prefill(state, tokens, N, logits);
    for (int i = 0; i < N && round % 2 == 0 && status == SN_OK; i++)
        status = sn_state_step(state, tokens[i], logits);
    sn_state_free(state);
    return status;
}

static bool as_expected(const sn_model *model, int index, const float *logits) {
    const size_t vocab = (size_t)sn_model_vocab(model);
    return memcmp(logits, expected + (size_t)index * vocab, vocab * sizeof(float)) == 0;
}

/* ---- one model, several states --------------------------------------------------------------- */

static void *step_states(void *argument) {
    worker *w = argument;
    for (int round = 0; round < ROUNDS; round++)
        if (play(shared, w->index, round, w->logits) != SN_OK ||
            !as_expected(shared, w->index, w->logits))
            w->failures++;
    return NULL;
}

static void *step_batches(void *argument) {
    worker *w = argument;
    int32_t tokens[N];
    sn_state *state = new_state(shared);
    sn_batch *batch;
    if (sn_batch_new(shared, 1, &batch) != SN_OK) return w->failures++, NULL;
    random_tokens(tokens, N, sn_model_vocab(shared), (uint64_t)w->index + 1);
    for (int i = 0; i < N; i++)
        w->failures += sn_batch_step(batch, &state, &tokens[i], 1, w->logits) != SN_OK;
    w->failures += !as_expected(shared, w->index, w->logits);
    sn_batch_free(batch);
    sn_state_free(state);
    return NULL;
}

/* ---- models of their own --------------------------------------------------------------------- */

static void *load_models(void *argument) {
    worker *w = argument;
    sn_model_options options;
    sn_model_options_init(&options);
    options.n_threads = 1 + w->index % 2;
    sn_model *model = load_model(path, &options);
    if (play(model, w->index, 1, w->logits) != SN_OK || !as_expected(model, w->index, w->logits))
        w->failures++;
    sn_model_free(model);
    return NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Every thread sees its own last failure, whatever fails elsewhere meanwhile. */
static void *fail_alone(void *argument) {
    worker *w = argument;
    char name[64];
    sn_model *model;
    w->failures += sn_last_error()[0] != 0; /* a new thread has had none */
    for (int round = 0; round < 50; round++) {
        snprintf(name, sizeof name, "no-such-file-of-thread-%d", w->index);
        if (sn_model_load(name, NULL, &model) != SN_E_IO) w->failures++;
        w->failures += !strstr(sn_last_error(), name);
    }
    return NULL;
}

/* ---- jobs of a pool -------------------------------------------------------------------------- */

#define MOST_PARTS 64

static void count_parts(void *context, size_t begin, size_t end) {
    atomic_int *done = context;
    for (size_t i = begin; i < end; i++) atomic_fetch_add(&done[i], 1);
}

/* Each job starts while workers may still look at the one before, which had more pieces or fewer:
 * no part of it is left out when the pool says that it is done, none is done twice. */
static void check_jobs(int32_t threads, int jobs) {
    static const size_t parts[] = { 2, 8, 3, MOST_PARTS, 2, 5, 7, 16 };
    sn_pool *pool;
    int wrong = 0;
    CHECK(sn_pool_new(threads, &pool) == SN_OK, "%s", sn_last_error());
    for (int job = 0; job < jobs; job++) {
        const size_t n = parts[job % 8];
        atomic_int done[MOST_PARTS] = { 0 };
        sn_pool_run(pool, n, count_parts, done);
        for (size_t i = 0; i < n; i++) wrong += atomic_load(&done[i]) != 1;
    }
    CHECK(wrong == 0, "%d threads, %d jobs: %d parts were not done once", (int)threads, jobs,
          wrong);
    sn_pool_free(pool);
}

static void check_model(const char *name, int32_t threads, worker *workers) {
    sn_model_options options;
    sn_model_options_init(&options);
    options.n_threads = threads;
    options.max_chunk = 7;
    snprintf(path, sizeof path, "%s", name);
    shared = load_model(path, &options);
    const size_t vocab = (size_t)sn_model_vocab(shared);
    expected = malloc(N_THREADS * vocab * sizeof(float));
    for (int i = 0; i < N_THREADS; i++) {
        CHECK(play(shared, i, 0, expected + (size_t)i * vocab) == SN_OK, "%s", sn_last_error());
        workers[i].logits = malloc(vocab * sizeof(float));
    }
    run_threads(workers, step_states);
    run_threads(workers, step_batches);
    run_threads(workers, load_models);
    for (int i = 0; i < N_THREADS; i++) free(workers[i].logits);
    free(expected);
    sn_model_free(shared);
}

int main(int argc, char **argv) {
    static worker workers[N_THREADS];
    char f32[512], quantised[512];
    if (argc < 2) return fprintf(stderr, "usage: test_threads MODELS\n"), 2;
    join(f32, sizeof f32, argv[1], "rwkv7-micro.f32.gguf");
    join(quantised, sizeof quantised, argv[1], "rwkv7-k256.q4_k_m.gguf");
    check_model(f32, 2, workers);
    check_model(quantised, 2, workers);
    check_model(quantised, 3, workers);
    check_jobs(2, 200000);
    check_jobs(4, 100000);
    run_threads(workers, fail_alone);
    CHECK(sn_last_error()[0] == 0, "the main thread sees '%s'", sn_last_error());
    return check_report("threads");
}
