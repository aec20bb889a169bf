/*
 * test_import FAMILY MODELS FOLDER: foreign checkpoints as GGUF. FAMILY holds the micro models
 * (tests/data/family), MODELS the GGUF files that llama.cpp's converter made of RWKV-7, FOLDER is
 * scratch. Tensors are compared bit by bit with those files, or with the source's.
 */
#include "import/import.h"
#include "import/open.h"
#include "platform.h"
#include "quant/bytes.h"

#include "check.h"

#include <math.h>

#define PATH_BYTES 512

static const char *family, *models, *scratch;

static const char *path_of(const char *folder, const char *name) {
    static char paths[8][PATH_BYTES];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return path;
}

static bool last_error_has(const char *text) {
    return strstr(sn_last_error(), text) != NULL;
}

/* ---- models as tables of float32 ---------------------------------------------------------- */

typedef struct values {
    sn_gguf gguf;
    float **of; /* [n_tensors] */
} values;

static uint64_t elements(const sn_gguf_tensor *tensor) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) n *= tensor->dims[i];
    return n;
}

static void must(sn_status status) {
    if (status == SN_OK) return;
    fprintf(stderr, "%s\n", sn_last_error());
    exit(1);
}

static values load(const char *path) {
    values v;
    must(sn_open_model(path, &v.gguf));
    v.of = calloc((size_t)v.gguf.n_tensors, sizeof *v.of);
    for (uint64_t i = 0; i < v.gguf.n_tensors; i++) {
        const sn_gguf_tensor *tensor = &v.gguf.tensors[i];
        sn_input *input = &v.gguf.parts[tensor->part].input;
        uint8_t *bytes = malloc((size_t)tensor->bytes);
        v.of[i] = malloc((size_t)elements(tensor) * sizeof(float));
        must(sn_input_skip_to(input, tensor->offset));
        must(sn_input_read(input, bytes, (size_t)tensor->bytes));
        sn_type_find(tensor->type)->decode(bytes, v.of[i], (size_t)elements(tensor));
        free(bytes);
    }
    return v;
}

static void unload(values *v) {
    for (uint64_t i = 0; i < v->gguf.n_tensors; i++) free(v->of[i]);
    free(v->of);
    sn_gguf_close(&v->gguf);
}

static const float *values_of(const values *v, const char *name) {
    const sn_gguf_tensor *tensor = sn_gguf_find_tensor(&v->gguf, name);
    return tensor ? v->of[tensor - v->gguf.tensors] : NULL;
}

/* ---- against llama.cpp's converter -------------------------------------------------------- */

/* The checkpoint's numbers are those of the GGUF file rounded to 16 bits, or the same. */
static float rounded(float value, uint32_t type) {
    if (type == SN_TYPE_F16) return sn_f16_to_f32(sn_f32_to_f16(value));
    if (type == SN_TYPE_BF16) return sn_bf16_to_f32(sn_f32_to_bf16(value));
    return value;
}

/* Units in the last place between two floats of one sign. */
static int64_t distance(float a, float b) {
    return llabs((int64_t)sn_bits_of(a) - (int64_t)sn_bits_of(b));
}

static void compare(const char *ours_path, const char *theirs_path, uint32_t type) {
    values ours = load(ours_path), theirs = load(theirs_path);
    CHECK(ours.gguf.n_tensors == theirs.gguf.n_tensors, "%s: %d tensors", ours_path,
          (int)ours.gguf.n_tensors);
    for (uint64_t i = 0; i < ours.gguf.n_tensors; i++) {
        const sn_gguf_tensor *a = &ours.gguf.tensors[i];
        const sn_gguf_tensor *b = sn_gguf_find_tensor(&theirs.gguf, a->name);
        CHECK(b, "%s: %s is not in %s", ours_path, a->name, theirs_path);
        if (!b) continue;
        CHECK(a->n_dims == b->n_dims && !memcmp(a->dims, b->dims, sizeof a->dims),
              "%s: the shape of %s", ours_path, a->name);
        const float *expected = theirs.of[b - theirs.gguf.tensors];
        /* PyTorch's exp in float32, which made theirs, is not always the nearest */
        int64_t allowed = strstr(a->name, "ssm_a") != NULL, most = 0;
        for (uint64_t k = 0; k < elements(a) && k < elements(b); k++) {
            int64_t d = distance(rounded(ours.of[i][k], type), rounded(expected[k], type));
            if (d > most) most = d;
        }
        CHECK(most <= allowed, "%s: %s is %lld ulp away", ours_path, a->name, (long long)most);
    }
    unload(&ours);
    unload(&theirs);
}

