/* What the files of the writer share: its state. writer_epoch.c is an epoch, writer_open.c the opening and the close,
 * writer_commit.c the manifest, and writer_memory.c how the memory budget is shared out. */
#ifndef DELTAFS_DIRECTORY_WRITER_STATE_H
#define DELTAFS_DIRECTORY_WRITER_STATE_H

#include "base/queue.h"
#include "directory/write/hold.h"
#include "directory/write/partition_writer.h"
#include "directory/write/value_log_write.h"
#include "directory/write/writer.h"

#define TABLES_MOST   2
#define SPARE_BUFFERS 2            /* of the flusher */
#define SYSTEM_ROOM   (192u << 10) /* for threads' stacks, handles of files, and what the heap adds to all this */
#define BLOCK_LISTED  24           /* bytes of a block in a run's list, while that doubles */

struct writer {
    struct io io;
    struct memory memory;
    struct writer_config c; /* its path is the writer's own; schema and volumes are not kept */
    uint32_t first, count;  /* its own */
    uint32_t kept;          /* of these have their logs open all the time; the others open them for each call */
    size_t part_capacity;
    struct partition_writer *part;
    struct part_shared shared;
    struct memtable table[TABLES_MOST];
    uint32_t threads, tables;
    struct memtable *filling;    /* the one that fills */
    struct queue *queue;         /* of full memtables; NULL: an epoch's end. Its thread is the worker */
    uint64_t end_number;         /* of the last epoch's end in it */
    struct values_writer values; /* with layout=local */
    /* How records are placed. The pivots of the next epoch are chosen while one ends: so there may be two of each.
     * In `pivots`, a number before the keys says whether they are chosen. */
    struct partitioner by[2];
    uint64_t *pivots[2];
    uint32_t partition;       /* to which all records of a run go, if how they are placed is not known */
    uint32_t now;             /* which of them is that of the epoch that fills */
    struct key_sample sample; /* of its keys */
    struct hold hold;         /* its first records, with several partitions by ranges */
    uint64_t hold_room;       /* bytes of them */
    int has_own;              /* its pivots are not in the manifest yet; only where the lease is */
    uint32_t epoch;           /* the first that is not committed */
    uint32_t covers;          /* so many epochs before it */
    uint32_t stamp;           /* where epochs are compacted: that of the records that are put */
    int has_label;
    uint64_t last_label;
    uint64_t last_records; /* of the last epoch that was committed here, of all processes */
    struct error failed;   /* the first error of the epoch that fills, but for what the worker finds */
    struct error broken;   /* after this no epoch can follow */
    int is_ending;
    struct { /* the epoch that is ending; the worker's until it is done */
        uint64_t label;
        uint32_t by;
        int has_next; /* pivots for the epochs after it, which are stored with it */
        struct error failed;
        struct writer_totals totals, values;
    } ending;
    /* The worker's: */
    uint64_t *sort[2];        /* room for a memtable's records each */
    struct error work_failed; /* its first error; until the epoch is discarded nothing more is written */
    int is_maker;
    struct lease lease; /* the maker's */
    int has_cut;        /* an epoch without its commit, which all of the former job's processes had written, */
    uint64_t cut_label; /* under this label */
    struct io_file manifest;
    uint64_t manifest_size;
    uint64_t manifest_copied; /* bytes of it that its copy has for certain */
};

/* ---- writer_epoch.c ---- */

/* What the worker does; the caller's thread where there is none. */
void writer_work(void *arg, const void *item);

/* ---- writer_open.c ---- */

/* End the threads, and let go of the memtables and what sorts them. */
void writer_close_tables(struct writer *w);

/* ---- writer_commit.c ---- */

int writer_open_manifest(struct writer *w, struct error *e);

/* ---- writer_memory.c ---- */

/* What the paths of a partition's two logs take. */
uint64_t writer_path_room(const struct writer_config *c);
/* Memtables with so many threads. */
uint32_t writer_tables(uint32_t threads);
/* How many of the threads encode. */
uint32_t writer_encoders(const struct writer_config *c, uint32_t threads);
/* Keys of the sample that pivots are chosen by. */
uint32_t writer_sample(const struct writer_config *c);
/* Share out the memory: the number of threads, the sizes of buffers, the records of a memtable, and the room for those
 * that are held back. */
int writer_plan(struct writer *w, const struct writer_config *c, uint32_t count, uint32_t *records, struct error *e);

#endif
