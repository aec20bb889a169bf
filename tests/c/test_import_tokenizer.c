/*
 * test_import_tokenizer FOLDER: tokenizer files become GGUF keys. Each case compares all keys, as
 * text: one line each, "tokenizer.ggml." left out, the elements of arrays separated by '|'. FOLDER
 * is for files; the hostile ones are tests/bad-tokenizer.test.mjs's.
 */
#include "import/lexicon.h"
#include "text/tokenizer.h"

#include "check.h"

#include <inttypes.h>
#include <sys/stat.h>

#define DUMP_BYTES 8192

static const char *folder;

/* ---- keys as text ------------------------------------------------------------------------- */

static void append(char *out, const char *text, size_t size) {
    size_t at = strlen(out);
    if (at + size >= DUMP_BYTES) size = DUMP_BYTES - 1 - at;
    memcpy(out + at, text, size);
    out[at + size] = '\0';
}

static void append_text(char *out, const char *text) {
    append(out, text, strlen(text));
}

static void append_element(char *out, const sn_gguf_value *value, sn_gguf_kind kind, uint64_t i) {
    char number[40];
    if (kind == SN_GGUF_STRING) {
        sn_span text = value->kind == SN_GGUF_ARRAY
            ? sn_gguf_string_at(value, i)
            : (sn_span){ .data = (const char *)value->data, .size = value->bytes };
        append(out, text.data, text.size);
        return;
    }
    sn_gguf_value array = *value;
    array.element = kind;
    if (kind == SN_GGUF_BOOL)
        snprintf(number, sizeof number, "%s", value->data[i] ? "true" : "false");
    else if (kind == SN_GGUF_F32)
        snprintf(number, sizeof number, "%g", sn_gguf_float_at(&array, i));
    else
        snprintf(number, sizeof number, "%" PRId64, sn_gguf_int_at(&array, i));
    append_text(out, number);
}

static void dump(const sn_gguf *gguf, char *out) {
    static const char prefix[] = "tokenizer.ggml.";
    out[0] = '\0';
    for (uint64_t i = 0; i < gguf->n_values; i++) {
        const sn_gguf_value *value = &gguf->values[i];
        size_t skip = sizeof prefix - 1;
        if (value->key.size < skip || memcmp(value->key.data, prefix, skip) != 0) skip = 0;
        append(out, value->key.data + skip, value->key.size - skip);
        append_text(out, " ");
        bool array = value->kind == SN_GGUF_ARRAY;
        for (uint64_t j = 0; j < value->count; j++) {
            if (j) append_text(out, "|");
            append_element(out, value, array ? value->element : value->kind, j);
        }
        append_text(out, "\n");
    }
}

/* Takes over the build. */
static sn_status read_back(sn_build *build, sn_gguf *gguf) {
    sn_input input;
    SN_TRY(sn_build_input(build, NULL, &input));
    return sn_gguf_read(&input, gguf);
}

static void compare(const char *title, sn_status status, sn_build *build, const char *expected) {
    static char found[DUMP_BYTES];
    sn_gguf gguf = { .version = 0 };
    CHECK(status == SN_OK, "%s: %s", title, sn_last_error());
    if (status != SN_OK) {
        sn_build_free(build);
        return;
    }
    status = read_back(build, &gguf);
    CHECK(status == SN_OK, "%s: %s", title, sn_last_error());
    if (status != SN_OK) return;
    dump(&gguf, found);
    CHECK(strcmp(found, expected) == 0, "%s:\n%s--- expected:\n%s", title, found, expected);
    sn_gguf_close(&gguf);
}

static sn_build *new_build(void) {
    sn_build *build = NULL;
    CHECK(sn_build_new("test", &build) == SN_OK, "%s", sn_last_error());
    return build;
}

static void imports(const char *title, const void *bytes, size_t size, uint64_t n_vocab,
                    const char *expected) {
    sn_build *build = new_build();
    sn_status status = sn_import_tokenizer_bytes("file", bytes, size, n_vocab, build);
    compare(title, status, build, expected);
}

static void imports_text(const char *title, const char *text, uint64_t n_vocab,
                         const char *expected) {
    imports(title, text, strlen(text), n_vocab, expected);
}

static void refuses(const char *title, const char *text, uint64_t n_vocab, const char *reason) {
    sn_build *build = new_build();
    sn_status status = sn_import_tokenizer_bytes("file", text, strlen(text), n_vocab, build);
    CHECK(status != SN_OK && strstr(sn_last_error(), reason), "%s: %s, not %s", title,
          status == SN_OK ? "no failure" : sn_last_error(), reason);
    sn_build_free(build);
}

