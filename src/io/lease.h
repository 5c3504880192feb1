/* The lease of a container: who writes it. A file beside the manifest, there as long as a job has the container open
 * for writing, with one line on that job; locked where the file system knows locks. Of a job's processes only the one
 * that commits has it; the others write no more than that one's verdicts let them.
 *
 * A job that died leaves its line behind. It is known to be dead if the lock is free and it ran on this host, or was an
 * earlier run of the same batch job; on another host a lock may not be seen, so there the line must have become old: a
 * job renews it with each commit. Somebody taken for dead finds out at its next commit, which fails.
 *
 * Where the file system knows no locks, several can find the lease free at once. So whoever takes it there writes its
 * line, waits a second, and has the lease if the line is its own still: of all who wrote, the last. Before each commit
 * it asks again, and after it once more (lease_confirm). What that leaves is a process that stands still for longer
 * than a second between asking and writing while another takes the container over: it is told that its commit is in
 * doubt, and the other that somebody else has written. */
#ifndef DELTAFS_IO_LEASE_H
#define DELTAFS_IO_LEASE_H

#include "io/io.h"

/* An epoch that all of the job's processes have written, and whose line in the manifest is next: what it is to say. */
struct lease_epoch {
    uint64_t number, label, records, bytes_stored;
};

struct lease {
    struct io_file file;
    char line[640];
    size_t size;
    int is_sure;  /* the file is locked; else another may write to it at any time */
    int has_note; /* the former holder left one */
    struct lease_epoch note;
};

/* Take the lease of the container in `folder`. A line of another host counts for `seconds` after its last renewal. With
 * `keeps_note` the former holder's note stays in the line. DELTAFS_ERR_BUSY if somebody else has it. */
int lease_take(struct lease *l, struct io *io, const char *folder, uint64_t seconds, int keeps_note, struct error *e);
/* DELTAFS_ERR_BUSY if another job has taken it in the meantime, or it has been removed. `note` (NULL: none) stands in
 * the line from then on. */
int lease_renew(struct lease *l, const struct lease_epoch *note, struct error *e);
/* Whether what was written since it was renewed was written while this job had it: DELTAFS_OK or _BUSY. Asks nothing
 * where the lease is locked. */
int lease_confirm(struct lease *l, struct error *e);
/* Whether a lease was left in the folder that names such an epoch. */
int lease_find_epoch(struct io *io, const char *folder, struct lease_epoch *out);
/* Whether there is a lease, and what its line says of who has it: host, pid, job, when it was renewed, and whether that
 * can be writing still, as far as it is seen without touching it; a line of another host counts for `seconds`. */
int lease_describe(struct io *io, const char *folder, uint64_t seconds, char *text, size_t room);
/* Give it back; one that was never taken, and is all zero, is fine. A failure leaves a line that becomes old. */
int lease_drop(struct lease *l, struct error *e);

#endif
