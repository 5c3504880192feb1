/* A contest: several engines write the same data, in turns, each run in a process of its own. */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "bench_engine.h"
#include "bench_table.h"

#define ENGINES_MAX 6

struct contest {
    const struct bench *bench;
    char label[64];
    double records;
    size_t count; /* of engines; ours is the first */
    const struct engine *engine[ENGINES_MAX];
    struct outcome *result[ENGINES_MAX]; /* of each run */
};

/* Run it: every engine b->runs times. Engines that were not there at configure time are left out. */
void contest_run(struct contest *c, const struct bench *b, const struct dataset *data,
                 const struct engine *const *engines, size_t n);
void contest_fini(struct contest *c);

/* One of a run's figures. */
typedef double (*figure_fn)(const struct outcome *out, double records);
struct spread contest_spread(const struct contest *c, size_t engine, figure_fn figure);

double figure_cpu(const struct outcome *out, double records);    /* ns a record */
double figure_user(const struct outcome *out, double records);   /* ns a record */
double figure_sys(const struct outcome *out, double records);    /* ns a record */
double figure_wall(const struct outcome *out, double records);   /* ns a record */
double figure_stored(const struct outcome *out, double records); /* bytes a record */
double figure_memory(const struct outcome *out, double records); /* MiB */

/* Write one directory, in a process of its own; the files stay. */
void write_once(const struct engine *engine, const struct job *job, struct outcome *out);

#endif
