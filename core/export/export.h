/*
 * export.h: models as other programs keep them: packed blobs. Releases are sn_release().
 */
#ifndef SN_EXPORT_EXPORT_H
#define SN_EXPORT_EXPORT_H

#include "../formats/gguf.h"

/*
 * Writes the fp32 blob of a model (SunnyNet, RWKV-7), whatever it was opened from. The model is
 * read once, from front to back. SN_E_UNSUPPORTED names what the blob cannot hold.
 */
sn_status sn_blob_write(const sn_gguf *gguf, const char *path, sn_progress_fn progress,
                        void *user);

#endif
