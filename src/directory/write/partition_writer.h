/* The writer of one partition: its two logs, and the runs of the segment under way. Used by the writer alone. */
#ifndef DELTAFS_DIRECTORY_PARTITION_WRITER_H
#define DELTAFS_DIRECTORY_PARTITION_WRITER_H

#include "directory/write/encoder.h"
#include "directory/write/memtable.h"
#include "directory/write/sort.h"
#include "directory/write/writer_config.h"
#include "directory/format/index.h"

/* What the partitions of a process share. */
struct part_shared {
    struct memory *memory;
    struct flusher *flusher; /* NULL: none */
    struct encoder *encoder; /* NULL: none */
    const struct writer_config *config;
    struct keys_store keys; /* of all runs of segments under way */
    struct block_writer block;
    struct index_scratch scratch;
    size_t data_buffer, index_buffer; /* bytes of each log's buffer */
    size_t tail_fences_max;
};

struct partition_writer {
    uint32_t partition;
    struct part_shared *shared;
    struct log data;
    struct index_writer index;
    struct run *runs; /* of the segment */
    uint32_t run_count;
    size_t run_capacity;
    uint64_t held;        /* records in them */
    uint64_t segment_raw; /* bytes in them as handed over */
    uint32_t run_number, segment;
    struct part_start {
        uint32_t epoch;
        uint64_t data;
        struct index_end index;
    } start, kept; /* where the epoch begins, and where the first one does that is not committed yet */
    struct writer_totals totals;
};

/* By how many bits the hashes of `records` keys of bytes are shortened. */
unsigned part_key_shift(uint64_t records);

/* Find where the logs of a container that is opened again end with its last epoch; before they are opened. */
int partition_writer_find(struct partition_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                          struct memory *memory, struct error *e);
int partition_writer_open(struct partition_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                          struct part_shared *shared, struct error *e);
/* Keep no descriptors of the logs: each call opens them and closes them again. */
int partition_writer_release(struct partition_writer *p, struct error *e);
/* Cut off what the logs have behind the last committed epoch. */
int partition_writer_cut(struct partition_writer *p, int sync, struct error *e);
int partition_writer_close(struct partition_writer *p, struct error *e);
/* Write `n` records of the memtable, sorted, which are this partition's, as a run. */
int partition_writer_run(struct partition_writer *p, const struct memtable *table, const struct sorted *records,
                         uint32_t n, struct error *e);
/* What one more run makes the partition's own lists grow by, besides the list of its blocks. */
uint64_t partition_writer_growth(const struct partition_writer *p);
/* Merge the runs so far into a segment. Their keys stay in the store. */
int partition_writer_segment(struct partition_writer *p, int is_last, struct error *e);
/* Write all that the epoch has, with its last segment; `totals` are the epoch's then. The flusher goes on. */
int partition_writer_seal(struct partition_writer *p, struct error *e);
/* Force it to storage; the flusher has been drained. */
int partition_writer_sync(struct partition_writer *p, struct error *e);
/* The next epoch begins. */
void partition_writer_next(struct partition_writer *p);
/* All epochs before the one that has begun are committed. */
void partition_writer_keep(struct partition_writer *p);
/* All epochs that are not committed are discarded, and the first of them begins again. */
int partition_writer_give_up(struct partition_writer *p, struct error *e);
int partition_writer_finish(struct partition_writer *p, int sync, uint64_t *tail_length, struct error *e);

#endif
