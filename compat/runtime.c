/* runtime.c: the seed's sunnynet_runtime: recurrences and INT8 blocks on whole arrays. */
#include "inside.h"

SN_EXPORT void sn_set_threads(int n);
SN_EXPORT int sn_threads(void);
SN_EXPORT void sn_recur_scan(const float *a, const float *b, const float *s0, float *out,
                             float *send, int B, int T, int N, int gated);
SN_EXPORT void sn_recur_bwd(const float *a, const float *b, const float *s0, const float *out,
                            const float *dout, float *da, float *db, float *ds0, int B, int T,
                            int N, int gated);
SN_EXPORT void sn_recur_step(const float *a, const float *b, float *s, int B, int N, int gated);
SN_EXPORT void sn_mat_scan(float *S, const float *w, const float *u, const float *v,
                           const float *k, const float *b, const float *r, float *y, float *pbuf,
                           int NH, int R, int C);
SN_EXPORT void sn_quant_i8(const float *x, int8_t *q, float *scale, int B, int N, int block);
SN_EXPORT void sn_dequant_i8(const int8_t *q, const float *scale, float *x, int B, int N,
                             int block);

void sn_set_threads(int n) {
    sn_inside_set_threads(n);
}

int sn_threads(void) {
    return sn_inside_threads();
}

void sn_recur_scan(const float *a, const float *b, const float *s0, float *out, float *send,
                   int B, int T, int N, int gated) {
    sn_inside_scan(a, b, s0, out, send, B, T, N, gated);
}

void sn_recur_bwd(const float *a, const float *b, const float *s0, const float *out,
                  const float *dout, float *da, float *db, float *ds0, int B, int T, int N,
                  int gated) {
    sn_inside_scan_backward(a, b, s0, out, dout, da, db, ds0, B, T, N, gated);
}

void sn_recur_step(const float *a, const float *b, float *s, int B, int N, int gated) {
    sn_inside_scan_step(a, b, s, B, N, gated);
}

void sn_mat_scan(float *S, const float *w, const float *u, const float *v, const float *k,
                 const float *b, const float *r, float *y, float *pbuf, int NH, int R, int C) {
    sn_inside_rank1(S, w, u, v, k, b, r, y, pbuf, NH, R, C);
}

void sn_quant_i8(const float *x, int8_t *q, float *scale, int B, int N, int block) {
    sn_inside_quant_i8(x, q, scale, B, N, block);
}

void sn_dequant_i8(const int8_t *q, const float *scale, float *x, int B, int N, int block) {
    sn_inside_dequant_i8(q, scale, x, B, N, block);
}
