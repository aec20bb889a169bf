/*
 * The file's side of packing: codes and scales of one group of one block, for each type. The
 * layouts are described in docs/formats.md.
 */
#include "panel_layout.h"

#include "bytes.h"

/* ---- codes ------------------------------------------------------------------------------- */

static void read_bytes(const uint8_t *low, const uint8_t *high, unsigned group,
                       uint32_t code[8]) {
    (void)high, (void)group;
    for (int g = 0; g < 8; g++)
        code[g] = sn_load32(low + 4 * g) ^ 0x80808080u; /* q + 128 */
}

static void write_bytes(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    (void)high, (void)group;
    for (int g = 0; g < 8; g++)
        sn_store32(low + 4 * g, code[g] ^ 0x80808080u);
}

/* Low nibbles are the first half of 32 elements, high nibbles the second. */
static void read_q4(const uint8_t *low, const uint8_t *high, unsigned group, uint32_t code[8]) {
    (void)high;
    low += 16 * group;
    for (int g = 0; g < 4; g++) {
        uint32_t word = sn_load32(low + 4 * g);
        code[g] = word & SN_NIBBLES;
        code[g + 4] = word >> 4 & SN_NIBBLES;
    }
}

static void write_q4(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    (void)high;
    low += 16 * group;
    for (int g = 0; g < 4; g++)
        sn_store32(low + 4 * g, (code[g] & SN_NIBBLES) | (code[g + 4] & SN_NIBBLES) << 4);
}

/* As Q4, and bit i of the 32 at `high` tops element i. The products spread four bits over four
 * bytes and gather them again: no two terms meet in a bit, so nothing carries. */
static void read_q5(const uint8_t *low, const uint8_t *high, unsigned group, uint32_t code[8]) {
    uint32_t bits = sn_load32(high);
    read_q4(low, high, group, code);
    for (int g = 0; g < 8; g++)
        code[g] |= ((bits >> 4 * g & 15) * 0x00204081u & SN_BITS) << 4;
}

static void write_q5(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    uint32_t bits = 0;
    for (int g = 0; g < 8; g++)
        bits |= ((code[g] >> 4 & SN_BITS) * 0x01020408u >> 24 & 15) << 4 * g;
    sn_store32(high, bits);
    write_q4(low, high, group, code);
}

/* Puts `field` of every code word, moved left by `shift`, to the 32 bytes there. Groups are
 * written in ascending order, so the one with shift 0 starts the bytes. */
static void add_bits(uint8_t *bytes, unsigned shift, uint32_t field, unsigned drop,
                     const uint32_t code[8]) {
    for (int g = 0; g < 8; g++) {
        uint32_t before = shift ? sn_load32(bytes + 4 * g) : 0;
        sn_store32(bytes + 4 * g, before | (code[g] >> drop & field) << shift);
    }
}

/* Four groups share 32 bytes: bits 0-1 of them are the first one's. */
static void read_q2_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    const uint8_t *bytes = low + 32 * (group / 4);
    (void)high;
    for (int g = 0; g < 8; g++)
        code[g] = sn_load32(bytes + 4 * g) >> 2 * (group % 4) & SN_PAIRS;
}

static void write_q2_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    (void)high;
    add_bits(low + 32 * (group / 4), 2 * (group % 4), SN_PAIRS, 0, code);
}

/* As Q2_K, and bit `group` of byte l tops element l. */
static void read_q3_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    read_q2_k(low, high, group, code);
    for (int g = 0; g < 8; g++)
        code[g] |= (sn_load32(high + 4 * g) >> group & SN_BITS) << 2;
}

static void write_q3_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    write_q2_k(low, high, group, code);
    add_bits(high, group, SN_BITS, 2, code);
}

/* Groups 2c and 2c + 1 share 32 bytes, in low and high nibbles. */
static void read_q4_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    const uint8_t *bytes = low + 32 * (group / 2);
    (void)high;
    for (int g = 0; g < 8; g++)
        code[g] = sn_load32(bytes + 4 * g) >> 4 * (group & 1) & SN_NIBBLES;
}

static void write_q4_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    (void)high;
    add_bits(low + 32 * (group / 2), 4 * (group & 1), SN_NIBBLES, 0, code);
}

/* As Q4_K, and bit `group` of byte l tops element l. */
static void read_q5_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    read_q4_k(low, high, group, code);
    for (int g = 0; g < 8; g++)
        code[g] |= (sn_load32(high + 4 * g) >> group & SN_BITS) << 4;
}

static void write_q5_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    write_q4_k(low, high, group, code);
    add_bits(high, group, SN_BITS, 4, code);
}

/* Group = 4 half + quarter. Quarters 0, 1 are the low nibbles of the half's two runs of 32
 * bytes, 2, 3 the high ones; two more bits at 2 quarter of the half's 32 upper bytes. */
