#include "zip.h"

#include "index_sort.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOCAL_SIGNATURE 0x04034b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define END_SIGNATURE 0x06054b50u
#define END64_SIGNATURE 0x06064b50u
#define LOCATOR64_SIGNATURE 0x07064b50u

#define LOCAL_BYTES 30
#define CENTRAL_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR64_BYTES 20
#define MAX_COMMENT 65535
#define MAX_MEMBERS 1048576
#define MAX_NAME 1024

#define FLAG_ENCRYPTED 1u
#define EXTRA_ZIP64 1u

/* ---- little-endian numbers ---------------------------------------------------------- */

static uint32_t load16(const uint8_t *p) {
    return (uint32_t)(p[0] | p[1] << 8);
}

static uint32_t load32(const uint8_t *p) {
    return load16(p) | load16(p + 2) << 16;
}

static uint64_t load64(const uint8_t *p) {
    return load32(p) | (uint64_t)load32(p + 4) << 32;
}

SN_PRINTF(2, 3)
static sn_status reject(const sn_file *file, const char *format, ...) {
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return sn_fail(SN_E_FORMAT, "%.300s: ZIP archive: %s", file->name, reason);
}

/* ---- the end record ----------------------------------------------------------------- */

typedef struct directory {
    uint64_t offset, bytes, count, end; /* end: where the records behind it begin */
} directory;

/* The last end record: it stands at the very end, but for a comment. */
static sn_status find_end(const sn_file *file, uint64_t *at, uint8_t record[END_BYTES]) {
    uint64_t most = MAX_COMMENT + END_BYTES;
    size_t tail = (size_t)(file->size < most ? file->size : most);
    if (tail < END_BYTES) return reject(file, "cut short: %" PRIu64 " bytes", file->size);
    uint8_t *bytes = sn_alloc(tail);
    if (!bytes) return SN_E_NOMEM;
    sn_status status = sn_file_read(file, file->size - tail, bytes, tail);
    bool found = false;
    for (size_t i = tail - END_BYTES + 1; status == SN_OK && !found && i-- > 0;) {
        found = load32(bytes + i) == END_SIGNATURE &&
                load16(bytes + i + 20) == tail - END_BYTES - i;
        if (!found) continue;
        *at = file->size - tail + i;
        memcpy(record, bytes + i, END_BYTES);
    }
    sn_free(bytes);
    if (status == SN_OK && !found) return reject(file, "cut short: it has no end record");
    return status;
}

/* The ZIP64 end record holds what does not fit the old one; a locator before that says where. */
static sn_status read_end64(const sn_file *file, uint64_t end, directory *found) {
    uint8_t locator[LOCATOR64_BYTES], record[END64_BYTES];
    if (end < LOCATOR64_BYTES) return reject(file, "no ZIP64 records");
    SN_TRY(sn_file_read(file, end - LOCATOR64_BYTES, locator, sizeof locator));
    if (load32(locator) != LOCATOR64_SIGNATURE) return reject(file, "no ZIP64 locator");
    uint64_t at = load64(locator + 8);
    if (at > end || end - at < LOCATOR64_BYTES + END64_BYTES)
        return reject(file, "its ZIP64 end record at byte %" PRIu64 " is not where it can be", at);
    SN_TRY(sn_file_read(file, at, record, sizeof record));
    if (load32(record) != END64_SIGNATURE) return reject(file, "no ZIP64 end record");
    if (load32(locator + 4) || load32(locator + 16) > 1 || load32(record + 16) ||
        load32(record + 20) || load64(record + 24) != load64(record + 32))
        return reject(file, "it is split over several files");
    *found = (directory){ .offset = load64(record + 48), .bytes = load64(record + 40),
                          .count = load64(record + 32), .end = at };
    return SN_OK;
}

