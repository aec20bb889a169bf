/*
 * test_bpe.c: the tokenizers that merge (gpt2, llama, sunnynet), built from keys. Whether their
 * ids are those of other implementations, tests/tokenizers.test.mjs finds out; here is what they
 * do at the edges. Files that are wrong: test_bad_tokenizers.c.
 */
#include "check.h"
#include "small_tokenizers.h"

#include "text/nfc.h"
#include "text/unicode.h"

#define ROOM 4096

static sn_tokenizer *made(void) {
    sn_tokenizer *tokenizer = NULL;
    sn_status status = from_bytes(&g, &tokenizer);
    CHECK(status == SN_OK && tokenizer, "%s", sn_last_error());
    if (!tokenizer) exit(check_report("test_bpe"));
    return tokenizer;
}

/* The ids of a text, as a line of numbers. */
static const char *ids_of(const sn_tokenizer *tokenizer, const char *text, size_t bytes,
                          int32_t flags) {
    static char line[ROOM * 8];
    static int32_t ids[ROOM];
    int32_t n = 0;
    size_t at = 0;
    sn_status status = sn_tokenizer_encode_with(tokenizer, text, bytes, flags, ids, ROOM, &n);
    if (status != SN_OK || n > ROOM) return "failed";
    line[0] = 0;
    for (int32_t i = 0; i < n; i++) at += (size_t)sprintf(line + at, i ? " %d" : "%d", ids[i]);
    return line;
}

static void expect_ids(const sn_tokenizer *tokenizer, const char *text, int32_t flags,
                       const char *expected) {
    const char *got = ids_of(tokenizer, text, strlen(text), flags);
    CHECK(strcmp(got, expected) == 0, "'%s': %s, not %s", text, got, expected);
}

/* What a stream makes of ids. */
static void expect_text(const sn_tokenizer *tokenizer, const int32_t *ids, int32_t n,
                        const char *expected) {
    char all[ROOM];
    size_t at = 0, length = 0;
    const char *out = "";
    int32_t stopped;
    sn_text *text = NULL;
    CHECK(sn_text_new(tokenizer, NULL, 0, &text) == SN_OK, "%s", sn_last_error());
    for (int round = 0; round < 2; round++) { /* finishing starts afresh */
        at = 0;
        for (int32_t i = 0; i < n; i++) {
            CHECK(sn_text_push(text, ids[i], &out, &length, &stopped) == SN_OK, "id %d", ids[i]);
            memcpy(all + at, out, length);
            at += length;
        }
        CHECK(sn_text_finish(text, &out, &length) == SN_OK, "%s", sn_last_error());
        memcpy(all + at, out, length);
        at += length;
        CHECK(at == strlen(expected) && !memcmp(all, expected, at), "'%.*s', not '%s'", (int)at,
              all, expected);
    }
    sn_text_free(text);
}

/* ---- gpt2 --------------------------------------------------------------------------- */

static void test_gpt2(void) {
    small_gpt2();
    sn_tokenizer *t = made();
    CHECK(strcmp(sn_tokenizer_kind(t), "gpt2") == 0 && sn_tokenizer_vocab(t) == 264, "facts");
    expect_ids(t, "", 0, "");
    expect_ids(t, "", SN_ENCODE_ENDS, "258 259");
    expect_ids(t, "abc ab a", 0, "257 32 256 261"); /* "a b" comes before " a" */
    expect_ids(t, "abc a", SN_ENCODE_ENDS, "258 257 261 259");
    expect_ids(t, "abc a", SN_ENCODE_BEGIN, "258 257 261");
    expect_ids(t, "", SN_ENCODE_BEGIN, "258");
    expect_ids(t, "<s>bc", 0, "60 115 62 263");
    expect_ids(t, "<s>bc", SN_ENCODE_SPECIAL, "258 263");
    expect_ids(t, "a<user>b</s><s>", SN_ENCODE_SPECIAL, "97 260 98 259 258");
    expect_ids(t, "a<user>b</s>", 0, "97 260 98 60 47 115 62");
    expect_ids(t, "[PAD262]", SN_ENCODE_SPECIAL, "91 80 65 68 50 54 50 93");
    for (int32_t id = -1; id <= 264; id++)
        CHECK(sn_tokenizer_special(t, id) == (id == 258 || id == 259), "special %d", id);
    CHECK(sn_tokenizer_special(NULL, 258) == 0, "NULL");
    CHECK(!sn_tokenizer_usable(t, 262) && sn_tokenizer_usable(t, 260), "usable");
    const int32_t ids[] = { 258, 257, 261, 98, 259, 260, 0xe4, 0xbd, 0xa0, 0xe4, 97, 0xe4 };
    expect_text(t, ids, 12, "abc ab<user>\xe4\xbd\xa0\xef\xbf\xbd" "a\xef\xbf\xbd");
    sn_tokenizer_destroy(t);
}

