/* The bytes of an open file. */
#ifndef DELTAFS_NAMESPACE_FILE_BYTES_H
#define DELTAFS_NAMESPACE_FILE_BYTES_H

#include "namespace/namespace.h"

/* Chunks of one file that are in memory: 4 MiB. */
#define CHUNKS_MOST 16

struct file_chunk {
    uint64_t number;
    uint64_t used; /* when, by the clock */
    size_t size;   /* of its bytes; those that follow up to the end of the file are zero */
    struct buffer bytes;
    int is_dirty; /* they are not stored */
};

struct file_bytes {
    struct entry_id *place; /* of each chunk that is stored; table 0: it is not, and has zeros only */
    size_t places, place_room;
    int has_places;           /* they were read */
    struct file_chunk *chunk; /* CHUNKS_MOST; NULL: there was none yet */
    size_t chunks;
    uint64_t clock;
};

/* `inode` is that of the file, with its size and the place of its data. */

void file_bytes_fini(struct file_bytes *b);
/* Read bytes, all of which the file has. */
int file_bytes_read(deltafs_namespace *ns, struct file_bytes *b, const struct inode *inode, uint64_t offset,
                    uint8_t *to, size_t size);
/* Write bytes, and give the file its new size. */
int file_bytes_write(deltafs_namespace *ns, struct file_bytes *b, struct inode *inode, uint64_t offset,
                     const uint8_t *from, size_t size);
int file_bytes_resize(deltafs_namespace *ns, struct file_bytes *b, struct inode *inode, uint64_t size);
/* Store all that is not stored; inode->data gets the place. */
int file_bytes_store(deltafs_namespace *ns, struct file_bytes *b, struct inode *inode);

#endif
