/* The handle behind the public API: a reader, or a writer behind one of two transports: in this process alone (dir.c),
 * or with all ranks of an MPI job (libdeltafs_mpi). */
#ifndef DELTAFS_DIRECTORY_DIR_H
#define DELTAFS_DIRECTORY_DIR_H

#include <deltafs/deltafs_query.h>
#include "base/options.h"
#include "base/private.h"

struct writer;
struct writer_config;

/* How a writing directory does its work. The arguments have been checked. */
struct dir_transport {
    int (*append)(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                  size_t value_stride, size_t size, struct error *e);
    void (*fail)(void *ctx, const struct error *e); /* an append was refused: the epoch must not be committed */
    int (*epoch_end)(void *ctx, uint64_t label, int is_async, struct error *e); /* `is_async`: as of the option */
    /* `refused`: NULL, or why the epoch that is ending is to be discarded. */
    int (*epoch_wait)(void *ctx, const struct error *refused, struct error *e);
    int (*place)(void *ctx, struct error *e); /* of dir_place */
    /* `refused`: DELTAFS_OK, or why this process cannot use its attribute, with *e; of a job's processes only rank 0's
     * counts. */
    int (*set_attribute)(void *ctx, const struct deltafs_attribute *a, int refused, struct error *e);
    int (*close)(void *ctx, struct error *e); /* frees ctx, whatever it returns */
};

/* What gets all that a writing handle gets, and learns how each epoch ended: indexes by value. */
struct dir_follower {
    void (*append)(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                   size_t value_stride);
    /* The epoch ends, if `is_ending`: its records are being written. Otherwise it has failed. */
    void (*epoch_end)(void *ctx, uint64_t label, int is_ending);
    void (*epoch_wait)(void *ctx, uint64_t label, int is_committed); /* that is known now */
    int (*close)(void *ctx, struct error *e);                        /* frees ctx */
};
void dir_follow(deltafs_dir *d, const struct dir_follower *follower, void *ctx);

/* A handle that writes by `transport`, into `writer` here; takes over `ctx` on success. */
DELTAFS_PRIVATE int deltafs_private_dir_attach(const struct dir_transport *transport, void *ctx, struct writer *writer,
                                               const struct writer_config *c, deltafs_dir **out, struct error *e);

/* Free a handle that nobody has seen yet; what is behind it stays. NULL is fine. */
DELTAFS_PRIVATE void deltafs_private_dir_free(deltafs_dir *d);

/* Say in a message that it is about an epoch that ended before. */
DELTAFS_PRIVATE void deltafs_private_dir_explain_async(uint64_t label, struct error *e);

/* Records of the epoch that the writing handle committed last; of rank 0's handle only. */
uint64_t dir_last_records(const deltafs_dir *d);

/* Before and after something is written beside a directory, which the lease of this writing handle is for, too:
 * DELTAFS_ERR_BUSY if another job has it by now. */
int dir_renew_lease(deltafs_dir *d, struct error *e);
int dir_confirm_lease(deltafs_dir *d, struct error *e);

/* The next epoch that the writing handle ends has all that counts of so many epochs before it. If it is not committed,
 * this is forgotten. */
void dir_cover_epochs(deltafs_dir *d, uint32_t epochs);
/* Lookups with the reading handle, and iter_open_by_key, leave out epochs that others cover, if these are asked for,
 * too. */
void dir_skip_covered(deltafs_dir *d);

/* DELTAFS_OK if the handle writes; DELTAFS_ERR_MODE, with a message that names `call`, if not. */
int dir_must_write(deltafs_dir *d, const char *call);

/* The schema of a writing handle ("": none), and where its errors go. */
const char *dir_schema(const deltafs_dir *d);
struct error *dir_error(deltafs_dir *d);
/* Store an attribute by a writing handle; `refused`: as for the transport. */
int dir_set_attribute(deltafs_dir *d, const struct deltafs_attribute *a, int refused);

/* How many more records of a value size a writing handle holds back until it is known how they are best placed. */
size_t dir_hold_room(const deltafs_dir *d, size_t size);
/* Collective: if no earlier epoch has decided how records are placed, and all processes still hold all of theirs,
 * decide it by these records. Then no more are held. */
int dir_place(deltafs_dir *d, struct error *e);

/* Collective: end an epoch, but leave its commit to the next call; and commit it, or discard it for a reason. */
int dir_epoch_end(deltafs_dir *d, uint64_t label, struct error *e);
int dir_epoch_wait(deltafs_dir *d, const struct error *refused, struct error *e);

/* What a handle's keys are. */
enum option_keys dir_keys(const deltafs_dir *d);

/* The reader behind a handle, and where its errors go; DELTAFS_ERR_MODE, for `call`, if it writes. */
struct reader;
int dir_reader(deltafs_dir *d, const char *call, const char *missing, struct reader **reader, struct error **e);

/* Whether the directory has the name that a removal gives it first. */
int dir_is_being_removed(const char *path);
/* For these the option lease of `o` counts; NULL: that of the environment. */
/* Remove the directory at `path`, whatever there is of it: one whose creation or removal was interrupted, too. For
 * directories that the library alone makes: indexes by value, and those of a namespace. */
int dir_remove_own(const char *path, const deltafs_options *o, struct error *e);
/* DELTAFS_ERR_BUSY if a job may be writing it, */
int dir_check_lease(const char *path, const deltafs_options *o, struct error *e);
/* or an index by value of it. */
int dir_check_value_indexes(const char *path, const deltafs_options *o, struct error *e);
/* Remove these. */
int dir_remove_value_indexes(const char *path, const deltafs_options *o, struct error *e);

/* The end of a public function: a failing call leaves its message with the thread, too. Returns `status`. */
int dir_end(const deltafs_dir *d, int status);

#endif