static void test_texts_and_bytes(void) {
    const char *bytes = NULL, *text = NULL;
    size_t n = 9, length = 9;
    small_gpt2();
    sn_tokenizer *t = made();
    CHECK(sn_tokenizer_token(t, 259, &bytes, &n) == SN_OK && n == 0, "no bytes");
    CHECK(sn_tokenizer_text(t, 259, &text, &length) == SN_OK && length == 4 &&
              memcmp(text, "</s>", 4) == 0, "but a text");
    CHECK(sn_tokenizer_token(t, 261, &bytes, &n) == SN_OK && n == 2 && !memcmp(bytes, " a", 2) &&
              sn_tokenizer_text(t, 261, &text, &length) == SN_OK && length == 3 &&
              !memcmp(text, "\xc4\xa0" "a", 3), "id 261");
    CHECK(sn_tokenizer_text(t, 264, &text, &length) == SN_E_INVAL, "outside");
    CHECK(sn_tokenizer_text(t, -1, &text, &length) == SN_E_INVAL, "outside");
    CHECK(sn_tokenizer_text(NULL, 0, &text, &length) == SN_E_INVAL, "NULL");
    sn_tokenizer_destroy(t);
}

static void test_arguments(void) {
    int32_t ids[2] = { -7, -7 }, n = -7;
    small_gpt2();
    sn_tokenizer *t = made();
    CHECK(sn_tokenizer_encode_with(t, "xyz", 3, 0, ids, 1, &n) == SN_OK && n == 3, "%d", n);
    CHECK(ids[0] == 'x' && ids[1] == -7, "capacity");
    CHECK(sn_tokenizer_encode_with(t, "x", 1, 8, ids, 1, &n) == SN_E_INVAL && n == 3, "flags");
    CHECK(sn_tokenizer_encode_with(t, NULL, 1, 0, ids, 1, &n) == SN_E_INVAL, "text");
    CHECK(sn_tokenizer_encode_with(t, "x", 1, 0, NULL, 1, &n) == SN_E_INVAL, "ids");
    CHECK(sn_tokenizer_encode_with(NULL, "x", 1, 0, ids, 1, &n) == SN_E_INVAL, "tokenizer");
    CHECK(sn_tokenizer_encode_with(t, "x", 1, 0, ids, 1, NULL) == SN_E_INVAL, "n");
    sn_tokenizer_destroy(t);
}

