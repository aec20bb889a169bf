/*
 * split.c: the rules. \s \p{L} \p{N} are the classes of unicode.h; alternatives are tried in
 * order and take as much as they can, as in the expressions. Every step but a run of white space
 * looks one character ahead, and a run is looked through twice at most: the time is linear.
 */
#include "split.h"

#include "unicode.h"
#include "utf8.h"

#include <string.h>

static const sn_split_name names[] = {
    { "gpt-2", SN_SPLIT_GPT2, false, false },
    { "phi-2", SN_SPLIT_GPT2, false, false },
    { "mpt", SN_SPLIT_GPT2, false, false },
    { "olmo", SN_SPLIT_GPT2, false, false },
    { "jais", SN_SPLIT_GPT2, false, false },
    { "trillion", SN_SPLIT_GPT2, false, false },
    { "granite-docling", SN_SPLIT_GPT2, false, false },
    { "jina-es", SN_SPLIT_GPT2, false, false },
    { "jina-de", SN_SPLIT_GPT2, false, false },
    { "jina-v2-es", SN_SPLIT_GPT2, false, false },
    { "jina-v2-de", SN_SPLIT_GPT2, false, false },
    { "gigachat", SN_SPLIT_GPT2, false, false },
    { "a.x-4.0", SN_SPLIT_GPT2, false, false },
    { "mellum", SN_SPLIT_GPT2, false, false },
    { "modern-bert", SN_SPLIT_GPT2, false, false },
    { "exaone4", SN_SPLIT_GPT2, false, false },
    { "starcoder", SN_SPLIT_DIGITS, false, false },
    { "refact", SN_SPLIT_DIGITS, false, false },
    { "command-r", SN_SPLIT_DIGITS, false, false },
    { "smollm", SN_SPLIT_DIGITS, false, false },
    { "codeshell", SN_SPLIT_DIGITS, false, false },
    { "exaone", SN_SPLIT_DIGITS, false, false },
    { "minerva-7b", SN_SPLIT_DIGITS, false, false },
    { "mellum2", SN_SPLIT_DIGITS, false, false },
    { "llama3", SN_SPLIT_LLAMA3, true, true },
    { "llama-v3", SN_SPLIT_LLAMA3, true, true },
    { "llama-bpe", SN_SPLIT_LLAMA3, true, true },
    { "falcon3", SN_SPLIT_LLAMA3, true, true },
    { "falcon-h1", SN_SPLIT_LLAMA3, true, true },
    { "pixtral", SN_SPLIT_LLAMA3, true, true },
    { "midm-2.0", SN_SPLIT_LLAMA3, true, true },
    { "lfm2", SN_SPLIT_LLAMA3, true, true },
    { "jina-v5-nano", SN_SPLIT_LLAMA3, true, true },
    { "dbrx", SN_SPLIT_LLAMA3, false, false },
    { "smaug-bpe", SN_SPLIT_LLAMA3, false, false },
    { "glm4", SN_SPLIT_LLAMA3, false, false },
    { "chatglm-bpe", SN_SPLIT_LLAMA3, false, false },
    { "qwen2", SN_SPLIT_QWEN2, false, false },
    { "deepseek-r1-qwen", SN_SPLIT_QWEN2, false, false },
    { "kormo", SN_SPLIT_QWEN2, false, false },
    { "f2llmv2", SN_SPLIT_QWEN2, false, false },
    { "megrez", SN_SPLIT_QWEN2, false, false },
    { "stablelm2", SN_SPLIT_QWEN2, false, false },
    { "hunyuan", SN_SPLIT_QWEN2, false, false },
    { "solar-open", SN_SPLIT_QWEN2, false, false },
    { "grok-2", SN_SPLIT_QWEN2, false, false },
    { "qwen35", SN_SPLIT_QWEN35, false, false },
    { "falcon", SN_SPLIT_FALCON, false, false },
    { "default", SN_SPLIT_OLD, false, false },
};

const sn_split_name *sn_split_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
            return &names[i];
    return NULL;
}

/* ---- characters --------------------------------------------------------------------- */

typedef struct character {
    uint32_t code_point;
    unsigned class; /* SN_UNICODE_* */
    size_t length;  /* 0: the end */
} character;

