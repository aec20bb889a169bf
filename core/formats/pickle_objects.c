#include "pickle_machine.h"

#include <string.h>

/* ---- callables that are known ------------------------------------------------------- */

typedef enum callable {
    ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, SIZE, STORAGE_TYPE
} callable;

static const struct {
    const char *name;
    callable is;
    const char *type; /* of a storage's elements, as types.h names it */
} CALLABLES[] = {
    { "collections.OrderedDict", ORDERED_DICT, NULL },
    { "torch._utils._rebuild_tensor_v2", REBUILD_TENSOR, NULL },
    { "torch._utils._rebuild_parameter", REBUILD_PARAMETER, NULL },
    { "torch.Size", SIZE, NULL },
    { "torch.FloatStorage", STORAGE_TYPE, "F32" },
    { "torch.HalfStorage", STORAGE_TYPE, "F16" },
    { "torch.BFloat16Storage", STORAGE_TYPE, "BF16" },
    { "torch.DoubleStorage", STORAGE_TYPE, "F64" },
    { "torch.LongStorage", STORAGE_TYPE, "I64" },
    { "torch.IntStorage", STORAGE_TYPE, "I32" },
    { "torch.ShortStorage", STORAGE_TYPE, "I16" },
    { "torch.CharStorage", STORAGE_TYPE, "I8" },
    { "torch.ByteStorage", STORAGE_TYPE, "I8" },
    { "torch.BoolStorage", STORAGE_TYPE, "I8" },
};

#define N_CALLABLES (sizeof CALLABLES / sizeof CALLABLES[0])

/* ---- objects ------------------------------------------------------------------------ */

/* A name becomes a known callable or a foreign object, whatever it is. */
static sn_status push_name(sn_pickle_machine *m, const char *module, size_t module_size,
                           const char *name, size_t name_size) {
    sn_pickle_value *made = NULL;
    if (module_size > 512 || name_size > 512) return sn_pickle_reject(m, "a name that is too long");
    SN_TRY(sn_pickle_new(m, SN_PICKLE_FOREIGN, &made));
    made->size = module_size + 1 + name_size;
    char *text = sn_pickle_memory(m, made->size + 1);
    if (!text) return SN_E_NOMEM;
    memcpy(text, module, module_size);
    text[module_size] = '.';
    memcpy(text + module_size + 1, name, name_size);
    text[made->size] = '\0';
    made->text = text;
    for (uint32_t i = 0; i < N_CALLABLES; i++)
        if (strlen(CALLABLES[i].name) == made->size &&
            memcmp(CALLABLES[i].name, text, made->size) == 0) {
            made->kind = SN_PICKLE_CALLABLE;
            made->callable = i;
        }
    return sn_pickle_push(m, made);
}

/* A line that ends in a newline, which is not part of it. */
static sn_status take_line(sn_pickle_machine *m, const char **line, size_t *size) {
    const uint8_t *start = m->data + m->at;
    const uint8_t *end = memchr(start, '\n', m->size - m->at);
    if (!end) return sn_pickle_reject(m, "a line that does not end");
    *line = (const char *)start;
    *size = (size_t)(end - start);
    m->at += *size + 1;
    return SN_OK;
}

sn_status sn_pickle_push_global(sn_pickle_machine *m) {
    const char *module = NULL, *name = NULL;
    size_t module_size = 0, name_size = 0;
    SN_TRY(take_line(m, &module, &module_size));
    SN_TRY(take_line(m, &name, &name_size));
    return push_name(m, module, module_size, name, name_size);
}

sn_status sn_pickle_push_stack_global(sn_pickle_machine *m) {
    sn_pickle_value *module = NULL, *name = NULL;
    SN_TRY(sn_pickle_pop(m, &name));
    SN_TRY(sn_pickle_pop(m, &module));
    if (module->kind != SN_PICKLE_TEXT || name->kind != SN_PICKLE_TEXT)
        return sn_pickle_reject(m, "the name of an object is no text");
    return push_name(m, module->text, module->size, name->text, name->size);
}

static bool is_tuple_of_counts(const sn_pickle_value *v) {
    if (v->kind != SN_PICKLE_TUPLE) return false;
    for (size_t i = 0; i < v->size; i++)
        if (v->items[i]->kind != SN_PICKLE_INT || v->items[i]->integer < 0) return false;
    return true;
}

/* (storage, offset, sizes, strides, requires_grad, hooks, ...) */
static sn_status rebuild_tensor(sn_pickle_machine *m, const sn_pickle_value *arguments) {
    sn_pickle_value **a = arguments->items;
    sn_pickle_value *made = NULL;
    if (arguments->size < 4)
        return sn_pickle_reject(m, "a tensor from %zu arguments", arguments->size);
    if (a[0]->kind == SN_PICKLE_FOREIGN) /* of a storage that is not known */
        return sn_pickle_push_foreign(m, a[0]->text, a[0]->size);
    if (a[0]->kind != SN_PICKLE_STORAGE || a[1]->kind != SN_PICKLE_INT || a[1]->integer < 0 ||
        !is_tuple_of_counts(a[2]) || !is_tuple_of_counts(a[3]) || a[2]->size != a[3]->size)
        return sn_pickle_reject(m, "a tensor without storage, offset, sizes and strides");
    SN_TRY(sn_pickle_new(m, SN_PICKLE_TENSOR, &made));
    made->items = a;
    made->size = 4;
    return sn_pickle_push(m, made);
}

/* OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]) */
static sn_status build_dict(sn_pickle_machine *m, const sn_pickle_value *arguments) {
    sn_pickle_value *made = NULL;
    SN_TRY(sn_pickle_new(m, SN_PICKLE_DICT, &made));
    SN_TRY(sn_pickle_push(m, made));
    if (arguments->size == 0) return SN_OK;
    const sn_pickle_value *pairs = arguments->items[0];
    if (arguments->size > 1 || pairs->kind != SN_PICKLE_LIST)
        return sn_pickle_reject(m, "an OrderedDict from what is no list of pairs");
    for (size_t i = 0; i < pairs->size; i++) {
        const sn_pickle_value *pair = pairs->items[i];
        if ((pair->kind != SN_PICKLE_LIST && pair->kind != SN_PICKLE_TUPLE) || pair->size != 2)
            return sn_pickle_reject(m, "an OrderedDict from what is no list of pairs");
        SN_TRY(sn_pickle_extend(m, made, pair->items, 2));
    }
    return SN_OK;
}

/* The first argument, of this kind or foreign. */
static sn_status push_argument(sn_pickle_machine *m, const sn_pickle_value *arguments,
                               sn_pickle_kind kind) {
    if (arguments->size == 0) return sn_pickle_reject(m, "an argument is missing");
    sn_pickle_value *item = arguments->items[0];
    if (item->kind != kind && item->kind != SN_PICKLE_FOREIGN)
        return sn_pickle_reject(m, "an argument of the wrong kind");
    return sn_pickle_push(m, item);
}

/* callable(*arguments), or cls.__new__(cls, *arguments), which means the same here. */
sn_status sn_pickle_reduce(sn_pickle_machine *m) {
    sn_pickle_value *arguments = NULL, *called = NULL;
    SN_TRY(sn_pickle_pop(m, &arguments));
    SN_TRY(sn_pickle_pop(m, &called));
    if (called->kind == SN_PICKLE_FOREIGN) return sn_pickle_push(m, called); /* stays what it is */
    if (called->kind != SN_PICKLE_CALLABLE)
        return sn_pickle_reject(m, "a call of what is no callable");
    if (arguments->kind != SN_PICKLE_TUPLE) return sn_pickle_reject(m, "a call without a tuple");
    switch (CALLABLES[called->callable].is) {
    case ORDERED_DICT: return build_dict(m, arguments);
    case REBUILD_TENSOR: return rebuild_tensor(m, arguments);
    case REBUILD_PARAMETER: return push_argument(m, arguments, SN_PICKLE_TENSOR);
    case SIZE: return push_argument(m, arguments, SN_PICKLE_TUPLE);
    case STORAGE_TYPE: break;
    }
    return sn_pickle_reject(m, "a call of %.64s", called->text);
}

/* cls.__new__(cls, *arguments, **keywords): the arguments of a foreign class are dropped. */
sn_status sn_pickle_new_object(sn_pickle_machine *m) {
    sn_pickle_value *keywords = NULL;
    SN_TRY(sn_pickle_pop(m, &keywords));
    return sn_pickle_reduce(m);
}

/* The state of an object: attributes of a dictionary or tensor are of no interest. */
sn_status sn_pickle_build(sn_pickle_machine *m) {
    sn_pickle_value *state = NULL, *object = NULL;
    SN_TRY(sn_pickle_pop(m, &state));
    SN_TRY(sn_pickle_top(m, &object));
    if (object->kind != SN_PICKLE_DICT && object->kind != SN_PICKLE_TENSOR &&
        object->kind != SN_PICKLE_FOREIGN)
        return sn_pickle_reject(m, "attributes for what is no object");
    return SN_OK;
}

/* ("storage", element type, key, location, number of elements[, view]) */
sn_status sn_pickle_push_storage(sn_pickle_machine *m) {
    sn_pickle_value *id = NULL, *made = NULL;
    SN_TRY(sn_pickle_pop(m, &id));
    if (id->kind != SN_PICKLE_TUPLE || id->size < 5 || id->items[0]->kind != SN_PICKLE_TEXT ||
        strcmp(id->items[0]->text, "storage") != 0)
        return sn_pickle_reject(m, "a persistent id that is no storage");
    const sn_pickle_value *type = id->items[1], *key = id->items[2], *count = id->items[4];
    if (type->kind == SN_PICKLE_FOREIGN)
        return sn_pickle_push_foreign(m, type->text, type->size);
    if (type->kind != SN_PICKLE_CALLABLE || CALLABLES[type->callable].is != STORAGE_TYPE ||
        key->kind != SN_PICKLE_TEXT || count->kind != SN_PICKLE_INT || count->integer < 0)
        return sn_pickle_reject(m, "a storage without type, key and number of elements");
    SN_TRY(sn_pickle_new(m, SN_PICKLE_STORAGE, &made));
    made->items = id->items + 1;
    made->size = 2;
    made->integer = count->integer;
    return sn_pickle_push(m, made);
}

const char *sn_pickle_storage_type(const sn_pickle_value *storage) {
    return CALLABLES[storage->items[0]->callable].type;
}
