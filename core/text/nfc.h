/*
 * nfc.h: Unicode normalization form C (Unicode Standard Annex 15).
 */
#ifndef SN_TEXT_NFC_H
#define SN_TEXT_NFC_H

#include "buffer.h"

typedef struct sn_nfc sn_nfc; /* unpacked tables; immutable */

sn_status sn_nfc_new(sn_nfc **nfc);
void sn_nfc_free(sn_nfc *nfc);

/* Appends the normalized text. Bytes that are no UTF-8 stay as they are, and nothing is composed
 * across them. Time and memory grow with n log n and n, whatever the text. */
sn_status sn_nfc_append(const sn_nfc *nfc, const uint8_t *text, size_t bytes, sn_buffer *out);

#endif
