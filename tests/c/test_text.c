/*
 * test_text.c: the RWKV tokenizer from its file and from GGUF, and the text stream.
 * Usage: test_text tests/data/tokenizer-rwkv
 */
#include "check.h"
#include "gguf_bytes.h"

#include "text/utf8.h"
#include "text/vocabulary.h"

static char vocabulary_path[1024], golden_path[1024];

static sn_tokenizer *micro(void) {
    sn_tokenizer *tokenizer = NULL;
    sn_status status = sn_tokenizer_load(vocabulary_path, &tokenizer);
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (!tokenizer) exit(check_report("test_text"));
    return tokenizer;
}

static int error_has(const char *part) {
    return strstr(sn_last_error(), part) != NULL;
}

/* ---- encoding and decoding ---------------------------------------------------------- */

static int hex_value(const char *digits) {
    char pair[3] = { digits[0], digits[1], 0 };
    return (int)strtol(pair, NULL, 16);
}

static void check_golden_line(const sn_tokenizer *tokenizer, char *line) {
    char text[512];
    size_t bytes = 0;
    int32_t ids[512], n = -1, i = 0;
    char *at = line;
    for (; *at != ' ' && *at != '\n'; at += *at == '-' ? 1 : 2)
        if (*at != '-') text[bytes++] = (char)hex_value(at);
    CHECK(sn_tokenizer_encode(tokenizer, text, bytes, ids, 512, &n) == SN_OK, "%s", line);
    for (; *at == ' '; i++) CHECK(i < n && ids[i] == strtol(at, &at, 10), "id %d of %s", i, line);
    CHECK(i == n, "%d ids, %d expected: %s", n, i, line);
}

static void test_golden(const sn_tokenizer *tokenizer) {
    char line[4096];
    FILE *file = fopen(golden_path, "r");
    int lines = 0;
    CHECK(file != NULL, "%s", golden_path);
    for (; file && fgets(line, sizeof line, file); lines++) check_golden_line(tokenizer, line);
    CHECK(lines == 9, "%d lines", lines);
    if (file) fclose(file);
}

static size_t decode(const sn_tokenizer *tokenizer, const int32_t *ids, int32_t n, char *out) {
    size_t total = 0;
    for (int32_t i = 0; i < n; i++) {
        const char *bytes = NULL;
        size_t length = 0;
        CHECK(sn_tokenizer_token(tokenizer, ids[i], &bytes, &length) == SN_OK, "id %d", ids[i]);
        memcpy(out + total, bytes, length);
        total += length;
    }
    return total;
}

/* Bytes of the vocabulary's own alphabet now and then, so that long tokens occur. */
static size_t random_bytes(check_random *random, const sn_tokenizer *tokenizer, char *out,
                           size_t room) {
    size_t n = 0;
    while (n + 32 < room) {
        const char *bytes;
        size_t length;
        int32_t id = (int32_t)check_below(random, (uint32_t)sn_tokenizer_vocab(tokenizer));
        sn_tokenizer_token(tokenizer, id, &bytes, &length);
        memcpy(out + n, bytes, length);
        n += length;
        if (check_below(random, 3) == 0) out[n++] = (char)check_next(random);
        if (check_below(random, 20) == 0) break;
    }
    return n;
}

/* The longest match by trying every token. */
static int32_t longest_by_hand(const sn_tokenizer *tokenizer, const char *text, size_t n) {
    int32_t best = -1;
    size_t best_length = 0;
    for (int32_t id = 1; id < sn_tokenizer_vocab(tokenizer); id++) {
        const char *bytes;
        size_t length;
        sn_tokenizer_token(tokenizer, id, &bytes, &length);
        if (length > best_length && length <= n && memcmp(bytes, text, length) == 0) {
            best = id;
            best_length = length;
        }
    }
    return best;
}

static void test_round_trip(const sn_tokenizer *tokenizer) {
    check_random random = { 7 };
    for (int round = 0; round < 300; round++) {
        char text[400], back[400];
        int32_t ids[400], n = 0;
        size_t bytes = random_bytes(&random, tokenizer, text, sizeof text), at = 0;
        CHECK(sn_tokenizer_encode(tokenizer, text, bytes, ids, 400, &n) == SN_OK, "%d", round);
        CHECK(decode(tokenizer, ids, n, back) == bytes && memcmp(back, text, bytes) == 0,
              "round %d of seed 7", round);
        for (int32_t i = 0; i < n; i++) {
            const char *token;
            size_t length;
            CHECK(ids[i] == longest_by_hand(tokenizer, text + at, bytes - at), "round %d", round);
            sn_tokenizer_token(tokenizer, ids[i], &token, &length);
            at += length;
        }
    }
}

