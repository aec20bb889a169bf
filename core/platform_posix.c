/* platform_posix.c: files where the system is POSIX's, which WASI and Emscripten offer too. */
#if defined(__linux__)
#define _GNU_SOURCE
#elif !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#define _FILE_OFFSET_BITS 64

#include "platform.h"

#if !defined(_WIN32)

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(__EMSCRIPTEN__)
#include <dirent.h>
#endif
#if !defined(__wasm__)
#include <sys/mman.h>
#endif

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#ifndef O_NONBLOCK
#define O_NONBLOCK 0
#endif

static sn_status io_error(const char *path, const char *what) {
    return sn_fail(SN_E_IO, "%.300s: cannot %s: %s", path, what, strerror(errno));
}

/* ---- reading ------------------------------------------------------------------------ */

/* The descriptor itself is the user pointer: an open file needs no memory. */
static int descriptor(void *user) {
    return (int)(intptr_t)user;
}

static size_t read_file(void *user, void *buffer, size_t bytes) {
    ssize_t got;
    do got = read(descriptor(user), buffer, bytes);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

static void close_file(void *user) {
    close(descriptor(user));
}

/* The size of an open file; refuses what has none. */
static sn_status measure(const char *path, int file, uint64_t *size) {
    struct stat status;
    if (fstat(file, &status) != 0) return io_error(path, "read");
    if (S_ISDIR(status.st_mode)) return sn_fail(SN_E_IO, "%.300s: is a directory", path);
    if (S_ISREG(status.st_mode)) {
        *size = (uint64_t)status.st_size;
        return SN_OK;
    }
    off_t end = lseek(file, 0, SEEK_END); /* a block device has an end, a pipe has none */
    if (end <= 0 || lseek(file, 0, SEEK_SET) != 0)
        return sn_fail(SN_E_IO, "%.300s: is a pipe or a device; a file of known size is needed",
                       path);
    *size = (uint64_t)end;
    return SN_OK;
}

static sn_status open_to_read(const char *path, void **user, uint64_t *size) {
    /* O_NONBLOCK: opening a pipe that nobody writes to must not wait. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return io_error(path, "open");
    sn_status status = measure(path, file, size);
    if (status != SN_OK)
        close(file);
    else
        *user = (void *)(intptr_t)file;
    return status;
}

#if defined(__wasm__)

/* Some hosts lack pread(), and none maps a file. */
#define read_input_at NULL
#define map_file NULL

void sn_platform_unmap(const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
}

#else

static size_t read_input_at(void *user, uint64_t offset, void *buffer, size_t bytes) {
    ssize_t got;
    if (offset > INT64_MAX) return 0;
    do got = pread(descriptor(user), buffer, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

static sn_status map_file(const sn_input *input, const uint8_t **data) {
    if (input->size > PTRDIFF_MAX)
        return sn_fail(SN_E_NOMEM, "%.300s: larger than the address space", input->name);
    void *start = mmap(NULL, (size_t)input->size, PROT_READ, MAP_SHARED, descriptor(input->user),
                       0);
    if (start == MAP_FAILED) return io_error(input->name, "map");
    *data = start;
    return SN_OK;
}

void sn_platform_unmap(const void *data, size_t bytes) {
    munmap((void *)(uintptr_t)data, bytes);
}

#endif

sn_status sn_platform_open(const char *path, sn_input *input) {
    void *user = NULL;
    uint64_t size = 0;
    SN_TRY(open_to_read(path, &user, &size));
    *input = (sn_input){ .name = path, .size = size, .read = read_file, .user = user,
                         .close = close_file, .read_at = read_input_at, .map = map_file };
    return SN_OK;
}

/* Not pread(), for WebAssembly's sake. A file's reader is one thread. */
static size_t read_file_at(void *user, uint64_t offset, void *buffer, size_t bytes) {
    if (offset > INT64_MAX || lseek(descriptor(user), (off_t)offset, SEEK_SET) < 0) return 0;
    return read_file(user, buffer, bytes);
}

sn_status sn_platform_open_file(const char *path, sn_file *file) {
    void *user = NULL;
    uint64_t size = 0;
    SN_TRY(open_to_read(path, &user, &size));
    *file = (sn_file){ .name = path, .size = size, .read_at = read_file_at, .user = user,
                       .close = close_file };
    return SN_OK;
}

bool sn_platform_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

#if defined(__EMSCRIPTEN__)

sn_status sn_platform_list(const char *path, sn_status (*visit)(void *user, const char *name),
                           void *user) {
    (void)visit;
    (void)user;
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: there are no folders here", path);
}

#else

sn_status sn_platform_list(const char *path, sn_status (*visit)(void *user, const char *name),
                           void *user) {
    DIR *folder = opendir(path);
    if (!folder) return io_error(path, "open");
    sn_status status = SN_OK;
    while (status == SN_OK) {
        errno = 0; /* readdir() returns NULL at the end as well as after an error */
        const struct dirent *entry = readdir(folder);
        if (!entry) {
            if (errno) status = io_error(path, "read");
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(user, entry->d_name);
    }
    closedir(folder);
    return status;
}

#endif

int sn_platform_same_file(const char *a, const char *b) {
    struct stat status_a, status_b;
    return stat(a, &status_a) == 0 && stat(b, &status_b) == 0 &&
           status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
}

sn_status sn_platform_make_folder(const char *path) {
    if (mkdir(path, 0777) == 0) return SN_OK;
    bool exists = errno == EEXIST && sn_platform_is_folder(path);
    return exists ? SN_OK : io_error(path, "create");
}

/* ---- writing ------------------------------------------------------------------------ */

#define PART_SUFFIX_BYTES 40
#define PART_NAMES 100 /* names tried: a killed process may have left some behind */

struct sn_output {
    int file;
    char *path; /* the name it will have */
    char *part; /* the name it has until then */
};

#if defined(__wasi__)
static long process_id(void) {
    return 0;
}
#else
static long process_id(void) {
    return (long)getpid();
}
#endif

static void output_free(sn_output *output) {
    if (output->file >= 0) close(output->file);
    sn_free(output->path);
    sn_free(output->part);
    sn_free(output);
}

/* Opens "<path>.part-<pid>", or the same with a number if that exists. */
static sn_status create_part(sn_output *output) {
    size_t length = strlen(output->path);
    memcpy(output->part, output->path, length);
    for (int i = 0; i < PART_NAMES; i++) {
        char number[8] = "";
        if (i) snprintf(number, sizeof number, "-%d", i);
        snprintf(output->part + length, PART_SUFFIX_BYTES, ".part-%ld%s", process_id(), number);
        output->file = open(output->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                            0666);
        if (output->file >= 0) return SN_OK;
        if (errno != EEXIST) break;
    }
    return io_error(output->path, "create");
}

sn_status sn_platform_create(const char *path, sn_output **output) {
    struct stat status;
    /* Renaming would replace a device (/dev/null) by a file. */
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return sn_fail(SN_E_IO, "%.300s: exists and is not a regular file", path);
    size_t length = strlen(path);
    sn_output *created = sn_alloc(sizeof *created);
    if (!created) return SN_E_NOMEM;
    created->file = -1;
    created->path = sn_alloc(length + 1);
    created->part = sn_alloc(length + PART_SUFFIX_BYTES);
    sn_status result = SN_E_NOMEM;
    if (created->path && created->part) {
        memcpy(created->path, path, length);
        result = create_part(created);
    }
    if (result != SN_OK)
        output_free(created);
    else
        *output = created;
    return result;
}

sn_status sn_output_write(sn_output *output, const void *data, size_t bytes) {
    const uint8_t *from = data;
    while (bytes) {
        size_t piece = bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30;
        ssize_t written = write(output->file, from, piece);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return io_error(output->path, "write");
        from += written;
        bytes -= (size_t)written;
    }
    return SN_OK;
}

sn_status sn_output_write_at(sn_output *output, uint64_t offset, const void *data, size_t bytes) {
    if (offset > INT64_MAX || lseek(output->file, (off_t)offset, SEEK_SET) < 0)
        return io_error(output->path, "write");
    return sn_output_write(output, data, bytes);
}

sn_status sn_output_commit(sn_output *output) {
    sn_status result = SN_OK;
    int closed = close(output->file);
    output->file = -1;
    if (closed != 0)
        result = io_error(output->path, "write");
    else if (rename(output->part, output->path) != 0)
        result = io_error(output->path, "create");
    if (result != SN_OK) unlink(output->part);
    output_free(output);
    return result;
}

void sn_output_discard(sn_output *output) {
    if (!output) return;
    unlink(output->part);
    output_free(output);
}

/* ---- unloading ---------------------------------------------------------------------- */

void sn_platform_keep_loaded(void) {
}

#endif
