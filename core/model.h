/*
 * model.h: the immutable model, and what an architecture has to provide.
 */
#ifndef SN_CORE_MODEL_H
#define SN_CORE_MODEL_H

#include "formats/gguf.h"
#include "ops.h"
#include "weights.h"

/* Tokens [first, first + count) of a forward pass belong to this state, in order. */
typedef struct sn_segment {
    float *state; /* sn_model.state_floats floats */
    size_t first, count;
} sn_segment;

typedef struct sn_loader sn_loader;

/*
 * One architecture. A forward pass takes n_tokens tokens of one or more sequences at once; a
 * decode step, a chunk of a prompt and a batch of independent states are the same call.
 */
typedef struct sn_arch {
    const char *name; /* general.architecture */

    /* Reads hyperparameters into the model and binds every tensor (loader.h). The weights
     * struct is allocated with sn_loader_weights(). */
    sn_status (*bind)(sn_loader *loader, sn_model *model);

    /* Writes the logits of tokens first_logits .. n_tokens-1, [.][vocab]; none if logits is
     * NULL. Sets exec->spoiled when an activation is a NaN or infinite. */
    void (*forward)(const sn_model *model, sn_exec *exec, const int32_t *tokens, size_t n_tokens,
                    const sn_segment *segments, size_t n_segments, float *logits,
                    size_t first_logits);
} sn_arch;

/* One tensor of the file, for sn_model_get_tensor(). */
typedef struct sn_tensor_record {
    char name[64];
    const sn_type *type;
    uint32_t n_dims;
    uint64_t dims[4];
    uint64_t file_bytes, resident_bytes;
} sn_tensor_record;

struct sn_model {
    const sn_arch *arch; /* NULL: a header_only model of an architecture that is not supported */
    char *architecture;  /* its name, "" if the file has none */
    const sn_simd *simd; /* NULL for a header_only model */
    sn_pool *pool;
    bool f32_activations;

    int32_t n_layers, n_embd, n_ffn, n_heads, head_size, vocab, max_chunk;
    float norm_eps;

    size_t state_floats;   /* set by the architecture */
    size_t scratch_floats; /* per token of a forward pass; set by the architecture */
    size_t max_int8_k;     /* longest input of a quantised matrix */

    void *weights;     /* the architecture's struct of vectors and matrices */
    sn_weights *memory; /* what it points into; NULL for a header_only model */
    size_t weight_bytes;
    int32_t threads_reason; /* SN_THREADS_ASKED or _CACHE, else the cores */

    sn_tokenizer *tokenizer; /* may be NULL */
    char *name, *chat_template;
    sn_tensor_record *tensors;
    size_t n_tensors;
    double parameters, file_bytes;
    double matrix_bytes, vector_bytes, row_bytes; /* of the weights one token reads */
};

const sn_arch *sn_arch_find(sn_span name);

/* "rwkv7, ..." for error texts. */
const char *sn_arch_list(void);

/* SN_E_UNSUPPORTED, with a line that names the architecture and what is supported. */
sn_status sn_arch_refuse(const char *file, const char *architecture);

extern const sn_arch sn_arch_rwkv7, sn_arch_mamba2, sn_arch_mamba, sn_arch_gla, sn_arch_deltanet,
    sn_arch_gated_deltanet, sn_arch_hgrn2, sn_arch_sunnynet;

#endif