static void test_capacity(const sn_tokenizer *tokenizer) {
    int32_t ids[4] = { -7, -7, -7, -7 }, n = 0;
    CHECK(sn_tokenizer_encode(tokenizer, "\x01\x02\x03", 3, NULL, 0, &n) == SN_OK && n == 3,
          "%d", n);
    CHECK(sn_tokenizer_encode(tokenizer, "\x01\x02\x03", 3, ids, 2, &n) == SN_OK && n == 3,
          "%d", n);
    CHECK(ids[0] == 2 && ids[1] == 3 && ids[2] == -7, "%d %d %d", ids[0], ids[1], ids[2]);
    CHECK(sn_tokenizer_encode(tokenizer, NULL, 0, NULL, 0, &n) == SN_OK && n == 0, "%d", n);
}

static void test_micro_facts(const sn_tokenizer *tokenizer) {
    const char *bytes = NULL;
    size_t length = 9;
    CHECK(sn_tokenizer_vocab(tokenizer) == 294, "%d", sn_tokenizer_vocab(tokenizer));
    CHECK(strcmp(sn_tokenizer_kind(tokenizer), "rwkv") == 0, "kind");
    CHECK(sn_tokenizer_bos(tokenizer) == 0 && sn_tokenizer_eos(tokenizer) == 0, "bos, eos");
    CHECK(sn_tokenizer_eot(tokenizer) == 261, "%d", sn_tokenizer_eot(tokenizer));
    CHECK(sn_tokenizer_token(tokenizer, 0, &bytes, &length) == SN_OK && length == 0, "id 0");
    CHECK(sn_tokenizer_token(tokenizer, 292, &bytes, &length) == SN_OK && length == 9 &&
              memcmp(bytes, "Assistant", 9) == 0, "id 292");
    CHECK(sn_tokenizer_usable(tokenizer, 0) && sn_tokenizer_usable(tokenizer, 293), "usable");
    CHECK(!sn_tokenizer_usable(tokenizer, -1) && !sn_tokenizer_usable(tokenizer, 294), "range");
}

/* ---- vocabulary files --------------------------------------------------------------- */

static sn_status read_file_text(const char *text, size_t bytes, sn_tokenizer **tokenizer) {
    sn_input input;
    sn_memory_cursor cursor;
    sn_input_from_memory(&input, "v.txt", text, bytes, &cursor);
    sn_status status = sn_rwkv_read(&input, tokenizer);
    sn_input_close(&input);
    return status;
}

static void test_literals(void) {
    static const char text[] =
        "1 'a' 1\n"
        "3 '\\xe9' 2\r\n" /* a code point in a text, a byte in bytes */
        "4 b'\\xe9' 1\n"
        "\n"
        "5 \"it's\" 4\n"
        "6 '\\u4f60\\U0001f600' 7\n"
        "7 '\xc3\xbc b' 4\n"
        "8 '\\\\\\'\\\"\\t\\n\\r' 6\n"
        "9 b\"\\xff'\" 2\n"
        "10 'a' 1"; /* the same bytes again: the first id counts */
    static const char *const expected[] = {
        "", "a", "", "\xc3\xa9", "\xe9", "it's", "\xe4\xbd\xa0\xf0\x9f\x98\x80", "\xc3\xbc b",
        "\\'\"\t\n\r", "\xff'", "a"
    };
    sn_tokenizer *tokenizer = NULL;
    int32_t id = -1, n = 0;
    CHECK(read_file_text(text, sizeof text - 1, &tokenizer) == SN_OK, "%s", sn_last_error());
    if (!tokenizer) return;
    CHECK(sn_tokenizer_vocab(tokenizer) == 11, "%d", sn_tokenizer_vocab(tokenizer));
    for (int32_t i = 0; i < 11; i++) {
        const char *bytes;
        size_t length;
        sn_tokenizer_token(tokenizer, i, &bytes, &length);
        CHECK(length == strlen(expected[i]) && memcmp(bytes, expected[i], length) == 0, "%d", i);
    }
    CHECK(!sn_tokenizer_usable(tokenizer, 2), "a gap is unused");
    CHECK(sn_tokenizer_eot(tokenizer) == -1, "%d", sn_tokenizer_eot(tokenizer));
    CHECK(sn_tokenizer_encode(tokenizer, "a", 1, &id, 1, &n) == SN_OK && id == 1, "%d", id);
    id = -1;
    CHECK(sn_tokenizer_encode(tokenizer, "aab", 3, &id, 1, &n) == SN_E_INVAL && id == -1,
          "nothing is stored when encoding fails");
    CHECK(error_has("0x62") && error_has("offset 2"), "%s", sn_last_error());
    sn_tokenizer_free(tokenizer);
}

