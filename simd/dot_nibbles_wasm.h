/*
 * dot_nibbles_wasm.h: the dot products of dot_nibbles_scalar.h for both WebAssembly back ends.
 * Eight products are added in 16 bits: 8 x 15 x 127 = 15,240 fits.
 */
#ifndef SN_SIMD_DOT_NIBBLES_H
#define SN_SIMD_DOT_NIBBLES_H

typedef v128_t nibble_sum;

SN_INLINE nibble_sum nibbles_start(void) { return wasm_i32x4_splat(0); }

SN_INLINE v128_t add_products(v128_t sum, v128_t code, const int8_t *x) {
    const v128_t a = wasm_v128_load(x);
    sum = wasm_i16x8_add(sum, wasm_i16x8_extmul_low_i8x16(code, a));
    return wasm_i16x8_add(sum, wasm_i16x8_extmul_high_i8x16(code, a));
}

SN_INLINE nibble_sum nibbles_add(nibble_sum sum, const uint8_t *codes, const int8_t *x) {
    v128_t products = wasm_i16x8_splat(0);
    for (int i = 0; i < 2; i++) {
        const v128_t both = wasm_v128_load(codes + 16 * i);
        products = add_products(products, wasm_v128_and(both, wasm_i8x16_splat(15)), x + 16 * i);
        products = add_products(products, wasm_u8x16_shr(both, 4), x + 32 + 16 * i);
    }
    return wasm_i32x4_add(sum, wasm_i32x4_extadd_pairwise_i16x8(products));
}

/* Sums of neighbouring lanes, those of a first. */
SN_INLINE v128_t add_neighbours(v128_t a, v128_t b) {
    return wasm_i32x4_add(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6),
                          wasm_i32x4_shuffle(a, b, 1, 3, 5, 7));
}

SN_INLINE void nibbles_totals(int32_t total[4], const nibble_sum *sum) {
    wasm_v128_store(total, add_neighbours(add_neighbours(sum[0], sum[1]),
                                          add_neighbours(sum[2], sum[3])));
}

#endif
