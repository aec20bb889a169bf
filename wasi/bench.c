/*
 * bench.c: `sunnynet bench`: speed of reading a prompt, of writing and of a batch, beside the speed
 * at which this machine reads memory.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "terminal.h"

#define MAX_TESTS (MAX_LIST + 2)

typedef enum test_kind { TEST_PREFILL, TEST_DECODE, TEST_BATCH } test_kind;

static const char *const kind_names[] = {"prefill", "decode", "batch"};

typedef struct test {
    test_kind kind;
    int32_t size;          /* tokens of a prefill, steps of a decode, states of a batch */
    double *rates;         /* [repeat] tokens a second, sorted at the end */
    double bytes_per_token; /* of weights, as the library counted them */
} test;

typedef struct bench {
    const arguments *args;
    loaded model;
    test tests[MAX_TESTS];
    int32_t n_tests;
    int32_t largest_batch;
    int32_t *ids; /* random tokens, as many as any test needs */
    int32_t n_ids;
    sn_state **states; /* [largest_batch] */
    sn_batch *batch;
    float *logits; /* [largest_batch][vocab] */
    double bandwidth; /* bytes a second, one thread; 0: not known */
    buffer report;
} bench;

/* ---- the machine ---- */

#define BUFFER_WORDS ((size_t)256 * 1024 * 1024 / sizeof(uint64_t))

/* Eight sums, so that no addition waits for the one before it. */
static uint64_t add_words(const uint64_t *words) {
    uint64_t sums[8] = {0}, total = 0;
    for (size_t i = 0; i < BUFFER_WORDS; i += 8)
        for (size_t k = 0; k < 8; k++) sums[k] += words[i + k];
    for (size_t k = 0; k < 8; k++) total += sums[k];
    return total;
}

/* The best of several readings of a buffer that no cache holds; 0 if there is no memory for it. */
static double measure_bandwidth(void) {
    uint64_t *words = malloc(BUFFER_WORDS * sizeof *words);
    if (words == NULL) return 0;
    for (size_t i = 0; i < BUFFER_WORDS; i++) words[i] = i;
    double best = 0;
    volatile uint64_t total = 0; /* keeps the sums from being left out */
    for (int round = 0; round < 5 && !terminal_interrupted(); round++) {
        double start = terminal_seconds();
        total += add_words(words);
        double seconds = terminal_seconds() - start;
        double rate = seconds > 0 ? (double)(BUFFER_WORDS * sizeof *words) / seconds : 0;
        if (rate > best) best = rate;
    }
    free(words);
    return best;
}

/* ---- tests ---- */

static int test_add(bench *b, test_kind kind, int32_t size) {
    test *t = &b->tests[b->n_tests++];
    *t = (test){.kind = kind, .size = size};
    t->rates = calloc((size_t)b->args->repeat, sizeof *t->rates);
    return t->rates == NULL ? fail_memory() : EXIT_DONE;
}

static int tests_new(bench *b) {
    const arguments *args = b->args;
    int code = EXIT_DONE;
    b->largest_batch = 1;
    if (args->prompt_tokens > 0) code = test_add(b, TEST_PREFILL, (int32_t)args->prompt_tokens);
    if (code == EXIT_DONE) code = test_add(b, TEST_DECODE, (int32_t)args->gen_tokens);
    for (int32_t i = 0; i < args->batches.n && code == EXIT_DONE; i++) {
        int32_t n = args->batches.items[i];
        if (n > b->largest_batch) b->largest_batch = n;
        code = test_add(b, TEST_BATCH, n);
    }
    return code;
}

/* Any tokens will do: the work does not depend on them. Always the same (splitmix64). */
static int ids_new(bench *b) {
    int64_t n = b->args->prompt_tokens > b->largest_batch ? b->args->prompt_tokens
                                                          : b->largest_batch;
    if (n < b->args->gen_tokens) n = b->args->gen_tokens;
    b->n_ids = (int32_t)n;
    b->ids = malloc((size_t)n * sizeof *b->ids);
    if (b->ids == NULL) return fail_memory();
    uint64_t seed = 1;
    for (int32_t i = 0; i < b->n_ids; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        b->ids[i] = (int32_t)(z % (uint64_t)b->model.info.vocab);
    }
    return EXIT_DONE;
}

