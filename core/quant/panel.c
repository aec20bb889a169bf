/*
 * Rows of a file to panels and back. A group of 32 codes of one row passes through eight words
 * of four codes each, one code a byte: word g holds elements 4g .. 4g + 3. Each type has a way
 * from its block to these words and back; the panel's side depends on the bits alone.
 */
#include "panel.h"

#include "bytes.h"

#define WORD (SN_PANEL_ROWS * 4)  /* bytes of a panel word: 4 of each row */
#define HALVES (SN_PANEL_ROWS * 2) /* bytes of one f16 scale of each row */
#define NIBBLES 0x0f0f0f0fu
#define PAIRS 0x03030303u
#define BITS 0x01010101u

typedef struct layout {
    uint32_t type;
    uint8_t value_bytes; /* of a plain float; 0: codes and scales as follows */
    uint8_t bits;        /* of a code */
    uint8_t n_halves;    /* f16 scales of a block, 1 or 2 */
    uint8_t half_at[2];  /* where they are in the file's block */
    uint8_t low_at;      /* the codes' low bits in the block */
    uint8_t high_at;     /* their upper bits */
    uint8_t scales_at;   /* K types: 16 bytes (Q6_K) or 16 times 6 bits */
    void (*read)(const uint8_t *low, const uint8_t *high, unsigned group, uint32_t code[8]);
    void (*write)(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]);
} layout;

/* ---- the file's side: codes of one group of one block ------------------------------------ */

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

/* Low nibbles are the first half of a block of 32, high nibbles the second. */
static void read_q4(const uint8_t *low, const uint8_t *high, unsigned group, uint32_t code[8]) {
    (void)high, (void)group;
    for (int g = 0; g < 4; g++) {
        uint32_t word = sn_load32(low + 4 * g);
        code[g] = word & NIBBLES;
        code[g + 4] = word >> 4 & NIBBLES;
    }
}

static void write_q4(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    (void)high, (void)group;
    for (int g = 0; g < 4; g++)
        sn_store32(low + 4 * g, (code[g] & NIBBLES) | (code[g + 4] & NIBBLES) << 4);
}

/* As Q4, and bit i of the 32 at `high` tops element i. The products spread four bits over four
 * bytes and gather them again: no two terms meet in a bit, so nothing carries. */
static void read_q5(const uint8_t *low, const uint8_t *high, unsigned group, uint32_t code[8]) {
    uint32_t bits = sn_load32(high);
    read_q4(low, high, group, code);
    for (int g = 0; g < 8; g++)
        code[g] |= ((bits >> 4 * g & 15) * 0x00204081u & BITS) << 4;
}

static void write_q5(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    uint32_t bits = 0;
    for (int g = 0; g < 8; g++)
        bits |= ((code[g] >> 4 & BITS) * 0x01020408u >> 24 & 15) << 4 * g;
    sn_store32(high, bits);
    write_q4(low, high, group, code);
}

/* Groups 2c and 2c + 1 share 32 bytes, in low and high nibbles. Writing goes by ascending
 * groups, so the low half of a byte starts it. */
static void read_q4_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    const uint8_t *bytes = low + 32 * (group / 2);
    (void)high;
    for (int g = 0; g < 8; g++)
        code[g] = sn_load32(bytes + 4 * g) >> 4 * (group & 1) & NIBBLES;
}

/* Puts `field` of every code word, moved left by `shift`, to the 32 bytes there. */
static void add_bits(uint8_t *bytes, unsigned shift, uint32_t field, unsigned drop,
                     const uint32_t code[8]) {
    for (int g = 0; g < 8; g++) {
        uint32_t before = shift ? sn_load32(bytes + 4 * g) : 0;
        sn_store32(bytes + 4 * g, before | (code[g] >> drop & field) << shift);
    }
}

static void write_q4_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    (void)high;
    add_bits(low + 32 * (group / 2), 4 * (group & 1), NIBBLES, 0, code);
}

/* As Q4_K, and bit `group` of byte l tops element l. */
static void read_q5_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    read_q4_k(low, high, group, code);
    for (int g = 0; g < 8; g++)
        code[g] |= (sn_load32(high + 4 * g) >> group & BITS) << 4;
}

static void write_q5_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    write_q4_k(low, high, group, code);
    add_bits(high, group, BITS, 4, code);
}

/* Group = 4 half + quarter. Quarters 0, 1 are the low nibbles of the half's two runs of 32
 * bytes, 2, 3 the high ones; two more bits at 2 quarter of the half's 32 upper bytes. */
static void read_q6_k(const uint8_t *low, const uint8_t *high, unsigned group,
                      uint32_t code[8]) {
    unsigned half = group / 4, quarter = group % 4;
    low += 64 * half + 32 * (quarter & 1);
    high += 32 * half;
    for (int g = 0; g < 8; g++)
        code[g] = (sn_load32(low + 4 * g) >> 4 * (quarter / 2) & NIBBLES) |
                  (sn_load32(high + 4 * g) >> 2 * quarter & PAIRS) << 4;
}

