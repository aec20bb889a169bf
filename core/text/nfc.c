/*
 * nfc.c: characters are decomposed one by one; each starter (combining class 0) collects the
 * marks that follow it, which are sorted and composed with it when the next starter comes.
 */
#include "nfc.h"

#include "pairs.h"
#include "unicode.h"
#include "utf8.h"

#define NONE UINT32_MAX /* no starter yet */

/* Hangul syllables are computed (Unicode Standard, section 3.12). */
enum { L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7, S_BASE = 0xac00 };
enum { L_COUNT = 19, V_COUNT = 21, T_COUNT = 28, S_COUNT = L_COUNT * V_COUNT * T_COUNT };

struct sn_nfc {
    size_t n;
    uint32_t *code_point; /* [n], ascending */
    sn_pair *parts;       /* [n] */
    sn_pairs compositions;
};

/* ---- the tables --------------------------------------------------------------------- */

static uint32_t take_number(const uint8_t **from) {
    uint32_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*from)++;
        number |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) return number;
    }
}

/* False never: the table is ours. */
static bool unpack(sn_nfc *nfc) {
    const uint8_t *from = sn_unicode_decompositions;
    uint32_t code_point = 0, first = 0;
    for (size_t i = 0; i < nfc->n; i++) {
        code_point += take_number(&from);
        uint32_t step = take_number(&from), second = take_number(&from);
        first = step & 1 ? first - (step + 1) / 2 : first + step / 2;
        nfc->code_point[i] = code_point;
        nfc->parts[i] = (sn_pair){ .left = first, .right = second / 2 };
        if (second & 1 && !sn_pairs_set(&nfc->compositions, first, second / 2, code_point))
            return false;
    }
    return true;
}

sn_status sn_nfc_new(sn_nfc **nfc) {
    sn_nfc *made = sn_alloc(sizeof(sn_nfc));
    if (!made) return SN_E_NOMEM;
    made->n = sn_unicode_n_decompositions;
    made->code_point = sn_alloc_array(made->n, sizeof(uint32_t));
    made->parts = sn_alloc_array(made->n, sizeof(sn_pair));
    bool good = made->code_point && made->parts &&
                sn_pairs_new(sn_unicode_n_compositions, &made->compositions) == SN_OK &&
                unpack(made);
    if (!good) {
        sn_nfc_free(made);
        return SN_E_NOMEM;
    }
    *nfc = made;
    return SN_OK;
}

void sn_nfc_free(sn_nfc *nfc) {
    if (!nfc) return;
    sn_pairs_free(&nfc->compositions);
    sn_free(nfc->code_point);
    sn_free(nfc->parts);
    sn_free(nfc);
}

static const sn_pair *parts_of(const sn_nfc *nfc, uint32_t code_point) {
    size_t low = 0, high = nfc->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (nfc->code_point[middle] < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < nfc->n && nfc->code_point[low] == code_point ? &nfc->parts[low] : NULL;
}

/* The two composed, NONE if they do not. */
static uint32_t compose(const sn_nfc *nfc, uint32_t first, uint32_t second) {
    uint32_t l = first - L_BASE, v = second - V_BASE, s = first - S_BASE, t = second - T_BASE;
    if (l < L_COUNT && v < V_COUNT) return S_BASE + (l * V_COUNT + v) * T_COUNT;
    if (s < S_COUNT && s % T_COUNT == 0 && t > 0 && t < T_COUNT) return first + t;
    int64_t rank = sn_pairs_find(&nfc->compositions, first, second);
    return rank < 0 ? NONE : nfc->compositions.pairs[rank].value;
}

/* ---- one starter and its marks ------------------------------------------------------ */

typedef struct segment {
    const sn_nfc *nfc;
    sn_buffer *out;
    uint32_t starter;  /* NONE: marks at the beginning of a text */
    sn_buffer marks;   /* uint32_t: combining class << 24 | code point */
    sn_buffer scratch;
} segment;

static sn_status put(sn_buffer *out, uint32_t code_point) {
    SN_TRY(sn_buffer_reserve(out, SN_UTF8_MAX));
    out->size += sn_utf8_put(code_point, out->data + out->size);
    return SN_OK;
}

/* A few marks, as every text but a hostile one has them. */
static void insertion_sort(uint32_t *marks, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint32_t mark = marks[i];
        size_t at = i;
        for (; at > 0 && marks[at - 1] >> 24 > mark >> 24; at--) marks[at] = marks[at - 1];
        marks[at] = mark;
    }
}

