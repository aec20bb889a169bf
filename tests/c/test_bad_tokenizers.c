/*
 * test_bad_tokenizers.c: tokenizers (gpt2, llama, sunnynet) whose keys are wrong, are damaged, or
 * for which there is no memory.
 */
#include "check.h"
#include "small_tokenizers.h"

#include "memory.h"

/* ---- files that are wrong ----------------------------------------------------------- */

static int bad_files;

static void expect_error(sn_status code, const char *part) {
    sn_tokenizer *tokenizer = (sn_tokenizer *)&g;
    sn_status status = from_bytes(&g, &tokenizer);
    const char *line = sn_last_error();
    bad_files++;
    CHECK(status == code && tokenizer == (sn_tokenizer *)&g, "%d for %s", status, part);
    CHECK(strstr(line, part) && strstr(line, "m.gguf") && !strchr(line, '\n'), "%s, not %s", line,
          part);
}

static void gpt2_with(const char *pre) {
    begin(&g, "gpt2");
    if (pre) put_text(&g, "tokenizer.ggml.pre", pre);
    put_byte_tokens(byte_words, 8);
    put_byte_types("11334151");
}

static void bad_merge(const char *merge, const char *part) {
    const char *const list[] = { "a b", merge };
    gpt2_with("gpt-2");
    put_list(&g, "tokenizer.ggml.merges", list, 2);
    expect_error(SN_E_FORMAT, part);
}

static void test_bad_gpt2(void) {
    static const char *const twice[] = { "ab", "cd", "ab" };
    gpt2_with("gpt-5");
    put_list(&g, "tokenizer.ggml.merges", merges, 4);
    expect_error(SN_E_UNSUPPORTED, "tokenizer.ggml.pre = 'gpt-5' is not supported");
    gpt2_with(NULL);
    put_id(&g, "tokenizer.ggml.pre", 2);
    expect_error(SN_E_FORMAT, "tokenizer.ggml.pre");
    gpt2_with("gpt-2");
    expect_error(SN_E_FORMAT, "tokenizer.ggml.merges is no array of texts");
    gpt2_with("gpt-2");
    put_id(&g, "tokenizer.ggml.merges", 2);
    expect_error(SN_E_FORMAT, "tokenizer.ggml.merges is no array of texts");
    gpt2_with("gpt-2");
    put_numbers(&g, "tokenizer.ggml.merges", (const uint32_t[]){ 97, 98 }, 2);
    expect_error(SN_E_FORMAT, "tokenizer.ggml.merges is no array of texts");
    bad_merge("", "merge 1: not two texts with a space between");
    bad_merge(" ", "merge 1: not two texts");
    bad_merge("  ", "merge 1: not two texts");
    bad_merge("ab", "merge 1: not two texts");
    bad_merge("ab ", "merge 1: not two texts");
    bad_merge(" ab", "merge 1: not two texts");
    bad_merge("xy a", "merge 1: its left side is not in the vocabulary");
    bad_merge("a xy", "merge 1: its right side is not in the vocabulary");
    bad_merge("a b c", "merge 1: its right side is not in the vocabulary");
    bad_merge("[PAD262] a", "merge 1: its left side");
    bad_merge("a a", "merge 1: what it makes is not in the vocabulary");
    bad_merge("b a", "merge 1: what it makes");
    begin(&g, "gpt2");
    put_text(&g, "tokenizer.ggml.pre", "gpt-2");
    put_byte_tokens(twice, 3);
    put_list(&g, "tokenizer.ggml.merges", merges, 0);
    expect_error(SN_E_FORMAT, "tokens 256 and 258 are both 'ab'");
    gpt2_with("gpt-2");
    put_list(&g, "tokenizer.ggml.merges", merges, 4);
    put_id(&g, "sunnynet.tokenizer.ignore_merges", 1);
    expect_error(SN_E_FORMAT, "sunnynet.tokenizer.ignore_merges");
}

static void bad_end(const char *id_key, uint32_t id, const char *flag_key, const char *part) {
    gpt2_with("gpt-2");
    put_list(&g, "tokenizer.ggml.merges", merges, 4);
    if (id_key) put_id(&g, id_key, id);
    if (flag_key) put_flag(&g, flag_key, true);
    expect_error(SN_E_FORMAT, part);
}

static void bad_added(const uint32_t *ids, size_t n, const uint32_t *flags, size_t n_flags,
                      const char *part) {
    gpt2_with("gpt-2");
    put_list(&g, "tokenizer.ggml.merges", merges, 4);
    put_numbers(&g, "sunnynet.tokenizer.added_ids", ids, n);
    if (flags) put_numbers(&g, "sunnynet.tokenizer.added_flags", flags, n_flags);
    expect_error(SN_E_FORMAT, part);
}