static void write_q6_k(uint8_t *low, uint8_t *high, unsigned group, const uint32_t code[8]) {
    unsigned half = group / 4, quarter = group % 4;
    add_bits(low + 64 * half + 32 * (quarter & 1), 4 * (quarter / 2), NIBBLES, 0, code);
    add_bits(high + 32 * half, 2 * quarter, PAIRS, 4, code);
}

/* ---- the table --------------------------------------------------------------------------- */

static const layout layouts[] = {
    /* type, value, bits, halves at, low, high, scales */
    {SN_TYPE_F32, 4, 0, 0, {0, 0}, 0, 0, 0, NULL, NULL},
    {SN_TYPE_F16, 2, 0, 0, {0, 0}, 0, 0, 0, NULL, NULL},
    {SN_TYPE_BF16, 2, 0, 0, {0, 0}, 0, 0, 0, NULL, NULL},
    {SN_TYPE_Q8_0, 0, 8, 1, {0, 0}, 2, 0, 0, read_bytes, write_bytes},
    {SN_TYPE_Q4_0, 0, 4, 1, {0, 0}, 2, 0, 0, read_q4, write_q4},
    {SN_TYPE_Q4_1, 0, 4, 2, {0, 2}, 4, 0, 0, read_q4, write_q4},
    {SN_TYPE_Q5_0, 0, 5, 1, {0, 0}, 6, 2, 0, read_q5, write_q5},
    {SN_TYPE_Q5_1, 0, 5, 2, {0, 2}, 8, 4, 0, read_q5, write_q5},
    {SN_TYPE_Q4_K, 0, 4, 2, {0, 2}, 16, 0, 4, read_q4_k, write_q4_k},
    {SN_TYPE_Q5_K, 0, 5, 2, {0, 2}, 48, 16, 4, read_q5_k, write_q5_k},
    {SN_TYPE_Q6_K, 0, 6, 1, {208, 0}, 0, 128, 192, read_q6_k, write_q6_k},
};

static const layout *find_layout(const sn_type *type) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].type == type->id) return &layouts[i];
    return NULL;
}

bool sn_panel_supports(const sn_type *type) {
    return find_layout(type) != NULL;
}

/* Bytes of the codes of 32 k, all rows. */
static size_t codes_bytes(const layout *l) {
    return (size_t)l->bits * WORD;
}

/* Bytes of one block of the type, all rows. */
static size_t block_bytes(const layout *l, size_t block) {
    size_t group_scales = l->scales_at ? 2 * SN_PANEL_ROWS : 0;
    return l->n_halves * (size_t)HALVES + block / 32 * (codes_bytes(l) + group_scales);
}

size_t sn_panel_bytes(const sn_type *type, size_t k) {
    const layout *l = find_layout(type);
    if (l->value_bytes) return SN_PANEL_ROWS * k * l->value_bytes;
    return k / type->block * block_bytes(l, type->block);
}

/* ---- the panel's side: the codes of one row in one group; `row` is the row's first byte --- */

static void put_codes(unsigned bits, const uint32_t code[8], uint8_t *row) {
    if (bits == 8) {
        for (int g = 0; g < 8; g++)
            sn_store32(row + g * WORD, code[g]);
        return;
    }
    for (int g = 0; g < 4; g++)
        sn_store32(row + g * WORD, (code[g] & NIBBLES) | (code[g + 4] & NIBBLES) << 4);
    if (bits == 5) {
        uint32_t fifth = 0;
        for (int g = 0; g < 8; g++)
            fifth |= (code[g] >> 4 & BITS) << g;
        sn_store32(row + 4 * WORD, fifth);
    }
    for (int h = 0; bits == 6 && h < 2; h++) {
        uint32_t upper = 0;
        for (int i = 0; i < 4; i++)
            upper |= (code[4 * h + i] >> 4 & PAIRS) << 2 * i;
        sn_store32(row + (4 + h) * WORD, upper);
    }
}

static void get_codes(unsigned bits, const uint8_t *row, uint32_t code[8]) {
    if (bits == 8) {
        for (int g = 0; g < 8; g++)
            code[g] = sn_load32(row + g * WORD);
        return;
    }
    for (int g = 0; g < 4; g++) {
        uint32_t word = sn_load32(row + g * WORD);
        code[g] = word & NIBBLES;
        code[g + 4] = word >> 4 & NIBBLES;
    }
    if (bits == 5)
        for (int g = 0; g < 8; g++)
            code[g] |= (sn_load32(row + 4 * WORD) >> g & BITS) << 4;
    if (bits == 6)
        for (int g = 0; g < 8; g++)
            code[g] |= (sn_load32(row + (4 + g / 4) * WORD) >> 2 * (g % 4) & PAIRS) << 4;
}

/* ---- one block of one row ------------------------------------------------------------------ */

/* Two scale bytes for each of the eight groups, as the panel holds them. */
static void read_scales(const layout *l, const uint8_t *block, uint8_t scales[16]) {
    if (l->type == SN_TYPE_Q6_K) memcpy(scales, block + l->scales_at, 16);
    else sn_unpack_pairs(block + l->scales_at, scales);
}