/* Small alphabets, the zero byte in one of them: tokens that begin alike, and twins. */
static void test_random_vocabularies(void) {
    check_random random = { 31 };
    for (int round = 0; round < 60; round++) {
        char file[8192], text[64];
        size_t bytes = 0;
        int32_t n_ids = 2 + (int32_t)check_below(&random, 60), ids[64], n = 0;
        uint8_t alphabet = round % 2 ? 'a' : 0;
        sn_tokenizer *tokenizer = NULL;
        for (int32_t id = 1; id <= n_ids; id++) { /* the two letters, then words of them */
            uint32_t length = id <= 2 ? 1 : 1 + check_below(&random, 14);
            bytes += (size_t)sprintf(file + bytes, "%d b'", id);
            for (uint32_t i = 0; i < length; i++) {
                uint32_t letter = id <= 2 ? (uint32_t)id - 1 : check_below(&random, 8) / 7;
                bytes += (size_t)sprintf(file + bytes, "\\x%02x", alphabet + letter);
            }
            bytes += (size_t)sprintf(file + bytes, "' %u\n", length);
        }
        CHECK(read_file_text(file, bytes, &tokenizer) == SN_OK, "%s", sn_last_error());
        for (int i = 0; i < 64; i++) text[i] = (char)(alphabet + check_below(&random, 8) / 7);
        CHECK(sn_tokenizer_encode(tokenizer, text, 64, ids, 64, &n) == SN_OK, "%d", round);
        size_t at = 0;
        for (int32_t i = 0; i < n; i++) {
            const char *token;
            size_t length;
            CHECK(ids[i] == longest_by_hand(tokenizer, text + at, 64 - at), "round %d", round);
            sn_tokenizer_token(tokenizer, ids[i], &token, &length);
            at += length;
        }
        sn_tokenizer_free(tokenizer);
    }
}

static void test_bad_files(void) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "", "no tokens" },
        { "\n\n", "no tokens" },
        { "1 'a' 1\n1 'b' 1\n", "line 2: id 1 follows id 1" },
        { "0 'a' 1\n", "line 1: the id is no number" },
        { "x 'a' 1\n", "line 1: the id is no number" },
        { "-1 'a' 1\n", "line 1: the id is no number" },
        { "1048576 'a' 1\n", "line 1: the id is no number" },
        { "99999999999999999999 'a' 1\n", "line 1: the id is no number" },
        { "1 'a' 2\n", "a token of 1 bytes, but its length is given as 2" },
        { "1 'a' x\n", "the length is no number" },
        { "1 'a' \n", "the length is no number" },
        { "1 '' 0\n", "an empty token" },
        { "1 'a'\n", "not: id, literal, length" },
        { "1\n", "not: id, literal, length" },
        { " \n", "not: id, literal, length" },
        { "1  1\n", "not between quotes" },
        { "1 ' 1\n", "not between quotes" },
        { "1 b 1\n", "not between quotes" },
        { "1 a 1\n", "not between quotes" },
        { "1 'a\" 1\n", "not between quotes" },
        { "1 'a'b' 3\n", "a quote inside" },
        { "1 '\\' 1\n", "a malformed escape" },
        { "1 '\\q' 1\n", "a malformed escape" },
        { "1 '\\x4' 1\n", "a malformed escape" },
        { "1 '\\x4g' 1\n", "a malformed escape" },
        { "1 b'\\u0041' 1\n", "a malformed escape" },
        { "1 '\\U00110000' 4\n", "a malformed escape" },
        { "1 '\\ud800' 3\n", "not UTF-8" },
        { "1 '\xff' 1\n", "not UTF-8" },
        { "1 b'\xc3\xbc' 2\n", "not ASCII" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_tokenizer *tokenizer = NULL;
        sn_status status = read_file_text(cases[i].text, strlen(cases[i].text), &tokenizer);
        CHECK(status == SN_E_FORMAT && !tokenizer, "case %zu: %d", i, status);
        CHECK(error_has(cases[i].error) && error_has("v.txt"), "%zu: %s", i, sn_last_error());
    }
}

/* Whatever the bytes, an answer comes (the sanitizers watch). */
static void test_mutated_files(void) {
    static const char good[] = "1 'a' 1\n2 b'\\xe4' 1\n3 \"\\u4f60'\" 4\n7 ' \\n\\\\' 3\n";
    check_random random = { 11 };
    for (int round = 0; round < 3000; round++) {
        char text[sizeof good];
        sn_tokenizer *tokenizer = NULL;
        memcpy(text, good, sizeof good);
        for (uint32_t k = check_below(&random, 4); k < 4; k++)
            text[check_below(&random, sizeof good - 1)] =
                check_below(&random, 2) ? (char)check_next(&random)
                                        : good[check_below(&random, sizeof good - 1)];
        size_t bytes = sizeof good - 1;
        if (check_below(&random, 3) == 0) bytes = check_below(&random, sizeof good);
        sn_status status = read_file_text(text, bytes, &tokenizer);
        CHECK((status == SN_OK) == (tokenizer != NULL), "round %d of seed 11", round);
        sn_tokenizer_free(tokenizer);
    }
}

