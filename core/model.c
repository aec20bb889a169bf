/*
 * model.c: from a file to an immutable model, and what can be asked about it.
 */
#include "model.h"

#include "fpenv.h"
#include "import/open.h"
#include "load.h"
#include "platform.h"
#include "text/tokenizer.h"
#include "worker.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_CHUNK 48 /* whole tiles of 4, 6 and 8 tokens */
#define MOST_MAX_CHUNK 4096
#define CACHE_BYTES (24 << 20) /* weights up to here live in a cache: one thread is fastest */

/* ---- architectures -------------------------------------------------------------------------- */

static const sn_arch *const architectures[] = {
    &sn_arch_rwkv7, &sn_arch_mamba2, &sn_arch_mamba, &sn_arch_deltanet, &sn_arch_gated_deltanet,
    &sn_arch_gla, &sn_arch_hgrn2, &sn_arch_sunnynet,
};
#define N_ARCHITECTURES (sizeof architectures / sizeof architectures[0])

const sn_arch *sn_arch_find(sn_span name) {
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (strlen(architectures[i]->name) == name.size &&
            memcmp(architectures[i]->name, name.data, name.size) == 0)
            return architectures[i];
    return NULL;
}

const char *sn_arch_list(void) {
    return "rwkv7, mamba2, mamba, deltanet, gated-deltanet, gla, hgrn2, sunnynet";
}

sn_status sn_arch_refuse(const char *file, const char *architecture) {
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: architecture '%.64s' is not supported (supported: "
                   "%s)", file, architecture, sn_arch_list());
}

/* ---- options --------------------------------------------------------------------------------- */

