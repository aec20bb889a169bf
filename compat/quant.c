/* quant.c: the seed's sunnynet_quant: INT4 groups and products with them. */
#include "inside.h"

SN_EXPORT void sn_quant_i4(const float *x, uint8_t *q, float *scale, int rows, int N, int block);
SN_EXPORT void sn_dequant_i4(const uint8_t *q, const float *scale, float *x, int rows, int N,
                             int block);
SN_EXPORT void sn_gemv_i4(float *y, const float *x, const uint8_t *Wq, const float *scale, int in,
                          int out, int block);
SN_EXPORT void sn_gemv_f32(float *y, const float *x, const float *W, int in, int out);

void sn_quant_i4(const float *x, uint8_t *q, float *scale, int rows, int N, int block) {
    sn_inside_quant_i4(x, q, scale, rows, N, block);
}

void sn_dequant_i4(const uint8_t *q, const float *scale, float *x, int rows, int N, int block) {
    sn_inside_dequant_i4(q, scale, x, rows, N, block);
}

void sn_gemv_i4(float *y, const float *x, const uint8_t *Wq, const float *scale, int in, int out,
                int block) {
    sn_inside_gemv_i4(y, x, Wq, scale, in, out, block);
}

void sn_gemv_f32(float *y, const float *x, const float *W, int in, int out) {
    sn_inside_gemv_f32(y, x, W, in, out);
}
