/*
 * sunnynet.h: the public API of SunnyNet, a runtime for recurrent language models
 * whose state does not grow with context.
 *
 *   load a model -> make a state -> prefill the prompt -> step token by token
 *
 * The same file, tokens and options give the same bits of every logit on every back end,
 * with any number of threads, step by step, in chunks or in a batch (docs/determinism.md).
 *
 * Conventions, unless a function says otherwise
 *   errors     Functions that can fail return sn_status: SN_OK is 0, errors are negative.
 *              sn_last_error() then holds one line that names the thing and the reason.
 *              Results leave through pointers and are written only on success.
 *   ownership  Every *_new, *_clone and *_load has one *_free; freeing NULL does nothing.
 *              Memory passed in is only read during the call and stays the caller's.
 *   threads    A model and a tokenizer are immutable: any number of threads may use them.
 *              A state, batch, sampler or text stream belongs to one thread at a time.
 *   floats     float is IEEE 754 binary32. Functions that compute set the floating-point
 *              environment they need and restore the caller's before they return.
 *   strings    UTF-8; where a length stands beside a pointer, no terminating NUL is needed.
 */
#ifndef SUNNYNET_H
#define SUNNYNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SN_API
#if defined(_WIN32) && defined(SN_BUILD_SHARED)
#define SN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define SN_API __attribute__((visibility("default")))
#else
#define SN_API
#endif
#endif

#define SN_VERSION_MAJOR 0
#define SN_VERSION_MINOR 1
#define SN_VERSION_PATCH 0
#define SN_VERSION "0.1.0"

/* ---- status ------------------------------------------------------------------------- */

#ifndef SN_STATUS_DEFINED
#define SN_STATUS_DEFINED
typedef int32_t sn_status;
#endif

#define SN_OK 0
#define SN_E_INVAL (-1)       /* an argument is NULL or out of range */
#define SN_E_NOMEM (-2)       /* memory could not be had */
#define SN_E_IO (-3)          /* a file could not be opened, read or written */
#define SN_E_FORMAT (-4)      /* the bytes are not what their format demands */
#define SN_E_UNSUPPORTED (-5) /* well formed, but not something this build can run */
#define SN_E_ABORTED (-6)     /* a progress or abort callback asked to stop */
#define SN_E_NUMERIC (-7)     /* a NaN or an infinity where a number is needed */
#define SN_E_MISMATCH (-8)    /* a saved state that belongs to another model */

/* "0.1.0"; a static string. */
SN_API const char *sn_version(void);

/* What a status code means, e.g. "out of memory"; a static string, never NULL. */
SN_API const char *sn_status_text(sn_status status);

/*
 * The calling thread's last failure in one line ("x.gguf: tensor 'a': 4096 bytes needed,
 * 1024 left"); "" if there was none. Valid until the next failure on this thread.
 */
SN_API const char *sn_last_error(void);

/* ---- back ends ---------------------------------------------------------------------- */

/* Back ends linked into this library, slowest first. Index 0 is always "scalar". */
SN_API int32_t sn_backend_count(void);

/* "scalar", "avx2", "avx512-vnni", ...; a static string, NULL if index is out of range. */
SN_API const char *sn_backend_name(int32_t index);

/* 1 if this CPU (and its operating system) can run the back end, else 0. */
SN_API int32_t sn_backend_usable(int32_t index);

/*
 * The back end that a model gets when none is asked for: the one named by the environment
 * variable SN_ISA, else the fastest usable one. *name is a static string.
 * SN_E_UNSUPPORTED if SN_ISA names one that is unknown or that this CPU lacks.
 */
SN_API sn_status sn_backend_default(const char **name);

/* ---- callbacks ---------------------------------------------------------------------- */

/* Work done so far, in units of the whole (bytes, tokens). Return non-zero to stop: the call
 * then fails with SN_E_ABORTED. Called on the thread that made the call. */
typedef int32_t (*sn_progress_fn)(void *user, double done, double total);

/* One line of advice without a newline, e.g. that the file's tokenizer is not supported. */
typedef void (*sn_log_fn)(void *user, const char *line);