/* Whatever the bytes, they come back, with every way to split. */
static void test_any_bytes(void) {
    static const char *const ways[] = { "gpt-2", "starcoder", "llama-bpe", "qwen2", "qwen35",
                                        "falcon", "default" };
    check_random random = { 5 };
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        begin(&g, "gpt2");
        put_text(&g, "tokenizer.ggml.pre", ways[way]);
        put_byte_tokens(byte_words, 8);
        put_byte_types("11111151");
        put_list(&g, "tokenizer.ggml.merges", merges, 4);
        sn_tokenizer *t = made();
        for (int round = 0; round < 200; round++) {
            char text[300], back[300];
            int32_t ids[300], n = 0;
            size_t bytes = check_below(&random, 300), at = 0, length;
            const char *token;
            for (size_t i = 0; i < bytes; i++)
                text[i] = round % 2 ? (char)check_next(&random)
                                    : "ab c1'2s\n\xc3\xa9\xe4\xbd."[check_below(&random, 14)];
            CHECK(sn_tokenizer_encode(t, text, bytes, ids, 300, &n) == SN_OK, "%s", ways[way]);
            for (int32_t i = 0; i < n; i++, at += length) {
                sn_tokenizer_token(t, ids[i], &token, &length);
                memcpy(back + at, token, length);
            }
            CHECK(at == bytes && !memcmp(back, text, bytes), "%s, round %d", ways[way], round);
        }
        sn_tokenizer_destroy(t);
    }
}

static void expect_advice(const char *architecture, const char *pre, const char *part) {
    begin(&g, "gpt2");
    if (architecture) put_text(&g, "general.architecture", architecture);
    if (pre) put_text(&g, "tokenizer.ggml.pre", pre);
    put_byte_tokens(byte_words, 8);
    put_list(&g, "tokenizer.ggml.merges", merges, 4);
    sn_tokenizer *t = made();
    const char *advice = sn_tokenizer_advice(t);
    CHECK(part[0] ? strstr(advice, part) != NULL : !advice[0], "'%s', not '%s'", advice, part);
    sn_tokenizer_destroy(t);
}

/* A missing name is never passed over in silence. */
static void test_advice(void) {
    expect_advice("mamba", NULL, "missing: texts are split as GPT-2 does");
    expect_advice("mamba2", "default", "'default': texts are split as GPT-2 does");
    expect_advice("gptneox", NULL, "missing: texts are split as llama.cpp's old default");
    expect_advice(NULL, "default", "old default");
    expect_advice("mamba", "mpt", "");
}

static void test_ignore_merges(void) {
    static const char *const tokens[] = { "xyz", "word" };
    for (int ignore = 0; ignore < 2; ignore++) {
        begin(&g, "gpt2");
        put_text(&g, "tokenizer.ggml.pre", "dbrx");
        put_flag(&g, "sunnynet.tokenizer.ignore_merges", ignore);
        put_byte_tokens(tokens, 2);
        put_byte_types("14");
        put_list(&g, "tokenizer.ggml.merges", NULL, 0);
        sn_tokenizer *t = made();
        expect_ids(t, "xyz", 0, ignore ? "256" : "120 121 122");
        expect_ids(t, "xyzz", 0, "120 121 122 122");
        sn_tokenizer_destroy(t);
    }
}

/* ---- added tokens ------------------------------------------------------------------- */

static void test_added(void) {
    static const char *const tokens[] = { "<l>", "<r>", "one", "<l><r>", "  ", "<s>" };
    static const uint32_t ids[] = { 256, 257, 258, 259, 260, 261 };
    static const uint32_t flags[] = { 4, 8, 16, 0, 2, 1 };
    begin(&g, "gpt2");
    put_text(&g, "tokenizer.ggml.pre", "gpt-2");
    put_byte_tokens(tokens, 6);
    put_byte_types("444443");
    put_list(&g, "tokenizer.ggml.merges", NULL, 0);
    put_numbers(&g, "sunnynet.tokenizer.added_ids", ids, 6);
    put_numbers(&g, "sunnynet.tokenizer.added_flags", flags, 6);
    sn_tokenizer *t = made();
    expect_ids(t, "a  <l>b", 0, "97 256 98");         /* takes what is in front */
    expect_ids(t, "a<r> \t\n b", 0, "97 257 98");     /* and behind */
    expect_ids(t, "<r>  <l>", 0, "257 256");
    expect_ids(t, "<l><r>  ", 0, "259 260");          /* the longest */
    expect_ids(t, "one, ones", 0, "258 44 32 111 110 101 115");
    expect_ids(t, "\xc3\xa9one", 0, "195 169 111 110 101");
    /* A zero width joiner is part of a word, a soft hyphen is not. */
    expect_ids(t, "one\xe2\x80\x8done", 0, "111 110 101 226 128 141 111 110 101");
    expect_ids(t, "one\xc2\xad", 0, "258 194 173");
    expect_ids(t, "one\xe2\x80\xa6", 0, "258 226 128 166");
    expect_ids(t, "     <s>", 0, "260 260 32 60 115 62");
    expect_ids(t, "     <s>", SN_ENCODE_SPECIAL, "260 260 32 261");
    sn_tokenizer_destroy(t);
}

