/*
 * test_sampler.c: the sampler against plain definitions in double, its history and its bytes.
 */
#include "check.h"

#include "text/sampler.h"
#include "text/vocabulary.h"

#include <float.h>
#include <math.h> /* INFINITY, NAN */

static sn_sampler_options plain(float temperature, int32_t top_k, float top_p) {
    sn_sampler_options o;
    sn_sampler_options_init(&o);
    o.temperature = temperature;
    o.top_k = top_k;
    o.top_p = top_p;
    o.seed = 1;
    return o;
}

static sn_sampler *make(int32_t vocab, const sn_sampler_options *options) {
    sn_sampler *sampler = NULL;
    sn_status status = sn_sampler_new(vocab, NULL, options, &sampler);
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (!sampler) exit(check_report("test_sampler"));
    return sampler;
}

static int32_t sample(sn_sampler *sampler, const float *logits) {
    int32_t id = -1;
    sn_status status = sn_sampler_sample(sampler, logits, &id);
    CHECK(status == SN_OK, "%s", sn_last_error());
    return id;
}

static void random_logits(check_random *random, float *logits, int32_t n, float scale) {
    for (int32_t i = 0; i < n; i++) logits[i] = scale * check_float(random);
}

/* ---- the distribution, in double ---------------------------------------------------- */

/* exp(x) for x <= 0: Taylor's series of exp(x / 1024), squared ten times. */
static double plain_exp(double x) {
    double t = x / 1024, term = 1, sum = 1;
    for (int i = 1; i < 12; i++) sum += term *= t / i;
    for (int i = 0; i < 10; i++) sum *= sum;
    return x < -700 ? 0 : sum;
}

#define MOST 3000

static const float *sort_by;

static int better_first(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    if (sort_by[i] != sort_by[k]) return sort_by[i] > sort_by[k] ? -1 : 1;
    return i - k;
}

/* p[id] of every id; returns how many are kept. */
static int32_t distribution(const float *logits, int32_t n, const sn_sampler_options *o,
                            double *p) {
    static int32_t order[MOST];
    double total = 0, sum = 0;
    for (int32_t i = 0; i < n; i++) order[i] = i;
    sort_by = logits;
    qsort(order, (size_t)n, sizeof *order, better_first);
    int32_t k = o->top_k && o->top_k < n ? o->top_k : n, kept = 0;
    for (int32_t i = 0; i < n; i++) {
        double x = ((double)logits[order[i]] - logits[order[0]]) / o->temperature;
        p[order[i]] = i < k ? plain_exp(x) : 0;
        total += p[order[i]];
    }
    while (kept < k && sum < o->top_p * total && p[order[kept]] >= o->min_p)
        sum += p[order[kept++]];
    for (int32_t i = 0; i < n; i++) p[order[i]] = i < kept ? p[order[i]] / sum : 0;
    return kept;
}

static void check_distribution(int32_t vocab, const sn_sampler_options *o, float scale,
                               uint64_t seed) {
    const int draws = vocab < 100 ? 20000 : 1500;
    static float logits[MOST];
    static double p[MOST];
    static int32_t hits[MOST];
    check_random random = { seed };
    sn_sampler *sampler = make(vocab, o);
    random_logits(&random, logits, vocab, scale);
    distribution(logits, vocab, o, p);
    memset(hits, 0, sizeof hits);
    for (int i = 0; i < draws; i++) hits[sample(sampler, logits)]++;
    for (int32_t id = 0; id < vocab; id++) {
        double expected = draws * p[id], off = hits[id] - expected;
        /* Five standard deviations, and something for the rare ones, which are not normal. */
        CHECK(off * off <= 25 * expected * (1 - p[id]) + 30 * (p[id] > 0),
              "seed %d: id %d was drawn %d times, expected %g", (int)seed, id, hits[id], expected);
    }
    sn_sampler_free(sampler);
}

static void test_distribution(void) {
    sn_sampler_options o = plain(1, 0, 1);
    check_distribution(10, &o, 3, 1);
    check_distribution(3000, &o, 4, 2);
    o = plain(0.8f, 40, 0.95f);
    check_distribution(1000, &o, 6, 3);
    o = plain(1.7f, 0, 0.6f);
    check_distribution(500, &o, 8, 4);
    o = plain(0.5f, 1500, 1);
    check_distribution(3000, &o, 2, 5);
    o = plain(1, 0, 1);
    o.min_p = 0.3f;
    check_distribution(300, &o, 4, 6);
    o = plain(1, 7, 0.9f);
    o.min_p = 0.05f;
    check_distribution(64, &o, 2, 7);
    o = plain(1, 1024, 1);
    check_distribution(1025, &o, 1, 8);
}