static sn_status find_directory(const sn_file *file, directory *found) {
    uint8_t end[END_BYTES] = { 0 };
    uint64_t at = 0;
    SN_TRY(find_end(file, &at, end));
    *found = (directory){ .offset = load32(end + 16), .bytes = load32(end + 12),
                          .count = load16(end + 10), .end = at };
    if (found->offset == UINT32_MAX || found->bytes == UINT32_MAX || found->count == UINT16_MAX)
        SN_TRY(read_end64(file, at, found));
    else if (load16(end + 4) || load16(end + 6) || load16(end + 8) != load16(end + 10))
        return reject(file, "it is split over several files");
    if (found->offset > found->end || found->bytes > found->end - found->offset)
        return reject(file, "a directory of %" PRIu64 " bytes at byte %" PRIu64
                      " does not lie in front of its end record", found->bytes, found->offset);
    if (found->count > found->bytes / CENTRAL_BYTES)
        return reject(file, "%" PRIu64 " members cannot be listed in %" PRIu64 " bytes",
                      found->count, found->bytes);
    if (found->count > MAX_MEMBERS)
        return reject(file, "%" PRIu64 " members, at most %d are read", found->count, MAX_MEMBERS);
    return SN_OK;
}

/* ---- members ------------------------------------------------------------------------ */

typedef struct reader {
    const sn_file *file;
    directory where;
    uint8_t *bytes; /* the directory's */
    size_t size, at;
    sn_zip *zip;
    size_t names; /* bytes in use of zip->names */
} reader;

/* Sizes or an offset of 0xffffffff stand in the ZIP64 extra field, in this order. */
static sn_status read_extra(const reader *r, const sn_zip_member *member, const uint8_t *extra,
                            size_t size, uint64_t *fields[3]) {
    for (size_t at = 0; at + 4 <= size;) {
        size_t id = load16(extra + at), bytes = load16(extra + at + 2);
        at += 4;
        if (bytes > size - at) break;
        if (id == EXTRA_ZIP64) {
            size_t end = at + bytes;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX) continue;
                if (end - at < 8) return reject(r->file, "member '%.64s': its ZIP64 field is cut "
                                                "short", member->name);
                *fields[i] = load64(extra + at);
                at += 8;
            }
            return SN_OK;
        }
        at += bytes;
    }
    for (int i = 0; i < 3; i++)
        if (*fields[i] == UINT32_MAX)
            return reject(r->file, "member '%.64s': its ZIP64 field is missing", member->name);
    return SN_OK;
}

/* The local header repeats the name; the data follows it and its own extra field. */
static sn_status read_local(const reader *r, sn_zip_member *member, uint64_t offset,
                            uint32_t method) {
    uint8_t local[LOCAL_BYTES + MAX_NAME];
    size_t length = strlen(member->name), bytes = LOCAL_BYTES + length;
    if (offset > r->where.offset || bytes > r->where.offset - offset)
        return reject(r->file, "member '%.64s': its header at byte %" PRIu64
                      " does not lie in front of the directory", member->name, offset);
    SN_TRY(sn_file_read(r->file, offset, local, bytes));
    if (load32(local) != LOCAL_SIGNATURE || load16(local + 8) != method ||
        load16(local + 26) != length || memcmp(local + LOCAL_BYTES, member->name, length) != 0)
        return reject(r->file, "member '%.64s': its header is not what the directory says",
                      member->name);
    member->offset = offset + bytes + load16(local + 28);
    if (member->offset > r->where.offset || member->bytes > r->where.offset - member->offset)
        return reject(r->file, "member '%.64s': %" PRIu64 " bytes at byte %" PRIu64
                      " do not lie in front of the directory", member->name, member->bytes,
                      member->offset);
    return SN_OK;
}

/* Copies the name; control characters and NULs have no place in it. */
static sn_status take_name(reader *r, const uint8_t *name, size_t length, const char **taken) {
    char *copy = r->zip->names + r->names;
    if (length == 0 || length >= MAX_NAME)
        return reject(r->file, "a member's name has %zu bytes, possible are 1 to %d", length,
                      MAX_NAME - 1);
    memcpy(copy, name, length);
    for (size_t i = 0; i < length; i++)
        if (name[i] < 0x20)
            return reject(r->file, "member '%.64s': a control character in its name", copy);
    r->names += length + 1;
    *taken = copy;
    return SN_OK;
}