/* ---- Hugging Face's tokenizer.json -------------------------------------------------------- */

/* The parts of a file; NULL is what a small byte-level tokenizer has. */
typedef struct parts {
    const char *added, *normalizer, *pre, *post, *decoder, *options, *vocab, *merges;
} parts;

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}"
#define MARK "\xe2\x96\x81"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}"
#define BACK "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" MARK "\"},\"content\":\" \"}"
#define STRIP "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}"
#define STEPS_BACK "{\"type\":\"Sequence\",\"decoders\":[" BACK ",{\"type\":\"ByteFallback\"}," \
                   "{\"type\":\"Fuse\"}," STRIP "]}"
#define STEPS_NEVER "{\"type\":\"Sequence\",\"decoders\":[" BACK ",{\"type\":\"ByteFallback\"}," \
                    "{\"type\":\"Fuse\"}]}"
#define PREPENDS "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" \
                 MARK "\"}," REPLACE "]}"
#define TOKEN(id, text, special, others) \
    "{\"id\":" id ",\"content\":\"" text "\",\"special\":" special "," others "}"
#define PLAIN "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false"

static const char *or_else(const char *text, const char *other) {
    return text ? text : other;
}

static const char *json_of(const parts *p) {
    static char text[DUMP_BYTES];
    snprintf(text, sizeof text, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,"
             "\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,"
             "\"decoder\":%s,\"model\":{\"type\":\"BPE\"%s,\"vocab\":{%s},\"merges\":[%s]}}",
             or_else(p->added, ""), or_else(p->normalizer, "null"), or_else(p->pre, BYTE_LEVEL),
             or_else(p->post, "null"), or_else(p->decoder, BYTE_LEVEL), or_else(p->options, ""),
             or_else(p->vocab, "\"a\":0,\"b\":1,\"ab\":2"), or_else(p->merges, "\"a b\""));
    return text;
}

/* What comes in front of the merges of a byte-level tokenizer, and behind. */
#define BYTES_HEAD(pre) "sunnynet.tokenizer.ignore_merges false\npre " pre "\n"
#define SMALL_TOKENS "tokens a|b|ab\ntoken_type 1|1|1\n"
#define BYTES_TAIL "add_bos_token false\nmodel gpt2\n"
#define SMALL BYTES_HEAD("gpt-2") "merges a b\n" SMALL_TOKENS BYTES_TAIL

