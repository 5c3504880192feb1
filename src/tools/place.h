/* Files and folders of the system, of namespaces and of a pool, by the same functions. A name NS:/a/b is /a/b in the
 * namespace NS; a name without ":/" is one of the system, or of a pool if the command says so. */
#ifndef DELTAFS_TOOLS_PLACE_H
#define DELTAFS_TOOLS_PLACE_H

#include <limits.h>
#include <sys/stat.h>
#include <deltafs/deltafs_namespace.h>
#include <deltafs/deltafs_pool.h>

#define PLACE_NAMESPACES 16 /* that one command can use */

/* The namespaces, and the pool, that a command has open. */
struct place_set {
    int flags; /* of deltafs_namespace_open */
    size_t count;
    struct {
        char *name;
        deltafs_namespace *ns;
    } open[PLACE_NAMESPACES];
    deltafs_pool *pool; /* NULL: none */
    char *point;        /* its mount point */
};

struct place {
    deltafs_namespace *ns;
    deltafs_pool *pool; /* both NULL: the system */
    const char *name;   /* of the namespace, or the pool's mount point; for messages */
    char path[PATH_MAX];
};

/* The functions print a message, and return an exit code. */

/* Find a name's place. place_must_find: it must be in a namespace. */
int place_find(struct place_set *s, const char *name, struct place *out);
int place_must_find(struct place_set *s, const char *name, struct place *out);
/* The name is a path below the mount point of a pool, or the mount point. All such names of a command are of one pool.
 */
int place_find_in_pool(struct place_set *s, const char *name, struct place *out);
/* Close all namespaces, which commits them, and the pool; `code` is that of the command so far. */
int place_close(struct place_set *s, int code);

/* Whether the place is in the system, in no namespace and no pool; whether two are in the same one. */
int place_is_plain(const struct place *p);
int place_is_beside(const struct place *a, const struct place *b);
/* The last part of a path, without slashes at its end; "" of the root. */
void place_base(const char *path, char base[NAME_MAX + 1]);
/* Go to a name in the folder, and back again. So a tree of any depth takes one path of memory. */
int place_enter(struct place *p, const char *name, size_t *before);
void place_leave(struct place *p, size_t before);
/* Say why a call with the place failed, which returned `status` (of the system: -1, and errno). */
int place_fail(const struct place *p, int status);
/* Say what is wrong with the place. */
int place_refuse(const struct place *p, const char *wrong);

/* What is there. *st gets st_mode, st_ino, st_uid, st_gid, st_size, st_mtim and st_atim. With `may_lack` nothing is no
 * error: st_mode is 0. */
int place_stat(const struct place *p, int follows, int may_lack, struct stat *st);
/* Call `fn` for each entry of a folder, with the place at the entry; the last code that is not EXIT_OK is returned,
 * after all entries. */
typedef int place_fn(struct place *p, const struct stat *st, void *arg);
int place_each(struct place *folder, place_fn *fn, void *arg);
/* The same, without those that are no folders and that `wants` returns 0 for; no attributes are read of them. */
typedef int place_wants(const char *name, void *arg);
int place_each_wanted(struct place *folder, place_wants *wants, place_fn *fn, void *arg);
/* A symbolic link's target, with a zero. */
int place_readlink(const struct place *p, char target[PATH_MAX]);

#endif
