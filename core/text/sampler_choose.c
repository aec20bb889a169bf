/*
 * sampler_choose.c: from logits to the next id: bias, penalties, temperature, top-k, top-p,
 * min-p, draw.
 *
 * The id must be the same on every target, so nothing here depends on how a sum is rounded:
 *   order    descending logit (after bias and penalties), ties to the lower id. Temperature
 *            comes after the order and cannot change it.
 *   weight   of a candidate: floor(2^40 exp((z - z_best) / temperature)), z and the exponent
 *            in float, exp the library's own kernel. A weight is an integer, so that sums
 *            are exact in any order; what is below 2^-40 of the best counts as nothing.
 *   top-p    candidates in order, up to and including the one at which their sum first reaches
 *            top_p times the sum of all (both sides as double).
 *   min-p    of those, the ones with weight >= min_p times the best weight.
 *   draw     the first one at which the sum exceeds floor(u times the sum of those left); u is
 *            one uniform double per token.
 */
#include "sampler_internal.h"

#include <inttypes.h>
#include <string.h>

#define WEIGHT_OF_BEST 0x1p40f
#define EXPONENT_MIN (-30.0f) /* exp(-30) < 2^-43: weighs nothing */

/*
 * A candidate as one integer: the logit's bits, mapped so that they sort like the number, above
 * the complement of the id. The greater key is the better candidate and no two are equal. No
 * finite logit maps to 0, which stands for "forbidden".
 */