static void test_llama_cpp(void) {
    static const char *const mambas[][2] = {
        { "mamba-micro", "mamba-micro/mamba-micro.f32.gguf" },
        { "mamba2-micro", "mamba2-micro/mamba2-micro.f32.gguf" },
        { "mamba2-micro-g2", "mamba2-micro-g2/mamba2-micro-g2.f32.gguf" },
    };
    for (size_t i = 0; i < 3; i++)
        compare(path_of(family, mambas[i][0]), path_of(family, mambas[i][1]), SN_TYPE_F32);
    const char *bf16 = path_of(models, "rwkv7-micro.bf16.gguf");
    compare(path_of(family, "rwkv7-micro/rwkv7-micro.bf16.pth"), bf16, SN_TYPE_BF16);
    compare(path_of(family, "rwkv7-micro/hf"), bf16, SN_TYPE_BF16);
    compare(path_of(family, "rwkv7-micro/rwkv7-micro.f16.safetensors"),
            path_of(models, "rwkv7-micro.f16.gguf"), SN_TYPE_F16);
}

/* Both of BlinkDL's and fla's names give the same bits, types included. */
static void test_same_model_twice(void) {
    values pth = load(path_of(family, "rwkv7-micro/rwkv7-micro.bf16.pth"));
    values hf = load(path_of(family, "rwkv7-micro/hf"));
    for (uint64_t i = 0; i < pth.gguf.n_tensors; i++) {
        const sn_gguf_tensor *a = &pth.gguf.tensors[i];
        const float *b = values_of(&hf, a->name);
        CHECK(b && !memcmp(pth.of[i], b, (size_t)elements(a) * sizeof *b), "%s", a->name);
        CHECK(sn_gguf_find_tensor(&hf.gguf, a->name)->type == a->type, "%s: type", a->name);
    }
    unload(&pth);
    unload(&hf);
}

/* ---- against the source's tensors --------------------------------------------------------- */

typedef struct rename {
    const char *ours, *theirs; /* below blk.N. and model.layers.N. */
    bool minus_exp;
} rename_rule;

static const rename_rule common[] = {
    { "attn_norm.weight", "attn_norm.weight", false },
    { "ffn_norm.weight", "mlp_norm.weight", false },
    { "ffn_gate.weight", "mlp.gate_proj.weight", false },
    { "ffn_up.weight", "mlp.up_proj.weight", false },
    { "ffn_down.weight", "mlp.down_proj.weight", false },
    { "attn_q.weight", "attn.q_proj.weight", false },
    { "attn_output.weight", "attn.o_proj.weight", false },
    { NULL, NULL, false },
};

static const rename_rule of_gla[] = {
    { "attn_k.weight", "attn.k_proj.weight", false },
    { "attn_v.weight", "attn.v_proj.weight", false },
    { "attn_gate.weight", "attn.g_proj.weight", false },
    { "attn_head_norm.weight", "attn.g_norm_swish_gate.weight", false },
    { "attn_decay_a.weight", "attn.gk_proj.0.weight", false },
    { "attn_decay_b.weight", "attn.gk_proj.1.weight", false },
    { "attn_decay_b.bias", "attn.gk_proj.1.bias", false },
    { NULL, NULL, false },
};

static const rename_rule of_deltanet[] = {
    { "attn_k.weight", "attn.k_proj.weight", false },
    { "attn_v.weight", "attn.v_proj.weight", false },
    { "attn_q_conv.weight", "attn.q_conv1d.weight", false },
    { "attn_k_conv.weight", "attn.k_conv1d.weight", false },
    { "attn_v_conv.weight", "attn.v_conv1d.weight", false },
    { "attn_beta.weight", "attn.b_proj.weight", false },
    { "attn_head_norm.weight", "attn.o_norm.weight", false },
    { NULL, NULL, false },
};

static const rename_rule of_gated_deltanet[] = {
    { "attn_alpha.weight", "attn.a_proj.weight", false },
    { "attn_gate.weight", "attn.g_proj.weight", false },
    { "ssm_a", "attn.A_log", true },
    { "ssm_dt.bias", "attn.dt_bias", false },
    { NULL, NULL, false },
};

static const rename_rule of_hgrn2[] = {
    { "attn_forget.weight", "attn.f_proj.weight", false },
    { "attn_v.weight", "attn.i_proj.weight", false },
    { "attn_out_norm.weight", "attn.g_norm.weight", false },
    { NULL, NULL, false },
};

