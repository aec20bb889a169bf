#include "gguf_layout.h"

#include "../platform.h"
#include "index_sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARTS 65535

/* ---- one file ----------------------------------------------------------------------- */

/* One file, whole or part of a split one, without an index. Takes over input and path. */
static sn_status read_part(sn_input *input, char *path, sn_gguf *gguf) {
    sn_gguf part = { .n_parts = 1, .file_bytes = input->size };
    part.parts = sn_alloc(sizeof *part.parts);
    if (!part.parts) {
        sn_input_close(input);
        sn_free(path);
        return SN_E_NOMEM;
    }
    part.parts->input = *input;
    part.parts->path = path;
    sn_status status = sn_gguf_read_header(&part);
    if (status == SN_OK)
        *gguf = part;
    else
        sn_gguf_close(&part);
    return status;
}

/* ---- split files -------------------------------------------------------------------- */

static sn_status get_split(const sn_gguf *gguf, uint32_t *number, uint32_t *count) {
    *number = 0;
    *count = 1;
    SN_TRY(sn_gguf_get_u32(gguf, "split.count", false, count));
    return sn_gguf_get_u32(gguf, "split.no", false, number);
}

/* Takes over `path`. */
static sn_status open_part(char *path, sn_gguf *gguf) {
    if (!path) return SN_E_NOMEM;
    sn_input input;
    sn_status status = sn_platform_open(path, &input);
    if (status != SN_OK) {
        sn_free(path);
        return status;
    }
    return read_part(&input, path, gguf);
}

static char *copy_path(const char *path) {
    size_t bytes = strlen(path) + 1;
    char *copy = sn_alloc(bytes);
    if (copy) memcpy(copy, path, bytes);
    return copy;
}

/* Moves the tensors and the open file of `part` to the end of `gguf`, whose parts have room. */
static sn_status append_part(sn_gguf *gguf, sn_gguf *part) {
    uint64_t total = gguf->n_tensors + part->n_tensors;
    size_t each = sizeof *gguf->tensors, old = (size_t)gguf->n_tensors;
    if (total > GGUF_MAX_TENSORS)
        return sn_fail(SN_E_FORMAT, "%.300s: more than %d tensors in all parts",
                       sn_gguf_name(part), GGUF_MAX_TENSORS);
    sn_gguf_tensor *grown = sn_grow(gguf->tensors, old * each, (size_t)total * each);
    if (!grown) return SN_E_NOMEM;
    gguf->tensors = grown;
    for (size_t i = 0; i < part->n_tensors; i++) {
        grown[old + i] = part->tensors[i];
        grown[old + i].part = gguf->n_parts;
    }
    gguf->n_tensors = total;
    gguf->file_bytes += part->file_bytes;
    gguf->parts[gguf->n_parts++] = part->parts[0];
    part->n_parts = 0; /* its contents have moved */
    return SN_OK;
}

/* Opens the next part of `count` beside the first. `suffix_at`: where its number stands. */
static sn_status add_part(sn_gguf *gguf, size_t suffix_at, uint32_t count) {
    uint32_t expected = (uint32_t)gguf->n_parts, number, parts;
    char *path = copy_path(gguf->parts[0].path);
    if (path)
        snprintf(path + suffix_at, strlen(path + suffix_at) + 1, "-%05u-of-%05u.gguf",
                 (unsigned)expected + 1, (unsigned)count);
    sn_gguf part;
    SN_TRY(open_part(path, &part));
    sn_status status = get_split(&part, &number, &parts);
    if (status == SN_OK && (number != expected || parts != count))
        status = sn_fail(SN_E_FORMAT, "%.300s: says it is part %" PRIu64 " of %" PRIu32
                         ", not part %" PRIu32 " of %" PRIu32, sn_gguf_name(&part),
                         (uint64_t)number + 1, parts, expected + 1, count);
    if (status == SN_OK) status = append_part(gguf, &part);
    sn_gguf_close(&part);
    return status;
}

/* Where the part's number stands in the path of part one. */
static sn_status find_suffix(const sn_gguf *gguf, uint32_t count, size_t *suffix_at) {
    char suffix[32];
    const char *path = gguf->parts[0].path;
    size_t size = (size_t)snprintf(suffix, sizeof suffix, "-00001-of-%05u.gguf", (unsigned)count);
    size_t length = strlen(path);
    if (length < size || strcmp(path + length - size, suffix) != 0)
        return sn_fail(SN_E_FORMAT, "%.300s: is the first of %" PRIu32 " parts, but its name "
                       "does not end in %s", path, count, suffix);
    *suffix_at = length - size;
    return SN_OK;
}

static sn_status check_total(const sn_gguf *gguf) {
    uint32_t total = (uint32_t)gguf->n_tensors;
    SN_TRY(sn_gguf_get_u32(gguf, "split.tensors.count", false, &total));
    if (total == gguf->n_tensors) return SN_OK;
    return sn_fail(SN_E_FORMAT, "%.300s: key 'split.tensors.count': %" PRIu32 " tensors "
                   "announced, the %" PRIu64 " parts hold %" PRIu64, sn_gguf_name(gguf), total,
                   gguf->n_parts, gguf->n_tensors);
}

