#include "open.h"
#include "opening.h"

#include "../platform.h"
#include "folder.h"

#include <string.h>

#define INDEX_BYTES ((size_t)64 << 20)

sn_status sn_opening_add_origin(sn_opening *o, const char *path) {
    size_t bytes = strlen(path) + 1, end;
    if (!sn_add_size(o->origins_bytes, bytes + 1, &end)) return SN_E_NOMEM;
    char *grown = sn_grow(o->origins, o->origins_bytes, end);
    if (!grown) return SN_E_NOMEM;
    memcpy(grown + o->origins_bytes, path, bytes);
    grown[end - 1] = '\0';
    o->origins = grown;
    o->origins_bytes = end - 1;
    return SN_OK;
}

/* A JSON file as a tree. */
sn_status sn_opening_read_json(const char *path, size_t limit, sn_json_document **document) {
    sn_file file;
    char *text;
    size_t bytes;
    SN_TRY(sn_platform_open_file(path, &file));
    sn_status status = sn_file_read_all(&file, limit, &text, &bytes);
    sn_file_close(&file);
    SN_TRY(status);
    status = sn_json_parse(text, bytes, path, true, document);
    sn_free(text);
    if (status != SN_OK || sn_json_root(*document)->kind == SN_JSON_OBJECT) return status;
    sn_json_free(*document);
    *document = NULL;
    return sn_fail(SN_E_FORMAT, "%.300s: is not a JSON object", path);
}

/* ---- files ------------------------------------------------------------------------- */

/* Adds what the file holds, whatever it is; takes over the file. */
static sn_status refuse_unknown(const char *name) {
    return sn_fail(SN_E_FORMAT, "%.300s: not a GGUF file, safetensors, PyTorch archive or packed "
                   "blob", name);
}

sn_status sn_opening_add_weights(sn_opening *o, sn_file *file) {
    if (sn_safetensors_smells(file)) return sn_safetensors_read(file, o->store);
    if (sn_pickle_smells(file)) return sn_pickle_read(file, "model", o->store);
    o->is_blob = sn_blob_smells(file);
    if (o->is_blob) return sn_blob_import(file, o->store, o->build);
    const sn_status status = refuse_unknown(file->name);
    sn_file_close(file);
    return status;
}

sn_status sn_open_check_beginning(const char *name, const void *first, size_t n, uint64_t size) {
    sn_file file;
    sn_file_from_memory(&file, name, first, n);
    file.size = size; /* what follows looks at the first bytes only */
    if (sn_safetensors_smells(&file) || sn_pickle_smells(&file) || sn_blob_smells(&file))
        return SN_OK;
    return refuse_unknown(name);
}

sn_status sn_opening_add_file(sn_opening *o, const char *path) {
    sn_file file;
    SN_TRY(sn_opening_add_origin(o, path));
    SN_TRY(sn_platform_open_file(path, &file));
    return sn_opening_add_weights(o, &file);
}

/* The last part of a path that sn_path_join() made. */
static const char *name_in(const sn_opening *o, const char *path) {
    path += strlen(o->folder);
    return *path == '/' ? path + 1 : path;
}

static bool has_file(const sn_opening *o, const char *name) {
    const char *origin = o->origins;
    for (; origin && *origin; origin += strlen(origin) + 1)
        if (strcmp(name_in(o, origin), name) == 0) return true;
    return false;
}

/* A shard that a weight_map names, unless it is open already. */
static sn_status add_shard(sn_opening *o, const char *index, const sn_json *entry) {
    if (entry->kind != SN_JSON_STRING || !sn_path_is_plain(entry->text, entry->size))
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s': its file must be a plain name in the "
                       "same folder", index, entry->key);
    if (has_file(o, entry->text)) return SN_OK;
    char *path = sn_path_join(o->folder, entry->text);
    sn_status status = path ? sn_opening_add_file(o, path) : SN_E_NOMEM;
    sn_free(path);
    if (status == SN_OK && o->is_blob)
        status = sn_fail(SN_E_FORMAT, "%.300s: file '%.100s' is a packed blob", index, entry->text);
    return status;
}

static sn_status check_shard(const sn_opening *o, const char *index, const sn_json *entry) {
    const sn_view *view = sn_store_find(o->store, entry->key);
    if (view && strcmp(name_in(o, view->file->name), entry->text) == 0) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: tensor '%.100s' is not in file '%.100s'", index,
                   entry->key, entry->text);
}

static sn_status add_map(sn_opening *o, const char *index, const sn_json *map) {
    if (!map || map->kind != SN_JSON_OBJECT || map->size == 0)
        return sn_fail(SN_E_FORMAT, "%.300s: has no weight_map", index);
    for (const sn_json *entry = map->first; entry; entry = entry->next)
        SN_TRY(add_shard(o, index, entry));
    for (const sn_json *entry = map->first; entry; entry = entry->next)
        SN_TRY(check_shard(o, index, entry));
    return SN_OK;
}

sn_status sn_opening_add_shards(sn_opening *o, const char *index) {
    sn_json_document *document;
    SN_TRY(sn_opening_add_origin(o, index));
    SN_TRY(sn_opening_read_json(index, INDEX_BYTES, &document));
    sn_status status = add_map(o, index, sn_json_get(sn_json_root(document), "weight_map"));
    sn_json_free(document);
    return status;
}