/* Equal weights, so that the cut is known exactly. */
static void check_kept(float top_p, int32_t top_k, float min_p, int32_t expected) {
    static const float logits[10] = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 };
    sn_sampler_options o = plain(1, top_k, top_p);
    o.min_p = min_p;
    sn_sampler *sampler = make(10, &o);
    uint32_t seen = 0;
    for (int i = 0; i < 1000; i++) seen |= 1u << sample(sampler, logits);
    CHECK(seen == (1u << expected) - 1, "top_p %g, top_k %d: ids %x", (double)top_p, top_k, seen);
    sn_sampler_free(sampler);
}

static void test_cuts(void) {
    check_kept(1, 0, 0, 10);
    check_kept(0.5f, 0, 0, 5); /* the sum reaches one half at the fifth */
    check_kept(0.51f, 0, 0, 6);
    check_kept(1e-30f, 0, 0, 1);
    check_kept(1, 1, 0, 1);
    check_kept(1, 3, 0, 3);
    check_kept(1, 10, 0, 10);
    check_kept(1, INT32_MAX, 0, 10);
    check_kept(0.5f, 4, 0, 2); /* of what top-k left */
    check_kept(1, 0, 0.999f, 10);
}

/* ---- order and ties ----------------------------------------------------------------- */

static void test_greedy(void) {
    float logits[6] = { 1, 5, 5, -0.0f, 0, 5 };
    sn_sampler_options o = plain(0, 40, 0.95f);
    sn_sampler *sampler = make(6, &o);
    CHECK(sample(sampler, logits) == 1, "the lower id");
    logits[1] = logits[2] = logits[5] = -1;
    logits[0] = -2;
    CHECK(sample(sampler, logits) == 3, "-0 and +0 are a tie");
    for (int i = 0; i < 6; i++) logits[i] = -FLT_MAX;
    CHECK(sample(sampler, logits) == 0, "the lowest numbers");
    logits[4] = FLT_MAX;
    CHECK(sample(sampler, logits) == 4, "the highest number");
    sn_sampler_free(sampler);
    o = plain(1e-30f, 0, 1); /* so cold that it is greedy, without overflow */
    sampler = make(6, &o);
    for (int i = 0; i < 20; i++) CHECK(sample(sampler, logits) == 4, "cold");
    sn_sampler_free(sampler);
    o = plain(FLT_MAX, 3, 1);
    sampler = make(6, &o);
    for (int i = 0; i < 50; i++) {
        int32_t id = sample(sampler, logits);
        CHECK(id == 4 || id == 0 || id == 1, "top-k takes the lower ids of a tie: %d", id);
    }
    sn_sampler_free(sampler);
}

/* Both ways to sort give the same: top-k by the heap; all, with the rest forbidden. */
static void test_heap_equals_sort(void) {
    static float logits[MOST];
    static sn_logit_bias bias[MOST];
    static double p[MOST];
    check_random random = { 5 };
    for (int round = 0; round < 20; round++) {
        int32_t n = 1 + (int32_t)check_below(&random, MOST - 1);
        int32_t k = 1 + (int32_t)check_below(&random, n < 1024 ? (uint32_t)n : 1024);
        random_logits(&random, logits, n, 9);
        for (int32_t i = 0; i < n && round % 2; i++) logits[i] = (float)(int)logits[i]; /* ties */
        sn_sampler_options few = plain(0.9f, k, 0.98f), all = plain(0.9f, 0, 0.98f);
        sn_sampler_options uncut = plain(1000, k, 1); /* so warm that all k have a weight */
        distribution(logits, n, &uncut, p);
        for (int32_t i = 0; i < n; i++)
            if (p[i] == 0) bias[all.n_bias++] = (sn_logit_bias){ i, -INFINITY };
        all.bias = bias;
        CHECK(all.n_bias == n - k, "round %d of seed 5", round);
        sn_sampler *a = make(n, &few), *b = make(n, &all);
        for (int i = 0; i < 30; i++)
            CHECK(sample(a, logits) == sample(b, logits), "round %d of seed 5", round);
        sn_sampler_free(a);
        sn_sampler_free(b);
    }
}

