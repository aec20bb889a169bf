/*
 * tokenizer.c: finds the tokenizer of a folder, has the right reader read it, and takes from the
 * small files beside it what they say: ids with a role, the chat template.
 */
#include "tokenizer_config.h"

#include "../platform.h"
#include "folder.h"

#include <string.h>

#define FILE_BYTES_MAX ((size_t)256 << 20) /* the largest published tokenizer.json have 35 MB */

/* ---- one file ----------------------------------------------------------------------- */

static void file_free(sn_tokenizer_file *file) {
    sn_lexicon_free(&file->lexicon);
    sn_json_free(file->document);
    sn_tokenizer_destroy(file->world);
    sn_free(file->texts);
    sn_free(file->owned);
}

static char first_character(const sn_tokenizer_file *file) {
    static const char blanks[] = " \t\r\n\xef\xbb\xbf"; /* a byte order mark, too */
    size_t at = 0;
    while (at < file->size && memchr(blanks, file->bytes[at], sizeof blanks - 1)) at++;
    return at < file->size ? file->bytes[at] : '\0';
}

static sn_status read_json(sn_tokenizer_file *file) {
    SN_TRY(sn_json_parse(file->bytes, file->size, file->path, false, &file->document));
    if (sn_json_get(sn_json_root(file->document), "merge_tokens"))
        return sn_tokenizer_read_sunnynet(file);
    return sn_tokenizer_read_json(file);
}

/* By content: a file may have any name. */
static sn_status read_bytes(sn_tokenizer_file *file) {
    char first = first_character(file);
    if (sn_tokenizer_smells_protobuf(file)) return sn_tokenizer_read_protobuf(file);
    if (first == '{') return read_json(file);
    if (first >= '0' && first <= '9') return sn_tokenizer_read_rwkv(file);
    return sn_fail(SN_E_FORMAT, "%.300s: is no tokenizer that is known (tokenizer.json, "
                   "SentencePiece's tokenizer.model, an RWKV vocabulary)", file->path);
}

static sn_status read_file(sn_tokenizer_file *file) {
    sn_file opened;
    SN_TRY(sn_platform_open_file(file->path, &opened));
    sn_status status = sn_file_read_all(&opened, FILE_BYTES_MAX, &file->owned, &file->size);
    sn_file_close(&opened);
    file->bytes = file->owned;
    return status == SN_OK ? read_bytes(file) : status;
}

static sn_status finish(sn_tokenizer_file *file, sn_status status) {
    if (status == SN_OK)
        status = sn_lexicon_declare(&file->lexicon, file->model, file->build);
    file_free(file);
    return status;
}

sn_status sn_import_tokenizer_file(const char *path, uint64_t n_vocab, sn_build *build) {
    sn_tokenizer_file file = { .path = path, .n_vocab = n_vocab, .build = build };
    return finish(&file, read_file(&file));
}

sn_status sn_import_tokenizer_bytes(const char *name, const void *bytes, size_t size,
                                    uint64_t n_vocab, sn_build *build) {
    sn_tokenizer_file file = { .path = name, .bytes = bytes, .size = size, .n_vocab = n_vocab,
                               .build = build };
    return finish(&file, read_bytes(&file));
}

/* ---- a folder ----------------------------------------------------------------------- */

/* Which of the files that matter here lie in a folder. An RWKV vocabulary has its date in its name:
 * of several, the last one counts. */
typedef struct contents {
    bool json, model, found[SN_TOKENIZER_CONFIGS];
    char world[128]; /* "": none */
} contents;

static bool is_world(const char *name) {
    size_t length = strlen(name);
    return length < sizeof ((contents *)0)->world && strncmp(name, "rwkv_vocab", 10) == 0 &&
           strcmp(name + length - 4, ".txt") == 0;
}

static sn_status note(void *user, const char *name) {
    contents *has = user;
    if (strcmp(name, "tokenizer.json") == 0) has->json = true;
    if (strcmp(name, "tokenizer.model") == 0) has->model = true;
    for (size_t i = 0; i < SN_TOKENIZER_CONFIGS; i++)
        if (strcmp(name, sn_tokenizer_configs[i]) == 0) has->found[i] = true;
    if (is_world(name) && strcmp(name, has->world) > 0) strcpy(has->world, name);
    return SN_OK;
}

/* The small files, in the order of sn_tokenizer_configs. */
static sn_status read_configs(const char *folder, const contents *has, sn_tokenizer_file *file,
                              const sn_json *config) {
    sn_status status = SN_OK;
    sn_tokenizer_config read = { .config = config };
    for (size_t i = 0; status == SN_OK && i < SN_TOKENIZER_CONFIGS; i++) {
        if (!has->found[i]) continue;
        read.paths[i] = sn_path_join(folder, sn_tokenizer_configs[i]);
        status = read.paths[i] ? sn_tokenizer_config_read(&read, i) : SN_E_NOMEM;
    }
    if (status == SN_OK) status = sn_tokenizer_config_apply(&read, file);
    sn_tokenizer_config_free(&read);
    return status;
}

static sn_status import_from(const char *folder, const contents *has, const char *path,
                             uint64_t n_vocab, const sn_json *config, sn_build *build) {
    sn_tokenizer_file file = { .path = path, .n_vocab = n_vocab, .build = build };
    sn_status status = read_file(&file);
    if (status == SN_OK) status = read_configs(folder, has, &file, config);
    return finish(&file, status);
}

/* tokenizer.json wins over tokenizer.model, from which it was made. */
sn_status sn_import_tokenizer(const char *folder, uint64_t n_vocab, const sn_json *config,
                              sn_build *build, bool *found) {
    contents has = { .json = false };
    SN_TRY(sn_platform_list(folder, note, &has));
    const char *name = has.json ? "tokenizer.json" : has.model ? "tokenizer.model" : has.world;
    *found = false;
    if (!*name) return SN_OK;
    char *path = sn_path_join(folder, name);
    if (!path) return SN_E_NOMEM;
    sn_status status = import_from(folder, &has, path, n_vocab, config, build);
    sn_free(path);
    *found = status == SN_OK;
    return status;
}