/* ---- GGUF --------------------------------------------------------------------------- */

/* A token as the converter to GGUF writes it. */
static size_t escape(const char *bytes, size_t n, char *out) {
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\\' || c == '\'')
            length += (size_t)sprintf(out + length, "\\%c", c);
        else if (c == '\t' || c == '\n' || c == '\r')
            length += (size_t)sprintf(out + length, "\\%c", "tn..r"[c - '\t']);
        else if (c >= 0x20 && c < 0x7f)
            out[length++] = (char)c;
        else
            length += (size_t)sprintf(out + length, "\\x%02x", c);
    }
    return length;
}

/* The micro vocabulary with two padding entries, as converters write it. */
static void micro_gguf(const sn_tokenizer *tokenizer, gguf_bytes *g) {
    const int32_t n = sn_tokenizer_vocab(tokenizer);
    begin(g, "rwkv");
    put_array(g, "tokenizer.ggml.tokens", SN_GGUF_STRING, (uint64_t)n + 2);
    put_string(g, "<s>", 3);
    for (int32_t id = 1; id < n; id++) {
        char escaped[512];
        const char *bytes;
        size_t length;
        sn_tokenizer_token(tokenizer, id, &bytes, &length);
        put_string(g, escaped, escape(bytes, length, escaped));
    }
    put_string(g, "[PAD294]", 8);
    put_string(g, "[PAD295]", 8);
    put_array(g, "tokenizer.ggml.token_type", SN_GGUF_I32, (uint64_t)n + 2);
    for (int32_t id = 0; id < n + 2; id++) put(g, id == 0 ? 3 : id < n ? 1 : 5, 4);
    put_id(g, "tokenizer.ggml.bos_token_id", 0);
    put_id(g, "tokenizer.ggml.eos_token_id", 0);
    put_id(g, "tokenizer.ggml.eot_token_id", 261);
}

static gguf_bytes g;

static void test_gguf_equals_file(const sn_tokenizer *tokenizer) {
    sn_tokenizer *other = NULL;
    micro_gguf(tokenizer, &g);
    CHECK(from_bytes(&g, &other) == SN_OK && other, "%s", sn_last_error());
    if (!other) return;
    CHECK(sn_tokenizer_vocab(other) == 296 && sn_tokenizer_eot(other) == 261, "facts");
    for (int32_t id = 0; id < 296; id++) {
        const char *a, *b = "";
        size_t a_length, b_length = 0;
        sn_tokenizer_token(other, id, &a, &a_length);
        if (id < 294) sn_tokenizer_token(tokenizer, id, &b, &b_length);
        CHECK(a_length == b_length && memcmp(a, b, a_length) == 0, "id %d", id);
        CHECK(sn_tokenizer_usable(other, id) == (id < 294), "id %d", id);
    }
    int32_t ids[8], n = 0;
    const char *text = NULL;
    size_t length = 0;
    CHECK(sn_tokenizer_encode(other, "[PAD294]", 8, ids, 8, &n) == SN_OK && n == 8, "%d", n);
    CHECK(sn_tokenizer_encode(other, "<s>", 3, ids, 8, &n) == SN_OK && n == 3, "%d", n);
    CHECK(sn_tokenizer_encode_with(other, "<s>", 3, SN_ENCODE_SPECIAL, ids, 8, &n) == SN_OK &&
              n == 1 && ids[0] == 0, "%d", n);
    CHECK(sn_tokenizer_special(other, 0) && !sn_tokenizer_special(other, 1), "special");
    CHECK(sn_tokenizer_text(other, 0, &text, &length) == SN_OK && length == 3 &&
              !memcmp(text, "<s>", 3), "text of 0");
    test_golden(other);
    sn_tokenizer_destroy(other);
}

static void test_gguf_escapes(void) {
    static const char *const tokens[] = { "zero", "\\x4A\\x4b", "\\'\\\"\\\\", "\xc3\xbc", "",
                                          "c", "u", "b", "d" };
    static const char *const expected[] = { "", "JK", "'\"\\", "\xc3\xbc", "", "", "", "b", "d" };
    sn_tokenizer *tokenizer = NULL;
    begin(&g, "rwkv");
    put_texts(&g, tokens, 9);
    put_types(&g, "111113264");
    put_id(&g, "tokenizer.ggml.eos_token_id", UINT32_MAX);
    CHECK(from_bytes(&g, &tokenizer) == SN_OK, "%s", sn_last_error());
    if (!tokenizer) return;
    for (int32_t id = 0; id < 9; id++) {
        const char *bytes;
        size_t length;
        sn_tokenizer_token(tokenizer, id, &bytes, &length);
        CHECK(length == strlen(expected[id]) && !memcmp(bytes, expected[id], length), "%d", id);
    }
    CHECK(sn_tokenizer_usable(tokenizer, 0) && sn_tokenizer_usable(tokenizer, 5), "control");
    CHECK(!sn_tokenizer_usable(tokenizer, 4), "an empty text is padding");
    CHECK(sn_tokenizer_bos(tokenizer) == -1 && sn_tokenizer_eos(tokenizer) == -1, "no ids");
    sn_tokenizer_destroy(tokenizer);
}

