/* What is known of a name: ids, attributes, and the records of tables that have them. */
#ifndef DELTAFS_NAMESPACE_ENTRY_H
#define DELTAFS_NAMESPACE_ENTRY_H

#include <stddef.h>
#include <stdint.h>
#include <deltafs/deltafs_namespace.h>
#include "base/hash.h"
#include "namespace/entry_format.h"

/* What a file, folder or link is known by, wherever it is moved: the table of the writer that created it, and the stamp
 * of that. The root is {0, 1}. */
struct entry_id {
    uint64_t table, number;
};

static inline int id_is_same(const struct entry_id *a, const struct entry_id *b)
{
    return a->number == b->number && a->table == b->table;
}

static inline int id_is_less(const struct entry_id *a, const struct entry_id *b)
{
    return a->number != b->number ? a->number < b->number : a->table < b->table;
}

/* The state of one entry. Of two states the one with the higher stamp counts. */
struct inode {
    struct entry_id id;
    uint64_t stamp; /* nanoseconds since 1970, unique in the table: when this state was made */
    int64_t mtime, atime;
    uint64_t size;
    struct entry_id data; /* table, and key of the first chunk, of a file that has bytes */
    uint32_t uid, gid;
    uint16_t mode; /* permissions */
    uint8_t type;
};

/* A folder, and its part of keys. */
struct folder {
    struct entry_id id;
    uint32_t hash;
};
struct folder folder_of(const struct entry_id *id);

/* A name in a folder. */
struct entry_name {
    struct entry_id parent;
    uint64_t key;
    const char *text;
    size_t size;
};

static inline uint32_t name_hash(const char *text, size_t size)
{
    return (uint32_t)hash_bytes(text, size);
}

static inline struct entry_name name_in(const struct folder *f, uint32_t hash, const char *text, size_t size)
{
    return (struct entry_name){f->id, (uint64_t)f->hash << 32 | hash, text, size};
}

/* A record; `target` is that of a link. Both texts are the caller's, or in the bytes that were decoded. */
struct entry {
    struct entry_id parent;
    const char *name, *target;
    size_t name_size, target_size;
    struct inode inode;
};

/* Returns the bytes written, at most ENTRY_SIZE_MAX. */
size_t entry_encode(const struct entry *entry, uint8_t *out);
/* Returns 0, or -1 if the bytes are no record. */
int entry_decode(const uint8_t *bytes, size_t n, struct entry *out);

/* One more entry has the name that shows `shown` so far, which is ENTRY_REMOVED at first. A folder wins over others;
 * of folders the least id counts, and the newest attributes; of others the newest. Returns whether the id is i's now.
 */
int inode_show(struct inode *shown, const struct inode *i);

void inode_to_stat(const struct inode *inode, struct deltafs_namespace_stat *out);

#endif