static void test_byte_level(void) {
    imports_text("byte level", json_of(&(parts){ .added = NULL }), 0, SMALL);
    imports_text("pairs", json_of(&(parts){ .merges = "[\"a\",\"b\"]" }), 0, SMALL);
    imports_text("a line of merges.txt", json_of(&(parts){ .merges = "\"#version: 0.2\",\"a b\"" }),
                 0, SMALL);
    imports_text("no type", "{\"pre_tokenizer\":" BYTE_LEVEL ",\"decoder\":" BYTE_LEVEL ","
                 "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}", 0,
                 SMALL);
    /* tokenizers 0.23.3: of equal merges the last one counts ("abc" is then a bc). */
    imports_text("a merge twice", json_of(&(parts){
        .vocab = "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4",
        .merges = "\"a b\",\"b c\",\"a b\"" }), 0, BYTES_HEAD("gpt-2")
        "merges b c|a b\ntokens a|b|c|ab|bc\ntoken_type 1|1|1|1|1\n" BYTES_TAIL);
    imports_text("a space in front, form C", json_of(&(parts){
        .normalizer = "{\"type\":\"NFC\"}",
        .pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}" }), 0,
        "sunnynet.tokenizer.ignore_merges false\nadd_space_prefix true\npre gpt-2\n"
        "sunnynet.tokenizer.normalizer nfc\nmerges a b\n" SMALL_TOKENS BYTES_TAIL);
    imports_text("ignore_merges", json_of(&(parts){ .options = ",\"ignore_merges\":true" }), 0,
                 "sunnynet.tokenizer.ignore_merges true\npre gpt-2\nmerges a b\n" SMALL_TOKENS
                 BYTES_TAIL);
}

#define SEQUENCE(first) "{\"type\":\"Sequence\",\"pretokenizers\":[" first "," BYTE_LEVEL "]}"
#define SPLIT(regex) "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":" \
                     "{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}," \
                     "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}"
#define NEWER_TAIL "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|" \
                   "\\\\s+(?!\\\\S)|\\\\s+"
#define NEWER_HEAD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"

static void test_splits(void) {
    static const struct {
        const char *pre, *expected;
    } cases[] = {
        { SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}"),
          BYTES_HEAD("starcoder") "merges a b\n" SMALL_TOKENS BYTES_TAIL },
        { SPLIT(NEWER_HEAD "\\\\p{N}{1,3}" NEWER_TAIL),
          BYTES_HEAD("llama-bpe") "merges a b\n" SMALL_TOKENS BYTES_TAIL },
        { SPLIT(NEWER_HEAD "\\\\p{N}" NEWER_TAIL),
          BYTES_HEAD("qwen2") "merges a b\n" SMALL_TOKENS BYTES_TAIL },
        { SPLIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|"
                "\\\\s+(?!\\\\S)|\\\\s+"), SMALL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        imports_text(cases[i].pre, json_of(&(parts){ .pre = cases[i].pre }), 0, cases[i].expected);
}

static void test_added(void) {
    imports_text("the types say it all", json_of(&(parts){
        .added = TOKEN("3", "<s>", "true", PLAIN) "," TOKEN("0", "a", "false", PLAIN) }), 0,
        BYTES_HEAD("gpt-2") "merges a b\ntokens a|b|ab|<s>\ntoken_type 4|1|1|3\n" BYTES_TAIL);
    imports_text("flags", json_of(&(parts){
        .added = TOKEN("2", "ab", "true", "\"single_word\":true,\"lstrip\":false,\"rstrip\":true,"
                       "\"normalized\":false") ","
                 TOKEN("4", "  ", "false", "\"single_word\":false,\"lstrip\":true,"
                       "\"rstrip\":false,\"normalized\":true") }), 0,
        "sunnynet.tokenizer.added_ids 2|4\nsunnynet.tokenizer.added_flags 25|6\n"
        BYTES_HEAD("gpt-2") "merges a b\ntokens a|b|ab|[PAD3]|  \ntoken_type 1|1|3|5|4\n"
        BYTES_TAIL);
    imports_text("padding", json_of(&(parts){ .added = NULL }), 5, BYTES_HEAD("gpt-2")
        "merges a b\ntokens a|b|ab|[PAD3]|[PAD4]\ntoken_type 1|1|1|5|5\n" BYTES_TAIL);
    imports_text("padding beside a token that looks like it", json_of(&(parts){
        .added = TOKEN("3", "[PAD4]", "true", PLAIN) "," TOKEN("6", "[PAD]", "true", PLAIN) }), 0,
        BYTES_HEAD("gpt-2") "merges a b\ntokens a|b|ab|[PAD4]|[[PAD4]|[[PAD5]|[PAD]\n"
        "token_type 1|1|1|3|5|5|3\n" BYTES_TAIL);
    refuses("more ids than rows", json_of(&(parts){ .added = TOKEN("5", "x", "true", PLAIN) }), 5,
            "a token has id 5, but the model has 5 embedding rows");
}

#define SPECIAL(text) "{\"SpecialToken\":{\"id\":\"" text "\",\"type_id\":0}}"
#define TEXT_A "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define ENDS(single) "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[]," \
                     "\"special_tokens\":{\"a\":{\"id\":\"a\",\"ids\":[0],\"tokens\":[\"a\"]}," \
                     "\"b\":{\"id\":\"b\",\"ids\":[1],\"tokens\":[\"b\"]}}}"
#define HEAD_MERGES BYTES_HEAD("gpt-2") "merges a b\n" SMALL_TOKENS

static void test_templates(void) {
    imports_text("both ends", json_of(&(parts){
        .post = ENDS(SPECIAL("a") "," TEXT_A "," SPECIAL("b")) }), 0, HEAD_MERGES
        "bos_token_id 0\neos_token_id 1\nadd_bos_token true\nadd_eos_token true\nmodel gpt2\n");
    imports_text("the front, in a Sequence", json_of(&(parts){
        .post = "{\"type\":\"Sequence\",\"processors\":[" BYTE_LEVEL "," ENDS(SPECIAL("b") ","
        TEXT_A) "]}" }), 0,
        HEAD_MERGES "bos_token_id 1\nadd_bos_token true\nadd_eos_token false\nmodel gpt2\n");
    imports_text("neither", json_of(&(parts){ .post = ENDS(TEXT_A) }), 0, HEAD_MERGES
                 "add_bos_token false\nadd_eos_token false\nmodel gpt2\n");
}

/* ---- SentencePiece's kind in tokenizer.json ----------------------------------------------- */

#define PIECES_VOCAB "\"<unk>\":0,\"" MARK "\":1,\"a\":2,\"" MARK "a\":3,\"<0x0A>\":4"
#define PIECES_OPTIONS ",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true"
#define PIECES_LISTS "merges " MARK " a\ntokens <unk>|" MARK "|a|" MARK "a|<0x0A>\n" \
                     "token_type 1|1|1|1|6\n"
#define PIECES_TAIL "bos_token_id 4294967295\neos_token_id 4294967295\nunknown_token_id 0\n" \
                    "add_bos_token false\nmodel llama\n"
#define METASPACE(options) "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\"," options "}"

static const char *pieces(const char *normalizer, const char *pre, const char *decoder) {
    return json_of(&(parts){ .normalizer = normalizer, .pre = pre, .decoder = decoder,
                             .options = PIECES_OPTIONS, .vocab = PIECES_VOCAB,
                             .merges = "\"" MARK " a\"" });
}

static void test_pieces(void) {
    const char *each = "add_space_prefix true\n" PIECES_LISTS PIECES_TAIL;
    const char *never = "add_space_prefix false\n" PIECES_LISTS PIECES_TAIL;
    const char *always = "sunnynet.tokenizer.prepend always\nadd_space_prefix true\n" PIECES_LISTS
                         PIECES_TAIL;
    const char *first = "sunnynet.tokenizer.prepend first\nadd_space_prefix true\n" PIECES_LISTS
                        PIECES_TAIL;
    imports_text("Prepend", pieces(PREPENDS, "null", STEPS_BACK), 0, each);
    imports_text("Replace alone", pieces(REPLACE, "null", STEPS_NEVER), 0, never);
    imports_text("always", pieces(NULL, METASPACE("\"prepend_scheme\":\"always\",\"split\":false"),
                                  STEPS_BACK), 0, always);
    imports_text("always, older", pieces(NULL, METASPACE("\"add_prefix_space\":true"), STEPS_BACK),
                 0, always);
    imports_text("always, oldest", pieces(NULL, METASPACE("\"str_rep\":\"" MARK "\","
                 "\"add_prefix_space\":true"), STEPS_BACK), 0, always);
    imports_text("first", pieces(NULL, METASPACE("\"prepend_scheme\":\"first\",\"split\":false"),
                                 STEPS_BACK), 0, first);
    imports_text("never", pieces(NULL, METASPACE("\"prepend_scheme\":\"never\",\"split\":true"),
                                 STEPS_NEVER), 0, never);
    imports_text("never, older", pieces(NULL, METASPACE("\"add_prefix_space\":false"),
                                        STEPS_NEVER), 0, never);
    imports_text("a decoder of the same name", json_of(&(parts){
        .pre = METASPACE("\"prepend_scheme\":\"always\""),
        .decoder = METASPACE("\"prepend_scheme\":\"always\""),
        .options = ",\"unk_token\":\"<unk>\",\"fuse_unk\":true",
        .vocab = "\"<unk>\":0,\"" MARK "\":1", .merges = "" }), 0,
        "sunnynet.tokenizer.prepend always\nadd_space_prefix true\nmerges \n"
        "tokens <unk>|" MARK "\ntoken_type 1|1\n" PIECES_TAIL);
}

/* ---- SunnyNet's --------------------------------------------------------------------------- */

#define SUNNYNET(vocab, merges, names) "{\"vocab\":{\"<pad>\":0,\"<unk>\":1,\"<bos>\":2,\"<eos>\"" \
    ":3," vocab "},\"merges\":[" merges "],\"merge_tokens\":[" names "]}"
#define SUNNYNET_TAIL "bos_token_id 2\neos_token_id 3\nunknown_token_id 1\npadding_token_id 0\n" \
                      "model sunnynet\n"

static void test_sunnynet(void) {
    imports_text("SunnyNet", SUNNYNET("\"a\":4,\"\xe4\xbd\xa0\":5,\"<m6>\":6,\"<m7>\":7",
                                      "[4,5],[6,4]", "\"<m6>\",\"<m7>\""), 9,
        "sunnynet.tokenizer.merges 4|5|6|6|4|7\n"
        "tokens <pad>|<unk>|<bos>|<eos>|a|\xe4\xbd\xa0|a\xe4\xbd\xa0|a\xe4\xbd\xa0" "a|[PAD8]\n"
        "token_type 3|3|3|3|1|1|1|1|5\n" SUNNYNET_TAIL);
    /* The package's dictionary of ranks keeps the last one; the first one's id is then not made. */
    imports_text("a pair twice", SUNNYNET("\"a\":4,\"<m5>\":5,\"<m6>\":6", "[4,4],[4,4]",
                                          "\"<m5>\",\"<m6>\""), 0,
        "sunnynet.tokenizer.merges 4|4|6\ntokens <pad>|<unk>|<bos>|<eos>|a|aa|aa\n"
        "token_type 3|3|3|3|1|1|1\n" SUNNYNET_TAIL);
}

/* ---- RWKV's ------------------------------------------------------------------------------- */

static const char world[] = "1 '\\x00' 1\n2 '\\n' 1\n3 \"'\" 1\n4 '\"' 1\n5 '\\'\"' 2\n6 '\\\\' 1\n"
                            "8 b'\\xe4\\xbd' 2\n9 '\xe4\xbd\xa0' 3\n10 '\\n\\n' 2\n11 ' a b' 4\n";

/* Escaped as Python prints bytes, which decides between quotes by what is inside. */
static void test_world(void) {
    imports_text("RWKV", world, 13,
        "tokens <s>|\\x00|\\n|'|\"|\\'\"|\\\\|[PAD7]|\\xe4\\xbd|\\xe4\\xbd\\xa0|\\n\\n| a b|"
        "[PAD12]\ntoken_type 3|1|1|1|1|1|1|5|1|1|1|1|5\nbos_token_id 0\neos_token_id 0\n"
        "eot_token_id 10\nmodel rwkv\n");
}

/* Read back, every id has the bytes that the file gives it. */
static void test_world_tokens(void) {
    static const char *const texts[] = { "", "\0", "\n", "'", "\"", "'\"", "\\", "", "\xe4\xbd",
                                         "\xe4\xbd\xa0", "\n\n", " a b" };
    static const size_t sizes[] = { 0, 1, 1, 1, 1, 2, 1, 0, 2, 3, 2, 4 };
    sn_build *build = new_build();
    sn_gguf gguf = { .version = 0 };
    sn_tokenizer *tokenizer = NULL;
    sn_status status = sn_import_tokenizer_bytes("file", world, sizeof world - 1, 0, build);
    if (status == SN_OK) status = read_back(build, &gguf);
    if (status == SN_OK) status = sn_tokenizer_from_gguf(&gguf, &tokenizer);
    CHECK(status == SN_OK && sn_tokenizer_vocab(tokenizer) == 12, "%s", sn_last_error());
    for (int32_t id = 0; status == SN_OK && id < 12; id++) {
        const char *bytes;
        size_t n;
        sn_tokenizer_token(tokenizer, id, &bytes, &n);
        CHECK(n == sizes[id] && memcmp(bytes, texts[id], n) == 0, "id %d", (int)id);
    }
    sn_tokenizer_destroy(tokenizer);
    sn_gguf_close(&gguf);
}

/* ---- tokenizer.model ---------------------------------------------------------------------- */

typedef struct protobuf {
    uint8_t bytes[1024];
    size_t n;
} protobuf;

static void put_byte(protobuf *p, unsigned byte) {
    p->bytes[p->n++] = (uint8_t)byte;
}

static void put_number(protobuf *p, unsigned field, uint64_t value) {
    if (field > 15) {
        put_byte(p, (field << 3 & 0x7f) | 0x80);
        put_byte(p, field >> 4);
    } else {
        put_byte(p, field << 3);
    }
    for (; value > 0x7f; value >>= 7) put_byte(p, (unsigned)(value & 0x7f) | 0x80);
    put_byte(p, (unsigned)value);
}

static void put_bytes(protobuf *p, unsigned field, const void *bytes, size_t n) {
    put_byte(p, field << 3 | 2);
    put_byte(p, (unsigned)n); /* below 128 */
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}

static void put_piece(protobuf *p, const char *text, float score, unsigned type) {
    protobuf piece = { .n = 0 };
    uint32_t bits;
    memcpy(&bits, &score, 4);
    put_bytes(&piece, 1, text, strlen(text));
    put_byte(&piece, 2 << 3 | 5);
    for (int i = 0; i < 4; i++) put_byte(&piece, bits >> (8 * i) & 0xff);
    if (type != 1) put_number(&piece, 3, type);
    put_bytes(p, 1, piece.bytes, piece.n);
}

static protobuf sentencepiece(int64_t bos, int64_t pad, bool add_space) {
    protobuf p = { .n = 0 }, trainer = { .n = 0 }, normalizer = { .n = 0 };
    put_piece(&p, "<unk>", 0, 2);
    put_piece(&p, "<s>", 0, 3);
    put_piece(&p, "</s>", 0, 3);
    put_piece(&p, "<x>", 0, 4);
    put_piece(&p, MARK "a", -0.5f, 1);
    put_piece(&p, "a", -1e9f, 1);
    put_number(&trainer, 3, 2);
    put_number(&trainer, 41, (uint64_t)bos);
    put_number(&trainer, 42, 2);
    put_number(&trainer, 43, (uint64_t)pad);
    put_bytes(&p, 2, trainer.bytes, trainer.n);
    put_bytes(&normalizer, 1, "identity", 8);
    put_bytes(&normalizer, 2, "", 0);
    put_number(&normalizer, 3, add_space);
    put_number(&normalizer, 4, 0);
    put_bytes(&p, 3, normalizer.bytes, normalizer.n);
    return p;
}

#define MODEL_LISTS "tokens <unk>|<s>|</s>|<x>|" MARK "a|a"

static void test_sentencepiece(void) {
    protobuf p = sentencepiece(1, -1, true);
    imports("tokenizer.model", p.bytes, p.n, 7, "add_space_prefix true\n"
            "scores 0|0|0|0|-0.5|-1e+09|-10000\n" MODEL_LISTS "|[PAD6]\n"
            "token_type 2|3|3|4|1|1|5\nbos_token_id 1\neos_token_id 2\nunknown_token_id 0\n"
            "model llama\n");
    p = sentencepiece(-1, 3, false);
    imports("without bos", p.bytes, p.n, 0, "add_space_prefix false\n"
            "scores 0|0|0|0|-0.5|-1e+09\n" MODEL_LISTS "\ntoken_type 2|3|3|4|1|1\n"
            "bos_token_id 4294967295\neos_token_id 2\nunknown_token_id 0\npadding_token_id 3\n"
            "add_bos_token false\nmodel llama\n");
}

/* ---- folders ------------------------------------------------------------------------------ */

/* One text file; NULL: it is removed. */
static void put_file(const char *name, const void *bytes, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!bytes) {
        remove(path);
        return;
    }
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size, "cannot write %s", path);
    if (file) fclose(file);
}

