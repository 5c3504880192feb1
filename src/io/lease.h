/* The lease of a container: who writes it. LEASE is a file beside the manifest, as long as a job has the container open
 * for writing, with one line about that job; locked where the file system knows locks. Of a job's processes only the
 * one that commits has the lease; the others write only what it has agreed to.
 *
 * A job that died leaves its line behind. The job is known to be dead if the lock is free and the job ran on this host,
 * or was an earlier run of the same batch job. Another host may not see a lock, so there the line must have become old:
 * a job renews it with each commit. A job that was taken for dead learns that at its next commit, which fails.
 *
 * A child that a writer forks does not have the lock, so that it does not keep it when the writer is killed.
 *
 * Where the file system knows no locks, several can find the lease free at once. There a job writes its line, waits a
 * second, and has the lease if the line is still its own: the last that wrote wins. It checks again before and after
 * each commit (lease_confirm). One case is left: a process stops for more than a second between check and write while
 * another takes the container over. The first gets the error that the state of its commit is unknown, and the second
 * that another has written. */
#ifndef DELTAFS_IO_LEASE_H
#define DELTAFS_IO_LEASE_H

#include "base/uuid.h"
#include "io/io.h"

/* An epoch that all of the job's processes have written, and whose line in the manifest is next. */
struct lease_epoch {
    uint64_t number, label, records, bytes_stored;
};

/* What the line says. */
struct lease_holder {
    char host[256], job[80], session[UUID_TEXT_SIZE];
    uint64_t pid, renewed; /* seconds since 1970 */
    struct lease_epoch note;
};

struct lease {
    struct io_file file;
    struct lease_holder own;
    int is_sure;  /* the file is locked; else another may write to it at any time */
    int has_note; /* the former holder left one */
    struct lease_epoch note;
};

/* Take the lease of the container in `folder`. A line of another host counts for `seconds` after its last renewal. With
 * `keeps_note` the former holder's note stays in the line. DELTAFS_ERR_BUSY if somebody else has it. */
int lease_take(struct lease *l, struct io *io, const char *folder, uint64_t seconds, int keeps_note, struct error *e);
/* DELTAFS_ERR_BUSY if another job has taken it in the meantime, or it has been removed. From then on the line has
 * `note` (NULL: none). */
int lease_renew(struct lease *l, const struct lease_epoch *note, struct error *e);
/* Whether this job had the lease all the time since it was renewed: DELTAFS_OK or _BUSY. Reads nothing where the lease
 * is locked. */
int lease_confirm(struct lease *l, struct error *e);
/* Whether a lease was left in the folder that names such an epoch. */
int lease_find_epoch(struct io *io, const char *folder, struct lease_epoch *out);
/* Whether there is a lease. The text says who has it, and whether that can still be writing; a line of another host
 * counts for `seconds`. Changes nothing. */
int lease_describe(struct io *io, const char *folder, uint64_t seconds, char *text, size_t room);
/* Whether there is a lease whose holder can still be writing, or one that cannot be read. */
int lease_may_be_held(struct io *io, const char *folder, uint64_t seconds);
/* Take a lease that nobody else takes, in a file of its own: first `aside`, and by the time that it has the name `path`
 * it is locked and has its line. DELTAFS_ERR_NOT_FOUND if another has removed it before. */
int lease_create(struct lease *l, struct io *io, const char *aside, const char *path, struct error *e);
/* Whether the file `path` is such a lease, whose holder may still have it, or cannot be read; *out says who that is, as
 * far as it is known. */
int lease_find_holder(struct io *io, const char *path, uint64_t seconds, struct lease_holder *out);
/* Give it back; one that was never taken, and is all zero, is fine. A failure leaves a line that becomes old. */
int lease_drop(struct lease *l, struct error *e);

#endif