static int states_new(bench *b) {
    size_t n = (size_t)b->largest_batch;
    b->states = calloc(n, sizeof *b->states);
    b->logits = floats_new(n, (size_t)b->model.info.vocab);
    if (b->states == NULL || b->logits == NULL) return fail_memory();
    sn_status status = sn_batch_new(b->model.model, b->largest_batch, &b->batch);
    for (size_t i = 0; i < n && status == SN_OK; i++)
        status = sn_state_new(b->model.model, &b->states[i]);
    return status == SN_OK ? EXIT_DONE : fail_library(status, b->model.path.data);
}

static int32_t stop_asked(void *user, double done, double total) {
    (void)user, (void)done, (void)total;
    return terminal_interrupted();
}

static sn_status work(bench *b, const test *t) {
    sn_state *state = b->states[0];
    if (t->kind == TEST_PREFILL) {
        sn_state_set_abort(state, stop_asked, NULL);
        return sn_state_prefill(state, b->ids, t->size, b->logits);
    }
    sn_status status = SN_OK;
    for (int32_t i = 0; i < b->args->gen_tokens && status == SN_OK; i++) {
        if (terminal_interrupted()) return SN_E_ABORTED;
        if (t->kind == TEST_DECODE)
            status = sn_state_step(state, b->ids[i], b->logits);
        else
            status = sn_batch_step(b->batch, b->states, b->ids, t->size, b->logits);
    }
    return status;
}

static double bytes_read(const bench *b, const test *t) {
    return t->kind == TEST_BATCH ? sn_batch_weight_bytes_read(b->batch)
                                 : sn_state_weight_bytes_read(b->states[0]);
}