static void expect_error(sn_status code, const char *part) {
    sn_tokenizer *tokenizer = (sn_tokenizer *)&g;
    sn_status status = from_bytes(&g, &tokenizer);
    CHECK(status == code && tokenizer == (sn_tokenizer *)&g, "%d for %s", status, part);
    CHECK(error_has(part) && error_has("m.gguf"), "%s, not %s", sn_last_error(), part);
}

static void test_gguf_errors(void) {
    static const char *const two[] = { "<s>", "a" };
    static const char *const bad[] = { "a\\x4", "a\\xg0", "a\\", "\\x" };
    sn_tokenizer *none = (sn_tokenizer *)&g;
    begin(&g, NULL);
    put_id(&g, "tokenizer.ggml.eos_token_id", 0);
    CHECK(from_bytes(&g, &none) == SN_OK && !none, "no tokenizer in the file");
    begin(&g, "bert");
    expect_error(SN_E_UNSUPPORTED, "'bert'");
    begin(&g, "rwkv");
    expect_error(SN_E_FORMAT, "no array of texts");
    put_types(&g, "11");
    put_array(&g, "tokenizer.ggml.tokens", SN_GGUF_I32, 1);
    put(&g, 1, 4);
    expect_error(SN_E_FORMAT, "no array of texts");
    begin(&g, "rwkv");
    put_texts(&g, two, 0);
    expect_error(SN_E_FORMAT, "a vocabulary of 0 tokens");
    begin(&g, "rwkv");
    put_texts(&g, two, 2);
    put_types(&g, "311");
    expect_error(SN_E_FORMAT, "2 tokens, but 3 token types");
    begin(&g, "rwkv");
    put_texts(&g, two, 2);
    put_types(&g, "37");
    expect_error(SN_E_FORMAT, "token 1 has the unknown type 7");
    begin(&g, "rwkv");
    put_texts(&g, two, 2);
    put_id(&g, "tokenizer.ggml.token_type", 1);
    expect_error(SN_E_FORMAT, "no array of integers");
    begin(&g, "rwkv");
    put_texts(&g, two, 2);
    put_id(&g, "tokenizer.ggml.eot_token_id", 2);
    expect_error(SN_E_FORMAT, "eot_token_id is 2");
    for (int i = 0; i < 4; i++) {
        const char *tokens[] = { "<s>", "a", bad[i] };
        begin(&g, "rwkv");
        put_texts(&g, tokens, 3);
        expect_error(SN_E_FORMAT, "token 2 has a malformed escape");
    }
}

/* ---- the text stream ---------------------------------------------------------------- */

static bool is_character(const uint8_t *b, size_t n) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    static const uint8_t lead_mask[] = { 0, 0x80, 0xe0, 0xf0, 0xf8 };
    static const uint8_t lead_bits[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };
    if ((b[0] & lead_mask[n]) != lead_bits[n]) return false;
    uint32_t value = b[0] & (uint8_t)~lead_mask[n];
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80) return false;
        value = value << 6 | (b[i] & 0x3f);
    }
    return value >= least[n] && value <= 0x10ffff && !(value >= 0xd800 && value <= 0xdfff);
}

/* True if some bytes could follow b[0, n) to make one character. */
static bool begins_character(const uint8_t *b, size_t n) {
    for (size_t length = n + 1; length <= 4; length++)
        for (int second = 0x80; second <= 0xbf; second++) {
            uint8_t whole[4] = { b[0], (uint8_t)second, 0x80, 0x80 };
            memcpy(whole, b, n);
            if (is_character(whole, length)) return true;
        }
    return false;
}

/* The definition of the replacement, in one piece; an unfinished end is left out unless `all`. */
static size_t clean(const uint8_t *in, size_t n, uint8_t *out, bool all) {
    size_t length = 0;
    for (size_t at = 0; at < n;) {
        size_t left = n - at, k = 1, whole = 0;
        for (size_t i = 1; i <= 4 && i <= left; i++)
            if (is_character(in + at, i)) whole = i;
        if (whole) {
            memcpy(out + length, in + at, whole);
            length += whole;
            at += whole;
            continue;
        }
        while (k < left && begins_character(in + at, k + 1)) k++;
        if (!all && k == left && begins_character(in + at, k)) break;
        memcpy(out + length, SN_UTF8_REPLACEMENT, 3);
        length += 3;
        at += k;
    }
    return length;
}

