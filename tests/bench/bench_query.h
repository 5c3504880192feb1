/* Queries for trajectories, timed one by one: cold (nothing in the page cache, a process that opens the directory and
 * asks for one key) and warm (files in the page cache, one handle, many keys). Each answer is checked. */
#ifndef BENCH_QUERY_H
#define BENCH_QUERY_H

#include "bench_engine.h"

/* Values of the same kind from several runs of the same length. */
struct series {
    size_t runs, each;
    double *value;
};

/* One engine, asking in one of its ways, and what it took. */
struct asker {
    struct job job;
    const struct engine *engine;
    int is_iterating;
    char name[64];
    struct series cold, warm;           /* seconds */
    struct series calls, storage;       /* of a cold query: read calls; bytes from storage */
    struct series own_reads, own_bytes; /* of a cold query, as the library counts (ours alone) */
};

void asker_init(struct asker *a, const struct job *job, const struct engine *engine, int is_iterating, size_t cold,
                size_t warm);
void asker_fini(struct asker *a);

/* Run number `run`: as many keys of `p` as `cold` and `warm` said, other ones in each run. */
void asker_run_cold(struct asker *a, const struct probes *p, size_t run);
void asker_run_warm(struct asker *a, const struct probes *p, size_t run);

/* The value below which `share` of all lie, with that of the lowest and of the highest run. */
struct spread series_percentile(const struct series *s, double share);

#endif
