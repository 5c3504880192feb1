/* The engines that are compared, each as a table of functions; all of them run in a measured process. */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "bench_data.h"
#include "bench_run.h"

/* What the user asked for. */
struct bench {
    int is_quick;
    int is_cgroup;
    int has_direct;       /* the scratch folder takes O_DIRECT */
    unsigned runs;        /* of each engine */
    const char *scratch;  /* the folder for all files */
    const char *vpic;     /* of real dumps, or NULL */
    const char **options; /* NAME=VALUE, for ours */
    size_t option_count;
    double throttle; /* bytes a second of the throttled device */
    int is_synced;   /* ours forces an epoch to storage before it is committed: so do the others */
    uint64_t memory; /* budget of our buffers, and of the peers' memtables */
};

/* One directory (database, folder of dumps) to be written or read. */
struct job {
    const struct bench *bench;
    const struct dataset *data;
    const char *path;
    uint64_t memory; /* the writer's budget */
};

struct engine {
    const char *name;
    /* Write all epochs, from making the directory to closing it; what is measured is between meter_start and _stop. */
    void (*write)(const struct job *job, struct outcome *out);
    /* Bring what was written into the best state for reading, or NULL. */
    void (*settle)(const struct job *job);
    /* Open for reading; get the values of a key in all epochs, and return how many there are; close. */
    void *(*open)(const struct job *job);
    size_t (*get)(void *db, uint64_t key, uint8_t *values);
    size_t (*iterate)(void *db, uint64_t key, uint8_t *values); /* the same by another way, or NULL */
    void (*close)(void *db, struct outcome *out);
};

extern const struct engine engine_ours;
extern const struct engine engine_raw;
extern const struct engine engine_raw_direct;
extern const struct engine engine_leveldb;           /* `write` is NULL where it was not there at configure time */
extern const struct engine engine_rocksdb;           /* without compaction */
extern const struct engine engine_rocksdb_compacted; /* with it */

/* Make the options of ours for a job; those that the user gave come last. Death if they are not valid. */
struct deltafs_options *ours_options(const struct bench *b, uint64_t memory, const char *schema);

/* The key of a key-value store: the ID, then the number of the epoch, big-endian so that a trajectory is one range. */
#define KV_KEY 12
void kv_key(char out[static KV_KEY], uint64_t id, size_t epoch);

#endif
