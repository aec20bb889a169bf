/*
 * dot_nibbles_avx2.h: the dot products of dot_nibbles_scalar.h for every x86 back end. maddubs adds
 * two products in 16 bits, and two of those are added: 4 x 15 x 127 = 7,620 fits.
 */
#ifndef SN_SIMD_DOT_NIBBLES_H
#define SN_SIMD_DOT_NIBBLES_H

typedef __m256i nibble_sum;

SN_INLINE nibble_sum nibbles_start(void) { return _mm256_set1_epi32(0); }

SN_INLINE nibble_sum nibbles_add(nibble_sum sum, const uint8_t *codes, const int8_t *x) {
    const __m256i both = _mm256_loadu_si256((const __m256i *)codes), mask = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(both, mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi32(both, 4), mask);
    const __m256i pairs =
        _mm256_add_epi16(_mm256_maddubs_epi16(low, _mm256_loadu_si256((const __m256i *)x)),
                         _mm256_maddubs_epi16(high, _mm256_loadu_si256((const __m256i *)x + 1)));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

SN_INLINE void nibbles_totals(int32_t total[4], const nibble_sum *sum) {
    const __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]),
                                        _mm256_hadd_epi32(sum[2], sum[3]));
    _mm_storeu_si128((__m128i *)(void *)total, _mm_add_epi32(_mm256_castsi256_si128(s),
                                                             _mm256_extracti128_si256(s, 1)));
}

#endif