/* Where logits differ, the names of the ids do not matter. */
static void test_permutation(void) {
    enum { N = 1000 };
    static float logits[N], moved[N];
    static int32_t to[N];
    check_random random = { 9 };
    sn_sampler_options o = plain(1, 0, 0.97f);
    sn_sampler *a = make(N, &o), *b = make(N, &o);
    for (int round = 0; round < 20; round++) {
        random_logits(&random, logits, N, 5);
        for (int32_t i = 0; i < N; i++) to[i] = i;
        for (int32_t i = N - 1; i > 0; i--) {
            int32_t k = (int32_t)check_below(&random, (uint32_t)i + 1), swap = to[i];
            to[i] = to[k];
            to[k] = swap;
        }
        for (int32_t i = 0; i < N; i++) moved[to[i]] = logits[i];
        int32_t id = sample(a, logits), other = sample(b, moved);
        CHECK(logits[id] == moved[other], "round %d of seed 9: %d, %d", round, id, other);
    }
    sn_sampler_free(a);
    sn_sampler_free(b);
}

/* The ids themselves are pinned: they must be the same on every target. */
static void test_ledger(void) {
    enum { N = 2000 };
    static float logits[N];
    static const uint32_t expected[] = { 0x76ef9a6a, 0xba53dcaf, 0xfa352713, 0xa3eee451 };
    const sn_sampler_options options[] = {
        plain(0.8f, 40, 0.95f), plain(1, 0, 1), plain(1.3f, 0, 0.9f), plain(0.7f, 1500, 0.99f)
    };
    for (int k = 0; k < 4; k++) {
        check_random random = { 77 };
        sn_sampler *sampler = make(N, &options[k]);
        uint32_t hash = 2166136261u; /* FNV-1a over the ids */
        for (int i = 0; i < 200; i++) {
            random_logits(&random, logits, N, 8);
            int32_t id = sample(sampler, logits);
            sn_sampler_accept(sampler, id);
            for (int shift = 0; shift < 32; shift += 8)
                hash = (hash ^ ((uint32_t)id >> shift & 0xff)) * 16777619u;
        }
        CHECK(hash == expected[k], "options %d: ids hash to 0x%08x", k, hash);
        sn_sampler_free(sampler);
    }
}

/* ---- penalties, bias, forbidden ids ------------------------------------------------- */

static void test_penalties(void) {
    float logits[4] = { 4, 3, -1, -1.5f };
    sn_sampler_options o = plain(0, 0, 1);
    o.repetition_penalty = 2;
    o.penalty_last_n = 2;
    sn_sampler *sampler = make(4, &o);
    CHECK(sample(sampler, logits) == 0, "nothing seen");
    sn_sampler_accept(sampler, 0);
    CHECK(sample(sampler, logits) == 1, "4 / 2 < 3");
    sn_sampler_accept(sampler, 1);
    CHECK(sample(sampler, logits) == 0, "4 / 2 > 3 / 2");
    sn_sampler_accept(sampler, 1);
    CHECK(sample(sampler, logits) == 0, "0 has left the window");
    logits[0] = logits[1] = -9;
    sn_sampler_accept(sampler, 2);
    CHECK(sample(sampler, logits) == 3, "-1 * 2 < -1.5");
    sn_sampler_free(sampler);
    o = plain(0, 0, 1);
    o.presence_penalty = 0.5f;
    o.frequency_penalty = 0.25f;
    o.penalty_last_n = -1;
    sampler = make(4, &o);
    const float close[4] = { 4, 3.1f, 0, 0 };
    sn_sampler_accept(sampler, 0);
    CHECK(sample(sampler, close) == 0, "4 - 0.75 > 3.1");
    sn_sampler_accept(sampler, 0);
    CHECK(sample(sampler, close) == 1, "4 - 1 < 3.1");
    for (int i = 0; i < 100; i++) sn_sampler_accept(sampler, 3);
    CHECK(sample(sampler, close) == 1, "all count for ever");
    sn_sampler_forget(sampler);
    CHECK(sample(sampler, close) == 0, "forgotten");
    sn_sampler_free(sampler);
    o.penalty_last_n = 0;
    sampler = make(4, &o);
    for (int i = 0; i < 9; i++) sn_sampler_accept(sampler, 0);
    CHECK(sample(sampler, close) == 0, "no window, no penalty");
    sn_sampler_free(sampler);
}

