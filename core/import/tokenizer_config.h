/*
 * tokenizer_config.h: the small files beside a tokenizer, which say what its ids are used for.
 */
#ifndef SN_IMPORT_TOKENIZER_CONFIG_H
#define SN_IMPORT_TOKENIZER_CONFIG_H

#include "lexicon.h"

enum { SN_CONFIG_TOKENIZER, SN_CONFIG_SPECIAL, SN_CONFIG_GENERATION, SN_CONFIG_TEMPLATE,
       SN_TOKENIZER_CONFIGS };

/* tokenizer_config.json, special_tokens_map.json, generation_config.json, chat_template.jinja */
extern const char *const sn_tokenizer_configs[SN_TOKENIZER_CONFIGS];

/* Zeroed but for `config` (config.json, may be NULL). */
typedef struct sn_tokenizer_config {
    const sn_json *config;
    char *paths[SN_TOKENIZER_CONFIGS]; /* NULL: the file is not there; owned */
    sn_json_document *documents[SN_TOKENIZER_CONFIGS];
    char *chat_template; /* of chat_template.jinja */
    size_t template_bytes;
} sn_tokenizer_config;

/* Reads file number `which` from its path. */
sn_status sn_tokenizer_config_read(sn_tokenizer_config *config, size_t which);

/* Fills in the roles of the file's lexicon and declares the chat template. */
sn_status sn_tokenizer_config_apply(const sn_tokenizer_config *config, sn_tokenizer_file *file);

void sn_tokenizer_config_free(sn_tokenizer_config *config);

#endif
