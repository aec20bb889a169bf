/*
 * split.h: cuts a text into the pieces that byte-level encodings merge within. What the models
 * state as regular expressions is here done by hand, code point by code point; split.c has the
 * expressions beside the code.
 */
#ifndef SN_TEXT_SPLIT_H
#define SN_TEXT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sn_split_rule {
    SN_SPLIT_GPT2,    /* the first of them, and GPT-NeoX's */
    SN_SPLIT_DIGITS,  /* every digit alone, the rest as GPT-2 */
    SN_SPLIT_LLAMA3,  /* cl100k's descendants: up to three digits, any case of 's, line ends */
    SN_SPLIT_QWEN2,   /* the same, every digit alone */
    SN_SPLIT_QWEN35,  /* the same, marks count as letters */
    SN_SPLIT_FALCON,  /* punctuation first, then GPT-2, digits by three */
    SN_SPLIT_OLD      /* the same, numbers without the space before them */
} sn_split_rule;

/* A pre-tokenizer as GGUF files name it. */
typedef struct sn_split_name {
    const char *name; /* tokenizer.ggml.pre */
    sn_split_rule rule;
    bool ignore_merges, add_bos; /* what the name stands for beside the rule */
} sn_split_name;

/* NULL if the name is not known. */
const sn_split_name *sn_split_find(const char *name, size_t length);

typedef struct sn_splitter {
    sn_split_rule rule;
    const uint8_t *text;
    size_t bytes;
    size_t at;           /* the next piece begins here */
    size_t region, word, part; /* ends of what the first steps of a rule have cut out */
} sn_splitter;

static inline sn_splitter sn_split(sn_split_rule rule, const uint8_t *text, size_t bytes) {
    return (sn_splitter){ .rule = rule, .text = text, .bytes = bytes };
}

/* The next piece text[*start, *end), never empty; false after the last one. Bytes that are no
 * UTF-8 count as characters that are neither letters, numbers nor spaces. */
bool sn_split_next(sn_splitter *splitter, size_t *start, size_t *end);

#endif
