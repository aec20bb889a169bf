/*
 * write.c: writes a blob that has been laid out. The model is read once, from front to back, a few
 * megabytes at a time; a matrix that lies transposed in the blob is turned in stripes of rows.
 */
#include "export.h"

#include "../platform.h"
#include "../quant/bytes.h"
#include "../worker.h"
#include "layout.h"

#include <string.h>

#define STEP ((size_t)4 << 20) /* elements at a time; whole rows, at least one panel of them */
#define STRIPE 16              /* columns that are turned together */

typedef struct writer {
    const sn_blob_layout *layout;
    sn_output *output;
    sn_progress_fn progress;
    void *user;
    uint64_t done, total; /* bytes of the model's tensors */
    uint8_t *source, *panel; /* the rows at hand, as the model has them; one panel */
    float *values;           /* decoded: [n][k] */
    uint8_t *bytes;          /* on their way into the blob */
    size_t source_bytes, panel_bytes, n_values, n_bytes; /* how much they hold */
} writer;

/* One tensor that goes into the blob. */
typedef struct item {
    const sn_gguf_tensor *tensor;
    const sn_type *type;
    bool from_panels;
    uint64_t rows, k, step; /* rows read together */
} item;

/* ---- room ---------------------------------------------------------------------------------- */

static sn_status make_room(void **block, size_t *room, uint64_t count, size_t size) {
    size_t bytes;
    if (count <= *room) return SN_OK;
    sn_free(*block);
    *block = NULL;
    *room = 0;
    if (count > SIZE_MAX || !sn_mul_size((size_t)count, size, &bytes)) bytes = SIZE_MAX;
    *block = sn_alloc(bytes);
    if (!*block) return SN_E_NOMEM;
    *room = (size_t)count;
    return SN_OK;
}

static sn_status make_rooms(writer *w, const item *it) {
    const uint64_t n = it->step * it->k, turned = it->step * STRIPE;
    void *source = w->source, *panel = w->panel, *values = w->values, *bytes = w->bytes;
    const uint64_t panel_bytes = it->from_panels ? sn_panel_bytes(it->type, (size_t)it->k) : 0;
    sn_status status = make_room(&source, &w->source_bytes, sn_type_bytes(it->type, n), 1);
    if (status == SN_OK) status = make_room(&panel, &w->panel_bytes, panel_bytes, 1);
    if (status == SN_OK) status = make_room(&values, &w->n_values, n, sizeof *w->values);
    if (status == SN_OK) status = make_room(&bytes, &w->n_bytes, n > turned ? n : turned, 4);
    w->source = source;
    w->panel = panel;
    w->values = values;
    w->bytes = bytes;
    return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

static sn_status describe(const writer *w, uint64_t index, item *it) {
    const sn_gguf *gguf = w->layout->gguf;
    const sn_packed_tensor *packed = sn_packed_at(&w->layout->packed, index);
    const sn_place *place = &w->layout->places[w->layout->first[index] - 1];
    *it = (item){.tensor = &gguf->tensors[index], .from_panels = packed != NULL,
                 .rows = place->rows, .k = place->k};
    it->type = packed ? packed->type : sn_type_find(it->tensor->type);
    if (!it->type->decode)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%s': type %s cannot be converted",
                       sn_gguf_name(gguf), it->tensor->name, it->type->name);
    const uint64_t narrow = it->k < STRIPE ? STRIPE : it->k;
    it->step = narrow < STEP ? STEP / narrow : 1;
    if (it->step > it->rows) it->step = it->rows;
    if (it->from_panels) it->step = sn_round_up((size_t)it->step, SN_PANEL_ROWS);
    return SN_OK;
}

/* The next `n` rows, as the model has them, to w->source. */
static sn_status read_rows(writer *w, const item *it, size_t n) {
    sn_input *input = &w->layout->gguf->parts[it->tensor->part].input;
    const size_t k = (size_t)it->k, row_bytes = (size_t)sn_type_bytes(it->type, it->k);
    if (!it->from_panels) return sn_input_read(input, w->source, n * row_bytes);
    for (size_t row = 0; row < n; row += SN_PANEL_ROWS) {
        const size_t rows = n - row < SN_PANEL_ROWS ? n - row : SN_PANEL_ROWS;
        SN_TRY(sn_input_read(input, w->panel, sn_panel_bytes(it->type, k)));
        sn_panel_unpack(it->type, w->panel, rows, k, w->source + row * row_bytes);
    }
    return SN_OK;
}

