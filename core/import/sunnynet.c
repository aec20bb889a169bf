/*
 * sunnynet.c: SunnyNet checkpoints: the .pt of the origin (dictionary of arch, model, config and
 * summary) and its safetensors (config in the metadata), under the names of docs/formats.md.
 * What follows from the configuration alone is computed here, once: 1 / H from theta, tanh(a), the
 * feedback matrix with the circulant taps folded in.
 */
#include "import.h"

#include "computed.h"
#include "sunnynet_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- tensors ------------------------------------------------------------------------------- */

/* What a tensor of the checkpoint becomes. */
typedef enum fate {
    MATRIX, VECTOR, DELTA, WEDGE, FEEDBACK,
    FOLDED, /* read by FEEDBACK */
    UNUSED  /* buffers of the training */
} fate;

/* When it is there. */
typedef enum condition {
    ALWAYS, IF_TAPS, IF_CIRCULANT, IF_CURRENT, IF_STATE_NORM, IF_STATE_MUL, IF_ASSOC, IF_H_NORM,
    IF_UNTIED, MAYBE
} condition;

/*
 * Shapes are letters, slowest dimension first: V vocabulary, D width, E twice that, I inner, R
 * rank, K taps, S slots, M values of the memory, 1 and 3 themselves.
 */
typedef struct tensor_rule {
    const char *source, *shape, *target;
    fate fate;
    condition condition;
} tensor_rule;

static const tensor_rule layer_rules[] = {
    {"norm_in.gamma", "D", "norm_in.weight", VECTOR, ALWAYS},
    {"norm_in.center", "D", "norm_in.bias", VECTOR, ALWAYS},
    {"norm_mix.gamma", "I", "norm_mix.weight", VECTOR, ALWAYS},
    {"norm_mix.center", "I", "norm_mix.bias", VECTOR, ALWAYS},
    {"dw.weight", "D1K", "taps.weight", VECTOR, IF_TAPS},
    {"V.weight", "RD", "map_in.weight", MATRIX, ALWAYS},
    {"U.weight", "ER", "map_out.weight", MATRIX, ALWAYS},
    {"W_z.weight", "ID", "z.weight", MATRIX, ALWAYS},
    {"W_c.weight", "DI", "mix.weight", MATRIX, ALWAYS},
    {"circ.t", "3", NULL, FOLDED, IF_CIRCULANT},
    {"W_s.weight", "DD", "feedback.weight", FEEDBACK, ALWAYS},
    {"theta", "D", "delta.weight", DELTA, ALWAYS},
    {"a", "", "wedge.weight", WEDGE, IF_CURRENT}, /* 0 otherwise: see declare_layer() */
    {"b_gain", "", "gain.weight", VECTOR, ALWAYS},
    {"h_logit0", "D", NULL, UNUSED, MAYBE},
    {"delta_max", "", NULL, UNUSED, MAYBE},
    {"delta_min", "", NULL, UNUSED, MAYBE},
    {"norm_s.gamma", "D", "norm_s.weight", VECTOR, IF_STATE_NORM},
    {"norm_s.center", "D", "norm_s.bias", VECTOR, IF_STATE_NORM},
    {"W_g.weight", "DI", "state_mul.weight", MATRIX, IF_STATE_MUL},
    {"assoc.W_k.weight", "SD", "assoc_k.weight", MATRIX, IF_ASSOC},
    {"assoc.W_q.weight", "SD", "assoc_q.weight", MATRIX, IF_ASSOC},
    {"assoc.W_v.weight", "MD", "assoc_v.weight", MATRIX, IF_ASSOC},
    {"assoc.W_g.weight", "MD", "assoc_g.weight", MATRIX, IF_ASSOC},
    {"assoc.W_o.weight", "DM", "assoc_out.weight", MATRIX, IF_ASSOC},
    {"assoc.norm.gamma", "D", "assoc_norm.weight", VECTOR, IF_ASSOC},
    {"assoc.norm.center", "D", "assoc_norm.bias", VECTOR, IF_ASSOC},
    {"assoc.delta_min", "", NULL, UNUSED, MAYBE},
    {"W_a.weight", "DD", "assoc_mix.weight", MATRIX, IF_ASSOC},
};

