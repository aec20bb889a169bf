#include "open.h"

#include "../platform.h"
#include "config.h"
#include "folder.h"
#include "opening.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_BYTES ((size_t)16 << 20)

static const sn_importer *const importers[] = {
    &sn_import_rwkv7, &sn_import_rwkv7_fla, &sn_import_mamba2, &sn_import_mamba,
    &sn_import_deltanet, &sn_import_gated_deltanet, &sn_import_gla, &sn_import_hgrn2,
    &sn_import_sunnynet,
};

#define N_IMPORTERS (sizeof importers / sizeof importers[0])

static void close_opening(sn_opening *o) {
    sn_free(o->folder);
    sn_store_free(o->store);
    sn_build_free(o->build);
    sn_json_free(o->document);
    sn_free(o->origins);
}

static const sn_json *config_of(const sn_opening *o) {
    return o->document ? sn_json_root(o->document) : NULL;
}

/* ---- files that belong to it -------------------------------------------------------- */

bool sn_opened_from(const sn_gguf *gguf, const char *path) {
    for (uint64_t i = 0; i < gguf->n_parts; i++)
        if (gguf->parts[i].path && sn_platform_same_file(gguf->parts[i].path, path)) return true;
    for (const char *origin = gguf->origins; origin && *origin; origin += strlen(origin) + 1)
        if (sn_platform_same_file(origin, path)) return true;
    return false;
}

/* Files beside the weights that a tokenizer may be made from, whether they were needed or not. */
static sn_status note_companion(void *user, const char *name) {
    static const char *const beginnings[] = { "tokenizer", "rwkv_vocab", "generation_config",
                                              "special_tokens", "chat_template" };
    sn_opening *o = user;
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) != 0) continue;
        char *path = sn_path_join(o->folder, name);
        sn_status status = path ? sn_opening_add_origin(o, path) : SN_E_NOMEM;
        sn_free(path);
        return status;
    }
    return SN_OK;
}

static sn_status read_config(sn_opening *o) {
    char *path = sn_path_join(o->folder, "config.json");
    if (!path) return SN_E_NOMEM;
    sn_status status = SN_OK;
    if (sn_path_exists(path)) {
        status = sn_opening_add_origin(o, path);
        if (status == SN_OK) status = sn_opening_read_json(path, CONFIG_BYTES, &o->document);
    }
    sn_free(path);
    return status;
}

/* ---- which model it is -------------------------------------------------------------- */

/* "rwkv7, mamba2, ...": each once. */
static const char *supported(char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < N_IMPORTERS && at < size; i++) {
        const char *name = importers[i]->architecture;
        if (i && strcmp(name, importers[i - 1]->architecture) == 0) continue;
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", name);
    }
    return text;
}

static sn_status find_importer(const sn_source_model *source, const sn_importer **importer) {
    char list[200];
    const sn_json *type = sn_config_get(source, "model_type");
    if (type && type->kind != SN_JSON_STRING) return sn_config_unsupported(source, "model_type");
    for (size_t i = 0; i < N_IMPORTERS; i++) {
        if (!importers[i]->recognises(source)) continue;
        *importer = importers[i];
        return SN_OK;
    }
    const char *kind = sn_config_kind(source);
    if (kind)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: models of the kind '%.60s' are not supported "
                       "(supported: %s)", source->name, kind, supported(list, sizeof list));
    if (sn_store_count(source->store) == 0)
        return sn_fail(SN_E_FORMAT, "%.300s: holds no tensors", source->name);
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%.100s' and the others are those of no "
                   "supported model (supported: %s)", source->name,
                   sn_store_at(source->store, 0)->name, supported(list, sizeof list));
}

static sn_status put_text(sn_build *build, const char *key, const char *text) {
    if (!*text || sn_build_has(build, key)) return SN_OK;
    return sn_build_text(build, key, text, strlen(text));
}

/* general.name: what the config calls it, if that is no path, else the file's or folder's name. */
static sn_status declare_name(sn_opening *o) {
    const sn_json *given = sn_json_get(config_of(o), "_name_or_path");
    if (given && given->kind == SN_JSON_STRING && sn_path_is_plain(given->text, given->size))
        return put_text(o->build, "general.name", given->text);
    char *stem = sn_path_stem(o->name, o->is_folder);
    sn_status status = stem ? put_text(o->build, "general.name", stem) : SN_E_NOMEM;
    sn_free(stem);
    return status;
}

static sn_status declare_model(sn_opening *o) {
    const sn_importer *importer = NULL;
    sn_source_model source = { .name = o->name, .store = o->store, .config = config_of(o) };
    if (o->is_blob) return declare_name(o); /* the rest is done */
    SN_TRY(find_importer(&source, &importer));
    SN_TRY(importer->declare(&source, o->build));
    SN_TRY(put_text(o->build, "general.architecture", importer->architecture));
    return declare_name(o);
}

