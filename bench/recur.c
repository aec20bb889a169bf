/*
 * recur.c: the recurrence kernels, one thread, against the machine's memory and, if there is one,
 * against the same kernels in another library with the seed's symbols. One cell a process; ours,
 * theirs and the machine's take turns in every round, medians are printed.
 *
 *   recur scan N T [THEIRS]          first order, B = 1: forward and reverse, FMA and gated
 *   recur rank1 HEADS R C [THEIRS]     one step of the row-major rank-1 recurrence, all terms
 *   recur gemv IN OUT [THEIRS]         4-bit weights in groups of 64
 *
 * THEIRS is a path: sunnynet_runtime.so, for gemv sunnynet_quant.so. bench/recur.mjs makes a table.
 */
#include "platform.h"
#include "recurrence.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 11
#define SAMPLE 0.01              /* seconds of one measurement, at least */
#define STREAM_BYTES (96u << 20) /* of three arrays together: more than a core's share of caches */

static const sn_simd *simd;
static sn_pool *pool;
static void *theirs;

/* ---- measuring ------------------------------------------------------------------------------- */

/* Of this process: what others take of the cores does not count. */
static double seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

typedef struct contestant {
    void (*run)(void);
    double sample[ROUNDS];
    int repeat;
} contestant;

static double time_of(contestant *c) {
    const double start = seconds();
    for (int i = 0; i < c->repeat; i++) c->run();
    return (seconds() - start) / c->repeat;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(contestant *c) {
    qsort(c->sample, ROUNDS, sizeof(double), by_size);
    return c->sample[ROUNDS / 2];
}

/* In turns, so that what else the machine does hits all alike. The first call is not counted. */
static void measure(contestant *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        all[i].repeat = 1;
        time_of(&all[i]);
        all[i].repeat = (int)(SAMPLE / time_of(&all[i])) + 1;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) all[i].sample[round] = time_of(&all[i]);
}

static void *array(size_t bytes) {
    void *block = sn_platform_pages(bytes);
    if (!block) {
        fprintf(stderr, "recur: %zu bytes could not be had\n", bytes);
        exit(1);
    }
    return block;
}

/* In [low, high); the same numbers every time. */
static float *numbers(size_t n, float low, float high) {
    static uint32_t state = 1;
    float *x = array(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = low + (high - low) * (float)(state >> 8) * 0x1p-24f;
    }
    return x;
}

static void *symbol(const char *name) {
    void *found = theirs ? dlsym(theirs, name) : NULL;
    if (theirs && !found) {
        fprintf(stderr, "recur: %s\n", dlerror());
        exit(1);
    }
    return found;
}

/* ---- the machine: two arrays read and one written -------------------------------------------- */

static struct {
    float *a, *b, *y;
    size_t n;
} stream;

static void triad(void) {
    for (size_t i = 0; i < stream.n; i++) stream.y[i] = stream.a[i] * 0.5f + stream.b[i];
}

static void copy(void) {
    memcpy(stream.y, stream.a, stream.n * sizeof(float));
}

/* Bytes a second that one thread reads and writes out of the caches, by the better of two ways. */
static double stream_speed(void) {
    contestant ways[] = { { .run = triad }, { .run = copy } };
    stream.n = STREAM_BYTES / 12;
    stream.a = numbers(stream.n, -1.0f, 1.0f);
    stream.b = numbers(stream.n, -1.0f, 1.0f);
    stream.y = numbers(stream.n, -1.0f, 1.0f);
    measure(ways, 2);
    const double by_triad = 12.0 * (double)stream.n / median(&ways[0]);
    const double by_copy = 8.0 * (double)stream.n / median(&ways[1]);
    return by_triad > by_copy ? by_triad : by_copy;
}

/* ---- first order ----------------------------------------------------------------------------- */

static sn_recurrence scan;
static sn_recurrence_gradients gradients;
static void (*their_scan)(const float *, const float *, const float *, float *, float *, int, int,
                          int, int);
static void (*their_reverse)(const float *, const float *, const float *, const float *,
                             const float *, float *, float *, float *, int, int, int, int);

