/* inspect.c: `sunnynet info`: what a file holds, without reading its weights. */
#include <string.h>

#include "common.h"

#define MAX_TYPES 40

/* All tensors of one type. */
typedef struct type_row {
    const char *type;
    double tensors, elements, file_bytes, resident_bytes;
} type_row;

typedef struct type_table {
    type_row rows[MAX_TYPES];
    int32_t n;
} type_table;

static double element_count(const sn_tensor_info *t) {
    double n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) n *= t->dims[i];
    return n;
}

static int get_tensor(const loaded *m, int32_t index, sn_tensor_info *t) {
    memset(t, 0, sizeof *t);
    t->struct_size = sizeof *t;
    sn_status status = sn_model_get_tensor(m->model, index, t);
    return status == SN_OK ? EXIT_DONE : fail_library(status, m->path.data);
}

static void count_tensor(type_table *table, const sn_tensor_info *t) {
    int32_t i = 0;
    while (i < table->n && strcmp(table->rows[i].type, t->type) != 0) i++;
    if (i == MAX_TYPES) return;
    if (i == table->n) table->rows[table->n++] = (type_row){.type = t->type};
    type_row *row = &table->rows[i];
    row->tensors++;
    row->elements += element_count(t);
    row->file_bytes += t->file_bytes;
    row->resident_bytes += t->resident_bytes;
}

static int count_types(const loaded *m, type_table *table) {
    for (int32_t i = 0; i < sn_model_tensor_count(m->model); i++) {
        sn_tensor_info t;
        int code = get_tensor(m, i, &t);
        if (code != EXIT_DONE) return code;
        count_tensor(table, &t);
    }
    return EXIT_DONE;
}

static void list_backends(buffer *b, const char *chosen) {
    buffer_text(b, "back ends       ");
    for (int32_t i = 0; i < sn_backend_count(); i++) {
        const char *name = sn_backend_name(i);
        buffer_printf(b, "%s%s%s", i == 0 ? "" : ", ", name,
                      strcmp(name, chosen) == 0   ? " (chosen)"
                      : sn_backend_usable(i) == 1 ? ""
                                                  : " (not on this CPU)");
    }
    buffer_text(b, "\n");
}

static void print_tokenizer(buffer *b, const sn_tokenizer *t) {
    if (t == NULL) {
        buffer_text(b, "tokenizer       none\n");
        return;
    }
    buffer_printf(b, "tokenizer       %s, %d ids; bos %d, eos %d, eot %d\n", sn_tokenizer_kind(t),
                  (int)sn_tokenizer_vocab(t), (int)sn_tokenizer_bos(t), (int)sn_tokenizer_eos(t),
                  (int)sn_tokenizer_eot(t));
}

/* True if the model has a chat format that is known, and can be written with its tokenizer. */
static bool find_chat(const loaded *m, sn_chat_format *format) {
    format->struct_size = sizeof *format;
    return sn_model_chat(m->model, m->tokenizer, format) == SN_OK;
}

static const char *source_name(const sn_chat_format *format) {
    return format->source == SN_CHAT_TEMPLATE ? "template" : "architecture";
}

static void print_chat(buffer *b, const loaded *m) {
    sn_chat_format format;
    if (find_chat(m, &format))
        buffer_printf(b, "chat format     %s, from the %s\n", format.name, source_name(&format));
    else if (*m->info.chat_template == '\0')
        buffer_text(b, "chat format     none\n");
    else
        buffer_printf(b, "chat format     none: %s\n", sn_last_error());
}

static void print_types(buffer *b, const type_table *table) {
    if (table->n == 0) return;
    buffer_text(b, "\ntype     tensors     elements    file bytes  resident bytes  "
                   "bits in file  bits resident\n");
    for (int32_t i = 0; i < table->n; i++) {
        const type_row *row = &table->rows[i];
        double elements = row->elements > 0 ? row->elements : 1;
        buffer_printf(b, "%-8s%8.0f%13.0f%14.0f%16.0f%14.2f%15.2f\n", row->type, row->tensors,
                      row->elements, row->file_bytes, row->resident_bytes,
                      8 * row->file_bytes / elements, 8 * row->resident_bytes / elements);
    }
}

