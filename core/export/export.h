/*
 * export.h: models as other programs keep them: packed blobs. Releases are sn_release().
 */
#ifndef SN_EXPORT_EXPORT_H
#define SN_EXPORT_EXPORT_H

#include "../formats/gguf.h"

/*
 * Writes the blob of a model, whatever it was opened from: fp32 (SunnyNet, RWKV-7) or INT4 (RWKV-7;
 * matrices of type I4 keep their bytes). The model is read once, from front to back.
 * SN_E_UNSUPPORTED names what the blob cannot hold.
 */
sn_status sn_blob_write(const sn_gguf *gguf, const char *path, bool int4,
                        sn_progress_fn progress, void *user);

#endif