static void forward(void) {
    sn_recurrence_forward(simd, pool, &scan);
}

static void reverse(void) {
    sn_recurrence_backward(simd, pool, &scan, &gradients);
}

static void their_forward(void) {
    their_scan(scan.a, scan.b, scan.s0, scan.y, scan.s_end, 1, (int)scan.T, (int)scan.N,
               scan.gated);
}

static void their_backward(void) {
    their_reverse(scan.a, scan.b, scan.s0, scan.y, gradients.dy, gradients.da, gradients.db,
                  gradients.ds0, 1, (int)scan.T, (int)scan.N, scan.gated);
}

/* `arrays`: how many a pass goes through. */
static void compare_scan(const char *name, void (*ours)(void), void (*other)(void),
                         double arrays, double speed) {
    contestant all[] = { { .run = ours }, { .run = other } };
    const double bytes = arrays * sizeof(float) * (double)(scan.T * scan.N);
    measure(all, theirs ? 2 : 1);
    const double t = median(&all[0]);
    printf("%zu\t%zu\t%s\t%.4f\t%.2f\t%.0f", scan.N, scan.T, name, t * 1e3, bytes / t * 1e-9,
           100.0 * bytes / t / speed);
    if (theirs) printf("\t%.4f\t%.2f", median(&all[1]) * 1e3, median(&all[1]) / t);
    printf("\n");
}

static void bench_scan(size_t N, size_t T) {
    const size_t n = N * T;
    const double speed = stream_speed();
    scan = (sn_recurrence){ .a = numbers(n, 0.8f, 1.0f), .b = numbers(n, -1.0f, 1.0f),
                            .s0 = numbers(N, -1.0f, 1.0f), .y = numbers(n, -1.0f, 1.0f),
                            .s_end = numbers(N, -1.0f, 1.0f), .B = 1, .T = T, .N = N };
    gradients = (sn_recurrence_gradients){ .dy = numbers(n, -1.0f, 1.0f),
                                           .da = numbers(n, 0.0f, 1.0f),
                                           .db = numbers(n, 0.0f, 1.0f),
                                           .ds0 = numbers(N, 0.0f, 1.0f) };
    their_scan = symbol("sn_recur_scan");
    their_reverse = symbol("sn_recur_bwd");
    for (int gated = 0; gated < 2; gated++) {
        scan.gated = gated;
        compare_scan(gated ? "gated forward" : "fma forward", forward, their_forward, 3.0, speed);
        compare_scan(gated ? "gated reverse" : "fma reverse", reverse, their_backward,
                     gated ? 6.0 : 5.0, speed);
    }
}

/* ---- rank one -------------------------------------------------------------------------------- */

static sn_rank1_rows rank1;
static void (*their_rank1)(float *, const float *, const float *, const float *, const float *,
                           const float *, const float *, float *, float *, int, int, int);

static void rank1_step(void) {
    sn_rank1_rows_step(simd, pool, &rank1);
}

static void their_rank1_step(void) {
    their_rank1(rank1.S, rank1.w, rank1.u, rank1.v, rank1.k, rank1.b, rank1.r, rank1.y, rank1.p,
                (int)rank1.heads, (int)rank1.R, (int)rank1.C);
}

/* Vectors of length about 1, so that the state neither grows nor vanishes. */
static void bench_rank1(size_t heads, size_t R, size_t C) {
    const float unit = 0.2f;
    rank1 = (sn_rank1_rows){
        .S = numbers(heads * R * C, -1.0f, 1.0f), .w = numbers(heads * C, 0.9f, 1.0f),
        .u = numbers(heads * C, -unit, unit), .v = numbers(heads * R, -1.0f, 1.0f),
        .k = numbers(heads * C, -unit, unit), .b = numbers(heads * C, -unit, unit),
        .r = numbers(heads * C, -unit, unit), .y = numbers(heads * R, 0.0f, 1.0f),
        .p = numbers(heads * R, 0.0f, 1.0f), .heads = heads, .R = R, .C = C };
    their_rank1 = symbol("sn_mat_scan");
    contestant all[] = { { .run = rank1_step }, { .run = their_rank1_step } };
    measure(all, theirs ? 2 : 1);
    const double n = (double)(heads * R * C), t = median(&all[0]);
    printf("rank1\t%zu x %zu x %zu\t%.3f ns an element", heads, R, C, t / n * 1e9);
    if (theirs) printf("\t%.3f\t%.2f", median(&all[1]) / n * 1e9, median(&all[1]) / t);
    printf("\n");
}