static sn_store *open_store(const char *path) {
    sn_store *store;
    sn_file file;
    must(sn_store_new(&store));
    must(sn_platform_open_file(path, &file));
    must(sn_safetensors_read(&file, store));
    return store;
}

/* Compares one tensor; the number of tensors seen. */
static uint64_t check_tensor(const values *v, const sn_store *store, const char *ours,
                             const char *theirs, bool minus_exp) {
    const float *got = values_of(v, ours);
    const sn_view *view = sn_store_find(store, theirs);
    CHECK(got && view, "%s: %s", ours, theirs);
    if (!got || !view) return 0;
    size_t n = (size_t)sn_view_elements(view);
    CHECK(n == elements(sn_gguf_find_tensor(&v->gguf, ours)), "%s: elements", ours);
    float *expected = malloc(n * sizeof *expected);
    must(sn_view_read_f32(view, 0, n, expected));
    int64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        float value = minus_exp ? (float)-exp((double)expected[i]) : expected[i];
        if (distance(got[i], value) > most) most = distance(got[i], value);
    }
    CHECK(most <= minus_exp, "%s: %lld ulp", ours, (long long)most);
    free(expected);
    return 1;
}

static uint64_t check_layers(const values *v, const sn_store *store, const rename_rule *rules,
                             uint32_t n_layers) {
    uint64_t n = 0;
    for (; rules && rules->ours; rules++)
        for (uint32_t l = 0; l < n_layers; l++) {
            char ours[64], theirs[96];
            snprintf(ours, sizeof ours, "blk.%u.%s", (unsigned)l, rules->ours);
            snprintf(theirs, sizeof theirs, "model.layers.%u.%s", (unsigned)l, rules->theirs);
            n += check_tensor(v, store, ours, theirs, rules->minus_exp);
        }
    return n;
}

static void check_fla(const char *name, const rename_rule *first, const rename_rule *second,
                      uint32_t n_layers, bool tied, uint64_t others) {
    values v = load(path_of(family, name));
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s/model.safetensors", family, name);
    sn_store *store = open_store(path);
    uint64_t n = check_layers(&v, store, common, n_layers) +
                 check_layers(&v, store, first, n_layers) +
                 check_layers(&v, store, second, n_layers);
    n += check_tensor(&v, store, "token_embd.weight", "model.embeddings.weight", false);
    n += check_tensor(&v, store, "output_norm.weight", "model.norm.weight", false);
    if (!tied) n += check_tensor(&v, store, "output.weight", "lm_head.weight", false);
    CHECK(v.gguf.n_tensors == n + others, "%s: %d tensors, %d explained", name,
          (int)v.gguf.n_tensors, (int)n);
    sn_store_free(store);
    unload(&v);
}

/* lambda: a softmax over the layers, summed from layer 1 on */
static void check_lower_bounds(void) {
    enum { LAYERS = 3, WIDTH = 64 };
    values v = load(path_of(family, "hgrn2-micro"));
    sn_store *store = open_store(path_of(family, "hgrn2-micro/model.safetensors"));
    float b[LAYERS * WIDTH];
    must(sn_view_read_f32(sn_store_find(store, "model.lower_bounds"), 0, LAYERS * WIDTH, b));
    const float *got[LAYERS] = { values_of(&v, "blk.0.attn_lower_bound.weight"),
                                 values_of(&v, "blk.1.attn_lower_bound.weight"),
                                 values_of(&v, "blk.2.attn_lower_bound.weight") };
    CHECK(!got[0] && got[1] && got[2], "layer 0 has none");
    for (int c = 0; c < WIDTH && got[1] && got[2]; c++) {
        double total = exp(b[c]) + exp(b[WIDTH + c]) + exp(b[2 * WIDTH + c]);
        double one = exp(b[WIDTH + c]) / total, two = one + exp(b[2 * WIDTH + c]) / total;
        CHECK(distance(got[1][c], (float)one) <= 1 && distance(got[2][c], (float)two) <= 1,
              "lambda of channel %d: %g %g", c, got[1][c], got[2][c]);
    }
    sn_store_free(store);
    unload(&v);
}

static void test_fla(void) {
    check_fla("gla-micro", of_gla, NULL, 2, true, 0);
    check_fla("deltanet-micro", of_deltanet, NULL, 2, false, 0);
    check_fla("gated-deltanet-micro", of_deltanet, of_gated_deltanet, 2, false, 0);
    check_fla("hgrn2-micro", of_hgrn2, NULL, 3, false, 2);
    check_lower_bounds();
}

