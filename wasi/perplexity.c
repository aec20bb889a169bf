/* perplexity.c: `sunnynet perplexity`: how well a model predicts a text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "terminal.h"

typedef struct measure {
    const arguments *args;
    loaded model;
    buffer text;
    id_list ids; /* the start token, then the text */
    double nats;
} measure;

/* -log softmax(row)[id] in double precision. */
static double surprise(const float *row, size_t vocab, int32_t id) {
    double best = row[0], sum = 0;
    for (size_t i = 1; i < vocab; i++)
        if (row[i] > best) best = row[i];
    for (size_t i = 0; i < vocab; i++) sum += exp((double)row[i] - best);
    return log(sum) + best - (double)row[id];
}

/* Token i is predicted by the scores after token i - 1; the last one predicts nothing. */
static int measure_chunks(measure *m, sn_state *state, float *rows) {
    size_t vocab = (size_t)m->model.info.vocab;
    int32_t chunk = (int32_t)m->args->chunk, total = m->ids.n - 1;
    progress p;
    progress_start(&p, "reading");
    int code = EXIT_DONE;
    for (int32_t i = 0; i < total && code == EXIT_DONE; i += chunk) {
        int32_t n = total - i < chunk ? total - i : chunk;
        sn_status status = sn_state_prefill_all(state, m->ids.items + i, n, rows);
        if (status != SN_OK) code = fail_library(status, m->model.path.data);
        for (int32_t k = 0; k < n && code == EXIT_DONE; k++)
            m->nats += surprise(rows + (size_t)k * vocab, vocab, m->ids.items[i + k + 1]);
        if (progress_report(&p, i + n, total) != 0) code = EXIT_INTERRUPTED;
    }
    progress_end(&p);
    return code;
}

static int measure_text(measure *m) {
    sn_state *state;
    sn_status status = sn_state_new(m->model.model, &state);
    if (status != SN_OK) return fail_library(status, m->model.path.data);
    float *rows = floats_new((size_t)m->args->chunk, (size_t)m->model.info.vocab);
    int code = rows == NULL ? fail_memory() : measure_chunks(m, state, rows);
    free(rows);
    sn_state_free(state);
    return code;
}

static int show(measure *m) {
    double tokens = m->ids.n - 1, bytes = (double)m->text.size;
    double nats = m->nats / tokens, bits = m->nats / log(2) / bytes;
    buffer b = {0};
    if (m->args->json) {
        buffer_text(&b, "{");
        json_pair(&b, "nats_per_token", nats);
        json_pair(&b, "perplexity", exp(nats));
        json_pair(&b, "bits_per_byte", bits);
        json_pair(&b, "tokens", tokens);
        json_pair(&b, "bytes", bytes);
        json_pair(&b, "first_token", m->ids.items[0]);
        buffer_text(&b, "}\n");
    } else {
        buffer_printf(&b, "nats/token  %.6f\nperplexity  %.4f\nbits/byte   %.6f\n", nats, exp(nats),
                      bits);
        buffer_printf(&b, "tokens      %.0f\nbytes       %.0f\n", tokens, bytes);
        buffer_printf(&b, "one sequence that starts from token %d\n", (int)m->ids.items[0]);
    }
    bool written = out_buffer(&b);
    buffer_free(&b);
    return written ? EXIT_DONE : OUT_CLOSED;
}

static int prepare(measure *m) {
    if (m->args->file == NULL) return fail_usage("perplexity", "a text is missing: give -f FILE");
    int code = read_file(m->args->file, &m->text);
    if (code == EXIT_DONE && m->text.size == 0) code = fail("%s: is empty", m->args->file);
    if (code == EXIT_DONE)
        code = model_open(&m->model, m->args, (int32_t)m->args->threads, false);
    if (code == EXIT_DONE) code = model_need_tokenizer(&m->model);
    if (code != EXIT_DONE) return code;
    int32_t bos = sn_tokenizer_bos(m->model.tokenizer);
    code = ids_push(&m->ids, bos < 0 ? 0 : bos);
    if (code == EXIT_DONE)
        code = ids_encode(&m->ids, m->model.tokenizer, m->text.data, m->text.size,
                          m->args->special ? SN_ENCODE_SPECIAL : 0);
    return code;
}

int command_perplexity(const arguments *args) {
    measure m;
    memset(&m, 0, sizeof m);
    m.args = args;
    int code = prepare(&m);
    if (code == EXIT_DONE) code = measure_text(&m);
    if (code == EXIT_DONE) code = show(&m);
    ids_free(&m.ids);
    buffer_free(&m.text);
    model_close(&m.model);
    return code;
}
