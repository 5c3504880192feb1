/* Ordered scans of keys that are bytes. These are stored by their hashes: so a scan reads whole epochs, keeps the first
 * records in the order of keys that memory has room for, and reads the epoch again for those that follow. */
#ifndef DELTAFS_DIRECTORY_NAMED_H
#define DELTAFS_DIRECTORY_NAMED_H

#include "directory/read/scan.h"

/* A key, or none: size 0. */
struct name {
    size_t size;
    uint8_t bytes[KEY_BYTES_MAX];
};

struct named_record;

struct named {
    struct reader *reader;
    struct damages damages;
    struct name low, high; /* ends of the range */
    uint32_t epoch, end;   /* epochs that are still to be read */
    size_t limit;          /* bytes of the records that are held, about */
    struct buffer records; /* struct named_record: of a pass */
    struct buffer bytes;   /* their keys and values */
    struct buffer spare;
    size_t count, at, used, room, order;
    struct name after;   /* this pass takes only what is behind this key, */
    struct name cut;     /* and, once it has left out records, what is not behind this one */
    struct error *error; /* of a pass */
    struct deltafs_record record;
};

/* As ordered_init, ordered_next and ordered_fini. */
int named_init(struct named *n, struct reader *r, const struct name *low, const struct name *high,
               const struct deltafs_range *epochs, struct error *e);
int named_next(struct named *n, const struct deltafs_record **out, struct error *e);
void named_fini(struct named *n);

#endif
