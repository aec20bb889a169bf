#include "convert_types.h"

#include <string.h>

/* ---- what can be asked for ------------------------------------------------------------------ */

#define UNIFORM(name, type, file_type) {name, type, type, type, file_type}

/*
 * The mixes in one rule: the head is Q6_K, since every logit hangs on its rounding; "s" has the
 * type itself elsewhere, "m" and "l" have one or two steps more where errors add up or stay.
 * The K types without a suffix mean what llama.cpp means by them.
 */
static const sn_mix mixes[] = {
    UNIFORM("f32", SN_TYPE_F32, 0),
    UNIFORM("f16", SN_TYPE_F16, 1),
    UNIFORM("bf16", SN_TYPE_BF16, 32),
    UNIFORM("q8_0", SN_TYPE_Q8_0, 7),
    UNIFORM("q6_k", SN_TYPE_Q6_K, 18),
    {"q5_k", SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q6_K, 17},
    {"q5_k_m", SN_TYPE_Q5_K, SN_TYPE_Q6_K, SN_TYPE_Q6_K, 17},
    {"q5_k_s", SN_TYPE_Q5_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 16},
    UNIFORM("q5_1", SN_TYPE_Q5_1, 9),
    UNIFORM("q5_0", SN_TYPE_Q5_0, 8),
    {"q4_k", SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 15},
    {"q4_k_m", SN_TYPE_Q4_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 15},
    {"q4_k_s", SN_TYPE_Q4_K, SN_TYPE_Q4_K, SN_TYPE_Q6_K, 14},
    UNIFORM("q4_1", SN_TYPE_Q4_1, 3),
    UNIFORM("q4_0", SN_TYPE_Q4_0, 2),
    UNIFORM("iq4_nl", SN_TYPE_IQ4_NL, 25),
    UNIFORM("iq4_xs", SN_TYPE_IQ4_XS, 30),
    {"q3_k", SN_TYPE_Q3_K, SN_TYPE_Q4_K, SN_TYPE_Q6_K, 12},
    {"q3_k_l", SN_TYPE_Q3_K, SN_TYPE_Q5_K, SN_TYPE_Q6_K, 13},
    {"q3_k_m", SN_TYPE_Q3_K, SN_TYPE_Q4_K, SN_TYPE_Q6_K, 12},
    {"q3_k_s", SN_TYPE_Q3_K, SN_TYPE_Q3_K, SN_TYPE_Q6_K, 11},
    {"q2_k", SN_TYPE_Q2_K, SN_TYPE_Q3_K, SN_TYPE_Q6_K, 10},
};

#define N_MIXES (sizeof mixes / sizeof mixes[0])

#define MAX_NAME 6

/* "f32, f16, ..." */
static void list_names(char list[N_MIXES * (MAX_NAME + 2)]) {
    size_t end = 0;
    for (size_t i = 0; i < N_MIXES; i++) {
        for (const char *c = mixes[i].name; *c; c++)
            list[end++] = *c;
        list[end++] = ',';
        list[end++] = ' ';
    }
    list[end - 2] = '\0';
}

sn_status sn_mix_find(const char *name, const sn_mix **mix) {
    char known[N_MIXES * (MAX_NAME + 2)];
    *mix = NULL;
    if (!name) return SN_OK;
    for (size_t i = 0; i < N_MIXES && !*mix; i++)
        if (sn_type_same_name(mixes[i].name, name)) *mix = &mixes[i];
    if (*mix) return SN_OK;
    list_names(known);
    return sn_fail(SN_E_UNSUPPORTED, "type '%.40s' cannot be written (supported: %s)", name, known);
}

static bool is_float(sn_type_id id) {
    return id == SN_TYPE_F32 || id == SN_TYPE_F16 || id == SN_TYPE_BF16;
}

bool sn_mix_quantises(const sn_mix *mix) {
    return !is_float(mix->most);
}

/* ---- what tensors need ---------------------------------------------------------------------- */

