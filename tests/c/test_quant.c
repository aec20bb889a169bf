/*
 * Types: names, 16-bit floats, decoding and encoding against the reference's bytes, panels there
 * and back. Usage: test_quant [tests/data]
 */
#include "check.h"

#include "quant/panel.h"
#include "quant/types.h"

#include <math.h>

static const uint32_t computable[] = {SN_TYPE_F32,  SN_TYPE_F16,  SN_TYPE_BF16, SN_TYPE_Q8_0,
                                      SN_TYPE_Q4_0, SN_TYPE_Q4_1, SN_TYPE_Q5_0, SN_TYPE_Q5_1,
                                      SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q2_K,
                                      SN_TYPE_Q3_K, SN_TYPE_IQ4_NL, SN_TYPE_IQ4_XS, SN_TYPE_I4};
#define N_COMPUTABLE (sizeof computable / sizeof computable[0])

static const uint32_t only_decoded[] = {SN_TYPE_TQ1_0, SN_TYPE_TQ2_0, SN_TYPE_MXFP4};
#define N_ONLY_DECODED (sizeof only_decoded / sizeof only_decoded[0])

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool same(float a, float b) {
    return bits_of(a) == bits_of(b);
}

/* The file's bytes and, if size is not NULL, their number. Ends the program without them. */
static uint8_t *read_file(const char *folder, const char *name, size_t *size) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        exit(1);
    }
    size_t room = 1 << 20;
    uint8_t *bytes = calloc(room, 1);
    size_t n = fread(bytes, 1, room - 1, file);
    fclose(file);
    if (size) *size = n;
    return bytes;
}

/* ---- table ------------------------------------------------------------------------------- */

static void test_table(void) {
    CHECK(sn_type_find(12) && !strcmp(sn_type_find(12)->name, "Q4_K"), "id 12");
    CHECK(sn_type_by_name("q8_0") == sn_type_find(SN_TYPE_Q8_0), "q8_0");
    CHECK(sn_type_by_name("Bf16") == sn_type_find(SN_TYPE_BF16), "Bf16");
    CHECK(sn_type_by_name("i4") == sn_type_find(SN_TYPE_I4), "i4");
    CHECK(!sn_type_by_name("q8"), "q8");
    CHECK(!sn_type_by_name("q8_00"), "q8_00");
    CHECK(!sn_type_by_name(""), "empty");
    CHECK(!sn_type_by_name(NULL), "NULL");
    uint32_t refused[] = {4, 5, 9, 31, 32, 33, 36, 37, 38, 40, 41, 42, 43, 0xffffffffu};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        CHECK(!sn_type_find(refused[i]), "id %u", (unsigned)refused[i]);
    uint32_t by_name_only[] = {15, 16, 17, 18, 19, 21, 22, 24, 25, 26, 27, 28, 29};
    for (size_t i = 0; i < sizeof by_name_only / sizeof by_name_only[0]; i++) {
        const sn_type *type = sn_type_find(by_name_only[i]);
        CHECK(type && !type->decode && !type->encode, "id %u", (unsigned)by_name_only[i]);
        CHECK(type && !sn_panel_supports(type), "id %u", (unsigned)by_name_only[i]);
    }
    for (size_t i = 0; i < N_COMPUTABLE; i++) {
        const sn_type *type = sn_type_find(computable[i]);
        CHECK(type && type->decode && type->encode && type->finite && sn_panel_supports(type),
              "id %u", (unsigned)computable[i]);
        CHECK(sn_type_bytes(type, 512) == 512 / type->block * type->block_bytes, "bytes");
        CHECK(type && sn_type_is_private(type) == (computable[i] == SN_TYPE_I4), "id %u",
              (unsigned)computable[i]);
    }
    for (size_t i = 0; i < N_ONLY_DECODED; i++) {
        const sn_type *type = sn_type_find(only_decoded[i]);
        CHECK(type && type->decode && type->finite && !sn_panel_supports(type), "id %u",
              (unsigned)only_decoded[i]);
    }
}

/* ---- 16-bit floats ----------------------------------------------------------------------- */

