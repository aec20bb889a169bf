/*
 * small_tokenizers.h: the keys of small tokenizers, one of each kind that merges.
 */
#ifndef SN_TESTS_SMALL_TOKENIZERS_H
#define SN_TESTS_SMALL_TOKENIZERS_H

#include "gguf_bytes.h"

#include "text/utf8.h"

static gguf_bytes g;

/* ---- gpt2 --------------------------------------------------------------------------- */

/* A byte as a character that can be seen. */
static inline size_t spell(unsigned byte, char *out) {
    unsigned next = 256;
    for (unsigned b = 0; b < byte; b++)
        if (b < 33 || (b > 126 && b < 161) || b == 173) next++;
    bool hidden = byte < 33 || (byte > 126 && byte < 161) || byte == 173;
    return sn_utf8_put(hidden ? next : byte, (uint8_t *)out);
}

/* Id b is byte b, the tokens follow. */
static inline void put_byte_tokens(const char *const *tokens, size_t n) {
    put_array(&g, "tokenizer.ggml.tokens", SN_GGUF_STRING, 256 + n);
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[4];
        put_string(&g, text, spell(byte, text));
    }
    for (size_t i = 0; i < n; i++) put_string(&g, tokens[i], strlen(tokens[i]));
}

static inline void put_byte_types(const char *digits) {
    put_array(&g, "tokenizer.ggml.token_type", SN_GGUF_I32, 256 + strlen(digits));
    for (int i = 0; i < 256; i++) put(&g, 1, 4);
    for (; *digits; digits++) put(&g, (uint64_t)(*digits - '0'), 4);
}

static const char *const byte_words[] = { "ab", "abc", "<s>", "</s>", "<user>", "\304\240a",
                                    "[PAD262]", "bc" };
static const char *const merges[] = { "a b", "ab c", "\xc4\xa0 a", "b c" };

static inline void small_gpt2(void) {
    begin(&g, "gpt2");
    put_text(&g, "tokenizer.ggml.pre", "gpt-2");
    put_byte_tokens(byte_words, 8);
    put_byte_types("11334151");
    put_list(&g, "tokenizer.ggml.merges", merges, 4);
    put_id(&g, "tokenizer.ggml.bos_token_id", 258);
    put_id(&g, "tokenizer.ggml.eos_token_id", 259);
    put_flag(&g, "tokenizer.ggml.add_bos_token", true);
    put_flag(&g, "tokenizer.ggml.add_eos_token", true);
}

/* ---- llama -------------------------------------------------------------------------- */

#define MARK "\xe2\x96\x81"

static const char *const pieces[] = { "<unk>", "<s>", "</s>", "<0xE4>", "<0xBD>", "<0xA0>", MARK,
                                      "a", "b", "ab", "\342\226\201a", "<t>", "\xc3\xa9",
                                      "<0x0A>" };

static inline void small_llama(bool ranked) {
    static const char *const ranks[] = { "a b", "\342\226\201 a" };
    static const float scores[] = { 0, 0, 0, 0, 0, 0, -9, -9, -9, -1, -2, 0, -9, 0 };
    begin(&g, "llama");
    put_texts(&g, pieces, 14);
    put_types(&g, "23366611111416");
    if (ranked) {
        put_list(&g, "tokenizer.ggml.merges", ranks, 2);
        return;
    }
    put_array(&g, "tokenizer.ggml.scores", SN_GGUF_F32, 14);
    for (int i = 0; i < 14; i++) {
        uint32_t bits;
        memcpy(&bits, &scores[i], 4);
        put(&g, bits, 4);
    }
}

/* ---- sunnynet ----------------------------------------------------------------------- */

static const char *const characters[] = { "<pad>", "<unk>", "<bos>", "<eos>", "a", "b", "1",
                                          "ab", "aba", "\xe4\xbd\xa0", "1a", " " };

static inline void small_sunnynet(const uint32_t *triples, size_t n) {
    begin(&g, "sunnynet");
    put_texts(&g, characters, 12);
    put_types(&g, "333311111111");
    put_numbers(&g, "sunnynet.tokenizer.merges", triples, n);
}

#endif
