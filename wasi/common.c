/* common.c: see common.h. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"

/* ---- progress ---- */

void progress_start(progress *p, const char *what) {
    p->what = what;
    p->started = terminal_seconds();
    p->shown = 0;
}

int32_t progress_report(void *user, double done, double total) {
    progress *p = user;
    double now = terminal_seconds();
    bool due = p->shown == 0 ? now - p->started > 0.5 : now - p->shown > 0.1;
    if (due && total > 0 && terminal_is(stderr)) {
        fprintf(stderr, "\r%s %3.0f %%", p->what, 100 * done / total);
        p->shown = now;
    }
    return terminal_interrupted();
}

void progress_end(progress *p) {
    if (p->shown != 0) fprintf(stderr, "\r%*s\r", (int)strlen(p->what) + 6, "");
    p->shown = 0;
}

/* ---- a model ---- */

static bool exists(const char *path) {
    FILE *file = terminal_open(path, "rb");
    if (file != NULL) fclose(file);
    return file != NULL;
}

/* Installed, built in the source tree, or started in the source tree (WASI knows no folder). */
static bool find_bundled(buffer *path, const char *program) {
    static const char *const places[] = {"/../share/sunnynet/", "/../../models/"};
    buffer folder = {0};
    terminal_program_folder(program, &folder);
    bool found = false;
    for (size_t i = 0; i < 2 && !found && folder.size > 0; i++) {
        buffer_clear(path);
        buffer_printf(path, "%s%srwkv7-fairy.gguf", buffer_string(&folder), places[i]);
        found = exists(buffer_string(path));
    }
    buffer_free(&folder);
    if (found) return true;
    buffer_clear(path);
    buffer_text(path, "models/rwkv7-fairy.gguf");
    return exists(buffer_string(path));
}

static int choose_path(loaded *m, const arguments *args) {
    const char *named = args->model != NULL ? args->model : getenv("SN_MODEL");
    m->chosen = args->model == NULL;
    if (named != NULL && *named != '\0')
        buffer_text(&m->path, named);
    else if (args->model != NULL)
        return fail_usage(command_name(args), "--model wants a file name");
    else if (!find_bundled(&m->path, args->program))
        return fail("the bundled model is not there: give a model with -m FILE%s",
                    terminal_file_hint());
    buffer_string(&m->path);
    return m->path.failed ? fail_memory() : EXIT_DONE;
}