static int measure_test(bench *b, test *t, int64_t round) {
    double tokens = t->kind == TEST_BATCH ? (double)b->args->gen_tokens * t->size : t->size;
    double before = bytes_read(b, t), start = terminal_seconds();
    sn_status status = work(b, t);
    double seconds = terminal_seconds() - start;
    if (status != SN_OK) return fail_library(status, b->model.path.data);
    t->rates[round] = seconds > 0 ? tokens / seconds : 0;
    t->bytes_per_token = (bytes_read(b, t) - before) / tokens;
    return EXIT_DONE;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All tests in turn, so that a slow spell of the machine hits them alike. */
static int measure_all(bench *b) {
    int32_t n = (int32_t)b->args->repeat;
    int code = EXIT_DONE;
    progress p;
    progress_start(&p, "measuring");
    for (int32_t round = 0; round < n; round++)
        for (int32_t i = 0; i < b->n_tests && code == EXIT_DONE; i++) {
            code = measure_test(b, &b->tests[i], round);
            progress_report(&p, (double)round * b->n_tests + i + 1, (double)n * b->n_tests);
        }
    progress_end(&p);
    for (int32_t i = 0; i < b->n_tests && code == EXIT_DONE; i++)
        qsort(b->tests[i].rates, (size_t)n, sizeof(double), compare_doubles);
    return code;
}

/* ---- the report ---- */

static double median(const bench *b, const test *t) {
    size_t n = (size_t)b->args->repeat;
    return (t->rates[(n - 1) / 2] + t->rates[n / 2]) / 2;
}

static void test_name(const test *t, char *name, size_t size) {
    snprintf(name, size, "%s %d", kind_names[t->kind], (int)t->size);
}

static void print_test(bench *b, const test *t) {
    char name[32];
    test_name(t, name, sizeof name);
    double rate = median(b, t), read = rate * t->bytes_per_token;
    buffer_printf(&b->report, "| %-12s | %.1f | %.1f..%.1f | %.3f | %.2f | ", name, rate,
                  t->rates[0], t->rates[b->args->repeat - 1], t->bytes_per_token / 1e6, read / 1e9);
    if (b->bandwidth > 0)
        buffer_printf(&b->report, "%.0f %% |\n", 100 * read / b->bandwidth);
    else
        buffer_text(&b->report, "- |\n");
}

static void print_table(bench *b) {
    const sn_model_info *info = &b->model.info;
    buffer_text(&b->report, "| test | tokens/s | range | MB read/token | GB/s | of read speed |\n"
                            "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int32_t i = 0; i < b->n_tests; i++) print_test(b, &b->tests[i]);
    buffer_printf(&b->report,
                  "\n%s, back end %s, threads %d, activations %s, chunk %d; sunnynet %s\n",
                  b->model.path.data, info->backend, (int)info->n_threads,
                  info->activations == SN_ACTIVATIONS_INT8 ? "int8" : "f32",
                  (int)info->max_chunk, sn_version());
    buffer_printf(&b->report,
                  "medians of %lld; batch N: tokens/s of all N states; %.0f weight bytes a step; "
                  "one thread reads %.1f GB/s\n\n",
                  (long long)b->args->repeat, info->bytes_per_token, b->bandwidth / 1e9);
}

static void json_test(bench *b, const test *t) {
    const sn_model_info *info = &b->model.info;
    buffer *r = &b->report;
    double rate = median(b, t);
    buffer_text(r, "{");
    json_pair_text(r, "test", kind_names[t->kind]);
    json_pair(r, "size", t->size);
    json_pair(r, "tokens_per_second", rate);
    json_pair(r, "min", t->rates[0]);
    json_pair(r, "max", t->rates[b->args->repeat - 1]);
    json_pair(r, "repeat", (double)b->args->repeat);
    json_pair(r, "bytes_per_token", t->bytes_per_token);
    json_name(r, "read_bandwidth");
    if (b->bandwidth > 0)
        json_number(r, b->bandwidth);
    else
        buffer_text(r, "null");
    json_pair_text(r, "model", b->model.path.data);
    json_pair_text(r, "backend", info->backend);
    json_pair(r, "threads", info->n_threads);
    json_pair_text(r, "activations", info->activations == SN_ACTIVATIONS_INT8 ? "int8" : "f32");
    json_pair(r, "chunk", info->max_chunk);
    json_pair_text(r, "version", sn_version());
    buffer_text(r, "}\n");
}

static int show(bench *b) {
    if (b->args->json)
        for (int32_t i = 0; i < b->n_tests; i++) json_test(b, &b->tests[i]);
    else
        print_table(b);
    return out_buffer(&b->report) ? EXIT_DONE : OUT_CLOSED;
}

/* ---- the command ---- */

static void bench_free(bench *b) {
    sn_batch_free(b->batch);
    for (int32_t i = 0; i < b->largest_batch && b->states != NULL; i++) sn_state_free(b->states[i]);
    for (int32_t i = 0; i < b->n_tests; i++) free(b->tests[i].rates);
    free(b->states);
    free(b->logits);
    free(b->ids);
    buffer_free(&b->report);
    model_close(&b->model);
}

static int bench_threads(const arguments *args, int32_t n_threads, double bandwidth) {
    bench b;
    memset(&b, 0, sizeof b);
    b.args = args;
    b.bandwidth = bandwidth;
    int code = model_open(&b.model, args, n_threads, false);
    if (code == EXIT_DONE) code = tests_new(&b);
    if (code == EXIT_DONE) code = ids_new(&b);
    if (code == EXIT_DONE) code = states_new(&b);
    if (code == EXIT_DONE) code = measure_all(&b);
    if (code == EXIT_DONE) code = show(&b);
    bench_free(&b);
    return code;
}

int command_bench(const arguments *args) {
    double bandwidth = measure_bandwidth();
    int code = terminal_interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
    for (int32_t i = 0; i < args->thread_counts.n && code == EXIT_DONE; i++)
        code = bench_threads(args, args->thread_counts.items[i], bandwidth);
    return code;
}
