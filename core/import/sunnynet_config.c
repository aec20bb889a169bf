#include "sunnynet_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NORM_EPS ((float)(0.02 * 0.02 + 1e-5)) /* s_min^2 + eps, in every published model */

/* ---- reading ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool fallback;
    bool is_key; /* the runtime must be told; otherwise the tensors say it */
} switches[SN_SWITCH_COUNT] = {
    [SN_DECAY_GATE] = {"decay_gate", true, true},
    [SN_CIRCULANT] = {"circulant", true, false},
    [SN_LOCAL_TAPS] = {"local_taps", true, true},
    [SN_CURRENT] = {"current", true, true},
    [SN_RESIDUAL] = {"residual", true, true},
    [SN_STATE_NORM] = {"state_norm", false, true},
    [SN_STATE_MUL] = {"state_mul", false, true},
    [SN_H_NORM] = {"h_norm", false, true},
    [SN_ASSOC] = {"assoc", false, false},
};

/* The configuration while it is read. */
typedef struct reader {
    const char *name; /* of the file */
    const sn_json *object;
} reader;

static sn_status bad_value(const reader *r, const char *key, const char *wanted) {
    return sn_fail(SN_E_FORMAT, "%.300s: config '%.64s' is not %s", r->name, key, wanted);
}

static sn_status get_size(const reader *r, const char *key, uint32_t low, uint32_t high,
                          uint32_t *out) {
    const sn_json *value = sn_json_get(r->object, key);
    if (!value) return SN_OK;
    if (value->kind != SN_JSON_NUMBER || !value->is_integer || value->number < low ||
        value->number > high) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "a whole number in %" PRIu32 "..%" PRIu32, low, high);
        return bad_value(r, key, wanted);
    }
    *out = (uint32_t)value->number;
    return SN_OK;
}

static sn_status get_span(const reader *r, const char *key, double *out) {
    const sn_json *value = sn_json_get(r->object, key);
    if (!value) return SN_OK;
    if (value->kind != SN_JSON_NUMBER || !(value->number >= 1e-6 && value->number <= 1e30))
        return bad_value(r, key, "a number in 1e-6..1e30");
    *out = value->number;
    return SN_OK;
}

static sn_status get_bool(const reader *r, const char *key, bool *out) {
    const sn_json *value = sn_json_get(r->object, key);
    if (!value) return SN_OK;
    if (value->kind != SN_JSON_TRUE && value->kind != SN_JSON_FALSE)
        return bad_value(r, key, "true or false");
    *out = value->kind == SN_JSON_TRUE;
    return SN_OK;
}

static bool is_known_switch(const char *key) {
    for (int i = 0; i < SN_SWITCH_COUNT; i++)
        if (!strcmp(key, switches[i].name)) return true;
    return !strcmp(key, "assoc_slots") || !strcmp(key, "assoc_m") || !strcmp(key, "assoc_every");
}

/* assoc_every below 1 means every layer, as 1 does. */
static sn_status get_every(const reader *r, uint32_t *every) {
    const sn_json *value = sn_json_get(r->object, "assoc_every");
    if (value && value->kind == SN_JSON_NUMBER && value->is_integer && value->number < 1) {
        *every = 1;
        return SN_OK;
    }
    return get_size(r, "assoc_every", 1, UINT32_MAX, every);
}

static sn_status read_switches(const char *name, const sn_json *object, sn_sunnynet_config *c) {
    const reader r = {name, object};
    if (object && object->kind != SN_JSON_OBJECT && object->kind != SN_JSON_NULL)
        return bad_value(&r, "ablation", "an object");
    const sn_json *first = object && object->kind == SN_JSON_OBJECT ? object->first : NULL;
    for (const sn_json *member = first; member; member = member->next)
        if (!is_known_switch(member->key))
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: ablation '%.64s' is not known", name,
                           member->key);
    for (int i = 0; i < SN_SWITCH_COUNT; i++) SN_TRY(get_bool(&r, switches[i].name, &c->on[i]));
    SN_TRY(get_size(&r, "assoc_slots", 1, 1 << 20, &c->slots));
    SN_TRY(get_size(&r, "assoc_m", 1, 1 << 20, &c->values));
    return get_every(&r, &c->every);
}

