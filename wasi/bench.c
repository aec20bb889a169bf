/*
 * bench.c: `sunnynet bench`: speed of reading a prompt, of writing and of a batch, beside the speed
 * at which this machine reads the same memory when it does nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "terminal.h"

#define MAX_TESTS (2 * MAX_LIST + 1)
#define READ_SECONDS 0.05 /* of one reading test: a pass over a small model is no time at all */

typedef enum test_kind { TEST_PREFILL, TEST_DECODE, TEST_BATCH } test_kind;

static const char *const kind_names[] = {"prefill", "decode", "batch"};

/* The speed at which the weights are read, on one thread and on all. */
enum { READ_ALONE, READ_ALL, N_READS };

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
    double *reads[N_READS]; /* [repeat] bytes a second, sorted at the end */
    sn_model_run run;
    buffer report;
} bench;

/* ---- tests ---- */

static int test_add(bench *b, test_kind kind, int32_t size) {
    test *t = &b->tests[b->n_tests++];
    *t = (test){.kind = kind, .size = size};
    t->rates = calloc((size_t)b->args->repeat, sizeof *t->rates);
    return t->rates == NULL ? fail_memory() : EXIT_DONE;
}

static int reads_new(bench *b) {
    for (int i = 0; i < N_READS; i++) {
        b->reads[i] = calloc((size_t)b->args->repeat, sizeof(double));
        if (b->reads[i] == NULL) return fail_memory();
    }
    return EXIT_DONE;
}

