/*
 * tokenizer.h: what the library's other rooms need of a tokenizer beyond sunnynet.h.
 */
#ifndef SN_TEXT_TOKENIZER_H
#define SN_TEXT_TOKENIZER_H

#include "../formats/gguf.h"
#include "../memory.h"

/*
 * Builds the tokenizer that a GGUF file carries (tokenizer.ggml.*). *tokenizer becomes NULL if
 * the file has none. A kind that is not supported is SN_E_UNSUPPORTED and named.
 */
sn_status sn_tokenizer_from_gguf(const sn_gguf *gguf, sn_tokenizer **tokenizer);

/* Frees it wherever it came from. */
void sn_tokenizer_destroy(sn_tokenizer *tokenizer);

/* True if the id may be generated: not an unused (padding) entry. */
bool sn_tokenizer_usable(const sn_tokenizer *tokenizer, int32_t id);

/* One line that a user should see, e.g. that the file leaves open how to split texts; "" if there
 * is none. */
const char *sn_tokenizer_advice(const sn_tokenizer *tokenizer);

#endif
