/* kernels.c: the seed's sunnynet_kernels, which its training uses: the gated scan and SunnyNet's
 * fused core with their gradients, and single steps. */
#include "inside.h"

SN_EXPORT void sn_set_threads(int n);
SN_EXPORT void scan_f32(const float *p, const float *nu, const float *s0, float *out, float *send,
                        int B, int T, int N);
SN_EXPORT void scan_bwd_f32(const float *p, const float *nu, const float *s0, const float *out,
                            const float *dout, float *dp, float *dnu, float *ds0, int B, int T,
                            int N);
SN_EXPORT void core_fwd_f32(const float *q, const float *delta, const float *s0, float *states,
                            float *u, float *p, int B, int T, int D);
SN_EXPORT void core_bwd_f32(const float *q, const float *delta, const float *s0,
                            const float *states, const float *u, const float *p,
                            const float *dstates, const float *du, float *dq, float *ddelta,
                            float *ds0, int B, int T, int D);
SN_EXPORT void dw_step_f32(const float *x, const float *hist, const float *w, float *acc, int B,
                           int D, int taps);
SN_EXPORT void step_core_f32(const float *q, const float *delta, const float *s, float *s_new,
                             float *u_out, int B, int D);

void sn_set_threads(int n) {
    sn_inside_set_threads(n);
}

void scan_f32(const float *p, const float *nu, const float *s0, float *out, float *send, int B,
              int T, int N) {
    sn_inside_scan(p, nu, s0, out, send, B, T, N, 1);
}

void scan_bwd_f32(const float *p, const float *nu, const float *s0, const float *out,
                  const float *dout, float *dp, float *dnu, float *ds0, int B, int T, int N) {
    sn_inside_scan_backward(p, nu, s0, out, dout, dp, dnu, ds0, B, T, N, 1);
}

void core_fwd_f32(const float *q, const float *delta, const float *s0, float *states, float *u,
                  float *p, int B, int T, int D) {
    sn_inside_core(q, delta, s0, states, u, p, B, T, D);
}

void core_bwd_f32(const float *q, const float *delta, const float *s0, const float *states,
                  const float *u, const float *p, const float *dstates, const float *du,
                  float *dq, float *ddelta, float *ds0, int B, int T, int D) {
    sn_inside_core_backward(q, delta, s0, states, u, p, dstates, du, dq, ddelta, ds0, B, T, D);
}

void dw_step_f32(const float *x, const float *hist, const float *w, float *acc, int B, int D,
                 int taps) {
    sn_inside_taps_step(x, hist, w, acc, B, D, taps);
}

void step_core_f32(const float *q, const float *delta, const float *s, float *s_new, float *u_out,
                   int B, int D) {
    sn_inside_core_step(q, delta, s, s_new, u_out, B, D);
}