/* The window against a recount, with more ids than it holds. */
static void test_window(void) {
    enum { VOCAB = 12, WINDOW = 7, STEPS = 500 };
    static int32_t all[STEPS];
    check_random random = { 3 };
    sn_sampler_options o = plain(0, 0, 1);
    o.frequency_penalty = 1;
    o.penalty_last_n = WINDOW;
    sn_sampler *sampler = make(VOCAB, &o);
    for (int step = 0; step < STEPS; step++) {
        float logits[VOCAB];
        int32_t best = 0;
        float reduced[VOCAB];
        all[step] = (int32_t)check_below(&random, VOCAB);
        sn_sampler_accept(sampler, all[step]);
        for (int32_t id = 0; id < VOCAB; id++) {
            logits[id] = reduced[id] = (float)check_below(&random, 4);
            for (int i = step; i >= 0 && i > step - WINDOW; i--) reduced[id] -= all[i] == id;
            if (reduced[id] > reduced[best]) best = id;
        }
        CHECK(sample(sampler, logits) == best, "step %d of seed 3", step);
    }
    sn_sampler_free(sampler);
}

static sn_tokenizer *small_tokenizer(void) {
    static const char text[] = "1 'a' 1\n3 'b' 1\n"; /* 0 to 3, 2 is unused */
    sn_tokenizer *tokenizer = NULL;
    sn_input input;
    sn_memory_cursor cursor;
    sn_input_from_memory(&input, "v.txt", text, sizeof text - 1, &cursor);
    CHECK(sn_rwkv_read(&input, &tokenizer) == SN_OK, "%s", sn_last_error());
    return tokenizer;
}

static void test_forbidden(void) {
    const float logits[6] = { 0, 1, 9, 2, 9, 9 };
    const sn_logit_bias bias[] = { { 3, 5 }, { 3, -4 }, { 1, -INFINITY }, { 0, 0 } };
    sn_tokenizer *tokenizer = small_tokenizer();
    sn_sampler_options o = plain(5, 0, 1);
    sn_sampler *sampler = NULL;
    uint32_t seen = 0;
    int32_t id = -7;
    o.bias = bias;
    o.n_bias = 4;
    CHECK(sn_sampler_new(6, tokenizer, &o, &sampler) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < 500; i++) seen |= 1u << sample(sampler, logits);
    CHECK(seen == 0x9, "ids %x", seen);
    sn_sampler_free(sampler);
    o = plain(0, 0, 1);
    o.bias = bias;
    o.n_bias = 2;
    sampler = make(6, &o);
    const float close[6] = { 0, 2.5f, 0, 2, 0, 0 };
    CHECK(sample(sampler, close) == 3, "biases add up: 2 + 5 - 4 > 2.5");
    sn_sampler_free(sampler);
    const sn_logit_bias none[] = { { 0, -INFINITY }, { 1, -INFINITY } };
    for (int k = 0; k < 3; k++) {
        o = plain((float)(k > 0), k > 1, 1);
        o.bias = none;
        o.n_bias = 2;
        sampler = make(2, &o);
        CHECK(sn_sampler_sample(sampler, close, &id) == SN_E_NUMERIC && id == -7, "%d", k);
        sn_sampler_free(sampler);
    }
    sn_tokenizer_free(tokenizer);
}

