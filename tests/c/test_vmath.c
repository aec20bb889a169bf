/*
 * test_vmath: the elementary functions against float64, in units in the last place (ulp).
 * Usage: test_vmath               every 2003rd float32 and all near the interval ends, "scalar"
 *        test_vmath --all [NAME]  every float32, with the fastest back end (the same bits:
 *                                 core/selftest.c), and prints the largest error
 * The C library's double functions are off by about 2^-53: nothing at this scale.
 */
#include "check.h"
#include "simd.h"

#include <math.h>

#define CHUNK 4096

typedef struct function {
    const char *name;
    size_t at; /* of the kernel's pointer in sn_simd */
    double (*exact)(double x);
    double bound; /* ulp; simd/vmath.inl and docs/determinism.md state the same figures */
    double lost;  /* beside that, where a factor of the result has become subnormal */
} function;

static double exact_sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double exact_softplus(double x) {
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* c as the kernel has it: the float32 next to exp(-1/2) (docs/determinism.md, section 6) */
static double exact_decay(double x) {
    return exp(-(double)0x1.368b30p-1f * exact_sigmoid(x));
}

static double exact_log_sigmoid(double x) {
    return -exact_softplus(-x);
}

static double exact_silu(double x) {
    return x / (1.0 + exp(-x));
}

static double exact_elu_plus_one(double x) {
    return x > 0.0 ? x + 1.0 : exp(x);
}

#define AT(KERNEL) offsetof(sn_simd, KERNEL)
static const function functions[] = {
    { "exp", AT(exp), exp, 1.0, 0.0 },
    { "tanh", AT(tanh), tanh, 1.3, 0.0 },
    { "sigmoid", AT(sigmoid), exact_sigmoid, 2.5, 0.0 },
    { "log1p", AT(log1p), log1p, 0.9, 0.0 },
    { "softplus", AT(softplus), exact_softplus, 1.7, 0.0 },
    { "decay_rwkv7", AT(decay_rwkv7), exact_decay, 1.4, 0.0 },
    { "log_sigmoid", AT(log_sigmoid), exact_log_sigmoid, 1.7, 0.0 },
    { "silu", AT(silu), exact_silu, 3.2, 0x1p-142 },
    { "elu_plus_one", AT(elu_plus_one), exact_elu_plus_one, 1.0, 0.0 },
};
#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

static sn_map kernel_of(const sn_simd *table, const function *f) {
    sn_map kernel;
    memcpy(&kernel, (const char *)table + f->at, sizeof kernel);
    return kernel;
}

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static float apply(const sn_simd *table, const function *f, float x) {
    float y;
    kernel_of(table, f)(&y, &x, 1);
    return y;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static double clamp(double x) { /* an infinity stands for 2^128, where float32 ends */
    return x > 0x1p128 ? 0x1p128 : x < -0x1p128 ? -0x1p128 : x;
}

/* |got - exact|, less what may be lost, in ulp of the float32 nearest to `exact`, whose ulp is at
 * least 2^-149. */
static double error_of(float got, double exact, double lost) {
    uint64_t bits;
    double scale;
    if (exact != exact || got != got) return (exact != exact) == (got != got) ? 0.0 : HUGE_VAL;
    memcpy(&bits, &exact, 8);
    uint64_t exponent = bits >> 52 & 0x7ff;
    if (exponent < 1023 - 126) exponent = 1023 - 126;
    if (exponent > 1023 + 127) exponent = 1023 + 127;
    bits = (2046 - (exponent - 23)) << 52; /* 1 / ulp */
    memcpy(&scale, &bits, 8);
    return fmax(0.0, fabs(clamp(got) - clamp(exact)) - lost) * scale;
}

typedef struct worst {
    double error;
    float x, got;
} worst;

/* The floats with bits first, first + step, ...: `count` of them. */
static void measure(const sn_simd *table, const function *f, uint64_t first, uint64_t step,
                    uint64_t count, worst *w) {
    static float x[CHUNK], y[CHUNK];
    const sn_map kernel = kernel_of(table, f);
    for (uint64_t done = 0; done < count;) {
        const size_t n = count - done < CHUNK ? (size_t)(count - done) : CHUNK;
        for (size_t i = 0; i < n; i++) x[i] = float_of((uint32_t)(first + (done + i) * step));
        kernel(y, x, n);
        for (size_t i = 0; i < n; i++) {
            const double error = error_of(y[i], f->exact(x[i]), f->lost);
            if (error > w->error) *w = (worst){ error, x[i], y[i] };
        }
        done += n;
    }
}

static void check_bound(const function *f, const worst *w) {
    CHECK(w->error <= f->bound, "%s(%a) = %a, off by %.3f ulp (bound %.1f)", f->name,
          (double)w->x, (double)w->got, w->error, f->bound);
}

/* Where a function changes its formula, ends, overflows or becomes subnormal. */
static void check_sample(const sn_simd *table, const function *f) {
    static const float ends[] = {
        0.0f, 0x1p-149f, 0x1p-126f, 0x1p-24f, 0.65f, 0.34657359f, 1.0f, 0.29289322f, 0.41421356f,
        8.6643398f, 9.0109f, 16.6355f, 17.3287f, 87.33655f, 88.72284f, 89.0f, 103.27893f,
        103.97208f, 104.0f, 0x1p24f, 0x1p127f, 0x1.fffffep127f
    };
    worst w = { 0 };
    measure(table, f, 0, 2003, ((uint64_t)1 << 32) / 2003, &w);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            const uint32_t bits = bits_of(ends[i]) | sign << 31;
            measure(table, f, (uint32_t)(bits - 3000), 1, 6001, &w);
        }
    check_bound(f, &w);
}

static void check_all(const char *wanted) {
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        const function *f = &functions[i];
        worst w = { 0 };
        if (wanted && strcmp(wanted, f->name) != 0) continue;
        measure(sn_simd_best(), f, 0, 1, (uint64_t)1 << 32, &w);
        printf("%-12s %.4f ulp at %a (%s)\n", f->name, w.error, (double)w.x,
               sn_simd_best()->name);
        fflush(stdout);
        check_bound(f, &w);
    }
}