/* ---- llama -------------------------------------------------------------------------- */

static void test_llama(void) {
    for (int ranked = 0; ranked < 2; ranked++) {
        small_llama(ranked);
        sn_tokenizer *t = made();
        CHECK(sn_tokenizer_bos(t) == 1 && sn_tokenizer_eos(t) == 2, "what others take for granted");
        expect_ids(t, "", 0, "");
        expect_ids(t, "", SN_ENCODE_ENDS, "1");
        expect_ids(t, "ab", 0, "6 9");
        expect_ids(t, " ab a", 0, "6 6 9 10");
        expect_ids(t, "ab<t>ab", 0, "6 9 11 6 9"); /* again behind an added token */
        expect_ids(t, "\xe4\xbd\xa0\n", 0, "6 3 4 5 13");
        expect_ids(t, "a??\xe4\xbd\xa1" "b", 0, "10 0 8"); /* one for a run of the unknown */
        expect_ids(t, "a\xe4\xbd", 0, "10 3 4"); /* half a character has its bytes, too */
        expect_ids(t, "</s>", SN_ENCODE_SPECIAL, "2");
        expect_ids(t, MARK "a", 0, "6 10");
        const int32_t words[] = { 1, 10, 9, 6, 12, 11, 2 };
        expect_text(t, words, 7, "aab \xc3\xa9<t>");
        const int32_t bytes[] = { 6, 6, 3, 4, 5, 13, 3, 4, 8, 5, 3, 4 };
        expect_text(t, bytes, 12, " \xe4\xbd\xa0\n\xef\xbf\xbd\xef\xbf\xbd" "b\xef\xbf\xbd"
                    "\xef\xbf\xbd\xef\xbf\xbd");
        sn_tokenizer_destroy(t);
    }
}

static void test_prepend(void) {
    static const struct {
        const char *how, *ids, *spaced, *behind, *text;
    } cases[] = { { "always", "6 9", "6 9", "6 9 11 6 9", "ab" },
                  { "first", "6 9", "6 9", "6 9 11 9", "ab" },
                  { "never", "9", "6 9", "9 11 9", " ab" } };
    for (size_t i = 0; i < 3; i++) {
        small_llama(true);
        put_text(&g, "sunnynet.tokenizer.prepend", cases[i].how);
        sn_tokenizer *t = made();
        expect_ids(t, "ab", 0, cases[i].ids);
        expect_ids(t, " ab", 0, cases[i].spaced);
        expect_ids(t, "ab<t>ab", 0, cases[i].behind);
        const int32_t ids[] = { 6, 9 };
        expect_text(t, ids, 2, cases[i].text);
        sn_tokenizer_destroy(t);
    }
    small_llama(false);
    put_flag(&g, "tokenizer.ggml.add_space_prefix", false);
    put_flag(&g, "tokenizer.ggml.add_bos_token", false);
    sn_tokenizer *t = made();
    expect_ids(t, "ab", SN_ENCODE_ENDS, "9");
    sn_tokenizer_destroy(t);
}

/* ---- sunnynet ----------------------------------------------------------------------- */