/* ---- the stream --------------------------------------------------------------------------- */

static uint8_t *drain(sn_gguf *gguf, size_t piece, size_t *bytes) {
    sn_input *input = &gguf->parts[0].input;
    size_t n = (size_t)sn_input_left(input);
    uint8_t *all = malloc(n ? n : 1);
    for (size_t at = 0; at < n; at += piece)
        must(sn_input_read(input, all + at, n - at < piece ? n - at : piece));
    *bytes = n;
    return all;
}

/* However it is read, and wherever from, the bytes are the same; views lie in file order. */
static void test_stream(void) {
    static const size_t pieces[] = { 1, 7, 4099, (size_t)1 << 24 };
    const char *path = path_of(family, "rwkv7-micro/rwkv7-micro.bf16.pth");
    uint8_t *expected = NULL;
    for (size_t i = 0; i < 4; i++) {
        sn_gguf gguf;
        size_t bytes;
        must(sn_open_model(path, &gguf));
        CHECK(!strcmp(sn_gguf_name(&gguf), path), "its name is %s", sn_gguf_name(&gguf));
        uint8_t *all = drain(&gguf, pieces[i], &bytes);
        if (expected) CHECK(!memcmp(all, expected, bytes), "pieces of %zu", pieces[i]);
        if (expected) free(all);
        else expected = all;
        sn_gguf_close(&gguf);
    }
    sn_file file;
    sn_gguf gguf;
    char *data;
    size_t size, bytes;
    must(sn_platform_open_file(path, &file));
    must(sn_file_read_all(&file, (size_t)1 << 30, &data, &size));
    sn_file_close(&file);
    must(sn_open_model_memory("memory", data, size, &gguf));
    uint8_t *all = drain(&gguf, 65536, &bytes);
    CHECK(!memcmp(all, expected, bytes), "from memory");
    sn_gguf_close(&gguf);
    free(all);
    free(expected);
    sn_free(data);
}

/* ---- opening ------------------------------------------------------------------------------ */

static void test_origins(void) {
    sn_gguf gguf;
    must(sn_open_model(path_of(family, "mamba2-micro/"), &gguf));
    static const char *const inside[] = { "config.json", "model.safetensors", "tokenizer.json",
                                          "tokenizer_config.json" };
    for (size_t i = 0; i < 4; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/mamba2-micro/%s", family, inside[i]);
        CHECK(sn_opened_from(&gguf, path), "%s", path);
    }
    CHECK(!sn_opened_from(&gguf, path_of(family, "mamba2-micro/golden.json")), "another file");
    CHECK(!sn_opened_from(&gguf, path_of(family, "mamba2-micro/new.gguf")), "no file");
    sn_span name = { NULL, 0 };
    must(sn_gguf_get_text(&gguf, "general.name", true, &name));
    CHECK(name.size == 12 && !memcmp(name.data, "mamba2-micro", 12), "general.name");
    sn_gguf_close(&gguf);
}

static void test_tokenizer_only(void) {
    sn_gguf gguf;
    must(sn_open_tokenizer(path_of(family, "mamba-micro"), &gguf));
    CHECK(gguf.n_tensors == 0 && sn_gguf_find(&gguf, "tokenizer.ggml.model"), "of a folder");
    sn_gguf_close(&gguf);
    must(sn_open_tokenizer(path_of(family, "mamba-micro/model.safetensors"), &gguf));
    CHECK(sn_gguf_find(&gguf, "tokenizer.ggml.model"), "beside weights");
    sn_gguf_close(&gguf);
    must(sn_open_tokenizer(path_of(family, "mamba-micro/tokenizer.json"), &gguf));
    CHECK(sn_gguf_find(&gguf, "tokenizer.ggml.tokens"), "a file");
    sn_gguf_close(&gguf);
    CHECK(sn_open_tokenizer(path_of(family, "gla-micro"), &gguf) == SN_E_FORMAT &&
          last_error_has("no tokenizer"), "%s", sn_last_error());
}

/* Fails every allocation in turn until there is enough memory; nothing may leak or crash. */
static void test_memory(void) {
    const char *path = path_of(family, "gla-micro");
    for (long n = 1; n < 2000; n++) {
        sn_gguf gguf;
        sn_alloc_fail_at(n);
        sn_status status = sn_open_model(path, &gguf);
        sn_alloc_fail_at(0);
        if (status == SN_OK) {
            CHECK(n > 50, "%ld allocations seem too few", n);
            sn_gguf_close(&gguf);
            return;
        }
        CHECK(status == SN_E_NOMEM, "%ld: %s", n, sn_last_error());
    }
    CHECK(false, "it never ends");
}

