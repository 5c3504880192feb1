/* The writer of some partitions of a container, in one process: what libdeltafs_mpi drives on every rank, and the
 * serial directory in the one process it has.
 *
 * Order of calls: one process calls writer_make; then each that owns partitions writer_open. In an epoch,
 * writer_put for its records; at its end writer_end, which has everything written and synced, and writer_wait_end
 * for how that went; once all processes are known to have it, the one that made the container calls writer_commit; and
 * by its verdict all call writer_keep or writer_give_up. Between writer_end and writer_wait_end records of the next
 * epoch can be put already: they share the fate of the one before. At the end writer_finish, and the maker
 * writer_commit_close; then writer_destroy.
 *
 * An error while an epoch is written does not stop the calls: the writer drops what comes and reports the first error
 * at writer_wait_end, so that all processes can agree on the verdict.
 *
 * The functions are called by one thread at a time. Two threads of its own may work for a writer: one sorts and encodes
 * full memtables, the other writes what that encoded. */
#ifndef DELTAFS_DIRECTORY_WRITER_H
#define DELTAFS_DIRECTORY_WRITER_H

#include "base/private.h"
#include "directory/format/directory_format.h"
#include "directory/write/writer_config.h"
#include "io/lease.h"

struct writer;

/* The configuration that options ask for, but for uuid, partitions and memory as they stand (maybe OPTION_AUTO); the
 * strings are the options'. */
DELTAFS_PRIVATE int deltafs_private_writer_configure(struct writer_config *c, const char *path,
                                                     const deltafs_options *o, struct error *e);

/* The same for a container that is there, as its manifest has it: the options must ask for nothing else. c->schema is
 * *schema then, which the caller frees. Changes nothing on disk. */
DELTAFS_PRIVATE int deltafs_private_writer_inspect(struct writer_config *c, const char *path, const deltafs_options *o,
                                                   char **schema, struct error *e);

/* So many processes append to it. */
DELTAFS_PRIVATE int deltafs_private_writer_share(struct writer_config *c, uint32_t writers, struct error *e);

/* Bytes in which the caller's thread puts a key of bytes together with its value; 0 where keys are numbers. They are
 * part of what is reserved. */
DELTAFS_PRIVATE size_t deltafs_private_writer_blob(const struct writer_config *c);

/* Make the container: folder, buckets and manifest; fills in config->uuid. On failure nothing stays behind. The writer
 * that follows in this process gets the lease, and commits. */
DELTAFS_PRIVATE int deltafs_private_writer_create_container(struct writer_config *c, struct lease *lease,
                                                            struct error *e);
/* Take it over, instead of making it, as it was when it was inspected. Nothing of it changes yet. */
DELTAFS_PRIVATE int deltafs_private_writer_take(const struct writer_config *c, struct lease *lease, struct error *e);
/* Take it away again, logs and all, as far as it goes; only before anything was committed. One that was taken over is
 * left as it is. Gives the lease back, which no writer may have any more: deltafs_private_writer_return_lease. */
DELTAFS_PRIVATE void deltafs_private_writer_remove_container(const struct writer_config *c, struct lease *lease);

/* Open `count` partitions from `first` on; creates their logs, or goes on with them. On success takes over the lease,
 * which only the process that made the container has; NULL for others. */
DELTAFS_PRIVATE int deltafs_private_writer_open(const struct writer_config *c, uint32_t first, uint32_t count,
                                                struct lease *lease, struct writer **out, struct error *e);
/* Have it back, to unmake the container once the writer is destroyed. A NULL writer has none to return. */
DELTAFS_PRIVATE void deltafs_private_writer_return_lease(struct writer *w, struct lease *lease);

/* A container that was taken over, and is open in all processes: the one with the lease notes in the manifest that it
 * is, and once it has, all cut off what has no commit. */
DELTAFS_PRIVATE int deltafs_private_writer_note_open(struct writer *w, const struct writer_config *c, struct error *e);
DELTAFS_PRIVATE int deltafs_private_writer_truncate(struct writer *w, struct error *e);
/* Whether there was an epoch among that which the former job had noted as written by all, and repair would have
 * committed. To cut it off loses nothing that was promised: nobody has been told that it is committed, and who goes on
 * asks for the last label first. Only where the lease is. */
DELTAFS_PRIVATE int deltafs_private_writer_has_truncated(const struct writer *w, uint64_t *label);