static void test_sunnynet(void) {
    static const uint32_t triples[] = { 4, 5, 7, 7, 4, 8, 6, 4, 10 };
    small_sunnynet(triples, 9);
    sn_tokenizer *t = made();
    expect_ids(t, "aba", 0, "8");
    expect_ids(t, "abab", 0, "7 7");
    expect_ids(t, "1a", 0, "6 4");                 /* not across pieces */
    expect_ids(t, "x?\xff \xe4\xbd\xa0", 0, "1 1 1 11 9"); /* each unknown one for itself */
    expect_ids(t, "<bos>a", SN_ENCODE_SPECIAL, "2 4");
    char text[200], expected[400] = "";
    memset(text, 'b', 100); /* pieces end after 48 characters: "ab" there does not merge */
    text[47] = 'a';
    text[100] = 0;
    for (int i = 0; i < 100; i++) sprintf(expected + strlen(expected), i ? " %d" : "%d",
                                          i == 47 ? 4 : 5);
    expect_ids(t, text, 0, expected);
    const int32_t ids[] = { 2, 8, 1, 10, 3 };
    expect_text(t, ids, 5, "aba1a");
    sn_tokenizer_destroy(t);
}

/* ---- merging as it is defined ------------------------------------------------------- */

typedef struct naive {
    int32_t left[64], right[64], made[64];
    int n;
} naive;

/* The pair of the lowest rank, the leftmost of several, until there is none. */
static int32_t merge_naively(const naive *m, int32_t *ids, int32_t n) {
    for (;;) {
        int best = m->n, at = -1;
        for (int32_t i = 0; i + 1 < n; i++)
            for (int k = 0; k < best; k++)
                if (m->left[k] == ids[i] && m->right[k] == ids[i + 1]) {
                    best = k;
                    at = i;
                }
        if (at < 0) return n;
        ids[at] = m->made[best];
        memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 2) * sizeof *ids);
        n--;
    }
}

/* Vocabularies of two letters: all words that some random merges make. */
static int random_merges(check_random *random, naive *m, char words[][40]) {
    int n = 2;
    strcpy(words[0], "a");
    strcpy(words[1], "b");
    m->n = 0;
    while (m->n < 40 && n < 60) {
        int a = (int)check_below(random, (uint32_t)n), b = (int)check_below(random, (uint32_t)n);
        int at = 0;
        char word[80];
        sprintf(word, "%s%s", words[a], words[b]);
        if (strlen(word) > 12) continue;
        bool known = false;
        for (int k = 0; k < m->n; k++) known |= m->left[k] == a && m->right[k] == b;
        if (known) break;
        while (at < n && strcmp(words[at], word) != 0) at++;
        if (at == n) strcpy(words[n++], word);
        m->left[m->n] = a;
        m->right[m->n] = b;
        m->made[m->n++] = at;
    }
    return n;
}

static void test_merging(void) {
    static char words[64][40];
    static naive m;
    check_random random = { 17 };
    for (int round = 0; round < 80; round++) {
        int n_words = random_merges(&random, &m, words);
        begin(&g, "llama");
        put_array(&g, "tokenizer.ggml.tokens", SN_GGUF_STRING, (uint64_t)n_words);
        for (int i = 0; i < n_words; i++) put_string(&g, words[i], strlen(words[i]));
        put_array(&g, "tokenizer.ggml.merges", SN_GGUF_STRING, (uint64_t)m.n);
        for (int k = 0; k < m.n; k++) {
            char line[80];
            sprintf(line, "%s %s", words[m.left[k]], words[m.right[k]]);
            put_string(&g, line, strlen(line));
        }
        put_text(&g, "sunnynet.tokenizer.prepend", "never");
        sn_tokenizer *t = made();
        for (int k = 0; k < 20; k++) {
            char text[120];
            int32_t ids[120], got[120], n = 0, bytes = 1 + (int32_t)check_below(&random, 119);
            for (int32_t i = 0; i < bytes; i++) {
                ids[i] = check_below(&random, 3) == 0;
                text[i] = ids[i] ? 'b' : 'a';
            }
            int32_t wanted = merge_naively(&m, ids, bytes);
            CHECK(sn_tokenizer_encode(t, text, (size_t)bytes, got, 120, &n) == SN_OK, "%d", round);
            CHECK(n == wanted && !memcmp(got, ids, (size_t)n * sizeof *ids), "%.*s in round %d",
                  (int)bytes, text, round);
        }
        sn_tokenizer_destroy(t);
    }
}