static const tensor_rule model_rules[] = {
    {"embed.weight", "VD", "token_embd.weight", MATRIX, ALWAYS},
    {"norm_out.gamma", "D", "output_norm.weight", VECTOR, ALWAYS},
    {"norm_out.center", "D", "output_norm.bias", VECTOR, ALWAYS},
    {"head.weight", "VD", "output.weight", MATRIX, IF_UNTIED},
    {"h_norm.gamma", "D", "h_norm.weight", VECTOR, IF_H_NORM},
    {"h_norm.center", "D", "h_norm.bias", VECTOR, IF_H_NORM},
};

#define N_LAYER_RULES (sizeof layer_rules / sizeof layer_rules[0])
#define N_MODEL_RULES (sizeof model_rules / sizeof model_rules[0])

/* All that declaring a tensor needs. */
typedef struct job {
    const sn_source_model *source;
    const sn_sunnynet_config *c;
    sn_build *build;
    char from[96], to[64]; /* names of the tensor at hand */
} job;

static uint64_t letter(const sn_sunnynet_config *c, char which) {
    switch (which) {
    case 'V': return c->vocab;
    case 'D': return c->D;
    case 'E': return 2 * (uint64_t)c->D;
    case 'I': return c->inner;
    case 'R': return c->rank;
    case 'K': return c->taps;
    case 'S': return c->slots;
    case 'M': return c->values;
    case '3': return 3;
    default: return 1;
    }
}

static bool has_taps(const sn_sunnynet_config *c) {
    return c->on[SN_LOCAL_TAPS] && c->taps > 1;
}

static bool is_wanted(const sn_sunnynet_config *c, condition when, uint32_t layer) {
    switch (when) {
    case IF_TAPS: return has_taps(c);
    case IF_CIRCULANT: return c->on[SN_CIRCULANT];
    case IF_CURRENT: return c->on[SN_CURRENT];
    case IF_STATE_NORM: return c->on[SN_STATE_NORM];
    case IF_STATE_MUL: return c->on[SN_STATE_MUL];
    case IF_ASSOC: return c->on[SN_ASSOC] && layer % c->every == 0;
    case IF_H_NORM: return c->on[SN_H_NORM];
    case IF_UNTIED: return !c->tied;
    case MAYBE: return false;
    default: return true;
    }
}

/* A tensor may lie there though the configuration does not use it: a head that is tied, the wedge
 * and the taps when they are switched off, buffers. Anything else unexpected is refused. */
static bool is_tolerated(const sn_sunnynet_config *c, condition when, uint32_t layer) {
    return when == MAYBE || when == IF_UNTIED || when == IF_CURRENT || when == IF_TAPS ||
           is_wanted(c, when, layer);
}

static bool has_shape(const sn_view *view, const char *shape, const sn_sunnynet_config *c) {
    if (view->n_dims != strlen(shape)) return false;
    for (uint32_t d = 0; d < view->n_dims; d++)
        if (view->dims[d] != letter(c, shape[d])) return false;
    return true;
}

static sn_status check_shape(const job *j, const sn_view *view, const char *shape) {
    if (has_shape(view, shape, j->c)) return SN_OK;
    char got[96] = "", wanted[96] = "";
    size_t n = 0;
    for (uint32_t d = 0; d < view->n_dims && n < sizeof got; d++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%" PRIu64, d ? ", " : "",
                              view->dims[d]);
    n = 0;
    for (size_t d = 0; shape[d] && n < sizeof wanted; d++)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%s%" PRIu64, d ? ", " : "",
                              letter(j->c, shape[d]));
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s' is (%s), the config says (%s)",
                   j->source->name, view->name, got, wanted);
}

static sn_status find(const job *j, const char *name, const char *shape, const sn_view **out) {
    const sn_view *view = sn_store_find(j->source->store, name);
    if (!view)
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s' is missing", j->source->name, name);
    SN_TRY(check_shape(j, view, shape));
    *out = view;
    return SN_OK;
}

/* ---- what is computed ---------------------------------------------------------------------- */