/* K of 0 or 1 is no convolution. */
static sn_status get_taps(const reader *r, sn_sunnynet_config *c) {
    SN_TRY(get_size(r, "taps", 0, 1 << 12, &c->taps));
    if (c->taps == 0) c->taps = 1;
    return SN_OK;
}

sn_status sn_sunnynet_read_config(const char *name, const sn_json *object,
                                  sn_sunnynet_config *c) {
    const reader r = {name, object};
    *c = (sn_sunnynet_config){.vocab = 12000, .D = 256, .inner = 384, .rank = 128, .taps = 4,
                              .layers = 6, .slots = 128, .values = 64, .every = 1, .h_min = 2.0,
                              .h_max = 8192.0, .tied = true};
    for (int i = 0; i < SN_SWITCH_COUNT; i++) c->on[i] = switches[i].fallback;
    if (!object || object->kind != SN_JSON_OBJECT)
        return sn_fail(SN_E_FORMAT, "%.300s: has no config", name);
    SN_TRY(get_size(&r, "vocab_size", 1, 1 << 24, &c->vocab));
    SN_TRY(get_size(&r, "dim", 1, 1 << 20, &c->D));
    SN_TRY(get_size(&r, "inner", 1, 1 << 20, &c->inner));
    SN_TRY(get_size(&r, "rank", 1, 1 << 20, &c->rank));
    SN_TRY(get_taps(&r, c));
    SN_TRY(get_size(&r, "layers", 1, 1024, &c->layers));
    SN_TRY(get_span(&r, "h_min", &c->h_min));
    SN_TRY(get_span(&r, "h_max", &c->h_max));
    SN_TRY(get_bool(&r, "tie_embeddings", &c->tied));
    if (c->h_max < c->h_min) return bad_value(&r, "h_max", "at least h_min");
    return read_switches(name, sn_json_get(object, "ablation"), c);
}

/* ---- declaring ----------------------------------------------------------------------------- */

/* The largest of 8, 4, 3 that divides D, else its smallest divisor from 3 on, else D itself. */
static uint32_t group_size(uint32_t D) {
    if (D % 8 == 0) return 8;
    if (D % 4 == 0) return 4;
    for (uint32_t divisor = 3; divisor < D; divisor++)
        if (D % divisor == 0) return divisor;
    return D;
}

/* The decay can fall below 1 / h_max only if the shortest span is shorter than this. */
static bool needs_clamp(const sn_sunnynet_config *c) {
    return 1.0 - 1.0 / c->h_min < 1.0 / c->h_max;
}

sn_status sn_sunnynet_declare_config(const sn_sunnynet_config *c, sn_build *build) {
    char key[64];
    SN_TRY(sn_build_text(build, "general.architecture", "sunnynet", 8));
    SN_TRY(sn_build_u32(build, "sunnynet.block_count", c->layers));
    SN_TRY(sn_build_u32(build, "sunnynet.embedding_length", c->D));
    SN_TRY(sn_build_u32(build, "sunnynet.vocab_size", c->vocab));
    SN_TRY(sn_build_u32(build, "sunnynet.inner_length", c->inner));
    SN_TRY(sn_build_u32(build, "sunnynet.rank", c->rank));
    SN_TRY(sn_build_u32(build, "sunnynet.taps", c->taps));
    SN_TRY(sn_build_u32(build, "sunnynet.group_size", group_size(c->D)));
    SN_TRY(sn_build_f32(build, "sunnynet.layer_norm_epsilon", NORM_EPS));
    SN_TRY(sn_build_f32(build, "sunnynet.h_min", (float)c->h_min));
    SN_TRY(sn_build_f32(build, "sunnynet.h_max", (float)c->h_max));
    if (needs_clamp(c))
        SN_TRY(sn_build_f32(build, "sunnynet.decay_floor", (float)(1.0 / c->h_max)));
    for (int i = 0; i < SN_SWITCH_COUNT; i++) {
        if (!switches[i].is_key || c->on[i] == switches[i].fallback) continue;
        snprintf(key, sizeof key, "sunnynet.%s", switches[i].name);
        SN_TRY(sn_build_bool(build, key, c->on[i]));
    }
    return SN_OK;
}
