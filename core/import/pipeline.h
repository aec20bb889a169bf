/*
 * pipeline.h: what surrounds the model of a Hugging Face tokenizer.json: normalizer,
 * pre_tokenizer, post_processor and decoder, reduced to the few ways that this library's
 * tokenizers go. Everything else is refused by name.
 */
#ifndef SN_IMPORT_PIPELINE_H
#define SN_IMPORT_PIPELINE_H

#include "lexicon.h"

typedef struct sn_pipeline {
    bool byte_level;      /* else SentencePiece's kind */
    const char *pre;      /* byte level: which split, as tokenizer.ggml.pre names it */
    bool nfc;
    bool add_space;       /* a space is put in front */
    const char *prepend;  /* SentencePiece's kind: sunnynet.tokenizer.prepend, NULL for none */
    bool splits;          /* SentencePiece's kind: a piece ends before each space */
    bool decodes_bytes;   /* SentencePiece's kind: tokens such as <0x0A> become bytes */
    bool strips_all;      /* decoding takes every space out of the first token, not only one */
    int64_t front, end;   /* ids put around a text; -1: none */
    bool has_template;    /* the file says what is put around a text, be it nothing */
} sn_pipeline;

/* `root` is the whole tokenizer.json, `name` the file. */
sn_status sn_pipeline_read(const sn_json *root, const char *name, sn_pipeline *pipeline);

#endif