static int tests_new(bench *b) {
    const arguments *args = b->args;
    int code = reads_new(b);
    b->largest_batch = 1;
    for (int32_t i = 0; i < args->prompt_sizes.n && code == EXIT_DONE; i++)
        if (args->prompt_sizes.items[i] > 0)
            code = test_add(b, TEST_PREFILL, args->prompt_sizes.items[i]);
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
    b->n_ids = (int32_t)b->args->gen_tokens;
    for (int32_t i = 0; i < b->n_tests; i++)
        if (b->tests[i].size > b->n_ids) b->n_ids = b->tests[i].size;
    b->ids = malloc((size_t)b->n_ids * sizeof *b->ids);
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

static int measure_read(bench *b, int which, int64_t round) {
    double bytes = 0, start = terminal_seconds(), seconds;
    do {
        double pass = 0;
        sn_status status = sn_model_read_weights(b->model.model, which == READ_ALONE, &pass);
        if (status != SN_OK) return fail_library(status, b->model.path.data);
        bytes += pass;
        seconds = terminal_seconds() - start;
    } while (seconds < READ_SECONDS && !terminal_interrupted());
    b->reads[which][round] = bytes / seconds;
    return terminal_interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure_round(bench *b, progress *p, int64_t round) {
    int code = EXIT_DONE;
    for (int32_t i = 0; i < b->n_tests && code == EXIT_DONE; i++) {
        code = measure_test(b, &b->tests[i], round);
        progress_report(p, (double)round * b->n_tests + i + 1,
                        (double)b->args->repeat * b->n_tests);
    }
    for (int i = 0; i < N_READS && code == EXIT_DONE; i++) code = measure_read(b, i, round);
    return code;
}

/* All tests in turn, so that a slow spell of the machine hits them alike. */
static int measure_all(bench *b) {
    size_t n = (size_t)b->args->repeat;
    int code = EXIT_DONE;
    progress p;
    progress_start(&p, "measuring");
    for (int64_t round = 0; round < b->args->repeat && code == EXIT_DONE; round++)
        code = measure_round(b, &p, round);
    progress_end(&p);
    for (int32_t i = 0; i < b->n_tests; i++)
        qsort(b->tests[i].rates, n, sizeof(double), compare_doubles);
    for (int i = 0; i < N_READS; i++) qsort(b->reads[i], n, sizeof(double), compare_doubles);
    return code;
}

/* ---- the report ---- */

static double median(const bench *b, const double *sorted) {
    size_t n = (size_t)b->args->repeat;
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static void test_name(const test *t, char *name, size_t size) {
    snprintf(name, size, "%s %d", kind_names[t->kind], (int)t->size);
}

static void print_test(bench *b, const test *t) {
    char name[32];
    test_name(t, name, sizeof name);
    double rate = median(b, t->rates), read = rate * t->bytes_per_token;
    buffer_printf(&b->report, "| %-12s | %.1f | %.1f..%.1f | %.3f | %.2f | %.0f %% |\n", name, rate,
                  t->rates[0], t->rates[b->args->repeat - 1], t->bytes_per_token / 1e6,
                  read / 1e9, 100 * read / median(b, b->reads[READ_ALL]));
}

static void print_table(bench *b) {
    const sn_model_info *info = &b->model.info;
    buffer *r = &b->report;
    buffer_text(r, "| test | tokens/s | range | MB read/token | GB/s | of read speed |\n"
                   "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int32_t i = 0; i < b->n_tests; i++) print_test(b, &b->tests[i]);
    buffer_printf(r, "\n%s, back end %s, activations %s, chunk %d; sunnynet %s\n",
                  b->model.path.data, info->backend,
                  info->activations == SN_ACTIVATIONS_INT8 ? "int8" : "f32",
                  (int)info->max_chunk, sn_version());
    run_describe(r, &b->run);
    buffer_printf(r, "read speed  %.1f GB/s on one thread", median(b, b->reads[READ_ALONE]) / 1e9);
    if (info->n_threads > 1)
        buffer_printf(r, ", %.1f GB/s on all", median(b, b->reads[READ_ALL]) / 1e9);
    buffer_text(r, "\n");
    buffer_printf(r, "medians of %lld; batch N: tokens/s of all N states; %.0f weight bytes a "
                  "step\n\n", (long long)b->args->repeat, info->bytes_per_token);
}

static void json_run(bench *b) {
    const sn_model_info *info = &b->model.info;
    buffer *r = &b->report;
    json_pair(r, "read_bandwidth", median(b, b->reads[READ_ALL]));
    json_pair(r, "read_bandwidth_alone", median(b, b->reads[READ_ALONE]));
    json_pair(r, "weight_bytes", b->run.weight_bytes);
    json_pair(r, "mapped_bytes", b->run.mapped_bytes);
    json_name(r, "huge_bytes");
    if (b->run.huge_bytes < 0)
        buffer_text(r, "null");
    else
        json_number(r, b->run.huge_bytes);
    json_pair_text(r, "model", b->model.path.data);
    json_pair_text(r, "backend", info->backend);
    json_pair(r, "threads", info->n_threads);
    json_pair_text(r, "activations", info->activations == SN_ACTIVATIONS_INT8 ? "int8" : "f32");
    json_pair(r, "chunk", info->max_chunk);
    json_pair_text(r, "version", sn_version());
}

static void json_test(bench *b, const test *t) {
    buffer *r = &b->report;
    double rate = median(b, t->rates);
    buffer_text(r, "{");
    json_pair_text(r, "test", kind_names[t->kind]);
    json_pair(r, "size", t->size);
    json_pair(r, "tokens_per_second", rate);
    json_pair(r, "min", t->rates[0]);
    json_pair(r, "max", t->rates[b->args->repeat - 1]);
    json_pair(r, "repeat", (double)b->args->repeat);
    json_pair(r, "bytes_per_token", t->bytes_per_token);
    json_pair(r, "read_share", rate * t->bytes_per_token / median(b, b->reads[READ_ALL]));
    json_run(b);
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
    for (int i = 0; i < N_READS; i++) free(b->reads[i]);
    free(b->states);
    free(b->logits);
    free(b->ids);
    buffer_free(&b->report);
    model_close(&b->model);
}

static int bench_threads(const arguments *args, int32_t n_threads) {
    bench b;
    memset(&b, 0, sizeof b);
    b.args = args;
    int code = model_open(&b.model, args, n_threads, false);
    if (code == EXIT_DONE) code = tests_new(&b);
    if (code == EXIT_DONE) code = ids_new(&b);
    if (code == EXIT_DONE) code = states_new(&b);
    if (code == EXIT_DONE) code = measure_all(&b);
    if (code == EXIT_DONE) code = run_read(&b.model, &b.run);
    if (code == EXIT_DONE) code = show(&b);
    bench_free(&b);
    return code;
}

int command_bench(const arguments *args) {
    int code = EXIT_DONE;
    for (int32_t i = 0; i < args->thread_counts.n && code == EXIT_DONE; i++)
        code = bench_threads(args, args->thread_counts.items[i]);
    return code;
}