void sn_model_options_init(sn_model_options *options) {
    if (!options) return;
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

static sn_status check_options(const sn_model_options *given, sn_model_options *options) {
    sn_model_options_init(options);
    if (!given) return SN_OK;
    if (given->struct_size < sizeof *options)
        return sn_fail(SN_E_INVAL, "model options: struct_size is %u, expected %zu",
                       (unsigned)given->struct_size, sizeof *options);
    *options = *given;
    if (options->activations != SN_ACTIVATIONS_INT8 && options->activations != SN_ACTIVATIONS_F32)
        return sn_fail(SN_E_INVAL, "model options: activations is %d", (int)options->activations);
    if (options->map != 0 && options->map != 1)
        return sn_fail(SN_E_INVAL, "model options: map is %d", (int)options->map);
    if (options->n_threads < 0)
        return sn_fail(SN_E_INVAL, "model options: n_threads is %d", (int)options->n_threads);
    if (options->max_chunk < 0 || options->max_chunk > MOST_MAX_CHUNK)
        return sn_fail(SN_E_INVAL, "model options: max_chunk is %d, outside 0..%d",
                       (int)options->max_chunk, MOST_MAX_CHUNK);
    return SN_OK;
}

/* ---- back ends ------------------------------------------------------------------------------- */

static sn_status find_backend(const char *name, const sn_simd **out) {
    const sn_simd *table = name ? sn_simd_find(name) : sn_simd_best();
    if (!table)
        return sn_fail(SN_E_UNSUPPORTED, "back end '%.40s' is not part of this library", name);
    if (!sn_simd_usable(table))
        return sn_fail(SN_E_UNSUPPORTED, "back end '%s': this CPU or its operating system cannot "
                       "run it", name);
    *out = table;
    return SN_OK;
}

int32_t sn_backend_count(void) {
    int32_t n = 0;
    while (sn_simd_at((size_t)n)) n++;
    return n;
}

const char *sn_backend_name(int32_t index) {
    const sn_simd *table = index < 0 ? NULL : sn_simd_at((size_t)index);
    return table ? table->name : NULL;
}

int32_t sn_backend_usable(int32_t index) {
    const sn_simd *table = index < 0 ? NULL : sn_simd_at((size_t)index);
    return table && sn_simd_usable(table);
}

sn_status sn_backend_default(const char **name) {
    const sn_simd *table;
    if (!name) return sn_fail(SN_E_INVAL, "name is NULL");
    SN_TRY(find_backend(sn_simd_wanted(), &table));
    *name = table->name;
    return SN_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

static sn_status copy_text(const sn_gguf *gguf, const char *key, char **out) {
    sn_span text = { "", 0 };
    SN_TRY(sn_gguf_get_text(gguf, key, false, &text));
    *out = sn_alloc(text.size + 1); /* zeroed, so terminated */
    if (!*out) return SN_E_NOMEM;
    memcpy(*out, text.data, text.size);
    return SN_OK;
}

static sn_status record_tensors(const sn_gguf *gguf, sn_model *m) {
    m->n_tensors = (size_t)gguf->n_tensors;
    m->tensors = sn_alloc_array(m->n_tensors, sizeof *m->tensors);
    if (!m->tensors) return SN_E_NOMEM;
    for (size_t i = 0; i < m->n_tensors; i++) {
        const sn_gguf_tensor *from = &gguf->tensors[i];
        sn_tensor_record *to = &m->tensors[i];
        double elements = 1;
        strncpy(to->name, from->name, sizeof to->name - 1); /* the reader bounds names */
        to->type = sn_type_find(from->type);
        to->n_dims = from->n_dims;
        for (uint32_t d = 0; d < 4; d++) to->dims[d] = d < from->n_dims ? from->dims[d] : 1;
        for (uint32_t d = 0; d < 4; d++) elements *= (double)to->dims[d];
        to->file_bytes = from->bytes;
        m->parameters += elements;
    }
    return SN_OK;
}

static sn_status set_up_execution(sn_model *m, const sn_model_options *options) {
    int32_t threads = options->n_threads;
    SN_TRY(find_backend(options->backend, &m->simd)); /* named by sn_model_check_options */
    m->threads_reason = threads ? SN_THREADS_ASKED : SN_THREADS_CORES;
    if (!threads && m->weight_bytes <= CACHE_BYTES) {
        m->threads_reason = SN_THREADS_CACHE;
        threads = 1;
    }
    return sn_pool_new(threads ? threads : sn_platform_cores(), &m->pool);
}

static void advise(const sn_model_options *options, const char *line) {
    if (!options->log) return;
    const sn_fpenv ours = sn_fpenv_enter(); /* the callback may change it */
    options->log(options->log_user, line);
    sn_fpenv_leave(ours);
}

/* A model whose tokenizer is not supported still runs on ids. */
static sn_status read_tokenizer(const sn_gguf *gguf, const sn_model_options *options,
                                sn_model *m) {
    const sn_status status = sn_tokenizer_from_gguf(gguf, &m->tokenizer);
    if (m->tokenizer && *sn_tokenizer_advice(m->tokenizer))
        advise(options, sn_tokenizer_advice(m->tokenizer));
    if (status != SN_E_UNSUPPORTED) return status;
    m->tokenizer = NULL;
    advise(options, sn_last_error());
    return SN_OK;
}

/* Ids that the model does not have would be refused one by one later: say it at once. */
static void compare_vocabularies(const sn_gguf *gguf, const sn_model_options *options,
                                 const sn_model *m) {
    char line[400];
    if (!m->arch || !m->tokenizer || sn_tokenizer_vocab(m->tokenizer) == m->vocab) return;
    snprintf(line, sizeof line, "%.300s: the tokenizer has %d ids, the model %d",
             sn_gguf_name(gguf), (int)sn_tokenizer_vocab(m->tokenizer), (int)m->vocab);
    advise(options, line);
}

/* A file that cannot be run can still be looked at, and its tokenizer used. */
static sn_status find_architecture(const sn_gguf *gguf, const sn_model_options *options,
                                   sn_model *m) {
    const char *key = "general.architecture";
    sn_span name = { "", 0 };
    SN_TRY(sn_gguf_get_text(gguf, key, !options->header_only, &name));
    SN_TRY(copy_text(gguf, key, &m->architecture));
    if (options->header_only && gguf->n_tensors == 0) return SN_OK; /* a vocabulary alone */
    m->arch = sn_arch_find(name);
    if (m->arch) return SN_OK;
    const sn_status refused = sn_arch_refuse(sn_gguf_name(gguf), m->architecture);
    if (!options->header_only) return refused;
    if (name.size) advise(options, sn_last_error());
    return SN_OK;
}

/* Everything but the tensors' data. */
static sn_status describe(const sn_gguf *gguf, const sn_model_options *options, sn_model *m) {
    SN_TRY(find_architecture(gguf, options, m));
    m->f32_activations = options->activations == SN_ACTIVATIONS_F32;
    m->max_chunk = options->max_chunk ? options->max_chunk : DEFAULT_MAX_CHUNK;
    m->file_bytes = (double)gguf->file_bytes;
    SN_TRY(copy_text(gguf, "general.name", &m->name));
    SN_TRY(copy_text(gguf, "tokenizer.chat_template", &m->chat_template));
    SN_TRY(read_tokenizer(gguf, options, m));
    return record_tensors(gguf, m);
}

sn_status sn_model_begin(const sn_gguf *gguf, const sn_model_options *options, size_t most,
                         sn_model **model, sn_loader **out) {
    sn_loader *loader = NULL;
    sn_model *m = sn_alloc(sizeof *m);
    if (!m) return SN_E_NOMEM;
    sn_status status = describe(gguf, options, m);
    if (status == SN_OK) status = sn_load_begin(gguf, m, options, most, &loader);
    if (status == SN_OK && !options->header_only) status = set_up_execution(m, options);
    if (status != SN_OK) {
        sn_load_free(loader);
        sn_model_free(m);
        return status;
    }
    compare_vocabularies(gguf, options, m);
    *model = m;
    *out = loader;
    return SN_OK;
}

/* Decodes vectors, so it runs under our floating-point environment. */
SN_WORKER static sn_status load(const sn_gguf *gguf, const sn_model_options *options,
                                sn_model **out) {
    sn_model *m;
    sn_loader *loader;
    SN_TRY(sn_model_begin(gguf, options, SN_PIECES_AT_ONCE, &m, &loader));
    const sn_status status = sn_load_read(loader, gguf, m->pool);
    sn_load_free(loader);
    if (status == SN_OK) *out = m;
    else sn_model_free(m);
    return status;
}

sn_status sn_model_from(sn_gguf *gguf, const sn_model_options *options, sn_model **out) {
    const sn_fpenv saved = sn_fpenv_enter();
    const sn_status status = load(gguf, options, out);
    sn_fpenv_leave(saved);
    sn_gguf_close(gguf);
    return status;
}

sn_status sn_model_check_options(const sn_model_options *given, sn_model_options *options) {
    const sn_simd *table;
    SN_TRY(check_options(given, options));
    SN_TRY(find_backend(options->backend ? options->backend : sn_simd_wanted(), &table));
    options->backend = table->name; /* loading in steps outlives the caller's text */
    return SN_OK;
}

static sn_status prepare(const sn_model_options *given, const void *source, sn_model **model,
                         sn_model_options *options) {
    if (!source || !model) return sn_fail(SN_E_INVAL, "%s is NULL", model ? "source" : "model");
    return sn_model_check_options(given, options);
}

sn_status sn_model_load(const char *path, const sn_model_options *given, sn_model **model) {
    sn_model_options options;
    sn_gguf gguf = { 0 };
    SN_TRY(prepare(given, path, model, &options));
    SN_TRY(options.header_only ? sn_open_header(path, &gguf) : sn_open_model(path, &gguf));
    return sn_model_from(&gguf, &options, model);
}

sn_status sn_model_load_memory(const void *data, size_t size, const sn_model_options *given,
                               sn_model **model) {
    sn_model_options options;
    sn_gguf gguf = { 0 };
    SN_TRY(prepare(given, data, model, &options));
    SN_TRY(sn_open_model_memory("model", data, size, &gguf));
    return sn_model_from(&gguf, &options, model);
}

/* The caller's callback may change the floating-point environment, in the middle of a load. */
static size_t read_source(void *user, void *buffer, size_t bytes) {
    const sn_source *source = user;
    const sn_fpenv before = sn_fpenv_enter();
    const size_t got = source->read(source->user, buffer, bytes);
    sn_fpenv_leave(before);
    return got;
}

/* Bytes that have been read already, then those of another input. */
typedef struct resumed {
    sn_memory_cursor first;
    sn_input *rest;
} resumed;

static size_t read_resumed(void *user, void *buffer, size_t bytes) {
    resumed *r = user;
    if (!r->first.left) return r->rest->read(r->rest->user, buffer, bytes);
    const size_t n = bytes < r->first.left ? bytes : r->first.left;
    memcpy(buffer, r->first.data, n);
    r->first.data += n;
    r->first.left -= n;
    return n;
}

/* Other formats than GGUF are read back and forth, so all of the file has to be there. */
static sn_status load_whole(sn_input *input, const uint8_t *first, size_t n_first,
                            const sn_model_options *options, sn_model **model) {
    sn_gguf gguf = { 0 };
    SN_TRY(sn_open_check_beginning(input->name, first, n_first, input->size));
    if (input->size > SIZE_MAX)
        return sn_fail(SN_E_NOMEM, "%.300s: larger than the address space", input->name);
    uint8_t *bytes = sn_alloc((size_t)input->size);
    if (!bytes) return SN_E_NOMEM;
    memcpy(bytes, first, n_first);
    sn_status status = sn_input_read(input, bytes + n_first, (size_t)input->size - n_first);
    if (status == SN_OK)
        status = sn_open_model_memory(input->name, bytes, (size_t)input->size, &gguf);
    if (status == SN_OK) status = sn_model_from(&gguf, options, model);
    sn_free(bytes);
    return status;
}

sn_status sn_model_load_source(const sn_source *source, const sn_model_options *given,
                               sn_model **model) {
    sn_model_options options;
    sn_gguf gguf = { 0 };
    uint8_t first[SN_BEGINNING_BYTES] = { 0 };
    SN_TRY(prepare(given, source, model, &options));
    if (source->struct_size < sizeof *source || !source->read)
        return sn_fail(SN_E_INVAL, "source: %s", source->read ? "struct_size is too small"
                                                               : "read is NULL");
    sn_source own = *source;
    sn_input input = { .name = source->name ? source->name : "model", .size = source->size,
                       .read = read_source, .user = &own };
    const size_t n = input.size < sizeof first ? (size_t)input.size : sizeof first;
    SN_TRY(sn_input_read(&input, first, n));
    if (n < 4 || memcmp(first, "GGUF", 4) != 0)
        return load_whole(&input, first, n, &options, model);
    resumed r = { { .data = first, .left = n }, &input };
    sn_input whole = { .name = input.name, .size = input.size, .read = read_resumed, .user = &r };
    SN_TRY(sn_gguf_read(&whole, &gguf));
    return sn_model_from(&gguf, &options, model);
}

void sn_model_free(sn_model *model) {
    if (!model) return;
    sn_pool_free(model->pool);
    sn_weights_free(model->memory);
    sn_tokenizer_destroy(model->tokenizer);
    sn_free(model->weights);
    sn_free(model->tensors);
    sn_free(model->architecture);
    sn_free(model->name);
    sn_free(model->chat_template);
    sn_free(model);
}

/* ---- asking ---------------------------------------------------------------------------------- */

int32_t sn_model_vocab(const sn_model *model) {
    return model ? model->vocab : 0;
}

const sn_tokenizer *sn_model_tokenizer(const sn_model *model) {
    return model ? model->tokenizer : NULL;
}

sn_status sn_model_get_info(const sn_model *m, sn_model_info *info) {
    if (!m || !info) return sn_fail(SN_E_INVAL, "%s is NULL", m ? "info" : "model");
    if (info->struct_size < sizeof *info)
        return sn_fail(SN_E_INVAL, "model info: struct_size is %u, expected %zu",
                       (unsigned)info->struct_size, sizeof *info);
    *info = (sn_model_info){
        .struct_size = info->struct_size,
        .architecture = m->architecture,
        .name = m->name,
        .backend = m->simd ? m->simd->name : "",
        .chat_template = m->chat_template,
        .n_layers = m->n_layers, .n_embd = m->n_embd, .n_ffn = m->n_ffn, .n_heads = m->n_heads,
        .head_size = m->head_size, .vocab = m->vocab,
        .activations = m->f32_activations ? SN_ACTIVATIONS_F32 : SN_ACTIVATIONS_INT8,
        .n_threads = m->pool ? sn_pool_threads(m->pool) : 0,
        .max_chunk = m->max_chunk,
        .parameters = m->parameters,
        .file_bytes = m->file_bytes,
        .resident_bytes = (double)m->weight_bytes,
        .state_bytes = (double)m->state_floats * sizeof(float),
        .bytes_per_token = m->matrix_bytes + m->vector_bytes + m->row_bytes,
    };
    return SN_OK;
}

sn_status sn_model_get_run(const sn_model *m, sn_model_run *run) {
    if (!m || !run) return sn_fail(SN_E_INVAL, "%s is NULL", m ? "run" : "model");
    if (run->struct_size < sizeof *run)
        return sn_fail(SN_E_INVAL, "model run: struct_size is %u, expected %zu",
                       (unsigned)run->struct_size, sizeof *run);
    if (!m->memory) return sn_fail(SN_E_INVAL, "the model was loaded without its weights");
    const bool cores = m->threads_reason == SN_THREADS_CORES;
    *run = (sn_model_run){
        .struct_size = run->struct_size,
        .n_threads = sn_pool_threads(m->pool),
        .threads_reason = cores ? sn_platform_cores_reason() : m->threads_reason,
        .weight_bytes = (double)m->weight_bytes,
        .mapped_bytes = sn_weights_mapped_bytes(m->memory),
        .huge_bytes = sn_weights_huge_bytes(m->memory),
    };
    return SN_OK;
}

sn_status sn_model_read_weights(const sn_model *m, int32_t alone, double *bytes) {
    if (!m || !bytes) return sn_fail(SN_E_INVAL, "%s is NULL", m ? "bytes" : "model");
    if (!m->memory) return sn_fail(SN_E_INVAL, "the model was loaded without its weights");
    *bytes = sn_weights_read(m->memory, alone ? NULL : m->pool);
    return SN_OK;
}

int32_t sn_model_tensor_count(const sn_model *model) {
    return model ? (int32_t)model->n_tensors : 0;
}

sn_status sn_model_get_tensor(const sn_model *m, int32_t index, sn_tensor_info *info) {
    if (!m || !info) return sn_fail(SN_E_INVAL, "%s is NULL", m ? "info" : "model");
    if (info->struct_size < sizeof *info)
        return sn_fail(SN_E_INVAL, "tensor info: struct_size is %u, expected %zu",
                       (unsigned)info->struct_size, sizeof *info);
    if (index < 0 || (size_t)index >= m->n_tensors)
        return sn_fail(SN_E_INVAL, "tensor %d is none of the %zu", (int)index, m->n_tensors);
    const sn_tensor_record *t = &m->tensors[index];
    *info = (sn_tensor_info){
        .struct_size = info->struct_size,
        .name = t->name,
        .type = t->type->name,
        .n_dims = (int32_t)t->n_dims,
        .file_bytes = (double)t->file_bytes,
        .resident_bytes = (double)t->resident_bytes,
    };
    for (int d = 0; d < 4; d++) info->dims[d] = (double)t->dims[d];
    return SN_OK;
}
