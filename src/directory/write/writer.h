/* The writer of some partitions of a container, in one process: libdeltafs_mpi drives one on every rank, the serial
 * directory the only one.
 *
 * Order of calls: one process calls create_container or take; then each process calls open. Within an epoch, put for
 * its records; at its end writer_end, which has everything written and synced, and wait_end for the result. When all
 * processes have ended well, the one with the lease calls commit, and by its verdict all call keep or discard. Between
 * writer_end and wait_end records of the next epoch can be put already: they share the fate of the epoch before. At the
 * end finish, and commit_close where the lease is; then destroy.
 *
 * After an error within an epoch the writer drops what comes, and reports the first error at wait_end, so that all
 * processes can agree on the verdict.
 *
 * The functions are called by one thread at a time. Threads of its own may work for a writer: one sorts and encodes
 * full memtables, one writes the result, and others help the first. */
#ifndef DELTAFS_DIRECTORY_WRITER_H
#define DELTAFS_DIRECTORY_WRITER_H

#include "base/collective.h"
#include "base/private.h"
#include "directory/format/directory_format.h"
#include "directory/write/hold.h"
#include "directory/write/writer_config.h"
#include "io/lease.h"

struct writer;

/* What a manifest gives away. */
struct writer_facts {
    char *schema;
    uint64_t *pivots;
};

/* The configuration by the options, but for uuid, partitions and memory (which may be OPTION_AUTO). Texts are the
 * options' own. */
DELTAFS_PRIVATE int deltafs_private_writer_configure(struct writer_config *c, const char *path,
                                                     const deltafs_options *o, struct error *e);
/* The same for a new container of the keys, partitions and values of another one, whose records stay with no writer. */
DELTAFS_PRIVATE int deltafs_private_writer_configure_like(struct writer_config *c, const struct manifest *m,
                                                          const char *path, const deltafs_options *o, struct error *e);
/* The same for an existing container, by its manifest, which the options must not contradict. c refers to *facts,
 * which are to be freed also after an error. */
DELTAFS_PRIVATE int deltafs_private_writer_inspect(struct writer_config *c, const char *path, const deltafs_options *o,
                                                   struct writer_facts *facts, struct error *e);
DELTAFS_PRIVATE void deltafs_private_writer_facts_fini(struct writer_facts *facts);
/* So many processes append to it. */
DELTAFS_PRIVATE int deltafs_private_writer_share(struct writer_config *c, uint32_t writers, struct error *e);
/* Bytes in which the caller's thread puts a key of bytes together with its value, or rounds values; 0 where it does
 * neither. They are part of what is reserved. */
DELTAFS_PRIVATE size_t deltafs_private_writer_blob(const struct writer_config *c);

/* Create the container: folder, buckets and manifest; fills in c->uuid. On failure nothing is left. */
DELTAFS_PRIVATE int deltafs_private_writer_create_container(struct writer_config *c, struct lease *lease,
                                                            struct error *e);
/* Take over an existing one instead, if it is as it was when it was inspected. Nothing in it changes yet. */
DELTAFS_PRIVATE int deltafs_private_writer_take(const struct writer_config *c, struct lease *lease, struct error *e);
/* Undo either, before anything was committed: remove a container that was created, as far as that goes, and release
 * the lease, which no writer may have any more (return_lease). */
DELTAFS_PRIVATE void deltafs_private_writer_remove_container(const struct writer_config *c, struct lease *lease);

/* Open `count` partitions from `first` on. On success takes over the lease, which is NULL in all processes but one. */
DELTAFS_PRIVATE int deltafs_private_writer_open(const struct writer_config *c, uint32_t first, uint32_t count,
                                                struct lease *lease, struct writer **out, struct error *e);
/* Give the lease back, to remove the container after the writer is destroyed. A NULL writer has none. */
DELTAFS_PRIVATE void deltafs_private_writer_return_lease(struct writer *w, struct lease *lease);

/* A container that was taken over is open in all processes: the one with the lease notes that in the manifest; after
 * that all truncate what has no commit. */
DELTAFS_PRIVATE int deltafs_private_writer_note_open(struct writer *w, const struct writer_config *c, struct error *e);
DELTAFS_PRIVATE int deltafs_private_writer_truncate(struct writer *w, struct error *e);
/* Whether that truncated an epoch that the former job had written completely, so that repair would have committed it.
 * No promise is broken: no caller knows that it is committed. Known only where the lease is. */
