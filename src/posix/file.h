/* Open files. */
#ifndef DELTAFS_POSIX_FILE_H
#define DELTAFS_POSIX_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include "posix/internal.h"
#include "posix/library.h"
#include "posix/mount.h"
#include "posix/span.h"

enum file_kind {
    FILE_TREE,    /* a file of a namespace, or something that was opened with O_PATH */
    FILE_FOLDER,  /* of a namespace or of particles */
    FILE_PARTICLE /* a record that is being written, or a memfd with all that a particle has */
};

/* An open file: what POSIX calls a description. */
struct file {
    enum file_kind kind;
    atomic_uint users;      /* descriptors that are it, and calls that use it */
    atomic_int descriptors; /* 0: it is closed */
    struct mount *mount;
    char *path; /* within the mount */
    int flags;  /* of open */
    struct stat st;
    int (*close)(struct file *f, int fd); /* the last descriptor is being closed: returns an error number */
    pthread_mutex_t lock;
    int has_all; /* the memfd has all bytes of the file */
    int is_removed;
    int is_resolved;        /* the path is one without links */
    int is_held;            /* files_hold() has its lock */
    struct file *held;      /* and that of this one; NULL: it is the first */
    struct spans dirty;     /* what is only in the memfd */
    struct spans published; /* of a pool's file: what was published since memory was freed */
    int is_placed;          /* with O_APPEND: not all of that was added, so it is put where it is */
    uint64_t cut;           /* the file was truncated to this since it was last committed; UINT64_MAX: it was not */
    int is_unbounded;       /* bytes may have been written anywhere without this library: all are dirty */
    int is_shared;          /* others write to it, too: see mark.h */
    uint64_t mark;
    deltafs_namespace_file *reader; /* of a file whose memfd has not all; with the lock of the tree */
    struct file *next_reader;       /* the next file of the tree that has one */
    deltafs_logical *logical;       /* the same of a logical file, with the lock of this */
    deltafs_pool_file *pooled;      /* of a file of a pool; NULL: it is not open yet */
    void *record;                   /* of a particle that is being written; NULL: it is read */
    int is_mapped;                  /* so the memfd keeps its bytes */
    int mappings;                   /* shared ones of a file that can be written to */
    struct spans mapped;            /* what they can write to: it counts as written, up to the end of the file */
    _Atomic(uint64_t) *mapped_sum;  /* of the bytes there when they were last published; 0: they were not, or the part
                                       is another one. Children share it. NULL: always 0 */
    int is_inherited;               /* from the program that began this one */
    int lock_fd;                    /* the descriptor that holds its lock, see file_lock.h; -1 */
    void *entries;                  /* of a folder that getdents64 lists */
    size_t entries_size;
    void (*release)(struct file *f); /* instead of freeing it; NULL: it is freed */
};

/* A new one; *out has one user. Takes `path`, which is on the heap. */
int file_create(enum file_kind kind, struct mount *m, char *path, int flags, struct file **out);
/* Give it a descriptor. */
int file_set(struct file *f, int fd);
/* The open file that a descriptor is, with one user more; NULL: none of a mount. */
struct file *file_get(int fd);
/* Whether it is one, without using it. */
int file_is_ours(int fd);
/* Its path, with the mount point; renaming may change it. Returns its length, as snprintf. */
int file_path(struct file *f, char *out, size_t room);
/* The bytes that are mapped are to be published, whatever they are. */
static inline void file_forget_sum(struct file *f)
{
    if (f->mapped_sum)
        atomic_store(f->mapped_sum, 0);
}
/* Remove a user; the last one frees it. */
void file_put(struct file *f);
/* Free it. */
void file_free(struct file *f);
/* The descriptor is not this file any more: returns the file, with the user that it was, or NULL. */
struct file *file_clear(int fd, int *is_last);
/* The same, before the descriptor is closed or gets another meaning; the last one of a file closes the file. Returns an
 * error number, of that. */
int file_forget(int fd);
/* The same for calls that do not return this error: a message says it. */
int file_drop(int fd);
/* The same for descriptors from `first` to `last`, without those of mappings. */
void file_forget_range(unsigned first, unsigned last);
/* Call `fn` for each descriptor that is an open file, and return the first error. */
int file_each(int (*fn)(struct file *f, int fd, void *arg), void *arg);

/* For file_each: take the lock of a file, if the descriptor is still this file, and stays so while the lock is held:
 * another thread may have closed it, and it may be something else by now, also a file outside of mounts. Returns
 * whether it is. */
int file_take(struct file *f, int fd);
/* Whether a descriptor that file_each() has found is this file, and stays so while the lock of the file is held.
 */
int file_is_at(const struct file *f, int fd);
/* The memfd of a descriptor, by a descriptor that has an offset and flags of its own; -1, with errno, without /proc. */
int file_reopen(int fd, int flags);

/* Before others write by the descriptors of a file, too: its memfd is opened by a path, since the kernel lets each
 * write at an offset of its own only then. With its lock. */
int file_open_by_path(struct file *f, int fd);

/* Hold the locks of the files of a mount, or, with NULL, of all; and release them. One thread at a time does so. */
void files_hold(const struct mount *m);
void files_let_go(void);
/* Around a fork: hold the lock of the table after all others, since a child has only the thread that forks, and could
 * not release those of others; release it, and then those of the files. A file that another thread has opened in
 * between is free in the child. */
void files_hold_table(void);
void files_release_table(int is_child);
void files_release(int is_child);

#endif
