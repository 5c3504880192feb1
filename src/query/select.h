/* Select: the records of a directory that fulfil a condition, or those with the largest values.
 *
 * The work is divided into units: one partition of one epoch, or, if keys are looked up, a slice of its keys. Threads
 * take units in the order of epochs, then partitions. Each thread has a reader of its own. It evaluates the condition
 * on the columns of a block, or on a batch of copies of records, and makes rows of the records that pass.
 *
 * The rows of an epoch are collected until all of its units are done. Then the caller gets them by key, while the
 * threads work on the next epoch. If the rows take more than `limit` bytes, the epoch overflows: the caller gets the
 * rows unit by unit, as the threads make them. Then a thread that is ahead of the caller waits. So the order depends
 * on the data and the limit only, and memory is bounded.
 *
 * If an epoch has one unit, which makes its rows by key, it overflows from the start: the caller need not wait for all
 * rows, and the few that there are at a time stay in the processor's cache.
 *
 * If an index has what is needed of nearly all records, there are no threads: the caller does a unit when it needs
 * rows. With one partition it gets them unit by unit then, so that they stay in the processor's cache.
 *
 * With `top`, the rows go to one heap, and no thread waits for the caller. */
#ifndef DELTAFS_QUERY_SELECT_H
#define DELTAFS_QUERY_SELECT_H

#include <pthread.h>
#include <stdatomic.h>
#include "directory/read/lookup.h"
#include "query/carried.h"
#include "query/select_eval.h"
#include "query/select_files.h"
#include "query/select_keys.h"
#include "query/select_top.h"

/* The rows of a unit that the caller has not taken yet. */
struct unit {
    struct chunk *first, **last; /* `last`: where the next is to be linked */
    int is_done;
};

/* The rows of the portion that is being looked at, and marks, which are their numbers, from 1 on. */
struct looked {
    struct buffer rows;  /* of plan.row_size bytes each */
    struct buffer by;    /* double: the value of each */
    struct buffer marks; /* uint32_t: of the block's records */
    size_t count, given; /* `given`: for which there were chunks */
    struct chunk *chunk; /* rows in the order of their keys, not given yet, */
    size_t most;         /* at most so many */
};
void looked_fini(struct looked *l);

/* What an index has found of an epoch, or of a table of files. */
struct found {
    struct key_set keys;   /* or numbers of rows; not given: it could not be used */
    struct buffer records; /* what it has of them, `size` bytes of each; for keys that have records here */
    size_t size;           /* of the key of a row, and of what is carried, if that is needed */
};
void found_fini(struct found *f);

struct worker {
    struct deltafs_select *select;
    pthread_t thread;
    int is_started;
    deltafs_dir *dir;         /* NULL: */
    deltafs_fileindex *index; /* the rows are those of files */
    struct reader *reader;    /* of `dir` */
    struct eval eval;
    struct looked looked;
    /* The unit, and how many of its records were in the batches before. */
    uint32_t epoch, unit, partition;
    uint64_t records;
    /* Of the batch: which records pass, and their values. */
    uint8_t pass[BATCH], is_sure[BATCH]; /* without a test */
    double by[BATCH];
    struct lookup_key key[BATCH]; /* that are looked up together: */
    size_t looked_up;             /* so many */
    struct buffer value;          /* of a record that an index has found; what it does not carry is 0 */
    struct error error;
};

struct row {
    const struct deltafs_record *record;
    size_t order;
};

struct deltafs_select {
    deltafs_dir *dir;
    struct reader *reader;           /* of `dir` */
    const struct manifest *manifest; /* its own, which does not change meanwhile, or that of: */
    struct select_files *files;      /* from which rows are selected; `dir` is their index. NULL: records of `dir` */
    struct error *error;
    struct select_plan plan;
    struct key_set only, except;
    struct found *found; /* of each epoch, or table, from the first on; NULL: no index was used */
    size_t founds;       /* so many */
    int is_alone;        /* there are no threads: the caller does the units */
    char *index;         /* its name */
    struct carried carried;
    int does_look; /* at whole blocks */
    uint32_t part, parts;
    uint32_t partitions, begin, end; /* `end`: the first epoch that is not selected from */
    uint32_t slices, units;          /* of a partition; of an epoch */
    uint64_t limit;
    struct worker *worker;
    uint32_t workers;

    atomic_int is_stopping;
    pthread_mutex_t lock;           /* for what follows */
    pthread_cond_t work;            /* for workers: there may be work, or room */
    pthread_cond_t rows;            /* for the caller: there may be rows */
    uint32_t next_epoch, next_unit; /* that is taken */
    uint64_t left;                  /* units that are not done yet, of all epochs */
    struct top top;
    uint32_t epoch;    /* whose rows are collected, without `top` */
    struct unit *unit; /* of it */
    uint32_t done;     /* units of it */
    uint64_t held;     /* bytes of its rows */
    int is_overflowing;
    uint32_t taken;      /* if it overflows: the unit whose rows the caller takes */
    uint64_t ahead;      /* and threads wait if there are more bytes of rows; */
    uint64_t least;      /* of a unit that is not done, so many are taken at least */
    struct chunk *spare; /* chunks to be used again */
    struct error fatal;
    struct error damage; /* of the first unit that has any: */
    uint32_t damage_epoch, damage_unit;

    /* Of the caller alone: the rows that are being returned, and what they are in. */
    struct chunk *chunks;
    int is_direct;        /* they are in order: those of the first chunk are returned next, */
    int is_given;         /* or have been; otherwise, the order is that of: */
    struct buffer sorted; /* struct row */
    size_t count, at;
    int is_sorted; /* `top` */
    struct buffer records, values, by;
};

/* Find the values of the batch's `n` records, and leave out those that cannot be among the first rows. */
void worker_leave_out(struct worker *w, size_t n);
/* A deltafs_record_fn: a record for the batch. Ends the scan if w->error has an error, or the select is being closed.
 */
int worker_take(const struct deltafs_record *record, void *worker);
/* How many of the batch's `n` records pass. */
size_t worker_passes(const struct worker *w, size_t n);
/* A chunk with room for `bytes`, its own among them; NULL: there is no memory. */
struct chunk *worker_chunk(struct worker *w, size_t bytes);
/* Give a chunk of rows to the caller, who frees it. */
void worker_give(struct worker *w, struct chunk *c);
/* Find an index by value that tells which records may pass. */
void select_use_index(struct deltafs_select *s);
/* Read a unit of files; what cannot be read goes to *damage. */
int worker_read_files(struct worker *w, struct error *damage);
/* Read a unit block by block; damage that leaves other blocks readable goes to *damage. */
int worker_look(struct worker *w, struct error *damage);

/* Do the next unit; returns 0 if there is none. */
int worker_step(struct worker *w);
/* The thread of a worker: does them all. */
void *worker_run(void *worker);

#endif
