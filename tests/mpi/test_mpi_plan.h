/* Plans: who appends what, from a seed. Every rank can tell every other's records, so that rank 0 can read a directory
 * back by the serial API and compare it with the plan: the slow oracle of the shuffle.
 *
 * The first byte of a value names its writer and the low bits of the record's number there, so that two equal records
 * are told apart as well as their size allows. Records without a byte are counted. */
#ifndef TEST_MPI_PLAN_H
#define TEST_MPI_PLAN_H

#include <deltafs/deltafs.h>

#define PLAN_RANK_BITS 4 /* of a value's first byte */
#define PLAN_RANKS_MAX (1 << PLAN_RANK_BITS)

enum plan_skew {
    PLAN_EVEN,     /* all ranks append about as much */
    PLAN_ONE_KEY,  /* and all of it to one subfile */
    PLAN_ONE_RANK, /* one rank appends all */
    PLAN_NOBODY,   /* there are records in the last epoch only */
    PLAN_SKEWS
};

enum plan_keys {
    PLAN_DENSE,    /* 0, 1, 2, ... */
    PLAN_RANDOM,   /* anything, with the least and the largest number among them */
    PLAN_COUNTERS, /* writer's number << 46 | counter, as VPIC has them */
    PLAN_KEYS
};

struct plan {
    uint64_t seed;
    int ranks;
    int64_t value_size; /* -1: sizes differ, with many that end where a message ends */
    size_t message;     /* bytes, of one between nodes */
    size_t chunk;       /* of a ring; 0: not known */
    int has_long;       /* of sizes that differ, every fourth is long: up to 1 MiB */
    enum plan_skew skew;
    enum plan_keys keys;
    uint32_t records;  /* of a rank in an epoch, about */
    uint32_t subfiles; /* different keys in the plan, about */
    uint32_t epochs;
    int slow_rank; /* sleeps for half a second amid the appends of epoch 0; -1: none */
};

/* A number that `seed` and `n` determine. */
uint64_t plan_random(uint64_t seed, uint64_t n);

/* The label that epoch number `epoch` ends with. */
uint64_t plan_label(uint32_t epoch);

/* Records that `rank` appends in `epoch`. */
uint32_t plan_count(const struct plan *p, uint32_t epoch, int rank);

/* Append what is one rank's in one epoch, in batches and one by one. Returns the first status that is not OK. */
int plan_append(const struct plan *p, deltafs_dir *dir, uint32_t epoch, int rank);

/* Open the directory and CHECK that it has exactly what the plan has in its first `epochs` epochs. Local. */
void plan_compare(const struct plan *p, const char *path, uint32_t epochs, int is_closed);

/* Fill in what is the same in most plans (the ranks, messages of 32 KiB, nobody is slow), and create FOLDER/NAME by the
 * options of a text, for its epochs. Collective. */
deltafs_dir *plan_create(struct plan *p, const char *folder, const char *name, const char *options);

/* On rank 0, plan_compare of FOLDER/NAME; all agree. Collective. */
void plan_check(const struct plan *p, const char *folder, const char *name, uint32_t epochs, int is_closed);

/* Append this rank's records of an epoch and end it; both must succeed. Collective. */
void plan_epoch(const struct plan *p, deltafs_dir *dir, uint32_t epoch);

#endif
