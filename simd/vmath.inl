/*
 * vmath.inl: elementary functions over the virtual vector, written once for every back end.
 *
 * Only exact IEEE operations in a fixed order. Polynomials are Chebyshev fits made for these
 * intervals. The bounds are the largest error seen against float64 over every float32
 * (tests/c/test_vmath.c, --all), rounded up:
 *   exp 1.0 ulp   tanh 1.3 ulp   sigmoid 2.5 ulp   log1p 0.9 ulp   softplus 1.7 ulp
 *   log_sigmoid 1.7 ulp   silu 3.2 ulp   elu_plus_one 1.0 ulp   decay_rwkv7 1.4 ulp
 * in units in the last place of the float32 result, subnormal results included; but silu's sigmoid
 * is subnormal for x < -87, which may cost another 2^-142.
 * A NaN gives a NaN.
 */

#define LOG2_E 0x1.715476p+0f
#define LN2_HI 0.693359375f        /* 355 / 512: n * LN2_HI is exact for |n| < 2^14 */
#define LN2_LO (-0x1.bd0106p-13f)  /* ln 2 - LN2_HI */

/* x = n ln 2 + r with |r| <= ln 2 / 2; exp(x) = 2^n exp(r), exp(r) = 1 + (r + r^2 q(r)). */
SN_INLINE vf vf_exp(vf x) {
    x = vf_max(vf_set1(-104.0f), vf_min(vf_set1(89.0f), x)); /* this order keeps a NaN */
    vf shifted = vf_add(vf_mul(x, vf_set1(LOG2_E)), vf_set1(SN_ROUND_MAGIC));
    vf n = vf_sub(shifted, vf_set1(SN_ROUND_MAGIC));
    vf r = vf_sub(x, vf_mul(n, vf_set1(LN2_HI)));
    r = vf_sub(r, vf_mul(n, vf_set1(LN2_LO)));
    vf q = vf_set1(0x1.a127fcp-13f);
    q = vf_mla(q, r, vf_set1(0x1.6d4690p-10f));
    q = vf_mla(q, r, vf_set1(0x1.1110e0p-7f));
    q = vf_mla(q, r, vf_set1(0x1.5554e6p-5f));
    q = vf_mla(q, r, vf_set1(0x1.555556p-3f));
    q = vf_mla(q, r, vf_set1(0.5f));
    vf e = vf_add(vf_set1(1.0f), vf_mla(vf_mul(r, r), q, r));
    /* 2^n in two steps, so that 2^128 overflows and subnormal results round once: the first
     * factor 2^(n >> 1) keeps e normal. n + 254 is positive, so a logical shift will do. */
    vi n_int = vi_sub(vi_of_bits(shifted), vi_set1(SN_ROUND_MAGIC_BITS));
    vi half = vi_shr(vi_add(n_int, vi_set1(254)), 1);      /* biased exponent of 2^(n >> 1) */
    vi rest = vi_sub(vi_add(n_int, vi_set1(254)), half);   /* and of 2^(n - (n >> 1)) */
    e = vf_mul(e, vf_of_bits(vi_shl(half, 23)));
    return vf_mul(e, vf_of_bits(vi_shl(rest, 23)));
}

/* 1 / (1 + e^-x); for x < 0 as e^x / (1 + e^x), which stays accurate down to subnormals. */
SN_INLINE vf vf_sigmoid(vf x) {
    vf one = vf_set1(1.0f);
    vf e = vf_exp(vf_neg(vf_abs(x)));
    return vf_div(vf_by_sign(x, e, one), vf_add(one, e));
}

/* a = |x|; a < 0.65: a + a^3 p(a^2), else 1 - 2 / (e^(2a) + 1); then the sign of x. */
SN_INLINE vf vf_tanh(vf x) {
    vf a = vf_abs(x), z = vf_mul(a, a);
    vf p = vf_set1(0x1.1e3e60p-9f);
    p = vf_mla(p, z, vf_set1(-0x1.0e15f4p-7f));
    p = vf_mla(p, z, vf_set1(0x1.641fc2p-6f));
    p = vf_mla(p, z, vf_set1(-0x1.b9ffcep-5f));
    p = vf_mla(p, z, vf_set1(0x1.1110d0p-3f));
    p = vf_mla(p, z, vf_set1(-0x1.555556p-2f));
    vf small = vf_mla(vf_mul(p, z), a, a);
    vf one = vf_set1(1.0f);
    vf e = vf_exp(vf_add(a, a));
    vf large = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(e, one)));
    vf y = vf_select(vf_less(a, vf_set1(0.65f)), small, large);
    vi sign = vi_and(vi_of_bits(x), vi_set1(INT32_MIN));
    return vf_of_bits(vi_or(vi_of_bits(y), sign));
}

