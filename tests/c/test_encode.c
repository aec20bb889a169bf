/*
 * Encoding by search: never worse than plain rounding, exact where that is possible, sound for any
 * finite values, and the same bytes on every target. No arguments.
 */
#include "check.h"

#include "quant/types.h"

#include <math.h>

/* How the quantised types stand for values: code * scale, in blocks or in groups of a block whose
 * integer scales (and minima) are multiples of one half. */
static const struct encoding {
    uint32_t id;
    int group;        /* values that share a scale */
    double low, high; /* codes; -127 and 113 are the book's */
    double limit;     /* of the integer scales, negative if they are signed; 0: halves */
    bool minimum;
    uint64_t hash; /* of what test_encode_search encodes, on every target */
} encodings[] = {
    {SN_TYPE_Q8_0, 32, -127, 127, 0, false, 0xd49cf5d21a584661u},
    {SN_TYPE_Q4_0, 32, -8, 7, 0, false, 0xd751e4cce6e73097u},
    {SN_TYPE_Q4_1, 32, 0, 15, 0, true, 0x07a8cd221b84957au},
    {SN_TYPE_Q5_0, 32, -16, 15, 0, false, 0x886fe202e6797029u},
    {SN_TYPE_Q5_1, 32, 0, 31, 0, true, 0x0dca7ba0c38e002fu},
    {SN_TYPE_IQ4_NL, 32, -127, 113, 0, false, 0xfea0835009989b1du},
    {SN_TYPE_Q2_K, 16, 0, 3, 15, true, 0x77f2cc8aafb5284eu},
    {SN_TYPE_Q3_K, 16, -4, 3, -32, false, 0xe6ff7ff1821a8bf5u},
    {SN_TYPE_Q4_K, 32, 0, 15, 63, true, 0xa56bab041e2270bcu},
    {SN_TYPE_Q5_K, 32, 0, 31, 63, true, 0x93c94afd5bf4c47fu},
    {SN_TYPE_Q6_K, 16, -32, 31, -128, false, 0x1eb00474f7782c80u},
    {SN_TYPE_IQ4_XS, 32, -127, 113, -32, false, 0x24fa209732d8c870u},
};
#define N_ENCODINGS (sizeof encodings / sizeof encodings[0])

/* Scales beyond a half's range are seen; scales below it make zeros, not undefined codes. */
static void test_encode_extremes(const struct encoding *e) {
    const sn_type *type = sn_type_find(e->id);
    static const float large[] = {9e6f, -9e6f, 3e9f, -3.4e38f, 3.4e38f};
    float x[256] = {0}, back[256];
    uint8_t bytes[272];
    const double most = 65504.0 * (e->limit != 0 ? fabs(e->limit) : 1) *
                        (e->minimum && e->limit == 0 ? 1 : fmax(-e->low, e->high));
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        for (int j = 0; j < 256; j++) x[j] = j % 7 == 3 ? large[i] : j % 5 == 1 ? -large[i] / 2 : 0;
        type->encode(x, bytes, 256);
        CHECK(!type->finite(bytes, 256) || fabs((double)large[i]) < 1.1 * most, "%s of %g",
              type->name, (double)large[i]);
    }
    memset(x, 0, sizeof x);
    x[3] = -1e-44f;
    x[4] = 3e-39f;
    x[200] = 1e-12f;
    type->encode(x, bytes, 256);
    CHECK(type->finite(bytes, 256), "%s tiny", type->name);
    type->decode(bytes, back, 256);
    for (int j = 0; j < 256; j++)
        CHECK(fabsf(back[j]) <= 0x1p-24f * 31, "%s tiny: element %d", type->name, j);
    memset(x, 0, sizeof x);
    type->encode(x, bytes, 256);
    type->decode(bytes, back, 256);
    for (int j = 0; j < 256; j++)
        CHECK(back[j] == 0, "%s: element %d of zeros", type->name, j);
}

