/*
 * sampler_history.c: the tokens a sampler has seen, and the sampler as bytes.
 *
 * penalty_last_n >= 0: a ring of the last n ids; those that leave it are no longer counted.
 * penalty_last_n = -1: every id counts for ever; the ring only remembers the order of the last
 * SN_SAMPLER_RECENT, so that a sampler with a window can go on from it.
 */
#include "sampler_internal.h"

#include <inttypes.h>
#include <string.h>

static bool counts_all(const sn_sampler *s) {
    return s->options.penalty_last_n < 0;
}

/* A count stays at 2^31 - 1 once it is there. */
static void count(sn_sampler *s, int32_t id, int32_t times) {
    if (s->slot[id] == 0) {
        s->seen[s->n_seen++] = (sn_seen){ .id = id, .count = 0 };
        s->slot[id] = (int32_t)s->n_seen;
    }
    int32_t *n = &s->seen[s->slot[id] - 1].count;
    *n = *n > INT32_MAX - times ? INT32_MAX : *n + times;
}

static void uncount(sn_sampler *s, int32_t id) {
    sn_seen *entry = &s->seen[s->slot[id] - 1];
    if (--entry->count > 0) return;
    sn_seen last = s->seen[--s->n_seen]; /* fills the gap */
    s->slot[last.id] = s->slot[id];
    *entry = last;
    s->slot[id] = 0;
}

/* Place in the ring of the i-th recent id, 0 being the oldest. */
static size_t place_of(const sn_sampler *s, size_t i) {
    size_t to_end = s->recent_room - s->oldest;
    return i < to_end ? s->oldest + i : i - to_end;
}

static void remember(sn_sampler *s, int32_t id) {
    if (s->n_recent < s->recent_room) {
        s->recent[place_of(s, s->n_recent++)] = id;
        return;
    }
    if (!counts_all(s)) uncount(s, s->recent[s->oldest]);
    s->recent[s->oldest] = id;
    s->oldest = place_of(s, 1);
}

void sn_sampler_note(sn_sampler *s, int32_t id) {
    if (s->recent_room == 0) return; /* penalty_last_n = 0 */
    remember(s, id);
    count(s, id, 1);
}

void sn_sampler_forget(sn_sampler *s) {
    for (size_t i = 0; i < s->n_seen; i++) s->slot[s->seen[i].id] = 0;
    s->n_seen = s->n_recent = s->oldest = 0;
}

/* ---- bytes -------------------------------------------------------------------------- */

/*
 * u32 version (1), u32 n_recent, u32 n_counts, u32 zero; u64 random[4]; i32 recent[n_recent],
 * oldest first; then n_counts pairs of i32 id (ascending) and i32 count (at least 1), only of a
 * sampler that counts all: they include the recent ones.
 */
#define SAVED_VERSION 1
#define SAVED_HEAD_BYTES ((size_t)(4 * 4 + 4 * 8))

static void put32(uint8_t **to, uint32_t value) {
    for (int i = 0; i < 4; i++) *(*to)++ = (uint8_t)(value >> 8 * i);
}

static void put64(uint8_t **to, uint64_t value) {
    put32(to, (uint32_t)value);
    put32(to, (uint32_t)(value >> 32));
}

static uint32_t get32(const uint8_t **from) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value |= (uint32_t)*(*from)++ << 8 * i;
    return value;
}

static uint64_t get64(const uint8_t **from) {
    uint64_t low = get32(from);
    return low | (uint64_t)get32(from) << 32;
}

size_t sn_sampler_saved_size(const sn_sampler *s) {
    return SAVED_HEAD_BYTES + 4 * s->n_recent + (counts_all(s) ? 8 * s->n_seen : 0);
}