static void test_bad_numbers(void) {
    static const struct {
        float value;
        const char *name;
    } bad[] = { { NAN, "a NaN" }, { INFINITY, "+infinity" }, { -INFINITY, "-infinity" } };
    sn_sampler_options o = plain(1, 0, 1);
    sn_sampler *sampler = make(40, &o), *same = make(40, &o);
    float logits[40] = { 0 };
    int32_t id = -7;
    for (int i = 0; i < 3; i++) {
        logits[33] = bad[i].value;
        logits[35] = NAN;
        CHECK(sn_sampler_sample(sampler, logits, &id) == SN_E_NUMERIC && id == -7, "%d", i);
        CHECK(strstr(sn_last_error(), "id 33") && strstr(sn_last_error(), bad[i].name), "%s",
              sn_last_error());
    }
    logits[33] = logits[35] = 0;
    CHECK(sample(sampler, logits) == sample(same, logits), "a failure draws no number");
    sn_sampler_free(same);
    sn_sampler_free(sampler);
    const sn_logit_bias bias = { 2, FLT_MAX };
    o.bias = &bias;
    o.n_bias = 1;
    sampler = make(40, &o);
    logits[2] = FLT_MAX;
    CHECK(sn_sampler_sample(sampler, logits, &id) == SN_E_NUMERIC, "bias");
    CHECK(strstr(sn_last_error(), "after its bias"), "%s", sn_last_error());
    sn_sampler_free(sampler);
    o = plain(1, 0, 1);
    o.presence_penalty = FLT_MAX;
    sampler = make(40, &o);
    logits[2] = -FLT_MAX;
    sn_sampler_accept(sampler, 2);
    CHECK(sn_sampler_sample(sampler, logits, &id) == SN_E_NUMERIC, "penalty");
    CHECK(strstr(sn_last_error(), "after its penalties"), "%s", sn_last_error());
    sn_sampler_free(sampler);
}

/* ---- going on ----------------------------------------------------------------------- */

enum { STEPS_VOCAB = 50 };

static int32_t one_step(sn_sampler *sampler, check_random *random) {
    float logits[STEPS_VOCAB];
    random_logits(random, logits, STEPS_VOCAB, 2);
    int32_t id = sample(sampler, logits);
    CHECK(sn_sampler_accept(sampler, id) == SN_OK, "%s", sn_last_error());
    return id;
}

static void check_same_future(sn_sampler *a, sn_sampler *b, const char *what) {
    check_random for_a = { 41 }, for_b = { 41 };
    for (int i = 0; i < 150; i++)
        CHECK(one_step(a, &for_a) == one_step(b, &for_b), "%s, step %d", what, i);
}

static sn_sampler_options penalizing(int32_t last_n) {
    sn_sampler_options o = plain(1, 0, 1);
    o.repetition_penalty = 1.3f;
    o.frequency_penalty = 0.2f;
    o.penalty_last_n = last_n;
    return o;
}

static void test_continuation(void) {
    static const int32_t windows[] = { -1, 0, 1, 20, 64, 1000 };
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        static uint8_t bytes[1 << 15], again[1 << 15];
        sn_sampler_options o = penalizing(windows[w]);
        sn_sampler *sampler = make(STEPS_VOCAB, &o), *copy = NULL;
        check_random random = { 13 };
        for (int i = 0; i < 100; i++) one_step(sampler, &random);
        o.seed = 99;
        sn_sampler *other = make(STEPS_VOCAB, &o);
        for (int i = 0; i < 30; i++) one_step(other, &random); /* must not shine through */
        size_t size = sn_sampler_saved_size(sampler);
        sn_sampler_write(sampler, bytes);
        CHECK(sn_sampler_read(other, bytes, size) == SN_OK, "%s", sn_last_error());
        CHECK(sn_sampler_saved_size(other) == size, "size");
        sn_sampler_write(other, again);
        CHECK(memcmp(bytes, again, size) == 0, "the same bytes again");
        CHECK(sn_sampler_clone(sampler, &copy) == SN_OK, "%s", sn_last_error());
        check_same_future(copy, other, "restored");
        CHECK(sn_sampler_read(other, bytes, size) == SN_OK, "%s", sn_last_error());
        check_same_future(sampler, other, "the original, after its clone went on");
        sn_sampler_free(other);
        sn_sampler_free(copy);
        sn_sampler_free(sampler);
    }
}

static void test_reset(void) {
    sn_sampler_options o = penalizing(64);
    sn_sampler *sampler = make(STEPS_VOCAB, &o), *fresh = make(STEPS_VOCAB, &o);
    check_random random = { 13 };
    for (int i = 0; i < 100; i++) one_step(sampler, &random);
    CHECK(sn_sampler_reset(sampler) == SN_OK, "%s", sn_last_error());
    check_same_future(sampler, fresh, "reset");
    sn_sampler_free(sampler);
    sn_sampler_free(fresh);
}

