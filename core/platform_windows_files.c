/* platform_windows_files.c: files and folders on Windows. */
#include "platform.h"

#if defined(_WIN32)

#include "platform_windows.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

#define PIECE_BYTES ((size_t)1 << 30) /* of one call, which counts in 32 bits */
#define SHARED (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* INVALID_HANDLE_VALUE, with no error set, if there is no such thing. */
static HANDLE open_handle(const wchar_t *path, DWORD access) {
    return CreateFileW(path, access, SHARED, NULL, OPEN_EXISTING,
                       FILE_FLAG_BACKUP_SEMANTICS, NULL); /* folders too */
}

/* ---- reading ------------------------------------------------------------------------ */

static size_t read_piece(HANDLE file, void *buffer, size_t bytes, OVERLAPPED *at) {
    DWORD got = 0;
    const DWORD piece = (DWORD)(bytes < PIECE_BYTES ? bytes : PIECE_BYTES);
    return ReadFile(file, buffer, piece, &got, at) ? got : 0;
}

static size_t read_file(void *user, void *buffer, size_t bytes) {
    return read_piece(user, buffer, bytes, NULL);
}

static size_t read_file_at(void *user, uint64_t offset, void *buffer, size_t bytes) {
    OVERLAPPED at;
    memset(&at, 0, sizeof at);
    at.Offset = (DWORD)offset;
    at.OffsetHigh = (DWORD)(offset >> 32);
    return read_piece(user, buffer, bytes, &at);
}

static void close_file(void *user) {
    CloseHandle(user);
}

/* The size of an open file; refuses what has none. */
static sn_status measure(const char *path, HANDLE file, uint64_t *size) {
    BY_HANDLE_FILE_INFORMATION about;
    if (GetFileType(file) != FILE_TYPE_DISK)
        return sn_fail(SN_E_IO, "%.300s: is a pipe or a device; a file of known size is needed",
                       path);
    if (!GetFileInformationByHandle(file, &about)) return sn_windows_error(path, "read");
    if (about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)
        return sn_fail(SN_E_IO, "%.300s: is a directory", path);
    *size = (uint64_t)about.nFileSizeHigh << 32 | about.nFileSizeLow;
    return SN_OK;
}

static sn_status open_to_read(const char *path, void **user, uint64_t *size) {
    wchar_t *wide = NULL;
    SN_TRY(sn_windows_path(path, &wide));
    HANDLE file = open_handle(wide, GENERIC_READ);
    sn_status status = SN_OK;
    if (file == INVALID_HANDLE_VALUE) status = sn_windows_error(path, "open");
    sn_free(wide);
    SN_TRY(status);
    status = measure(path, file, size);
    if (status != SN_OK)
        CloseHandle(file);
    else
        *user = file;
    return status;
}

/* The view keeps the mapping, and that the file, until it is unmapped. */
static sn_status map_file(const sn_input *input, const uint8_t **data) {
    if (input->size > PTRDIFF_MAX)
        return sn_fail(SN_E_NOMEM, "%.300s: larger than the address space", input->name);
    HANDLE mapping = CreateFileMappingW(input->user, NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping) return sn_windows_error(input->name, "map");
    const void *start = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    const sn_status status = start ? SN_OK : sn_windows_error(input->name, "map");
    CloseHandle(mapping);
    if (status == SN_OK) *data = start;
    return status;
}

void sn_platform_unmap(const void *data, size_t bytes) {
    (void)bytes;
    UnmapViewOfFile(data);
}

sn_status sn_platform_open(const char *path, sn_input *input) {
    void *user = NULL;
    uint64_t size = 0;
    SN_TRY(open_to_read(path, &user, &size));
    *input = (sn_input){ .name = path, .size = size, .read = read_file, .user = user,
                         .close = close_file, .read_at = read_file_at, .map = map_file };
    return SN_OK;
}

sn_status sn_platform_open_file(const char *path, sn_file *file) {
    void *user = NULL;
    uint64_t size = 0;
    SN_TRY(open_to_read(path, &user, &size));
    *file = (sn_file){ .name = path, .size = size, .read_at = read_file_at, .user = user,
                       .close = close_file };
    return SN_OK;
}

