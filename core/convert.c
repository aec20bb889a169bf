/*
 * Rewrites a model file: other types, or panels instead of rows. Tensors pass through in steps
 * of at most 16 rows or STEP elements, so memory does not grow with the model.
 */
#include "convert_types.h"
#include "export/export.h"
#include "formats/gguf_write.h"
#include "import/open.h"
#include "load.h"
#include "quant/packed.h"
#include "worker.h"

#include <string.h>

#define STEP (1u << 18) /* elements at a time of a tensor that is not packed; whole blocks */

/* ---- the plan: what becomes of each tensor ------------------------------------------------ */

typedef struct tensor_plan {
    const sn_gguf_tensor *tensor;
    const sn_type *source, *target; /* of the values, panels or not */
    uint64_t k, rows;               /* rows of k elements; the dimensions of a packed matrix */
    bool from_panels, to_panels;
} tensor_plan;

typedef struct convert_job {
    const sn_gguf *gguf;
    const sn_loader *roles; /* what the architecture makes of each tensor */
    const sn_convert_options *options;
    const sn_mix *mix;  /* NULL: keep types */
    bool tied;          /* there is no output but the embedding */
    sn_packed packed;   /* of the input */
    tensor_plan *plans; /* one for each tensor */
    uint64_t n_packed;  /* matrices that become panels */
    sn_gguf_writer *writer;
    uint64_t bytes_done; /* of the input's tensors */
    uint64_t bytes_total;
    float *values;                    /* one step, decoded */
    uint8_t *source, *target, *panel; /* one step of rows, rows in the new type, one panel */
} convert_job;

static sn_status not_finite(const convert_job *job, const tensor_plan *plan) {
    return sn_fail(SN_E_NUMERIC, "%.300s: tensor '%s' holds a NaN or an infinity",
                   sn_gguf_name(job->gguf), plan->tensor->name);
}

static bool can_pack(const tensor_plan *plan, sn_role role) {
    return role == SN_ROLE_MATRIX && sn_panel_supports(plan->target) && plan->rows > 1 &&
           plan->k <= SN_PACKED_MAX_K && plan->rows <= UINT32_MAX;
}

/* Matrices that nobody uses (the first layer's dummies of RWKV-7) are still treated as such. */
static sn_role role_of(const convert_job *job, uint64_t index, bool two_dims) {
    const char *name = job->gguf->tensors[index].name;
    const sn_role role = sn_load_role(job->roles, (size_t)index);
    if (role == SN_ROLE_UNUSED && two_dims && sn_mix_spares(name)) return SN_ROLE_MATRIX;
    return role;
}

static sn_status make_plan(const convert_job *job, uint64_t index, tensor_plan *out) {
    const sn_gguf_tensor *tensor = &job->gguf->tensors[index];
    const sn_packed_tensor *matrix = sn_packed_at(&job->packed, index);
    tensor_plan plan = {.tensor = tensor, .k = tensor->dims[0], .rows = 1};
    plan.source = sn_type_find(tensor->type);
    for (uint32_t d = 1; d < tensor->n_dims; d++)
        plan.rows *= tensor->dims[d];
    if (matrix) {
        plan.source = matrix->type;
        plan.k = matrix->k;
        plan.rows = matrix->rows;
        plan.from_panels = true;
    }
    const sn_role role = role_of(job, index, matrix || tensor->n_dims == 2);
    plan.target = plan.source;
    if (job->mix) {
        const sn_mix_tensor facts = {tensor->name, role, plan.source, plan.k, job->tied};
        plan.target = sn_mix_type(job->mix, &facts);
    }
    plan.to_panels = job->options->packed && can_pack(&plan, role);
    *out = plan;
    if (sn_type_is_private(plan.target))
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%s': a GGUF file cannot hold type %s; "
                       "choose another type, or a blob", sn_gguf_name(job->gguf), tensor->name,
                       plan.target->name);
    if (plan.target != plan.source && !plan.source->decode)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: tensor '%s': type %s cannot be converted",
                       sn_gguf_name(job->gguf), tensor->name, plan.source->name);
    return SN_OK;
}

/* Elements that pass through at a time. */
static uint64_t step_of(const tensor_plan *plan) {
    return plan->from_panels || plan->to_panels ? SN_PANEL_ROWS * plan->k : STEP;
}

