/*
 * codecs.h: one function per type and direction; types.c collects them into its table.
 * `n` elements, a multiple of the type's block. Private to quant/.
 */
#ifndef SN_QUANT_CODECS_H
#define SN_QUANT_CODECS_H

#include <stddef.h>
#include <stdint.h>

void sn_decode_f32(const uint8_t *src, float *dst, size_t n);
void sn_decode_f16(const uint8_t *src, float *dst, size_t n);
void sn_decode_bf16(const uint8_t *src, float *dst, size_t n);
void sn_decode_q4_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_q4_1(const uint8_t *src, float *dst, size_t n);
void sn_decode_q5_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_q5_1(const uint8_t *src, float *dst, size_t n);
void sn_decode_q8_0(const uint8_t *src, float *dst, size_t n);
void sn_decode_q4_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_q5_k(const uint8_t *src, float *dst, size_t n);
void sn_decode_q6_k(const uint8_t *src, float *dst, size_t n);

void sn_encode_f32(const float *src, uint8_t *dst, size_t n);
void sn_encode_f16(const float *src, uint8_t *dst, size_t n);
void sn_encode_bf16(const float *src, uint8_t *dst, size_t n);
void sn_encode_q8_0(const float *src, uint8_t *dst, size_t n);
void sn_encode_q4_0(const float *src, uint8_t *dst, size_t n);

#endif
