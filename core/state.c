/*
 * state.c: making states and batches, and advancing them.
 */
#include "state.h"

#include "fpenv.h"
#include "worker.h"

#include <math.h> /* HUGE_VAL, a constant */
#include <string.h>

/* ---- making ------------------------------------------------------------------------------- */

static sn_status check_model(const sn_model *model) {
    if (!model) return sn_fail(SN_E_INVAL, "model is NULL");
    if (!model->simd) return sn_fail(SN_E_INVAL, "the model was loaded without its weights");
    return SN_OK;
}

static sn_exec_sizes exec_sizes(const sn_model *m, size_t max_tokens) {
    return (sn_exec_sizes){ max_tokens, m->scratch_floats, m->max_int8_k, (size_t)m->n_embd };
}

static void init_exec(sn_exec *exec, const sn_model *m, size_t max_tokens, void *memory) {
    const sn_exec_sizes sizes = exec_sizes(m, max_tokens);
    sn_exec_init(exec, m->simd, m->pool, m->f32_activations, &sizes, memory);
}

/* head, `bytes` of the owner's own, then scratch for max_tokens: one zeroed block. */
static sn_status new_block(const sn_model *m, size_t head, size_t bytes, size_t max_tokens,
                           uint8_t **own, uint8_t **scratch, void **block) {
    size_t scratch_bytes, total;
    const sn_exec_sizes sizes = exec_sizes(m, max_tokens);
    SN_TRY(sn_exec_size(&sizes, &scratch_bytes));
    head = sn_round_up(head, SN_ALIGNMENT);
    if (!sn_add_size(head, sn_round_up(bytes, SN_ALIGNMENT), &bytes) ||
        !sn_add_size(bytes, scratch_bytes, &total))
        return sn_fail(SN_E_NOMEM, "a state does not fit the address space");
    *block = sn_alloc(total);
    if (!*block) return SN_E_NOMEM;
    *own = (uint8_t *)*block + head;
    *scratch = (uint8_t *)*block + bytes;
    return SN_OK;
}

sn_status sn_state_new(const sn_model *model, sn_state **out) {
    uint8_t *data, *scratch;
    void *block;
    SN_TRY(check_model(model));
    if (!out) return sn_fail(SN_E_INVAL, "state is NULL");
    SN_TRY(new_block(model, sizeof(sn_state), model->state_floats * sizeof(float),
                     (size_t)model->max_chunk, &data, &scratch, &block));
    sn_state *state = block;
    state->model = model;
    state->data = (float *)(void *)data;
    init_exec(&state->exec, model, (size_t)model->max_chunk, scratch);
    *out = state;
    return SN_OK;
}

void sn_state_free(sn_state *state) {
    sn_free(state);
}

sn_status sn_state_reset(sn_state *state) {
    if (!state) return sn_fail(SN_E_INVAL, "state is NULL");
    memset(state->data, 0, state->model->state_floats * sizeof(float));
    state->position = 0;
    state->spoiled = false;
    return SN_OK;
}

sn_status sn_state_clone(const sn_state *state, sn_state **copy) {
    sn_state *made;
    if (!state || !copy) return sn_fail(SN_E_INVAL, "%s is NULL", state ? "copy" : "state");
    SN_TRY(sn_state_new(state->model, &made));
    memcpy(made->data, state->data, state->model->state_floats * sizeof(float));
    made->position = state->position;
    made->spoiled = state->spoiled;
    *copy = made;
    return SN_OK;
}

double sn_state_position(const sn_state *state) {
    return state ? (double)state->position : 0.0;
}

double sn_state_weight_bytes_read(const sn_state *state) {
    return state ? state->exec.weight_bytes : 0.0;
}

sn_status sn_state_set_abort(sn_state *state, sn_progress_fn callback, void *user) {
    if (!state) return sn_fail(SN_E_INVAL, "state is NULL");
    state->abort = callback;
    state->abort_user = user;
    return SN_OK;
}

