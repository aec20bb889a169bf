/*
 * test_oracle_vectors: the scalar back end's element-wise kernels and reductions against
 * docs/determinism.md, sections 5 and 6: the bits of the operations as written there, and near what
 * float64 makes of the formula.
 */
#include "oracle.h"

#define MOST 2100

/* ---- element-wise ---------------------------------------------------------------------------- */

static void check_arithmetic(size_t n) {
    static float a[MOST], b[MOST], m[MOST], y[MOST];
    fill(a, n, 5.0f);
    fill(b, n, 1e-3f);
    fill(m, n, 2.0f);
    simd->add(y, a, b, n);
    for (size_t i = 0; i < n; i++) check_same("add", i, y[i], plus(a[i], b[i]));
    simd->sub(y, a, b, n);
    for (size_t i = 0; i < n; i++) check_same("sub", i, y[i], minus(a[i], b[i]));
    simd->mul(y, a, b, n);
    for (size_t i = 0; i < n; i++) check_same("mul", i, y[i], times(a[i], b[i]));
    simd->mla(y, a, b, m, n);
    for (size_t i = 0; i < n; i++) check_same("mla", i, y[i], plus(times(a[i], b[i]), m[i]));
    simd->lerp(y, a, b, m, n);
    for (size_t i = 0; i < n; i++)
        check_same("lerp", i, y[i], plus(times(m[i], minus(b[i], a[i])), a[i]));
}

static void check_with_number(size_t n) {
    static float a[MOST], x[MOST], y[MOST];
    const float s = number(3.0f), low = -fabsf(number(2.0f)), high = fabsf(number(2.0f));
    fill(a, n, 5.0f);
    fill(x, n, 1.0f);
    memcpy(y, x, n * sizeof(float));
    simd->axpy(y, s, a, n);
    for (size_t i = 0; i < n; i++) check_same("axpy", i, y[i], plus(times(s, a[i]), x[i]));
    simd->scale(y, s, a, n);
    for (size_t i = 0; i < n; i++) check_same("scale", i, y[i], times(s, a[i]));
    simd->clamp(y, a, low, high, n);
    for (size_t i = 0; i < n; i++)
        check_same("clamp", i, y[i], a[i] < low ? low : a[i] > high ? high : a[i]);
    simd->wedge(y, s, a, n);
    for (size_t i = 0; i < n; i++) {
        const double exact = (double)a[i] * (1.0 + (double)s / (1.0 + fabs((double)a[i])));
        const double size = fabs((double)a[i]) * (1.0 + fabs((double)s));
        check_same("wedge", i, y[i],
                   times(a[i], plus(1.0f, over(s, plus(1.0f, fabsf(a[i]))))));
        check_near("wedge", i, y[i], exact, 4.0 * U * size);
    }
}

/* What is composed of other kernels; test_vmath.c measures those and the longer ones of these. */
static void check_functions(size_t n) {
    static float x[MOST], a[MOST], s[MOST], y[MOST], negative[MOST];
    fill(x, n, 20.0f);
    fill(a, n, 3.0f);
    simd->relu(y, x, n);
    for (size_t i = 0; i < n; i++) check_same("relu", i, y[i], x[i] > 0.0f ? x[i] : 0.0f);
    simd->relu_squared(y, x, n);
    for (size_t i = 0; i < n; i++)
        check_same("relu_squared", i, y[i], x[i] > 0.0f ? times(x[i], x[i]) : 0.0f);
    simd->one_minus(y, x, n);
    for (size_t i = 0; i < n; i++) check_same("one_minus", i, y[i], minus(1.0f, x[i]));
    simd->sigmoid(s, x, n);
    simd->silu(y, x, n);
    for (size_t i = 0; i < n; i++) check_same("silu", i, y[i], times(x[i], s[i]));
    simd->mul_silu(y, a, x, n);
    for (size_t i = 0; i < n; i++)
        check_same("mul_silu", i, y[i], times(a[i], times(x[i], s[i])));
    simd->exp(s, x, n);
    simd->elu_plus_one(y, x, n);
    for (size_t i = 0; i < n; i++)
        check_same("elu_plus_one", i, y[i], x[i] > 0.0f ? plus(x[i], 1.0f) : s[i]);
    for (size_t i = 0; i < n; i++) negative[i] = -x[i];
    simd->softplus(s, negative, n);
    simd->log_sigmoid(y, x, n);
    for (size_t i = 0; i < n; i++) check_same("log_sigmoid", i, y[i], -s[i]);
}

