/*
 * unicode.h: what kind of character a code point is, as the package `tokenizers` has it. Its parts
 * were built with different versions of Unicode: regular expressions and words 16.0, Digits 17.0,
 * normalization (nfc.h) 12.1. tools/unicode.mjs asks it and writes the tables.
 */
#ifndef SN_TEXT_UNICODE_H
#define SN_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#define SN_UNICODE_LETTER 1      /* \p{L} */
#define SN_UNICODE_NUMBER 2      /* \p{N} */
#define SN_UNICODE_SPACE 4       /* \s: White_Space */
#define SN_UNICODE_MARK 8        /* \p{M} */
#define SN_UNICODE_PUNCTUATION 16 /* \p{P} */
#define SN_UNICODE_DECIMAL 32    /* \p{Nd} */
#define SN_UNICODE_NUMERIC 64    /* what the pre-tokenizer Digits cuts out */
#define SN_UNICODE_WORD 128      /* \w, beside which an added token with single_word is none */

/* The bits that hold for a code point; 0 above U+10FFFF. */
unsigned sn_unicode_class(uint32_t code_point);

/* Canonical combining class. */
unsigned sn_unicode_combining_class(uint32_t code_point);

/* ---- the tables: value | first code point that has it << 8, ascending ---- */
extern const size_t sn_unicode_n_classes, sn_unicode_n_combining;
extern const uint32_t sn_unicode_classes[], sn_unicode_combining[];
extern const uint8_t sn_unicode_ascii[];

/*
 * Canonical decompositions in the order of their code points, one step deep, each as three
 * numbers of seven bits a byte (lowest first, top bit: more follow): code point less that of the
 * one before; first part less that of the one before, as 2n, or -2n - 1 if negative; 2 * second
 * part (0: none) + 1 if the two parts compose again.
 */
extern const size_t sn_unicode_n_decompositions, sn_unicode_n_compositions;
extern const uint8_t sn_unicode_decompositions[];

#endif