/* Where the text ends because of the stops; *stopped tells whether it does. */
static size_t cut(const uint8_t *text, size_t n, const char *const *stops, int n_stops,
                  bool *stopped) {
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (int i = 0; i < n_stops; i++) {
            size_t length = strlen(stops[i]);
            if (length <= end && length > longest && !memcmp(text + end - length, stops[i], length))
                longest = length;
        }
        *stopped = longest > 0;
        if (longest) return end - longest;
    }
    *stopped = false;
    return n;
}

/* Bytes at the end that a stop string begins with. */
static size_t held(const uint8_t *text, size_t n, const char *const *stops, int n_stops) {
    size_t most = 0;
    for (int i = 0; i < n_stops; i++)
        for (size_t k = 1; k < strlen(stops[i]) && k <= n; k++)
            if (k > most && !memcmp(text + n - k, stops[i], k)) most = k;
    return most;
}

#define ROOM 2048

typedef struct run {
    uint8_t raw[ROOM], cleaned[3 * ROOM], got[3 * ROOM];
    size_t n_raw, n_got;
    bool stopped;
} run;

/* What has come out so far must be all that is certain, and nothing more. */
static void check_so_far(run *r, const char *const *stops, int n_stops, int32_t stopped,
                         const char *where) {
    bool want = false;
    size_t n = clean(r->raw, r->n_raw, r->cleaned, false);
    size_t end = cut(r->cleaned, n, stops, n_stops, &want);
    if (!want) end -= held(r->cleaned, end, stops, n_stops);
    CHECK(stopped == want, "%s: stopped %d", where, stopped);
    CHECK(r->n_got == end && !memcmp(r->got, r->cleaned, end), "%s: %zu bytes, not %zu", where,
          r->n_got, end);
    r->stopped = want;
}

static void stream(sn_text *text, const sn_tokenizer *tokenizer, const int32_t *ids, int32_t n,
                   const char *const *stops, int n_stops, const char *where) {
    static run r;
    const char *out = NULL;
    size_t length = 0;
    int32_t stopped = 0;
    r.n_raw = r.n_got = 0;
    for (int32_t i = 0; i < n; i++) {
        r.n_raw += decode(tokenizer, ids + i, 1, (char *)r.raw + r.n_raw);
        CHECK(sn_text_push(text, ids[i], &out, &length, &stopped) == SN_OK, "%s", where);
        CHECK(sn_utf8_valid((const uint8_t *)out, length), "%s: whole characters", where);
        memcpy(r.got + r.n_got, out, length);
        r.n_got += length;
        check_so_far(&r, stops, n_stops, stopped, where);
    }
    CHECK(sn_text_finish(text, &out, &length) == SN_OK, "%s", where);
    memcpy(r.got + r.n_got, out, length);
    r.n_got += length;
    bool cut_short = false;
    size_t total = clean(r.raw, r.n_raw, r.cleaned, true);
    size_t end = cut(r.cleaned, total, stops, n_stops, &cut_short);
    CHECK(r.n_got == end && !memcmp(r.got, r.cleaned, end), "%s: at the end", where);
}