/*
 * Bytes that come in order, for models that do not lie in a file: a download, an archive.
 * read() stores up to `bytes` bytes and returns how many; 0 means that no more will come.
 */
typedef struct sn_source {
    uint32_t struct_size; /* sizeof(sn_source) */
    const char *name;     /* for error texts; NULL: "model" */
    uint64_t size;        /* of all the bytes; must be known */
    size_t (*read)(void *user, void *buffer, size_t bytes);
    void *user;
} sn_source;

/* ---- model -------------------------------------------------------------------------- */

typedef struct sn_model sn_model;
typedef struct sn_tokenizer sn_tokenizer;

#define SN_ACTIVATIONS_INT8 0 /* quantised matrices take activations in blocks of 32 int8 */
#define SN_ACTIVATIONS_F32 1  /* quantised matrices are multiplied by float activations */

typedef struct sn_model_options {
    uint32_t struct_size;    /* sizeof(sn_model_options) */
    const char *backend;     /* NULL: sn_backend_default() */
    int32_t n_threads;       /* 0: chosen from cores, quota and model size */
    int32_t activations;     /* SN_ACTIVATIONS_*; f32, f16 and bf16 matrices ignore it */
    int32_t header_only;     /* 1: read metadata and tokenizer, no weights, of any architecture; no
                              * states then */
    int32_t max_chunk;       /* tokens computed together by prefill; 0: 48 */
    sn_progress_fn progress; /* may be NULL */
    void *progress_user;
    sn_log_fn log; /* may be NULL */
    void *log_user;
    int32_t map; /* 1: weights that lie in a packed GGUF file as they are used stay there: the file
                  * is mapped, and processes that map it share its memory. SN_E_UNSUPPORTED of
                  * what is no packed file. While the model lives the file must not be written
                  * to: cut short, it ends the process (SIGBUS) where a read would have failed */
} sn_model_options;

/* Fills in the defaults, struct_size included. */
SN_API void sn_model_options_init(sn_model_options *options);

/*
 * Loads a model from what lies at `path`, found out by content: a GGUF file (or the first part of
 * a split one), a Hugging Face folder (config.json, safetensors or pytorch_model.bin, tokenizer), a
 * safetensors file, a PyTorch archive (.pth, .pt), a packed blob; what belongs to it (shards,
 * config, tokenizer) is looked for beside it. options may be NULL. Nothing is expanded: the
 * weights take about the room they take in the file. On failure *model is untouched and nothing
 * stays allocated.
 */
SN_API sn_status sn_model_load(const char *path, const sn_model_options *options,
                               sn_model **model);

/* The same from `size` bytes of one file at `data`, which are not needed after the call. */
SN_API sn_status sn_model_load_memory(const void *data, size_t size,
                                      const sn_model_options *options, sn_model **model);

/* The same from bytes that come in order. All formats but GGUF are collected first. */
SN_API sn_status sn_model_load_source(const sn_source *source, const sn_model_options *options,
                                      sn_model **model);

/*
 * Loading in steps, for bytes that arrive when they like (a download in a page):
 *
 *     sn_loading_new(name, size, options, &loading);
 *     while (sn_loading_next(loading, &buffer, &bytes) == SN_OK && bytes)
 *         put up to `bytes` of the file's next bytes at buffer, then
 *         sn_loading_advance(loading, how_many);
 *     sn_loading_finish(loading, &model);
 *     sn_loading_free(loading);
 *
 * After a failure only sn_loading_free is of use. Split files cannot be loaded this way.
 */
typedef struct sn_loading sn_loading;

/* `size` is that of the whole file, in bytes; name (NULL: "model") is for error texts. */
SN_API sn_status sn_loading_new(const char *name, double size, const sn_model_options *options,
                                sn_loading **loading);

/* Where the file's next bytes belong, and at most how many; *bytes = 0: it is complete. The
 * buffer belongs to the loading and is valid until the next call. */
SN_API sn_status sn_loading_next(sn_loading *loading, void **buffer, size_t *bytes);

/* `bytes` bytes, at most what sn_loading_next allowed, have been stored. */
SN_API sn_status sn_loading_advance(sn_loading *loading, size_t bytes);