/* From a sampler with one window to one with another: the most recent ids count. */
static void test_other_window(void) {
    static const int32_t windows[] = { -1, 5, 40 };
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            static uint8_t bytes[1 << 12];
            sn_sampler_options o = penalizing(windows[from]);
            sn_sampler *a = make(STEPS_VOCAB, &o);
            o = penalizing(windows[to]);
            sn_sampler *b = make(STEPS_VOCAB, &o), *c = make(STEPS_VOCAB, &o);
            const int first = from == 1 ? 25 : 0; /* of 30, the oldest that `a` still knows */
            for (int i = 0; i < 30; i++) {
                sn_sampler_accept(a, i % 7);
                if (i >= first) sn_sampler_accept(c, i % 7);
            }
            sn_sampler_write(a, bytes);
            CHECK(sn_sampler_read(b, bytes, sn_sampler_saved_size(a)) == SN_OK, "%s",
                  sn_last_error());
            check_same_future(b, c, "other window");
            sn_sampler_free(a);
            sn_sampler_free(b);
            sn_sampler_free(c);
        }
}

static void refuse(sn_sampler *sampler, const uint8_t *bytes, size_t size, const char *part) {
    uint8_t before[2048], after[2048];
    size_t kept = sn_sampler_saved_size(sampler);
    sn_sampler_write(sampler, before);
    CHECK(sn_sampler_read(sampler, bytes, size) == SN_E_FORMAT, "%s", part);
    CHECK(strstr(sn_last_error(), part), "%s, not %s", sn_last_error(), part);
    sn_sampler_write(sampler, after);
    CHECK(sn_sampler_saved_size(sampler) == kept && !memcmp(before, after, kept), "%s", part);
}

/* An image: version, n_recent = 1, n_counts = 1, 0, random, recent {4}, counts {(4, 2)}. */
static void test_bad_bytes(void) {
    uint8_t good[60] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, bad[68];
    sn_sampler_options o = penalizing(-1);
    sn_sampler *sampler = make(STEPS_VOCAB, &o);
    good[16] = 1;
    good[48] = good[52] = 4;
    good[56] = 2;
    CHECK(sn_sampler_read(sampler, good, sizeof good) == SN_OK, "%s", sn_last_error());
    CHECK(sn_sampler_saved_size(sampler) == sizeof good, "size");
    sn_sampler_write(sampler, bad);
    CHECK(memcmp(bad, good, sizeof good) == 0, "the layout is pinned");
    static const struct {
        size_t at;
        uint8_t value;
        const char *error;
    } cases[] = {
        { 0, 2, "version 2" }, { 4, 2, "64 expected" }, { 8, 2, "68 expected" },
        { 7, 255, "expected" }, { 11, 255, "expected" }, { 12, 1, "reserved" },
        { 16, 0, "all zero" }, { 48, 50, "id 50" }, { 51, 128, "id 2147483652" },
        { 52, 50, "id 50" }, { 56, 0, "seen 0" }, { 59, 128, "seen 2147483650" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bad, good, sizeof good);
        bad[cases[i].at] = cases[i].value;
        refuse(sampler, bad, sizeof good, cases[i].error);
    }
    memcpy(bad, good, sizeof good);
    memcpy(bad + 60, good + 52, 8); /* the same id twice */
    bad[8] = 2;
    refuse(sampler, bad, 68, "out of order");
    for (size_t size = 0; size < sizeof good; size++) refuse(sampler, good, size, "bytes");
    sn_sampler_free(sampler);
}

/* ---- options and misuse ------------------------------------------------------------- */

static void refuse_options(const sn_sampler_options *o, const char *part) {
    sn_sampler *sampler = NULL;
    CHECK(sn_sampler_new(10, NULL, o, &sampler) == SN_E_INVAL && !sampler, "%s", part);
    CHECK(strstr(sn_last_error(), part), "%s, not %s", sn_last_error(), part);
}

