/* build: cc -std=c99 -Icore examples/abi.c build/native/libsunnynet.a -pthread */
/*
 * The stable ABI: a leaky integrator over three channels, then, if a packed RWKV-7 blob is given,
 * the most likely token after the ids that follow it:
 *
 *     abi model.runtime.bin 1 42 1000
 */
#include "sn_abi.h"

#include <stdio.h>
#include <stdlib.h>

static int integrate(void) {
    const float keep[2][3] = { { 0.5f, 0.25f, 0.0f }, { 0.5f, 0.25f, 1.0f } };
    const float input[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    const float start[3] = { 8, 8, 8 };
    float out[2][3], end[3];
    /* out = keep * before + (1 - keep) * input, for 1 row of 2 steps of 3 channels */
    if (sn_abi_recur_scan(keep[0], input[0], start, out[0], end, 1, 2, 3, 1) != SN_OK) return 1;
    printf("%g %g %g\n", end[0], end[1], end[2]);
    return 0;
}

static int predict(const char *path, int n, char **ids) {
    int status = 1, i;
    SnAbiRwkv7 *model = sn_abi_rwkv7_load(path);
    const int32_t vocab = sn_abi_rwkv7_vocab(model);
    float *logits = malloc((size_t)(vocab ? vocab : 1) * sizeof *logits);
    if (!model || !logits) {
        fprintf(stderr, "%s: not a packed RWKV-7 blob, or no memory for it\n", path);
        goto end;
    }
    for (i = 0; i < n; i++)
        if (sn_abi_rwkv7_step(model, (int32_t)atoi(ids[i]), logits) != SN_OK) {
            fprintf(stderr, "%s: not an id of this model\n", ids[i]);
            goto end;
        }
    if (n) {
        int32_t best = 0, id;
        for (id = 1; id < vocab; id++)
            if (logits[id] > logits[best]) best = id;
        printf("%d\n", (int)best);
    }
    status = 0;
end:
    free(logits);
    sn_abi_rwkv7_free(model);
    return status;
}

int main(int argc, char **argv) {
    if (sn_abi_check(SN_ABI_VERSION_MAJOR) != SN_OK) {
        fprintf(stderr, "the library has another ABI\n");
        return 1;
    }
    if (integrate() != 0) return 1;
    if (argc < 2) return 0;
    if (!(sn_abi_caps() & SN_CAP_RWKV7)) {
        fprintf(stderr, "the library cannot load models\n");
        return 1;
    }
    return predict(argv[1], argc - 2, argv + 2);
}