/* By class, those of one class in their order: a counting sort where there are many. */
static sn_status sort_marks(segment *s, size_t n) {
    uint32_t *marks = (uint32_t *)(void *)s->marks.data, at[257] = { 0 };
    if (n <= 32) {
        insertion_sort(marks, n);
        return SN_OK;
    }
    s->scratch.size = 0;
    SN_TRY(sn_buffer_append(&s->scratch, marks, s->marks.size));
    const uint32_t *from = (const uint32_t *)(const void *)s->scratch.data;
    for (size_t i = 0; i < n; i++) at[(from[i] >> 24) + 1]++;
    for (size_t class = 0; class < 256; class++) at[class + 1] += at[class];
    for (size_t i = 0; i < n; i++) marks[at[from[i] >> 24]++] = from[i];
    return SN_OK;
}

/* Composes the starter with what marks it can; the others stay in marks. A mark is out of reach
 * behind another one of its class or a higher one. */
static sn_status close(segment *s) {
    size_t n = s->marks.size / sizeof(uint32_t), kept = 0;
    if (n == 0) return SN_OK;
    SN_TRY(sort_marks(s, n));
    uint32_t *marks = (uint32_t *)(void *)s->marks.data, last = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t class = marks[i] >> 24, composed = NONE;
        if (class > last && s->starter != NONE)
            composed = compose(s->nfc, s->starter, marks[i] & 0xffffff);
        if (composed != NONE) {
            s->starter = composed;
            continue;
        }
        last = class;
        marks[kept++] = marks[i];
    }
    s->marks.size = kept * sizeof(uint32_t);
    return SN_OK;
}

/* Writes a closed segment. */
static sn_status flush(segment *s) {
    const uint32_t *marks = (const uint32_t *)(const void *)s->marks.data;
    if (s->starter != NONE) SN_TRY(put(s->out, s->starter));
    for (size_t i = 0; i < s->marks.size / sizeof(uint32_t); i++)
        SN_TRY(put(s->out, marks[i] & 0xffffff));
    s->marks.size = 0;
    s->starter = NONE;
    return SN_OK;
}

/* One code point that cannot be decomposed any further. */
static sn_status push(segment *s, uint32_t code_point) {
    uint32_t mark = sn_unicode_combining_class(code_point) << 24 | code_point;
    if (mark >> 24) return sn_buffer_append(&s->marks, &mark, sizeof mark);
    SN_TRY(close(s));
    if (s->starter != NONE && s->marks.size == 0) {
        uint32_t composed = compose(s->nfc, s->starter, code_point);
        if (composed != NONE) {
            s->starter = composed;
            return SN_OK;
        }
    }
    SN_TRY(flush(s));
    s->starter = code_point;
    return SN_OK;
}

/* Parts of parts come from the front only: the second one never has any. */
static sn_status decompose(segment *s, uint32_t code_point) {
    uint32_t seconds[4], syllable = code_point - S_BASE;
    size_t n = 0;
    if (syllable < S_COUNT) return push(s, code_point); /* it would compose again at once */
    const sn_pair *parts = code_point < 0xc0 ? NULL : parts_of(s->nfc, code_point);
    for (; parts && n < 4; parts = parts_of(s->nfc, code_point)) {
        code_point = parts->left;
        if (parts->right) seconds[n++] = parts->right;
    }
    SN_TRY(push(s, code_point));
    while (n > 0) SN_TRY(push(s, seconds[--n]));
    return SN_OK;
}

static sn_status run(segment *s, const uint8_t *text, size_t bytes) {
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code_point = sn_utf8_next(text + at, bytes - at, &length);
        if (code_point != SN_UTF8_NONE) {
            SN_TRY(decompose(s, code_point));
            continue;
        }
        SN_TRY(close(s));
        SN_TRY(flush(s));
        SN_TRY(sn_buffer_append(s->out, text + at, length));
    }
    SN_TRY(close(s));
    return flush(s);
}

sn_status sn_nfc_append(const sn_nfc *nfc, const uint8_t *text, size_t bytes, sn_buffer *out) {
    size_t plain = 0;
    while (plain < bytes && text[plain] < 0x80) plain++;
    if (plain < bytes && plain > 0) plain--; /* a mark may follow it */
    SN_TRY(sn_buffer_append(out, text, plain));
    segment s = { .nfc = nfc, .out = out, .starter = NONE };
    sn_status status = run(&s, text + plain, bytes - plain);
    sn_buffer_free(&s.marks);
    sn_buffer_free(&s.scratch);
    return status;
}
