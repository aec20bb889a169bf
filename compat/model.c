/*
 * model.c: the seed's sunnynet_model: SunnyNet from its blob. A handle is ours; the seed's names
 * for it mean other things inside our library, which is why nothing of that is included here.
 */
#include "inside.h"

SN_EXPORT sn_inside_model *sn_load(const char *path, int vocab, int dim, int inner, int rank,
                                   int taps, int layers, int group, int tied);
SN_EXPORT sn_inside_model *sn_load_h(const char *path, int vocab, int dim, int inner, int rank,
                                     int taps, int layers, int group, int tied);
SN_EXPORT void sn_free(sn_inside_model *m);
SN_EXPORT void sn_reset(sn_inside_model *m);
SN_EXPORT void sn_step(sn_inside_model *m, int token, float *logits);
SN_EXPORT void sn_prefill(sn_inside_model *m, const int *tokens, int n, float *logits);
SN_EXPORT int sn_vocab(const sn_inside_model *m);
SN_EXPORT int sn_ready(const sn_inside_model *m);
SN_EXPORT void sn_set_threads(int n);
SN_EXPORT int sn_get_threads(void);
SN_EXPORT int sn_recommended_threads(void);

#define MAGIC 0x4e4e5355 /* "USNN" */

/* The file's header must say what the caller says. */
static sn_inside_model *load(const char *path, const int32_t sizes[8]) {
    const int32_t words[] = { MAGIC, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5],
                              sizes[6], sizes[7] };
    return sn_inside_load(path, "sunnynet", words, sizeof words / sizeof words[0]);
}

sn_inside_model *sn_load(const char *path, int vocab, int dim, int inner, int rank, int taps,
                         int layers, int group, int tied) {
    return load(path, (const int32_t[]){ vocab, dim, inner, rank, taps, layers, group, tied });
}

/* The seed rounds matrices to 16 bits here, to read less per step. Ours stay exact. */
sn_inside_model *sn_load_h(const char *path, int vocab, int dim, int inner, int rank, int taps,
                           int layers, int group, int tied) {
    return load(path, (const int32_t[]){ vocab, dim, inner, rank, taps, layers, group, tied });
}

void sn_free(sn_inside_model *m) {
    sn_inside_free(m);
}

void sn_reset(sn_inside_model *m) {
    sn_inside_reset(m);
}

void sn_step(sn_inside_model *m, int token, float *logits) {
    sn_inside_prefill(m, &token, 1, logits);
}

void sn_prefill(sn_inside_model *m, const int *tokens, int n, float *logits) {
    sn_inside_prefill(m, tokens, n, logits);
}

int sn_vocab(const sn_inside_model *m) {
    return sn_inside_vocab(m);
}

int sn_ready(const sn_inside_model *m) {
    return m != NULL;
}

void sn_set_threads(int n) {
    sn_inside_set_threads(n);
}

int sn_get_threads(void) {
    return sn_inside_threads();
}

int sn_recommended_threads(void) {
    return sn_inside_cores();
}
