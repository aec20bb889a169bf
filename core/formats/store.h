/*
 * store.h: the tensors of a checkpoint as they lie in its files, whatever the container:
 * safetensors (safetensors.c), PyTorch archives (pickle.c), packed blobs. Filled once,
 * then looked up by name and read as views.
 */
#ifndef SN_FORMATS_STORE_H
#define SN_FORMATS_STORE_H

#include "../file.h"
#include "../quant/types.h"

#define SN_STORE_MAX_DIMS 4

typedef struct sn_store sn_store;

/* A tensor in one of the store's files. */
typedef struct sn_view {
    const char *name;    /* NUL-terminated, belongs to the store */
    const sn_type *type; /* F32, F16, BF16, F64, I8, I16, I32, I64 or a blob's own. Booleans and
                          * unsigned integers have the signed type of their size. */
    uint32_t n_dims;
    uint64_t dims[SN_STORE_MAX_DIMS];    /* slowest first, as PyTorch prints a shape */
    uint64_t strides[SN_STORE_MAX_DIMS]; /* in elements */
    const sn_file *file;
    uint64_t offset; /* of element 0, in bytes */
    sn_store *store; /* set by sn_store_add(); holds the blocks that sn_view_read() gathers */
} sn_view;

sn_status sn_store_new(sn_store **store);
void sn_store_free(sn_store *store); /* closes its files; NULL is fine */

/* Takes over an open file (on failure too) and copies its name; *kept is its place in the store. */
sn_status sn_store_add_file(sn_store *store, sn_file *file, const sn_file **kept);

/* Copies the view and its name. The name must be new: SN_E_FORMAT names file and tensor. The
 * view's extent must lie inside its file, and it may not have more bytes than its file (repeated
 * elements, of stride 0). Types of more than one element a block must be contiguous, their rows
 * whole blocks. All checked here, in 64 bits. */
sn_status sn_store_add(sn_store *store, const sn_view *view);

const sn_view *sn_store_find(const sn_store *store, const char *name); /* NULL if absent */
size_t sn_store_count(const sn_store *store);
const sn_view *sn_store_at(const sn_store *store, size_t index); /* in the order added; both stay
                                                                  * where they are */

/* Text that belongs to the whole (safetensors' __metadata__, a pickle's config as JSON), copied; a
 * second text for a key replaces the first. */
sn_status sn_store_set_note(sn_store *store, const char *key, const char *text, size_t bytes);
const char *sn_store_note(const sn_store *store, const char *key); /* NULL if absent */

uint64_t sn_view_elements(const sn_view *view);

/* Elements [first, first + n) in row-major order of the view's shape, as they are stored; whole
 * blocks. A transposed or otherwise strided view is read in blocks of some megabytes that the
 * store keeps, so that walking through it from front to back reads each byte of the file a few
 * times at most. One thread at a time. */
sn_status sn_view_read(const sn_view *view, uint64_t first, size_t n, void *elements);

/* The same as float32. SN_E_UNSUPPORTED if the type is no float. */
sn_status sn_view_read_f32(const sn_view *view, uint64_t first, size_t n, float *values);

/* A view of the same elements with its last two dimensions swapped. */
sn_view sn_view_transposed(const sn_view *view);

/* ---- containers (each adds its tensors to `store`; takes over `file`, on failure too) ---- */

/* safetensors.c. __metadata__ becomes notes. One call for each shard: names must be unique over
 * all of them. Data types of 8 bits and less are refused by tensor and type. */
sn_status sn_safetensors_read(sn_file *file, sn_store *store);
bool sn_safetensors_smells(const sn_file *file); /* its first bytes look like one */

/*
 * pickle.c, torch.c, zip.c: a PyTorch archive. Tensors of nested dictionaries and lists get names
 * joined by '.'; plain values (numbers, texts) among them are passed over, other objects refused by
 * name. `root` (may be NULL) is the member of the top dictionary that holds the tensors, e.g.
 * "model"; if there is none of that name, the top dictionary itself holds them. With such a member
 * the others that are plain (numbers, texts, lists, dictionaries of such) become notes under their
 * key, as JSON text (with Python's NaN and Infinity); tensors and foreign objects inside them are
 * left out, never built.
 */
sn_status sn_pickle_read(sn_file *file, const char *root, sn_store *store);
bool sn_pickle_smells(const sn_file *file);

#endif