static void test_f16_all(void) {
    for (uint32_t half = 0; half < 65536; half++) {
        float value = sn_f16_to_f32((uint16_t)half);
        uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
        if (exponent == 31 && fraction) {
            CHECK(isnan(value) && (bits_of(value) & 0x400000u), "half %04x", (unsigned)half);
            CHECK(sn_f32_to_f16(value) == (half | 0x200), "half %04x", (unsigned)half);
            continue;
        }
        double exact = exponent == 31 ? INFINITY
                       : exponent     ? ldexp(1024.0 + fraction, (int)exponent - 25)
                                      : ldexp((double)fraction, -24);
        CHECK(fabsf(value) == exact && !!signbit(value) == half >> 15, "half %04x",
              (unsigned)half);
        CHECK(sn_f32_to_f16(value) == half, "half %04x back", (unsigned)half);
    }
}

/* Between two neighbouring halves: the middle goes to the even one, anything else to the near. */
static void test_f16_rounding(void) {
    for (uint32_t half = 0; half < 0x7c00; half++) {
        double low = sn_f16_to_f32((uint16_t)half);
        double high = half == 0x7bff ? 65536.0 : sn_f16_to_f32((uint16_t)(half + 1));
        float middle = (float)((low + high) / 2); /* exact: one more bit than a half has */
        uint16_t even = (uint16_t)(half + (half & 1));
        CHECK(sn_f32_to_f16(middle) == even, "tie above %04x", (unsigned)half);
        CHECK(sn_f32_to_f16(-middle) == (even | 0x8000), "tie below -%04x", (unsigned)half);
        CHECK(sn_f32_to_f16(nextafterf(middle, 0)) == half, "below tie %04x", (unsigned)half);
        CHECK(sn_f32_to_f16(nextafterf(middle, INFINITY)) == half + 1, "above tie %04x",
              (unsigned)half);
    }
    CHECK(sn_f32_to_f16(1e30f) == 0x7c00, "large");
    CHECK(sn_f32_to_f16(float_of(0x7f800001u)) >> 9 == 0x7e00 >> 9, "signalling NaN");
    CHECK(sn_f32_to_f16(1e-30f) == 0 && sn_f32_to_f16(-1e-40f) == 0x8000, "tiny");
}

static void test_bf16(void) {
    for (uint32_t half = 0; half < 65536; half++) {
        float value = sn_bf16_to_f32((uint16_t)half);
        CHECK(bits_of(value) == half << 16, "bf16 %04x", (unsigned)half);
        bool nan = (half & 0x7fff) > 0x7f80;
        CHECK(sn_f32_to_bf16(value) == (nan ? half | 0x40 : half), "bf16 %04x", (unsigned)half);
        if ((half & 0x7fff) >= 0x7f80) continue;
        CHECK(sn_f32_to_bf16(float_of(half << 16 | 0x8000)) == half + (half & 1), "tie %04x",
              (unsigned)half);
        CHECK(sn_f32_to_bf16(float_of(half << 16 | 0x7fff)) == half, "below %04x",
              (unsigned)half);
        CHECK(sn_f32_to_bf16(float_of(half << 16 | 0x8001)) == half + 1, "above %04x",
              (unsigned)half);
    }
}

/* ---- decoding ---------------------------------------------------------------------------- */

/* The number after "key": from *at on; moves *at behind it. */
static size_t next_number(const char **at, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(*at, quoted);
    if (!found) {
        fprintf(stderr, "qtypes.json: no %s\n", quoted);
        exit(1);
    }
    *at = found + strlen(quoted);
    return strtoul(*at, NULL, 10);
}

