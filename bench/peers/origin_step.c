/*
 * origin_step.c: the speed of one of the origin's whole-model libraries, without Python.
 *
 *   origin_step LIBRARY PREFIX BLOB STEPS     PREFIX: sn_rk, sn_m2, sn_dn, sn_gla, sn_hg or sn
 *
 * Prints tokens a second, the best of three times STEPS. Threads: OMP_NUM_THREADS.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS 3

typedef void *load_function(const char *path);
typedef void *load_shape_function(const char *path, int vocab, int dim, int inner, int rank,
                                  int taps, int layers, int group, int tied);
typedef void step_function(void *model, int token, float *logits);
typedef int vocab_function(const void *model);

static void die(const char *what, const char *why) {
    fprintf(stderr, "origin_step: %s: %s\n", what, why);
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Through memory, because C has no cast from void * to a function. */
static void find(void *function, void *library, const char *prefix, const char *name) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s_%s", prefix, name);
    void *address = dlsym(library, symbol);
    if (!address) die(symbol, "not in the library");
    memcpy(function, &address, sizeof address);
}

/* SunnyNet's loader wants to hear what the blob's header says. */
static void *load_by_header(void *library, const char *path) {
    int32_t h[10];
    FILE *file = fopen(path, "rb");
    if (!file || fread(h, sizeof h, 1, file) != 1) die(path, "has no header");
    fclose(file);
    load_shape_function *load;
    find(&load, library, "sn", "load");
    return load(path, h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8]);
}

static void *load_model(void *library, const char *prefix, const char *path) {
    if (!strcmp(prefix, "sn")) return load_by_header(library, path);
    load_function *load;
    find(&load, library, prefix, "load");
    return load(path);
}

int main(int argc, char **argv) {
    if (argc != 5) die("usage", "origin_step LIBRARY PREFIX BLOB STEPS");
    const char *prefix = argv[2];
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) die(argv[1], dlerror());
    void *model = load_model(library, prefix, argv[3]);
    if (!model) die(argv[3], "could not be loaded");
    step_function *step;
    vocab_function *vocab;
    find(&step, library, prefix, "step");
    find(&vocab, library, prefix, "vocab");
    float *logits = malloc((size_t)vocab(model) * sizeof *logits);
    if (!logits) die("logits", "no memory");
    const int steps = atoi(argv[4]);
    double best = 0;
    for (int run = 0; run <= RUNS; run++) {
        const double start = seconds();
        for (int i = 0; i < steps; i++) step(model, (37 * i + run) % vocab(model), logits);
        const double rate = steps / (seconds() - start);
        if (run > 0 && rate > best) best = rate; /* the first run finds cold pages */
    }
    if (!(logits[0] == logits[0])) die(argv[3], "logits are not numbers");
    printf("%.4f\n", best);
    return 0;
}