typedef struct stretch { /* what a step may look at */
    const uint8_t *text;
    size_t end;
} stretch;

static character at(stretch s, size_t place) {
    character c = { .length = 0 };
    if (place >= s.end) return c;
    c.code_point = sn_utf8_next(s.text + place, s.end - place, &c.length);
    c.class = sn_unicode_class(c.code_point);
    return c;
}

/* The end of the run of characters that have one of the bits `any` and none of `none`; any = 0:
 * that have none of `none`. At most `most` of them. */
static size_t run(stretch s, size_t place, unsigned any, unsigned none, size_t most) {
    for (; most > 0; most--) {
        character c = at(s, place);
        if (c.length == 0 || (any && !(c.class & any)) || (c.class & none)) break;
        place += c.length;
    }
    return place;
}

#define ALL ((size_t)-1)

static bool is_line_end(character c) {
    return c.length == 1 && (c.code_point == '\n' || c.code_point == '\r');
}

static size_t line_ends(stretch s, size_t place) {
    while (is_line_end(at(s, place))) place++;
    return place;
}

/* What the expressions call (?i:...): a long s is an s in another case, too. */
static uint32_t lower(character c) {
    if (c.length == 1 && c.code_point >= 'A' && c.code_point <= 'Z') return c.code_point + 32;
    return c.code_point == 0x17f ? 's' : c.code_point;
}

/* 's|'t|'re|'ve|'m|'ll|'d: the end of it, or `place`. */
static size_t contraction(stretch s, size_t place, bool any_case) {
    if (at(s, place).code_point != '\'') return place;
    character first = at(s, place + 1), second = at(s, place + 1 + first.length);
    if (first.length == 0) return place;
    uint32_t a = any_case ? lower(first) : first.code_point;
    uint32_t b = any_case ? lower(second) : second.code_point;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return place + 1 + first.length;
    bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return two && second.length ? place + 1 + first.length + second.length : place;
}

/* \s+(?!\S)|\s+: white space but for its last character, which is left for what follows. */
static size_t white_space(stretch s, size_t place) {
    size_t last = place, end = place;
    for (;;) {
        character c = at(s, end);
        if (c.length == 0) return end; /* nothing follows */
        if (!(c.class & SN_UNICODE_SPACE)) return last > place ? last : end;
        last = end;
        end += c.length;
    }
}

/* ---- GPT-2 -------------------------------------------------------------------------- */

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t gpt2_word(stretch s, size_t place) {
    const unsigned known = SN_UNICODE_SPACE | SN_UNICODE_LETTER | SN_UNICODE_NUMBER;
    size_t end = contraction(s, place, false);
    if (end > place) return end;
    size_t start = at(s, place).code_point == ' ' ? place + 1 : place;
    character first = at(s, start);
    if (first.length == 0 || first.class & SN_UNICODE_SPACE) return white_space(s, place);
    if (first.class & SN_UNICODE_LETTER) return run(s, start, SN_UNICODE_LETTER, 0, ALL);
    if (first.class & SN_UNICODE_NUMBER) return run(s, start, SN_UNICODE_NUMBER, 0, ALL);
    return run(s, start, 0, known, ALL);
}

/* ---- Llama 3, Qwen 2 ---------------------------------------------------------------- */

/* \s*[\r\n]+|\s+(?!\S)|\s+: white space up to its last line end, if it has one. */
static size_t lines_or_space(stretch s, size_t place) {
    size_t last = place;
    for (size_t end = place;;) {
        character c = at(s, end);
        if (c.length == 0 || !(c.class & SN_UNICODE_SPACE)) break;
        end += c.length;
        if (is_line_end(c)) last = end;
    }
    return last > place ? last : white_space(s, place);
}

/*
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+
 * with at most `digits` of \p{N} and, instead of \p{L}, what has one of the bits `letter`.
 */
