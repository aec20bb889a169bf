/*
 * inside.h: what the compatibility libraries need of the library's inside. inside*.c and the whole
 * core become one object whose only global names are these and the public ones: the seed's names
 * (sn_free, ...) can then mean something else than ours.
 */
#ifndef SN_COMPAT_INSIDE_H
#define SN_COMPAT_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SN_EXPORT __declspec(dllexport)
#else
#define SN_EXPORT __attribute__((visibility("default")))
#endif
#define SN_INSIDE __attribute__((visibility("default"))) /* of the object, not of the library */

/* ---- threads: one number for each compatibility library ------------------------------------- */

/* n < 1 changes nothing. */
SN_INSIDE void sn_inside_set_threads(int n);
SN_INSIDE int sn_inside_threads(void);
SN_INSIDE int sn_inside_cores(void);

/* ---- models: a blob and one state ----------------------------------------------------------- */

typedef struct sn_inside_model sn_inside_model;

/* NULL unless `path` is a packed blob of this architecture whose first n words are `words`. */
SN_INSIDE sn_inside_model *sn_inside_load(const char *path, const char *architecture,
                                          const int32_t *words, size_t n);
SN_INSIDE void sn_inside_free(sn_inside_model *m);
SN_INSIDE void sn_inside_reset(sn_inside_model *m);
SN_INSIDE int sn_inside_vocab(const sn_inside_model *m);

/* The seed's functions return nothing: if this one cannot compute, every logit is a NaN. */
SN_INSIDE void sn_inside_prefill(sn_inside_model *m, const int *tokens, int n, float *logits);

/*
 * Runs layers first..last (those there are; last < 0: to the end) on a token, which moves the
 * state on, and calls see() with what pass.h shows. A token outside the vocabulary shows nothing.
 */
typedef void (*sn_inside_see)(void *user, const char *name, const float *values, size_t width);
SN_INSIDE void sn_inside_look(sn_inside_model *m, int token, int first, int last,
                              sn_inside_see see, void *user);

/* Natural logarithm, correctly rounded but for the last bit. */
SN_INSIDE float sn_inside_log(float x);

/* ---- arrays, as in core/recurrence.h -------------------------------------------------------- */

SN_INSIDE void sn_inside_scan(const float *a, const float *b, const float *s0, float *out,
                              float *send, int B, int T, int N, int gated);
SN_INSIDE void sn_inside_scan_backward(const float *a, const float *b, const float *s0,
                                       const float *out, const float *dout, float *da, float *db,
                                       float *ds0, int B, int T, int N, int gated);
SN_INSIDE void sn_inside_scan_step(const float *a, const float *b, float *s, int B, int N,
                                   int gated);
SN_INSIDE void sn_inside_rank1(float *S, const float *w, const float *u, const float *v,
                               const float *k, const float *b, const float *r, float *y,
                               float *pbuf, int heads, int R, int C);

/* block <= 0: whole rows for INT8, 64 for INT4. */
SN_INSIDE void sn_inside_quant_i8(const float *x, int8_t *q, float *scale, int B, int N, int block);
SN_INSIDE void sn_inside_dequant_i8(const int8_t *q, const float *scale, float *x, int B, int N,
                                    int block);
SN_INSIDE void sn_inside_quant_i4(const float *x, uint8_t *q, float *scale, int rows, int N,
                                  int block);
SN_INSIDE void sn_inside_dequant_i4(const uint8_t *q, const float *scale, float *x, int rows,
                                    int N, int block);

/* y [out] = W x; NaNs if the groups do not divide `in` or memory is short. */
SN_INSIDE void sn_inside_gemv_i4(float *y, const float *x, const uint8_t *q, const float *scale,
                                 int in, int out, int block);
SN_INSIDE void sn_inside_gemv_f32(float *y, const float *x, const float *W, int in, int out);

/* ---- SunnyNet's fused core (inside_core.c) --------------------------------------------------- */

SN_INSIDE void sn_inside_core(const float *q, const float *delta, const float *s0, float *states,
                              float *u, float *p, int B, int T, int D);
SN_INSIDE void sn_inside_core_backward(const float *q, const float *delta, const float *s0,
                                       const float *states, const float *u, const float *p,
                                       const float *dstates, const float *du, float *dq,
                                       float *ddelta, float *ds0, int B, int T, int D);
SN_INSIDE void sn_inside_core_step(const float *q, const float *delta, const float *s, float *s_new,
                                   float *u, int B, int D);
SN_INSIDE void sn_inside_taps_step(const float *x, const float *history, const float *w, float *y,
                                   int B, int D, int taps);

#endif
