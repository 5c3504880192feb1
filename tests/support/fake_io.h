/* The one stand-in for file operations in tests: each operation goes through a function of the test, which can count
 * it, delay it, let it fail, do a part of it or something else, and calls fake_do for the operation itself. Below can
 * be the operating system's operations, or files in memory (mem_io.h).
 *
 * unit_io.h has ready rules for what most tests need. */
#ifndef DELTAFS_FAKE_IO_H
#define DELTAFS_FAKE_IO_H

#include <pthread.h>
#include "io/io.h"

#define FAKE_FILES    1024 /* descriptors are below that */
#define FAKE_PATH_MAX 600

enum fake_op {
    FAKE_OPEN,
    FAKE_READ,
    FAKE_WRITE,
    FAKE_SYNC,
    FAKE_ATTRIBUTES,
    FAKE_ATTRIBUTES_IN,
    FAKE_REFRESH,
    FAKE_TRUNCATE,
    FAKE_ALLOCATE,
    FAKE_ADVISE,
    FAKE_CLOSE,
    FAKE_MKDIR,
    FAKE_RENAME,
    FAKE_EXCHANGE,
    FAKE_UNLINK,
    FAKE_RMDIR,
    FAKE_SYNC_FOLDER,
    FAKE_LOCK,
    FAKE_LINK,
    FAKE_SYMLINK,
    FAKE_READLINK,
    FAKE_LIST,
    FAKE_OPS
};

struct fake_io;

/* An operation with its arguments, which may be changed before fake_do. */
struct fake_call {
    struct fake_io *io;
    enum fake_op op;
    const char *path; /* of an open file that by which it was opened; of two names the new one */
    const char *from; /* the other name; of FAKE_ATTRIBUTES_IN that within the folder */
    int fd;
    int flags; /* of the opening; of FAKE_LOCK an enum io_lock */
    mode_t mode;
    void *to;         /* where bytes go: of FAKE_READ and FAKE_READLINK */
    const void *data; /* of FAKE_WRITE */
    size_t n;
    uint64_t offset; /* or size, of FAKE_TRUNCATE */
    uint64_t length; /* of FAKE_LOCK, FAKE_ALLOCATE and FAKE_ADVISE */
    struct io_attributes *attributes;
    int (*each)(void *arg, const char *name); /* of FAKE_LIST */
    void *arg;
};

/* Returns what the operation returns. Any thread may come. */
typedef ssize_t (*fake_fn)(struct fake_call *c);

struct fake_io {
    struct io_ops ops;
    const struct io_ops *real;
    void *ctx; /* of the real ones */
    fake_fn fn;
    pthread_mutex_t lock;
    int open_files, misuses; /* closes of what is closed already */
    struct fake_file {
        char path[FAKE_PATH_MAX];
        int is_open, is_closed, flags;
    } file[FAKE_FILES];
};

/* Operations of `f` go through `fn`, and on to those that containers are opened with now. There is no FAKE_REFRESH,
 * FAKE_ALLOCATE or FAKE_ADVISE, as of a file system without these, until fake_io_has_all. Use {.ops = &f->ops, .ctx =
 * f} as an io, or fake_io_begin. */
void fake_io_init(struct fake_io *f, fake_fn fn);
void fake_io_has_all(struct fake_io *f);

/* The same, and for containers that are opened from now on until fake_io_end. That returns how many files are still
 * open, or were closed twice. */
void fake_io_begin(struct fake_io *f, fake_fn fn);
int fake_io_end(struct fake_io *f);
/* As fake_io_begin, but the process is killed before the operation that follows `operations` others. Nothing is synced.
 */
void fake_io_begin_killed(struct fake_io *f, uint64_t operations);

/* The operation itself. */
ssize_t fake_do(struct fake_call *c);

#endif