static uint64_t key_of(float z, int32_t id) {
    uint32_t bits;
    z += 0.0f; /* -0 and +0 are a tie */
    memcpy(&bits, &z, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(0x80000000);
    return (uint64_t)bits << 32 | (uint32_t)~id;
}

static float logit_of(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    float z;
    bits ^= bits >> 31 ? UINT32_C(0x80000000) : UINT32_MAX;
    memcpy(&z, &bits, sizeof z);
    return z;
}

static int32_t id_of(uint64_t key) {
    return (int32_t)~(uint32_t)key;
}

/* ---- logits to keys ----------------------------------------------------------------- */

static sn_status fail_number(const char *what, int32_t id, float value) {
    return sn_fail(SN_E_NUMERIC, "sampler: the logit of id %" PRId32 " is %s%s", id,
                   value != value ? "a NaN" : value > 0 ? "+infinity" : "-infinity", what);
}

static sn_status load(sn_sampler *s, const float *logits) {
    unsigned n_bad = 0;
    for (int32_t id = 0; id < s->vocab; id++) {
        n_bad += !sn_is_finite(logits[id]);
        s->keys[id] = key_of(logits[id], id);
    }
    if (n_bad == 0) return SN_OK;
    int32_t bad = 0;
    while (sn_is_finite(logits[bad])) bad++;
    return fail_number("", bad, logits[bad]);
}

static sn_status change(sn_sampler *s, int32_t id, float z, const char *what) {
    if (!sn_is_finite(z)) return fail_number(what, id, z);
    s->keys[id] = key_of(z, id);
    return SN_OK;
}

static sn_status add_bias(sn_sampler *s) {
    for (int32_t i = 0; i < s->options.n_bias; i++) {
        sn_logit_bias bias = s->bias[i];
        if (!sn_is_finite(bias.bias)) continue; /* forbidden, see forbid() */
        SN_TRY(change(s, bias.id, logit_of(s->keys[bias.id]) + bias.bias, " after its bias"));
    }
    return SN_OK;
}

/* Repetition: Keskar et al. 2019 (CTRL), made to lower negative logits too. Presence, frequency:
 * as in OpenAI's API. */
static sn_status penalize(sn_sampler *s) {
    const sn_sampler_options *o = &s->options;
    if (o->repetition_penalty == 1 && o->presence_penalty == 0 && o->frequency_penalty == 0)
        return SN_OK;
    for (size_t i = 0; i < s->n_seen; i++) {
        sn_seen seen = s->seen[i];
        float z = logit_of(s->keys[seen.id]);
        z = z > 0 ? z / o->repetition_penalty : z * o->repetition_penalty;
        z -= o->presence_penalty;
        z -= o->frequency_penalty * (float)seen.count;
        SN_TRY(change(s, seen.id, z, " after its penalties"));
    }
    return SN_OK;
}

static void forbid(sn_sampler *s) {
    for (size_t i = 0; i < s->n_forbidden; i++) s->keys[s->forbidden[i]] = 0;
}

static uint64_t best_key(const sn_sampler *s) {
    uint64_t best = 0;
    for (int32_t id = 0; id < s->vocab; id++)
        if (s->keys[id] > best) best = s->keys[id];
    return best;
}

/* ---- the best few: a heap ----------------------------------------------------------- */

/* heap[0] is the least of n; places `key` there and lets it sink. */
static void sink(uint64_t *heap, size_t n, uint64_t key) {
    size_t at = 0;
    for (size_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

/* The best sorted_room keys into sorted[], best first; returns how many there are. */
static size_t take_best(sn_sampler *s) {
    uint64_t *heap = s->sorted;
    size_t n = s->sorted_room;
    memset(heap, 0, n * sizeof *heap); /* zeros, "forbidden": any candidate beats them */
    for (int32_t id = 0; id < s->vocab; id++)
        if (s->keys[id] > heap[0]) sink(heap, n, s->keys[id]);
    for (size_t left = n - 1; left > 0; left--) {
        uint64_t least = heap[0];
        sink(heap, left, heap[left]);
        heap[left] = least;
    }
    while (heap[n - 1] == 0) n--;
    return n;
}

/* ---- all of them: a radix sort ------------------------------------------------------ */

#define DIGIT_COUNT ((size_t)1 << SN_DIGIT_BITS)

/* Digit 0 to 2 of the logit's 32 bits, inverted: ascending digits are descending logits. */
static size_t digit_of(uint64_t key, int digit) {
    return (size_t)(~key >> (32 + SN_DIGIT_BITS * digit)) & (DIGIT_COUNT - 1);
}

/* Keeps, in the order of ids, the candidates whose weight can be more than 0: the others are
 * below z_best + EXPONENT_MIN * temperature, even if that is rounded. */
static size_t drop_hopeless(sn_sampler *s, uint64_t best) {
    uint64_t least = key_of(logit_of(best) + EXPONENT_MIN * s->options.temperature, -1);
    size_t n = 0;
    for (int32_t id = 0; id < s->vocab; id++) {
        uint64_t key = s->keys[id];
        s->keys[n] = key;
        n += key >= least && key != 0;
    }
    return n;
}

/* Stable, so that equal logits stay in the order of their ids. */
static void sort_by_digit(const sn_sampler *s, const uint64_t *from, size_t n, int digit,
                          uint64_t *to) {
    uint32_t *next = s->digits + digit * DIGIT_COUNT;
    uint32_t sum = 0;
    for (size_t i = 0; i < DIGIT_COUNT; i++) {
        uint32_t here = next[i];
        next[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++) to[next[digit_of(from[i], digit)]++] = from[i];
}

static size_t sort_all(sn_sampler *s, uint64_t best) {
    size_t n = drop_hopeless(s, best);
    memset(s->digits, 0, 3 * DIGIT_COUNT * sizeof *s->digits);
    for (size_t i = 0; i < n; i++)
        for (int digit = 0; digit < 3; digit++)
            s->digits[digit * DIGIT_COUNT + digit_of(s->keys[i], digit)]++;
    sort_by_digit(s, s->keys, n, 0, s->sorted);
    sort_by_digit(s, s->sorted, n, 1, s->keys);
    sort_by_digit(s, s->keys, n, 2, s->sorted);
    size_t top_k = (size_t)s->options.top_k;
    return top_k && top_k < n ? top_k : n;
}

/* ---- weights ------------------------------------------------------------------------ */

static void weigh(sn_sampler *s, size_t n) {
    float best = logit_of(s->sorted[0]);
    for (size_t i = 0; i < n; i++) {
        float x = (logit_of(s->sorted[i]) - best) / s->options.temperature;
        s->weights[i] = x < EXPONENT_MIN ? EXPONENT_MIN : x;
    }
    s->exp(s->weights, s->weights, n);
}

/* 0 to about 2^40, so that 2^22 of them add up to less than 2^63. Through a signed integer: that
 * conversion is one instruction everywhere. */
static int64_t weight_at(const sn_sampler *s, size_t i) {
    return (int64_t)(s->weights[i] * WEIGHT_OF_BEST);
}

/* Cuts n candidates down by top-p and min-p; *sum is the weight of those left. */
static size_t cut(const sn_sampler *s, size_t n, int64_t *sum) {
    int64_t total = 0;
    for (size_t i = 0; i < n; i++) total += weight_at(s, i);
    double enough = (double)s->options.top_p * (double)total;
    double least = (double)s->options.min_p * (double)weight_at(s, 0);
    size_t kept = 0;
    *sum = 0;
    while (kept < n && (double)*sum < enough && (double)weight_at(s, kept) >= least)
        *sum += weight_at(s, kept++);
    return kept;
}

static int32_t draw(sn_sampler *s, size_t n) {
    int64_t sum, so_far = 0;
    size_t kept = cut(s, n, &sum), i = 0;
    int64_t target = (int64_t)(sn_random_next(s->random) * (double)sum);
    if (target >= sum) target = sum - 1; /* u close to 1, rounded up */
    while (i < kept - 1 && (so_far += weight_at(s, i)) <= target) i++;
    return id_of(s->sorted[i]);
}

sn_status sn_sampler_choose(sn_sampler *s, const float *logits, int32_t *id) {
    SN_TRY(load(s, logits));
    SN_TRY(add_bias(s));
    SN_TRY(penalize(s));
    forbid(s);
    uint64_t best = best_key(s);
    if (best == 0) return sn_fail(SN_E_NUMERIC, "sampler: every id is forbidden");
    if (s->options.temperature == 0) {
        *id = id_of(best);
        return SN_OK;
    }
    size_t n = s->sorted_room < (size_t)s->vocab ? take_best(s) : sort_all(s, best);
    weigh(s, n);
    *id = draw(s, n);
    return SN_OK;
}