#define REFUSE(field, value)                                                                  \
    do {                                                                                      \
        sn_sampler_options o_ = plain(1, 0, 1);                                               \
        o_.field = value;                                                                     \
        refuse_options(&o_, #field);                                                          \
    } while (0)

static void test_options(void) {
    REFUSE(temperature, -0.5f);
    REFUSE(temperature, NAN);
    REFUSE(temperature, INFINITY);
    REFUSE(top_k, -1);
    REFUSE(top_p, 0);
    REFUSE(top_p, 1.5f);
    REFUSE(top_p, NAN);
    REFUSE(min_p, -0.1f);
    REFUSE(min_p, 1);
    REFUSE(min_p, NAN);
    REFUSE(repetition_penalty, 0);
    REFUSE(repetition_penalty, INFINITY);
    REFUSE(repetition_penalty, NAN);
    REFUSE(presence_penalty, INFINITY);
    REFUSE(presence_penalty, NAN);
    REFUSE(frequency_penalty, -INFINITY);
    REFUSE(penalty_last_n, -2);
    REFUSE(n_bias, 1); /* without bias */
    REFUSE(n_bias, -1);
    sn_sampler_options o = plain(1, 0, 1);
    const sn_logit_bias bad[] = { { 10, 0 }, { -1, 0 }, { 1, NAN }, { 2, INFINITY } };
    const char *const errors[] = { "id 10", "id -1", "id 1 is", "id 2 is" };
    o.n_bias = 1;
    for (int i = 0; i < 4; i++) {
        o.bias = &bad[i];
        refuse_options(&o, errors[i]);
    }
    o = plain(1, 0, 1);
    o.struct_size--;
    refuse_options(&o, "sn_sampler_options_init");
    o.struct_size += 9; /* a newer caller */
    sn_sampler_free(make(10, &o));
    sn_sampler_free(make(1, NULL));
    sn_sampler_options_init(NULL);
}

static void test_misuse(void) {
    float logits[4] = { 0 };
    int32_t id;
    sn_sampler *sampler = make(4, NULL), *copy = NULL;
    CHECK(sn_sampler_new(4, NULL, NULL, NULL) == SN_E_INVAL, "sampler");
    CHECK(sn_sampler_new(0, NULL, NULL, &copy) == SN_E_INVAL, "vocab");
    CHECK(sn_sampler_new(INT32_MAX, NULL, NULL, &copy) == SN_E_INVAL, "vocab");
    CHECK(sn_sampler_clone(NULL, &copy) == SN_E_INVAL && !copy, "clone");
    CHECK(sn_sampler_clone(sampler, NULL) == SN_E_INVAL, "clone");
    CHECK(sn_sampler_reset(NULL) == SN_E_INVAL, "reset");
    CHECK(sn_sampler_accept(NULL, 0) == SN_E_INVAL, "accept");
    CHECK(sn_sampler_accept(sampler, 4) == SN_E_INVAL, "accept");
    CHECK(sn_sampler_accept(sampler, -1) == SN_E_INVAL, "accept");
    CHECK(sn_sampler_sample(NULL, logits, &id) == SN_E_INVAL, "sample");
    CHECK(sn_sampler_sample(sampler, NULL, &id) == SN_E_INVAL, "sample");
    CHECK(sn_sampler_sample(sampler, logits, NULL) == SN_E_INVAL, "sample");
    long before = sn_alloc_count();
    for (int i = 0; i < 100; i++) sn_sampler_accept(sampler, sample(sampler, logits));
    CHECK(sn_alloc_count() == before, "sampling does not allocate");
    sn_sampler_free(sampler);
    sn_sampler_free(NULL);
}

static void test_out_of_memory(void) {
    sn_sampler *sampler = NULL, *copy = NULL;
    sn_status status = SN_E_NOMEM;
    for (long n = 1; status == SN_E_NOMEM; n++) {
        sn_alloc_fail_at(n);
        status = sn_sampler_new(100, NULL, NULL, &sampler);
        CHECK(status == SN_OK || !sampler, "%ld", n);
    }
    CHECK(status == SN_OK, "%d", status);
    sn_alloc_fail_at(1);
    CHECK(sn_sampler_clone(sampler, &copy) == SN_E_NOMEM && !copy, "clone");
    sn_alloc_fail_at(0);
    sn_sampler_free(sampler);
}

int main(void) {
    test_distribution();
    test_cuts();
    test_greedy();
    test_heap_equals_sort();
    test_permutation();
    test_ledger();
    test_penalties();
    test_window();
    test_forbidden();
    test_bad_numbers();
    test_continuation();
    test_reset();
    test_other_window();
    test_bad_bytes();
    test_options();
    test_misuse();
    test_out_of_memory();
    return check_report("test_sampler");
}