/*
 * log(1 + x). u = 1 + x rounded = 2^n m with m in [sqrt(1/2), sqrt 2):
 *   n = 0: log(1 + f) with f = x itself, nothing lost
 *   else:  n ln 2 + log(1 + f), f = m - 1, plus (x - (u - 1)) / u for what rounding u lost
 * log(1 + f) = f - f^2 / 2 + f^3 p(f). |x| < 2^-25 is its own result, -0 included; x = -1 gives
 * -infinity, x < -1 a NaN.
 */
SN_INLINE vf vf_log1p(vf x) {
    const vf one = vf_set1(1.0f), infinity = vf_set1(float_of(0x7f800000u));
    vf u = vf_add(one, x);
    vf lost = vf_div(vf_sub(x, vf_sub(u, one)), u);
    vi scaled = vi_sub(vi_of_bits(u), vi_set1(0x3f3504f3)); /* bits of sqrt(1/2) */
    /* n = scaled >> 23, arithmetic: shift the sign in by a bias of 128 exponents */
    vi n_int = vi_sub(vi_shr(vi_add(scaled, vi_set1(128 << 23)), 23), vi_set1(128));
    vf m = vf_of_bits(vi_sub(vi_of_bits(u), vi_shl(n_int, 23)));
    vf n = vf_of_int(n_int);
    vm exact = vf_less(vf_abs(n), vf_set1(0.5f));
    vf f = vf_select(exact, x, vf_sub(m, one));
    lost = vf_select(exact, vf_zero(), lost);
    vf p = vf_set1(-0x1.fc663ep-5f);
    p = vf_mla(p, f, vf_set1(0x1.afa866p-4f));
    p = vf_mla(p, f, vf_set1(-0x1.b427a6p-4f));
    p = vf_mla(p, f, vf_set1(0x1.c411c6p-4f));
    p = vf_mla(p, f, vf_set1(-0x1.fdf7d8p-4f));
    p = vf_mla(p, f, vf_set1(0x1.2496b2p-3f));
    p = vf_mla(p, f, vf_set1(-0x1.555c68p-3f));
    p = vf_mla(p, f, vf_set1(0x1.9999a6p-3f));
    p = vf_mla(p, f, vf_set1(-0x1.fffff2p-3f));
    p = vf_mla(p, f, vf_set1(0x1.555556p-2f));
    vf f2 = vf_mul(f, f);
    vf tail = vf_mla(vf_mul(p, f), f2, vf_mul(vf_set1(-0.5f), f2));
    tail = vf_add(tail, vf_mla(n, vf_set1(LN2_LO), lost));
    vf y = vf_mla(n, vf_set1(LN2_HI), vf_add(f, tail));
    y = vf_select(vf_less(vf_abs(x), vf_set1(0x1p-25f)), x, y);
    /* the ends of the range: x = +inf, u = 0, u < 0 or NaN */
    y = vf_select(vf_less(x, infinity), y, vf_add(x, x));
    y = vf_select(vf_less(vf_zero(), u), y, vf_div(vf_zero(), vf_zero()));
    vm u_is_zero = vf_less(vf_abs(u), vf_set1(float_of(1)));
    return vf_select(u_is_zero, vf_neg(infinity), y);
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|) */
SN_INLINE vf vf_softplus(vf x) {
    return vf_add(vf_max(vf_zero(), x), vf_log1p(vf_exp(vf_neg(vf_abs(x)))));
}

/* RWKV-7 decay exp(-c sigmoid(x)), c = exp(-1/2) (Peng et al. 2025). */
SN_INLINE vf vf_decay_rwkv7(vf x) {
    return vf_exp(vf_mul(vf_set1(-0x1.368b30p-1f), vf_sigmoid(x)));
}

/* log(1 / (1 + e^-x)) */
SN_INLINE vf vf_log_sigmoid(vf x) {
    return vf_neg(vf_softplus(vf_neg(x)));
}

/* x / (1 + e^-x) (Elfwing et al. 2018) */
SN_INLINE vf vf_silu(vf x) {
    return vf_mul(x, vf_sigmoid(x));
}

/* The feature map of linear attention (Katharopoulos et al. 2020). */
SN_INLINE vf vf_elu_plus_one(vf x) {
    return vf_select(vf_less(vf_zero(), x), vf_add(x, vf_set1(1.0f)), vf_exp(x));
}

SN_INLINE vf vf_relu(vf x) {
    return vf_max(vf_zero(), x);
}

SN_INLINE vf vf_relu_squared(vf x) {
    vf r = vf_max(vf_zero(), x);
    return vf_mul(r, r);
}

SN_INLINE vf vf_one_minus(vf x) {
    return vf_sub(vf_set1(1.0f), x);
}
