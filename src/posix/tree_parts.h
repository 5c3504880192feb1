/* What the parts of a namespace behind a mount point share. */
#ifndef DELTAFS_POSIX_TREE_PARTS_H
#define DELTAFS_POSIX_TREE_PARTS_H

#include "posix/file.h"

#define COPY_SIZE ((size_t)256 << 10)

struct tree {
    pthread_mutex_t lock;
    char *target;
    int is_snapshot;
    deltafs_namespace *ns; /* NULL: it is not open */
    int is_writer;         /* of it */
    int is_broken;         /* a commit has failed: the handle is of no use any more */
    int is_synced;         /* commits are durable */
    int all_sync;          /* and so are those of the other processes */
    uint64_t stored;       /* the number in RUN as of which all is durable, not odd; UINT64_MAX: none */
    int keeps_stored;      /* so it is after the call that has begun, if that succeeds */
    int is_change;         /* of the call that has begun */
    int run;               /* the descriptor of RUN; -1 */
    uint64_t changes;      /* the number in it, when the handle was last refreshed */
    struct file *readers;  /* files that have a reader */
    uint8_t *copy;         /* COPY_SIZE bytes */
};

/* What the namespace says of a file, as its stat. */
void tree_fill_stat(const struct mount *m, const struct deltafs_namespace_stat *s, struct stat *out);

/* Fill the memfd, which is empty, as far as the file is small and is to be read. */
int tree_fill_memfd(struct file *f, int fd, deltafs_namespace_file *from);

/* Open the file of the namespace that an open file is, also if another process has renamed it within its folder: then
 * f->path is changed. *out is NULL if the file is lost: it was removed, moved or replaced; otherwise *now has its
 * attributes. Returns a status. With the locks of the file and of the tree. */
int tree_open_same(struct file *f, deltafs_namespace *ns, int flags, struct stat *now, deltafs_namespace_file **out);

/* With the lock of the tree: read a file by `from` from now on; */
void tree_keep_reader(struct file *f, deltafs_namespace_file *from);
/* or do so only if its bytes will be read from there, and else close that. Returns a status. */
int tree_keep_or_close(struct file *f, deltafs_namespace_file *from);
/* Close the reader that a file may have; and those of all files, or of those that other processes write to, too. */
void tree_close_reader(struct file *f);
void tree_close_readers(struct tree *t, int is_all);
/* For file_each: publish a file. */
int file_publish_locked(struct file *f, int fd, void *unused);
/* For file_each: give `stat`, if it is that of this file, the size that was written. */
int file_note_size(struct file *f, int fd, void *stat);
/* For file_each: have the state that the namespace has, if this is the file with `stat`. */
int file_refresh_same(struct file *f, int fd, void *stat);
/* The memfd of a file that is being opened. */
int file_make_descriptor(struct file *f, int *fd);
/* Call `put` for a span of the memfd; if other processes write to it, too, only for what is there: holes are what one
 * of them has published and freed. Then `fd` is another descriptor of the memfd, with an offset of its own. The first
 * value other than 0 ends it and is returned. */
int file_each_data(const struct file *f, int fd, struct span s, int (*put)(void *arg, int fd, struct span s),
                   void *arg);
/* Whether a file has something to publish. */
int file_has_changes(struct file *f, int fd);

/* The end of a call that opens a file, which has its descriptor if `error` is 0: that of a standard stream is shared.
 * After an error, close the descriptor. Takes a user of the file; returns the error. */
int file_end_open(struct file *f, int fd, int error);

#endif