/* Equal or unordered operands take the second of a maximum or minimum: the input itself. */
static void check_corners(void) {
    const float x[] = { -0.0f, 0.0f, -HUGE_VALF, HUGE_VALF, (float)NAN };
    const float relu[] = { -0.0f, 0.0f, 0.0f, HUGE_VALF, (float)NAN };
    const float clamped[] = { -0.0f, 0.0f, -2.0f, 3.0f, (float)NAN };
    const float wedge[] = { -0.0f, 0.0f, -HUGE_VALF, HUGE_VALF, (float)NAN };
    float y[5];
    for (size_t i = 0; i < 5; i++) {
        simd->relu(y, x, 5);
        CHECK(same(y[i], relu[i]) || (y[i] != y[i] && x[i] != x[i]), "relu(%a)", (double)x[i]);
        simd->clamp(y, x, -2.0f, 3.0f, 5);
        CHECK(same(y[i], clamped[i]) || (y[i] != y[i] && x[i] != x[i]), "clamp(%a)", (double)x[i]);
        simd->wedge(y, 0.5f, x, 5);
        CHECK(same(y[i], wedge[i]) || (y[i] != y[i] && x[i] != x[i]), "wedge(%a)", (double)x[i]);
    }
}

static void check_roots(void) {
    for (uint32_t bits = 0; bits < 0x7f800000; bits += 40009) {
        float x;
        memcpy(&x, &bits, 4);
        check_same("root", bits, simd->root(x), root(x));
    }
    CHECK(same(simd->root(-0.0f), -0.0f) && simd->root(HUGE_VALF) == HUGE_VALF, "root of the ends");
    CHECK(isnan(simd->root(-1.0f)) && isnan(simd->root((float)NAN)), "root of no number");
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The sum of section 5: lanes in ascending order, then the tree. */
static float lanes_sum(const float *terms, size_t n) {
    float lane[16] = { 0 };
    for (size_t i = 0; i < n; i++) lane[i % 16] = plus(lane[i % 16], terms[i]);
    for (size_t l = 0; l < 8; l++) lane[l] = plus(lane[l], lane[l + 8]);
    for (size_t l = 0; l < 4; l++) lane[l] = plus(lane[l], lane[l + 4]);
    return plus(plus(lane[0], lane[2]), plus(lane[1], lane[3]));
}

static float squares_sum(const float *x, size_t n) {
    static float terms[MOST];
    for (size_t i = 0; i < n; i++) terms[i] = times(x[i], x[i]);
    return lanes_sum(terms, n);
}

/* Roundings that one element of a sum over n sees: its lane's additions and the tree's four. */
static double depth(size_t n) {
    return (double)((n + 15) / 16) + 4.0;
}

static double exact_squares(const float *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static void check_layer_norm(size_t n, float scale, float offset, float eps) {
    static float x[MOST], w[MOST], b[MOST], y[MOST], d[MOST];
    double mean = 0.0, size = 0.0, variance = 0.0;
    fill(x, n, scale);
    for (size_t i = 0; i < n; i++) x[i] += offset;
    fill(w, n, 2.0f);
    fill(b, n, 1.0f);
    simd->layer_norm(y, x, w, b, n, eps);
    const float rounded_mean = over(lanes_sum(x, n), (float)n);
    for (size_t i = 0; i < n; i++) d[i] = minus(x[i], rounded_mean);
    const float factor = over(1.0f, root(plus(over(squares_sum(d, n), (float)n), eps)));
    for (size_t i = 0; i < n; i++) mean += x[i], size += fabs((double)x[i]);
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean);
    variance /= (double)n;
    const double s = 1.0 / sqrt(variance + (double)eps);
    /* the mean is off by e; then d = x - mean by e and a rounding, the variance, relatively, by its
     * sum's roundings and 2 e / deviation, its root by half of that, and three more roundings */
    const double e = (depth(n) + 2.0) * U * size / (double)n;
    const double relative = (depth(n) / 2.0 + 6.0) * U + e * s + e * e * s * s;
    for (size_t i = 0; i < n; i++) {
        const double away = (double)x[i] - mean, want = away * s * (double)w[i] + (double)b[i];
        check_near("layer_norm", i, y[i], want,
                   fabs((double)w[i]) * s * (e + fabs(away) * relative) + 2.0 * U * fabs(want));
        check_same("layer_norm", i, y[i], plus(times(times(d[i], factor), w[i]), b[i]));
    }
}

/* Sums of squares: a sum of positive terms, its root, and three roundings. */
static double norm_error(size_t n, double want) {
    return (depth(n) / 2.0 + 5.0) * U * fabs(want) + TINY;
}

static void check_rms_norm(size_t n, float scale, float eps) {
    static float x[MOST], w[MOST], y[MOST];
    fill(x, n, scale);
    fill(w, n, 2.0f);
    simd->rms_norm(y, x, w, n, eps);
    const double rms = sqrt(exact_squares(x, n) / (double)n + (double)eps);
    const float factor = over(1.0f, root(plus(over(squares_sum(x, n), (float)n), eps)));
    for (size_t i = 0; i < n; i++) {
        const double want = (double)x[i] / rms * (double)w[i];
        check_near("rms_norm", i, y[i], want, norm_error(n, want));
        check_same("rms_norm", i, y[i], times(times(x[i], factor), w[i]));
    }
}

/* With a floor below the root, or an epsilon below the sum. */
static void check_l2(size_t n, float scale, float floor, float eps) {
    static float x[MOST], y[MOST];
    fill(x, n, scale);
    const double sum = exact_squares(x, n);
    const float rounded = squares_sum(x, n), norm = root(rounded);
    const float factor = over(1.0f, floor > norm ? floor : norm);
    simd->l2_normalize(y, x, n, floor);
    for (size_t i = 0; i < n; i++) {
        const double want = (double)x[i] / fmax(sqrt(sum), (double)floor);
        check_near("l2_normalize", i, y[i], want, norm_error(n, want));
        check_same("l2_normalize", i, y[i], times(x[i], factor));
    }
    const float factor_eps = over(1.0f, root(plus(rounded, eps)));
    simd->l2_normalize_eps(y, x, n, eps);
    for (size_t i = 0; i < n; i++) {
        const double want = (double)x[i] / sqrt(sum + (double)eps);
        check_near("l2_normalize_eps", i, y[i], want, norm_error(n, want));
        check_same("l2_normalize_eps", i, y[i], times(x[i], factor_eps));
    }
}

/* Positive terms, as after exp: no cancellation, so the sum's relative error is its depth. */
static void check_sum_normalize(size_t n) {
    static float x[MOST], y[MOST];
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) x[i] = fabsf(number(3.0f)) + 0.001f;
    for (size_t i = 0; i < n; i++) sum += (double)x[i];
    simd->sum_normalize(y, x, n);
    const float factor = over(1.0f, lanes_sum(x, n));
    for (size_t i = 0; i < n; i++) {
        const double want = (double)x[i] / sum;
        check_near("sum_normalize", i, y[i], want, (depth(n) + 3.0) * U * want);
        check_same("sum_normalize", i, y[i], times(x[i], factor));
    }
}