/*
 * SPARED and DECAY matrices stay in float types: they are small, and their rounding goes through
 * every channel. DECAY ones make a decay, which lies close to 1: 16 bits would shorten the memory.
 * CARRY ones write what stays: the values that enter the state, and the way back to the stream.
 */
typedef enum tensor_need { NEED_NONE, NEED_CARRY, NEED_SPARED, NEED_DECAY } tensor_need;

static const struct {
    const char *name; /* without "blk.N." and ".weight" */
    tensor_need need;
} needs[] = {
    {"time_mix_w1", NEED_DECAY},      {"time_mix_w2", NEED_DECAY},
    {"time_mix_a1", NEED_SPARED},     {"time_mix_a2", NEED_SPARED},
    {"time_mix_v1", NEED_SPARED},     {"time_mix_v2", NEED_SPARED},
    {"time_mix_g1", NEED_SPARED},     {"time_mix_g2", NEED_SPARED},
    {"time_mix_value", NEED_CARRY},   {"channel_mix_value", NEED_CARRY},
    {"ssm_x", NEED_SPARED},           {"ssm_dt", NEED_DECAY},
    {"ssm_out", NEED_CARRY},          {"attn_v", NEED_CARRY},
    {"attn_alpha", NEED_DECAY},       {"attn_beta", NEED_SPARED},
    {"attn_decay_a", NEED_DECAY},     {"attn_decay_b", NEED_DECAY},
    {"ffn_down", NEED_CARRY},         {"mix", NEED_CARRY},
    {"assoc_g", NEED_DECAY},          {"assoc_v", NEED_CARRY},
};

/* True if `name` is `base`, with or without "blk.N." before and ".weight" behind. */
static bool is_named(const char *name, const char *base) {
    if (!strncmp(name, "blk.", 4)) {
        const char *dot = strchr(name + 4, '.');
        if (dot) name = dot + 1;
    }
    size_t length = strlen(base);
    return !strncmp(name, base, length) && (!name[length] || !strcmp(name + length, ".weight"));
}

static tensor_need need_of(const char *name) {
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (is_named(name, needs[i].name)) return needs[i].need;
    return NEED_NONE;
}

bool sn_mix_spares(const char *name) {
    const tensor_need need = need_of(name);
    return need == NEED_SPARED || need == NEED_DECAY;
}

/* What a type becomes where rows are no multiple of 256: as llama.cpp, the type of 32-blocks with
 * no fewer bits. */
static sn_type_id with_small_blocks(sn_type_id id) {
    switch (id) {
    case SN_TYPE_Q2_K: case SN_TYPE_Q3_K: case SN_TYPE_IQ4_XS: return SN_TYPE_IQ4_NL;
    case SN_TYPE_Q4_K: return SN_TYPE_Q5_0;
    case SN_TYPE_Q5_K: return SN_TYPE_Q5_1;
    case SN_TYPE_Q6_K: return SN_TYPE_Q8_0;
    default: return id;
    }
}

static sn_type_id wanted_id(const sn_mix *mix, const sn_mix_tensor *tensor) {
    if (is_named(tensor->name, tensor->tied ? "token_embd" : "output")) return mix->head;
    return need_of(tensor->name) == NEED_CARRY ? mix->carry : mix->most;
}

const sn_type *sn_mix_type(const sn_mix *mix, const sn_mix_tensor *tensor) {
    const sn_type *source = tensor->source, *f32 = sn_type_find(SN_TYPE_F32);
    const sn_type *as_float = is_float((sn_type_id)source->id) ? source : f32;
    if (tensor->role != SN_ROLE_MATRIX && tensor->role != SN_ROLE_ROWS)
        return source->decode ? f32 : source;
    const tensor_need need = need_of(tensor->name);
    if (need == NEED_DECAY) return sn_mix_quantises(mix) ? as_float : f32;
    if (need == NEED_SPARED)
        return sn_mix_quantises(mix) ? as_float : sn_type_find(mix->most);
    const sn_type *wanted = sn_type_find(wanted_id(mix, tensor));
    if (tensor->k % wanted->block) wanted = sn_type_find(with_small_blocks(wanted->id));
    return tensor->k % wanted->block ? as_float : wanted;
}
