/*
 * kernels.c: the matrix products of every layout and back end of this CPU, one thread: what a token
 * costs alone and in a chunk. The best of several samples of the process's own time, because what
 * else a machine does only ever slows a kernel down.
 *
 *   kernels [--isa NAME] [--layout NAME] [--rows N] [--k N] [--tokens LIST] [--f32] [--json]
 *           [--calls N]     for an instruction counter: calls run() N times for each product, times
 *                           nothing and prints back end, type, tokens and multiply-adds of a call
 *
 * A product of one token is limited by reading the weights (GB/s), one of many by arithmetic
 * (GMAC/s: products and additions of 1e9 weights a second). `--rows 768 --k 768` fits a cache. The
 * weights lie on pages as a model's do; --json also tells how fast a plain loop reads them. `--isa
 * best` is the back end that a model would take.
 */
#include "ops.h"
#include "platform.h"
#include "quant/panel.h"
#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 11
#define SAMPLE 0.004 /* seconds of one measurement, at least */
#define MOST_TOKENS 512

static const struct {
    sn_layout layout;
    uint32_t type;
    const char *name;
} layouts[] = {
    { SN_LAYOUT_F32, SN_TYPE_F32, "f32" },       { SN_LAYOUT_F16, SN_TYPE_F16, "f16" },
    { SN_LAYOUT_BF16, SN_TYPE_BF16, "bf16" },    { SN_LAYOUT_Q8_0, SN_TYPE_Q8_0, "q8_0" },
    { SN_LAYOUT_Q4_0, SN_TYPE_Q4_0, "q4_0" },    { SN_LAYOUT_Q4_1, SN_TYPE_Q4_1, "q4_1" },
    { SN_LAYOUT_Q5_0, SN_TYPE_Q5_0, "q5_0" },    { SN_LAYOUT_Q5_1, SN_TYPE_Q5_1, "q5_1" },
    { SN_LAYOUT_Q4_K, SN_TYPE_Q4_K, "q4_k" },    { SN_LAYOUT_Q5_K, SN_TYPE_Q5_K, "q5_k" },
    { SN_LAYOUT_Q6_K, SN_TYPE_Q6_K, "q6_k" },    { SN_LAYOUT_Q2_K, SN_TYPE_Q2_K, "q2_k" },
    { SN_LAYOUT_Q3_K, SN_TYPE_Q3_K, "q3_k" },    { SN_LAYOUT_IQ4_NL, SN_TYPE_IQ4_NL, "iq4_nl" },
    { SN_LAYOUT_IQ4_XS, SN_TYPE_IQ4_XS, "iq4_xs" }, { SN_LAYOUT_I4, SN_TYPE_I4, "i4" },
};

#define N_LAYOUTS (sizeof layouts / sizeof layouts[0])

typedef struct options {
    const char *isa, *layout, *tokens;
    size_t rows, k;
    long calls;
    bool f32, json;
} options;

typedef struct product {
    const sn_simd *simd;
    sn_layout layout;
    bool int8;
    size_t n_panels, panel_bytes, k, n_tokens;
    uint8_t *panels;
    sn_weights weights; /* the panels again, for sn_weights_read() */
    float *x, *y;
    sn_q8_rows q;
} product;

/* Of this process where the system can tell: what others take of the cores does not count. */
static double seconds(void) {
#if defined(__wasi__)
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static void *take(size_t bytes) {
    void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!block) {
        fprintf(stderr, "kernels: out of memory: %zu bytes\n", bytes);
        exit(1);
    }
    return block;
}

/* Not inlined, so that it is found in a profile by its name. */
static __attribute__((noinline)) void run(const product *p) {
    if (p->int8)
        p->simd->matmul_q8[p->layout](p->y, 16 * p->n_panels, p->panels, p->panel_bytes,
                                      p->n_panels, p->k, p->q, p->n_tokens);
    else
        p->simd->matmul_f32[p->layout](p->y, 16 * p->n_panels, p->panels, p->panel_bytes,
                                       p->n_panels, p->k, p->x, p->k, p->n_tokens);
}

/* Bytes that are a normal number of moderate size in every type of weight and scale. */
static void fill(uint8_t *bytes, size_t n) {
    uint32_t seed = 1;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)((seed >> 24 & 0x1f) | 0x20);
    }
}

static product product_new(const options *o, const sn_simd *simd, size_t which) {
    product p = { .simd = simd, .layout = layouts[which].layout, .k = o->k,
                  .n_panels = o->rows / 16 };
    const sn_type *type = sn_type_find(layouts[which].type);
    p.int8 = simd->matmul_q8[p.layout] && !o->f32;
    p.panel_bytes = sn_panel_bytes(type, o->k);
    const size_t bytes = p.n_panels * p.panel_bytes;
    p.panels = sn_platform_pages(bytes);
    if (!p.panels) {
        fprintf(stderr, "kernels: %s\n", sn_last_error());
        exit(1);
    }
    fill(p.panels, bytes);
    p.weights.pages = p.panels;
    p.weights.page_bytes = bytes;
    p.x = take(MOST_TOKENS * o->k * sizeof(float));
    p.y = take(MOST_TOKENS * 16 * p.n_panels * sizeof(float));
    for (size_t i = 0; i < MOST_TOKENS * o->k; i++) p.x[i] = (float)(i % 61) / 61 - 0.5f;
    int8_t *q = take(MOST_TOKENS * o->k);
    float *scale = take(MOST_TOKENS * o->k / 32 * sizeof(float));
    int32_t *sum = take(MOST_TOKENS * o->k / 16 * sizeof(int32_t));
    for (size_t t = 0; t < MOST_TOKENS; t++)
        (p.layout == SN_LAYOUT_I4 ? simd->quantize_i4 : simd->quantize_q8)(
            q + t * o->k, scale + t * (o->k / 32), sum + t * (o->k / 16), p.x + t * o->k, o->k);
    p.q = (sn_q8_rows){ q, scale, sum, o->k };
    return p;
}