static sn_status decode_rows(writer *w, const item *it, size_t n) {
    const size_t count = n * (size_t)it->k;
    it->type->decode(w->source, w->values, count);
    uint32_t all = 0; /* no number: all bits of the exponent */
    for (size_t i = 0; i < count; i++)
        all |= (sn_bits_of(w->values[i]) & 0x7f800000u) == 0x7f800000u;
    if (!all) return SN_OK;
    return sn_fail(SN_E_NUMERIC, "%.300s: tensor '%s' holds a NaN or an infinity",
                   sn_gguf_name(w->layout->gguf), it->tensor->name);
}

/* ---- writing ------------------------------------------------------------------------------- */

static sn_status write_plain(const writer *w, const sn_place *place, uint64_t row, size_t n) {
    const size_t count = n * (size_t)place->k;
    for (size_t i = 0; i < count; i++) sn_store32(w->bytes + 4 * i, sn_bits_of(w->values[i]));
    return sn_output_write_at(w->output, place->offset + 4 * row * place->k, w->bytes, 4 * count);
}

/* Columns first .. first + count of n rows: each is a run of n elements in the blob. */
static void turn(const writer *w, size_t k, size_t n, size_t first, size_t count) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < count; c++)
            sn_store32(w->bytes + 4 * (c * n + i), sn_bits_of(w->values[i * k + first + c]));
}

static sn_status write_turned(const writer *w, const sn_place *place, uint64_t row, size_t n) {
    const size_t k = (size_t)place->k;
    for (size_t first = 0; first < k; first += STRIPE) {
        const size_t count = k - first < STRIPE ? k - first : STRIPE;
        const uint64_t at = place->offset + 4 * (first * place->rows + row);
        turn(w, k, n, first, count);
        if (n == place->rows) { /* the runs meet */
            SN_TRY(sn_output_write_at(w->output, at, w->bytes, 4 * n * count));
            continue;
        }
        for (size_t c = 0; c < count; c++)
            SN_TRY(sn_output_write_at(w->output, at + 4 * c * place->rows, w->bytes + 4 * c * n,
                                      4 * n));
    }
    return SN_OK;
}

/* The rows as blocks of I4, at w->bytes: the model's own where it has them. Numbers stay numbers:
 * even the largest float is one after it was divided by 7 and multiplied again. */
static void encode_int4(const writer *w, const item *it, size_t n) {
    const sn_type *i4 = sn_type_find(SN_TYPE_I4);
    const size_t count = n * (size_t)it->k;
    if (it->type == i4) memcpy(w->bytes, w->source, (size_t)sn_type_bytes(i4, count));
    else i4->encode(w->values, w->bytes, count);
}

/* Codes and scales lie apart in a blob. Both fit behind the blocks: w->bytes has 4 an element. */
static sn_status write_int4(const writer *w, const item *it, const sn_place *place, uint64_t row,
                            size_t n) {
    enum { CODES = 32, SCALE = 4, BLOCK = CODES + SCALE };
    const uint64_t row_groups = place->k / 64, all = place->rows * row_groups;
    const size_t groups = n * (size_t)row_groups;
    uint8_t *codes = w->bytes + groups * BLOCK, *scales = codes + groups * CODES;
    encode_int4(w, it, n);
    for (size_t i = 0; i < groups; i++) {
        memcpy(codes + i * CODES, w->bytes + i * BLOCK, CODES);
        memcpy(scales + i * SCALE, w->bytes + i * BLOCK + CODES, SCALE);
    }
    SN_TRY(sn_output_write_at(w->output, place->offset + row * row_groups * CODES, codes,
                              groups * CODES));
    return sn_output_write_at(w->output,
                              place->offset + all * CODES + row * row_groups * SCALE, scales,
                              groups * SCALE);
}

static sn_status write_place(const writer *w, const item *it, const sn_place *place, uint64_t row,
                             size_t n) {
    switch (place->form) {
    case SN_PLACE_INT4: return write_int4(w, it, place, row, n);
    case SN_PLACE_COLUMNS: return write_turned(w, place, row, n);
    default: return write_plain(w, place, row, n);
    }
}

