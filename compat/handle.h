/*
 * handle.h: the functions that each of the seed's model libraries has under its own prefix, for an
 * architecture that its blob names by itself.
 */
#ifndef SN_COMPAT_HANDLE_H
#define SN_COMPAT_HANDLE_H

#include "inside.h"

#include <string.h>

/* load, free, reset, step, prefill, vocab, ready */
#define SN_HANDLE(prefix, architecture)                                                        \
    SN_EXPORT sn_inside_model *prefix##_load(const char *path);                                \
    SN_EXPORT void prefix##_free(sn_inside_model *m);                                          \
    SN_EXPORT void prefix##_reset(sn_inside_model *m);                                         \
    SN_EXPORT void prefix##_step(sn_inside_model *m, int token, float *logits);                \
    SN_EXPORT void prefix##_prefill(sn_inside_model *m, const int *tokens, int n,              \
                                    float *logits);                                            \
    SN_EXPORT int prefix##_vocab(const sn_inside_model *m);                                    \
    SN_EXPORT int prefix##_ready(const sn_inside_model *m);                                    \
    sn_inside_model *prefix##_load(const char *path) {                                         \
        return sn_inside_load(path, architecture, NULL, 0);                                    \
    }                                                                                          \
    void prefix##_free(sn_inside_model *m) { sn_inside_free(m); }                              \
    void prefix##_reset(sn_inside_model *m) { sn_inside_reset(m); }                            \
    void prefix##_step(sn_inside_model *m, int token, float *logits) {                         \
        sn_inside_prefill(m, &token, 1, logits);                                               \
    }                                                                                          \
    void prefix##_prefill(sn_inside_model *m, const int *tokens, int n, float *logits) {       \
        sn_inside_prefill(m, tokens, n, logits);                                               \
    }                                                                                          \
    int prefix##_vocab(const sn_inside_model *m) { return sn_inside_vocab(m); }                \
    int prefix##_ready(const sn_inside_model *m) { return m != NULL; }

/* set_threads, get_threads */
#define SN_HANDLE_THREADS(prefix)                                                              \
    SN_EXPORT void prefix##_set_threads(int n);                                                \
    SN_EXPORT int prefix##_get_threads(void);                                                  \
    void prefix##_set_threads(int n) { sn_inside_set_threads(n); }                             \
    int prefix##_get_threads(void) { return sn_inside_threads(); }

/* dbg: the residual stream behind layer `layer` (< 0: the last one), D floats. */
#define SN_HANDLE_DBG(prefix)                                                                  \
    SN_EXPORT void prefix##_dbg(sn_inside_model *m, int token, int layer, float *out);         \
    void prefix##_dbg(sn_inside_model *m, int token, int layer, float *out) {                  \
        sn_inside_look(m, token, 0, layer, sn_keep_x, out);                                    \
    }

static inline void sn_keep_x(void *user, const char *name, const float *values, size_t width) {
    if (strcmp(name, "x") == 0) memcpy(user, values, width * sizeof *values);
}

/* probe: one array of one layer, which is given the token's embedding. */
typedef struct sn_wanted {
    const char *name;
    float *out;
} sn_wanted;

static inline void sn_keep_wanted(void *user, const char *name, const float *values,
                                  size_t width) {
    const sn_wanted *wanted = user;
    if (strcmp(name, wanted->name) == 0) memcpy(wanted->out, values, width * sizeof *values);
}

#endif
