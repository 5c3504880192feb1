/* Operations of pool_model.c, and the reference that says what they should do. */
#ifndef DELTAFS_TESTS_POOL_REFERENCE_H
#define DELTAFS_TESTS_POOL_REFERENCE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <deltafs/deltafs_pool.h>

#define FILE_MAX  1700000 /* bytes: some chunks */
#define NODES_MAX 2048    /* entries */

enum kind {
    OPEN,
    CLOSE,
    WRITE,
    READ,
    STAT_FILE,
    CUT_FILE,
    STAT,
    UNLINK,
    MKDIR,
    RMDIR,
    RENAME,
    LIST,
    CUT,
    CHMOD,
    LSTAT,
    LINK,
    READLINK,
    KINDS
};

struct operation {
    int kind, slot, flags;
    uint8_t fill;
    char path[64], to[64];
    uint64_t offset, size;
};

struct result {
    int status;
    uint64_t value; /* bytes that were read, or the size, or a sum of a list */
    uint64_t hash;
    uint32_t mode;
};

struct inode {
    uint8_t *bytes;
    char target[64]; /* of a link */
    uint64_t size;
    uint32_t mode;
    int is_removed, opened;
};

struct node {
    char path[64];
    struct inode *inode;
};

extern struct node node[NODES_MAX];
extern size_t nodes;
extern const char *point; /* the mount point */

/* Of a list. */
uint64_t entry_sum(const char *name, uint32_t mode);
/* The target of a link: '@' is the mount point. */
const char *target_of(const char *text, char out[PATH_MAX]);

struct inode *inode_create(const char *path, uint32_t mode);
void node_remove(const char *path, int is_removed);
int is_below(const char *path, const char *of);
int has_children(const char *path);
/* Where a path leads: as walk() of pool_follow.c. */
int resolve(const char *path, int has_last, char out[64]);

/* Do an operation; returns the status. */
int expect_file(struct inode **f, const struct operation *o, struct result *r);
int expect_path(const struct operation *given, struct result *r);

#endif