static size_t llama3_word(stretch s, size_t place, unsigned letter, size_t digits) {
    const unsigned known = SN_UNICODE_SPACE | SN_UNICODE_NUMBER | letter;
    size_t end = contraction(s, place, true);
    if (end > place) return end;
    character first = at(s, place);
    if (first.class & letter) return run(s, place, letter, 0, ALL);
    if (first.class & SN_UNICODE_NUMBER) return run(s, place, SN_UNICODE_NUMBER, 0, digits);
    if (!is_line_end(first) && at(s, place + first.length).class & letter)
        return run(s, place + first.length, letter, 0, ALL);
    size_t start = first.code_point == ' ' ? place + 1 : place;
    end = run(s, start, 0, known, ALL);
    return end > start ? line_ends(s, end) : lines_or_space(s, place);
}

/* ---- rules of several steps --------------------------------------------------------- */

/* The digits alone, and what stands between them. */
static size_t digit_region(stretch s, size_t place) {
    if (at(s, place).class & SN_UNICODE_NUMERIC) return place + at(s, place).length;
    return run(s, place, 0, SN_UNICODE_NUMERIC, ALL);
}

static bool is_mark_of(sn_split_rule rule, character c) {
    if (c.class & SN_UNICODE_PUNCTUATION) return true;
    if (c.length != 1 || c.code_point == 0) return false;
    return strchr(rule == SN_SPLIT_FALCON ? "$+<=>^~|`" : "$+<=>^~|", (int)c.code_point) != NULL;
}

/* [\p{P}$+<=>^~|]+ and what stands between; Falcon's has ` as well. */
static size_t mark_region(sn_split_rule rule, stretch s, size_t place) {
    bool marks = is_mark_of(rule, at(s, place));
    for (character c = at(s, place); c.length && is_mark_of(rule, c) == marks; c = at(s, place))
        place += c.length;
    return place;
}

static bool three_digits(stretch s, size_t place) {
    if (s.end - place < 3) return false;
    for (size_t i = place; i < place + 3; i++)
        if (s.text[i] < '0' || s.text[i] > '9') return false;
    return true;
}

/* [0-9][0-9][0-9] and what stands between. */
static size_t digits_by_three(stretch s, size_t place) {
    if (three_digits(s, place)) return place + 3;
    while (place < s.end && !three_digits(s, place)) place++;
    return place;
}

/* \p{N}+ and what stands between. */
static size_t numbers(stretch s, size_t place) {
    if (at(s, place).class & SN_UNICODE_NUMBER) return run(s, place, SN_UNICODE_NUMBER, 0, ALL);
    return run(s, place, 0, SN_UNICODE_NUMBER, ALL);
}

/* What stands between the marks, as GPT-2 and then by its numbers. */
static size_t mark_rule(sn_splitter *p) {
    stretch s = { .text = p->text, .end = p->region };
    if (p->at >= p->word) p->word = gpt2_word(s, p->at);
    s.end = p->word;
    if (p->at >= p->part) p->part = p->rule == SN_SPLIT_OLD ? numbers(s, p->at) : s.end;
    s.end = p->part;
    return digits_by_three(s, p->at);
}

bool sn_split_next(sn_splitter *p, size_t *start, size_t *end) {
    stretch s = { .text = p->text, .end = p->bytes };
    if (p->at >= p->bytes) return false;
    *start = p->at;
    bool new_region = p->at >= p->region;
    switch (p->rule) {
    case SN_SPLIT_GPT2: *end = gpt2_word(s, p->at); break;
    case SN_SPLIT_LLAMA3: *end = llama3_word(s, p->at, SN_UNICODE_LETTER, 3); break;
    case SN_SPLIT_QWEN2: *end = llama3_word(s, p->at, SN_UNICODE_LETTER, 1); break;
    case SN_SPLIT_QWEN35:
        *end = llama3_word(s, p->at, SN_UNICODE_LETTER | SN_UNICODE_MARK, 1);
        break;
    case SN_SPLIT_DIGITS:
        if (new_region) p->region = digit_region(s, p->at);
        s.end = p->region;
        *end = gpt2_word(s, p->at);
        break;
    case SN_SPLIT_FALCON:
    case SN_SPLIT_OLD:
        if (new_region) p->region = mark_region(p->rule, s, p->at);
        *end = mark_rule(p);
        break;
    }
    p->at = *end;
    return true;
}