static int print_tensors(buffer *b, const loaded *m) {
    buffer_text(b, "\n");
    for (int32_t i = 0; i < sn_model_tensor_count(m->model); i++) {
        sn_tensor_info t;
        int code = get_tensor(m, i, &t);
        if (code != EXIT_DONE) return code;
        buffer_printf(b, "%-44s %-8s", t.name, t.type);
        for (int32_t k = 0; k < t.n_dims; k++)
            buffer_printf(b, "%s%.0f", k == 0 ? " " : " x ", t.dims[k]);
        buffer_text(b, "\n");
    }
    return EXIT_DONE;
}

/* A model of another architecture, and a tokenizer alone, have no sizes. */
static bool runs(const loaded *m) {
    return m->info.vocab > 0;
}

static const char *why_not(const loaded *m) {
    if (runs(m) || *m->info.architecture == '\0') return "";
    return sn_model_tensor_count(m->model) == 0 ? " (no weights)" : " (not supported)";
}

static void print_shape(buffer *b, const sn_model_info *i) {
    buffer_printf(b, "shape           %d layers, width %d, ffn %d, %d heads of %d, vocab %d\n",
                  (int)i->n_layers, (int)i->n_embd, (int)i->n_ffn, (int)i->n_heads,
                  (int)i->head_size, (int)i->vocab);
}

static void print_sizes(buffer *b, const sn_model_info *i) {
    buffer_printf(b, "resident        %.0f bytes, %.2f bits a weight\n", i->resident_bytes,
                  8 * i->resident_bytes / i->parameters);
    buffer_printf(b, "state           %.0f bytes\n", i->state_bytes);
    buffer_printf(b, "read per token  %.0f bytes\n", i->bytes_per_token);
}

static int print_info(buffer *b, const loaded *m, const type_table *table, const char *chosen,
                      bool tensors) {
    const sn_model_info *i = &m->info;
    buffer_printf(b, "file            %s\n", m->path.data);
    buffer_printf(b, "architecture    %s%s%s%s\n", *i->architecture ? i->architecture : "none",
                  why_not(m), *i->name == '\0' ? "" : ", ", i->name);
    if (runs(m)) print_shape(b, i);
    if (i->parameters > 0) {
        buffer_printf(b, "parameters      %.0f\n", i->parameters);
        buffer_printf(b, "file size       %.0f bytes, %.2f bits a weight\n", i->file_bytes,
                      8 * i->file_bytes / i->parameters);
    }
    if (runs(m)) print_sizes(b, i);
    print_tokenizer(b, m->tokenizer);
    buffer_printf(b, "chat template   %s\n", *i->chat_template == '\0' ? "none" : "yes");
    print_chat(b, m);
    list_backends(b, chosen);
    print_types(b, table);
    return tensors ? print_tensors(b, m) : EXIT_DONE;
}

static void json_backends(buffer *b, const char *chosen) {
    json_name(b, "backends");
    buffer_text(b, "[");
    for (int32_t i = 0; i < sn_backend_count(); i++) {
        const char *name = sn_backend_name(i);
        buffer_text(b, i == 0 ? "{" : ",{");
        json_pair_text(b, "name", name);
        json_name(b, "usable");
        buffer_text(b, sn_backend_usable(i) == 1 ? "true" : "false");
        json_name(b, "chosen");
        buffer_text(b, strcmp(name, chosen) == 0 ? "true}" : "false}");
    }
    buffer_text(b, "]");
}

static void json_tokenizer(buffer *b, const sn_tokenizer *t) {
    json_name(b, "tokenizer");
    if (t == NULL) {
        buffer_text(b, "null");
        return;
    }
    buffer_text(b, "{");
    json_pair_text(b, "kind", sn_tokenizer_kind(t));
    json_pair(b, "vocab", sn_tokenizer_vocab(t));
    json_pair(b, "bos", sn_tokenizer_bos(t));
    json_pair(b, "eos", sn_tokenizer_eos(t));
    json_pair(b, "eot", sn_tokenizer_eot(t));
    buffer_text(b, "}");
}