static uint64_t target_bytes(const tensor_plan *plan) {
    sn_packed_tensor matrix = {plan->target, (uint32_t)plan->k, (uint32_t)plan->rows};
    if (plan->to_panels) return sn_packed_bytes(&matrix);
    return sn_type_bytes(plan->target, plan->k * plan->rows);
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static sn_status make_plans(convert_job *job) {
    uint64_t n = job->gguf->n_tensors, step = 0, panel = 0;
    job->plans = sn_alloc_array((size_t)n, sizeof *job->plans);
    if (!job->plans) return SN_E_NOMEM;
    for (uint64_t i = 0; i < n; i++) {
        tensor_plan *plan = &job->plans[i];
        SN_TRY(make_plan(job, i, plan));
        job->n_packed += plan->to_panels;
        job->bytes_total += plan->tensor->bytes;
        step = larger(step, step_of(plan));
        if (plan->from_panels) panel = larger(panel, sn_panel_bytes(plan->source, plan->k));
        if (plan->to_panels) panel = larger(panel, sn_panel_bytes(plan->target, plan->k));
    }
    /* a step is 16 SN_PACKED_MAX_K at most; no type takes more than 8 bytes an element */
    job->values = sn_alloc_array((size_t)step, sizeof *job->values);
    job->source = sn_alloc_array((size_t)step, 8);
    job->target = sn_alloc_array((size_t)step, 4);
    job->panel = sn_alloc((size_t)panel);
    return job->values && job->source && job->target && job->panel ? SN_OK : SN_E_NOMEM;
}

/* ---- metadata ------------------------------------------------------------------------------ */

static bool key_is(const sn_gguf_value *value, const char *key) {
    return value->key.size == strlen(key) && !memcmp(value->key.data, key, value->key.size);
}

static bool key_starts(const sn_gguf_value *value, const char *prefix) {
    size_t length = strlen(prefix);
    return value->key.size >= length && !memcmp(value->key.data, prefix, length);
}

/* Keys that describe the file's form, which is another one now. */
static bool is_dropped(const convert_job *job, const sn_gguf_value *value) {
    return key_is(value, "general.alignment") || key_starts(value, "split.") ||
           key_starts(value, "sunnynet.panel.") ||
           key_is(value, "sunnynet.tokenizer.problem") ||
           (job->mix && key_is(value, "general.file_type"));
}

static void fill_panel_keys(const convert_job *job, const char **names, uint32_t *types,
                            uint32_t *dims) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < job->gguf->n_tensors; i++) {
        const tensor_plan *plan = &job->plans[i];
        if (!plan->to_panels) continue;
        names[n] = plan->tensor->name;
        types[n] = plan->target->id;
        dims[2 * n] = (uint32_t)plan->k;
        dims[2 * n + 1] = (uint32_t)plan->rows;
        n++;
    }
}

static sn_status put_panel_keys(const convert_job *job) {
    uint64_t n = job->n_packed;
    const char **names = sn_alloc_array((size_t)n, sizeof *names);
    uint32_t *types = sn_alloc_array((size_t)n, sizeof *types);
    uint32_t *dims = sn_alloc_array((size_t)n, 2 * sizeof *dims);
    sn_status status = names && types && dims ? SN_OK : SN_E_NOMEM;
    if (status == SN_OK) fill_panel_keys(job, names, types, dims);
    if (status == SN_OK) status = sn_gguf_put_u32(job->writer, SN_PACKED_VERSION, 1);
    if (status == SN_OK) status = sn_gguf_put_u32(job->writer, SN_PACKED_ROWS, SN_PANEL_ROWS);
    if (status == SN_OK) status = sn_gguf_put_texts(job->writer, SN_PACKED_NAMES, names, n);
    if (status == SN_OK) status = sn_gguf_put_u32s(job->writer, SN_PACKED_TYPES, types, n);
    if (status == SN_OK) status = sn_gguf_put_u32s(job->writer, SN_PACKED_DIMS, dims, 2 * n);
    sn_free(names);
    sn_free(types);
    sn_free(dims);
    return status;
}

static sn_status put_metadata(const convert_job *job) {
    for (uint64_t i = 0; i < job->gguf->n_values; i++) {
        const sn_gguf_value *value = &job->gguf->values[i];
        if (!is_dropped(job, value)) SN_TRY(sn_gguf_put_value(job->writer, value));
    }
    if (job->mix)
        SN_TRY(sn_gguf_put_u32(job->writer, "general.file_type", job->mix->file_type));
    /* readers expect the version of the block formats beside quantised tensors; it is 2 */
    bool quantised = job->mix && sn_mix_quantises(job->mix);
    if (quantised && !sn_gguf_find(job->gguf, "general.quantization_version"))
        SN_TRY(sn_gguf_put_u32(job->writer, "general.quantization_version", 2));
    return job->n_packed ? put_panel_keys(job) : SN_OK;
}

