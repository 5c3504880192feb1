/* The writer of one partition: its two logs, and the runs of the segment under way. Used by writer.c alone. */
#ifndef DELTAFS_CORE_PART_WRITER_H
#define DELTAFS_CORE_PART_WRITER_H

#include "core/memtable.h"
#include "core/sort.h"
#include "core/writer.h"
#include "store/index.h"

/* What the partitions of a process share. */
struct part_shared {
    struct memory *memory;
    struct keys_store keys; /* of all runs of segments under way */
    struct block_writer block;
    struct index_scratch scratch;
    size_t data_buffer, index_buffer; /* bytes of each log's buffer */
    size_t tail_fences_max;
};

struct part_writer {
    uint32_t partition;
    struct part_shared *shared;
    struct log data;
    struct index_writer index;
    struct run *runs; /* of the segment */
    uint32_t run_count, run_capacity;
    uint64_t held;        /* records in them */
    uint64_t segment_raw; /* bytes in them as handed over */
    /* The epoch: */
    uint32_t epoch;
    uint32_t run_number, segment;
    uint64_t data_start;
    struct writer_totals totals;
};

int part_writer_open(struct part_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                     struct part_shared *shared, struct error *e);
int part_writer_close(struct part_writer *p, struct error *e);
/* Write `n` records of the memtable, which are this partition's, in the order given, as a run. */
int part_writer_run(struct part_writer *p, const struct memtable *table, const uint32_t *order, uint32_t n,
                    struct error *e);
/* Merge the runs so far into a segment. Their keys stay in the store. */
int part_writer_segment(struct part_writer *p, int is_last, struct error *e);
/* Write all that the epoch has, with its last segment. */
int part_writer_seal(struct part_writer *p, int sync, struct error *e);
/* The epoch is committed; the next begins. */
void part_writer_keep(struct part_writer *p);
/* The epoch is given up and begins anew. */
int part_writer_give_up(struct part_writer *p, struct error *e);
int part_writer_finish(struct part_writer *p, int sync, uint64_t *tail_length, struct error *e);

#endif