SN_WORKER static double largest_difference(const float *a, const float *b, size_t n) {
    double largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (a[i] == b[i]) continue; /* equal infinities too */
        const double d = (double)a[i] - (double)b[i], size = d < 0.0 ? -d : d;
        if (size != size) return HUGE_VAL;
        if (size > largest) largest = size;
    }
    return largest;
}

static bool same_weights(const sn_model *a, const sn_model *b) {
    return a == b || (a->state_floats == b->state_floats &&
                      sn_weights_fingerprint(a->memory) == sn_weights_fingerprint(b->memory));
}

sn_status sn_state_compare(const sn_state *a, const sn_state *b, double *difference) {
    if (!a || !b || !difference)
        return sn_fail(SN_E_INVAL, "%s is NULL", difference ? "state" : "difference");
    if (!same_weights(a->model, b->model))
        return sn_fail(SN_E_MISMATCH, "the states belong to different models");
    const sn_fpenv saved = sn_fpenv_enter();
    *difference = largest_difference(a->data, b->data, a->model->state_floats);
    sn_fpenv_leave(saved);
    return SN_OK;
}

/* ---- advancing ---------------------------------------------------------------------------- */

static sn_status check_tokens(const sn_model *m, const int32_t *tokens, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= m->vocab)
            return sn_fail(SN_E_INVAL, "token %d is outside the vocabulary of %d", (int)tokens[i],
                           (int)m->vocab);
    return SN_OK;
}

static sn_status fail_spoiled(void) {
    return sn_fail(SN_E_NUMERIC, "the state holds a NaN or an infinity; reset or restore it");
}

static sn_status check_state(const sn_state *state) {
    if (!state) return sn_fail(SN_E_INVAL, "state is NULL");
    return state->spoiled ? fail_spoiled() : SN_OK;
}

/* What prefill writes: nothing, the last token's logits, or every token's. */
typedef enum logits_wanted { LOGITS_LAST, LOGITS_ALL } logits_wanted;

/* One chunk of at most max_chunk tokens. */
static sn_status advance(sn_state *state, const int32_t *tokens, size_t n, float *logits,
                         size_t first_logits) {
    const sn_segment segment = { state->data, 0, n };
    state->exec.spoiled = false;
    state->model->arch->forward(state->model, &state->exec, tokens, n, &segment, 1, logits,
                                first_logits);
    state->position += n;
    if (!state->exec.spoiled) return SN_OK;
    state->spoiled = true;
    return fail_spoiled();
}

SN_WORKER static sn_status prefill(sn_state *state, const int32_t *tokens, size_t n,
                                   float *logits, logits_wanted wanted) {
    const size_t chunk = (size_t)state->model->max_chunk, vocab = (size_t)state->model->vocab;
    for (size_t done = 0; done < n;) {
        const size_t count = n - done < chunk ? n - done : chunk;
        float *out = NULL;
        if (logits && wanted == LOGITS_ALL) out = logits + done * vocab;
        else if (logits && done + count == n) out = logits;
        SN_TRY(advance(state, tokens + done, count, out, wanted == LOGITS_ALL ? 0 : count - 1));
        done += count;
        if (sn_asked_to_stop(state->abort, state->abort_user, (double)done, (double)n))
            return sn_fail(SN_E_ABORTED, "stopped after %zu of %zu tokens", done, n);
    }
    return SN_OK;
}

static sn_status enter_prefill(sn_state *state, const int32_t *tokens, int32_t n, float *logits,
                               logits_wanted wanted) {
    SN_TRY(check_state(state));
    if (n < 0 || (n > 0 && !tokens))
        return sn_fail(SN_E_INVAL, n < 0 ? "n is negative" : "tokens is NULL");
    SN_TRY(check_tokens(state->model, tokens, (size_t)n));
    const sn_fpenv saved = sn_fpenv_enter();
    const sn_status status = prefill(state, tokens, (size_t)n, logits, wanted);
    sn_fpenv_leave(saved);
    return status;
}

sn_status sn_state_prefill(sn_state *state, const int32_t *tokens, int32_t n, float *logits) {
    return enter_prefill(state, tokens, n, logits, LOGITS_LAST);
}

