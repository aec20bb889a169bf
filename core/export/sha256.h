/*
 * sha256.h: SHA-256 (FIPS 180-4), for the lists of files of a release.
 */
#ifndef SN_EXPORT_SHA256_H
#define SN_EXPORT_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SN_SHA256_HEX 65 /* 64 digits and a NUL */

typedef struct sn_sha256 {
    uint32_t h[8];
    uint64_t bytes;    /* so far */
    uint8_t block[64]; /* the last bytes % 64 of them */
} sn_sha256;

void sn_sha256_init(sn_sha256 *sha);
void sn_sha256_update(sn_sha256 *sha, const void *data, size_t bytes);

/* The digest in lower-case hexadecimal. `sha` is spent. */
void sn_sha256_finish(sn_sha256 *sha, char hex[SN_SHA256_HEX]);

#endif
