/*
 * codecs.h: one function per type and direction; types.c collects them into its table.
 * `n` elements, a multiple of the type's block. Private to quant/.
 */
#ifndef SN_QUANT_CODECS_H
#define SN_QUANT_CODECS_H

#include <stddef.h>
#include <stdint.h>

/* The code book of the IQ4 types: what a nibble stands for. */
extern const int8_t sn_iq4_book[16];

void sn_decode_f32(const uint8_t *src, float *dst, size_t n);
void sn_decode_f16(const uint8_t *src, float *dst, size_t n);
void sn_decode_bf16(const uint8_t *src, float *dst, size_t n);
void sn_decode_q4_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_q4_1(const uint8_t *src, float *dst, size_t n);
void sn_decode_q5_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_q5_1(const uint8_t *src, float *dst, size_t n);
void sn_decode_q8_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_q2_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_q3_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_q4_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_q5_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_q6_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_iq4_nl(const uint8_t *src, float *dst, size_t n);
void sn_decode_iq4_xs(const uint8_t *src, float *dst, size_t n);
void sn_decode_tq1_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_tq2_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_mxfp4(const uint8_t *src, float *dst, size_t n);
void sn_decode_i4(const uint8_t *src, float *dst, size_t n);

void sn_encode_f32(const float *src, uint8_t *dst, size_t n);
void sn_encode_f16(const float *src, uint8_t *dst, size_t n);
void sn_encode_bf16(const float *src, uint8_t *dst, size_t n);
void sn_encode_q8_0(const float *src, uint8_t *dst, size_t n);
void sn_encode_q4_0(const float *src, uint8_t *dst, size_t n);
void sn_encode_q4_1(const float *src, uint8_t *dst, size_t n);
void sn_encode_q5_0(const float *src, uint8_t *dst, size_t n);
void sn_encode_q5_1(const float *src, uint8_t *dst, size_t n);
void sn_encode_iq4_nl(const float *src, uint8_t *dst, size_t n);
void sn_encode_q2_k(const float *src, uint8_t *dst, size_t n);
void sn_encode_q3_k(const float *src, uint8_t *dst, size_t n);
void sn_encode_q4_k(const float *src, uint8_t *dst, size_t n);
void sn_encode_q5_k(const float *src, uint8_t *dst, size_t n);
void sn_encode_q6_k(const float *src, uint8_t *dst, size_t n);
void sn_encode_iq4_xs(const float *src, uint8_t *dst, size_t n);
void sn_encode_i4(const float *src, uint8_t *dst, size_t n);

#endif