/* Hands out the model. SN_E_FORMAT if bytes are missing. */
SN_API sn_status sn_loading_finish(sn_loading *loading, sn_model **model);
SN_API void sn_loading_free(sn_loading *loading);

/* All states, batches and texts made from the model must be freed before. */
SN_API void sn_model_free(sn_model *model);

/* What a model is. Strings belong to the model; sizes are bytes. */
typedef struct sn_model_info {
    uint32_t struct_size;     /* in: sizeof(sn_model_info) */
    const char *architecture; /* "rwkv7" */
    const char *name;         /* general.name, "" if absent */
    const char *backend;      /* "" for a header_only model */
    const char *chat_template; /* tokenizer.chat_template, "" if absent */
    int32_t n_layers, n_embd, n_ffn, n_heads, head_size, vocab;
    int32_t activations, n_threads, max_chunk;
    double parameters;
    double file_bytes;       /* of all parts */
    double resident_bytes;   /* of the weights in memory */
    double state_bytes;      /* of one state's data */
    double bytes_per_token;  /* weight bytes that one decode step reads */
} sn_model_info;

SN_API sn_status sn_model_get_info(const sn_model *model, sn_model_info *info);

#define SN_THREADS_ASKED 0    /* options.n_threads */
#define SN_THREADS_CACHE 1    /* one: the weights fit in a cache, where threads only wait */
#define SN_THREADS_CORES 2    /* the physical cores */
#define SN_THREADS_AFFINITY 3 /* those of them that this process may use */
#define SN_THREADS_QUOTA 4    /* the control group's share of processor time */

/* How a model runs on this machine; found out anew at each call, which may read files. */
typedef struct sn_model_run {
    uint32_t struct_size;   /* in: sizeof(sn_model_run) */
    int32_t n_threads;
    int32_t threads_reason; /* SN_THREADS_*: where that number comes from */
    double weight_bytes;    /* in memory, mapped or not */
    double mapped_bytes;    /* of them in a mapped file */
    double huge_bytes;      /* of them on huge pages; -1: the system does not tell */
} sn_model_run;

/* SN_E_INVAL for a header_only model. */
SN_API sn_status sn_model_get_run(const sn_model *model, sn_model_run *run);

/*
 * Reads all of the model's weights once and does nothing with them, on this thread (alone = 1) or
 * on all of the model's. Timed, it shows how fast this machine reads these very pages, which no
 * decode step can pass. *bytes receives how many were read.
 */
SN_API sn_status sn_model_read_weights(const sn_model *model, int32_t alone, double *bytes);

/* Tokens in the vocabulary, hence floats in a logits buffer. 0 if model is NULL. */
SN_API int32_t sn_model_vocab(const sn_model *model);

/* One tensor of the file. */
typedef struct sn_tensor_info {
    uint32_t struct_size; /* in: sizeof(sn_tensor_info) */
    const char *name;     /* belongs to the model */
    const char *type;     /* "Q4_K"; a static string */
    int32_t n_dims;
    double dims[4]; /* fastest first: dims[0] is the contiguous row length */
    double file_bytes;
    double resident_bytes; /* 0 if the model does not use it */
} sn_tensor_info;

SN_API int32_t sn_model_tensor_count(const sn_model *model);
SN_API sn_status sn_model_get_tensor(const sn_model *model, int32_t index, sn_tensor_info *info);

/* The tokenizer that came with the model; it belongs to the model. NULL if there is none, or
 * none that is supported (the log callback was told): the model then runs on ids. */
SN_API const sn_tokenizer *sn_model_tokenizer(const sn_model *model);

/* ---- state -------------------------------------------------------------------------- */

typedef struct sn_state sn_state;
typedef struct sn_sampler sn_sampler;

/* A state at the start of a sequence (all zero, position 0). Keeps a pointer to the model. */
SN_API sn_status sn_state_new(const sn_model *model, sn_state **state);
SN_API void sn_state_free(sn_state *state);

/* Back to the start of a sequence. */
SN_API sn_status sn_state_reset(sn_state *state);

/* A second state that goes on from the same place. */
SN_API sn_status sn_state_clone(const sn_state *state, sn_state **copy);

