#include "folder.h"

#include "../platform.h"

#include <inttypes.h>
#include <string.h>

/* ---- paths -------------------------------------------------------------------------- */

static bool is_separator(char c) {
#if defined(_WIN32)
    return c == '/' || c == '\\';
#else
    return c == '/';
#endif
}

static char *copy(const char *text, size_t length) {
    char *copied = length < SIZE_MAX ? sn_alloc(length + 1) : NULL;
    if (copied) memcpy(copied, text, length);
    return copied;
}

char *sn_path_copy(const char *path) {
    return copy(path, strlen(path));
}

char *sn_path_join(const char *folder, const char *name) {
    size_t length = strlen(folder), bytes;
    if (!sn_add_size(length, strlen(name) + 2, &bytes)) return NULL;
    char *path = sn_alloc(bytes);
    if (!path) return NULL;
    memcpy(path, folder, length);
    if (length && !is_separator(folder[length - 1])) path[length++] = '/';
    memcpy(path + length, name, strlen(name));
    return path;
}

/* Where the last part of a path begins; `end` is where it ends (separators behind it not). */
static size_t last_part(const char *path, size_t *end) {
    size_t begin = strlen(path);
    while (begin && is_separator(path[begin - 1])) begin--;
    *end = begin;
    while (begin && !is_separator(path[begin - 1])) begin--;
    return begin;
}

char *sn_path_folder(const char *path) {
    size_t end, begin = last_part(path, &end);
    return begin ? copy(path, begin) : copy(".", 1);
}

char *sn_path_stem(const char *path, bool is_folder) {
    size_t end, begin = last_part(path, &end), length = end - begin;
    const char *name = path + begin;
    bool is_name = sn_path_is_plain(name, length);
    for (size_t i = length; !is_folder && i-- > 1;)
        if (name[i] == '.') {
            length = i;
            break;
        }
    return copy(name, is_name ? length : 0);
}

bool sn_path_exists(const char *path) {
    return sn_platform_same_file(path, path) != 0;
}

bool sn_path_is_plain(const char *name, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (strchr("/\\:", name[i]) || (unsigned char)name[i] < ' ') return false; /* NUL, too */
    bool is_dots = bytes == 0 || (name[0] == '.' && (bytes == 1 || (bytes == 2 && name[1] == '.')));
    return !is_dots;
}

/* ---- weights ------------------------------------------------------------------------ */

static const char *const suffixes[] = { ".safetensors", ".pth", ".pt", ".gguf", ".bin" };
#define N_SUFFIXES (sizeof suffixes / sizeof suffixes[0])

/* Files that end in each suffix. */
typedef struct listing {
    uint32_t n[N_SUFFIXES];
    char *first[N_SUFFIXES];
} listing;

static bool ends_in(const char *name, const char *suffix) {
    size_t length = strlen(name), bytes = strlen(suffix);
    return length > bytes && strcmp(name + length - bytes, suffix) == 0;
}

/* Parts of a split GGUF file that are not its first. */
static bool is_later_part(const char *name) {
    const char *of = strstr(name, "-of-");
    return of && of - name >= 6 && strncmp(of - 6, "-00001", 6) != 0;
}

static sn_status note(void *user, const char *name) {
    listing *found = user;
    for (size_t i = 0; i < N_SUFFIXES; i++) {
        if (!ends_in(name, suffixes[i])) continue;
        if (ends_in(name, ".gguf") && is_later_part(name)) continue;
        if (found->n[i]++ == 0 && !(found->first[i] = sn_path_copy(name))) return SN_E_NOMEM;
    }
    return SN_OK;
}

static sn_status choose(const char *folder, const listing *found, char **path) {
    for (size_t i = 0; i < N_SUFFIXES; i++) {
        if (found->n[i] == 0) continue;
        if (found->n[i] > 1)
            return sn_fail(SN_E_UNSUPPORTED, "%.300s: holds %" PRIu32 " files *%s; name one of "
                           "them", folder, found->n[i], suffixes[i]);
        *path = sn_path_join(folder, found->first[i]);
        return *path ? SN_OK : SN_E_NOMEM;
    }
    return SN_OK;
}

static sn_status find_any(const char *folder, char **path) {
    listing found = { .n = { 0 } };
    sn_status status = sn_platform_list(folder, note, &found);
    if (status == SN_OK) status = choose(folder, &found, path);
    for (size_t i = 0; i < N_SUFFIXES; i++) sn_free(found.first[i]);
    return status;
}

sn_status sn_folder_weights(const char *folder, char **path, bool *is_index) {
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json",
                                         "pytorch_model.bin", "pytorch_model.bin.index.json" };
    *path = NULL;
    *is_index = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *candidate = sn_path_join(folder, names[i]);
        if (!candidate) return SN_E_NOMEM;
        if (sn_path_exists(candidate)) {
            *path = candidate;
            *is_index = i % 2 == 1;
            return SN_OK;
        }
        sn_free(candidate);
    }
    return find_any(folder, path);
}