/* Whether `label` can end the current epoch: DELTAFS_OK or _LABEL. An epoch that is ending counts as committed. */
DELTAFS_PRIVATE int deltafs_private_writer_check_label(const struct writer *w, uint64_t label, struct error *e);
/* The last such label; returns whether there is one. */
DELTAFS_PRIVATE int deltafs_private_writer_last_label(const struct writer *w, uint64_t *label);
/* Records of the last epoch that this process has committed, all processes' together; 0 if it commits none. */
DELTAFS_PRIVATE uint64_t deltafs_private_writer_last_records(const struct writer *w);
/* Add `n` records in arrays, all of partitions that are the writer's own. Returns how many of them, the first, were
 * put: all if `waits`, else those that there is room for now. */
DELTAFS_PRIVATE size_t deltafs_private_writer_put(struct writer *w, int waits, size_t n, const uint8_t *keys,
                                                  size_t key_stride, const uint8_t *values, size_t value_stride,
                                                  size_t size);
/* With layout=local: store some of `n` records with this process, the first, and return how many, or 0 if that would be
 * for nothing; *places gets what is to be put in place of their values, POSITION_SIZE bytes each, until the next call.
 */
DELTAFS_PRIVATE int deltafs_private_writer_is_local(const struct writer *w);
/* Whether that would not wait for storage, but for a log that is made or a block longer than its buffer. */
DELTAFS_PRIVATE int deltafs_private_writer_can_put_values(struct writer *w, size_t size);
DELTAFS_PRIVATE size_t deltafs_private_writer_put_values(struct writer *w, size_t n, const uint8_t *keys,
                                                         size_t key_stride, const uint8_t *values, size_t value_stride,
                                                         size_t size, const uint8_t **places);
/* Give the epoch an error from outside, as if a put had failed. */
DELTAFS_PRIVATE void deltafs_private_writer_fail(struct writer *w, const struct error *e);
/* Whether deltafs_private_writer_end would not wait either; what it would wait for is begun. No records are put in
 * between. */
DELTAFS_PRIVATE int deltafs_private_writer_can_end(struct writer *w);
/* End the epoch; `label` is what it is to be committed with. */
DELTAFS_PRIVATE void deltafs_private_writer_end(struct writer *w, uint64_t label);
/* Whether an epoch has ended that is neither kept nor given up yet, and its label. */
DELTAFS_PRIVATE int deltafs_private_writer_is_ending(const struct writer *w, uint64_t *label);
/* Whether deltafs_private_writer_wait_end would not wait. */
DELTAFS_PRIVATE int deltafs_private_writer_has_ended(struct writer *w);
/* Wait until that epoch is with storage, or has failed. */
DELTAFS_PRIVATE int deltafs_private_writer_wait_end(struct writer *w, struct writer_totals *out, struct error *e);
/* On failure *is_commit_unknown says whether the line may be in the manifest nevertheless. */
DELTAFS_PRIVATE int deltafs_private_writer_commit(struct writer *w, const struct writer_totals *totals,
                                                  int *is_commit_unknown, struct error *e);
DELTAFS_PRIVATE void deltafs_private_writer_keep(struct writer *w);
/* Begin the epoch anew, without what was put since; `is_commit_unknown`: its data stays, and no epoch can follow. */
DELTAFS_PRIVATE void deltafs_private_writer_discard(struct writer *w, int is_commit_unknown, const struct error *why);
/* Whether the container is still this job's; only where the lease is. To be asked before anything is cut off that was
 * written: deltafs_private_writer_discard (else: in doubt), deltafs_private_writer_finish. */
DELTAFS_PRIVATE int deltafs_private_writer_check_lease(struct writer *w, struct error *e);
DELTAFS_PRIVATE int deltafs_private_writer_finish(struct writer *w, uint64_t *tail_length, struct error *e);
DELTAFS_PRIVATE int deltafs_private_writer_commit_close(struct writer *w, uint64_t tail_length, struct error *e);
/* Close files and free. NULL is fine. */
DELTAFS_PRIVATE int deltafs_private_writer_destroy(struct writer *w, struct error *e);

DELTAFS_PRIVATE void deltafs_private_writer_memory(const struct writer *w, struct deltafs_memory_stat *out);
DELTAFS_PRIVATE void deltafs_private_writer_io(const struct writer *w, struct deltafs_io_stat *out);

#endif