static void read_q6_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    unsigned half = group / 4, quarter = group % 4;
    low += 64 * half + 32 * (quarter & 1);
    high += 32 * half;
    for (int g = 0; g < 8; g++)
        code[g] = (sn_load32(low + 4 * g) >> 4 * (quarter / 2) & SN_NIBBLES) |
                  (sn_load32(high + 4 * g) >> 2 * quarter & SN_PAIRS) << 4;
}

static void write_q6_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    unsigned half = group / 4, quarter = group % 4;
    add_bits(low + 64 * half + 32 * (quarter & 1), 4 * (quarter / 2), SN_NIBBLES, 0, code);
    add_bits(high + 32 * half, 2 * quarter, SN_PAIRS, 4, code);
}

/* ---- scales: as they are, or unpacked to a byte each --------------------------------------- */

static void read_scales_q2_k(const uint8_t *block, uint8_t scales[16]) {
    memcpy(scales, block, 16);
}

static void write_scales_q2_k(const uint8_t scales[16], uint8_t *block) {
    memcpy(block, scales, 16);
}

static void read_scales_q3_k(const uint8_t *block, uint8_t scales[16]) {
    sn_unpack_q3_k_scales(block + 96, (int8_t *)scales);
}

static void write_scales_q3_k(const uint8_t scales[16], uint8_t *block) {
    sn_pack_q3_k_scales((const int8_t *)scales, block + 96);
}

static void read_scales_q45_k(const uint8_t *block, uint8_t scales[16]) {
    sn_unpack_pairs(block + 4, scales);
}

static void write_scales_q45_k(const uint8_t scales[16], uint8_t *block) {
    sn_pack_pairs(scales, block + 4);
}

static void read_scales_q6_k(const uint8_t *block, uint8_t scales[16]) {
    memcpy(scales, block + 192, 16);
}

static void write_scales_q6_k(const uint8_t scales[16], uint8_t *block) {
    memcpy(block + 192, scales, 16);
}

static void read_scales_iq4_xs(const uint8_t *block, uint8_t scales[16]) {
    sn_unpack_iq4_xs_scales(block + 2, (int8_t *)scales);
}

static void write_scales_iq4_xs(const uint8_t scales[16], uint8_t *block) {
    sn_pack_iq4_xs_scales((const int8_t *)scales, block + 2);
}

/* ---- the table --------------------------------------------------------------------------- */

#define VALUES(TYPE, BYTES) {.type = SN_TYPE_##TYPE, .value_bytes = BYTES}

/* of codes in blocks of 32, and in blocks of 256 with scales of their own */
#define CODES(TYPE, BITS, N_HALVES, FIRST, SECOND, LOW, HIGH, NAME)                           \
    {SN_TYPE_##TYPE, 0, BITS, N_HALVES, 2, {FIRST, SECOND}, LOW, HIGH, 0, read_##NAME,        \
     write_##NAME, NULL, NULL}
#define CODES_K(TYPE, BITS, N_HALVES, FIRST, SECOND, LOW, HIGH, NAME, N_SCALES, SCALES)       \
    {SN_TYPE_##TYPE, 0, BITS, N_HALVES, 2, {FIRST, SECOND}, LOW, HIGH, N_SCALES, read_##NAME, \
     write_##NAME, read_scales_##SCALES, write_scales_##SCALES}

static const sn_panel_layout layouts[] = {
    VALUES(F32, 4),
    VALUES(F16, 2),
    VALUES(BF16, 2),
    /* type, bits, halves and where, low bits, high bits, code functions */
    CODES(Q8_0, 8, 1, 0, 0, 2, 0, bytes),
    CODES(Q4_0, 4, 1, 0, 0, 2, 0, q4),
    CODES(Q4_1, 4, 2, 0, 2, 4, 0, q4),
    CODES(Q5_0, 5, 1, 0, 0, 6, 2, q5),
    CODES(Q5_1, 5, 2, 0, 2, 8, 4, q5),
    CODES(IQ4_NL, 4, 1, 0, 0, 2, 0, q4),
    /* the same, then scale bytes of a group and their functions */
    CODES_K(Q2_K, 2, 2, 80, 82, 16, 0, q2_k, 2, q2_k),
    CODES_K(Q3_K, 3, 1, 108, 0, 32, 0, q3_k, 2, q3_k),
    CODES_K(Q4_K, 4, 2, 0, 2, 16, 0, q4_k, 2, q45_k),
    CODES_K(Q5_K, 5, 2, 0, 2, 48, 16, q5_k, 2, q45_k),
    CODES_K(Q6_K, 6, 1, 208, 0, 0, 128, q6_k, 2, q6_k),
    CODES_K(IQ4_XS, 4, 1, 0, 0, 8, 0, q4, 1, iq4_xs),
    /* 64 codes lie as two groups of Q4_K, behind them one f32 */
    {SN_TYPE_I4, 0, 4, 1, 4, {32, 0}, 0, 0, 0, read_q4_k, write_q4_k, NULL, NULL},
};

const sn_panel_layout *sn_panel_layout_of(const sn_type *type) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].type == type->id) return &layouts[i];
    return NULL;
}