/* ---- folders ------------------------------------------------------------------------ */

static DWORD attributes_of(const char *path) {
    wchar_t *wide = NULL;
    if (sn_windows_path(path, &wide) != SN_OK) return INVALID_FILE_ATTRIBUTES;
    const DWORD attributes = GetFileAttributesW(wide);
    sn_free(wide);
    return attributes;
}

bool sn_platform_is_folder(const char *path) {
    const DWORD attributes = attributes_of(path);
    return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY;
}

static sn_status visit_found(const WIN32_FIND_DATAW *found,
                             sn_status (*visit)(void *user, const char *name), void *user) {
    char name[4 * MAX_PATH];
    if (!WideCharToMultiByte(CP_UTF8, 0, found->cFileName, -1, name, sizeof name, NULL, NULL))
        return SN_OK; /* no name that could be opened by it */
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return SN_OK;
    return visit(user, name);
}

static sn_status list_pattern(const char *path, const wchar_t *pattern,
                              sn_status (*visit)(void *user, const char *name), void *user) {
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(pattern, &found);
    if (search == INVALID_HANDLE_VALUE) return sn_windows_error(path, "open");
    sn_status status;
    do status = visit_found(&found, visit, user);
    while (status == SN_OK && FindNextFileW(search, &found));
    if (status == SN_OK && GetLastError() != ERROR_NO_MORE_FILES)
        status = sn_windows_error(path, "read");
    FindClose(search);
    return status;
}

sn_status sn_platform_list(const char *path, sn_status (*visit)(void *user, const char *name),
                           void *user) {
    wchar_t *wide = NULL;
    SN_TRY(sn_windows_path(path, &wide));
    const size_t length = wcslen(wide);
    wchar_t *pattern = sn_alloc_array(length + 3, sizeof *pattern);
    sn_status status = SN_E_NOMEM;
    if (pattern) {
        memcpy(pattern, wide, length * sizeof *wide);
        memcpy(pattern + length, L"\\*", 3 * sizeof *wide);
        status = list_pattern(path, pattern, visit, user);
    }
    sn_free(pattern);
    sn_free(wide);
    return status;
}

sn_status sn_platform_make_folder(const char *path) {
    wchar_t *wide = NULL;
    SN_TRY(sn_windows_path(path, &wide));
    const bool made = CreateDirectoryW(wide, NULL);
    sn_status status = SN_OK;
    if (!made && !(GetLastError() == ERROR_ALREADY_EXISTS && sn_platform_is_folder(path)))
        status = sn_windows_error(path, "create");
    sn_free(wide);
    return status;
}

/* ---- names -------------------------------------------------------------------------- */

static bool identify(const char *path, BY_HANDLE_FILE_INFORMATION *about) {
    wchar_t *wide = NULL;
    if (sn_windows_path(path, &wide) != SN_OK) return false;
    HANDLE file = open_handle(wide, 0);
    sn_free(wide);
    if (file == INVALID_HANDLE_VALUE) return false;
    const bool known = GetFileInformationByHandle(file, about);
    CloseHandle(file);
    return known;
}

int sn_platform_same_file(const char *a, const char *b) {
    BY_HANDLE_FILE_INFORMATION first, second;
    return identify(a, &first) && identify(b, &second) &&
           first.dwVolumeSerialNumber == second.dwVolumeSerialNumber &&
           first.nFileIndexHigh == second.nFileIndexHigh &&
           first.nFileIndexLow == second.nFileIndexLow;
}

/* ---- writing ------------------------------------------------------------------------ */

#define PART_SUFFIX_BYTES 40
#define PART_NAMES 100 /* names tried: a killed process may have left some behind */

struct sn_output {
    HANDLE file;
    char *path;         /* the name it will have, for errors */
    wchar_t *wide_path; /* the same */
    wchar_t *part;      /* the name it has until then */
};

static void output_free(sn_output *output) {
    if (output->file != INVALID_HANDLE_VALUE) CloseHandle(output->file);
    sn_free(output->path);
    sn_free(output->wide_path);
    sn_free(output->part);
    sn_free(output);
}