/*
 * A tokenizer that lies beside the model. One that is not supported is no obstacle: the model runs
 * on ids, and the reason goes where the tokenizer's reader finds it.
 */
static sn_status declare_tokenizer(sn_opening *o, bool *found) {
    uint64_t n_vocab = sn_build_rows(o->build, "token_embd.weight");
    *found = false;
    if (!o->folder) return SN_OK;
    sn_status status = sn_import_tokenizer(o->folder, n_vocab, config_of(o), o->build, found);
    if (status == SN_E_UNSUPPORTED && !sn_build_has(o->build, "tokenizer.ggml.model"))
        status = put_text(o->build, "sunnynet.tokenizer.problem", sn_last_error());
    return status == SN_OK && *found ? sn_platform_list(o->folder, note_companion, o) : status;
}

/* ---- the stream --------------------------------------------------------------------- */

static sn_status begin(sn_opening *o) {
    SN_TRY(sn_store_new(&o->store));
    return sn_build_new(o->name, &o->build);
}

/* Hands store, build and origins over to the stream. */
static sn_status finish(sn_opening *o, sn_gguf *gguf) {
    sn_input input;
    sn_build *build = o->build;
    sn_store *store = o->store;
    o->build = NULL;
    o->store = NULL;
    SN_TRY(sn_build_input(build, store, &input));
    SN_TRY(sn_gguf_read(&input, gguf));
    gguf->origins = o->origins;
    o->origins = NULL;
    return SN_OK;
}

static sn_status declare_and_finish(sn_opening *o, sn_gguf *gguf) {
    bool found;
    SN_TRY(declare_model(o));
    SN_TRY(declare_tokenizer(o, &found));
    return finish(o, gguf);
}

static sn_status open_weights(sn_opening *o, const char *path, bool is_index, sn_gguf *gguf) {
    SN_TRY(begin(o));
    SN_TRY(read_config(o));
    SN_TRY(is_index ? sn_opening_add_shards(o, path) : sn_opening_add_file(o, path));
    return declare_and_finish(o, gguf);
}

static bool is_gguf(const sn_file *file) {
    char magic[4];
    return file->size >= 4 && sn_file_read(file, 0, magic, 4) == SN_OK &&
           memcmp(magic, "GGUF", 4) == 0;
}

/* True if the file is GGUF; its reader finds the other parts of a split file by itself. */
static sn_status look_for_gguf(const char *path, bool *found) {
    sn_file file;
    SN_TRY(sn_platform_open_file(path, &file));
    *found = is_gguf(&file);
    sn_file_close(&file);
    return SN_OK;
}

static sn_status open_file(sn_opening *o, const char *path, bool is_index, sn_gguf *gguf) {
    bool ready = false;
    if (!is_index) SN_TRY(look_for_gguf(path, &ready));
    if (ready) return sn_gguf_open(path, gguf);
    return open_weights(o, path, is_index, gguf);
}

static sn_status open_folder(sn_opening *o, sn_gguf *gguf) {
    char *path;
    bool is_index;
    SN_TRY(sn_folder_weights(o->name, &path, &is_index));
    if (!path)
        return sn_fail(SN_E_FORMAT, "%.300s: holds no model (model.safetensors, "
                       "pytorch_model.bin, *.safetensors, *.pth, *.pt, *.gguf)", o->name);
    o->folder = sn_path_copy(o->name);
    sn_status status = o->folder ? open_file(o, path, is_index, gguf) : SN_E_NOMEM;
    sn_free(path);
    return status;
}

sn_status sn_open_model(const char *path, sn_gguf *gguf) {
    sn_opening o = { .name = path, .is_folder = sn_platform_is_folder(path) };
    sn_status status;
    if (o.is_folder) {
        status = open_folder(&o, gguf);
    } else {
        o.folder = sn_path_folder(path);
        status = o.folder ? open_file(&o, path, false, gguf) : SN_E_NOMEM;
    }
    close_opening(&o);
    return status;
}

static sn_status open_blob(sn_opening *o, sn_gguf *gguf) {
    sn_file file;
    SN_TRY(begin(o));
    SN_TRY(sn_platform_open_file(o->name, &file));
    if (!sn_blob_smells(&file)) {
        sn_file_close(&file);
        return sn_fail(SN_E_FORMAT, "%.300s: not a packed blob", o->name);
    }
    SN_TRY(sn_opening_add_weights(o, &file));
    return declare_and_finish(o, gguf); /* without a folder: no tokenizer */
}

sn_status sn_open_blob(const char *path, sn_gguf *gguf) {
    sn_opening o = { .name = path };
    const sn_status status = open_blob(&o, gguf);
    close_opening(&o);
    return status;
}