static void put_text_file(const char *name, const char *text) {
    put_file(name, text, text ? strlen(text) : 0);
}

typedef struct configs {
    const char *tokenizer, *special, *generation, *config, *jinja;
} configs;

static sn_status import_folder(const configs *c, sn_build *build, bool *found) {
    sn_json_document *config = NULL;
    put_text_file("tokenizer_config.json", c->tokenizer);
    put_text_file("special_tokens_map.json", c->special);
    put_text_file("generation_config.json", c->generation);
    put_text_file("chat_template.jinja", c->jinja);
    if (c->config) sn_json_parse(c->config, strlen(c->config), "config", true, &config);
    sn_status status = sn_import_tokenizer(folder, 0, config ? sn_json_root(config) : NULL, build,
                                           found);
    sn_json_free(config);
    return status;
}

static void folder_gives(const char *title, const configs *c, const char *expected) {
    sn_build *build = new_build();
    bool found = false;
    sn_status status = import_folder(c, build, &found);
    CHECK(found, "%s: %s", title, sn_last_error());
    compare(title, status, build, expected);
}

static void folder_refuses(const char *title, const configs *c, const char *reason) {
    sn_build *build = new_build();
    bool found = false;
    sn_status status = import_folder(c, build, &found);
    CHECK(status != SN_OK && !found && strstr(sn_last_error(), reason), "%s: %s, not %s", title,
          status == SN_OK ? "no failure" : sn_last_error(), reason);
    sn_build_free(build);
}