static void test_decode(const char *data) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/ggml-qtypes", data);
    char *json = (char *)read_file(folder, "qtypes.json", NULL);
    uint8_t *raw = read_file(folder, "qtypes.raw", NULL);
    uint8_t *expected = read_file(folder, "qtypes.f32", NULL);
    size_t compared = 0;
    for (const char *at = json; strstr(at, "\"ggml_type_id\":");) {
        uint32_t id = (uint32_t)next_number(&at, "ggml_type_id");
        size_t block = next_number(&at, "block_size"), bytes = next_number(&at, "type_size");
        size_t rows = next_number(&at, "rows"), n = rows * next_number(&at, "n");
        size_t raw_at = next_number(&at, "raw_offset"), raw_bytes = next_number(&at, "raw_bytes");
        size_t expected_at = 4 * next_number(&at, "expected_offset_floats");
        const sn_type *type = sn_type_find(id);
        if (type) CHECK(type->block == block && type->block_bytes == bytes, "%s", type->name);
        if (!type || !type->decode) continue;
        CHECK(sn_type_bytes(type, n) == raw_bytes, "%s", type->name);
        float *values = malloc(4 * n);
        type->decode(raw + raw_at, values, n);
        CHECK(!memcmp(values, expected + expected_at, 4 * n), "%s", type->name);
        CHECK(type->finite(raw + raw_at, n), "%s", type->name);
        free(values);
        compared++;
    }
    /* all but I4, which is not ggml's */
    CHECK(compared == N_COMPUTABLE - 1 + N_ONLY_DECODED, "%zu types compared", compared);
    free(json);
    free(raw);
    free(expected);
}

