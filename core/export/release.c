/*
 * release.c: the files of a release, made from a SunnyNet checkpoint: a copy, safetensors, the
 * packed blob, the tokenizer, and a card that lists them. Nothing in them depends on the time, the
 * machine or where the files lie.
 */
#include "../formats/store.h"
#include "../import/import.h"
#include "../platform.h"
#include "../worker.h"
#include "card.h"
#include "export.h"
#include "safetensors.h"

#include <stdio.h>
#include <string.h>

#define COPY_BYTES ((size_t)1 << 20)
#define STEPS 4.0 /* for the progress: copy, safetensors, blob, card */

typedef struct release {
    const char *checkpoint, *folder;
    const sn_release_options *options;
    char *name;  /* of the model */
    char *paths; /* room for `path` and for the folder of the checkpoint */
    size_t path_bytes;
    sn_store *store;
    sn_build *build;
    sn_json_document *config, *summary;
    sn_card card;
} release;

/* ---- paths --------------------------------------------------------------------------------- */

/* Where the file name begins. */
static size_t base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool ends_in(const char *name, size_t length, const char *suffix) {
    const size_t n = strlen(suffix);
    return length > n && !memcmp(name + length - n, suffix, n);
}

static sn_status choose_name(release *r) {
    const char *name = r->options->name;
    if (!name) name = r->checkpoint + base_of(r->checkpoint);
    size_t length = strlen(name);
    if (!r->options->name && ends_in(name, length, ".pt")) length -= 3;
    bool is_file_name = length > 0 && length <= 200 && name[0] != '.';
    for (size_t i = 0; i < length; i++)
        is_file_name &= name[i] != '/' && name[i] != '\\' && (unsigned char)name[i] >= 0x20;
    if (!is_file_name)
        return sn_fail(SN_E_INVAL, "%.300s: '%.200s' cannot be the name of a release",
                       r->checkpoint, name);
    r->path_bytes = strlen(r->folder) + strlen(r->checkpoint) + 300;
    r->name = sn_alloc(length + 1);
    r->paths = sn_alloc_array(2, r->path_bytes);
    if (!r->name || !r->paths) return SN_E_NOMEM;
    memcpy(r->name, name, length);
    return SN_OK;
}

/* "<folder>/<stem><suffix>", valid until the next one. */
static const char *path_of(release *r, const char *stem, const char *suffix) {
    snprintf(r->paths, r->path_bytes, "%s/%s%s", r->folder, stem, suffix);
    return r->paths;
}

/* A file beside the checkpoint. */
static const char *path_beside(release *r, const char *file) {
    char *path = r->paths + r->path_bytes;
    snprintf(path, r->path_bytes, "%.*s%s", (int)base_of(r->checkpoint), r->checkpoint, file);
    return path;
}

static bool exists(const char *path) {
    return sn_platform_same_file(path, path);
}

static sn_status report(const release *r, double done) {
    if (!sn_asked_to_stop(r->options->progress, r->options->progress_user, done, STEPS))
        return SN_OK;
    return sn_fail(SN_E_ABORTED, "%.300s: the release was stopped", r->checkpoint);
}

/* ---- copies -------------------------------------------------------------------------------- */

static sn_status copy_bytes(sn_input *input, sn_output *output, char *buffer) {
    while (sn_input_left(input)) {
        const uint64_t left = sn_input_left(input);
        const size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        SN_TRY(sn_input_read(input, buffer, n));
        SN_TRY(sn_output_write(output, buffer, n));
    }
    return SN_OK;
}

static sn_status copy_into(sn_input *input, const char *to) {
    sn_output *output;
    char *buffer = sn_alloc(COPY_BYTES);
    if (!buffer) return SN_E_NOMEM;
    sn_status status = sn_platform_create(to, &output);
    if (status == SN_OK) {
        status = copy_bytes(input, output, buffer);
        if (status == SN_OK)
            status = sn_output_commit(output);
        else
            sn_output_discard(output);
    }
    sn_free(buffer);
    return status;
}

static sn_status copy_file(const char *from, const char *to) {
    sn_input input;
    if (sn_platform_same_file(from, to)) return SN_OK;
    SN_TRY(sn_platform_open(from, &input));
    sn_status status = copy_into(&input, to);
    sn_input_close(&input);
    return status;
}

/* ---- the checkpoint ------------------------------------------------------------------------ */

static sn_status parse_note(const release *r, const char *key, sn_json_document **document) {
    const char *note = sn_store_note(r->store, key);
    if (!note) note = "{}";
    return sn_json_parse(note, strlen(note), r->checkpoint, true, document);
}

static sn_status read_tensors(const release *r) {
    sn_file file;
    SN_TRY(sn_platform_open_file(r->checkpoint, &file));
    if (sn_pickle_smells(&file)) return sn_pickle_read(&file, "model", r->store);
    sn_file_close(&file);
    return sn_fail(SN_E_FORMAT, "%.300s: is no PyTorch checkpoint (.pt)", r->checkpoint);
}

/* Also checks that it is a SunnyNet, before the first file is made. */
static sn_status open_checkpoint(release *r) {
    SN_TRY(sn_store_new(&r->store));
    SN_TRY(read_tensors(r));
    SN_TRY(sn_build_new(r->name, &r->build));
    const sn_source_model source = {.name = r->checkpoint, .store = r->store};
    SN_TRY(sn_import_sunnynet.declare(&source, r->build));
    SN_TRY(parse_note(r, "config", &r->config));
    return parse_note(r, "summary", &r->summary);
}

static bool is_tied(const release *r) {
    const sn_json *tied = sn_json_get(sn_json_root(r->config), "tie_embeddings");
    return !tied || tied->kind == SN_JSON_TRUE;
}