static void test_bad_keys(void) {
    static char huge[2000];
    const char *const one[] = { huge };
    memset(huge, 'x', sizeof huge - 1);
    bad_end("tokenizer.ggml.bos_token_id", 264, NULL, "bos_token_id is 264, outside");
    bad_end("tokenizer.ggml.unknown_token_id", 999, NULL, "unknown_token_id is 999, outside");
    bad_end(NULL, 0, "tokenizer.ggml.add_bos_token", "add_bos_token is true, but there is no");
    bad_end(NULL, 0, "tokenizer.ggml.add_eos_token", "add_eos_token is true, but there is no");
    bad_added((const uint32_t[]){ 264 }, 1, (const uint32_t[]){ 0 }, 1, "added token 264 is outs");
    bad_added((const uint32_t[]){ 1, 1 }, 2, (const uint32_t[]){ 0, 0 }, 2, "1 is listed twice");
    bad_added((const uint32_t[]){ 1 }, 1, (const uint32_t[]){ 32 }, 1, "the unknown flags 32");
    bad_added((const uint32_t[]){ 1, 2 }, 2, (const uint32_t[]){ 0 }, 1, "1 entries, not 2");
    bad_added((const uint32_t[]){ 1 }, 1, NULL, 0, "added_flags is no array of integers");
    gpt2_with("gpt-2");
    put_list(&g, "sunnynet.tokenizer.added_ids", merges, 4);
    expect_error(SN_E_FORMAT, "added_ids is no array of integers");
    gpt2_with("gpt-2");
    put_text(&g, "sunnynet.tokenizer.normalizer", "nfkc");
    expect_error(SN_E_UNSUPPORTED, "sunnynet.tokenizer.normalizer = 'nfkc' is not supported");
    gpt2_with("gpt-2");
    put_id(&g, "sunnynet.tokenizer.normalizer", 1);
    expect_error(SN_E_FORMAT, "sunnynet.tokenizer.normalizer");
    gpt2_with("gpt-2");
    put_text(&g, "sunnynet.tokenizer.prepend", "often");
    expect_error(SN_E_UNSUPPORTED, "sunnynet.tokenizer.prepend = 'often' is not supported");
    gpt2_with("gpt-2");
    put_text(&g, "tokenizer.ggml.add_space_prefix", "yes");
    expect_error(SN_E_FORMAT, "tokenizer.ggml.add_space_prefix");
    begin(&g, "gpt2");
    put_text(&g, "tokenizer.ggml.pre", "gpt-2");
    put_texts(&g, one, 1);
    put_types(&g, "4");
    put_list(&g, "tokenizer.ggml.merges", merges, 0);
    expect_error(SN_E_UNSUPPORTED, "added token 0 has 1999 bytes, at most 1024");
    begin(&g, "llama");
    put_texts(&g, one, 1);
    put_array(&g, "tokenizer.ggml.scores", SN_GGUF_F32, 1);
    put(&g, 0, 4);
    expect_error(SN_E_UNSUPPORTED, "token 0 has 1999 bytes, at most 1024");
}

static void test_bad_llama(void) {
    static const char *const two[] = { "<s>", "a" }, *const same[] = { "a", "a" };
    begin(&g, "llama");
    put_texts(&g, two, 2);
    expect_error(SN_E_FORMAT, "neither tokenizer.ggml.merges nor tokenizer.ggml.scores");
    begin(&g, "llama");
    put_texts(&g, two, 2);
    put_types(&g, "36");
    expect_error(SN_E_FORMAT, "token 1 is to be a byte, but its text is not like <0x0A>");
    begin(&g, "llama");
    put_texts(&g, same, 2);
    expect_error(SN_E_FORMAT, "tokens 0 and 1 are both 'a'");
    begin(&g, "llama");
    put_texts(&g, two, 2);
    put_list(&g, "tokenizer.ggml.scores", two, 2);
    expect_error(SN_E_FORMAT, "tokenizer.ggml.scores is no array of numbers");
    begin(&g, "llama");
    put_texts(&g, two, 2);
    put_array(&g, "tokenizer.ggml.scores", SN_GGUF_F32, 1);
    put(&g, 0, 4);
    expect_error(SN_E_FORMAT, "2 tokens, but 1 scores");
    begin(&g, "llama");
    put_texts(&g, two, 2);
    put_array(&g, "tokenizer.ggml.scores", SN_GGUF_F32, 2);
    put(&g, 0, 4);
    put(&g, 0x7fc00000, 4);
    expect_error(SN_E_FORMAT, "the score of token 1 is no number");
}

static void bad_triples(const uint32_t *triples, size_t n, const char *part) {
    small_sunnynet(triples, n);
    expect_error(SN_E_FORMAT, part);
}