/* 1 / H, H = h_min (h_max / h_min)^sigma(theta), in binary64, rounded once. */
static sn_status declare_delta(const job *j, const sn_view *theta) {
    const size_t D = j->c->D;
    const uint64_t dims[1] = {D};
    const double span = sn_log64(j->c->h_max / j->c->h_min);
    float *values = sn_alloc_array(D, sizeof *values);
    if (!values) return SN_E_NOMEM;
    sn_status status = sn_view_read_f32(theta, 0, D, values);
    for (size_t i = 0; i < D && status == SN_OK; i++) {
        double sigma = 1.0 / (1.0 + sn_exp64(-(double)values[i]));
        values[i] = (float)(1.0 / (j->c->h_min * sn_exp64(span * sigma)));
    }
    if (status == SN_OK) status = sn_build_values(j->build, j->to, values, 1, dims);
    sn_free(values);
    return status;
}

static sn_status declare_wedge(const job *j, const sn_view *a) {
    const uint64_t dims[1] = {1};
    float value;
    SN_TRY(sn_view_read_f32(a, 0, 1, &value));
    value = (float)sn_tanh64((double)value);
    return sn_build_values(j->build, j->to, &value, 1, dims);
}

typedef struct fold {
    const sn_view *matrix; /* (D, D) */
    float t[3];
} fold;

/*
 * With circ(s)_i = t0 s_{i-1} + t1 s_i + t2 s_{i+1}, indices mod D,
 *     (W circ)[o][j] = t0 W[o][j+1] + t1 W[o][j] + t2 W[o][j-1],
 * in float32 from left to right, as the origin's exporter computes it.
 */
static sn_status fold_row(const void *context, uint64_t row, uint64_t k, float *values) {
    const fold *f = context;
    SN_TRY(sn_view_read_f32(f->matrix, row * k, (size_t)k, values));
    const float first = values[0];
    float before = values[k - 1];
    for (uint64_t j = 0; j < k; j++) {
        const float here = values[j], after = j + 1 < k ? values[j + 1] : first;
        values[j] = f->t[0] * after + f->t[1] * here + f->t[2] * before;
        before = here;
    }
    return SN_OK;
}

static sn_status declare_feedback(const job *j, uint32_t layer, const sn_view *W_s) {
    char name[96];
    const sn_view *taps;
    fold f = {.matrix = W_s};
    sn_view view;
    if (!j->c->on[SN_CIRCULANT]) return sn_build_matrix(j->build, j->to, W_s);
    snprintf(name, sizeof name, "blocks.%" PRIu32 ".circ.t", layer);
    SN_TRY(find(j, name, "3", &taps));
    SN_TRY(sn_view_read_f32(taps, 0, 3, f.t));
    SN_TRY(sn_computed_rows(j->source->store, W_s->file->name, j->c->D, j->c->D, fold_row, &f,
                            sizeof f, &view));
    view.name = W_s->name;
    return sn_build_matrix(j->build, j->to, &view);
}

/* ---- one tensor, all tensors --------------------------------------------------------------- */

/* Dimensions of 1 in between vanish, a scalar has one dimension. */
static sn_status declare_vector(const job *j, const sn_view *view) {
    uint64_t dims[4];
    uint32_t n = 0;
    for (uint32_t d = view->n_dims; d-- > 0;)
        if (view->dims[d] != 1) dims[n++] = view->dims[d];
    if (n == 0) dims[n++] = 1;
    return sn_build_vector(j->build, j->to, view, n, dims);
}

static sn_status declare_rule(const job *j, const tensor_rule *rule, uint32_t layer) {
    const sn_view *view;
    SN_TRY(find(j, j->from, rule->shape, &view));
    switch (rule->fate) {
    case MATRIX: return sn_build_matrix(j->build, j->to, view);
    case VECTOR: return declare_vector(j, view);
    case DELTA: return declare_delta(j, view);
    case WEDGE: return declare_wedge(j, view);
    case FEEDBACK: return declare_feedback(j, layer, view);
    default: return SN_OK;
    }
}

static sn_status declare_layer(job *j, uint32_t l) {
    const uint64_t dims[1] = {1};
    const float none = 0.0f;
    for (size_t i = 0; i < N_LAYER_RULES; i++) {
        const tensor_rule *rule = &layer_rules[i];
        snprintf(j->from, sizeof j->from, "blocks.%" PRIu32 ".%s", l, rule->source);
        snprintf(j->to, sizeof j->to, "blk.%" PRIu32 ".%s", l, rule->target ? rule->target : "");
        if (is_wanted(j->c, rule->condition, l))
            SN_TRY(declare_rule(j, rule, l));
        else if (rule->fate == WEDGE)
            SN_TRY(sn_build_values(j->build, j->to, &none, 1, dims));
    }
    return SN_OK;
}

