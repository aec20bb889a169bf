/*
 * models.h: what the tests of whole models share: files in memory, random token sequences, and
 * small random RWKV-7 models of any shape, written with the library's own writer.
 */
#ifndef SN_TESTS_MODELS_H
#define SN_TESTS_MODELS_H

#include "check.h"

#include "formats/gguf_write.h"
#include "quant/types.h"

/* The whole file; the program ends if it cannot be read. */
static inline uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    long end = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    uint8_t *bytes = end < 0 ? NULL : malloc((size_t)end + 1);
    if (!bytes || fseek(file, 0, SEEK_SET) != 0 ||
        fread(bytes, 1, (size_t)end, file) != (size_t)end) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    *size = (size_t)end;
    return bytes;
}

/* Bytes that a source hands out in order: sn_source.user and .read. */
typedef struct bytes_left {
    const uint8_t *at;
    size_t left;
} bytes_left;

static inline size_t read_bytes_left(void *user, void *buffer, size_t bytes) {
    bytes_left *from = user;
    const size_t n = bytes < from->left ? bytes : from->left;
    memcpy(buffer, from->at, n);
    from->at += n;
    from->left -= n;
    return n;
}

static inline char *join(char *out, size_t room, const char *folder, const char *name) {
    snprintf(out, room, "%s/%s", folder, name);
    return out;
}

/* With options.backend, n_threads and so on as given; the program ends on failure. */
static inline sn_model *load_model(const char *path, const sn_model_options *options) {
    sn_model *model = NULL;
    if (sn_model_load(path, options, &model) != SN_OK) {
        fprintf(stderr, "%s\n", sn_last_error());
        exit(1);
    }
    return model;
}

static inline sn_state *new_state(const sn_model *model) {
    sn_state *state = NULL;
    if (sn_state_new(model, &state) != SN_OK) {
        fprintf(stderr, "%s\n", sn_last_error());
        exit(1);
    }
    return state;
}

static inline void random_tokens(int32_t *tokens, size_t n, int32_t vocab, uint64_t seed) {
    check_random random = { seed };
    for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)check_below(&random, (uint32_t)vocab);
}

/* ---- random models --------------------------------------------------------------------------- */

typedef struct shape {
    uint32_t layers, embd, ffn, head_size, vocab;
    uint32_t rank_w, rank_a, rank_v, rank_g;
    bool no_v0;       /* layer 0 comes without its (unused) value residual */
    float head_scale; /* of output.weight; 0: 0.5 */
} shape;

#define SHAPE_TENSORS 29 /* of one layer */

typedef struct shape_tensor {
    char name[64];
    uint32_t n_dims;
    uint64_t dims[4];
    float scale, centre; /* values are centre + scale * [-1, 1) */
} shape_tensor;

typedef struct shape_list {
    shape_tensor *at;
    size_t n;
} shape_list;

static inline void shape_add(shape_list *list, const char *prefix, const char *name, uint64_t k,
                             uint64_t rows, float scale, float centre) {
    shape_tensor *t = &list->at[list->n++];
    snprintf(t->name, sizeof t->name, "%s%s.weight", prefix, name);
    t->n_dims = rows ? 2 : 1;
    t->dims[0] = k;
    t->dims[1] = rows;
    t->scale = scale;
    t->centre = centre;
}

static inline void shape_add_norm(shape_list *list, const char *prefix, const char *name,
                                  uint64_t k) {
    shape_add(list, prefix, name, k, 0, 0.2f, 1.0f);
    shape_add(list, prefix, name, k, 0, 0.1f, 0.0f);
    snprintf(list->at[list->n - 1].name, sizeof list->at[0].name, "%s%s.bias", prefix, name);
}