static sn_status join_parts(sn_gguf *gguf) {
    uint32_t number, count;
    size_t suffix_at = 0;
    SN_TRY(get_split(gguf, &number, &count));
    if (count <= 1) return SN_OK;
    if (number != 0)
        return sn_fail(SN_E_FORMAT, "%.300s: is part %" PRIu64 " of %" PRIu32 "; give the first "
                       "part", sn_gguf_name(gguf), (uint64_t)number + 1, count);
    if (count > MAX_PARTS)
        return sn_fail(SN_E_FORMAT, "%.300s: key 'split.count': %" PRIu32 " parts, at most %d "
                       "are allowed", sn_gguf_name(gguf), count, MAX_PARTS);
    SN_TRY(find_suffix(gguf, count, &suffix_at));
    size_t each = sizeof *gguf->parts;
    struct sn_gguf_part *grown = sn_grow(gguf->parts, each, count * each);
    if (!grown) return SN_E_NOMEM;
    gguf->parts = grown;
    while (gguf->n_parts < count) SN_TRY(add_part(gguf, suffix_at, count));
    return check_total(gguf);
}

static sn_status refuse_split(const sn_gguf *gguf) {
    uint32_t number, count;
    SN_TRY(get_split(gguf, &number, &count));
    if (count <= 1) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: is part %" PRIu64 " of %" PRIu32 "; a split file "
                   "must be opened by the path of its first part", sn_gguf_name(gguf),
                   (uint64_t)number + 1, count);
}

/* ---- the whole ---------------------------------------------------------------------- */

static int compare_names(const void *table, uint32_t a, uint32_t b) {
    const sn_gguf_tensor *tensors = table;
    return strcmp(tensors[a].name, tensors[b].name);
}

/* Fills by_name and refuses names that occur twice, in one part or in two. */
static sn_status index_names(sn_gguf *gguf) {
    size_t n = (size_t)gguf->n_tensors;
    gguf->by_name = sn_alloc_array(n, sizeof *gguf->by_name);
    if (!gguf->by_name) return SN_E_NOMEM;
    sn_index_sort(gguf->by_name, n, compare_names, gguf->tensors);
    for (size_t i = 1; i < n; i++) {
        const sn_gguf_tensor *a = &gguf->tensors[gguf->by_name[i - 1]];
        const sn_gguf_tensor *b = &gguf->tensors[gguf->by_name[i]];
        if (strcmp(a->name, b->name) != 0) continue;
        uint64_t part = a->part > b->part ? a->part : b->part;
        return sn_fail(SN_E_FORMAT, "%.300s: tensor '%s': it occurs twice",
                       gguf->parts[part].input.name, b->name);
    }
    return SN_OK;
}

/* Hands `whole` out if all went well, else closes it. */
static sn_status finish(sn_status status, sn_gguf *whole, sn_gguf *gguf) {
    if (status == SN_OK) status = index_names(whole);
    if (status == SN_OK)
        *gguf = *whole;
    else
        sn_gguf_close(whole);
    return status;
}

sn_status sn_gguf_read(sn_input *input, sn_gguf *gguf) {
    sn_gguf whole;
    SN_TRY(read_part(input, NULL, &whole));
    return finish(refuse_split(&whole), &whole, gguf);
}

sn_status sn_gguf_open(const char *path, sn_gguf *gguf) {
    sn_gguf whole;
    SN_TRY(open_part(copy_path(path), &whole));
    return finish(join_parts(&whole), &whole, gguf);
}

void sn_gguf_close(sn_gguf *gguf) {
    for (uint64_t i = 0; i < gguf->n_parts; i++) {
        struct sn_gguf_part *part = &gguf->parts[i];
        sn_input_close(&part->input);
        sn_free(part->path);
        sn_free(part->header);
        sn_free(part->names);
        sn_free(part->string_offsets);
    }
    sn_free(gguf->parts);
    sn_free(gguf->values);
    sn_free(gguf->tensors);
    sn_free(gguf->by_name);
    sn_free(gguf->origins);
    *gguf = (sn_gguf){ 0 };
}

const char *sn_gguf_name(const sn_gguf *gguf) {
    return gguf->parts[0].input.name;
}

static const sn_gguf_tensor *find_exactly(const sn_gguf *gguf, const char *name) {
    uint64_t low = 0, high = gguf->n_tensors;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const sn_gguf_tensor *tensor = &gguf->tensors[gguf->by_name[middle]];
        int order = strcmp(tensor->name, name);
        if (order == 0) return tensor;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const sn_gguf_tensor *sn_gguf_find_tensor(const sn_gguf *gguf, const char *name) {
    static const char ending[] = ".weight";
    char other[2 * GGUF_NAME_BYTES];
    size_t size = strlen(name), ending_size = sizeof ending - 1;
    const sn_gguf_tensor *tensor = find_exactly(gguf, name);
    if (tensor || size >= GGUF_NAME_BYTES) return tensor;
    bool ends = size > ending_size && strcmp(name + size - ending_size, ending) == 0;
    if (ends)
        snprintf(other, sizeof other, "%.*s", (int)(size - ending_size), name);
    else
        snprintf(other, sizeof other, "%s%s", name, ending);
    return find_exactly(gguf, other);
}