static void check_dot3(size_t n) {
    static float a[MOST], b[MOST], c[MOST], terms[MOST];
    double sum = 0.0, size = 0.0;
    fill(a, n, 2.0f);
    fill(b, n, 3.0f);
    fill(c, n, 4.0f);
    for (size_t i = 0; i < n; i++) {
        const double term = (double)a[i] * (double)b[i] * (double)c[i];
        terms[i] = times(times(a[i], b[i]), c[i]);
        sum += term;
        size += fabs(term);
    }
    const float got = simd->dot3(a, b, c, n);
    check_near("dot3", n, got, sum, (depth(n) + 2.0) * U * size);
    check_same("dot3", n, got, lanes_sum(terms, n));
}

static void check_reductions(void) {
    for (size_t n = 1; n <= 2051; n += n < 70 ? 1 : 283) {
        check_layer_norm(n, 1.0f, 0.0f, 1e-5f);
        check_layer_norm(n, 1.0f, 8.0f, 1e-5f);
        check_layer_norm(n, 1e-4f, 0.0f, 64e-5f);
        check_layer_norm(n, 0.0f, 1.0f, 1e-5f); /* all equal: the variance is 0 */
        check_rms_norm(n, 1.0f, 1e-5f);
        check_rms_norm(n, 1e-4f, 1e-6f);
        check_rms_norm(n, 0.0f, 1e-5f);
        check_l2(n, 1.0f, 1e-12f, 1e-6f);
        check_l2(n, 1e-15f, 1e-12f, 1e-12f); /* below the floor */
        check_l2(n, 0.0f, 1e-12f, 1e-6f);
        check_sum_normalize(n);
        check_dot3(n);
    }
}

int main(void) {
    simd = sn_simd_at(0);
    for (size_t n = 1; n < 300; n += n < 40 ? 1 : 37) {
        check_arithmetic(n);
        check_with_number(n);
        check_functions(n);
    }
    check_corners();
    check_roots();
    check_reductions();
    return check_report("oracle_vectors");
}