DELTAFS_PRIVATE int deltafs_private_writer_has_truncated(const struct writer *w, uint64_t *label);

/* Whether `label` can end the current epoch: DELTAFS_OK or _LABEL. An epoch that is ending counts as committed. */
DELTAFS_PRIVATE int deltafs_private_writer_check_label(const struct writer *w, uint64_t label, struct error *e);
/* If not: what is to happen to its records. */
DELTAFS_PRIVATE enum option_old_label deltafs_private_writer_old_label(const struct writer *w);
/* Whether that label is committed; only where the lease is. */
DELTAFS_PRIVATE int deltafs_private_writer_find_label(struct writer *w, uint64_t label, int *is_committed,
                                                      struct error *e);
/* Say in the message of why a label was refused what has become of the epoch's records. */
DELTAFS_PRIVATE void deltafs_private_writer_explain_label(const struct writer *w, uint64_t records, struct error *e);
/* The last such label; returns whether there is one. */
DELTAFS_PRIVATE int deltafs_private_writer_last_label(const struct writer *w, uint64_t *label);
/* Records of the last epoch that this process has committed, of all processes together. */
DELTAFS_PRIVATE uint64_t deltafs_private_writer_last_records(const struct writer *w);

/* Add `n` records in arrays, all of the writer's own partitions. Returns how many were put: all if `waits`, else those
 * that there is room for now. */
DELTAFS_PRIVATE size_t deltafs_private_writer_put(struct writer *w, int waits, size_t n, const uint8_t *keys,
                                                  size_t key_stride, const uint8_t *values, size_t value_stride,
                                                  size_t size);
/* Where epochs are compacted: the epoch of the records that are put from now on. They are put in the order of key
 * ranges, and of epochs within a range; a range ends with a run, and has no more records and bytes than there is room
 * for in one, so that all records of a key are in one run. put_to: which partition they belong to from here on, when a
 * run has ended; needed only if the partitioner is a caller's, and not given. */
DELTAFS_PRIVATE void deltafs_private_writer_stamp(struct writer *w, uint32_t epoch);
DELTAFS_PRIVATE void deltafs_private_writer_put_to(struct writer *w, uint32_t partition);
DELTAFS_PRIVATE void deltafs_private_writer_cut_run(struct writer *w);
DELTAFS_PRIVATE void deltafs_private_writer_room(const struct writer *w, uint64_t *records, uint64_t *bytes);
/* With layout=local: store the first of `n` values in this process's value log. Returns how many, or 0 after an error;
 * *places gets POSITION_SIZE bytes for each, to be put as its value, valid until the next call. */
DELTAFS_PRIVATE size_t deltafs_private_writer_put_values(struct writer *w, size_t n, const uint8_t *keys,
                                                         size_t key_stride, const uint8_t *values, size_t value_stride,
                                                         size_t size, const uint8_t **places);
DELTAFS_PRIVATE int deltafs_private_writer_is_local(const struct writer *w);
/* Whether put_values would not wait for storage, except to create the log or for a block longer than its buffer. */
DELTAFS_PRIVATE int deltafs_private_writer_can_put_values(struct writer *w, size_t size);
/* Give the epoch an error from outside, as if a put had failed. */
DELTAFS_PRIVATE void deltafs_private_writer_fail(struct writer *w, const struct error *e);

/* With partitioner=range and several partitions, an epoch's first records are held back, in the process that appends
 * them. hold: returns whether they are held; if not, release what is, and put these. is_holding: whether all of the
 * epoch are. If all processes hold all of theirs when the epoch ends, the epoch gets pivots of its own: sample_held,
 * then the calls below, and place instead of writer_end; then release. */
DELTAFS_PRIVATE int deltafs_private_writer_hold(struct writer *w, size_t n, const uint8_t *keys, size_t key_stride,
                                                const uint8_t *values, size_t value_stride, size_t size);
DELTAFS_PRIVATE size_t deltafs_private_writer_hold_room(const struct writer *w, size_t size);
DELTAFS_PRIVATE int deltafs_private_writer_is_holding(const struct writer *w);
DELTAFS_PRIVATE void deltafs_private_writer_sample_held(struct writer *w);
DELTAFS_PRIVATE void deltafs_private_writer_release(struct writer *w, hold_put_fn *put, void *arg);
/* Whether the epoch is placed by pivots so far. */
DELTAFS_PRIVATE int deltafs_private_writer_is_placed(const struct writer *w);
/* The pivots that were chosen hold from here on, in this epoch, of which nothing has been put. */
DELTAFS_PRIVATE void deltafs_private_writer_place(struct writer *w);

