/*
 * sampler_internal.h: the inside of a sampler. sampler.c makes it,
 * sampler_history.c keeps the tokens seen, sampler_choose.c picks the next one.
 */
#ifndef SN_TEXT_SAMPLER_INTERNAL_H
#define SN_TEXT_SAMPLER_INTERNAL_H

#include "sampler.h"
#include "simd.h"

#include <float.h>

#define SN_SAMPLER_VOCAB_MAX (1 << 22) /* sums of weights then fit into 63 bits */
#define SN_SAMPLER_HEAP_MAX 1024       /* a larger top_k is served by sorting everything */
#define SN_SAMPLER_RECENT 64           /* tokens kept in order if penalty_last_n is -1 */
#define SN_DIGIT_BITS 11               /* of the radix sort: three digits make a float */

typedef struct sn_seen {
    int32_t id;
    int32_t count;
} sn_seen;

struct sn_sampler {
    sn_sampler_options options; /* bias points to the sampler's own copy */
    int32_t vocab;
    sn_map exp;
    uint64_t random[4];

    /* history: the last tokens in order, and how often each id was seen */
    size_t n_recent, oldest, recent_room; /* a ring */
    size_t n_seen, seen_room;

    size_t n_forbidden;
    size_t sorted_room; /* candidates that are ever sorted */

    size_t block_bytes; /* of the whole; the arrays below lie behind the struct */
    uint64_t *keys;     /* [vocab] by id: sampler_choose.c */
    uint64_t *sorted;   /* [sorted_room] best first */
    float *weights;     /* [sorted_room] */
    uint32_t *digits;   /* [3][2^SN_DIGIT_BITS]; only if everything is sorted */
    sn_logit_bias *bias; /* [options.n_bias] */
    sn_seen *seen;      /* [seen_room] each id once, in no order */
    int32_t *slot;      /* [vocab]: 1 + the id's place in seen; 0: not seen */
    int32_t *recent;    /* [recent_room] */
    int32_t *forbidden; /* [n_forbidden] ascending ids that are never chosen */
};

static inline bool sn_is_finite(float x) {
    return x >= -FLT_MAX && x <= FLT_MAX;
}

/* sampler_history.c */
void sn_sampler_note(sn_sampler *sampler, int32_t id);

/* sampler_random.c: xoshiro256** */
void sn_random_seed(uint64_t state[4], uint64_t seed);
double sn_random_next(uint64_t state[4]); /* in [0, 1), a multiple of 2^-53 */

/* sampler_choose.c; the floating-point environment is the caller's care. */
sn_status sn_sampler_choose(sn_sampler *sampler, const float *logits, int32_t *id);

#endif