static void product_free(product *p) {
    sn_platform_pages_free(p->panels, p->weights.page_bytes);
    free(p->x);
    free(p->y);
    free((void *)p->q.q);
    free((void *)p->q.scale);
    free((void *)p->q.sum);
}

static void read_panels(const product *p) {
    sn_weights_read(&p->weights, NULL);
}

/* Seconds of one call, the best of several samples. */
static double measure(void (*work)(const product *), const product *p) {
    double best = 1e9;
    int repeat = 1;
    for (int round = 0; round < ROUNDS;) {
        const double start = seconds();
        for (int i = 0; i < repeat; i++) work(p);
        const double time = seconds() - start;
        if (time < SAMPLE) {
            repeat *= 2;
            continue;
        }
        if (time / repeat < best) best = time / repeat;
        round++;
    }
    return best;
}

/* `read`: bytes a second of a plain loop. */
static void show(const options *o, const product *p, const char *layout, double read) {
    if (o->calls) {
        for (long i = 0; i < o->calls; i++) run(p);
        printf("%s %s %zu %zu\n", p->simd->name, layout, p->n_tokens,
               16 * p->n_panels * p->k * p->n_tokens);
        return;
    }
    const double time = measure(run, p), weights = (double)(16 * p->n_panels) * (double)p->k;
    const double gmac = weights * (double)p->n_tokens / time / 1e9;
    const double gbyte = (double)(p->n_panels * p->panel_bytes) / time / 1e9;
    printf(o->json ? "{\"isa\":\"%s\",\"layout\":\"%s\",\"activations\":\"%s\",\"rows\":%zu,"
                     "\"k\":%zu,\"tokens\":%zu,\"gmac_per_second\":%.3f,\"gb_per_second\":%.3f"
                   : "| %-13s | %-6s | %-4s | %5zu x %-5zu | %3zu | %7.2f | %6.2f |\n",
           p->simd->name, layout, p->int8 ? "int8" : "f32", 16 * p->n_panels, p->k, p->n_tokens,
           gmac, gbyte);
    if (o->json) printf(",\"read_gb_per_second\":%.3f}\n", read / 1e9);
    fflush(stdout);
}

static void show_layout(const options *o, const sn_simd *simd, size_t which) {
    product p = product_new(o, simd, which);
    const double read = o->json && !o->calls
                      ? (double)p.weights.page_bytes / measure(read_panels, &p) : 0.0;
    for (const char *at = o->tokens; *at;) {
        char *end;
        p.n_tokens = strtoul(at, &end, 10);
        if (end == at || p.n_tokens < 1 || p.n_tokens > MOST_TOKENS) {
            fprintf(stderr, "kernels: --tokens %s: a list of numbers from 1 to %d\n", o->tokens,
                    MOST_TOKENS);
            exit(2);
        }
        show(o, &p, layouts[which].name, read);
        at = end + (*end == ',');
    }
    product_free(&p);
}

static options read_options(int argc, char **argv) {
    options o = { .tokens = "1,16,32", .rows = 768, .k = 768 };
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(name, "--f32")) o.f32 = true;
        else if (!strcmp(name, "--json")) o.json = true;
        else if (!strcmp(name, "--isa")) o.isa = value, i++;
        else if (!strcmp(name, "--layout")) o.layout = value, i++;
        else if (!strcmp(name, "--tokens")) o.tokens = value, i++;
        else if (!strcmp(name, "--rows")) o.rows = strtoul(value, NULL, 10), i++;
        else if (!strcmp(name, "--k")) o.k = strtoul(value, NULL, 10), i++;
        else if (!strcmp(name, "--calls")) o.calls = strtol(value, NULL, 10), i++;
        else {
            fprintf(stderr, "kernels: %s: no such option\n", name);
            exit(2);
        }
    }
    if (o.isa && !strcmp(o.isa, "best")) o.isa = sn_simd_best()->name;
    if (o.rows % 16 || !o.rows || o.rows > 1 << 20 || o.k % 256 || !o.k || o.k > 1 << 16) {
        fprintf(stderr, "kernels: %zu rows of %zu: rows are a multiple of 16, k one of 256\n",
                o.rows, o.k);
        exit(2);
    }
    return o;
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    int shown = 0;
    if (!o.json && !o.calls)
        printf("| back end | type | activations | matrix | tokens | GMAC/s | GB/s |\n"
               "| --- | --- | --- | --- | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        if (o.layout && strcmp(o.layout, layouts[i].name)) continue;
        for (size_t b = 0; sn_simd_at(b); b++) {
            const sn_simd *simd = sn_simd_at(b);
            if (!sn_simd_usable(simd) || (o.isa && strcmp(o.isa, simd->name))) continue;
            show_layout(&o, simd, i);
            shown++;
        }
    }
    if (!shown) fprintf(stderr, "kernels: no such back end here, or no such type\n");
    return shown ? 0 : 1;
}