void sn_sampler_write(const sn_sampler *s, uint8_t *bytes) {
    put32(&bytes, SAVED_VERSION);
    put32(&bytes, (uint32_t)s->n_recent);
    put32(&bytes, counts_all(s) ? (uint32_t)s->n_seen : 0);
    put32(&bytes, 0);
    for (int i = 0; i < 4; i++) put64(&bytes, s->random[i]);
    for (size_t i = 0; i < s->n_recent; i++) put32(&bytes, (uint32_t)s->recent[place_of(s, i)]);
    /* By id, so that equal histories give equal bytes. */
    for (int32_t id = 0; id < s->vocab && counts_all(s); id++) {
        if (s->slot[id] == 0) continue;
        put32(&bytes, (uint32_t)id);
        put32(&bytes, (uint32_t)s->seen[s->slot[id] - 1].count);
    }
}

typedef struct saved { /* parsed and checked */
    uint64_t random[4];
    uint32_t n_recent, n_counts;
    const uint8_t *recent, *counts;
} saved;

static sn_status check_id(uint32_t id, int32_t vocab) {
    if (id < (uint32_t)vocab) return SN_OK;
    return sn_fail(SN_E_FORMAT, "sampler history: id %" PRIu32 ", but the vocabulary has %" PRId32,
                   id, vocab);
}

static sn_status check_counts(const saved *in, int32_t vocab) {
    const uint8_t *at = in->counts;
    int64_t previous = -1;
    for (uint32_t i = 0; i < in->n_counts; i++) {
        uint32_t id = get32(&at), n = get32(&at);
        SN_TRY(check_id(id, vocab));
        if ((int64_t)id <= previous)
            return sn_fail(SN_E_FORMAT, "sampler history: id %" PRIu32 " out of order", id);
        if (n == 0 || n > INT32_MAX)
            return sn_fail(SN_E_FORMAT, "sampler history: id %" PRIu32 " seen %" PRIu32 " times",
                           id, n);
        previous = id;
    }
    return SN_OK;
}

static sn_status parse(const uint8_t *bytes, size_t size, int32_t vocab, saved *out) {
    const uint8_t *at = bytes;
    if (size < SAVED_HEAD_BYTES)
        return sn_fail(SN_E_FORMAT, "sampler history: %zu bytes, at least %zu expected", size,
                       SAVED_HEAD_BYTES);
    uint32_t version = get32(&at);
    if (version != SAVED_VERSION)
        return sn_fail(SN_E_FORMAT, "sampler history: unknown version %" PRIu32, version);
    out->n_recent = get32(&at);
    out->n_counts = get32(&at);
    uint64_t expected = SAVED_HEAD_BYTES + 4 * (uint64_t)out->n_recent +
                        8 * (uint64_t)out->n_counts;
    if (get32(&at) != 0 || size != expected)
        return sn_fail(SN_E_FORMAT, "sampler history: %zu bytes, %" PRIu64 " expected, or a "
                       "reserved field is set", size, expected);
    for (int i = 0; i < 4; i++) out->random[i] = get64(&at);
    if (!(out->random[0] | out->random[1] | out->random[2] | out->random[3]))
        return sn_fail(SN_E_FORMAT, "sampler history: the random state is all zero");
    out->recent = at;
    for (uint32_t i = 0; i < out->n_recent; i++) SN_TRY(check_id(get32(&at), vocab));
    out->counts = at;
    return check_counts(out, vocab);
}

sn_status sn_sampler_read(sn_sampler *s, const uint8_t *bytes, size_t size) {
    saved in;
    SN_TRY(parse(bytes, size, s->vocab, &in));
    bool take_counts = counts_all(s) && in.n_counts > 0;
    sn_sampler_forget(s);
    memcpy(s->random, in.random, sizeof s->random);
    for (uint32_t i = 0; i < in.n_recent && s->recent_room; i++) {
        int32_t id = (int32_t)get32(&in.recent);
        remember(s, id);
        if (!take_counts) count(s, id, 1);
    }
    for (uint32_t i = 0; i < in.n_counts && take_counts; i++) {
        int32_t id = (int32_t)get32(&in.counts);
        count(s, id, (int32_t)get32(&in.counts));
    }
    return SN_OK;
}
