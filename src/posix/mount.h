/* Mount points.
 *
 * The environment has them, from the command "deltafs run": DELTAFS_POSIX is a list, joined by '|', of
 * KIND=POINT=TARGET. KIND is "namespace", "particles" or "pool"; POINT is a path of the system without ".", ".." and
 * "//". The kind "logical" has no point, and is for logical files wherever they are: "logical=/=/". */
#ifndef DELTAFS_POSIX_MOUNT_H
#define DELTAFS_POSIX_MOUNT_H

#include <stdatomic.h>
#include <sys/stat.h>
#include "posix/posix.h"

enum mount_kind { MOUNT_NAMESPACE, MOUNT_PARTICLES, MOUNT_LOGICAL, MOUNT_POOL };

struct pooled;
struct tree;
struct particles;

struct mount {
    enum mount_kind kind;
    char *point;
    size_t point_size;
    char *target;
    struct tree *tree;                               /* of a namespace */
    struct particles *particles;                     /* of a directory */
    struct pooled *pooled;                           /* of a pool */
    int (*stat)(const char *path, struct stat *out); /* of logical files: logical_view.h */
    int (*sync)(const char *path);
};

#define MOUNTS_MAX 16
struct mounts { /* what every call looks at is side by side */
    atomic_int has_begun;
    int is_used;     /* something is mounted, or has_logical; 0: this library does nothing */
    int has_logical; /* logical files of the system are shown as files: logical_view.h */
    size_t count;
    struct mount mount[MOUNTS_MAX + 1]; /* the last one is for logical files */
};
extern struct mounts mounts;

/* The mount whose point a path is, or begins with; NULL: none. */
struct mount *mount_of(const char *path);

#endif