static sn_status read_member(reader *r) {
    const uint8_t *entry = r->bytes + r->at;
    if (r->size - r->at < CENTRAL_BYTES || load32(entry) != CENTRAL_SIGNATURE)
        return reject(r->file, "its directory has no member %zu", r->zip->n_members + 1);
    size_t name = load16(entry + 28), extra = load16(entry + 30), comment = load16(entry + 32);
    if (name + extra + comment > r->size - r->at - CENTRAL_BYTES)
        return reject(r->file, "its directory ends in member %zu", r->zip->n_members + 1);
    sn_zip_member *member = &r->zip->members[r->zip->n_members];
    SN_TRY(take_name(r, entry + CENTRAL_BYTES, name, &member->name));
    uint64_t bytes = load32(entry + 24), packed = load32(entry + 20), offset = load32(entry + 42);
    uint64_t *fields[3] = { &bytes, &packed, &offset };
    SN_TRY(read_extra(r, member, entry + CENTRAL_BYTES + name, extra, fields));
    if (load16(entry + 8) & FLAG_ENCRYPTED)
        return reject(r->file, "member '%.64s' is encrypted", member->name);
    uint32_t method = load16(entry + 10);
    if (method != 0 || packed != bytes)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: ZIP archive: member '%.64s' is compressed "
                       "(method %u), only stored ones can be read", r->file->name, member->name,
                       (unsigned)method);
    member->bytes = bytes;
    SN_TRY(read_local(r, member, offset, method));
    r->at += CENTRAL_BYTES + name + extra + comment;
    r->zip->n_members++;
    return SN_OK;
}

static int compare_names(const void *table, uint32_t a, uint32_t b) {
    const sn_zip_member *members = table;
    return strcmp(members[a].name, members[b].name);
}

static sn_status sort_names(const reader *r) {
    sn_zip *zip = r->zip;
    sn_index_sort(zip->by_name, zip->n_members, compare_names, zip->members);
    for (size_t i = 1; i < zip->n_members; i++)
        if (compare_names(zip->members, zip->by_name[i - 1], zip->by_name[i]) == 0)
            return reject(r->file, "two members '%.64s'", zip->members[zip->by_name[i]].name);
    return SN_OK;
}

static sn_status read_members(reader *r) {
    size_t count = (size_t)r->where.count;
    r->size = (size_t)r->where.bytes;
    r->bytes = sn_alloc(r->size);
    r->zip->names = sn_alloc(r->size); /* 46 bytes of an entry are no name */
    r->zip->members = sn_alloc_array(count, sizeof *r->zip->members);
    r->zip->by_name = sn_alloc_array(count, sizeof *r->zip->by_name);
    if (!r->bytes || !r->zip->names || !r->zip->members || !r->zip->by_name) return SN_E_NOMEM;
    SN_TRY(sn_file_read(r->file, r->where.offset, r->bytes, r->size));
    while (r->zip->n_members < count) SN_TRY(read_member(r));
    if (r->at != r->size)
        return reject(r->file, "its directory goes on behind the last of %zu members", count);
    return sort_names(r);
}

sn_status sn_zip_read(const sn_file *file, sn_zip *zip) {
    sn_zip found = { .n_members = 0 };
    reader r = { .file = file, .zip = &found };
    SN_TRY(find_directory(file, &r.where));
    if (r.where.bytes > SIZE_MAX) return reject(file, "too large a directory");
    sn_status status = read_members(&r);
    sn_free(r.bytes);
    if (status != SN_OK)
        sn_zip_free(&found);
    else
        *zip = found;
    return status;
}

void sn_zip_free(sn_zip *zip) {
    sn_free(zip->members);
    sn_free(zip->names);
    sn_free(zip->by_name);
    *zip = (sn_zip){ .n_members = 0 };
}

const sn_zip_member *sn_zip_find(const sn_zip *zip, const char *name) {
    size_t low = 0, high = zip->n_members;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sn_zip_member *member = &zip->members[zip->by_name[middle]];
        int order = strcmp(name, member->name);
        if (order == 0) return member;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool sn_zip_smells(const sn_file *file) {
    uint8_t start[4];
    return file->size >= END_BYTES && sn_file_read(file, 0, start, sizeof start) == SN_OK &&
           load32(start) == LOCAL_SIGNATURE;
}
