/* build: cc -Icore examples/readme.c -Lbuild/native -lsunnynet -Wl,-rpath,build/native */
#include <stdio.h>
#include <sunnynet.h>

int main(void) {
    sn_model *model; sn_state *state; sn_sampler *sampler;
    const char *text = "Once upon a time"; size_t length = 16;
    static float logits[2048]; int32_t ids[64], n; /* 2048 = sn_model_vocab(model) */
    if (sn_model_load("models/rwkv7-fairy.gguf", NULL, &model) || sn_state_new(model, &state) ||
        sn_sampler_new(sn_model_vocab(model), sn_model_tokenizer(model), NULL, &sampler))
        return puts(sn_last_error()), 1;
    sn_tokenizer_encode(sn_model_tokenizer(model), text, length, ids, 64, &n);
    for (int i = 0; i <= 40; i++, n = 1) {
        fwrite(text, 1, length, stdout);
        if (sn_state_prefill(state, ids, n, logits)) return 1;
        if (sn_sampler_sample(sampler, logits, &ids[0])) return 1;
        sn_tokenizer_token(sn_model_tokenizer(model), ids[0], &text, &length);
    }
    return 0;
}