/* ---- special values -------------------------------------------------------------------------- */

/* Equal bits, so that -0 is not +0; a NaN is any NaN. */
static void expect(const sn_simd *table, const char *name, float x, float want) {
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        if (strcmp(functions[i].name, name) != 0) continue;
        const float got = apply(table, &functions[i], x);
        CHECK((got != got && want != want) || bits_of(got) == bits_of(want), "%s(%a) = %a, not %a",
              name, (double)x, (double)got, (double)want);
    }
}

static void check_special(const sn_simd *table) {
    const float inf = HUGE_VALF, nan = float_of(0x7fc00000), tiny = 0x1p-149f;
    const struct {
        const char *name;
        float x, want;
    } cases[] = {
        { "exp", -inf, 0.0f }, { "exp", inf, inf }, { "exp", 0.0f, 1.0f }, { "exp", -0.0f, 1.0f },
        { "exp", tiny, 1.0f }, { "exp", 0x1.fffffep127f, inf }, { "exp", -200.0f, 0.0f },
        { "tanh", inf, 1.0f }, { "tanh", -inf, -1.0f }, { "tanh", 0.0f, 0.0f },
        { "tanh", -0.0f, -0.0f }, { "tanh", tiny, tiny }, { "tanh", -tiny, -tiny },
        { "sigmoid", inf, 1.0f }, { "sigmoid", -inf, 0.0f }, { "sigmoid", 0.0f, 0.5f },
        { "sigmoid", -0.0f, 0.5f },
        { "log1p", -1.0f, -inf }, { "log1p", -1.0000001f, nan }, { "log1p", -inf, nan },
        { "log1p", inf, inf }, { "log1p", 0.0f, 0.0f }, { "log1p", -0.0f, -0.0f },
        { "log1p", tiny, tiny }, { "log1p", -tiny, -tiny },
        { "softplus", inf, inf }, { "softplus", -inf, 0.0f }, { "softplus", 0.0f, 0x1.62e430p-1f },
        { "softplus", 1e30f, 1e30f },
        { "decay_rwkv7", -inf, 1.0f }, { "decay_rwkv7", -200.0f, 1.0f },
        { "log_sigmoid", inf, -0.0f }, { "log_sigmoid", -inf, -inf },
        { "log_sigmoid", 0.0f, -0x1.62e430p-1f }, { "log_sigmoid", -1e30f, -1e30f },
        { "silu", inf, inf }, { "silu", -inf, nan }, { "silu", 0.0f, 0.0f },
        { "silu", -0.0f, -0.0f }, { "silu", -1e30f, -0.0f }, { "silu", 1e30f, 1e30f },
        { "elu_plus_one", inf, inf }, { "elu_plus_one", -inf, 0.0f },
        { "elu_plus_one", 0.0f, 1.0f }, { "elu_plus_one", -0.0f, 1.0f },
        { "elu_plus_one", tiny, 1.0f }, { "elu_plus_one", 0.5f, 1.5f },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(table, cases[i].name, cases[i].x, cases[i].want);
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        expect(table, functions[i].name, nan, nan);
        expect(table, functions[i].name, float_of(0xff800001), nan); /* signalling, negative */
    }
}

/* tanh is odd bit for bit; nothing leaves its range; what has saturated stays saturated. */
static void check_ranges(const sn_simd *table) {
    const function *tanh_ = &functions[1], *sigmoid = &functions[2], *decay = &functions[5];
    const float lowest = 0x1.17295ap-1f; /* below exp(-exp(-1/2)) = 0.5452.. by a few ulp */
    float last = -2.0f;
    for (uint32_t bits = 0; bits <= 0x7f800000; bits += 4099) {
        const float x = float_of(bits), t = apply(table, tanh_, x), s = apply(table, sigmoid, x);
        const float d = apply(table, decay, x), below = apply(table, sigmoid, -x);
        CHECK(bits_of(apply(table, tanh_, -x)) == (bits_of(t) ^ 0x80000000u), "at %a", (double)x);
        CHECK(t >= 0.0f && t <= 1.0f && s >= 0.5f && s <= 1.0f && below >= 0.0f && below <= 0.5f,
              "at %a", (double)x);
        CHECK(d >= lowest && d <= 1.0f, "decay(%a) = %a", (double)x, (double)d);
        CHECK(last < 1.0f || t == 1.0f, "tanh leaves 1 at %a", (double)x);
        last = t;
    }
    CHECK(apply(table, tanh_, 9.02f) == 1.0f, "tanh(9.02) has not saturated");
    CHECK(apply(table, sigmoid, 17.4f) == 1.0f, "sigmoid(17.4) has not saturated");
    CHECK(apply(table, sigmoid, -103.9f) > 0.0f, "sigmoid(-103.9) has lost its subnormals");
    CHECK(apply(table, sigmoid, -105.0f) == 0.0f, "sigmoid(-105) is not 0");
}

int main(int argc, char **argv) {
    const sn_simd *scalar = sn_simd_at(0);
    if (argc > 1 && strcmp(argv[1], "--all") == 0) {
        check_all(argc > 2 ? argv[2] : NULL);
        return check_report("vmath");
    }
    for (size_t i = 0; i < N_FUNCTIONS; i++) check_sample(scalar, &functions[i]);
    check_special(scalar);
    check_ranges(scalar);
    return check_report("vmath");
}