/* What the types without panels refuse; those with panels: test_panel_refuses. */
static void test_refused_scales(void) {
    static const struct {
        uint32_t id, at, bytes, refused, taken;
    } cases[] = {{SN_TYPE_TQ1_0, 52, 2, 0x7c00, 0x7bff}, {SN_TYPE_TQ2_0, 64, 2, 0xfe00, 0xfbff},
                 {SN_TYPE_MXFP4, 0, 1, 255, 252},        {SN_TYPE_MXFP4, 0, 1, 253, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sn_type *type = sn_type_find(cases[i].id);
        uint8_t blocks[2 * 66];
        float values[2 * 256];
        memset(blocks, 0x77, sizeof blocks); /* MXFP4: the largest code */
        uint8_t *at = blocks + type->block_bytes + cases[i].at;
        for (uint32_t j = 0; j < cases[i].bytes; j++) at[j] = (uint8_t)(cases[i].taken >> 8 * j);
        CHECK(type->finite(blocks, 2 * type->block), "%s refused", type->name);
        type->decode(blocks, values, 2 * type->block);
        for (uint32_t j = 0; j < 2 * type->block; j++)
            CHECK(isfinite(values[j]), "%s: element %u", type->name, (unsigned)j);
        for (uint32_t j = 0; j < cases[i].bytes; j++) at[j] = (uint8_t)(cases[i].refused >> 8 * j);
        CHECK(!type->finite(blocks, 2 * type->block), "%s taken", type->name);
    }
}

/* ---- encoding ---------------------------------------------------------------------------- */

static void test_encode(const char *data) {
    static const char *const names[] = {"f16", "bf16", "q8_0", "q4_0"};
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/quant-encode", data);
    size_t bytes;
    float *input = (float *)read_file(folder, "input.f32", &bytes);
    size_t n = bytes / 4;
    for (int i = 0; i < 4; i++) {
        char file[64];
        snprintf(file, sizeof file, "expected.%s", names[i]);
        uint8_t *expected = read_file(folder, file, &bytes);
        const sn_type *type = sn_type_by_name(names[i]);
        CHECK(bytes == sn_type_bytes(type, n), "%s: %zu bytes", names[i], bytes);
        uint8_t *encoded = malloc(bytes);
        type->encode(input, encoded, n);
        CHECK(!memcmp(encoded, expected, bytes), "%s", names[i]);
        free(encoded);
        free(expected);
    }
    free(input);
}

/* ---- the seed's INT4 ----------------------------------------------------------------------- */

static int i4_code(const uint8_t *block, int i) {
    return i < 32 ? block[i] & 15 : block[i - 32] >> 4;
}

static float i4_scale(const uint8_t *block) {
    float scale;
    memcpy(&scale, block + 32, 4);
    return scale;
}

/* The rule once more, with the rounding of the C library. tests/int4.test.mjs compares with a file
 * of the origin's. */
static void check_i4(const float *x) {
    uint8_t block[36];
    float back[64], amax = 0.0f;
    sn_type_find(SN_TYPE_I4)->encode(x, block, 64);
    sn_type_find(SN_TYPE_I4)->decode(block, back, 64);
    for (int i = 0; i < 64; i++) amax = fmaxf(amax, fabsf(x[i]));
    const float scale = amax > 0.0f ? amax / 7.0f : 1.0f, inverse = 1.0f / scale;
    CHECK(same(i4_scale(block), scale), "%a: scale %a", (double)scale, (double)i4_scale(block));
    for (int i = 0; i < 64; i++) {
        const float product = x[i] * inverse;
        const int code = (int)fminf(fmaxf(rintf(product), -8.0f), 7.0f) + 8;
        CHECK(i4_code(block, i) == code, "%a: code %d", (double)x[i], i4_code(block, i));
        CHECK(same(back[i], (float)(code - 8) * scale), "%a: back %a", (double)x[i],
              (double)back[i]);
    }
}

static void test_i4(void) {
    static const float scales[] = {1.0f, 0x1p-100f, 0x1p-120f, 1e30f, 0x1p127f};
    check_random random = {64};
    float x[64] = {0};
    uint8_t block[36];
    check_i4(x);
    for (int round = 0; round < 100; round++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
            for (int i = 0; i < 64; i++) x[i] = check_float(&random) * scales[s];
            check_i4(x);
        }
    for (int i = 0; i < 64; i++) x[i] = (float)(i % 15) * 0.5f - 3.5f; /* ties, scale 1 */
    x[63] = 7.0f;
    check_i4(x);
    x[7] = -3.4028234664e38f; /* 7 scales must not overflow */
    check_i4(x);
    sn_type_find(SN_TYPE_I4)->encode(x, block, 64);
    CHECK(sn_type_find(SN_TYPE_I4)->finite(block, 64), "the largest float");
    for (int i = 0; i < 64; i++) x[i] = i % 2 ? 0x1p-149f : 0.0f; /* the scale is 0 */
    sn_type_find(SN_TYPE_I4)->encode(x, block, 64);
    for (int i = 0; i < 64; i++) CHECK(i4_code(block, i) == 8, "tiny: code %d", i4_code(block, i));
    for (int i = 0; i < 64; i++) x[i] = i % 2 ? 0x1p-130f : 0.0f; /* its inverse overflows */
    sn_type_find(SN_TYPE_I4)->encode(x, block, 64);
    for (int i = 0; i < 64; i++) CHECK(i4_code(block, i) == 8, "tiny: code %d", i4_code(block, i));
}

/* Whatever the scale, a block is taken if all its values are numbers and only then. */
static void test_i4_scales(void) {
    static const uint32_t scales[] = {0,           0x80000000u, 1,           0x807fffffu,
                                      0x3f800000u, 0xbf800000u, 0x7dffffffu, 0x7e000000u,
                                      0xfe000000u, 0x7e7fffffu, 0x7f7fffffu, 0xff7fffffu,
                                      0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u};
    const sn_type *type = sn_type_find(SN_TYPE_I4);
    uint8_t blocks[2 * 36] = {0};
    float values[128];
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
        for (unsigned code = 0; code < 16; code++) {
            memset(blocks, 0x88, 72); /* zeros but for one code */
            blocks[36 + 17] = (uint8_t)(code << 4 | 8);
            memset(blocks + 32, 0, 4);
            memcpy(blocks + 36 + 32, &scales[s], 4);
            type->decode(blocks, values, 128);
            bool all = true;
            for (int i = 0; i < 128; i++) all = all && isfinite(values[i]);
            CHECK(type->finite(blocks, 128) == all, "%08x, code %u", (unsigned)scales[s], code);
        }
}

/* ---- panels ------------------------------------------------------------------------------ */

#define MAX_K 768

/* Random bytes with finite scales (for plain floats: values). */
static void random_rows(check_random *random, const sn_type *type, size_t blocks,
                        uint8_t *rows) {
    for (size_t b = 0; b < blocks; b++) {
        uint8_t *block = rows + b * type->block_bytes;
        do
            for (size_t i = 0; i < type->block_bytes; i++)
                block[i] = (uint8_t)check_next(random);
        while (!type->finite(block, type->block));
    }
}

static void test_panel_round_trip(const sn_type *type) {
    check_random random = {type->id + 1};
    size_t step = type->block == 1 ? 37 : type->block;
    uint8_t *rows = malloc(16 * MAX_K * 4), *back = malloc(16 * MAX_K * 4 + 1);
    uint8_t *panel = malloc(16 * MAX_K * 4 + 1);
    for (size_t k = step; k <= MAX_K; k += step)
        for (size_t n = 1; n <= 16; n++) {
            size_t bytes = n * sn_type_bytes(type, k), panel_bytes = sn_panel_bytes(type, k);
            random_rows(&random, type, n * k / type->block, rows);
            memset(panel, 0xaa, panel_bytes + 1);
            memset(back, 0xaa, bytes + 1);
            CHECK(sn_panel_pack(type, rows, n, k, panel), "%s", type->name);
            sn_panel_unpack(type, panel, n, k, back);
            CHECK(!memcmp(rows, back, bytes), "%s: %zu rows of %zu", type->name, n, k);
            CHECK(panel[panel_bytes] == 0xaa && back[bytes] == 0xaa, "%s: overrun", type->name);
        }
    free(rows);
    free(back);
    free(panel);
}

/* A row of a panel decodes as the file's row does, and no more than k values are written. */
static void test_panel_row(const sn_type *type) {
    check_random random = {type->id + 71};
    static const size_t plain[] = {1, 31, 255, 256, 257, 700};
    uint8_t *rows = malloc(16 * MAX_K * 4), *panel = malloc(16 * MAX_K * 4);
    float wanted[MAX_K], got[MAX_K + 1];
    for (size_t i = 0; i < (type->block == 1 ? 6 : MAX_K / type->block); i++) {
        size_t k = type->block == 1 ? plain[i] : (i + 1) * type->block, n = 16 - i % 16;
        size_t row_bytes = sn_type_bytes(type, k);
        random_rows(&random, type, n * k / type->block, rows);
        CHECK(sn_panel_pack(type, rows, n, k, panel), "%s", type->name);
        for (size_t r = 0; r < n; r++) {
            got[k] = 1.5f;
            type->decode(rows + r * row_bytes, wanted, k);
            sn_panel_row(type, panel, r, k, got);
            CHECK(!memcmp(got, wanted, 4 * k), "%s: row %zu of %zu values", type->name, r, k);
            CHECK(same(got[k], 1.5f), "%s: overrun", type->name);
        }
    }
    free(rows);
    free(panel);
}

static void test_panel_size(const sn_type *type) {
    double file = 16.0 * (double)sn_type_bytes(type, 256);
    CHECK((double)sn_panel_bytes(type, 256) <= 1.05 * file, "%s", type->name);
    CHECK(sn_panel_bytes(type, 1024) == 4 * sn_panel_bytes(type, 256), "%s", type->name);
}

/* A scale or value that is no number is refused wherever it stands. */
static void test_panel_refuses(const sn_type *type) {
    static const struct {
        uint32_t id, at[2], bits, bytes;
    } scales[] = {
        {SN_TYPE_F32, {0, 0}, 0x7f800000u, 4}, {SN_TYPE_F16, {0, 0}, 0xfc00u, 2},
        {SN_TYPE_BF16, {0, 0}, 0x7fc0u, 2},    {SN_TYPE_Q8_0, {0, 0}, 0x7c00u, 2},
        {SN_TYPE_Q4_0, {0, 0}, 0x7e01u, 2},    {SN_TYPE_Q4_1, {0, 2}, 0x7c00u, 2},
        {SN_TYPE_Q5_0, {0, 0}, 0x7c01u, 2},    {SN_TYPE_Q5_1, {0, 2}, 0xfc00u, 2},
        {SN_TYPE_Q4_K, {0, 2}, 0xffffu, 2},    {SN_TYPE_Q5_K, {0, 2}, 0x7c00u, 2},
        {SN_TYPE_Q6_K, {208, 208}, 0x7c00u, 2},  {SN_TYPE_Q2_K, {80, 82}, 0x7c00u, 2},
        {SN_TYPE_Q3_K, {108, 108}, 0xfe00u, 2},  {SN_TYPE_IQ4_NL, {0, 0}, 0x7d00u, 2},
        {SN_TYPE_IQ4_XS, {0, 0}, 0xfc00u, 2},    {SN_TYPE_I4, {32, 32}, 0x7fc00000u, 4},
    };
    uint8_t *rows = malloc(16 * 512 * 4), *panel = malloc(16 * 512 * 4);
    check_random random = {99};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        size_t blocks = 3 * 512 / type->block;
        for (size_t b = 0; scales[s].id == type->id && b < 2 * blocks; b++) {
            random_rows(&random, type, blocks, rows);
            uint8_t *at = rows + b / 2 * type->block_bytes + scales[s].at[b % 2];
            for (uint32_t i = 0; i < scales[s].bytes; i++)
                at[i] = (uint8_t)(scales[s].bits >> 8 * i);
            CHECK(!sn_panel_pack(type, rows, 3, 512, panel), "%s: block %zu", type->name, b / 2);
        }
    }
    free(rows);
    free(panel);
}

