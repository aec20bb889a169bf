/*
 * kernel_calls ISA CALLS: calls each kernel that is no matrix product so many times through run(),
 * for an instruction counter. Prints back end, kernel, tokens and work of a call: elements of the
 * state times tokens of a recurrence, elements of a vector. Shapes are those that models have. Ends
 * with 77 if this CPU cannot run the back end. (bench/kernels --calls has the matrix products.)
 */
#include "check.h"

#include "simd.h"

#define TOKENS 32
#define KEYS 64
#define VALUES 64
#define STATES 16 /* of a channel */
#define N 768

static const sn_simd *simd;
static float *S, *y, *in[6]; /* of one size, so that any kernel may have any of them */
static int8_t *q;
static int32_t *sum;

typedef struct kernel {
    const char *name;
    void (*call)(const struct kernel *kernel);
    size_t n_tokens, work; /* work of a token */
    int gated;
} kernel;

static void matrix_scan(const kernel *k) {
    const int rank1 = strncmp(k->name, "rank1", 5) == 0;
    const sn_matrix_scan scan = {
        .y = y, .y_stride = VALUES, .S = S, .row = VALUES, .n_keys = KEYS, .n_values = VALUES,
        .n_tokens = k->n_tokens, .decay = rank1 ? SN_DECAY_KEY : SN_DECAY_HEAD,
        .d = { in[0], KEYS }, .k = { in[1], KEYS }, .v = { in[2], VALUES }, .r = { in[3], KEYS },
        .u = { in[4], KEYS }, .b = { in[5], KEYS },
    };
    (rank1 ? simd->rank1_scan : simd->outer_scan)(&scan);
}

static void recur_scan(const kernel *k) {
    const sn_recur scan = { .y = y, .y_stride = N, .s = S, .a = { in[0], N }, .b = { in[1], N },
                            .n = N, .n_tokens = k->n_tokens, .gated = k->gated };
    simd->recur_scan(&scan);
}

static void selective_scan(const kernel *k) {
    const sn_selective_scan scan = {
        .y = y, .y_stride = N, .S = S, .A = in[0], .row = N, .n_states = STATES, .n_channels = N,
        .n_tokens = k->n_tokens, .dt = { in[1], N }, .x = { in[2], N }, .B = { in[3], STATES },
        .C = { in[4], STATES },
    };
    simd->selective_scan(&scan);
}

static void quantize(const kernel *k) {
    if (simd->quantize_q8(q, y, sum, in[1], N)) return;
    fprintf(stderr, "kernel_calls: %s: its input is not finite\n", k->name);
    exit(1);
}

static void exponential(const kernel *k) {
    (void)k;
    simd->exp(y, in[1], N);
}

static void mul_silu(const kernel *k) {
    (void)k;
    simd->mul_silu(y, in[1], in[2], N);
}

static void norm(const kernel *k) {
    if (strcmp(k->name, "layer_norm") == 0) simd->layer_norm(y, in[1], in[2], in[3], N, 1e-5f);
    else simd->rms_norm(y, in[1], in[2], N, 1e-5f);
}

static const kernel kernels[] = {
    { "rank1_scan", matrix_scan, TOKENS, KEYS * VALUES, 0 },
    { "rank1_scan", matrix_scan, 1, KEYS * VALUES, 0 },
    { "outer_scan", matrix_scan, TOKENS, KEYS * VALUES, 0 },
    { "outer_scan", matrix_scan, 1, KEYS * VALUES, 0 },
    { "recur_scan", recur_scan, TOKENS, N, 0 },
    { "recur_scan-gated", recur_scan, TOKENS, N, 1 },
    { "selective_scan", selective_scan, TOKENS, STATES * N, 0 },
    { "quantize_q8", quantize, 1, N, 0 },
    { "exp", exponential, 1, N, 0 },
    { "mul_silu", mul_silu, 1, N, 0 },
    { "layer_norm", norm, 1, N, 0 },
    { "rms_norm", norm, 1, N, 0 },
};

/* Not inlined, so that it is found in a profile by its name. */
static __attribute__((noinline)) void run(const kernel *k) {
    k->call(k);
}

static void *take(size_t bytes) {
    void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (block) return memset(block, 0, bytes);
    fprintf(stderr, "kernel_calls: out of memory: %zu bytes\n", bytes);
    exit(1);
}

static void take_all(void) {
    const size_t n = N * TOKENS; /* the largest array of any kernel */
    check_random random = { 5 };
    S = take(n * sizeof *S), y = take(n * sizeof *y), q = take(n), sum = take(n * sizeof *sum);
    for (int i = 0; i < 6; i++) {
        in[i] = take(n * sizeof(float));
        for (size_t j = 0; j < n; j++) in[i][j] = 0.25f + 0.25f * check_float(&random);
    }
}

static void give_all(void) {
    free(S), free(y), free(q), free(sum);
    for (int i = 0; i < 6; i++) free(in[i]);
}

int main(int argc, char **argv) {
    const long calls = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (calls < 1) {
        fprintf(stderr, "usage: kernel_calls ISA CALLS\n");
        return 2;
    }
    simd = sn_simd_find(argv[1]);
    if (!simd || !sn_simd_usable(simd)) {
        fprintf(stderr, "kernel_calls: no back end '%s' on this CPU\n", argv[1]);
        return 77;
    }
    take_all();
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const kernel *k = &kernels[i];
        for (long call = 0; call < calls; call++) run(k);
        printf("%s %s %zu %zu\n", simd->name, k->name, k->n_tokens, k->work * k->n_tokens);
    }
    give_all();
    return 0;
}
