/* Mount points.
 *
 * The environment has them, from the command "deltafs run": DELTAFS_POSIX is a list, joined by '|', of
 * KIND=POINT=TARGET. KIND is "namespace" or "particles"; POINT is a path of the system without ".", ".." and "//". */
#ifndef DELTAFS_POSIX_MOUNT_H
#define DELTAFS_POSIX_MOUNT_H

#include "posix/posix.h"

enum mount_kind { MOUNT_NAMESPACE, MOUNT_PARTICLES };

struct tree;
struct particles;

struct mount {
    enum mount_kind kind;
    char *point;
    size_t point_size;
    char *target;
    struct tree *tree;           /* of a namespace */
    struct particles *particles; /* of a directory */
};

#define MOUNTS_MAX 16
struct mounts {
    struct mount mount[MOUNTS_MAX];
    size_t count; /* 0: this library does nothing */
};
extern struct mounts mounts;

/* The mount whose point a path is, or begins with; NULL: none. */
struct mount *mount_of(const char *path);

#endif
