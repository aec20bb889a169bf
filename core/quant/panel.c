/*
 * Rows of a file to panels and back. A group of 32 codes of one row passes through eight words
 * of four codes each, one code a byte (panel_layout.h): each type has a way from its block to
 * these words and back; the panel's side depends on the bits alone.
 */
#include "panel.h"

#include "bytes.h"
#include "panel_layout.h"

#define WORD (SN_PANEL_ROWS * 4) /* bytes of a panel word: 4 of each row */

bool sn_panel_supports(const sn_type *type) {
    return sn_panel_layout_of(type) != NULL;
}

/* Bytes of the codes of 32 k, all rows. */
static size_t codes_bytes(const sn_panel_layout *l) {
    return (size_t)l->bits * WORD;
}

/* Bytes of one scale of a block, all rows. */
static size_t half_bytes(const sn_panel_layout *l) {
    return (size_t)l->half_bytes * SN_PANEL_ROWS;
}

/* Bytes of one block of the type, all rows. */
static size_t block_bytes(const sn_panel_layout *l, size_t block) {
    size_t group_scales = l->n_scales * (size_t)SN_PANEL_ROWS;
    return l->n_halves * half_bytes(l) + block / 32 * (codes_bytes(l) + group_scales);
}

size_t sn_panel_bytes(const sn_type *type, size_t k) {
    const sn_panel_layout *l = sn_panel_layout_of(type);
    if (l->value_bytes) return SN_PANEL_ROWS * k * l->value_bytes;
    return k / type->block * block_bytes(l, type->block);
}

/* ---- the panel's side: the codes of one row in one group; `row` is the row's first byte --- */

/* Bit `from` of all codes: one word. */
static void put_bits(const uint32_t code[8], unsigned from, uint8_t *row) {
    uint32_t word = 0;
    for (int g = 0; g < 8; g++)
        word |= (code[g] >> from & SN_BITS) << g;
    sn_store32(row, word);
}

static void add_bits(const uint8_t *row, unsigned to, uint32_t code[8]) {
    for (int g = 0; g < 8; g++)
        code[g] |= (sn_load32(row) >> g & SN_BITS) << to;
}

/* Bits `from` and `from` + 1 of all codes: two words. */
static void put_pairs(const uint32_t code[8], unsigned from, uint8_t *row) {
    for (int h = 0; h < 2; h++) {
        uint32_t word = 0;
        for (int i = 0; i < 4; i++)
            word |= (code[4 * h + i] >> from & SN_PAIRS) << 2 * i;
        sn_store32(row + h * WORD, word);
    }
}

static void add_pairs(const uint8_t *row, unsigned to, uint32_t code[8]) {
    for (int g = 0; g < 8; g++)
        code[g] |= (sn_load32(row + g / 4 * WORD) >> 2 * (g % 4) & SN_PAIRS) << to;
}

static void put_codes(unsigned bits, const uint32_t code[8], uint8_t *row) {
    if (bits == 8) {
        for (int g = 0; g < 8; g++)
            sn_store32(row + g * WORD, code[g]);
        return;
    }
    if (bits < 4) {
        put_pairs(code, 0, row);
        if (bits == 3) put_bits(code, 2, row + 2 * WORD);
        return;
    }
    for (int g = 0; g < 4; g++)
        sn_store32(row + g * WORD, (code[g] & SN_NIBBLES) | (code[g + 4] & SN_NIBBLES) << 4);
    if (bits == 5) put_bits(code, 4, row + 4 * WORD);
    if (bits == 6) put_pairs(code, 4, row + 4 * WORD);
}

static void get_codes(unsigned bits, const uint8_t *row, uint32_t code[8]) {
    if (bits == 8) {
        for (int g = 0; g < 8; g++)
            code[g] = sn_load32(row + g * WORD);
        return;
    }
    if (bits < 4) {
        memset(code, 0, 8 * sizeof code[0]);
        add_pairs(row, 0, code);
        if (bits == 3) add_bits(row + 2 * WORD, 2, code);
        return;
    }
    for (int g = 0; g < 4; g++) {
        uint32_t word = sn_load32(row + g * WORD);
        code[g] = word & SN_NIBBLES;
        code[g + 4] = word >> 4 & SN_NIBBLES;
    }
    if (bits == 5) add_bits(row + 4 * WORD, 4, code);
    if (bits == 6) add_pairs(row + 4 * WORD, 4, code);
}

/* ---- one block of one row ------------------------------------------------------------------ */