/* Tokens the state has seen. A double, so that JavaScript needs no BigInt. */
SN_API double sn_state_position(const sn_state *state);

/*
 * Advances the state by one token and writes the scores of the next one.
 * `logits` holds sn_model_vocab() floats; NULL skips the output head.
 * SN_E_INVAL if token is outside [0, vocab): the state is unchanged.
 * SN_E_NUMERIC if an activation is a NaN or infinite: the state is spoiled and refuses
 * further work until it is reset or restored. Allocates nothing.
 */
SN_API sn_status sn_state_step(sn_state *state, int32_t token, float *logits);

/*
 * Advances the state by `n` tokens, reading the weights once per max_chunk tokens, and
 * writes the scores after the last one ([vocab], or NULL). n = 0 does nothing. Tokens are
 * checked before any work. The same bits as n calls of sn_state_step.
 * SN_E_ABORTED after the callback of sn_state_set_abort: the state has then seen
 * sn_state_position() tokens and is usable.
 */
SN_API sn_status sn_state_prefill(sn_state *state, const int32_t *tokens, int32_t n,
                                  float *logits);

/* The same, with the scores after every token: logits is [n][vocab]. */
SN_API sn_status sn_state_prefill_all(sn_state *state, const int32_t *tokens, int32_t n,
                                      float *logits);

/* Called after every chunk of a prefill with the tokens done and their total. NULL ends it. */
SN_API sn_status sn_state_set_abort(sn_state *state, sn_progress_fn callback, void *user);

/* Bytes of weights read on behalf of this state so far. */
SN_API double sn_state_weight_bytes_read(const sn_state *state);

/*
 * Writes the state in the portable format of docs/state-format.md, with the history of
 * `sampler` if it is not NULL. *size receives the bytes needed; buffer is written only if
 * capacity suffices (NULL with 0 asks for the size), else SN_E_INVAL.
 */
SN_API sn_status sn_state_save(const sn_state *state, const sn_sampler *sampler, void *buffer,
                               size_t capacity, size_t *size);

/*
 * Goes on from saved bytes. SN_E_FORMAT if they are damaged, SN_E_MISMATCH if they belong to
 * other weights; state and sampler are then unchanged. `sampler` may be NULL; if it is not
 * and the bytes hold no history, its history becomes empty.
 */
SN_API sn_status sn_state_restore(sn_state *state, sn_sampler *sampler, const void *buffer,
                                  size_t size);

/* The largest absolute difference between two states of one model; 0.0 means equal values.
 * A NaN on either side gives infinity. */
SN_API sn_status sn_state_compare(const sn_state *a, const sn_state *b, double *difference);

/* ---- batch -------------------------------------------------------------------------- */

typedef struct sn_batch sn_batch;

/* Room to advance up to `capacity` (1..4096) independent states together. */
SN_API sn_status sn_batch_new(const sn_model *model, int32_t capacity, sn_batch **batch);
SN_API void sn_batch_free(sn_batch *batch);

/*
 * Advances n different states of the batch's model by one token each, reading the weights
 * once. logits is [n][vocab] or NULL. Each result has the bits of sn_state_step. SN_E_NUMERIC
 * if a state was spoiled before, or if the step met a NaN or an infinity, which spoils all n
 * states; on any other failure nothing has changed.
 */
SN_API sn_status sn_batch_step(sn_batch *batch, sn_state *const *states, const int32_t *tokens,
                               int32_t n, float *logits);

/* Bytes of weights read by this batch so far. */
SN_API double sn_batch_weight_bytes_read(const sn_batch *batch);

/* ---- tokenizer ---------------------------------------------------------------------- */

/* From a tokenizer.json, tokenizer.model or RWKV vocabulary file, a folder that holds one, or a
 * GGUF file or folder of a model of whatever architecture. */
SN_API sn_status sn_tokenizer_load(const char *path, sn_tokenizer **tokenizer);

/* Only for tokenizers from sn_tokenizer_load. */
SN_API void sn_tokenizer_free(sn_tokenizer *tokenizer);

/* Number of ids, the unused ones included. */
SN_API int32_t sn_tokenizer_vocab(const sn_tokenizer *tokenizer);