/* ---- the files ----------------------------------------------------------------------------- */

static sn_status make_copy(release *r) {
    const char *path = path_of(r, r->name, ".pt");
    SN_TRY(copy_file(r->checkpoint, path));
    return sn_card_file(&r->card.checkpoint, path);
}

static sn_status make_safetensors(release *r) {
    sn_growing config = {.data = NULL}, summary = {.data = NULL};
    sn_put_json(&config, sn_json_root(r->config), -1, false);
    sn_put_json(&summary, sn_json_root(r->summary), -1, false);
    const sn_meta meta[] = {
        {"architecture", "SunnyNet"},       {"format", "pt"},
        {"sunnynet.config", config.data},   {"sunnynet.summary", summary.data},
        {"sunnynet.tied_head", is_tied(r) ? "1" : "0"}, {"sunnynet.version", "1"},
    };
    const char *path = path_of(r, r->name, ".safetensors");
    sn_status status = sn_growing_status(&config);
    if (status == SN_OK) status = sn_growing_status(&summary);
    if (status == SN_OK)
        status = sn_safetensors_write(r->store, is_tied(r) ? "head.weight" : NULL, meta,
                                      sizeof meta / sizeof meta[0], path);
    sn_growing_free(&config);
    sn_growing_free(&summary);
    return status == SN_OK ? sn_card_file(&r->card.safetensors, path) : status;
}

/* The model as a stream of GGUF, into which build and store go. */
static sn_status open_stream(release *r, sn_gguf *gguf) {
    sn_build *build = r->build;
    sn_store *store = r->store;
    sn_input input;
    r->build = NULL;
    r->store = NULL;
    SN_TRY(sn_build_input(build, store, &input));
    return sn_gguf_read(&input, gguf);
}

/* A blob that was there before would be another model's. */
static sn_status leave_out_blob(release *r, const char *path) {
    const size_t prefix = strlen(r->name) + 2; /* the reason comes as "name: reason" */
    const char *reason = sn_last_error();
    if (strlen(reason) > prefix) reason += prefix;
    snprintf(r->card.no_blob, sizeof r->card.no_blob, "%s", reason);
    if (!exists(path)) return SN_OK;
    return sn_fail(SN_E_INVAL, "%.300s: exists, but %.200s", path, r->card.no_blob);
}

static sn_status make_blob(release *r) {
    sn_gguf gguf;
    SN_TRY(open_stream(r, &gguf));
    const char *path = path_of(r, r->name, ".runtime.bin");
    sn_status status = sn_blob_write(&gguf, path, false, NULL, NULL);
    if (status == SN_OK) status = sn_card_blob(&r->card, &gguf);
    sn_gguf_close(&gguf);
    if (status == SN_OK) return sn_card_file(&r->card.blob, path);
    return status == SN_E_UNSUPPORTED ? leave_out_blob(r, path) : status;
}

static sn_status make_tokenizer(release *r) {
    const char *from = path_beside(r, "tokenizer.json");
    if (!exists(from)) return SN_OK;
    const char *path = path_of(r, "tokenizer.json", "");
    SN_TRY(copy_file(from, path));
    return sn_card_file(&r->card.tokenizer, path);
}

static sn_status make_card(release *r) {
    r->card.name = r->name;
    r->card.publisher = r->options->publisher ? r->options->publisher : "sunny-cx";
    r->card.license = r->options->license ? r->options->license : "apache-2.0";
    r->card.tied = is_tied(r);
    r->card.config = sn_json_root(r->config);
    r->card.summary = sn_json_root(r->summary);
    return sn_card_write(&r->card, path_of(r, r->name, ".card.json"));
}

static sn_status make_files(release *r) {
    SN_TRY(choose_name(r));
    SN_TRY(open_checkpoint(r));
    sn_card_count(&r->card, r->store, is_tied(r));
    SN_TRY(sn_platform_make_folder(r->folder));
    SN_TRY(report(r, 0));
    SN_TRY(make_copy(r));
    SN_TRY(report(r, 1));
    SN_TRY(make_safetensors(r));
    SN_TRY(report(r, 2));
    SN_TRY(make_blob(r));
    SN_TRY(report(r, 3));
    SN_TRY(make_tokenizer(r));
    SN_TRY(make_card(r));
    return report(r, 4);
}

SN_WORKER static sn_status make_release(const char *checkpoint, const char *folder,
                                        const sn_release_options *options) {
    release r = {.checkpoint = checkpoint, .folder = folder, .options = options};
    sn_status status = make_files(&r);
    sn_build_free(r.build);
    sn_store_free(r.store);
    sn_json_free(r.config);
    sn_json_free(r.summary);
    sn_free(r.name);
    sn_free(r.paths);
    return status;
}

/* ---- the public calls ---------------------------------------------------------------------- */

void sn_release_options_init(sn_release_options *options) {
    if (options) *options = (sn_release_options){.struct_size = sizeof *options};
}

sn_status sn_release(const char *checkpoint, const char *folder,
                     const sn_release_options *options) {
    sn_release_options own;
    sn_release_options_init(&own);
    if (!checkpoint || !folder) return sn_fail(SN_E_INVAL, "sn_release: a path is NULL");
    if (options) {
        /* a caller compiled against another version may know fewer or more fields */
        const size_t size = options->struct_size;
        if (size < sizeof options->struct_size)
            return sn_fail(SN_E_INVAL, "sn_release: options were not initialised");
        memcpy(&own, options, size < sizeof own ? size : sizeof own);
    }
    sn_fpenv saved = sn_fpenv_enter();
    sn_status status = make_release(checkpoint, folder, &own);
    sn_fpenv_leave(saved);
    return status;
}
