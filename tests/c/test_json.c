/* JSON trees: values, texts, numbers, look-up, and what is refused and how it is said. */
#include "formats/decimal.h"
#include "formats/json.h"

#include "check.h"

static sn_json_document *parse(const char *text) {
    sn_json_document *document = NULL;
    sn_status status = sn_json_parse(text, strlen(text), "t.json", true, &document);
    CHECK(status == SN_OK, "%.80s: %s", text, sn_last_error());
    return document;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- trees -------------------------------------------------------------------------- */

static void check_tree(void) {
    sn_json_document *document = parse("\xef\xbb\xbf {\"a\" : [1, -2.5, \"x\", [], {}],\r\n"
                                       "\t\"b\":{\"c\":null,\"d\":true},\"\":false}\n");
    const sn_json *root = sn_json_root(document), *a = sn_json_get(root, "a");
    CHECK(root->kind == SN_JSON_OBJECT && root->size == 3 && !root->key, "root");
    CHECK(a == root->first && a->kind == SN_JSON_ARRAY && a->size == 5, "a");
    const sn_json *item = a->first;
    CHECK(item->kind == SN_JSON_NUMBER && item->is_integer && item->number == 1, "1");
    item = item->next;
    CHECK(item->kind == SN_JSON_NUMBER && !item->is_integer && item->number == -2.5, "-2.5");
    item = item->next;
    CHECK(sn_json_is(item, "x") && !sn_json_is(item, "xy") && !sn_json_is(item, ""), "x");
    item = item->next;
    CHECK(item->kind == SN_JSON_ARRAY && item->size == 0 && !item->first, "[]");
    item = item->next;
    CHECK(item->kind == SN_JSON_OBJECT && !item->first && !item->next, "{}");
    const sn_json *b = sn_json_get(root, "b");
    CHECK(sn_json_get(b, "c")->kind == SN_JSON_NULL, "null");
    CHECK(sn_json_get(b, "d")->kind == SN_JSON_TRUE, "true");
    CHECK(sn_json_get(root, "")->kind == SN_JSON_FALSE, "a member without a name");
    CHECK(!sn_json_get(root, "c") && !sn_json_get(a, "a") && !sn_json_get(NULL, "a") &&
              !sn_json_is(NULL, ""), "absent");
    sn_json_free(document);
    sn_json_free(NULL);
}

static void check_texts(void) {
    static const char text[] = "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u2581\\uD83D\\ude00\","
                               " \"\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80\", \"a\\u0000b\", \"\"]";
    static const char escapes[] = "\"\\/\b\f\n\r\t";
    static const char unicode[] = "\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80";
    sn_json_document *document = parse(text);
    const sn_json *item = sn_json_root(document)->first;
    CHECK(sn_json_is(item, escapes) && item->size == 8, "escapes");
    item = item->next;
    CHECK(sn_json_is(item, unicode), "\\u");
    item = item->next;
    CHECK(sn_json_is(item, unicode), "UTF-8");
    item = item->next;
    CHECK(item->size == 3 && memcmp(item->text, "a\0b", 4) == 0 && !sn_json_is(item, "a"), "NUL");
    item = item->next;
    CHECK(sn_json_is(item, "") && item->text[0] == '\0', "no text");
    sn_json_free(document);
}

/* As many members as need no table, one more, and many. */
static void check_lookup(size_t n) {
    size_t size = 40 * n + 64, at = 0;
    char *text = malloc(size), key[40];
    if (!text) exit(2);
    at += (size_t)snprintf(text, size, "{\"\\u0000\":-1");
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, ",\"common-prefix-%zu\":%zu", i * 7919 % n, i);
    snprintf(text + at, size - at, "}");
    sn_json_document *document = parse(text);
    const sn_json *root = sn_json_root(document);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(key, sizeof key, "common-prefix-%zu", i * 7919 % n);
        const sn_json *found = sn_json_get(root, key);
        wrong += !found || found->number != (double)i;
    }
    CHECK(wrong == 0, "%zu of %zu members not found", wrong, n);
    CHECK(!sn_json_get(root, "common-prefix-") && !sn_json_get(root, "") &&
              !sn_json_get(root, "zzz"), "absent of %zu", n);
    const sn_json *nul = sn_json_get_sized(root, "", 1);
    CHECK(nul && nul->number == -1 && nul->key_size == 1, "a NUL as a key of %zu", n);
    sn_json_free(document);
    free(text);
}

