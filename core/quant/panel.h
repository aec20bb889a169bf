/*
 * panel.h: how a weight matrix lies in memory. 16 output rows form a panel; inside it the
 * layout is k-major, so that a vector lane is an output row (docs/determinism.md).
 *
 * Bytes of one panel, "word" = 16 rows x 4 bytes (row r's bytes at 4 r), k = input index:
 *
 *   F32 F16 BF16  for each k: 16 elements. k is not padded.
 *   The others, for each block of 32 k, in this order:
 *     quants  an element's code u as an unsigned number:
 *             Q8_0: u = q + 128; all others: the code as stored, 0 .. 2^bits - 1
 *             2-bit      2 words; word h, byte j, bits 2i..2i+1 are for k = 4(4h + i) + j
 *             third bit  1 word after them; bit g of byte j is for k = 4g + j
 *             8-bit      8 words; word g holds k = 4g .. 4g+3, one byte each
 *             low 4 bits 4 words; word g: low nibbles k = 4g + j, high nibbles k = 16 + 4g + j
 *                        (j = byte in the word)
 *             5th bit    1 word after the nibbles; bit g of byte j is for k = 4g + j
 *             bits 4-5   2 words after the nibbles, like those of 2 bits
 *     scales  16 elements each, row r at index r
 *             Q8_0 Q4_0 Q5_0 IQ4_NL: d (f16)   Q4_1 Q5_1: d (f16), then m (f16)
 *             Q2_K: sc (low nibble) and mn (high nibble) of k 0..15, then of k 16..31
 *             Q4_K Q5_K: sc (u8), then mn (u8), both unpacked from 6 bits
 *             Q3_K Q6_K: sc (i8) of k 0..15, then of k 16..31; Q3_K's unpacked from 6 bits
 *             IQ4_XS: sc (i8), unpacked from 6 bits
 *             I4: the scale (f32), behind the quants of two blocks of 32
 *   Types with blocks of 256 begin each with d (f16 x 16), Q2_K, Q4_K and Q5_K also dmin
 *   (f16 x 16), before their eight blocks of 32.
 *
 * Bytes are those of the file, in another order, but where 6-bit scales become bytes: Q4_K is
 * 2.8 % larger, Q5_K 2.3 %, Q3_K 3.6 %, IQ4_XS 1.5 %.
 *
 * Missing rows of the last panel are rows whose scales (or values) are zero.
 */
#ifndef SN_QUANT_PANEL_H
#define SN_QUANT_PANEL_H

#include "types.h"

#define SN_PANEL_ROWS 16

/* True if matrices of this type can be packed (every type with a panel layout above). */
bool sn_panel_supports(const sn_type *type);

/* Bytes of one panel of rows of k elements; k is a multiple of the type's block. */
size_t sn_panel_bytes(const sn_type *type, size_t k);

/*
 * Packs `n_rows` (1..16) rows that lie one after the other at `rows`, as in the file.
 * False if a scale or value is a NaN or infinite; the panel is then half written.
 */
bool sn_panel_pack(const sn_type *type, const uint8_t *rows, size_t n_rows, size_t k,
                   uint8_t *panel);

/* False if a scale or value of a panel is a NaN or infinite, those of missing rows included. */
bool sn_panel_finite(const sn_type *type, const uint8_t *panel, size_t k);

/* The way back, to the very bytes of the file (the proof that packing loses nothing). */
void sn_panel_unpack(const sn_type *type, const uint8_t *panel, size_t n_rows, size_t k,
                     uint8_t *rows);

/*
 * Row `row` (0..15) as float32 [k]: the bits that type->decode gives for the file's row. For
 * embeddings that are also the head: a token's row is read from the head's panel.
 */
void sn_panel_row(const sn_type *type, const uint8_t *panel, size_t row, size_t k, float *y);

#endif
