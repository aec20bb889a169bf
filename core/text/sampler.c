/*
 * sampler.c: the public sampler functions: options are checked here, and all memory a sampler
 * will ever need is had here.
 */
#include "sampler_internal.h"

#include "../worker.h"
#include "tokenizer.h"

#include <inttypes.h>
#include <string.h>

void sn_sampler_options_init(sn_sampler_options *options) {
    if (!options) return;
    *options = (sn_sampler_options){
        .struct_size = sizeof(sn_sampler_options), .temperature = 0.8f, .top_k = 40,
        .top_p = 0.95f, .repetition_penalty = 1.0f, .penalty_last_n = 64,
    };
}

/* ---- options ------------------------------------------------------------------------ */

static sn_status out_of_range(const char *option, double value, const char *range) {
    return sn_fail(SN_E_INVAL, "sampler: %s is %g, not %s", option, value, range);
}

static sn_status check_numbers(const sn_sampler_options *o) {
    if (!(o->temperature >= 0 && o->temperature <= FLT_MAX))
        return out_of_range("temperature", o->temperature, "a finite number of at least 0");
    if (o->top_k < 0) return out_of_range("top_k", o->top_k, "at least 0");
    if (!(o->top_p > 0 && o->top_p <= 1))
        return out_of_range("top_p", o->top_p, "above 0 and at most 1");
    if (!(o->min_p >= 0 && o->min_p < 1))
        return out_of_range("min_p", o->min_p, "at least 0 and below 1");
    if (!(o->repetition_penalty > 0 && o->repetition_penalty <= FLT_MAX))
        return out_of_range("repetition_penalty", o->repetition_penalty, "finite and above 0");
    if (!sn_is_finite(o->presence_penalty))
        return out_of_range("presence_penalty", o->presence_penalty, "finite");
    if (!sn_is_finite(o->frequency_penalty))
        return out_of_range("frequency_penalty", o->frequency_penalty, "finite");
    if (o->penalty_last_n < -1)
        return out_of_range("penalty_last_n", o->penalty_last_n, "at least -1");
    return SN_OK;
}

static bool forbids(sn_logit_bias bias) {
    return bias.bias < -FLT_MAX; /* -infinity */
}

static sn_status check_bias(const sn_sampler_options *o, int32_t vocab) {
    if (o->n_bias < 0 || (o->n_bias && !o->bias))
        return sn_fail(SN_E_INVAL, "sampler: bias is NULL or n_bias %" PRId32 " negative",
                       o->n_bias);
    for (int32_t i = 0; i < o->n_bias; i++) {
        sn_logit_bias bias = o->bias[i];
        if (bias.id < 0 || bias.id >= vocab)
            return sn_fail(SN_E_INVAL, "sampler: bias of id %" PRId32 ", outside the vocabulary "
                           "of %" PRId32, bias.id, vocab);
        if (!sn_is_finite(bias.bias) && !forbids(bias))
            return sn_fail(SN_E_INVAL, "sampler: the bias of id %" PRId32 " is %g", bias.id,
                           (double)bias.bias);
    }
    return SN_OK;
}

SN_WORKER static sn_status check_options(const sn_sampler_options *o, int32_t vocab) {
    if (o->struct_size < sizeof *o)
        return sn_fail(SN_E_INVAL, "sampler: options of %" PRIu32 " bytes, %zu expected (call "
                       "sn_sampler_options_init)", o->struct_size, sizeof *o);
    SN_TRY(check_numbers(o));
    return check_bias(o, vocab);
}

/* ---- making ------------------------------------------------------------------------- */

/* Room for an array behind what lies in the block so far; false if the size overflows. With
 * block = NULL it only counts, and *array becomes NULL. */
static bool place(char *block, size_t *used, size_t count, size_t size, void **array) {
    size_t bytes, at = *used;
    if (!sn_mul_size(count, size, &bytes) || !sn_add_size(*used, bytes, used)) return false;
    *array = block ? block + at : NULL;
    return true;
}

/* The widest elements come first, so that each array is aligned. */
static bool place_arrays(sn_sampler *s, char *block, size_t *used) {
    size_t vocab = (size_t)s->vocab;
    size_t n_digits = s->sorted_room == vocab ? (size_t)3 << SN_DIGIT_BITS : 0;
    void *keys, *sorted, *seen, *bias, *weights, *digits, *slot, *recent, *forbidden;
    *used = sn_round_up(sizeof *s, sizeof(uint64_t));
    if (!place(block, used, vocab, sizeof *s->keys, &keys) ||
        !place(block, used, s->sorted_room, sizeof *s->sorted, &sorted) ||
        !place(block, used, s->seen_room, sizeof *s->seen, &seen) ||
        !place(block, used, (size_t)s->options.n_bias, sizeof *s->bias, &bias) ||
        !place(block, used, s->sorted_room, sizeof *s->weights, &weights) ||
        !place(block, used, n_digits, sizeof *s->digits, &digits) ||
        !place(block, used, vocab, sizeof *s->slot, &slot) ||
        !place(block, used, s->recent_room, sizeof *s->recent, &recent) ||
        !place(block, used, s->n_forbidden, sizeof *s->forbidden, &forbidden))
        return false;
    s->keys = keys;
    s->sorted = sorted;
    s->seen = seen;
    s->options.bias = s->bias = bias;
    s->weights = weights;
    s->digits = digits;
    s->slot = slot;
    s->recent = recent;
    s->forbidden = forbidden;
    return true;
}

