/* The oracle of a namespace: a tree in memory, with the rules of POSIX and no more than a list of children a folder. */
#ifndef DELTAFS_TEST_TREE_H
#define DELTAFS_TEST_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <deltafs/deltafs_namespace.h>

enum tree_type { TREE_NONE, TREE_FILE, TREE_FOLDER, TREE_LINK };

struct tree {
    enum tree_type type;
    char name[256];
    uint32_t mode;
    int64_t mtime; /* 0: it was not set */
    struct tree *parent, *next, *child;
    uint8_t *bytes; /* of a file, or a link's target */
    size_t size;
};

struct tree *tree_create(void); /* a root */
void tree_destroy(struct tree *t);
struct tree *tree_copy(const struct tree *root);

/* What the calls of the same name return. A status, and *out (may be NULL) what was created or found. */
int tree_find(struct tree *root, const char *path, int follows, struct tree **out);
int tree_new(struct tree *root, const char *path, enum tree_type type, uint32_t mode, const char *target);
/* As deltafs_namespace_create without O_EXCL. */
int tree_replace(struct tree *root, const char *path, uint32_t mode);
/* As deltafs_namespace_file_open. */
int tree_open(struct tree *root, const char *path, int flags, uint32_t mode, struct tree **out);
void tree_resize(struct tree *file, size_t size);
int tree_unlink(struct tree *root, const char *path);
int tree_rmdir(struct tree *root, const char *path);
int tree_rename(struct tree *root, const char *from, const char *to);

/* Fails the test unless the namespace has in this folder what the tree has, and nothing else. */
void tree_check(struct tree *root, const char *path, deltafs_namespace *ns);

#endif