static void json_chat(buffer *b, const loaded *m) {
    sn_chat_format format;
    json_name(b, "chat_format");
    if (!find_chat(m, &format)) {
        buffer_text(b, "null");
        return;
    }
    buffer_text(b, "{");
    json_pair_text(b, "name", format.name);
    json_pair_text(b, "from", source_name(&format));
    buffer_text(b, "}");
}

static void json_types(buffer *b, const type_table *table) {
    json_name(b, "types");
    buffer_text(b, "[");
    for (int32_t i = 0; i < table->n; i++) {
        const type_row *row = &table->rows[i];
        buffer_text(b, i == 0 ? "{" : ",{");
        json_pair_text(b, "type", row->type);
        json_pair(b, "tensors", row->tensors);
        json_pair(b, "elements", row->elements);
        json_pair(b, "file_bytes", row->file_bytes);
        json_pair(b, "resident_bytes", row->resident_bytes);
        buffer_text(b, "}");
    }
    buffer_text(b, "]");
}

static int json_tensors(buffer *b, const loaded *m) {
    json_name(b, "tensors");
    buffer_text(b, "[");
    for (int32_t i = 0; i < sn_model_tensor_count(m->model); i++) {
        sn_tensor_info t;
        int code = get_tensor(m, i, &t);
        if (code != EXIT_DONE) return code;
        buffer_text(b, i == 0 ? "{" : ",{");
        json_pair_text(b, "name", t.name);
        json_pair_text(b, "type", t.type);
        json_name(b, "dims");
        for (int32_t k = 0; k < t.n_dims; k++) buffer_printf(b, "%s%.0f", k ? "," : "[", t.dims[k]);
        buffer_text(b, t.n_dims == 0 ? "[]" : "]");
        json_pair(b, "file_bytes", t.file_bytes);
        json_pair(b, "resident_bytes", t.resident_bytes);
        buffer_text(b, "}");
    }
    buffer_text(b, "]");
    return EXIT_DONE;
}

static int json_info(buffer *b, const loaded *m, const type_table *table, const char *chosen) {
    const sn_model_info *i = &m->info;
    buffer_text(b, "{");
    json_pair_text(b, "file", m->path.data);
    json_pair_text(b, "architecture", i->architecture);
    json_pair_text(b, "name", i->name);
    json_pair(b, "n_layers", i->n_layers);
    json_pair(b, "n_embd", i->n_embd);
    json_pair(b, "n_ffn", i->n_ffn);
    json_pair(b, "n_heads", i->n_heads);
    json_pair(b, "head_size", i->head_size);
    json_pair(b, "vocab", i->vocab);
    json_pair(b, "parameters", i->parameters);
    json_pair(b, "file_bytes", i->file_bytes);
    json_pair(b, "resident_bytes", i->resident_bytes);
    json_pair(b, "state_bytes", i->state_bytes);
    json_pair(b, "bytes_per_token", i->bytes_per_token);
    json_tokenizer(b, m->tokenizer);
    json_pair_text(b, "chat_template", i->chat_template);
    json_chat(b, m);
    json_backends(b, chosen);
    json_types(b, table);
    int code = json_tensors(b, m);
    buffer_text(b, "}\n");
    return code;
}

int command_info(const arguments *args) {
    loaded m;
    buffer b = {0};
    type_table table = {.n = 0};
    int code = model_open(&m, args, 0, true);
    const char *chosen = args->isa;
    if (code == EXIT_DONE && chosen == NULL) {
        sn_status status = sn_backend_default(&chosen);
        if (status != SN_OK) code = fail_library(status, NULL);
    }
    if (code == EXIT_DONE) code = count_types(&m, &table);
    if (code == EXIT_DONE)
        code = args->json ? json_info(&b, &m, &table, chosen)
                          : print_info(&b, &m, &table, chosen, args->tensors);
    if (code == EXIT_DONE && !out_buffer(&b)) code = OUT_CLOSED;
    buffer_free(&b);
    model_close(&m);
    return code;
}