static sn_status allocate(const sn_sampler *plan, sn_sampler **sampler) {
    sn_sampler counted = *plan;
    if (!place_arrays(&counted, NULL, &counted.block_bytes))
        return sn_fail(SN_E_NOMEM, "out of memory: a sampler over %" PRId32 " ids", plan->vocab);
    sn_sampler *made = sn_alloc(counted.block_bytes);
    if (!made) return SN_E_NOMEM;
    *made = counted;
    place_arrays(made, (char *)made, &made->block_bytes);
    *sampler = made;
    return SN_OK;
}

static void plan_rooms(sn_sampler *plan) {
    const sn_sampler_options *o = &plan->options;
    size_t vocab = (size_t)plan->vocab, last_n = (size_t)o->penalty_last_n;
    bool all = o->penalty_last_n < 0;
    plan->recent_room = all ? SN_SAMPLER_RECENT : last_n;
    plan->seen_room = all || last_n > vocab ? vocab : last_n;
    bool use_heap = o->top_k > 0 && o->top_k <= SN_SAMPLER_HEAP_MAX && o->top_k < plan->vocab;
    plan->sorted_room = use_heap ? (size_t)o->top_k : vocab;
}

/* Ids that no logit can bring back: those the tokenizer leaves unused, those a bias forbids. With
 * list = NULL it only counts. `flags` has one byte per id. */
static size_t list_forbidden(const uint8_t *flags, int32_t vocab, int32_t *list) {
    size_t n = 0;
    for (int32_t id = 0; id < vocab; id++) {
        if (!flags[id]) continue;
        if (list) list[n] = id;
        n++;
    }
    return n;
}

static void flag_forbidden(const sn_sampler_options *o, int32_t vocab,
                           const sn_tokenizer *tokenizer, uint8_t *flags) {
    for (int32_t id = 0; id < vocab && tokenizer; id++)
        flags[id] = !sn_tokenizer_usable(tokenizer, id);
    for (int32_t i = 0; i < o->n_bias; i++)
        if (forbids(o->bias[i])) flags[o->bias[i].id] = 1;
}

static sn_status make(int32_t vocab, const sn_tokenizer *tokenizer,
                      const sn_sampler_options *options, sn_sampler **sampler) {
    sn_sampler plan = { .options = *options, .vocab = vocab, .exp = sn_simd_at(0)->exp };
    plan_rooms(&plan);
    sn_random_seed(plan.random, options->seed);
    uint8_t *flags = sn_alloc((size_t)vocab);
    if (!flags) return SN_E_NOMEM;
    flag_forbidden(options, vocab, tokenizer, flags);
    plan.n_forbidden = list_forbidden(flags, vocab, NULL);
    sn_sampler *made = NULL;
    sn_status status = allocate(&plan, &made);
    if (status == SN_OK) {
        list_forbidden(flags, vocab, made->forbidden);
        if (options->n_bias)
            memcpy(made->bias, options->bias, (size_t)options->n_bias * sizeof *made->bias);
        *sampler = made;
    }
    sn_free(flags);
    return status;
}

sn_status sn_sampler_new(int32_t vocab, const sn_tokenizer *tokenizer,
                         const sn_sampler_options *options, sn_sampler **sampler) {
    sn_sampler_options defaults;
    if (!sampler) return sn_fail(SN_E_INVAL, "sampler: sampler is NULL");
    if (vocab < 1 || vocab > SN_SAMPLER_VOCAB_MAX)
        return sn_fail(SN_E_INVAL, "sampler: a vocabulary of %" PRId32 ", not 1 to %d", vocab,
                       SN_SAMPLER_VOCAB_MAX);
    if (!options) {
        sn_sampler_options_init(&defaults);
        options = &defaults;
    }
    sn_fpenv saved = sn_fpenv_enter(); /* a NaN among the options must not trap */
    sn_status status = check_options(options, vocab);
    sn_fpenv_leave(saved);
    SN_TRY(status);
    return make(vocab, tokenizer, options, sampler);
}

void sn_sampler_free(sn_sampler *sampler) {
    sn_free(sampler);
}

sn_status sn_sampler_clone(const sn_sampler *sampler, sn_sampler **copy) {
    if (!sampler || !copy) return sn_fail(SN_E_INVAL, "sampler: sampler or copy is NULL");
    sn_sampler *made = sn_alloc(sampler->block_bytes);
    if (!made) return SN_E_NOMEM;
    memcpy(made, sampler, sampler->block_bytes);
    place_arrays(made, (char *)made, &made->block_bytes);
    *copy = made;
    return SN_OK;
}

/* ---- using -------------------------------------------------------------------------- */

sn_status sn_sampler_reset(sn_sampler *sampler) {
    if (!sampler) return sn_fail(SN_E_INVAL, "sampler: sampler is NULL");
    sn_sampler_forget(sampler);
    sn_random_seed(sampler->random, sampler->options.seed);
    return SN_OK;
}

sn_status sn_sampler_accept(sn_sampler *sampler, int32_t id) {
    if (!sampler) return sn_fail(SN_E_INVAL, "sampler: sampler is NULL");
    if (id < 0 || id >= sampler->vocab)
        return sn_fail(SN_E_INVAL, "sampler: id %" PRId32 " is outside the vocabulary of %" PRId32,
                       id, sampler->vocab);
    sn_sampler_note(sampler, id);
    return SN_OK;
}

sn_status sn_sampler_sample(sn_sampler *sampler, const float *logits, int32_t *id) {
    if (!sampler || !logits || !id)
        return sn_fail(SN_E_INVAL, "sampler: sampler, logits or id is NULL");
    sn_fpenv saved = sn_fpenv_enter();
    sn_status status = sn_sampler_choose(sampler, logits, id);
    sn_fpenv_leave(saved);
    return status;
}