static void print_advice(void *user, const char *line) {
    (void)user;
    note("%s", line);
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* However its words are joined: delta_net is deltanet. */
static bool same_name(const char *a, const char *b) {
    for (;; a++, b++) {
        a += strspn(a, "-_");
        b += strspn(b, "-_");
        if (lower(*a) != lower(*b)) return false;
        if (*a == '\0') return true;
    }
}

static int check_architecture(const loaded *m, const arguments *args) {
    if (args->hf_arch == NULL || same_name(args->hf_arch, m->info.architecture)) return EXIT_DONE;
    return fail("%s: the architecture is %s, not %s", m->path.data, m->info.architecture,
                args->hf_arch);
}

static int load_own_tokenizer(loaded *m, const char *path) {
    sn_status status = sn_tokenizer_load(path, &m->own);
    if (status != SN_OK) return fail_library(status, path);
    m->tokenizer = m->own;
    return EXIT_DONE;
}

static int choose_tokenizer(loaded *m, const arguments *args) {
    m->tokenizer = sn_model_tokenizer(m->model);
    if (args->tokenizer == NULL) return EXIT_DONE;
    int code = load_own_tokenizer(m, args->tokenizer);
    int32_t n = sn_tokenizer_vocab(m->tokenizer);
    if (code == EXIT_DONE && m->info.vocab > 0 && m->info.vocab != n)
        note("%s: the tokenizer has %d ids, the model %d", args->tokenizer, (int)n,
             (int)m->info.vocab);
    return code;
}

int tokenizer_open(loaded *m, const arguments *args) {
    if (args->hf_arch != NULL) { /* there is a model to check */
        int code = model_open(m, args, 0, true);
        return code == EXIT_DONE ? model_need_tokenizer(m) : code;
    }
    memset(m, 0, sizeof *m);
    int code = args->tokenizer == NULL ? choose_path(m, args) : EXIT_DONE;
    if (code != EXIT_DONE) return code;
    return load_own_tokenizer(m, args->tokenizer == NULL ? m->path.data : args->tokenizer);
}

int model_open(loaded *m, const arguments *args, int32_t n_threads, bool header_only) {
    memset(m, 0, sizeof *m);
    int code = choose_path(m, args);
    if (code != EXIT_DONE) return code;

    sn_model_options options;
    sn_model_options_init(&options);
    options.backend = args->isa;
    options.n_threads = n_threads < 0 ? 0 : n_threads;
    options.activations = (int32_t)args->activations;
    options.header_only = header_only;
    options.max_chunk = (int32_t)args->chunk;
    options.map = args->map;
    options.log = print_advice;
    progress p;
    progress_start(&p, "loading");
    options.progress = progress_report;
    options.progress_user = &p;
    sn_status status = sn_model_load(m->path.data, &options, &m->model);
    progress_end(&p);
    m->seconds = terminal_seconds() - p.started;
    if (status != SN_OK) return fail_library(status, m->path.data);

    m->info.struct_size = sizeof m->info;
    status = sn_model_get_info(m->model, &m->info);
    if (status != SN_OK) return fail_library(status, m->path.data);
    code = check_architecture(m, args);
    return code == EXIT_DONE ? choose_tokenizer(m, args) : code;
}

int model_need_tokenizer(const loaded *m) {
    if (m->tokenizer != NULL) return EXIT_DONE;
    return fail("%s: has no tokenizer: give one with --tokenizer PATH", m->path.data);
}

void model_close(loaded *m) {
    sn_model_free(m->model);
    sn_tokenizer_free(m->own);
    buffer_free(&m->path);
}

/* ---- ids ---- */

void ids_free(id_list *ids) {
    free(ids->items);
    memset(ids, 0, sizeof *ids);
}

static int ids_reserve(id_list *ids, int32_t more) {
    if (more <= ids->capacity - ids->n) return EXIT_DONE;
    if (more > INT32_MAX / 2 - ids->n) return fail("more than 2^30 tokens at once");
    int32_t capacity = ids->n + more + ids->n / 2 + 64;
    if ((size_t)capacity > SIZE_MAX / sizeof *ids->items) return fail_memory();
    int32_t *items = realloc(ids->items, (size_t)capacity * sizeof *items);
    if (items == NULL) return fail_memory();
    ids->items = items;
    ids->capacity = capacity;
    return EXIT_DONE;
}

int ids_push(id_list *ids, int32_t id) {
    int code = ids_reserve(ids, 1);
    if (code == EXIT_DONE) ids->items[ids->n++] = id;
    return code;
}

/* With room for an id a byte and a few more, one pass is enough; texts of 64 MiB take two. */
int ids_encode(id_list *ids, const sn_tokenizer *tokenizer, const char *text, size_t bytes,
               int32_t flags) {
    int32_t n = bytes < 1 << 26 ? (int32_t)bytes + 8 : 8, room;
    do {
        int code = ids_reserve(ids, n);
        if (code != EXIT_DONE) return code;
        room = ids->capacity - ids->n;
        sn_status status = sn_tokenizer_encode_with(tokenizer, text, bytes, flags,
                                                    ids->items + ids->n, room, &n);
        if (status != SN_OK) return fail_library(status, NULL);
    } while (n > room);
    ids->n += n;
    return EXIT_DONE;
}

int ids_encode_chat(id_list *ids, const sn_tokenizer *tokenizer, const char *before,
                    const char *message, size_t bytes, const char *after) {
    int32_t n = 0;
    sn_status status = sn_chat_encode(tokenizer, before, message, bytes, after, NULL, 0, &n);
    if (status != SN_OK) return fail_library(status, NULL);
    int code = ids_reserve(ids, n);
    if (code != EXIT_DONE || n == 0) return code;
    status = sn_chat_encode(tokenizer, before, message, bytes, after, ids->items + ids->n, n, &n);
    if (status != SN_OK) return fail_library(status, NULL);
    ids->n += n;
    return EXIT_DONE;
}

static int ids_parse_list(id_list *ids, const arguments *args, const char *text) {
    static const char between[] = ", \t\r\n";
    for (text += strspn(text, between); *text != '\0'; text += strspn(text, between)) {
        char word[16];
        size_t length = strcspn(text, between);
        int64_t id;
        bool good = length < sizeof word;
        if (good) {
            memcpy(word, text, length);
            word[length] = '\0';
            good = parse_int(word, 0, INT32_MAX, &id);
        }
        if (!good)
            return fail_usage(command_name(args), "--tokens wants ids like 1,2,3, not '%.*s'",
                              length > 40 ? 40 : (int)length, text);
        int code = ids_push(ids, (int32_t)id);
        if (code != EXIT_DONE) return code;
        text += length;
    }
    return EXIT_DONE;
}

int ids_parse(id_list *ids, const arguments *args, const char *text) {
    if (strcmp(text, "-") != 0) return ids_parse_list(ids, args, text);
    buffer input = {0};
    int code = read_file(text, &input);
    if (code == EXIT_DONE) code = ids_parse_list(ids, args, buffer_string(&input));
    buffer_free(&input);
    return code;
}

int id_bytes(const sn_tokenizer *tokenizer, int32_t id, buffer *b) {
    const char *bytes;
    size_t length;
    sn_status status = sn_tokenizer_token(tokenizer, id, &bytes, &length);
    if (status != SN_OK) return fail_library(status, NULL);
    buffer_append(b, bytes, length);
    return EXIT_DONE;
}

/* ---- prompts ---- */

int prompt_read(const arguments *args, buffer *text, bool *given) {
    *given = args->prompt != NULL || args->file != NULL;
    if (args->prompt != NULL && args->file != NULL)
        return fail_usage(command_name(args), "--prompt and --file exclude each other");
    if (*given && args->tokens != NULL)
        return fail_usage(command_name(args), "--%s and --tokens exclude each other",
                          args->prompt != NULL ? "prompt" : "file");
    if (args->bos && args->no_bos)
        return fail_usage(command_name(args), "--bos and --no-bos exclude each other");
    if (args->file != NULL) return read_file(args->file, text);
    if (args->prompt == NULL) return EXIT_DONE;
    if (strcmp(args->prompt, "-") == 0) return read_file("-", text);
    buffer_text(text, args->prompt);
    return text->failed ? fail_memory() : EXIT_DONE;
}

static bool file_wants_bos(const sn_tokenizer *tokenizer) {
    int32_t id, n = 0;
    return sn_tokenizer_encode_with(tokenizer, "", 0, SN_ENCODE_BEGIN, &id, 1, &n) == SN_OK &&
           n == 1;
}

/* At the front of those that were added after `start`, unless it is there already. */
static int put_bos(id_list *ids, int32_t start, int32_t bos) {
    if (ids->n > start && ids->items[start] == bos) return EXIT_DONE;
    int code = ids_push(ids, bos);
    if (code != EXIT_DONE) return code;
    memmove(ids->items + start + 1, ids->items + start,
            (size_t)(ids->n - 1 - start) * sizeof *ids->items);
    ids->items[start] = bos;
    return EXIT_DONE;
}

int prompt_ids(id_list *ids, const loaded *m, const arguments *args, const buffer *text,
               bool begins) {
    int32_t start = ids->n, bos = sn_tokenizer_bos(m->tokenizer);
    if (args->bos && bos < 0)
        return fail("%s: has no begin-of-text token for --bos", m->path.data);
    if (args->tokens == NULL && m->tokenizer == NULL)
        return fail("%s: has no tokenizer: give one with --tokenizer PATH, or ids with --tokens",
                    m->path.data);
    int code = args->tokens != NULL
                   ? ids_parse(ids, args, args->tokens)
                   : ids_encode(ids, m->tokenizer, text->data, text->size,
                                args->special ? SN_ENCODE_SPECIAL : 0);
    if (code != EXIT_DONE) return code;
    bool wanted = args->tokens == NULL && begins && !args->no_bos && bos >= 0 &&
                  file_wants_bos(m->tokenizer);
    return args->bos || wanted ? put_bos(ids, start, bos) : EXIT_DONE;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Reads the escape after a backslash at s[0..left); returns its length, 0 if it is none. */
static size_t read_escape(const char *s, size_t left, char *byte) {
    static const char letters[] = "nrt\\\"'", bytes[] = "\n\r\t\\\"'";
    if (left == 0 || s[0] == '\0') return 0;
    const char *at = strchr(letters, s[0]);
    if (at != NULL) {
        *byte = bytes[at - letters];
        return 1;
    }
    if (s[0] != 'x' || left < 3 || hex_digit(s[1]) < 0 || hex_digit(s[2]) < 0) return 0;
    *byte = (char)(hex_digit(s[1]) * 16 + hex_digit(s[2]));
    return 3;
}

void unescape(buffer *text) {
    size_t to = 0;
    for (size_t i = 0; i < text->size; i++) {
        char byte = text->data[i];
        if (byte == '\\') i += read_escape(text->data + i + 1, text->size - i - 1, &byte);
        text->data[to++] = byte;
    }
    text->size = to;
}

/* ---- states ---- */

int state_feed(sn_state *state, const int32_t *ids, int32_t n, float *logits) {
    progress p;
    progress_start(&p, "reading");
    sn_state_set_abort(state, progress_report, &p);
    sn_status status = sn_state_prefill(state, ids, n, logits);
    sn_state_set_abort(state, NULL, NULL);
    progress_end(&p);
    return status == SN_OK ? EXIT_DONE : fail_library(status, NULL);
}

int state_load(sn_state *state, sn_sampler *sampler, const arguments *args) {
    const char *path = args->state_load;
    buffer bytes = {0};
    if (args->seed_given) sampler = NULL;
    int code = read_file(path, &bytes);
    if (code == EXIT_DONE) {
        sn_status status = sn_state_restore(state, sampler, buffer_string(&bytes), bytes.size);
        if (status != SN_OK) code = fail_library(status, path);
    }
    buffer_free(&bytes);
    return code;
}

int state_save(const sn_state *state, const sn_sampler *sampler, const char *path) {
    buffer bytes = {0};
    size_t size = 0;
    sn_status status = sn_state_save(state, sampler, NULL, 0, &size);
    if (size == 0) return fail_library(status, path);
    if (!buffer_reserve(&bytes, size)) return fail_memory();
    status = sn_state_save(state, sampler, bytes.data, bytes.capacity, &size);
    sink file;
    int code = status == SN_OK ? sink_open(&file, path) : fail_library(status, path);
    if (code == EXIT_DONE) code = sink_close(&file, sink_write(&file, bytes.data, size));
    buffer_free(&bytes);
    return code;
}

/* ---- sampling ---- */

int sampler_open(sn_sampler **sampler, const arguments *args, const loaded *m, int64_t *seed) {
    sn_logit_bias bias[MAX_BIAS + 1];
    int32_t n_bias = args->bias.n, eos = sn_tokenizer_eos(m->tokenizer);
    memcpy(bias, args->bias.items, (size_t)n_bias * sizeof *bias);
    if (args->ignore_eos && eos >= 0) bias[n_bias++] = (sn_logit_bias){eos, -INFINITY};

    sn_sampler_options options;
    sn_sampler_options_init(&options);
    options.temperature = (float)args->temperature;
    options.top_k = (int32_t)args->top_k;
    options.top_p = (float)args->top_p;
    options.min_p = (float)args->min_p;
    options.repetition_penalty = (float)args->repeat_penalty;
    options.presence_penalty = (float)args->presence_penalty;
    options.frequency_penalty = (float)args->frequency_penalty;
    options.penalty_last_n = (int32_t)args->repeat_last_n;
    options.seed = args->seed < 0 ? terminal_random() : (uint64_t)args->seed;
    options.bias = bias;
    options.n_bias = n_bias;
    *seed = args->state_load != NULL && !args->seed_given ? -1 : (int64_t)options.seed;
    sn_status status = sn_sampler_new(m->info.vocab, m->tokenizer, &options, sampler);
    return status == SN_OK ? EXIT_DONE : fail_library(status, NULL);
}

float *floats_new(size_t rows, size_t n) {
    if (n != 0 && rows > SIZE_MAX / sizeof(float) / n) return NULL;
    return malloc(rows * n * sizeof(float));
}