static sn_status declare_tensors(const convert_job *job) {
    for (uint64_t i = 0; i < job->gguf->n_tensors; i++) {
        const tensor_plan *plan = &job->plans[i];
        const sn_gguf_tensor *tensor = plan->tensor;
        uint64_t bytes = target_bytes(plan), matrix[2] = {plan->k, plan->rows};
        uint32_t type = plan->to_panels ? SN_TYPE_I8 : plan->target->id;
        const uint64_t *dims = plan->from_panels ? matrix : tensor->dims;
        uint32_t n_dims = plan->from_panels ? 2 : tensor->n_dims;
        if (plan->to_panels) {
            dims = &bytes;
            n_dims = 1;
        }
        SN_TRY(sn_gguf_declare(job->writer, tensor->name, type, n_dims, dims, bytes));
    }
    return SN_OK;
}

/* ---- data ---------------------------------------------------------------------------------- */

/* The next `n` elements' bytes, as rows of the source type, to job->source. */
static sn_status read_step(convert_job *job, const tensor_plan *plan, uint64_t n) {
    sn_input *input = &job->gguf->parts[plan->tensor->part].input;
    size_t bytes = (size_t)sn_type_bytes(plan->source, n);
    if (plan->from_panels) {
        bytes = sn_panel_bytes(plan->source, (size_t)plan->k);
        SN_TRY(sn_input_read(input, job->panel, bytes));
        sn_panel_unpack(plan->source, job->panel, (size_t)(n / plan->k), (size_t)plan->k,
                        job->source);
    } else {
        SN_TRY(sn_input_read(input, job->source, bytes));
    }
    job->bytes_done += bytes;
    return SN_OK;
}

/* From job->source to *rows in the target type, all of it finite. */
static sn_status requantise(convert_job *job, const tensor_plan *plan, uint64_t n,
                            const uint8_t **rows) {
    const sn_type *source = plan->source, *target = plan->target;
    *rows = job->source;
    if (source->finite && !source->finite(job->source, (size_t)n))
        return not_finite(job, plan);
    if (source == target) return SN_OK;
    source->decode(job->source, job->values, (size_t)n);
    target->encode(job->values, job->target, (size_t)n);
    *rows = job->target;
    if (!target->finite(job->target, (size_t)n))
        return sn_fail(SN_E_NUMERIC, "%.300s: tensor '%s' holds values too large for %s",
                       sn_gguf_name(job->gguf), plan->tensor->name, target->name);
    return SN_OK;
}

static sn_status write_step(convert_job *job, const tensor_plan *plan, uint64_t n,
                            const uint8_t *rows) {
    if (!plan->to_panels)
        return sn_gguf_write_data(job->writer, rows, (size_t)sn_type_bytes(plan->target, n));
    if (!sn_panel_pack(plan->target, rows, (size_t)(n / plan->k), (size_t)plan->k, job->panel))
        return not_finite(job, plan);
    return sn_gguf_write_data(job->writer, job->panel,
                              sn_panel_bytes(plan->target, (size_t)plan->k));
}

static sn_status report(const convert_job *job) {
    const sn_convert_options *options = job->options;
    if (!sn_asked_to_stop(options->progress, options->progress_user, (double)job->bytes_done,
                          (double)job->bytes_total))
        return SN_OK;
    return sn_fail(SN_E_ABORTED, "%.300s: converting was stopped", sn_gguf_name(job->gguf));
}