/*
 * A static string: "rwkv" (the longest token that fits), "gpt2" (byte-level BPE), "llama" (BPE
 * over characters, those unknown as bytes), "sunnynet" (BPE over characters).
 */
SN_API const char *sn_tokenizer_kind(const sn_tokenizer *tokenizer);

/* Ids of the begin, end-of-text and end-of-turn tokens; -1 where there is none. */
SN_API int32_t sn_tokenizer_bos(const sn_tokenizer *tokenizer);
SN_API int32_t sn_tokenizer_eos(const sn_tokenizer *tokenizer);
SN_API int32_t sn_tokenizer_eot(const sn_tokenizer *tokenizer);

#define SN_ENCODE_SPECIAL 1 /* control tokens written out in the text become their ids */
#define SN_ENCODE_ENDS 2    /* adds what the file says belongs at the ends: bos, eos */
#define SN_ENCODE_BEGIN 4   /* adds only what belongs at the beginning, for a text that goes on */

/*
 * Turns `bytes` bytes of text (any bytes, valid UTF-8 or not) into ids. *n receives the number
 * of ids needed; at most `capacity` are stored. Call again with more room if *n > capacity.
 * flags is a sum of SN_ENCODE_*. Added tokens that are no control tokens are always found.
 * SN_E_INVAL if there is no token for a part of the text, which the line of sn_last_error() then
 * names. Works in memory that it frees again. For text that came from outside, such as what a
 * user typed into a chat, leave SN_ENCODE_SPECIAL out.
 */
SN_API sn_status sn_tokenizer_encode_with(const sn_tokenizer *tokenizer, const char *text,
                                          size_t bytes, int32_t flags, int32_t *ids,
                                          int32_t capacity, int32_t *n);

/* The same with flags 0: control tokens are never made from text, nothing is added at the ends. */
SN_API sn_status sn_tokenizer_encode(const sn_tokenizer *tokenizer, const char *text,
                                     size_t bytes, int32_t *ids, int32_t capacity, int32_t *n);

/* 1 if id is a control token (begin or end of a text or turn, and the like), else 0. */
SN_API int32_t sn_tokenizer_special(const sn_tokenizer *tokenizer, int32_t id);

/*
 * The bytes of one token: possibly part of a character, possibly none (control and unused
 * tokens). *bytes belongs to the tokenizer. SN_E_INVAL if id is outside the vocabulary.
 */
SN_API sn_status sn_tokenizer_token(const sn_tokenizer *tokenizer, int32_t id,
                                    const char **bytes, size_t *length);

/* The text of one token as it stands in the file, that of a control token ("</s>") included. */
SN_API sn_status sn_tokenizer_text(const sn_tokenizer *tokenizer, int32_t id,
                                   const char **text, size_t *length);

/* ---- text as it is generated -------------------------------------------------------- */

typedef struct sn_text sn_text;

/*
 * Turns a stream of ids into text: only whole UTF-8 characters come out (bytes that can never
 * become one come out as U+FFFD), and generation ends before the first of the `n_stops` stop
 * strings, wherever it lies across tokens. Text that might begin a stop string is held back
 * until that is decided. The stops are copied; empty ones are refused. The tokenizer must
 * outlive the stream. Where the tokenizer puts a space in front of texts, one space at the very
 * beginning is left out.
 */
SN_API sn_status sn_text_new(const sn_tokenizer *tokenizer, const char *const *stops,
                             int32_t n_stops, sn_text **text);
SN_API void sn_text_free(sn_text *text);

/* What comes goes on from other text, so nothing is left out at its beginning. NULL: nothing. */
SN_API void sn_text_resume(sn_text *text);

/*
 * Takes one id. *out, *length receive the text that is now certain (possibly empty; not
 * NUL-terminated; valid until the next call), *stopped 1 once a stop string was met.
 */
SN_API sn_status sn_text_push(sn_text *text, int32_t id, const char **out, size_t *length,
                              int32_t *stopped);

/* What was held back at the end; an incomplete character becomes U+FFFD. Starts afresh. */
SN_API sn_status sn_text_finish(sn_text *text, const char **out, size_t *length);

/* ---- chat --------------------------------------------------------------------------- */

