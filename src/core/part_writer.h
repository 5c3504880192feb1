/* The writer of one partition: memtable, runs, the two logs. Used by writer.c alone. */
#ifndef DELTAFS_CORE_PART_WRITER_H
#define DELTAFS_CORE_PART_WRITER_H

#include "core/memtable.h"
#include "core/sort.h"
#include "core/writer.h"
#include "store/index.h"

/* What the partitions of a process share. */
struct part_shared {
    struct sort_entry *sort[2]; /* room for a memtable's records each */
    struct block_writer block;
    uint64_t hold; /* keys that a partition may hold before it closes a segment */
};

struct part_writer {
    uint32_t partition;
    struct part_shared *shared;
    struct log data;
    struct index_writer index;
    struct memtable table;
    struct run *runs; /* of the segment */
    uint32_t run_count, run_capacity;
    uint64_t held;        /* keys in them */
    uint64_t segment_raw; /* bytes in them as handed over */
    uint64_t table_raw;   /* and in the memtable */
    /* The epoch: */
    uint32_t epoch;
    uint32_t run_number, segment;
    uint64_t data_start;
    struct writer_totals totals;
};

struct part_limits {
    uint32_t table_records;
    size_t data_buffer, index_buffer;
};

int part_writer_open(struct part_writer *p, struct io *io, const struct writer_config *c, uint32_t partition,
                     const struct part_limits *limits, struct part_shared *shared, struct error *e);
int part_writer_close(struct part_writer *p, struct error *e);
/* Write the memtable as a run, and empty it. */
int part_writer_flush(struct part_writer *p, struct error *e);
/* Write all that the epoch has, with its last segment. */
int part_writer_seal(struct part_writer *p, int sync, struct error *e);
/* The epoch is committed; the next begins. */
void part_writer_keep(struct part_writer *p);
/* The epoch is given up and begins anew. */
int part_writer_give_up(struct part_writer *p, struct error *e);
int part_writer_finish(struct part_writer *p, int sync, uint64_t *tail_length, struct error *e);

#endif
