/*
 * layout.inl: what the layouts of core/quant/panel.h look like to a kernel: where a block stands,
 * its codes as words, its scales, what to fetch ahead.
 */

#define PREFETCH_AHEAD 4096 /* bytes, of all panels in flight together */

typedef struct layout_traits {
    int bits;       /* of a stored code; 0: a float layout */
    int dot_bits;   /* of the code u it stands for: 8 where that comes from the code book */
    int offset;     /* q = u - offset */
    int halves;     /* 2: each half of a block has a part of the scale to itself, else 1 */
    int has_min;    /* weight = scale * q + min */
    size_t quants;  /* bytes of 16 rows x 32 codes */
    size_t block;   /* quants and scales; of a float layout: one k */
    size_t header;  /* bytes before every eight blocks */
} layout_traits;

/* How often a block has 32 codes: the block of I4 is 64, its quants lie one after the other. */
SN_INLINE size_t groups_of(sn_layout layout) { return layout == SN_LAYOUT_I4 ? 2 : 1; }

SN_INLINE layout_traits traits_of(sn_layout layout) {
    switch (layout) {
    case SN_LAYOUT_F32: return (layout_traits){ .block = 64 };
    case SN_LAYOUT_F16:
    case SN_LAYOUT_BF16: return (layout_traits){ .block = 32 };
    case SN_LAYOUT_Q8_0: return (layout_traits){ 8, 8, 128, 1, 0, 512, 544, 0 };
    case SN_LAYOUT_Q4_0: return (layout_traits){ 4, 4, 8, 1, 0, 256, 288, 0 };
    case SN_LAYOUT_Q4_1: return (layout_traits){ 4, 4, 0, 1, 1, 256, 320, 0 };
    case SN_LAYOUT_Q5_0: return (layout_traits){ 5, 5, 16, 1, 0, 320, 352, 0 };
    case SN_LAYOUT_Q5_1: return (layout_traits){ 5, 5, 0, 1, 1, 320, 384, 0 };
    case SN_LAYOUT_Q2_K: return (layout_traits){ 2, 2, 0, 2, 1, 128, 160, 64 };
    case SN_LAYOUT_Q3_K: return (layout_traits){ 3, 3, 4, 2, 0, 192, 224, 32 };
    case SN_LAYOUT_Q4_K: return (layout_traits){ 4, 4, 0, 1, 1, 256, 288, 64 };
    case SN_LAYOUT_Q5_K: return (layout_traits){ 5, 5, 0, 1, 1, 320, 352, 64 };
    case SN_LAYOUT_IQ4_NL: return (layout_traits){ 4, 8, 128, 1, 0, 256, 288, 0 };
    case SN_LAYOUT_IQ4_XS: return (layout_traits){ 4, 8, 128, 1, 0, 256, 272, 32 };
    case SN_LAYOUT_I4: return (layout_traits){ 4, 4, 8, 1, 0, 256, 576, 0 };
    default: return (layout_traits){ 6, 6, 32, 2, 0, 384, 416, 32 }; /* Q6_K */
    }
}

/* Where block b of a panel begins. */
SN_INLINE const uint8_t *block_at(sn_layout layout, const uint8_t *panel, size_t b) {
    const layout_traits t = traits_of(layout);
    return t.header ? panel + b / 8 * (t.header + 8 * t.block) + t.header + b % 8 * t.block
                    : panel + b * t.block;
}

/* What a nibble of the IQ4 types stands for, plus 128: -127 -104 -83 -65 -49 -35 -22 -10 1 13 25
 * 38 53 69 89 113. */
static const uint8_t iq4_book[16] = {
    1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241
};

/* Bits that stand at `from` of every byte, moved to `to`. */
SN_INLINE vi move_bits(vi bits, int from, int to) {
    return from >= to ? vi_shr(bits, from - to) : vi_shl(bits, to - from);
}

/* Two bits of the codes g of each row, from two words; one bit, from one; to stand at `to`. */
SN_INLINE vi code_pairs(const uint8_t *words, int g, int to) {
    return vi_and(move_bits(vi_load(words + 64 * (g >> 2)), 2 * (g & 3), to),
                  vi_set1(0x03030303 << to));
}
SN_INLINE vi code_bits(const uint8_t *word, int g, int to) {
    return vi_and(move_bits(vi_load(word), g, to), vi_set1(0x01010101 << to));
}