/* ids 0 and 1 are special, 2 and 3 are not */
#define TWO_SPECIALS BYTES_HEAD("gpt-2") "merges \ntokens a|b|c|d\ntoken_type 3|3|1|1\n"

static void test_roles(void) {
    put_text_file("tokenizer.json", json_of(&(parts){
        .vocab = "\"a\":0,\"b\":1,\"c\":2,\"d\":3", .merges = "",
        .added = TOKEN("0", "a", "true", PLAIN) "," TOKEN("1", "b", "true", PLAIN) }));
    folder_gives("no configs", &(configs){ .tokenizer = NULL }, TWO_SPECIALS BYTES_TAIL);
    folder_gives("texts and objects", &(configs){
        .tokenizer = "{\"bos_token\":\"a\",\"eos_token\":{\"content\":\"b\",\"lstrip\":false},"
                     "\"pad_token\":\"nowhere\",\"unk_token\":null,\"add_bos_token\":true,"
                     "\"model_max_length\":1000000000000000019884624838656}" },
        TWO_SPECIALS "bos_token_id 0\neos_token_id 1\nadd_bos_token true\nmodel gpt2\n");
    folder_gives("the older map", &(configs){
        .tokenizer = "{\"eos_token\":\"b\"}",
        .special = "{\"bos_token\":\"a\",\"eos_token\":\"a\",\"unk_token\":\"a\","
                   "\"pad_token\":{\"content\":\"b\"}}" },
        TWO_SPECIALS "bos_token_id 0\neos_token_id 1\nunknown_token_id 0\npadding_token_id 1\n"
        BYTES_TAIL);
    folder_gives("numbers", &(configs){
        .config = "{\"bos_token_id\":0,\"eos_token_id\":1,\"pad_token_id\":-1}" },
        TWO_SPECIALS "bos_token_id 0\neos_token_id 1\n" BYTES_TAIL);
    folder_refuses("no such token", &(configs){ .tokenizer = "{\"eos_token\":\"nowhere\"}" },
                   "eos_token is 'nowhere', which the tokenizer does not have");
    folder_refuses("nothing to add", &(configs){ .tokenizer = "{\"add_bos_token\":true}" },
                   "the bos token is to be added to a text, but there is none");
}