/* Panels with any bits are as finite as the rows they hold; I4's stand in no file. */
static void test_panel_finite(const sn_type *type) {
    enum { K = 512 };
    uint8_t *rows = malloc(16 * K * 4), *panel = malloc(16 * K * 4);
    check_random random = {31};
    const size_t bytes = sn_panel_bytes(type, K);
    size_t finite = 0;
    for (int i = 0; i < 600; i++) {
        random_rows(&random, type, 16 * K / type->block, rows);
        CHECK(sn_panel_pack(type, rows, 16, K, panel), "%s", type->name);
        CHECK(sn_panel_finite(type, panel, K), "%s", type->name);
        uint8_t *at = panel + check_below(&random, (uint32_t)bytes / 2) * 2;
        memcpy(at, (const char *[]){ "\x00\x7c", "\x80\x7f", "\x12\x34" }[i % 3], 2);
        sn_panel_unpack(type, panel, 16, K, rows);
        const bool wanted = type->finite(rows, 16 * K);
        CHECK(sn_panel_finite(type, panel, K) == wanted, "%s: byte %zu", type->name,
              (size_t)(at - panel));
        finite += wanted;
    }
    CHECK(finite > 0 && finite < 600, "%s: %zu of 600", type->name, finite);
    free(rows);
    free(panel);
}

