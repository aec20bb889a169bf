/*
 * load.h: the loader as the model sees it (architectures see loader.h).
 */
#ifndef SN_CORE_LOAD_H
#define SN_CORE_LOAD_H

#include "model.h"

/* Binds the architecture's tensors and, unless header_only, reads them. model->arch and
 * model->tensors are set. */
sn_status sn_load_tensors(const sn_gguf *gguf, sn_model *model, const sn_model_options *options);

#endif