static void test_stream_random(const sn_tokenizer *tokenizer) {
    static const char *const stops[] = { "\n\nUser:", "\nUser:", "aab", "aaab", "the the",
                                         "\xe4\xbd\xa0\xe5\xa5\xbd",
                                         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" };
    check_random random = { 23 };
    for (int round = 0; round < 600; round++) {
        char where[64];
        int32_t ids[60], n = (int32_t)check_below(&random, 60);
        int n_stops = (int)check_below(&random, 8);
        uint32_t alphabet = check_below(&random, 3);
        sn_text *text = NULL;
        snprintf(where, sizeof where, "round %d of seed 23", round);
        for (int32_t i = 0; i < n; i++)
            ids[i] = alphabet == 0 ? 'a' + 1 + (int32_t)check_below(&random, 2)
                     : alphabet == 1 ? 129 + (int32_t)check_below(&random, 128)
                                     : (int32_t)check_below(&random, 294);
        CHECK(sn_text_new(tokenizer, stops, n_stops, &text) == SN_OK, "%s", sn_last_error());
        stream(text, tokenizer, ids, n, stops, n_stops, where);
        stream(text, tokenizer, ids, n, stops, n_stops, where); /* it starts afresh */
        sn_text_free(text);
    }
}

/* The same text as single bytes and as longest tokens, a stop at every place. */
static void test_stop_everywhere(const sn_tokenizer *tokenizer) {
    static const char base[] = "the \xe4\xbd\xa0\xe5\xa5\xbd, User: Hello\n";
    static const char *const stops[] = { "\n\nUser:" };
    for (size_t at = 0; at < sizeof base; at++) {
        char text[64];
        int32_t single[64], longest[64], n = 0;
        size_t total = (size_t)sprintf(text, "%.*s\n\nUser: more", (int)at, base);
        sn_text *made = NULL;
        for (size_t i = 0; i < total; i++) single[i] = (uint8_t)text[i] + 1;
        CHECK(sn_tokenizer_encode(tokenizer, text, total, longest, 64, &n) == SN_OK, "%zu", at);
        CHECK(sn_text_new(tokenizer, stops, 1, &made) == SN_OK, "%s", sn_last_error());
        stream(made, tokenizer, single, (int32_t)total, stops, 1, "single bytes");
        stream(made, tokenizer, longest, n, stops, 1, "longest tokens");
        sn_text_free(made);
    }
}

static void test_stream_details(const sn_tokenizer *tokenizer) {
    static const char *const stops[] = { "ab" };
    static const char long_token[] = "1 'a' 1\n2 b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff' 8\n"
                                     "3 b'\\xf0\\x9f\\x98' 3\n";
    sn_tokenizer *other = NULL;
    sn_text *text = NULL;
    const char *out = NULL;
    size_t length = 9;
    int32_t stopped = 9;
    CHECK(sn_text_new(tokenizer, stops, 1, &text) == SN_OK, "%s", sn_last_error());
    long before = sn_alloc_count();
    CHECK(sn_text_push(text, 'a' + 1, &out, &length, &stopped) == SN_OK && length == 0, "held");
    CHECK(sn_text_push(text, 294, &out, &length, &stopped) == SN_E_INVAL, "outside");
    CHECK(sn_text_push(text, -1, &out, &length, &stopped) == SN_E_INVAL, "outside");
    CHECK(sn_text_push(text, 'c' + 1, &out, &length, &stopped) == SN_OK && length == 2 &&
              !memcmp(out, "ac", 2) && !stopped, "released");
    CHECK(sn_text_push(text, 0, &out, &length, &stopped) == SN_OK && length == 0 && out, "none");
    sn_text_push(text, 'a' + 1, &out, &length, &stopped);
    CHECK(sn_text_push(text, 'b' + 1, &out, &length, &stopped) == SN_OK && stopped, "stopped");
    CHECK(sn_text_push(text, 'c' + 1, &out, &length, &stopped) == SN_OK && stopped && !length,
          "it stays stopped");
    CHECK(sn_text_finish(text, &out, &length) == SN_OK && length == 0, "nothing is held");
    CHECK(sn_text_push(text, 'c' + 1, &out, &length, &stopped) == SN_OK && !stopped &&
              length == 1, "afresh");
    CHECK(sn_alloc_count() == before, "a stream does not allocate");
    sn_text_free(text);
    text = NULL;
    CHECK(read_file_text(long_token, sizeof long_token - 1, &other) == SN_OK, "%s",
          sn_last_error());
    CHECK(sn_text_new(other, NULL, 0, &text) == SN_OK, "%s", sn_last_error());
    sn_text_push(text, 3, &out, &length, &stopped);
    CHECK(sn_text_push(text, 2, &out, &length, &stopped) == SN_OK && length == 27,
          "nine replacements fit: %zu", length);
    sn_text_free(text);
    sn_tokenizer_free(other);
}

/* ---- misuse ------------------------------------------------------------------------- */

static void test_misuse(const sn_tokenizer *tokenizer) {
    static const char *const empty[] = { "a", "" }, *const null[] = { NULL };
    static const char *const invalid[] = { "\xe4\xbd" };
    sn_tokenizer *made = NULL;
    sn_text *text = NULL;
    int32_t id = 0, n = 0;
    const char *out;
    size_t length;
    CHECK(sn_tokenizer_load(NULL, &made) == SN_E_INVAL, "path");
    CHECK(sn_tokenizer_load(vocabulary_path, NULL) == SN_E_INVAL, "tokenizer");
    CHECK(sn_tokenizer_load("no/such/file", &made) == SN_E_IO && !made, "%s", sn_last_error());
    CHECK(sn_tokenizer_encode(NULL, "a", 1, &id, 1, &n) == SN_E_INVAL, "tokenizer");
    CHECK(sn_tokenizer_encode(tokenizer, NULL, 1, &id, 1, &n) == SN_E_INVAL, "text");
    CHECK(sn_tokenizer_encode(tokenizer, "a", 1, NULL, 1, &n) == SN_E_INVAL, "ids");
    CHECK(sn_tokenizer_encode(tokenizer, "a", 1, &id, -1, &n) == SN_E_INVAL, "capacity");
    CHECK(sn_tokenizer_encode(tokenizer, "a", 1, &id, 1, NULL) == SN_E_INVAL, "n");
    CHECK(sn_tokenizer_encode(tokenizer, "a", (size_t)INT32_MAX + 1, &id, 1, &n) == SN_E_INVAL,
          "too long");
    CHECK(sn_tokenizer_token(tokenizer, -1, &out, &length) == SN_E_INVAL, "id");
    CHECK(sn_tokenizer_token(tokenizer, 294, &out, &length) == SN_E_INVAL, "id");
    CHECK(sn_tokenizer_token(tokenizer, 1, NULL, &length) == SN_E_INVAL, "bytes");
    CHECK(sn_tokenizer_token(tokenizer, 1, &out, NULL) == SN_E_INVAL, "length");
    CHECK(sn_tokenizer_token(NULL, 1, &out, &length) == SN_E_INVAL, "tokenizer");
    CHECK(sn_tokenizer_vocab(NULL) == 0 && sn_tokenizer_bos(NULL) == -1 &&
              sn_tokenizer_eos(NULL) == -1 && sn_tokenizer_eot(NULL) == -1 &&
              !*sn_tokenizer_kind(NULL), "NULL");
    sn_tokenizer_free(NULL);
    sn_text_free(NULL);
    CHECK(sn_text_new(NULL, NULL, 0, &text) == SN_E_INVAL, "tokenizer");
    CHECK(sn_text_new(tokenizer, NULL, 0, NULL) == SN_E_INVAL, "text");
    CHECK(sn_text_new(tokenizer, NULL, 1, &text) == SN_E_INVAL, "stops");
    CHECK(sn_text_new(tokenizer, empty, -1, &text) == SN_E_INVAL, "n_stops");
    CHECK(sn_text_new(tokenizer, empty, 2, &text) == SN_E_INVAL && error_has("1"), "empty");
    CHECK(sn_text_new(tokenizer, null, 1, &text) == SN_E_INVAL, "NULL stop");
    CHECK(sn_text_new(tokenizer, invalid, 1, &text) == SN_E_INVAL && error_has("UTF-8"), "bytes");
    CHECK(sn_text_push(NULL, 1, &out, &length, &n) == SN_E_INVAL, "text");
    CHECK(sn_text_finish(NULL, &out, &length) == SN_E_INVAL, "text");
    CHECK(text == NULL && made == NULL, "nothing was made");
}

/* Each call must fail cleanly whichever of its allocations fails, and succeed in the end. */
static void test_out_of_memory(const sn_tokenizer *tokenizer) {
    static const char *const stops[] = { "a", "bc" };
    sn_memory_cursor cursor;
    sn_gguf gguf = { 0 };
    sn_tokenizer *made = NULL;
    sn_text *text = NULL;
    sn_status status = SN_E_NOMEM;
    micro_gguf(tokenizer, &g);
    bool opened = open_bytes(&g, &gguf, &cursor);
    for (long n = 1; opened && status != SN_OK; n++) {
        sn_alloc_fail_at(n);
        status = sn_tokenizer_from_gguf(&gguf, &made);
        CHECK(status == SN_OK || (status == SN_E_NOMEM && !made), "GGUF, %ld: %d", n, status);
    }
    sn_tokenizer_destroy(made);
    sn_gguf_close(&gguf);
    made = NULL;
    status = SN_E_NOMEM;
    for (long n = 1; status != SN_OK; n++) {
        sn_alloc_fail_at(n);
        status = sn_tokenizer_load(vocabulary_path, &made);
        CHECK(status == SN_OK || (status == SN_E_NOMEM && !made), "file, %ld: %d", n, status);
        if (status != SN_OK && status != SN_E_NOMEM) break;
    }
    sn_tokenizer_free(made);
    status = SN_E_NOMEM;
    for (long n = 1; status == SN_E_NOMEM; n++) {
        sn_alloc_fail_at(n);
        status = sn_text_new(tokenizer, stops, 2, &text);
    }
    CHECK(status == SN_OK, "text: %d", status);
    sn_text_free(text);
    sn_alloc_fail_at(0);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: test_text FOLDER\n");
        return 2;
    }
    snprintf(vocabulary_path, sizeof vocabulary_path, "%s/vocab.txt", argv[1]);
    snprintf(golden_path, sizeof golden_path, "%s/golden.txt", argv[1]);
    sn_tokenizer *tokenizer = micro();
    test_micro_facts(tokenizer);
    test_golden(tokenizer);
    test_round_trip(tokenizer);
    test_capacity(tokenizer);
    test_literals();
    test_random_vocabularies();
    test_bad_files();
    test_mutated_files();
    test_gguf_equals_file(tokenizer);
    test_gguf_escapes();
    test_gguf_errors();
    test_stream_random(tokenizer);
    test_stop_everywhere(tokenizer);
    test_stream_details(tokenizer);
    test_misuse(tokenizer);
    test_out_of_memory(tokenizer);
    sn_tokenizer_free(tokenizer);
    return check_report("test_text");
}