static void test_stops(void) {
    const char *both = TWO_SPECIALS "eos_token_id 0\neot_token_id 1\n" BYTES_TAIL;
    folder_gives("a list", &(configs){ .generation = "{\"eos_token_id\":[0,1]}" }, both);
    folder_gives("generation before config", &(configs){
        .generation = "{\"eos_token_id\":[0,0,1]}", .config = "{\"eos_token_id\":1}" }, both);
    folder_gives("the tokenizer's ends a turn", &(configs){
        .tokenizer = "{\"eos_token\":\"b\"}", .generation = "{\"eos_token_id\":0}" }, both);
    folder_gives("leftovers", &(configs){
        .tokenizer = "{\"eos_token\":\"b\"}", .config = "{\"eos_token_id\":2,\"bos_token_id\":3}" },
        TWO_SPECIALS "eos_token_id 1\n" BYTES_TAIL);
    folder_gives("leftovers out of range", &(configs){
        .tokenizer = "{\"eos_token\":\"b\"}", .config = "{\"eos_token_id\":50256}" },
        TWO_SPECIALS "eos_token_id 1\n" BYTES_TAIL);
    folder_gives("all there is", &(configs){ .config = "{\"eos_token_id\":2}" },
                 TWO_SPECIALS "eos_token_id 2\n" BYTES_TAIL);
    folder_refuses("out of range", &(configs){ .config = "{\"eos_token_id\":50256}" },
                   "eos_token_id of the configuration beside it is 50256");
}

