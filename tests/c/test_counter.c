/*
 * Weight bytes read, for every architecture: a chunk of a prompt and a batch read each matrix and
 * vector once, however many tokens they compute, and one embedding row for each. What one pass must
 * read is summed here from the sizes of the tensors. And how often the threads meet: at most
 * eight times a layer and token, and once for the head.
 * Usage: test_counter models/test
 */
#include "check.h"

#include "state.h"
#include "sunnynet.h"

#define N_TOKENS 32
#define N_STATES 5

/* Of one forward pass. */
typedef struct pass_bytes {
    double weights;   /* every matrix and vector in use but the embedding's rows */
    double head;      /* of these: the output matrix, which is skipped without logits; it may be the
                       * embedding, as a matrix */
    double embedding; /* one row, for each token */
} pass_bytes;

static pass_bytes count_tensors(const sn_model *model) {
    pass_bytes bytes = { 0.0, 0.0, 0.0 };
    double tied = 0.0;
    for (int32_t i = 0; i < sn_model_tensor_count(model); i++) {
        sn_tensor_info info = { .struct_size = sizeof info };
        CHECK(sn_model_get_tensor(model, i, &info) == SN_OK, "%s", sn_last_error());
        if (strcmp(info.name, "token_embd.weight") == 0) {
            bytes.embedding = info.file_bytes / info.dims[1];
            tied = info.resident_bytes;
        } else {
            bytes.weights += info.resident_bytes;
        }
        if (strcmp(info.name, "output.weight") == 0) bytes.head = info.resident_bytes;
    }
    if (bytes.head == 0.0) {
        bytes.head = tied;
        bytes.weights += tied;
    }
    CHECK(bytes.embedding > 0.0 && bytes.head > 0.0, "no embedding or no output");
    return bytes;
}

static void check_bytes(const char *what, double got, double wanted) {
    CHECK(got == wanted, "%s: %.0f bytes read, %.0f are one pass each", what, got, wanted);
}

#define MOST_MEETINGS 8 /* of a layer */

static void check_meetings(const sn_model *model, sn_state *state) {
    sn_model_info info = { .struct_size = sizeof info };
    const uint64_t before = state->exec.meetings;
    CHECK(sn_model_get_info(model, &info) == SN_OK, "%s", sn_last_error());
    CHECK(sn_state_step(state, 2, NULL) == SN_OK, "%s", sn_last_error());
    const uint64_t met = state->exec.meetings - before;
    const uint64_t most = MOST_MEETINGS * (uint64_t)info.n_layers;
    CHECK(met > 0 && met <= most, "%s: threads met %llu times, %llu are allowed", info.architecture,
          (unsigned long long)met, (unsigned long long)most);
}

static void check_state(const sn_model *model, const pass_bytes *pass, int32_t max_chunk,
                        float *logits) {
    const int passes = (N_TOKENS + max_chunk - 1) / max_chunk;
    const double rows = N_TOKENS * pass->embedding;
    int32_t tokens[N_TOKENS];
    sn_state *state;
    for (int32_t i = 0; i < N_TOKENS; i++) tokens[i] = i;
    CHECK(sn_state_new(model, &state) == SN_OK, "%s", sn_last_error());
    check_bytes("new state", sn_state_weight_bytes_read(state), 0.0);

    double wanted = passes * (pass->weights - pass->head) + pass->head + rows;
    CHECK(sn_state_prefill(state, tokens, N_TOKENS, logits) == SN_OK, "%s", sn_last_error());
    check_bytes("prefill", sn_state_weight_bytes_read(state), wanted);
    wanted += passes * (pass->weights - pass->head) + rows;
    CHECK(sn_state_prefill(state, tokens, N_TOKENS, NULL) == SN_OK, "%s", sn_last_error());
    check_bytes("prefill, no logits", sn_state_weight_bytes_read(state), wanted);
    wanted += passes * pass->weights + rows;
    CHECK(sn_state_prefill_all(state, tokens, N_TOKENS, logits) == SN_OK, "%s", sn_last_error());
    check_bytes("prefill, all logits", sn_state_weight_bytes_read(state), wanted);
    wanted += pass->weights + pass->embedding;
    CHECK(sn_state_step(state, 1, logits) == SN_OK, "%s", sn_last_error());
    check_bytes("step", sn_state_weight_bytes_read(state), wanted);
    check_meetings(model, state);
    sn_state_free(state);
}

static void check_batch(const sn_model *model, const pass_bytes *pass, float *logits) {
    const int32_t tokens[N_STATES] = { 4, 3, 2, 1, 4 };
    sn_state *states[N_STATES];
    sn_batch *batch;
    CHECK(sn_batch_new(model, N_STATES, &batch) == SN_OK, "%s", sn_last_error());
    for (int i = 0; i < N_STATES; i++)
        CHECK(sn_state_new(model, &states[i]) == SN_OK, "%s", sn_last_error());

    double wanted = pass->weights + N_STATES * pass->embedding;
    CHECK(sn_batch_step(batch, states, tokens, N_STATES, logits) == SN_OK, "%s", sn_last_error());
    check_bytes("batch of 5", sn_batch_weight_bytes_read(batch), wanted);
    wanted += pass->weights - pass->head + 2 * pass->embedding;
    CHECK(sn_batch_step(batch, states, tokens, 2, NULL) == SN_OK, "%s", sn_last_error());
    check_bytes("batch of 2, no logits", sn_batch_weight_bytes_read(batch), wanted);

    for (int i = 0; i < N_STATES; i++) sn_state_free(states[i]);
    sn_batch_free(batch);
}

static void check_model(const char *path, int32_t max_chunk, int32_t activations,
                        int32_t threads) {
    sn_model_options options;
    sn_model *model;
    sn_model_options_init(&options);
    options.max_chunk = max_chunk;
    options.activations = activations;
    options.n_threads = threads;
    sn_status status = sn_model_load(path, &options, &model);
    CHECK(status == SN_OK, "%s", sn_last_error());
    if (status != SN_OK) return;

    sn_model_info info = { .struct_size = sizeof info };
    CHECK(sn_model_get_info(model, &info) == SN_OK, "%s", sn_last_error());
    const pass_bytes pass = count_tensors(model);
    check_bytes("bytes_per_token", info.bytes_per_token, pass.weights + pass.embedding);
    float *logits = malloc(N_TOKENS * (size_t)info.vocab * sizeof *logits);
    CHECK(logits != NULL, "out of memory");
    if (logits) {
        check_state(model, &pass, max_chunk, logits);
        check_batch(model, &pass, logits);
    }
    free(logits);
    sn_model_free(model);
}

int main(int argc, char **argv) {
    static const char *const names[] = {
        "rwkv7-micro.f32", "rwkv7-micro.bf16", "rwkv7-k256.q8_0", "rwkv7-k256.q5_1",
        "rwkv7-k256.q4_k_m", "mamba2-micro-g2.q8_0", "mamba-micro.f16", "deltanet-micro.q8_0",
        "gated-deltanet-micro.bf16", "gla-micro.q4_0", "hgrn2-micro.f16", "sunnynet-micro.q8_0",
        "sunnynet-micro-ablation.f16",
    };
    if (argc != 2) {
        fprintf(stderr, "usage: test_counter models/test\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.gguf", argv[1], names[i]);
        check_model(path, N_TOKENS, SN_ACTIVATIONS_INT8, 1);
        check_model(path, N_TOKENS, SN_ACTIVATIONS_F32, 2);
        check_model(path, 7, SN_ACTIVATIONS_INT8, 2);
    }
    return check_report("counter");
}