static inline void shape_add_layer(shape_list *list, const shape *s, uint32_t layer) {
    static const char letters[] = "wavg";
    const uint32_t ranks[] = { s->rank_w, s->rank_a, s->rank_v, s->rank_g };
    const uint64_t D = s->embd, F = s->ffn;
    const float scale = 1.7f / (float)(1 + D / 16);
    char prefix[16], name[32];
    snprintf(prefix, sizeof prefix, "blk.%u.", (unsigned)layer);
    shape_add_norm(list, prefix, "attn_norm", D);
    shape_add_norm(list, prefix, "attn_norm_2", D);
    shape_add_norm(list, prefix, "time_mix_ln", D);
    shape_add(list, prefix, "time_mix_lerp_fused", D, 0, 0.5f, 0.5f);
    shape_tensor *mix = &list->at[list->n - 1]; /* as the converter writes it: [D, 1, 1, 6] */
    mix->n_dims = 4;
    mix->dims[1] = mix->dims[2] = 1;
    mix->dims[3] = 6;
    shape_add(list, prefix, "time_mix_receptance", D, D, scale, 0.0f);
    shape_add(list, prefix, "time_mix_key", D, D, scale, 0.0f);
    shape_add(list, prefix, "time_mix_value", D, D, scale, 0.0f);
    shape_add(list, prefix, "time_mix_output", D, D, scale, 0.0f);
    for (int i = 0; i < 4; i++) {
        if (letters[i] == 'v' && layer == 0 && s->no_v0) continue;
        if (letters[i] != 'g') {
            snprintf(name, sizeof name, "time_mix_%c0", letters[i]);
            shape_add(list, prefix, name, D, 0, 1.0f, 0.0f);
        }
        snprintf(name, sizeof name, "time_mix_%c1", letters[i]);
        shape_add(list, prefix, name, D, ranks[i], scale, 0.0f);
        snprintf(name, sizeof name, "time_mix_%c2", letters[i]);
        shape_add(list, prefix, name, ranks[i], D, 0.3f, 0.0f);
    }
    shape_add(list, prefix, "time_mix_k_k", D, 0, 0.3f, 0.8f);
    shape_add(list, prefix, "time_mix_k_a", D, 0, 0.3f, 0.8f);
    shape_add(list, prefix, "time_mix_r_k", D, 0, 0.3f, 0.0f);
    shape_add(list, prefix, "channel_mix_lerp_k", D, 0, 0.5f, 0.5f);
    shape_add(list, prefix, "channel_mix_key", D, F, scale, 0.0f);
    shape_add(list, prefix, "channel_mix_value", F, D, scale, 0.0f);
}

static inline uint64_t shape_elements(const shape_tensor *t) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->n_dims; d++) n *= t->dims[d];
    return n;
}

/* A tensor's values depend on its name alone: leaving one out changes no other. */
static inline sn_status shape_write_data(sn_gguf_writer *writer, const shape_tensor *t) {
    const size_t n = (size_t)shape_elements(t);
    float *values = malloc(n * sizeof(float));
    check_random random = { 7 };
    for (const char *c = t->name; *c; c++) random.state = random.state * 31 + (uint8_t)*c;
    for (size_t i = 0; i < n; i++) values[i] = t->centre + t->scale * check_float(&random);
    const sn_status status = sn_gguf_write_data(writer, values, n * sizeof(float));
    free(values);
    return status;
}

static inline sn_status shape_write(const shape *s, const shape_list *list, const char *path) {
    sn_gguf_writer *w;
    SN_TRY(sn_gguf_writer_new(path, &w));
    sn_status status = sn_gguf_put_text(w, "general.architecture", "rwkv7");
    const struct {
        const char *key;
        uint32_t value;
    } keys[] = { { "rwkv7.block_count", s->layers }, { "rwkv7.embedding_length", s->embd },
                 { "rwkv7.feed_forward_length", s->ffn },
                 { "rwkv7.wkv.head_size", s->head_size } };
    for (size_t i = 0; i < 4 && status == SN_OK; i++)
        status = sn_gguf_put_u32(w, keys[i].key, keys[i].value);
    for (size_t i = 0; i < list->n && status == SN_OK; i++)
        status = sn_gguf_declare(w, list->at[i].name, SN_TYPE_F32, list->at[i].n_dims,
                                 list->at[i].dims, 4 * shape_elements(&list->at[i]));
    for (size_t i = 0; i < list->n && status == SN_OK; i++)
        status = shape_write_data(w, &list->at[i]);
    if (status == SN_OK) return sn_gguf_writer_finish(w);
    sn_gguf_writer_discard(w);
    return status;
}

/* Writes a random float32 model of this shape; the program ends on failure. */
static inline void write_model(const shape *s, const char *path) {
    shape_list list = { calloc(SHAPE_TENSORS * s->layers + 8, sizeof(shape_tensor)), 0 };
    shape_add(&list, "", "token_embd", s->embd, s->vocab, 1.0f, 0.0f);
    shape_add_norm(&list, "", "token_embd_norm", s->embd);
    for (uint32_t l = 0; l < s->layers; l++) shape_add_layer(&list, s, l);
    shape_add_norm(&list, "", "output_norm", s->embd);
    shape_add(&list, "", "output", s->embd, s->vocab, s->head_scale > 0 ? s->head_scale : 0.5f,
              0.0f);
    const sn_status status = shape_write(s, &list, path);
    free(list.at);
    if (status == SN_OK) return;
    fprintf(stderr, "%s\n", sn_last_error());
    exit(1);
}

#endif