/* ---- from memory -------------------------------------------------------------------- */

typedef struct memory_stream {
    sn_memory_cursor cursor; /* first: it is what reads */
    char *name;
} memory_stream;

static void close_memory_stream(void *user) {
    memory_stream *stream = user;
    sn_free(stream->name);
    sn_free(stream);
}

/* The caller may forget the name; the bytes stay. */
static sn_status open_gguf_memory(const char *name, const void *data, size_t bytes,
                                  sn_gguf *gguf) {
    memory_stream *stream = sn_alloc(sizeof *stream);
    char *copied = sn_path_copy(name);
    if (!stream || !copied) {
        sn_free(stream);
        sn_free(copied);
        return SN_E_NOMEM;
    }
    sn_input input;
    stream->name = copied;
    sn_input_from_memory(&input, copied, data, bytes, &stream->cursor);
    input.close = close_memory_stream;
    return sn_gguf_read(&input, gguf);
}

sn_status sn_open_model_memory(const char *name, const void *data, size_t bytes, sn_gguf *gguf) {
    sn_opening o = { .name = name };
    sn_file file;
    sn_file_from_memory(&file, name, data, bytes);
    if (is_gguf(&file)) return open_gguf_memory(name, data, bytes, gguf);
    sn_status status = begin(&o);
    if (status == SN_OK) status = sn_opening_add_weights(&o, &file);
    if (status == SN_OK) status = declare_and_finish(&o, gguf);
    close_opening(&o);
    return status;
}

/* ---- only the tokenizer ------------------------------------------------------------- */

/* general.architecture: of the model that the config describes, by our name if there is one. */
static sn_status declare_kind(sn_opening *o) {
    sn_source_model source = { .name = o->name, .store = o->store, .config = config_of(o) };
    const char *kind = sn_config_kind(&source);
    for (size_t i = 0; kind && i < N_IMPORTERS; i++)
        if (importers[i]->recognises(&source)) {
            kind = importers[i]->architecture;
            break;
        }
    return kind ? put_text(o->build, "general.architecture", kind) : SN_OK;
}

static sn_status open_beside(sn_opening *o, sn_gguf *gguf) {
    bool found;
    SN_TRY(begin(o));
    SN_TRY(read_config(o));
    SN_TRY(declare_kind(o));
    SN_TRY(declare_name(o));
    SN_TRY(sn_import_tokenizer(o->folder, 0, config_of(o), o->build, &found));
    if (found) return finish(o, gguf);
    return sn_fail(SN_E_FORMAT, "%.300s: no tokenizer lies there (tokenizer.json, "
                   "tokenizer.model, rwkv_vocab*.txt)", o->name);
}

static sn_status open_tokenizer_file(sn_opening *o, sn_gguf *gguf) {
    SN_TRY(begin(o));
    SN_TRY(declare_name(o));
    SN_TRY(sn_import_tokenizer_file(o->name, 0, o->build));
    return finish(o, gguf);
}

/* The GGUF file of a folder, which has the tokenizer inside; *path is NULL if there is none. */
static sn_status find_gguf(const char *folder, char **path) {
    bool is_index, ready = false;
    SN_TRY(sn_folder_weights(folder, path, &is_index));
    sn_status status = *path && !is_index ? look_for_gguf(*path, &ready) : SN_OK;
    if (ready && status == SN_OK) return SN_OK;
    sn_free(*path);
    *path = NULL;
    return status;
}

static sn_status open_tokenizer_folder(sn_opening *o, sn_gguf *gguf) {
    char *path = NULL;
    o->folder = sn_path_copy(o->name);
    if (!o->folder) return SN_E_NOMEM;
    if (find_gguf(o->folder, &path) != SN_OK || !path) return open_beside(o, gguf);
    sn_status status = sn_gguf_open(path, gguf);
    sn_free(path);
    return status;
}

static sn_status open_tokenizer(sn_opening *o, sn_gguf *gguf) {
    sn_file file;
    if (o->is_folder) return open_tokenizer_folder(o, gguf);
    SN_TRY(sn_platform_open_file(o->name, &file));
    bool ready = is_gguf(&file);
    bool weights = sn_safetensors_smells(&file) || sn_pickle_smells(&file) || sn_blob_smells(&file);
    sn_file_close(&file);
    if (ready) return sn_gguf_open(o->name, gguf);
    if (!weights) return open_tokenizer_file(o, gguf);
    o->folder = sn_path_folder(o->name);
    return o->folder ? open_beside(o, gguf) : SN_E_NOMEM;
}

sn_status sn_open_tokenizer(const char *path, sn_gguf *gguf) {
    sn_opening o = { .name = path, .is_folder = sn_platform_is_folder(path) };
    sn_status status = open_tokenizer(&o, gguf);
    close_opening(&o);
    return status;
}