/* ---- the layout itself, read as panel.h describes it ------------------------------------- */

/* Code of element i (0..31) of row r in a group that begins at `group`. */
static int panel_code(const uint8_t *group, int bits, int r, int i) {
    const uint8_t *row = group + 4 * r;
    if (bits == 8) return row[64 * (i / 4) + i % 4];
    int g = i % 16 / 4, j = i % 4;
    if (bits < 4) {
        int pair = row[64 * (i / 16) + j] >> 2 * g & 3;
        return bits == 2 ? pair : pair | (row[64 * 2 + j] >> (i / 4) & 1) << 2;
    }
    int code = row[64 * g + j] >> (i < 16 ? 0 : 4) & 15;
    if (bits == 5) code |= (row[64 * 4 + j] >> (i / 4) & 1) << 4;
    if (bits == 6) code |= (row[64 * (4 + i / 16) + j] >> 2 * (i / 4 % 4) & 3) << 4;
    return code;
}

static float half_at(const uint8_t *p, int r) {
    return sn_f16_to_f32((uint16_t)(p[2 * r] | p[2 * r + 1] << 8));
}

/* Value of element k of row r of a quantised panel. */
static float panel_value(const sn_type *type, const uint8_t *panel, int r, int k) {
    static const struct {
        uint32_t id;
        int bits, offset, halves;
    } of[] = {{SN_TYPE_Q8_0, 8, 128, 1}, {SN_TYPE_Q4_0, 4, 8, 1},  {SN_TYPE_Q4_1, 4, 0, 2},
              {SN_TYPE_Q5_0, 5, 16, 1},  {SN_TYPE_Q5_1, 5, 0, 2},  {SN_TYPE_Q4_K, 4, 0, 2},
              {SN_TYPE_Q5_K, 5, 0, 2},   {SN_TYPE_Q6_K, 6, 32, 1}, {SN_TYPE_Q2_K, 2, 0, 2},
              {SN_TYPE_Q3_K, 3, 4, 1},   {SN_TYPE_IQ4_NL, 4, 0, 1}, {SN_TYPE_IQ4_XS, 4, 0, 1},
              {SN_TYPE_I4, 4, 8, 1}};
    static const int book[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
    const bool iq4 = type->id == SN_TYPE_IQ4_NL || type->id == SN_TYPE_IQ4_XS;
    int t = 0;
    while (of[t].id != type->id)
        t++;
    const uint8_t *block =
        panel + (size_t)k / type->block * sn_panel_bytes(type, type->block);
    int codes = of[t].bits * 64;
    if (type->block == 64) {
        float scale;
        memcpy(&scale, block + 2 * codes + 4 * r, 4);
        int code = panel_code(block + k % 64 / 32 * codes, of[t].bits, r, k % 32);
        return (float)(code - of[t].offset) * scale;
    }
    if (type->block == 32) {
        const uint8_t *scales = block + codes;
        int code = panel_code(block, of[t].bits, r, k % 32);
        float q = (float)(iq4 ? book[code] : code - of[t].offset);
        float m = of[t].halves == 2 ? half_at(scales + 32, r) : 0.0f;
        return of[t].halves == 2 ? q * half_at(scales, r) + m : q * half_at(scales, r);
    }
    const uint8_t *group =
        block + 32 * of[t].halves + (k % 256 / 32) * (codes + (iq4 ? 16 : 32));
    int code = panel_code(group, of[t].bits, r, k % 32);
    float q = (float)(iq4 ? book[code] : code - of[t].offset);
    const uint8_t *scales = group + codes;
    const int half = iq4 ? 0 : k % 32 / 16;
    if (type->id == SN_TYPE_Q2_K) {
        uint8_t pair = scales[16 * half + r];
        return half_at(block, r) * (float)(pair & 15) * q -
               half_at(block + 32, r) * (float)(pair >> 4);
    }
    if (of[t].halves == 2)
        return half_at(block, r) * (float)scales[r] * q -
               half_at(block + 32, r) * (float)scales[16 + r];
    return half_at(block, r) * (float)(int8_t)scales[16 * half + r] * q;
}

static void test_panel_layout(const sn_type *type) {
    enum { K = 512, ROWS = 16 };
    check_random random = {5};
    uint8_t *rows = malloc(ROWS * K * 4), *panel = malloc(ROWS * K * 4);
    float *values = malloc(ROWS * K * sizeof *values);
    random_rows(&random, type, ROWS * K / type->block, rows);
    CHECK(sn_panel_pack(type, rows, ROWS, K, panel), "%s", type->name);
    type->decode(rows, values, ROWS * K);
    size_t wrong = 0, size = type->block_bytes;
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < K; k++) {
            if (type->block == 1)
                wrong += !!memcmp(panel + (size_t)(16 * k + r) * size,
                                  rows + (size_t)(r * K + k) * size, size);
            else wrong += panel_value(type, panel, r, k) != values[r * K + k];
        }
    CHECK(!wrong, "%s: %zu elements differ", type->name, wrong);
    free(rows);
    free(panel);
    free(values);
}