#define SN_CHAT_TEXT 96
#define SN_CHAT_STOPS 4
#define SN_CHAT_ENDS 3

#define SN_CHAT_BY_NAME 0      /* the caller named the format */
#define SN_CHAT_TEMPLATE 1     /* the file's chat template is of its family */
#define SN_CHAT_ARCHITECTURE 2 /* the file has no template; its architecture is known for it */

/*
 * How the turns of a chat are written for a model:
 *
 *   start
 *   system_prefix ... system_suffix
 *   user_prefix ... user_suffix  assistant_prefix ANSWER assistant_suffix  user_prefix ...
 *
 * Texts end with a NUL. Control tokens stand in them as they are written: sn_chat_encode makes
 * ids of them. What a template does besides (default system messages, tools, dates) is left out.
 */
typedef struct sn_chat_format {
    uint32_t struct_size;      /* in: sizeof(sn_chat_format) */
    const char *name;          /* a static string: "rwkv-world", "chatml", ... */
    int32_t source;            /* SN_CHAT_* */
    int32_t has_system;        /* 0: there are no system messages */
    int32_t system_inside;     /* 1: they stand in the first turn, behind its user_prefix */
    int32_t trims;             /* 1: messages have no white space at their ends */
    int32_t one_paragraph;     /* 1: an empty line ends a message, so it holds none */
    char start[SN_CHAT_TEXT];  /* once, before everything */
    char system_prefix[SN_CHAT_TEXT], system_suffix[SN_CHAT_TEXT];
    char user_prefix[SN_CHAT_TEXT], user_suffix[SN_CHAT_TEXT];
    char assistant_prefix[SN_CHAT_TEXT]; /* opens the answer */
    char assistant_suffix[SN_CHAT_TEXT]; /* closes it */
    int32_t n_stops;
    char stops[SN_CHAT_STOPS][SN_CHAT_TEXT]; /* texts that an answer ends before */
    int32_t end_ids[SN_CHAT_ENDS]; /* tokens that end an answer; -1: none */
} sn_chat_format;

/* The formats that are known. NULL if index is out of range. */
SN_API int32_t sn_chat_count(void);
SN_API const char *sn_chat_name(int32_t index);

/*
 * The format of this name. The tokenizer gives the texts of its control tokens and the ids of
 * end_ids; with NULL the texts of begin and end are empty. SN_E_INVAL if there is no such format;
 * SN_E_UNSUPPORTED if the tokenizer lacks the end-of-text token that it is written with.
 */
SN_API sn_status sn_chat_named(const char *name, const sn_tokenizer *tokenizer,
                               sn_chat_format *format);

/* The format whose marks a chat template (Jinja) carries. SN_E_UNSUPPORTED if it is of no known
 * family. */
SN_API sn_status sn_chat_of_template(const char *chat_template, const sn_tokenizer *tokenizer,
                                     sn_chat_format *format);

/*
 * The format of a model: by its template, without one by its architecture. `tokenizer` NULL: the
 * model's. SN_E_UNSUPPORTED if the file names none, or one that is not known.
 */
SN_API sn_status sn_model_chat(const sn_model *model, const sn_tokenizer *tokenizer,
                               sn_chat_format *format);

/*
 * The ids of a message and the format's texts around it (NULL: none), encoded as one text; n, ids
 * and capacity as in sn_tokenizer_encode_with. Control tokens in `before` and `after` become their
 * ids; the message, which came from outside, never makes one.
 */
SN_API sn_status sn_chat_encode(const sn_tokenizer *tokenizer, const char *before,
                                const char *message, size_t bytes, const char *after,
                                int32_t *ids, int32_t capacity, int32_t *n);

/* ---- sampler ------------------------------------------------------------------------ */

typedef struct sn_logit_bias {
    int32_t id;
    float bias; /* added to the logit; -INFINITY forbids the token */
} sn_logit_bias;