sn_status sn_state_prefill_all(sn_state *state, const int32_t *tokens, int32_t n,
                               float *logits) {
    return enter_prefill(state, tokens, n, logits, LOGITS_ALL);
}

SN_WORKER static sn_status step(sn_state *state, int32_t token, float *logits) {
    return advance(state, &token, 1, logits, 0);
}

sn_status sn_state_step(sn_state *state, int32_t token, float *logits) {
    SN_TRY(check_state(state));
    SN_TRY(check_tokens(state->model, &token, 1));
    const sn_fpenv saved = sn_fpenv_enter();
    const sn_status status = step(state, token, logits);
    sn_fpenv_leave(saved);
    return status;
}

/* ---- batches ------------------------------------------------------------------------------ */

#define MAX_BATCH 4096

sn_status sn_batch_new(const sn_model *model, int32_t capacity, sn_batch **out) {
    uint8_t *segments, *scratch;
    void *block;
    SN_TRY(check_model(model));
    if (!out) return sn_fail(SN_E_INVAL, "batch is NULL");
    if (capacity < 1 || capacity > MAX_BATCH)
        return sn_fail(SN_E_INVAL, "batch capacity %d is outside 1..%d", (int)capacity, MAX_BATCH);
    SN_TRY(new_block(model, sizeof(sn_batch), (size_t)capacity * sizeof(sn_segment),
                     (size_t)capacity, &segments, &scratch, &block));
    sn_batch *batch = block;
    batch->model = model;
    batch->capacity = (size_t)capacity;
    batch->segments = (sn_segment *)(void *)segments;
    init_exec(&batch->exec, model, (size_t)capacity, scratch);
    *out = batch;
    return SN_OK;
}

void sn_batch_free(sn_batch *batch) {
    sn_free(batch);
}

double sn_batch_weight_bytes_read(const sn_batch *batch) {
    return batch ? batch->exec.weight_bytes : 0.0;
}

static sn_status check_states(const sn_batch *batch, sn_state *const *states, size_t n) {
    for (size_t i = 0; i < n; i++) {
        SN_TRY(check_state(states[i]));
        if (states[i]->model != batch->model)
            return sn_fail(SN_E_INVAL, "state %zu belongs to another model than the batch", i);
        for (size_t j = 0; j < i; j++)
            if (states[j] == states[i])
                return sn_fail(SN_E_INVAL, "states %zu and %zu of the batch are the same", j, i);
    }
    return SN_OK;
}

SN_WORKER static sn_status batch_step(sn_batch *batch, sn_state *const *states,
                                      const int32_t *tokens, size_t n, float *logits) {
    for (size_t i = 0; i < n; i++) batch->segments[i] = (sn_segment){ states[i]->data, i, 1 };
    batch->exec.spoiled = false;
    batch->model->arch->forward(batch->model, &batch->exec, tokens, n, batch->segments, n, logits,
                                0);
    for (size_t i = 0; i < n; i++) {
        states[i]->position++;
        states[i]->spoiled = batch->exec.spoiled;
    }
    return batch->exec.spoiled ? fail_spoiled() : SN_OK;
}

sn_status sn_batch_step(sn_batch *batch, sn_state *const *states, const int32_t *tokens,
                        int32_t n, float *logits) {
    if (!batch || (n > 0 && (!states || !tokens)))
        return sn_fail(SN_E_INVAL, "batch, states or tokens is NULL");
    if (n < 0 || (size_t)n > batch->capacity)
        return sn_fail(SN_E_INVAL, "%d states do not fit a batch of %zu", (int)n, batch->capacity);
    if (n == 0) return SN_OK;
    SN_TRY(check_states(batch, states, (size_t)n));
    SN_TRY(check_tokens(batch->model, tokens, (size_t)n));
    const sn_fpenv saved = sn_fpenv_enter();
    const sn_status status = batch_step(batch, states, tokens, (size_t)n, logits);
    sn_fpenv_leave(saved);
    return status;
}