/* Rows that are missing have zero scales and values. */
static void test_panel_missing_rows(const sn_type *type) {
    static uint8_t rows[2 * 256 * 4], panel[16 * 256 * 4], back[16 * 256 * 4];
    static float values[16 * 256];
    check_random random = {17};
    random_rows(&random, type, 2 * 256 / type->block, rows);
    memset(panel, 0xff, sizeof panel);
    CHECK(sn_panel_pack(type, rows, 2, 256, panel), "%s", type->name);
    sn_panel_unpack(type, panel, 16, 256, back);
    type->decode(back, values, 16 * 256);
    for (int i = 2 * 256; i < 16 * 256; i++)
        CHECK(values[i] == 0, "%s: element %d", type->name, i);
}

int main(int argc, char **argv) {
    const char *data = argc > 1 ? argv[1] : "tests/data";
    test_table();
    test_f16_all();
    test_f16_rounding();
    test_bf16();
    test_decode(data);
    test_refused_scales();
    test_encode(data);
    test_i4();
    test_i4_scales();
    for (size_t i = 0; i < N_COMPUTABLE; i++) {
        const sn_type *type = sn_type_find(computable[i]);
        test_panel_size(type);
        test_panel_round_trip(type);
        test_panel_row(type);
        test_panel_refuses(type);
        if (type->id != SN_TYPE_I4) test_panel_finite(type);
        test_panel_layout(type);
        test_panel_missing_rows(type);
    }
    return check_report("quant");
}