/* Opens "<path>.part-<pid>", or the same with a number if that exists. */
static sn_status create_part(sn_output *output) {
    const size_t length = wcslen(output->wide_path);
    output->part = sn_alloc_array(length + PART_SUFFIX_BYTES, sizeof *output->part);
    if (!output->part) return SN_E_NOMEM;
    memcpy(output->part, output->wide_path, length * sizeof *output->part);
    for (int i = 0; i < PART_NAMES; i++) {
        char suffix[PART_SUFFIX_BYTES];
        snprintf(suffix, sizeof suffix, ".part-%lu-%d", GetCurrentProcessId(), i);
        for (size_t k = 0; k < sizeof suffix; k++) output->part[length + k] = (wchar_t)suffix[k];
        output->file = CreateFileW(output->part, GENERIC_WRITE, 0, NULL, CREATE_NEW,
                                   FILE_ATTRIBUTE_NORMAL, NULL);
        if (output->file != INVALID_HANDLE_VALUE) return SN_OK;
        if (GetLastError() != ERROR_FILE_EXISTS) break;
    }
    return sn_windows_error(output->path, "create");
}

/* Renaming would replace a folder or a device (NUL) by a file. */
static sn_status refuse_special(const char *path, const wchar_t *wide) {
    HANDLE there = open_handle(wide, 0);
    if (there == INVALID_HANDLE_VALUE) return SN_OK;
    const bool special = GetFileType(there) != FILE_TYPE_DISK || sn_platform_is_folder(path);
    CloseHandle(there);
    if (!special) return SN_OK;
    return sn_fail(SN_E_IO, "%.300s: exists and is not a regular file", path);
}

sn_status sn_platform_create(const char *path, sn_output **output) {
    sn_output *created = sn_alloc(sizeof *created);
    if (!created) return SN_E_NOMEM;
    created->file = INVALID_HANDLE_VALUE;
    created->path = sn_alloc(strlen(path) + 1);
    sn_status status = SN_E_NOMEM;
    if (created->path) {
        memcpy(created->path, path, strlen(path));
        status = sn_windows_path(path, &created->wide_path);
    }
    if (status == SN_OK) status = refuse_special(path, created->wide_path);
    if (status == SN_OK) status = create_part(created);
    if (status != SN_OK)
        output_free(created);
    else
        *output = created;
    return status;
}

sn_status sn_output_write(sn_output *output, const void *data, size_t bytes) {
    const uint8_t *from = data;
    while (bytes) {
        DWORD written = 0;
        const DWORD piece = (DWORD)(bytes < PIECE_BYTES ? bytes : PIECE_BYTES);
        if (!WriteFile(output->file, from, piece, &written, NULL))
            return sn_windows_error(output->path, "write");
        from += written;
        bytes -= written;
    }
    return SN_OK;
}

sn_status sn_output_write_at(sn_output *output, uint64_t offset, const void *data, size_t bytes) {
    LARGE_INTEGER to;
    to.QuadPart = (LONGLONG)offset;
    if (offset > INT64_MAX || !SetFilePointerEx(output->file, to, NULL, FILE_BEGIN))
        return sn_windows_error(output->path, "write");
    return sn_output_write(output, data, bytes);
}

sn_status sn_output_commit(sn_output *output) {
    sn_status status = SN_OK;
    const bool closed = CloseHandle(output->file);
    output->file = INVALID_HANDLE_VALUE;
    if (!closed)
        status = sn_windows_error(output->path, "write");
    else if (!MoveFileExW(output->part, output->wide_path, MOVEFILE_REPLACE_EXISTING))
        status = sn_windows_error(output->path, "create");
    if (status != SN_OK) DeleteFileW(output->part);
    output_free(output);
    return status;
}

void sn_output_discard(sn_output *output) {
    if (!output) return;
    CloseHandle(output->file); /* an open file cannot be deleted */
    output->file = INVALID_HANDLE_VALUE;
    DeleteFileW(output->part);
    output_free(output);
}

#endif
