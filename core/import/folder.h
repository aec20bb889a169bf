/*
 * folder.h: paths, and which files of a folder hold a model's weights.
 */
#ifndef SN_IMPORT_FOLDER_H
#define SN_IMPORT_FOLDER_H

#include "../memory.h"

/* All to be freed; NULL: no memory. */
char *sn_path_join(const char *folder, const char *name);
char *sn_path_folder(const char *path);  /* of a file; "." if the path is a bare name */
char *sn_path_copy(const char *path);
char *sn_path_stem(const char *path, bool is_folder); /* last part, of a file without extension;
                                                        * "" if that is no name */
bool sn_path_exists(const char *path);

/* A name that stays in its folder wherever it is opened. */
bool sn_path_is_plain(const char *name, size_t bytes);

/*
 * The weights in a folder: *path (to be freed; NULL: there are none) is the file that holds them,
 * or the index of shards. transformers' names go first (model.safetensors, its index,
 * pytorch_model.bin, its index); then the only file that ends in .safetensors, .pth, .pt, .gguf or
 * .bin, the first kind that there is. SN_E_UNSUPPORTED if there are several.
 */
sn_status sn_folder_weights(const char *folder, char **path, bool *is_index);

#endif