static sn_status declare_tensors(job *j) {
    for (size_t i = 0; i < N_MODEL_RULES; i++) {
        const tensor_rule *rule = &model_rules[i];
        if (!is_wanted(j->c, rule->condition, 0)) continue;
        snprintf(j->from, sizeof j->from, "%s", rule->source);
        snprintf(j->to, sizeof j->to, "%s", rule->target);
        SN_TRY(declare_rule(j, rule, 0));
    }
    for (uint32_t l = 0; l < j->c->layers; l++) SN_TRY(declare_layer(j, l));
    return SN_OK;
}

/* The rest of "blocks.<layer>." without leading zeros; NULL if `name` is none of a layer. */
static const char *split_name(const char *name, uint32_t layers, uint32_t *layer) {
    uint64_t number = 0;
    const char *digit = name + 7;
    if (strncmp(name, "blocks.", 7) || (digit[0] == '0' && digit[1] != '.')) return NULL;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        number = 10 * number + (uint64_t)(*digit - '0');
        if (number >= layers) return NULL;
    }
    if (digit == name + 7 || *digit != '.') return NULL;
    *layer = (uint32_t)number;
    return digit + 1;
}

static bool is_expected(const sn_sunnynet_config *c, const char *name) {
    uint32_t layer = 0;
    const char *rest = split_name(name, c->layers, &layer);
    const tensor_rule *rules = rest ? layer_rules : model_rules;
    const size_t n = rest ? N_LAYER_RULES : N_MODEL_RULES;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(rest ? rest : name, rules[i].source))
            return is_tolerated(c, rules[i].condition, layer);
    return false;
}

/* A tensor that the config does not explain would be left out in silence: another model. */
static sn_status check_unexpected(const sn_source_model *source, const sn_sunnynet_config *c) {
    for (size_t i = 0; i < sn_store_count(source->store); i++) {
        const char *name = sn_store_at(source->store, i)->name;
        if (!is_expected(c, name))
            return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' has no place in the model that "
                           "the config describes", source->name, name);
    }
    return SN_OK;
}

/* ---- the importer -------------------------------------------------------------------------- */

static bool recognises(const sn_source_model *source) {
    const sn_store *store = source->store;
    if (sn_json_is(sn_json_get(source->config, "model_type"), "sunnynet")) return true;
    if (sn_store_note(store, "sunnynet.config")) return true;
    /* the origin's .pt, also of its other models: refused by name */
    if (sn_store_note(store, "arch") && sn_store_note(store, "config")) return true;
    return sn_store_find(store, "blocks.0.W_z.weight") && sn_store_find(store, "blocks.0.theta");
}

/* A .pt may hold any of the origin's models; without the member it is a SunnyNet. */
static sn_status check_arch(const sn_source_model *source) {
    const char *note = sn_store_note(source->store, "arch");
    if (!note || !strcmp(note, "\"sunnynet\"") || !strcmp(note, "null")) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: a checkpoint of %.64s, not of \"sunnynet\"",
                   source->name, note);
}

static sn_status declare_with(const sn_source_model *source, const sn_json *object,
                              sn_build *build) {
    sn_sunnynet_config c;
    SN_TRY(sn_sunnynet_read_config(source->name, object, &c));
    SN_TRY(sn_sunnynet_declare_config(&c, build));
    SN_TRY(check_unexpected(source, &c));
    job j = {.source = source, .c = &c, .build = build};
    return declare_tensors(&j);
}

/* The checkpoint's own configuration goes before a config.json beside it. */
static sn_status declare(const sn_source_model *source, sn_build *build) {
    const char *note = sn_store_note(source->store, "sunnynet.config");
    SN_TRY(check_arch(source));
    if (!note) note = sn_store_note(source->store, "config");
    if (!note) return declare_with(source, source->config, build);
    sn_json_document *document;
    SN_TRY(sn_json_parse(note, strlen(note), source->name, true, &document));
    sn_status status = declare_with(source, sn_json_root(document), build);
    sn_json_free(document);
    return status;
}

const sn_importer sn_import_sunnynet = {
    .architecture = "sunnynet", .recognises = recognises, .declare = declare};
