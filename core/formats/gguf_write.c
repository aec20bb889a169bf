#include "gguf_write.h"

#include "gguf_head.h"
#include "gguf_layout.h"

#include <inttypes.h>
#include <string.h>

struct sn_gguf_writer {
    sn_output *output;
    char *path;
    sn_gguf_head head;
    uint64_t written; /* of the data section, padding included */
    uint64_t current; /* the tensor whose data comes next */
};

static sn_span span_of(const char *text) {
    return (sn_span){ .data = text, .size = strlen(text) };
}

/* ---- declarations ------------------------------------------------------------------- */

sn_status sn_gguf_put_u32(sn_gguf_writer *writer, const char *key, uint32_t value) {
    return sn_gguf_head_put_number(&writer->head, key, SN_GGUF_U32, value);
}

sn_status sn_gguf_put_text(sn_gguf_writer *writer, const char *key, const char *value) {
    return sn_gguf_head_put_text(&writer->head, key, span_of(value));
}

sn_status sn_gguf_put_u32s(sn_gguf_writer *writer, const char *key, const uint32_t *values,
                           uint64_t n) {
    return sn_gguf_head_put_words(&writer->head, key, SN_GGUF_U32, values, n);
}

sn_status sn_gguf_put_texts(sn_gguf_writer *writer, const char *key, const char *const *values,
                            uint64_t n) {
    sn_span *texts = sn_alloc_array((size_t)n, sizeof *texts);
    if (!texts) return SN_E_NOMEM;
    for (uint64_t i = 0; i < n; i++) texts[i] = span_of(values[i]);
    sn_status status = sn_gguf_head_put_texts(&writer->head, key, texts, n);
    sn_free(texts);
    return status;
}

sn_status sn_gguf_put_value(sn_gguf_writer *writer, const sn_gguf_value *value) {
    return sn_gguf_head_put_value(&writer->head, value);
}

sn_status sn_gguf_declare(sn_gguf_writer *writer, const char *name, uint32_t type,
                          uint32_t n_dims, const uint64_t *dims, uint64_t bytes) {
    return sn_gguf_head_declare(&writer->head, name, type, n_dims, dims, bytes);
}

/* ---- the file ----------------------------------------------------------------------- */

static sn_status write_header(sn_gguf_writer *writer) {
    if (writer->head.finished) return SN_OK;
    SN_TRY(sn_gguf_head_finish(&writer->head));
    return sn_output_write(writer->output, writer->head.bytes, writer->head.n_bytes);
}

/* Zeros up to the next tensor's start. */
static sn_status pad(sn_gguf_writer *writer) {
    static const uint8_t zeros[GGUF_ALIGNMENT];
    uint64_t start = sn_gguf_head_align(&writer->head, writer->written);
    while (writer->written < start) {
        uint64_t gap = start - writer->written;
        size_t piece = gap < sizeof zeros ? (size_t)gap : sizeof zeros;
        SN_TRY(sn_output_write(writer->output, zeros, piece));
        writer->written += piece;
    }
    return SN_OK;
}

sn_status sn_gguf_write_data(sn_gguf_writer *writer, const void *data, size_t bytes) {
    const uint8_t *from = data;
    SN_TRY(write_header(writer));
    while (bytes) {
        if (writer->current == writer->head.n_tensors)
            return sn_fail(SN_E_INVAL, "%.300s: %zu bytes more than the tensors hold",
                           writer->path, bytes);
        uint64_t end = writer->head.ends[writer->current], left = end - writer->written;
        size_t piece = bytes < left ? bytes : (size_t)left;
        SN_TRY(sn_output_write(writer->output, from, piece));
        from += piece;
        bytes -= piece;
        writer->written += piece;
        if (writer->written < end) break;
        SN_TRY(pad(writer));
        writer->current++;
    }
    return SN_OK;
}

sn_status sn_gguf_writer_new(const char *path, sn_gguf_writer **writer) {
    sn_gguf_writer *created = sn_alloc(sizeof *created);
    if (!created) return SN_E_NOMEM;
    size_t bytes = strlen(path) + 1;
    created->path = sn_alloc(bytes);
    sn_status status = SN_E_NOMEM;
    if (created->path) {
        memcpy(created->path, path, bytes);
        status = sn_gguf_head_init(&created->head, created->path);
    }
    if (status == SN_OK) status = sn_platform_create(path, &created->output);
    if (status == SN_OK)
        *writer = created;
    else
        sn_gguf_writer_discard(created);
    return status;
}

sn_status sn_gguf_writer_finish(sn_gguf_writer *writer) {
    sn_status status = write_header(writer);
    if (status == SN_OK && writer->current < writer->head.n_tensors)
        status = sn_fail(SN_E_INVAL, "%.300s: data for %" PRIu64 " of %" PRIu64 " tensors came",
                         writer->path, writer->current, writer->head.n_tensors);
    if (status == SN_OK) {
        status = sn_output_commit(writer->output);
        writer->output = NULL;
    }
    sn_gguf_writer_discard(writer);
    return status;
}

void sn_gguf_writer_discard(sn_gguf_writer *writer) {
    if (!writer) return;
    sn_output_discard(writer->output);
    sn_gguf_head_free(&writer->head);
    sn_free(writer->path);
    sn_free(writer);
}