/* ---- options ------------------------------------------------------------------------------ */

/* The config of `model` with `from` replaced by `to`, beside the model's weights, in FOLDER. */
static const char *with_option(const char *model, const char *from, const char *to) {
    char path[PATH_BYTES], *text;
    size_t bytes;
    sn_file file;
    sn_output *output;
    snprintf(path, sizeof path, "%s/%s/config.json", family, model);
    must(sn_platform_open_file(path, &file));
    must(sn_file_read_all(&file, 1 << 20, &text, &bytes));
    sn_file_close(&file);
    const char *at = strstr(text, from);
    CHECK(at, "%s has no %s", path, from);
    if (!at) at = text, from = "";
    must(sn_platform_create(path_of(scratch, "config.json"), &output));
    must(sn_output_write(output, text, (size_t)(at - text)));
    must(sn_output_write(output, to, strlen(to)));
    must(sn_output_write(output, at + strlen(from), strlen(at + strlen(from))));
    must(sn_output_commit(output));
    sn_free(text);
    snprintf(path, sizeof path, "%s/%s/model.safetensors", family, model);
    must(sn_platform_open_file(path, &file));
    must(sn_file_read_all(&file, 1 << 24, &text, &bytes));
    sn_file_close(&file);
    must(sn_platform_create(path_of(scratch, "model.safetensors"), &output));
    must(sn_output_write(output, text, bytes));
    must(sn_output_commit(output));
    sn_free(text);
    return scratch;
}

static void check_f32(const char *model, const char *from, const char *to, const char *key,
                      float expected) {
    sn_gguf gguf;
    float got = -1;
    sn_status status = sn_open_model(with_option(model, from, to), &gguf);
    CHECK(status == SN_OK, "%s: %s", to, sn_last_error());
    if (status != SN_OK) return;
    must(sn_gguf_get_f32(&gguf, key, false, &got));
    CHECK(got == expected, "%s: %s = %g", to, key, got);
    sn_gguf_close(&gguf);
}

static void test_options(void) {
    static const char *const unlimited[] = {
        "[0.0, \"Infinity\"]", "[0, \"inf\"]", "\"(0.0, inf)\"", "[0, \" Infinity \"]", "null",
    };
    static const char *const limited[] = {
        "[0.0, 0.25]", "[\"0.0\", \"0.25\"]", "\"[0.0, 0.25]\"",
        "[{\"__float__\": \"0\"}, {\"__float__\": \"0.25\"}]", "\"( 0 , 0.25 )\"",
    };
    const char *limit = "[\n    0.0,\n    Infinity\n  ]";
    for (size_t i = 0; i < 5; i++) {
        check_f32("mamba2-micro-g2", limit, unlimited[i], "sunnynet.dt_max", -1);
        check_f32("mamba2-micro-g2", limit, limited[i], "sunnynet.dt_max", 0.25f);
        check_f32("mamba2-micro-g2", limit, limited[i], "sunnynet.dt_min", -1);
    }
    check_f32("mamba2-micro-g2", limit, "[0.001, Infinity]", "sunnynet.dt_min", 0.001f);
    check_f32("gla-micro", "\"clamp_min\": null", "\"clamp_min\": -0.5", "gla.clamp_min", -0.5f);
    check_f32("deltanet-micro", "\"allow_neg_eigval\": false", "\"allow_neg_eigval\": true",
              "deltanet.beta_scale", 2);
    check_f32("gated-deltanet-micro", "\"norm_eps\": 1e-06", "\"norm_eps\": 0.5",
              "gated-deltanet.attention.layer_norm_rms_epsilon", 0.5f);
    check_f32("rwkv7-micro/hf", "\"norm_eps\": 1e-05", "\"norm_eps\": 1e-06",
              "sunnynet.group_norm_epsilon", 64e-6f);
    check_f32("rwkv7-micro/hf", "\"norm_eps\": 1e-05", "\"norm_eps\": null",
              "sunnynet.group_norm_epsilon", -1);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: test_import FAMILY MODELS FOLDER\n");
        return 2;
    }
    family = argv[1];
    models = argv[2];
    scratch = argv[3];
    test_llama_cpp();
    test_same_model_twice();
    test_fla();
    test_stream();
    test_origins();
    test_tokenizer_only();
    test_memory();
    test_options();
    return check_report("test_import");
}
