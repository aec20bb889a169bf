/*
 * zip.h: the directory of a ZIP archive (APPNOTE.TXT, ZIP64 included) whose members are stored, not
 * compressed: each is then a piece of the file. Everything is checked against the file's size,
 * local headers against the central directory; compressed or encrypted members and duplicate
 * names are refused by name.
 */
#ifndef SN_FORMATS_ZIP_H
#define SN_FORMATS_ZIP_H

#include "../file.h"

typedef struct sn_zip_member {
    const char *name; /* NUL-terminated; belongs to the sn_zip */
    uint64_t offset, bytes; /* of its data, inside the file */
} sn_zip_member;

typedef struct sn_zip {
    sn_zip_member *members; /* in the order of the directory */
    size_t n_members;
    char *names;
    uint32_t *by_name; /* indices in the order of the names */
} sn_zip;

/* On success sn_zip_free() is due. */
sn_status sn_zip_read(const sn_file *file, sn_zip *zip);
void sn_zip_free(sn_zip *zip); /* also of a zeroed struct */

const sn_zip_member *sn_zip_find(const sn_zip *zip, const char *name); /* NULL if absent */

/* True if the file begins as an archive with members does. */
bool sn_zip_smells(const sn_file *file);

#endif