static void test_bad_sunnynet(void) {
    bad_triples((const uint32_t[]){ 4, 5 }, 2, "2 numbers are not three for each merge");
    bad_triples((const uint32_t[]){ 4, 5, 12 }, 3, "merge 0: one of its ids is no token");
    bad_triples((const uint32_t[]){ 4, UINT32_MAX, 7 }, 3, "merge 0: one of its ids");
    bad_triples((const uint32_t[]){ 1, 5, 7 }, 3, "merge 0: one of its ids");
    bad_triples((const uint32_t[]){ 4, 5, 3 }, 3, "merge 0: one of its ids");
    bad_triples((const uint32_t[]){ 4, 5, 8 }, 3, "merge 0: its parts are not what it makes");
    bad_triples((const uint32_t[]){ 4, 4, 4 }, 3, "merge 0: its parts"); /* goes in a circle */
    bad_triples((const uint32_t[]){ 4, 5, 7, 7, 7, 7 }, 6, "merge 1: its parts");
    begin(&g, "sunnynet");
    put_texts(&g, characters, 12);
    expect_error(SN_E_FORMAT, "sunnynet.tokenizer.merges is no array of integers");
    begin(&g, "sunnynet");
    put_texts(&g, characters, 12);
    put_list(&g, "sunnynet.tokenizer.merges", merges, 3);
    expect_error(SN_E_FORMAT, "sunnynet.tokenizer.merges is no array of integers");
}

/* ---- mutations and memory ----------------------------------------------------------- */

static void use(const sn_tokenizer *t) {
    static const char text[] = "ab abc <s>a<user>\xe4\xbd\xa0 e\xcc\x81 1234";
    int32_t ids[200], n = 0;
    sn_status status =
        sn_tokenizer_encode_with(t, text, sizeof text - 1, SN_ENCODE_SPECIAL, ids, 200, &n);
    CHECK(status == SN_OK || status == SN_E_INVAL || status == SN_E_NOMEM, "%d", status);
    for (int32_t i = 0; i < n && i < 200 && status == SN_OK; i++)
        CHECK(ids[i] >= 0 && ids[i] < sn_tokenizer_vocab(t), "%d", ids[i]);
}

static void good_file(int kind) {
    static const uint32_t triples[] = { 4, 5, 7, 7, 4, 8 };
    if (kind == 0) {
        small_gpt2();
        put_text(&g, "sunnynet.tokenizer.normalizer", "nfc");
    } else if (kind == 3) {
        small_sunnynet(triples, 6);
    } else {
        small_llama(kind == 1);
    }
}

/* Whatever the bytes, an answer comes (the sanitizers watch). */
static void test_mutated(void) {
    check_random random = { 13 };
    for (int round = 0; round < 4000; round++) {
        good_file(round % 4);
        uint64_t n_keys = g.n_keys;
        for (uint32_t k = check_below(&random, 4); k < 4; k++) {
            size_t at = 24 + check_below(&random, (uint32_t)g.n - 24);
            g.data[at] = check_below(&random, 2) ? (uint8_t)check_next(&random)
                                                 : g.data[24 + check_below(&random, 200)];
        }
        g.n_keys = n_keys;
        sn_tokenizer *t = NULL;
        sn_status status = from_bytes(&g, &t);
        CHECK(status == SN_OK || !t, "round %d of seed 13", round);
        if (t) use(t);
        sn_tokenizer_destroy(t);
    }
}

static sn_tokenizer *made(void) {
    sn_tokenizer *tokenizer = NULL;
    sn_status status = from_bytes(&g, &tokenizer);
    CHECK(status == SN_OK && tokenizer, "%s", sn_last_error());
    if (!tokenizer) exit(check_report("test_bad_tokenizers"));
    return tokenizer;
}

/* Each allocation fails once, when building and when encoding; the sanitizers find what leaks. */
static void test_no_memory(void) {
    for (int kind = 0; kind < 4; kind++) {
        sn_status status = SN_E_NOMEM;
        for (long nth = 1; status != SN_OK && nth < 200; nth++) {
            sn_tokenizer *t = NULL;
            sn_memory_cursor cursor;
            sn_gguf gguf = { 0 };
            good_file(kind);
            CHECK(open_bytes(&g, &gguf, &cursor), "%s", sn_last_error());
            sn_alloc_fail_at(nth);
            status = sn_tokenizer_from_gguf(&gguf, &t);
            sn_alloc_fail_at(0);
            CHECK(status == SN_OK || (status == SN_E_NOMEM && !t), "%d: %s", status,
                  sn_last_error());
            sn_tokenizer_destroy(t);
            sn_gguf_close(&gguf);
        }
        CHECK(status == SN_OK, "kind %d", kind);
        good_file(kind);
        sn_tokenizer *t = made();
        int32_t n = 0;
        status = SN_E_NOMEM;
        for (long nth = 1; status != SN_OK && nth < 200; nth++) {
            sn_alloc_fail_at(nth);
            status = sn_tokenizer_encode(t, "ab abc e\xcc\x81<user>", 16, NULL, 0, &n);
            sn_alloc_fail_at(0);
            CHECK(status == SN_OK || status == SN_E_NOMEM, "%d: %s", status, sn_last_error());
        }
        CHECK(status == SN_OK && n > 0, "kind %d", kind);
        sn_tokenizer_destroy(t);
    }
}

int main(void) {
    test_bad_gpt2();
    test_bad_keys();
    test_bad_llama();
    test_bad_sunnynet();
    CHECK(bad_files >= 30, "%d bad files", bad_files);
    test_mutated();
    test_no_memory();
    return check_report("test_bad_tokenizers");
}