/* The four codes u of k = 4g .. 4g+3 of each row. */
SN_INLINE vi code_word(sn_layout layout, const uint8_t *quants, int g) {
    const int bits = traits_of(layout).bits;
    if (bits == 8) return vi_load(quants + 64 * g);
    if (bits == 2) return code_pairs(quants, g, 0);
    if (bits == 3) return vi_or(code_pairs(quants, g, 0), code_bits(quants + 128, g, 2));
    vi nibbles = vi_load(quants + 64 * (g & 3));
    vi word = vi_and(g < 4 ? nibbles : vi_shr(nibbles, 4), vi_set1(0x0f0f0f0f));
    if (bits == 5) word = vi_or(word, code_bits(quants + 256, g, 4));
    if (bits == 6) word = vi_or(word, code_pairs(quants + 256, g, 4));
    if (layout == SN_LAYOUT_IQ4_NL || layout == SN_LAYOUT_IQ4_XS)
        word = dot_lookup(word, iq4_book);
    return word;
}

/* 16 weights of a float layout. */
SN_INLINE vf load_weights(sn_layout layout, const uint8_t *p) {
    if (layout == SN_LAYOUT_F16) return vf_load_f16(p);
    if (layout == SN_LAYOUT_BF16) return vf_load_bf16(p);
    return vf_load((const float *)(const void *)p);
}

/* A block's scales: weight = scale * q + min; with parts for the halves of the block it is
 * scale * part[half] * q, and for Q2_K + min * min_part[half]. */
typedef struct block_scales {
    vf scale, min;
    vi part[2], min_part[2];
} block_scales;

/* Of eight blocks with a header: the factor of their scales and that of their minima, < 0. */
typedef struct block_factors { vf scale, min; } block_factors;

SN_INLINE block_factors factors_of(sn_layout layout, const uint8_t *panel, size_t b) {
    const layout_traits t = traits_of(layout);
    const uint8_t *header = panel + b / 8 * (t.header + 8 * t.block);
    block_factors f = { vf_zero(), vf_zero() };
    if (!t.header) return f;
    f.scale = vf_load_f16(header);
    if (t.has_min) f.min = vf_neg(vf_load_f16(header + 32));
    return f;
}

/* The scales of the block at `block`. */
SN_INLINE block_scales scales_of(sn_layout layout, const block_factors *f, const uint8_t *block) {
    const layout_traits t = traits_of(layout);
    const uint8_t *scales = block + groups_of(layout) * t.quants;
    block_scales s;
    if (layout == SN_LAYOUT_I4) {
        s.scale = load_weights(SN_LAYOUT_F32, scales);
    } else if (!t.header) {
        s.scale = vf_load_f16(scales);
        if (t.has_min) s.min = vf_load_f16(scales + 32);
    } else if (layout == SN_LAYOUT_Q2_K) {
        s.scale = f->scale, s.min = f->min;
        for (int h = 0; h < 2; h++) {
            const vi pair = vi_load_u8(scales + 16 * h);
            s.part[h] = vi_and(pair, vi_set1(15));
            s.min_part[h] = vi_shr(pair, 4);
        }
    } else if (t.halves == 2) { /* Q3_K, Q6_K */
        s.scale = f->scale;
        for (int h = 0; h < 2; h++) s.part[h] = vi_load_i8(scales + 16 * h);
    } else if (!t.has_min) { /* IQ4_XS */
        s.scale = vf_mul(f->scale, vf_of_int(vi_load_i8(scales)));
    } else {
        s.scale = vf_mul(f->scale, vf_of_int(vi_load_u8(scales)));
        s.min = vf_mul(f->min, vf_of_int(vi_load_u8(scales + 16)));
    }
    return s;
}

/* What will be read when np panels in flight have gone PREFETCH_AHEAD bytes on from offset `at`:
 * behind a panel's end its successor in the same stream, np panels on. */
SN_INLINE const uint8_t *ahead_of(const uint8_t *panel, size_t at, size_t panel_bytes,
                                  size_t np) {
    at += PREFETCH_AHEAD / np;
    return panel + (at < panel_bytes ? at : at + (np - 1) * panel_bytes);
}

/* A block's bytes that far ahead. */
SN_INLINE void prefetch_block(const uint8_t *panel, size_t at, size_t bytes, size_t panel_bytes,
                              size_t np) {
    const uint8_t *ahead = ahead_of(panel, at, panel_bytes, np);
    for (size_t line = 0; line < bytes; line += 64) prefetch(ahead + line);
}