/* ---- numbers ------------------------------------------------------------------------ */

static double number_of(const char *text) {
    sn_json_document *document = parse(text);
    double number = document ? sn_json_root(document)->number : 0;
    sn_json_free(document);
    return number;
}

static void check_numbers(void) {
    static const struct { const char *text; uint64_t bits; bool integer; } cases[] = {
        { "0", 0, true },
        { "-0", 0x8000000000000000u, true },
        { "9007199254740992", 0x4340000000000000u, true },
        { "-9007199254740992", 0xc340000000000000u, true },
        { "9007199254740993", 0x4340000000000000u, false }, /* a tie: to even */
        { "9007199254740995", 0x4340000000000002u, false },
        { "123456789012345678901234567890", 0x45f8ee90ff6c373eu, false },
        { "1e-05", 0x3ee4f8b588e368f1u, false },
        { "0.000001", 0x3eb0c6f7a0b5ed8du, false },
        { "1E0", 0x3ff0000000000000u, false },
        { "1.0", 0x3ff0000000000000u, false },
        { "1e23", 0x44b52d02c7e14af6u, false },
        { "8.5e-17", 0x3c987fe49aab41e0u, false },
        { "1.7976931348623157e308", 0x7fefffffffffffffu, false },
        { "1.7976931348623158e+308", 0x7fefffffffffffffu, false },
        { "2.2250738585072014e-308", 0x0010000000000000u, false },
        { "2.2250738585072011e-308", 0x000fffffffffffffu, false },
        { "4.9e-324", 1, false },
        { "2.4703282292062328e-324", 1, false }, /* just above half of the smallest */
        { "2.4703282292062327e-324", 0, false },
        { "1e-400", 0, false },
        { "0e99999999999999999999", 0, false },
        { "1e-99999999999999999999", 0, false },
        { "0.00000000000000000000000000000000000001e38", 0x3ff0000000000000u, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_json_document *document = parse(cases[i].text);
        const sn_json *root = sn_json_root(document);
        CHECK(bits_of(root->number) == cases[i].bits && root->is_integer == cases[i].integer,
              "%s: %016llx", cases[i].text, (unsigned long long)bits_of(root->number));
        sn_json_free(document);
    }
    CHECK((float)number_of("1e-05") == 1e-05f && (float)number_of("4.1e-4") == 4.1e-4f, "floats");
    CHECK(number_of("Infinity") > 1e308 && number_of("-Infinity") < -1e308, "infinities");
    CHECK(number_of("NaN") != number_of("NaN"), "NaN");
}

/* Digits at random against the C library's strtod, which glibc rounds correctly. */
static void check_random_numbers(void) {
    check_random random = { 5 };
    char text[900];
    for (int i = 0; i < 4000; i++) {
        int n = 1 + (int)check_below(&random, i % 16 ? 25 : 800), at = 0;
        for (int j = 0; j < n; j++) text[at++] = (char)('0' + check_below(&random, 10));
        if (text[0] == '0') text[0] = '1';
        unsigned fraction = check_below(&random, 1000000);
        int exponent = (int)check_below(&random, 640) - 330 - n;
        snprintf(text + at, sizeof text - (size_t)at, ".%ue%d", fraction, exponent);
        double expected = strtod(text, NULL);
        if (expected > 1.7976931348623157e308) continue;
        CHECK(bits_of(number_of(text)) == bits_of(expected), "%.80s", text);
    }
}

/* Every double survives being written and read; half-way points go to even. */
static void check_round_trips(void) {
    check_random random = { 6 };
    for (int i = 0; i < 4000; i++) {
        double value = double_of(check_next(&random));
        char text[SN_DECIMAL_TEXT];
        if (value != value || value - value != 0) continue; /* NaN, infinity */
        sn_decimal_text(value, text);
        CHECK(bits_of(number_of(text)) == bits_of(value), "%s", text);
        CHECK(strlen(text) <= 24, "%s", text);
    }
}

static void check_written(void) {
    static const struct { double value; const char *text; } cases[] = {
        { 0, "0.0" }, { -0.0, "-0.0" }, { 2048, "2048.0" }, { 0.1, "0.1" }, { -1e-05, "-1e-05" },
        { 0.0001, "0.0001" }, { 0.00012345, "0.00012345" }, { 1e15, "1000000000000000.0" },
        { 1e16, "1e+16" }, { 123456789.125, "123456789.125" }, { 1.5e300, "1.5e+300" },
        { 5e-324, "5e-324" }, { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 0.30000000000000004, "0.30000000000000004" },
        { 9007199254740993.0, "9007199254740992.0" },
    };
    char text[SN_DECIMAL_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_decimal_text(cases[i].value, text);
        CHECK(strcmp(text, cases[i].text) == 0, "%s for %s", text, cases[i].text);
    }
    sn_decimal_text(double_of((uint64_t)0xfff << 52), text);
    CHECK(strcmp(text, "-inf") == 0, "%s", text);
    sn_decimal_text(double_of((uint64_t)0xfff8 << 48), text);
    CHECK(strcmp(text, "nan") == 0, "%s", text);
}

/* ---- what is refused ---------------------------------------------------------------- */

static void refuses(const char *text, size_t size, const char *reason) {
    sn_json_document *untouched = NULL;
    sn_status status = sn_json_parse(text, size, "t.json", false, &untouched);
    CHECK(status == SN_E_FORMAT && !untouched, "%.60s: status %d", text, (int)status);
    CHECK(strncmp(sn_last_error(), "t.json: JSON, line ", 19) == 0 &&
              strstr(sn_last_error(), reason), "%.60s: %s", text, sn_last_error());
    sn_json_free(untouched);
}

static void check_refused(void) {
    static const struct { const char *text, *reason; } cases[] = {
        { "", "line 1, column 1: a value is expected" },
        { " ", "column 2: a value is expected" },
        { "{", "member's name" },
        { "[", "a value is expected" },
        { "]", "a value is expected" },
        { "[1", "',' or ']' is expected" },
        { "[1,]", "column 4: a value is expected" },
        { "[,1]", "a value is expected" },
        { "[1 2]", "',' or ']' is expected" },
        { "[1}", "',' or ']' is expected" },
        { "{\"a\"}", "':' is expected" },
        { "{\"a\":}", "a value is expected" },
        { "{\"a\":1,}", "member's name" },
        { "{\"a\":1]", "',' or '}' is expected" },
        { "{a:1}", "member's name" },
        { "{1:1}", "member's name" },
        { "{\"a\":1,\n \"a\":2}", "line 2, column 7: an object with two members 'a'" },
        { "{\"a\":1,\"\\u0061\":2}", "two members 'a'" },
        { "[]x", "something follows" },
        { "1 2", "something follows" },
        { "nul", "a value is expected" },
        { "True", "a value is expected" },
        { "'a'", "a value is expected" },
        { "NaN", "NaN is no number" },
        { "-Infinity", "Infinity is no number" },
        { "01", "leading zeros" },
        { "-", "a value is expected" },
        { "+1", "a value is expected" },
        { ".5", "a value is expected" },
        { "1.", "ends in a dot" },
        { "1e", "an exponent without digits" },
        { "1e+", "an exponent without digits" },
        { "0x10", "something follows" },
        { "1e309", "too large for a double" },
        { "-1e99999999999999999999", "too large for a double" },
        { "\"a", "column 1: a string that does not end" },
        { "\"a\\", "an unknown escape" },
        { "\"\\x41\"", "an unknown escape" },
        { "\"\\u12g4\"", "four hexadecimal digits" },
        { "\"\\u12", "four hexadecimal digits" },
        { "\"\\ud800\"", "\\ud800 is half of a character" },
        { "\"\\udc00\"", "\\udc00 is half of a character" },
        { "\"\\ud800\\u0041\"", "\\ud800 is half of a character" },
        { "\"\\ud800\\ud800\"", "\\ud800 is half of a character" },
        { "\"a\nb\"", "a control character (10)" },
        { "\"\xff\"", "column 2: not UTF-8" },
        { "\"\xc0\x80\"", "not UTF-8" },
        { "\"\xed\xa0\x80\"", "not UTF-8" },
        { "\"\xe2\x82", "not UTF-8" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuses(cases[i].text, strlen(cases[i].text), cases[i].reason);
    refuses("[1]\0", 4, "something follows");
    refuses("\"a\0\"", 4, "a control character (0)");
    refuses("\0", 1, "a value is expected");
}

static void check_depth(void) {
    char text[2 * SN_JSON_MAX_DEPTH + 3];
    memset(text, '[', SN_JSON_MAX_DEPTH + 1);
    memset(text + SN_JSON_MAX_DEPTH + 1, ']', SN_JSON_MAX_DEPTH + 1);
    text[sizeof text - 1] = '\0';
    refuses(text, sizeof text - 1, "nested more than 128 deep");
    sn_json_document *document = NULL;
    CHECK(sn_json_parse(text + 1, 2 * SN_JSON_MAX_DEPTH, "t", false, &document) == SN_OK, "%s",
          sn_last_error());
    sn_json_free(document);
}

/* The last of many members, and too many values. */
static void check_many(void) {
    size_t n = SN_JSON_MAX_VALUES, size = 2 * n + 64, at = 1;
    char *text = malloc(size);
    if (!text) exit(2);
    text[0] = '{';
    for (int i = 0; i < 1000; i++) at += (size_t)sprintf(text + at, "\"k%d\":0,", i);
    at += (size_t)sprintf(text + at, "\"k7\":0}");
    refuses(text, at, "two members 'k7'");
    text[0] = '[';
    for (size_t i = 0; i < n; i++) memcpy(text + 1 + 2 * i, "0,", 2);
    text[2 * n] = ']';
    refuses(text, 2 * n + 1, "more than 4194304 values");
    free(text);
}

/* Whichever allocation fails: SN_E_NOMEM, and nothing stays behind. */
static void check_memory(void) {
    char text[600];
    size_t at = 0;
    text[at++] = '{';
    for (int i = 0; i < 40; i++) at += (size_t)sprintf(text + at, "\"k%d\":[1],", i);
    at += (size_t)sprintf(text + at, "\"k\":0}");
    sn_json_document *document = NULL;
    for (long n = 1; n < 100; n++) {
        sn_alloc_fail_at(n);
        sn_status status = sn_json_parse(text, at, "t", false, &document);
        sn_alloc_fail_at(0);
        if (status == SN_OK) {
            CHECK(n > 4, "only %ld allocations", n - 1);
            sn_json_free(document);
            return;
        }
        CHECK(status == SN_E_NOMEM && !document, "allocation %ld: status %d", n, (int)status);
    }
    CHECK(0, "never enough memory");
}

int main(void) {
    check_tree();
    check_texts();
    check_lookup(7);
    check_lookup(8);
    check_lookup(9);
    check_lookup(20000);
    check_numbers();
    check_random_numbers();
    check_round_trips();
    check_written();
    check_refused();
    check_depth();
    check_many();
    check_memory();
    return check_report("test_json");
}
