/*
 * common.h: what the commands share: loading a model with progress, reading a prompt, feeding it,
 * saved states, samplers. Functions that return int return EXIT_DONE or, having said what is
 * wrong, another exit code.
 */
#ifndef SN_WASI_COMMON_H
#define SN_WASI_COMMON_H

#include "args.h"
#include "buffer.h"
#include "output.h"

/* ---- progress ---- */

/* A percentage on a terminal's stderr once the work has lasted half a second. */
typedef struct progress {
    const char *what;
    double started, shown; /* seconds; shown 0: nothing on the screen */
} progress;

void progress_start(progress *p, const char *what);

/* An sn_progress_fn over a progress; asks to stop after Ctrl-C. */
int32_t progress_report(void *user, double done, double total);

/* Takes it off the screen. */
void progress_end(progress *p);

/* ---- a model ---- */

typedef struct loaded {
    sn_model *model;
    sn_model_info info;
    const sn_tokenizer *tokenizer; /* NULL if there is none */
    sn_tokenizer *own;             /* it, if it is not the model's */
    buffer path;
    bool chosen; /* no -m: SN_MODEL or the bundled one */
    double seconds;
} loaded;

/* n_threads as in sn_model_options, or -1 for automatic. */
int model_open(loaded *m, const arguments *args, int32_t n_threads, bool header_only);

/* Only the tokenizer that --tokenizer or --model name; there need be no model around it. */
int tokenizer_open(loaded *m, const arguments *args);
int model_need_tokenizer(const loaded *m);
void model_close(loaded *m);

/* ---- how it runs ---- */

/* Threads, pages. run_describe() makes two lines of it, run_show() writes them to stderr. */
int run_read(const loaded *m, sn_model_run *run);
void run_describe(buffer *b, const sn_model_run *run);
int run_show(const loaded *m);

/* ---- ids ---- */

typedef struct id_list {
    int32_t *items;
    int32_t n, capacity;
} id_list;

void ids_free(id_list *ids);
int ids_push(id_list *ids, int32_t id);

/* Appends the ids of a text; flags are SN_ENCODE_*. */
int ids_encode(id_list *ids, const sn_tokenizer *tokenizer, const char *text, size_t bytes,
               int32_t flags);

/* Appends the ids of a message and a chat format's texts around it. */
int ids_encode_chat(id_list *ids, const sn_tokenizer *tokenizer, const char *before,
                    const char *message, size_t bytes, const char *after);

/* Appends the ids of "1,2 3"; "-" reads them from stdin. */
int ids_parse(id_list *ids, const arguments *args, const char *text);

/* Appends the bytes of one id. */
int id_bytes(const sn_tokenizer *tokenizer, int32_t id, buffer *b);

/* ---- prompts ---- */

/* --prompt or --file into `text`; *given tells whether there was one. --tokens is not read. */
int prompt_read(const arguments *args, buffer *text, bool *given);

/* Appends the ids of --tokens, or those of the text, for a model that is to go on from there.
 * `begins`: the begin-of-text token comes first where the file wants it. */
int prompt_ids(id_list *ids, const loaded *m, const arguments *args, const buffer *text,
               bool begins);

/* Backslash escapes to bytes, in place; a lone backslash stays. */
void unescape(buffer *text);

/* ---- states ---- */

/* Prefill that Ctrl-C can stop. */
int state_feed(sn_state *state, const int32_t *ids, int32_t n, float *logits);

/* --state-load. The sampler goes on from the file too unless there is a --seed. */
int state_load(sn_state *state, sn_sampler *sampler, const arguments *args);
int state_save(const sn_state *state, const sn_sampler *sampler, const char *path);

/* ---- sampling ---- */

/* A sampler for the options of run and chat. *seed receives the seed it got, -1 if its random
 * numbers will come from a state file. */
int sampler_open(sn_sampler **sampler, const arguments *args, const loaded *m, int64_t *seed);

/* malloc of n floats per row, checked; NULL if it cannot be had. */
float *floats_new(size_t rows, size_t n);

/* ---- the commands ---- */

int command_run(const arguments *args);
int command_chat(const arguments *args);
int command_logits(const arguments *args);
int command_tokenize(const arguments *args);
int command_detokenize(const arguments *args);
int command_info(const arguments *args);
int command_convert(const arguments *args);
int command_release(const arguments *args);
int command_perplexity(const arguments *args);
int command_bench(const arguments *args);
int command_selftest(const arguments *args);

#endif
