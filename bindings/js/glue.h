/* glue.h: what glue.c adds to the public API for JavaScript; described there. */
#ifndef SN_JS_GLUE_H
#define SN_JS_GLUE_H

#include "sunnynet.h"

SN_API sn_status sn_js_loading_new(const char *name, double size, const char *backend,
                                   int32_t n_threads, int32_t activations, int32_t max_chunk,
                                   sn_loading **loading);
SN_API sn_status sn_js_model_info(const sn_model *model, const char *strings[4],
                                  double numbers[14]);
SN_API sn_status sn_js_tensor_info(const sn_model *model, int32_t index, const char *strings[2],
                                   double numbers[7]);
SN_API sn_status sn_js_sampler_new(const sn_model *model, const float options[6], int32_t top_k,
                                   int32_t penalty_last_n, uint32_t seed_low, uint32_t seed_high,
                                   const sn_logit_bias *bias, int32_t n_bias,
                                   sn_sampler **sampler);
SN_API sn_status sn_js_selftest(char *text, size_t capacity);

#endif