/* With partitioner=range and several partitions, when all records of the epoch are put and no other epoch is ending:
 * each process appends its sample of the epoch's keys to `out`; one chooses the pivots of the next epochs by the
 * samples of all; and what it has chosen, of *n bytes, takes the place of the others'. Then comes writer_end. */
DELTAFS_PRIVATE int deltafs_private_writer_has_pivots(const struct writer *w);
DELTAFS_PRIVATE uint64_t deltafs_private_writer_sampled(const struct writer *w);
DELTAFS_PRIVATE int deltafs_private_writer_sample(struct writer *w, uint64_t sampled, struct bytes *out,
                                                  struct error *e);
DELTAFS_PRIVATE void deltafs_private_writer_choose(struct writer *w, const struct bytes *samples);
DELTAFS_PRIVATE void *deltafs_private_writer_chosen(struct writer *w, size_t *n);
/* How records are placed that are put from now on; it may change when an epoch ends or is discarded. */
DELTAFS_PRIVATE const struct partitioner *deltafs_private_writer_partitioner(const struct writer *w);

/* Whether writer_end would not wait; begins what it would wait for. No records are put in between. */
DELTAFS_PRIVATE int deltafs_private_writer_can_end(struct writer *w);
/* End the epoch; `label` is what it is to be committed with. */
DELTAFS_PRIVATE void deltafs_private_writer_end(struct writer *w, uint64_t label);
/* The epoch that is to be committed next covers so many before it: see manifest_epoch. */
DELTAFS_PRIVATE void deltafs_private_writer_cover(struct writer *w, uint32_t epochs);
/* Whether an epoch has ended that is neither kept nor discarded yet, and its label. */
DELTAFS_PRIVATE int deltafs_private_writer_is_ending(const struct writer *w, uint64_t *label);
/* Whether wait_end would not wait. */
DELTAFS_PRIVATE int deltafs_private_writer_has_ended(struct writer *w);
/* Wait until the epoch is in storage, or has failed. */
DELTAFS_PRIVATE int deltafs_private_writer_wait_end(struct writer *w, struct writer_totals *out, struct error *e);
/* On failure *is_commit_unknown says whether the line may be in the manifest nevertheless. */
DELTAFS_PRIVATE int deltafs_private_writer_commit(struct writer *w, const struct writer_totals *totals,
                                                  int *is_commit_unknown, struct error *e);
DELTAFS_PRIVATE void deltafs_private_writer_keep(struct writer *w);
/* Store an attribute, which has been checked, in the manifest; only where the lease is. */
DELTAFS_PRIVATE int deltafs_private_writer_set_attribute(struct writer *w, const struct deltafs_attribute *a,
                                                         struct error *e);
/* Begin the epoch again, without what was put since; `is_commit_unknown`: its data stays, and no epoch can follow. */
DELTAFS_PRIVATE void deltafs_private_writer_discard(struct writer *w, int is_commit_unknown, const struct error *why);
/* Whether the container is still this job's; only where the lease is. Ask before discard (if not: commit unknown) and
 * before finish, which truncate. */
DELTAFS_PRIVATE int deltafs_private_writer_check_lease(struct writer *w, struct error *e);
/* Whether it was so since then. */
DELTAFS_PRIVATE int deltafs_private_writer_confirm_lease(struct writer *w, struct error *e);
DELTAFS_PRIVATE int deltafs_private_writer_finish(struct writer *w, uint64_t *tail_length, struct error *e);
DELTAFS_PRIVATE int deltafs_private_writer_commit_close(struct writer *w, uint64_t tail_length, struct error *e);
/* Close files and free. NULL is fine. */
DELTAFS_PRIVATE int deltafs_private_writer_destroy(struct writer *w, struct error *e);

DELTAFS_PRIVATE void deltafs_private_writer_memory(const struct writer *w, struct deltafs_memory_stat *out);
DELTAFS_PRIVATE void deltafs_private_writer_io(const struct writer *w, struct deltafs_io_stat *out);

#endif