/* ---- long texts: nothing is quadratic ------------------------------------------------ */

static void encode_long(const sn_tokenizer *t, const char *unit, size_t bytes) {
    size_t length = strlen(unit);
    char *text = malloc(bytes);
    int32_t n = -1;
    for (size_t i = 0; i < bytes; i++) text[i] = unit[i % length];
    CHECK(sn_tokenizer_encode_with(t, text, bytes, 0, NULL, 0, &n) == SN_OK && n > 0, "%s: %s",
          unit, sn_last_error());
    free(text);
}

static void test_long(void) {
    static const char *const units[] = { "a", " ", "ab", "1", "\n ", ".", "'", "\xcc\x81\xcc\xa3",
                                         "\xe4\xbd\xa0", "\xff", "<user>", "<user", " \xc2\xa0" };
    static const char *const ways[] = { "gpt-2", "llama-bpe", "starcoder", "falcon", "default" };
    const size_t bytes = (size_t)1 << 20;
    for (size_t way = 0; way < 5; way++) {
        begin(&g, "gpt2");
        put_text(&g, "tokenizer.ggml.pre", ways[way]);
        put_text(&g, "sunnynet.tokenizer.normalizer", "nfc");
        put_byte_tokens(byte_words, 8);
        put_byte_types("11334151");
        put_list(&g, "tokenizer.ggml.merges", merges, 4);
        sn_tokenizer *t = made();
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            encode_long(t, units[i], way ? bytes / 16 : bytes);
        sn_tokenizer_destroy(t);
    }
    for (int ranked = 0; ranked < 2; ranked++) {
        small_llama(ranked);
        sn_tokenizer *t = made();
        for (size_t i = 0; i < 5; i++) encode_long(t, units[i], bytes);
        sn_tokenizer_destroy(t);
    }
}

/* ---- normalization form C ------------------------------------------------------------ */

static void expect_nfc(const sn_nfc *nfc, const char *text, const char *expected) {
    sn_buffer out = { .data = NULL };
    CHECK(sn_nfc_append(nfc, (const uint8_t *)text, strlen(text), &out) == SN_OK, "%s",
          sn_last_error());
    CHECK(out.size == strlen(expected) && (!out.size || !memcmp(out.data, expected, out.size)),
          "%s: '%.*s'", text, (int)out.size, out.data ? (const char *)out.data : "");
    sn_buffer_free(&out);
}

/* Many marks are sorted another way than a few; both by their classes, and stably. */
static void test_many_marks(const sn_nfc *nfc) {
    static const uint32_t marks[] = { 0x315, 0x323, 0x334, 0x345, 0x363, 0x1dce, 0x5b0, 0x316 };
    check_random random = { 29 };
    for (int round = 0; round < 40; round++) {
        sn_buffer out = { .data = NULL };
        uint8_t text[1024] = { 'x' }, expected[1024] = { 'x' };
        uint32_t list[200];
        size_t n = 1 + check_below(&random, 200), at = 1, size = 1;
        for (size_t i = 0; i < n; i++) {
            list[i] = marks[check_below(&random, 8)];
            at += sn_utf8_put(list[i], text + at);
        }
        for (unsigned class = 1; class < 256; class++)
            for (size_t i = 0; i < n; i++)
                if (sn_unicode_combining_class(list[i]) == class)
                    size += sn_utf8_put(list[i], expected + size);
        CHECK(sn_nfc_append(nfc, text, at, &out) == SN_OK, "%s", sn_last_error());
        CHECK(out.size == size && !memcmp(out.data, expected, size), "round %d of seed 29", round);
        sn_buffer_free(&out);
    }
}