/* The block's own scales stand before its groups where those have scales too, else behind them. */
static size_t halves_at(const sn_panel_layout *l, unsigned n_groups) {
    return l->n_scales ? 0 : n_groups * codes_bytes(l);
}

static size_t groups_at(const sn_panel_layout *l) {
    return l->n_scales ? l->n_halves * half_bytes(l) : 0;
}

static void pack_block(const sn_panel_layout *l, unsigned n_groups, const uint8_t *block,
                       size_t r, uint8_t *panel) {
    uint8_t *halves = panel + halves_at(l, n_groups) + l->half_bytes * r;
    uint8_t *groups = panel + groups_at(l);
    uint8_t scales[16] = {0};
    for (unsigned i = 0; i < l->n_halves; i++)
        memcpy(halves + i * half_bytes(l), block + l->half_at[i], l->half_bytes);
    if (l->n_scales) l->read_scales(block, scales);
    for (unsigned group = 0; group < n_groups; group++) {
        uint32_t code[8];
        l->read(block + l->low_at, block + l->high_at, group, code);
        put_codes(l->bits, code, groups + 4 * r);
        groups += codes_bytes(l);
        for (unsigned i = 0; i < l->n_scales; i++, groups += SN_PANEL_ROWS)
            groups[r] = scales[l->n_scales * group + i];
    }
}

static void unpack_block(const sn_panel_layout *l, unsigned n_groups, const uint8_t *panel,
                         size_t r, uint8_t *block) {
    const uint8_t *halves = panel + halves_at(l, n_groups) + l->half_bytes * r;
    const uint8_t *groups = panel + groups_at(l);
    uint8_t scales[16] = {0};
    for (unsigned i = 0; i < l->n_halves; i++)
        memcpy(block + l->half_at[i], halves + i * half_bytes(l), l->half_bytes);
    for (unsigned group = 0; group < n_groups; group++) {
        uint32_t code[8];
        get_codes(l->bits, groups + 4 * r, code);
        l->write(block + l->low_at, block + l->high_at, group, code);
        groups += codes_bytes(l);
        for (unsigned i = 0; i < l->n_scales; i++, groups += SN_PANEL_ROWS)
            scales[l->n_scales * group + i] = groups[r];
    }
    if (l->n_scales) l->write_scales(scales, block);
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
    const sn_panel_layout *l = sn_panel_layout_of(type);
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

/* Only where scales are f16: I4's are in no file that is packed. */
bool sn_panel_finite(const sn_type *type, const uint8_t *panel, size_t k) {
    const sn_panel_layout *l = sn_panel_layout_of(type);
    if (l->value_bytes) return type->finite(panel, SN_PANEL_ROWS * k);
    const size_t blocks = k / type->block, step = block_bytes(l, type->block);
    const size_t n = (size_t)l->n_halves * SN_PANEL_ROWS;
    const uint8_t *halves = panel + halves_at(l, type->block / 32);
    bool finite = true;
    for (size_t b = 0; b < blocks; b++)
        finite &= sn_halves_finite(halves + b * step, n, SN_F16_EXPONENT);
    return finite;
}

void sn_panel_unpack(const sn_type *type, const uint8_t *panel, size_t n_rows, size_t k,
                     uint8_t *rows) {
    const sn_panel_layout *l = sn_panel_layout_of(type);
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

/* ---- one row, decoded ---------------------------------------------------------------------- */

/* Values that pass through the stack at a time. */
#define SLICE 256

static void decode_value_row(const sn_type *type, const uint8_t *panel, size_t r, size_t k,
                             float *y) {
    uint8_t slice[4 * SLICE];
    size_t bytes = type->block_bytes;
    for (size_t from = 0; from < k; from += SLICE) {
        size_t n = k - from < SLICE ? k - from : SLICE;
        for (size_t i = 0; i < n; i++)
            memcpy(slice + bytes * i, panel + bytes * ((from + i) * SN_PANEL_ROWS + r), bytes);
        type->decode(slice, y + from, n);
    }
}

void sn_panel_row(const sn_type *type, const uint8_t *panel, size_t row, size_t k, float *y) {
    const sn_panel_layout *l = sn_panel_layout_of(type);
    if (l->value_bytes) {
        decode_value_row(type, panel, row, k, y);
        return;
    }
    uint8_t block[SN_BLOCK_BYTES_MAX];
    size_t blocks = k / type->block, step = block_bytes(l, type->block);
    for (size_t b = 0; b < blocks; b++) {
        unpack_block(l, type->block / 32, panel + b * step, row, block);
        type->decode(block, y + b * type->block, type->block);
    }
}
