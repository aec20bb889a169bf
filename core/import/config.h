/*
 * config.h: options of a model's config.json: their kinds, ranges and defaults, with errors that
 * name the option and its value. Absent and null are the same; so is a config that is absent.
 */
#ifndef SN_IMPORT_CONFIG_H
#define SN_IMPORT_CONFIG_H

#include "import.h"

/* The option's value; NULL if absent or null. */
const sn_json *sn_config_get(const sn_source_model *source, const char *key);

/* *value keeps what it holds if the option is absent. Whole numbers lie in 1..2^31 - 1. */
sn_status sn_config_u32(const sn_source_model *source, const char *key, uint32_t *value);
sn_status sn_config_f64(const sn_source_model *source, const char *key, double *value);
sn_status sn_config_bool(const sn_source_model *source, const char *key, bool *value);

/* A text that must be one of `choices` (NULL-terminated; *value is one of them, too). */
sn_status sn_config_choice(const sn_source_model *source, const char *key,
                           const char *const *choices, const char **value);

/* The option may be absent, but not there: `what` it would mean. */
sn_status sn_config_refuse(const sn_source_model *source, const char *key, const char *what);

/* The option must be `wanted` if it is there. */
sn_status sn_config_must_be(const sn_source_model *source, const char *key, bool wanted);

/* The option must be what the tensors' shapes say if it is there. */
sn_status sn_config_agree(const sn_source_model *source, const char *key, uint64_t value);

/* SN_E_UNSUPPORTED that names an option and its value. */
sn_status sn_config_unsupported(const sn_source_model *source, const char *key);

/* Whether model_type, or else the first of architectures, is the one given; false if the config
 * says neither. */
bool sn_config_is(const sn_source_model *source, const char *model_type,
                  const char *architecture);

/* What the config calls its kind of model; NULL if it does not say. */
const char *sn_config_kind(const sn_source_model *source);

#endif
