/* Writes a ZIP file whose entries are stored, not compressed. */
#ifndef DELTAFS_TOOLS_ZIP_H
#define DELTAFS_TOOLS_ZIP_H

#include <stdint.h>
#include <stdio.h>

#define ZIP_NAME_MAX 65535 /* bytes of an entry's name */

struct zip_entry {
    char *name;
    uint32_t crc;
    uint64_t size, offset;
};

struct zip {
    FILE *file; /* that can be read and written at any place */
    struct zip_entry *entry;
    size_t count;
    uint64_t written; /* bytes of the last entry */
};

/* These return 0, or -1 with errno set. An entry of `size` bytes begins, then come its bytes. */
int zip_begin_entry(struct zip *z, const char *name, uint64_t size);
int zip_write(struct zip *z, const void *bytes, size_t n);
int zip_end_entry(struct zip *z);
/* Write the list of entries, which ends the file. */
int zip_end(struct zip *z);
void zip_fini(struct zip *z);

#endif
