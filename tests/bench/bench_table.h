/* The results: printed as tables of at most 120 columns, and written as JSON and as tab-separated lines. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "bench_run.h"

/* Which way a table's numbers are better. */
enum better { LESS, MORE };

/* What a target compares: our median, or the worst of all our runs, where something must never be exceeded. */
enum judged { NO_TARGET, BY_MEDIAN, BY_WORST };

struct target {
    enum judged judged;
    double ratio; /* of ours to the peer's: at most this where less is better, else at least this */
};

struct table;

struct table *table_create(void);
void table_destroy(struct table *t);

/* A new table: `title` says what is measured, `unit` in what. */
void table_begin(struct table *t, const char *title, const char *unit, enum better better);
/* A row of it; `label` says which workload. */
void table_row(struct table *t, const char *label, struct spread ours, const char *peer_name, struct spread peer,
               struct target target);
/* How many targets were reached, and which were not. */
void table_summary(const struct table *t);

/* One array of rows, a row a line. */
void table_write_json(const struct table *t, const char *path);
/* title, label, peer_name, ours, peer, ratio. */
void table_write_tsv(const struct table *t, const char *path);

#endif