static void test_chat_templates(void) {
    const configs cases[] = {
        { .tokenizer = "{\"chat_template\":\"one\"}" },
        { .tokenizer = "{\"chat_template\":[{\"name\":\"tools\",\"template\":\"two\"},"
                       "{\"name\":\"default\",\"template\":\"one\"}]}" },
        { .tokenizer = "{\"chat_template\":\"two\"}", .jinja = "one" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        folder_gives("a template", &cases[i], BYTES_HEAD("gpt-2") "merges \n"
                     "tokenizer.chat_template one\ntokens a|b|c|d\ntoken_type 3|3|1|1\n"
                     BYTES_TAIL);
    folder_gives("no default", &(configs){ .tokenizer = "{\"chat_template\":[]}" },
                 TWO_SPECIALS BYTES_TAIL);
}

static void test_conflicts(void) {
    put_text_file("tokenizer.json", json_of(&(parts){
        .post = ENDS(SPECIAL("a") "," TEXT_A) }));
    folder_gives("agreed", &(configs){ .tokenizer = "{\"bos_token\":\"a\"}" }, HEAD_MERGES
                 "bos_token_id 0\nadd_bos_token true\nadd_eos_token false\nmodel gpt2\n");
    folder_gives("switched off", &(configs){
        .tokenizer = "{\"bos_token\":\"b\",\"add_bos_token\":false}" }, HEAD_MERGES
        "bos_token_id 1\nadd_bos_token false\nadd_eos_token false\nmodel gpt2\n");
    folder_refuses("contradicted", &(configs){ .tokenizer = "{\"bos_token\":\"b\"}" },
                   "token 0 is put at one end of a text, but the bos token is token 1");
}

/* Which file counts where several lie. */
static void test_choice(void) {
    const configs none = { .tokenizer = NULL };
    protobuf p = sentencepiece(1, -1, true);
    const char *model = "add_space_prefix true\nscores 0|0|0|0|-0.5|-1e+09\n" MODEL_LISTS
        "\ntoken_type 2|3|3|4|1|1\nbos_token_id 1\neos_token_id 2\nunknown_token_id 0\n"
        "model llama\n";
    const char *old = "tokens <s>|o\ntoken_type 3|1\nbos_token_id 0\neos_token_id 0\nmodel rwkv\n";
    const char *last = "tokens <s>|n\ntoken_type 3|1\nbos_token_id 0\neos_token_id 0\n"
                       "model rwkv\n";
    put_text_file("tokenizer.json", json_of(&(parts){ .added = NULL }));
    put_file("tokenizer.model", p.bytes, p.n);
    put_text_file("rwkv_vocab_v2022.txt", "1 'o' 1\n");
    put_text_file("rwkv_vocab_v2023.txt", "1 'n' 1\n");
    folder_gives("all of them", &none, SMALL);
    put_text_file("tokenizer.json", NULL);
    folder_gives("no JSON", &none, model);
    folder_refuses("tokens added later", &(configs){
        .tokenizer = "{\"added_tokens_decoder\":{\"0\":{\"content\":\"<unk>\"},\"6\":{}}}" },
        "token 6 was added to the tokenizer later");
    put_text_file("tokenizer.model", NULL);
    folder_gives("two vocabularies", &none, last);
    put_text_file("rwkv_vocab_v2023.txt", NULL);
    folder_gives("one vocabulary", &none, old);
    put_text_file("rwkv_vocab_v2022.txt", NULL);
    sn_build *build = new_build();
    bool found = true;
    CHECK(import_folder(&none, build, &found) == SN_OK && !found, "%s", sn_last_error());
    sn_build_free(build);
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Whichever allocation fails: an error, no crash, nothing lost (the sanitizers look). */
static void survives(const char *title, const void *bytes, size_t size) {
    sn_status status = SN_E_NOMEM;
    for (long n = 1; status != SN_OK; n++) {
        sn_build *build = new_build();
        sn_alloc_fail_at(n);
        status = sn_import_tokenizer_bytes("file", bytes, size, 0, build);
        sn_alloc_fail_at(0);
        CHECK(status == SN_OK || status == SN_E_NOMEM, "%s, allocation %ld: %s", title, n,
              sn_last_error());
        sn_build_free(build);
        if (status != SN_E_NOMEM) break;
    }
}

static void test_no_memory(void) {
    const char *json = json_of(&(parts){ .added = TOKEN("3", "x", "false", PLAIN),
                                         .merges = "[\"a\",\"b\"]" });
    protobuf p = sentencepiece(1, -1, true);
    const char *sunnynet = SUNNYNET("\"a\":4,\"<m5>\":5", "[4,4]", "\"<m5>\"");
    survives("tokenizer.json", json, strlen(json));
    survives("tokenizer.model", p.bytes, p.n);
    survives("SunnyNet", sunnynet, strlen(sunnynet));
    survives("RWKV", world, sizeof world - 1);
}

int main(int argc, char **argv) {
    static char path[1000];
    if (argc < 2) {
        fprintf(stderr, "usage: test_import_tokenizer FOLDER\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/import-tokenizer", argv[1]);
    mkdir(path, 0777);
    folder = path;
    test_byte_level();
    test_splits();
    test_added();
    test_templates();
    test_pieces();
    test_sunnynet();
    test_world();
    test_world_tokens();
    test_sentencepiece();
    test_roles();
    test_stops();
    test_chat_templates();
    test_conflicts();
    test_choice();
    test_no_memory();
    return check_report("test_import_tokenizer");
}