static sn_status convert_tensor(convert_job *job, const tensor_plan *plan) {
    uint64_t left = plan->k * plan->rows, step = step_of(plan);
    SN_TRY(sn_input_skip_to(&job->gguf->parts[plan->tensor->part].input, plan->tensor->offset));
    while (left) {
        uint64_t n = left < step ? left : step;
        const uint8_t *rows;
        SN_TRY(read_step(job, plan, n));
        SN_TRY(requantise(job, plan, n, &rows));
        SN_TRY(write_step(job, plan, n, rows));
        SN_TRY(report(job));
        left -= n;
    }
    return SN_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* The output replaces a file of that name in the end: it must be no part of the input. */
static sn_status check_output(const sn_gguf *gguf, const char *out) {
    if (!sn_opened_from(gguf, out)) return SN_OK;
    return sn_fail(SN_E_INVAL, "%.300s: is the input; write to another file", out);
}

static sn_status write_file(convert_job *job, const char *out) {
    SN_TRY(make_plans(job));
    SN_TRY(sn_gguf_writer_new(out, &job->writer));
    SN_TRY(put_metadata(job));
    SN_TRY(declare_tensors(job));
    for (uint64_t i = 0; i < job->gguf->n_tensors; i++)
        SN_TRY(convert_tensor(job, &job->plans[i]));
    sn_gguf_writer *writer = job->writer;
    job->writer = NULL; /* finish frees it in any case */
    return sn_gguf_writer_finish(writer);
}

static void free_job(convert_job *job) {
    sn_gguf_writer_discard(job->writer);
    sn_packed_free(&job->packed);
    sn_free(job->plans);
    sn_free(job->values);
    sn_free(job->source);
    sn_free(job->target);
    sn_free(job->panel);
}

/* The model's architecture names its tensors, as when it is loaded. */
static sn_status convert_gguf(const sn_gguf *gguf, const char *out,
                              const sn_convert_options *options, const sn_mix *mix) {
    convert_job job = {.gguf = gguf, .options = options, .mix = mix};
    job.tied = !sn_gguf_find_tensor(gguf, "output.weight");
    sn_model *model = NULL;
    sn_loader *roles = NULL;
    sn_model_options header_only;
    sn_model_options_init(&header_only);
    header_only.header_only = 1;
    SN_TRY(check_output(gguf, out));
    SN_TRY(sn_model_begin(gguf, &header_only, 1, &model, &roles));
    job.roles = roles;
    sn_status status = SN_OK;
    if (!model->arch) status = sn_arch_refuse(sn_gguf_name(gguf), model->architecture);
    if (status == SN_OK) status = sn_packed_read(gguf, &job.packed);
    if (status == SN_OK) status = write_file(&job, out);
    free_job(&job);
    sn_load_free(roles);
    sn_model_free(model);
    return status;
}

static sn_status convert_to_blob(const sn_gguf *gguf, const char *out,
                                 const sn_convert_options *options) {
    SN_TRY(check_output(gguf, out));
    return sn_blob_write(gguf, out, options->type != NULL, options->progress,
                         options->progress_user);
}

static sn_status check_format(const sn_convert_options *options, bool *blob) {
    const bool i4 = options->type && sn_type_same_name(options->type, "i4");
    *blob = options->format && !strcmp(options->format, "blob");
    if (*blob && (options->packed || (options->type && !i4)))
        return sn_fail(SN_E_INVAL, "a blob is float32 or INT4: it takes no type but i4, no panels");
    if (!*blob && i4) return sn_fail(SN_E_UNSUPPORTED, "type 'i4' is only written into blobs");
    if (*blob || !options->format || !strcmp(options->format, "gguf")) return SN_OK;
    return sn_fail(SN_E_UNSUPPORTED, "format '%.40s' cannot be written (supported: gguf, blob)",
                   options->format);
}

SN_WORKER static sn_status convert(const char *in, const char *out,
                                   const sn_convert_options *options) {
    const sn_mix *mix = NULL;
    sn_gguf gguf = {0};
    bool blob;
    SN_TRY(check_format(options, &blob));
    if (!blob) SN_TRY(sn_mix_find(options->type, &mix));
    if (sn_platform_same_file(in, out))
        return sn_fail(SN_E_INVAL, "%.300s: is the input; write to another file", out);
    SN_TRY(sn_open_model(in, &gguf));
    sn_status status = blob ? convert_to_blob(&gguf, out, options)
                            : convert_gguf(&gguf, out, options, mix);
    sn_gguf_close(&gguf);
    return status;
}

void sn_convert_options_init(sn_convert_options *options) {
    if (options) *options = (sn_convert_options){.struct_size = sizeof *options};
}

sn_status sn_convert(const char *in, const char *out, const sn_convert_options *options) {
    sn_convert_options own;
    sn_convert_options_init(&own);
    if (!in || !out) return sn_fail(SN_E_INVAL, "sn_convert: a path is NULL");
    if (options) {
        /* a caller compiled against another version may know fewer or more fields */
        size_t size = options->struct_size;
        if (size < sizeof options->struct_size)
            return sn_fail(SN_E_INVAL, "sn_convert: options were not initialised");
        memcpy(&own, options, size < sizeof own ? size : sizeof own);
    }
    sn_fpenv saved = sn_fpenv_enter();
    sn_status status = convert(in, out, &own);
    sn_fpenv_leave(saved);
    return status;
}