typedef struct sn_sampler_options {
    uint32_t struct_size;
    float temperature;        /* 0: greedy. Default 0.8 */
    int32_t top_k;            /* 0: off. Default 40 */
    float top_p;              /* 1: off. Default 0.95 */
    float min_p;              /* 0: off (default): keep tokens with p >= min_p * the best p */
    float repetition_penalty; /* 1: off (default): divides positive, multiplies negative logits */
    float presence_penalty;   /* 0: off (default): subtracted once from each token seen */
    float frequency_penalty;  /* 0: off (default): subtracted per occurrence */
    int32_t penalty_last_n;   /* tokens looked back at; -1: all; default 64 */
    uint64_t seed;
    const sn_logit_bias *bias; /* copied */
    int32_t n_bias;
} sn_sampler_options;

SN_API void sn_sampler_options_init(sn_sampler_options *options);

/*
 * A sampler over `vocab` logits. Steps: bias, penalties, temperature, top-k, top-p, min-p,
 * draw. With `tokenizer` (may be NULL) its unused ids are never chosen. options may be NULL.
 * The same seed, options and logits give the same ids on every target.
 */
SN_API sn_status sn_sampler_new(int32_t vocab, const sn_tokenizer *tokenizer,
                                const sn_sampler_options *options, sn_sampler **sampler);
SN_API void sn_sampler_free(sn_sampler *sampler);
SN_API sn_status sn_sampler_clone(const sn_sampler *sampler, sn_sampler **copy);

/* Forgets the tokens seen and starts the random numbers again from the seed. */
SN_API sn_status sn_sampler_reset(sn_sampler *sampler);

/* Notes a token of the prompt or the answer, for the penalties. */
SN_API sn_status sn_sampler_accept(sn_sampler *sampler, int32_t id);

/*
 * Chooses the next id from `vocab` logits, which are not changed. Ties go to the lower id.
 * Does not accept() it. SN_E_NUMERIC if a logit is a NaN or infinite, or if every token is
 * forbidden.
 */
SN_API sn_status sn_sampler_sample(sn_sampler *sampler, const float *logits, int32_t *id);

/* ---- converting --------------------------------------------------------------------- */

typedef struct sn_convert_options {
    uint32_t struct_size;
    const char *type; /* "f16", "q8_0", "q4_k_m", ...: docs/formats.md; NULL: keep each tensor's */
    int32_t packed;   /* 1: write panels, so that later starts read them straight into place */
    sn_progress_fn progress;
    void *progress_user;
    const char *format; /* "gguf" (NULL: the same) or "blob": the blob of SunnyNet or RWKV-7 */
} sn_convert_options;

SN_API void sn_convert_options_init(sn_convert_options *options);

/*
 * Reads the model at `in` and writes it to `out` as one file, which appears under its name only
 * when it is whole. `out` must not be `in`. docs/formats.md says which tensors of a GGUF file keep
 * float32 whatever the type. A blob is float32 or, with type "i4" (RWKV-7 only), INT4; it takes no
 * other type and not packed.
 */
SN_API sn_status sn_convert(const char *in, const char *out, const sn_convert_options *options);

typedef struct sn_release_options {
    uint32_t struct_size;
    const char *name;      /* of the model and its files; NULL: the checkpoint's, without ".pt" */
    const char *publisher; /* on the card; NULL: "sunny-cx" */
    const char *license;   /* on the card; NULL: "apache-2.0" */
    sn_progress_fn progress;
    void *progress_user;
} sn_release_options;

SN_API void sn_release_options_init(sn_release_options *options);

/*
 * Makes the files of a release from a SunnyNet checkpoint (.pt) in `folder`, which is made if need
 * be: the checkpoint, NAME.safetensors, NAME.runtime.bin (if the blob can hold the model; else the
 * card says why not), the tokenizer.json that lies beside the checkpoint, and last NAME.card.json
 * with sizes and SHA-256. The same checkpoint and options give the same bytes.
 */
SN_API sn_status sn_release(const char *checkpoint, const char *folder,
                            const sn_release_options *options);

/* ---- self-test ---------------------------------------------------------------------- */

/*
 * Runs every kernel of every back end this machine can run and compares it with the scalar one,
 * bit for bit. `line` (may be NULL) gets one line per back end and kernel.
 * SN_E_NUMERIC names the first difference.
 */
SN_API sn_status sn_selftest(sn_log_fn line, void *user);

#ifdef __cplusplus
}
#endif
#endif