static void test_nfc(void) {
    sn_nfc *nfc = NULL;
    CHECK(sn_nfc_new(&nfc) == SN_OK, "%s", sn_last_error());
    if (!nfc) return;
    expect_nfc(nfc, "", "");
    expect_nfc(nfc, "plain", "plain");
    expect_nfc(nfc, "e\xcc\x81", "\xc3\xa9");
    expect_nfc(nfc, "\xcc\x81" "e", "\xcc\x81" "e");
    expect_nfc(nfc, "e\xcc\xa3\xcc\x81\xff\xcc\x81", "\xe1\xba\xb9\xcc\x81\xff\xcc\x81");
    expect_nfc(nfc, "s\xcc\x87\xcc\xa3", "\xe1\xb9\xa9");      /* U+1E69, sorted first */
    expect_nfc(nfc, "\xe2\x84\xab", "\xc3\x85");               /* angstrom sign */
    expect_nfc(nfc, "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"); /* jamo */
    expect_nfc(nfc, "\xf0\x9d\x85\xa0", "\xf0\x9d\x85\x98\xf0\x9d\x85\xa5\xf0\x9d\x85\xae");
    expect_nfc(nfc, "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"); /* does not compose again */
    test_many_marks(nfc);
    sn_nfc_free(nfc);
}

/* ---- odd files ---------------------------------------------------------------------- */

/* Empty tokens are padding, whatever their type; control tokens are not made by merges; a pair
 * that is listed twice has the later rank. */
static void test_odd_files(void) {
    static const char *const tokens[] = { "", "a", "b", "ab", "c", "bc" };
    static const char *const list[] = { "a b", "b c", "a b" };
    begin(&g, "llama");
    put_texts(&g, tokens, 6);
    put_types(&g, "111111");
    put_list(&g, "tokenizer.ggml.merges", list, 3);
    put_text(&g, "sunnynet.tokenizer.prepend", "never");
    sn_tokenizer *t = made();
    CHECK(!sn_tokenizer_usable(t, 0), "empty");
    expect_ids(t, "abc", 0, "1 5");
    expect_ids(t, "ab", 0, "3");
    sn_tokenizer_destroy(t);
    begin(&g, "llama");
    put_texts(&g, tokens, 6);
    put_types(&g, "111311");
    put_list(&g, "tokenizer.ggml.merges", list, 1);
    put_text(&g, "sunnynet.tokenizer.prepend", "never");
    t = made();
    expect_ids(t, "ab", 0, "1 2");
    expect_ids(t, "ab", SN_ENCODE_SPECIAL, "3");
    sn_tokenizer_destroy(t);
}

static void test_no_token(void) {
    static const char *const tokens[] = { "a" };
    int32_t n = -7;
    begin(&g, "gpt2");
    put_text(&g, "tokenizer.ggml.pre", "gpt-2");
    put_texts(&g, tokens, 1);
    put_list(&g, "tokenizer.ggml.merges", merges, 0);
    sn_tokenizer *t = made();
    CHECK(sn_tokenizer_encode(t, "aab", 3, NULL, 0, &n) == SN_E_INVAL && n == -7, "%d", n);
    CHECK(strstr(sn_last_error(), "no token for byte 0x62") != NULL, "%s", sn_last_error());
    sn_tokenizer_destroy(t);
    begin(&g, "llama");
    put_texts(&g, tokens, 1);
    put_list(&g, "tokenizer.ggml.merges", merges, 0);
    put_id(&g, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
    t = made();
    CHECK(sn_tokenizer_encode(t, "aab", 3, NULL, 0, &n) == SN_E_INVAL && n == -7, "%d", n);
    CHECK(strstr(sn_last_error(), "none for what is unknown") != NULL, "%s", sn_last_error());
    sn_tokenizer_destroy(t);
}

int main(void) {
    test_gpt2();
    test_texts_and_bytes();
    test_arguments();
    test_any_bytes();
    test_advice();
    test_ignore_merges();
    test_added();
    test_llama();
    test_prepend();
    test_sunnynet();
    test_merging();
    test_nfc();
    test_odd_files();
    test_no_token();
    test_long();
    return check_report("test_bpe");
}