static double nearest_code(const struct encoding *e, double c) {
    static const double book[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
    if (e->low > -127 || e->high == 127) return fmax(e->low, fmin(e->high, rint(c)));
    double best = book[0];
    for (int i = 1; i < 16; i++)
        if (fabs(book[i] - c) < fabs(best - c)) best = book[i];
    return best;
}

static double half_of(double x) {
    return (double)sn_f16_to_f32(sn_f32_to_f16((float)x));
}

/* Scale and minimum from the extreme values of a group. */
static void plain_scale(const struct encoding *e, const float *x, double *scale, double *minimum) {
    double low = e->limit != 0 ? 0 : (double)x[0], high = low, extreme = 0;
    for (int i = 0; i < e->group; i++) {
        low = fmin(low, (double)x[i]);
        high = fmax(high, (double)x[i]);
        if (fabs((double)x[i]) > fabs(extreme)) extreme = (double)x[i];
    }
    *minimum = e->minimum ? low : 0;
    *scale = e->minimum ? (high - low) / e->high : extreme / e->low;
}

/* The sum of squared errors of plain rounding over a block, scales and all. */
static double plain_error(const struct encoding *e, const float *x, int block) {
    double scale[16], minimum[16], top = 0, bottom = 0, sum = 0;
    for (int g = 0; g < block / e->group; g++) {
        plain_scale(e, x + g * e->group, &scale[g], &minimum[g]);
        if (fabs(scale[g]) > fabs(top)) top = scale[g];
        bottom = fmin(bottom, minimum[g]);
    }
    const double d = half_of(top / e->limit), dmin = half_of(bottom / e->limit);
    for (int g = 0; g < block / e->group; g++) {
        double s = half_of(scale[g]), m = half_of(minimum[g]);
        if (e->limit != 0) {
            s = d == 0 ? 0 : d * fmin(fabs(e->limit) - (e->limit < 0), rint(scale[g] / d));
            m = dmin == 0 ? 0 : dmin * rint(minimum[g] / dmin);
        }
        for (int i = g * e->group; i < (g + 1) * e->group; i++) {
            const double code = nearest_code(e, s == 0 ? 0 : ((double)x[i] - m) / s);
            const double error = (double)x[i] - m - s * code;
            sum += error * error;
        }
    }
    return sum;
}

#define N_SHAPES 8

/* 256 values such as weights may be, and some that they should not be. */
static void random_values(check_random *random, int shape, float *x) {
    const float size = ldexpf(1.0f, (int)check_below(random, 24) - 16);
    for (int i = 0; i < 256; i++) {
        const float u = check_float(random), v = check_float(random), w = check_float(random);
        switch (shape) {
        case 0: x[i] = u + v + w + check_float(random); break; /* about Gaussian */
        case 1: x[i] = u; break;
        case 2: x[i] = u * v * w; break;                /* long tails */
        case 3: x[i] = u < 0 ? -u : u; break;           /* one-sided */
        case 4: x[i] = -1.0f - 0.1f * u; break;         /* far from zero */
        case 5: x[i] = v > 0.9f ? u : 0.0f; break;      /* few */
        case 6: x[i] = i % 32 == 7 ? 8 * u : u; break;  /* outliers */
        default: x[i] = i < 64 ? 0.75f : (float)(i % 37 - 18) * 0.125f; break; /* steps */
        }
        x[i] *= size;
    }
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static double squared_error(const float *x, const float *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double error = (double)x[i] - (double)y[i];
        sum += error * error;
    }
    return sum;
}

/* Never worse than plain rounding: each block of 32, and 256-blocks taken together. Q8_0 and Q4_0
 * are plain; test_encode has their bytes. */
static void test_encode_search(const struct encoding *e) {
    const sn_type *type = sn_type_find(e->id);
    const int block = (int)type->block;
    const bool search = e->id != SN_TYPE_Q8_0 && e->id != SN_TYPE_Q4_0;
    uint64_t hash = 0xcbf29ce484222325u;
    float x[256], back[256];
    uint8_t bytes[272];
    for (int shape = 0; shape < N_SHAPES; shape++) {
        check_random random = {(uint64_t)shape + 1};
        double found = 0, plain = 0;
        for (int i = 0; i < 40; i++) {
            random_values(&random, shape, x);
            type->encode(x, bytes, 256);
            hash = hash_bytes(hash, bytes, (size_t)sn_type_bytes(type, 256));
            type->decode(bytes, back, 256);
            for (int at = 0; at < 256; at += block) {
                const double f = squared_error(x + at, back + at, block);
                const double p = plain_error(e, x + at, block), size = (double)(x[0] * x[0]);
                found += f / (size + 1e-12);
                plain += p / (size + 1e-12);
                CHECK(block == 256 || !search || f <= p * 1.00001 + 1e-20,
                      "%s: shape %d: %g, plain %g", type->name, shape, f, p);
            }
        }
        CHECK(!search || found <= plain * 1.001 + 1e-12, "%s: shape %d: %g, plain %g",
              type->name, shape, found, plain);
    }
    CHECK(hash == e->hash, "%s: hash 0x%016llx", type->name, (unsigned long long)hash);
}

/* Values that the type can hold exactly come back, if the outermost codes are among them. */
static void test_encode_exact(const struct encoding *e) {
    const sn_type *type = sn_type_find(e->id);
    float x[256], back[256];
    uint8_t bytes[272];
    for (int i = 0; i < 256; i++) {
        const double span = e->high - e->low;
        double c = e->low + (i % 32 == 0 ? 0 : i % 32 == 31 ? span : fmod(i * 7, span + 1));
        if (i % 16 == 5) c = e->low; /* so that each group has them */
        if (i % 16 == 6) c = e->high;
        x[i] = (float)nearest_code(e, c) * 0.25f - (e->minimum ? 0.5f : 0.0f);
    }
    type->encode(x, bytes, 256);
    type->decode(bytes, back, 256);
    const double error = sqrt(squared_error(x, back, 256) / 256);
    /* 256-blocks: 0.25 and 0.5 are halves times integers to 11 bits only */
    CHECK(error <= (type->block == 32 ? 0.0 : 0.25 * fmax(e->high, -e->low) * 0x1p-11),
          "%s: %g", type->name, error);
}

int main(void) {
    for (size_t i = 0; i < N_ENCODINGS; i++) {
        test_encode_extremes(&encodings[i]);
        test_encode_search(&encodings[i]);
        test_encode_exact(&encodings[i]);
    }
    return check_report("encode");
}