/* ---- 4-bit weights --------------------------------------------------------------------------- */

static struct {
    float *x, *y, *scale;
    uint8_t *q;
    size_t in, out;
} product;
static void (*their_gemv)(float *, const float *, const unsigned char *, const float *, int, int,
                          int);

static void gemv(void) {
    if (sn_seed_gemv_i4(simd, pool, product.y, product.x, product.q, product.scale, product.in,
                        product.out, 64)) {
        fprintf(stderr, "recur: %s\n", sn_last_error());
        exit(1);
    }
}

static void their_product(void) {
    their_gemv(product.y, product.x, product.q, product.scale, (int)product.in, (int)product.out,
               64);
}

static void bench_gemv(size_t in, size_t out) {
    float *weights = numbers(in * out, -1.0f, 1.0f);
    product.in = in, product.out = out;
    product.x = numbers(in, -1.0f, 1.0f), product.y = numbers(out, 0.0f, 1.0f);
    product.scale = numbers(out * (in / 64), 0.0f, 1.0f), product.q = array(in * out / 2);
    sn_seed_quant_i4(weights, product.q, product.scale, out, in, 64);
    their_gemv = symbol("sn_gemv_i4");
    contestant all[] = { { .run = gemv }, { .run = their_product } };
    measure(all, theirs ? 2 : 1);
    const double bytes = (double)(in * out) * (0.5 + 4.0 / 64.0), t = median(&all[0]);
    printf("gemv\t%zu x %zu\t%.4f ms\t%.2f GB/s", out, in, t * 1e3, bytes / t * 1e-9);
    if (theirs) printf("\t%.4f\t%.2f", median(&all[1]) * 1e3, median(&all[1]) / t);
    printf("\n");
}

/* ---------------------------------------------------------------------------------------------- */

static size_t size_of(const char *text) {
    const unsigned long n = strtoul(text, NULL, 10);
    if (n == 0 || n > 1u << 20) {
        fprintf(stderr, "recur: '%s' is no size in 1..1048576\n", text);
        exit(2);
    }
    return n;
}

static void open_theirs(const char *path) {
    if (!path) return;
    theirs = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!theirs) {
        fprintf(stderr, "recur: %s\n", dlerror());
        exit(1);
    }
    void (*set_threads)(int) = dlsym(theirs, "sn_set_threads");
    if (set_threads) set_threads(1);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int sizes = strcmp(what, "rank1") == 0 ? 3 : 2;
    if (argc < 2 + sizes || argc > 3 + sizes) {
        fprintf(stderr, "usage: recur scan N T | rank1 HEADS R C | gemv IN OUT, [LIBRARY]\n");
        return 2;
    }
    const char *isa = sn_simd_wanted();
    simd = isa ? sn_simd_find(isa) : sn_simd_best();
    if (!simd || !sn_simd_usable(simd) || sn_pool_new(1, &pool)) {
        fprintf(stderr, "recur: no back end '%s' here\n", isa);
        return 1;
    }
    open_theirs(argv[2 + sizes]);
    const size_t a = size_of(argv[2]), b = size_of(argv[3]);
    if (strcmp(what, "scan") == 0) bench_scan(a, b);
    else if (strcmp(what, "gemv") == 0) bench_gemv(a / 64 * 64, b);
    else if (sizes == 3) bench_rank1(a, b, size_of(argv[4]));
    else return fprintf(stderr, "recur: '%s' is no kernel\n", what), 2;
    return 0;
}