static sn_status write_places(const writer *w, const item *it, uint64_t row, size_t n) {
    const uint64_t index = (uint64_t)(it->tensor - w->layout->gguf->tensors);
    for (size_t i = w->layout->first[index]; i; i = w->layout->places[i - 1].next)
        SN_TRY(write_place(w, it, &w->layout->places[i - 1], row, n));
    return SN_OK;
}

static sn_status report(writer *w, uint64_t bytes) {
    w->done += bytes;
    if (!sn_asked_to_stop(w->progress, w->user, (double)w->done, (double)w->total)) return SN_OK;
    return sn_fail(SN_E_ABORTED, "%.300s: converting was stopped", sn_gguf_name(w->layout->gguf));
}

static sn_status write_tensor(writer *w, uint64_t index) {
    item it;
    SN_TRY(describe(w, index, &it));
    SN_TRY(make_rooms(w, &it));
    sn_input *input = &w->layout->gguf->parts[it.tensor->part].input;
    SN_TRY(sn_input_skip_to(input, it.tensor->offset));
    for (uint64_t row = 0; row < it.rows; row += it.step) {
        const uint64_t left = it.rows - row;
        const size_t n = (size_t)(left < it.step ? left : it.step);
        SN_TRY(read_rows(w, &it, n));
        SN_TRY(decode_rows(w, &it, n));
        SN_TRY(write_places(w, &it, row, n));
        SN_TRY(report(w, sn_type_bytes(it.type, n * it.k)));
    }
    return SN_OK;
}

static sn_status write_all(writer *w) {
    const sn_blob_layout *layout = w->layout;
    uint8_t word[4];
    for (size_t i = 0; i < layout->n_words; i++) {
        sn_store32(word, layout->words[i].bits);
        SN_TRY(sn_output_write_at(w->output, layout->words[i].offset, word, 4));
    }
    for (uint64_t i = 0; i < layout->gguf->n_tensors; i++)
        if (layout->first[i]) w->total += layout->gguf->tensors[i].bytes;
    for (uint64_t i = 0; i < layout->gguf->n_tensors; i++)
        if (layout->first[i]) SN_TRY(write_tensor(w, i));
    return SN_OK;
}

sn_status sn_layout_write(const sn_blob_layout *layout, const char *path, sn_progress_fn progress,
                          void *user) {
    writer w = {.layout = layout, .progress = progress, .user = user};
    SN_TRY(sn_platform_create(path, &w.output));
    sn_status status = write_all(&w);
    if (status == SN_OK)
        status = sn_output_commit(w.output);
    else
        sn_output_discard(w.output);
    sn_free(w.source);
    sn_free(w.panel);
    sn_free(w.values);
    sn_free(w.bytes);
    return status;
}

/* ---- which blob ---------------------------------------------------------------------------- */

static const struct {
    const char *architecture;
    bool int4; /* its blob can be INT4 */
    sn_status (*lay_out)(sn_blob_layout *layout);
} kinds[] = {
    {"sunnynet", false, sn_layout_sunnynet},
    {"rwkv7", true, sn_layout_rwkv7},
};

static sn_status lay_out(sn_blob_layout *layout) {
    sn_span name = {NULL, 0};
    SN_TRY(sn_gguf_get_text(layout->gguf, "general.architecture", true, &name));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (name.size == strlen(kinds[i].architecture) &&
            !memcmp(name.data, kinds[i].architecture, name.size) &&
            (kinds[i].int4 || !layout->int4))
            return kinds[i].lay_out(layout);
    return sn_fail(SN_E_UNSUPPORTED, "%.300s: there is no %sblob for architecture '%.*s' "
                   "(supported: %s)", sn_gguf_name(layout->gguf), layout->int4 ? "INT4 " : "",
                   (int)(name.size < 64 ? name.size : 64), name.data,
                   layout->int4 ? "rwkv7" : "sunnynet, rwkv7");
}

sn_status sn_blob_write(const sn_gguf *gguf, const char *path, bool int4,
                        sn_progress_fn progress, void *user) {
    sn_blob_layout layout = {.gguf = NULL};
    sn_status status = sn_layout_init(&layout, gguf, int4);
    if (status == SN_OK) status = lay_out(&layout);
    if (status == SN_OK) status = sn_layout_write(&layout, path, progress, user);
    sn_layout_free(&layout);
    return status;
}
