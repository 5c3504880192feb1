/* The writer of some partitions of a container, in one process: what libdeltafs_mpi drives on every rank, and the
 * serial directory in the one process it has.
 *
 * Order of calls: one process calls writer_make; then each that owns partitions writer_open. In an epoch, writer_put
 * for each record; at its end writer_seal, which writes and syncs everything; once all processes are known to have
 * sealed, the one that made the container calls writer_commit; and by its verdict all call writer_keep or
 * writer_give_up. At the end writer_finish, and the maker writer_commit_close; then writer_destroy.
 *
 * An error while an epoch is written does not stop the calls: the writer drops what comes and reports the first error
 * at writer_seal, so that all processes can agree on the verdict. */
#ifndef DELTAFS_CORE_WRITER_H
#define DELTAFS_CORE_WRITER_H

#include "base/options.h"
#include "base/private.h"
#include "store/manifest.h"

struct writer;

/* What all processes must agree on. */
struct writer_config {
    const char *path;
    uint32_t partitions;
    uint8_t uuid[16];
    int64_t value_size; /* -1: any */
    const char *schema; /* "" for none */
    enum option_codec codec;
    enum option_sync sync;
    uint64_t block;    /* bytes */
    uint64_t memory;   /* bytes that this process may use */
    uint64_t reserved; /* of them, for others than the writer */
};

/* Numbers of one epoch, of the partitions of one process or, added up, of all. */
struct writer_totals {
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored;
};

/* The configuration that options ask for, but for uuid, partitions and memory as they stand (maybe OPTION_AUTO); the
 * strings are the options'. */
DELTAFS_PRIVATE int deltafs_writer_configure(struct writer_config *c, const char *path, const deltafs_options *o,
                                             struct error *e);

/* Make the container: folder, buckets and manifest; fills in config->uuid. On failure nothing stays behind. The writer
 * that follows in this process with `is_maker` set commits. */
DELTAFS_PRIVATE int deltafs_writer_make(struct writer_config *c, struct error *e);
/* Take it away again, logs and all, as far as it goes; only before anything was committed. */
DELTAFS_PRIVATE void deltafs_writer_unmake(const struct writer_config *c);

/* Open `count` partitions from `first` on; creates their logs. */
DELTAFS_PRIVATE int deltafs_writer_open(const struct writer_config *c, uint32_t first, uint32_t count, int is_maker,
                                        struct writer **out, struct error *e);

/* Whether `label` can end the current epoch: DELTAFS_OK or _LABEL. */
DELTAFS_PRIVATE int deltafs_writer_check_label(const struct writer *w, uint64_t label, struct error *e);
/* Add a record, whose partition is one of the writer's own. */
DELTAFS_PRIVATE void deltafs_writer_put(struct writer *w, uint64_t key, const void *value, size_t size);
/* Give the epoch an error from outside, as if a put had failed. */
DELTAFS_PRIVATE void deltafs_writer_fail(struct writer *w, const struct error *e);
DELTAFS_PRIVATE int deltafs_writer_seal(struct writer *w, struct writer_totals *out, struct error *e);
/* On failure *in_doubt says whether the line may be in the manifest nevertheless. */
DELTAFS_PRIVATE int deltafs_writer_commit(struct writer *w, uint64_t label, const struct writer_totals *totals,
                                          int *in_doubt, struct error *e);
DELTAFS_PRIVATE void deltafs_writer_keep(struct writer *w, uint64_t label);
/* Begin the epoch anew; `in_doubt`: its data stays, and no epoch can follow. */
DELTAFS_PRIVATE void deltafs_writer_give_up(struct writer *w, int in_doubt, const struct error *why);
DELTAFS_PRIVATE int deltafs_writer_finish(struct writer *w, uint64_t *tail_length, struct error *e);
DELTAFS_PRIVATE int deltafs_writer_commit_close(struct writer *w, uint64_t tail_length, struct error *e);
/* Close files and free. NULL is fine. */
DELTAFS_PRIVATE int deltafs_writer_destroy(struct writer *w, struct error *e);

DELTAFS_PRIVATE void deltafs_writer_memory(const struct writer *w, struct deltafs_memory_stat *out);
DELTAFS_PRIVATE const struct deltafs_io_stat *deltafs_writer_io(const struct writer *w);

#endif