static void write_scales(const layout *l, const uint8_t scales[16], uint8_t *block) {
    if (l->type == SN_TYPE_Q6_K) memcpy(block + l->scales_at, scales, 16);
    else sn_pack_pairs(scales, block + l->scales_at);
}

/* The f16 scales stand before the groups of a K type, behind the one group of the others. */
static size_t halves_at(const layout *l) {
    return l->scales_at ? 0 : codes_bytes(l);
}

static size_t groups_at(const layout *l) {
    return l->scales_at ? l->n_halves * (size_t)HALVES : 0;
}

static void pack_block(const layout *l, unsigned n_groups, const uint8_t *block, size_t r,
                       uint8_t *panel) {
    uint8_t *halves = panel + halves_at(l) + 2 * r;
    uint8_t *groups = panel + groups_at(l);
    uint8_t scales[16] = {0};
    for (unsigned i = 0; i < l->n_halves; i++)
        memcpy(halves + i * HALVES, block + l->half_at[i], 2);
    if (l->scales_at) read_scales(l, block, scales);
    for (unsigned group = 0; group < n_groups; group++) {
        uint32_t code[8];
        l->read(block + l->low_at, block + l->high_at, group, code);
        put_codes(l->bits, code, groups + 4 * r);
        groups += codes_bytes(l);
        if (!l->scales_at) continue;
        groups[r] = scales[2 * group];
        groups[r + SN_PANEL_ROWS] = scales[2 * group + 1];
        groups += 2 * SN_PANEL_ROWS;
    }
}

static void unpack_block(const layout *l, unsigned n_groups, const uint8_t *panel, size_t r,
                         uint8_t *block) {
    const uint8_t *halves = panel + halves_at(l) + 2 * r;
    const uint8_t *groups = panel + groups_at(l);
    uint8_t scales[16] = {0};
    for (unsigned i = 0; i < l->n_halves; i++)
        memcpy(block + l->half_at[i], halves + i * HALVES, 2);
    for (unsigned group = 0; group < n_groups; group++) {
        uint32_t code[8];
        get_codes(l->bits, groups + 4 * r, code);
        l->write(block + l->low_at, block + l->high_at, group, code);
        groups += codes_bytes(l);
        if (!l->scales_at) continue;
        scales[2 * group] = groups[r];
        scales[2 * group + 1] = groups[r + SN_PANEL_ROWS];
        groups += 2 * SN_PANEL_ROWS;
    }
    if (l->scales_at) write_scales(l, scales, block);
}

/* ---- whole rows ---------------------------------------------------------------------------- */

/* Tiles of k keep the panel's part in the first-level cache while 16 rows pass through it. */
#define TILE 32

static void pack_values2(const uint8_t *rows, size_t n_rows, size_t k, uint8_t *panel) {
    for (size_t from = 0; from < k; from += TILE)
        for (size_t r = 0; r < n_rows; r++)
            for (size_t i = from; i < k && i < from + TILE; i++)
                memcpy(panel + 2 * (i * SN_PANEL_ROWS + r), rows + 2 * (r * k + i), 2);
}

static void pack_values4(const uint8_t *rows, size_t n_rows, size_t k, uint8_t *panel) {
    for (size_t from = 0; from < k; from += TILE)
        for (size_t r = 0; r < n_rows; r++)
            for (size_t i = from; i < k && i < from + TILE; i++)
                memcpy(panel + 4 * (i * SN_PANEL_ROWS + r), rows + 4 * (r * k + i), 4);
}

static void unpack_values(size_t bytes, const uint8_t *panel, size_t n_rows, size_t k,
                          uint8_t *rows) {
    for (size_t from = 0; from < k; from += TILE)
        for (size_t r = 0; r < n_rows; r++)
            for (size_t i = from; i < k && i < from + TILE; i++)
                memcpy(rows + bytes * (r * k + i), panel + bytes * (i * SN_PANEL_ROWS + r),
                       bytes);
}

bool sn_panel_pack(const sn_type *type, const uint8_t *rows, size_t n_rows, size_t k,
                   uint8_t *panel) {
    const layout *l = find_layout(type);
    if (!type->finite(rows, n_rows * k)) return false;
    if (n_rows < SN_PANEL_ROWS) memset(panel, 0, sn_panel_bytes(type, k));
    if (l->value_bytes == 2) pack_values2(rows, n_rows, k, panel);
    if (l->value_bytes == 4) pack_values4(rows, n_rows, k, panel);
    if (l->value_bytes) return true;

    size_t blocks = k / type->block, step = block_bytes(l, type->block);
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < n_rows; r++)
            pack_block(l, type->block / 32, rows + (r * blocks + b) * type->block_bytes, r,
                       panel + b * step);
    return true;
}

void sn_panel_unpack(const sn_type *type, const uint8_t *panel, size_t n_rows, size_t k,
                     uint8_t *rows) {
    const layout *l = find_layout(type);
    if (l->value_bytes) {
        unpack_values(l->value_bytes, panel, n_rows, k, rows);
        return;
    }
    size_t blocks = k / type->block, step = block_bytes(l, type->block);
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < n_rows; r++)
            unpack_block(l, type->block / 32, panel + b * step, r,
                         rows + (r * blocks + b) * type->block_bytes);
}
