/* One thread's evaluation: records are collected in batches; of those that pass, rows are made. */
#ifndef DELTAFS_QUERY_SELECT_EVAL_H
#define DELTAFS_QUERY_SELECT_EVAL_H

#include "query/select_plan.h"

#define BATCH       1024u             /* records, a multiple of what expressions take at a time */
#define BATCH_BYTES ((size_t)1 << 20) /* a batch with so many bytes is full, too */

/* Copies of records of one epoch. */
struct batch {
    size_t n;
    uint64_t label;
    uint8_t label_bytes[8];  /* little-endian, for expressions, */
    uint8_t key[8 * BATCH];  /* as are these */
    struct buffer values;    /* one after the other */
    size_t value_end[BATCH]; /* the end of each */
    struct buffer key_bytes; /* the same, if keys are bytes */
    size_t key_end[BATCH];
};

/* Rows that were made together. The values lie one after the other. */
struct chunk {
    struct chunk *next;
    size_t count, bytes; /* bytes of all of it */
    struct deltafs_record record[];
};

/* An expression that is bound for an epoch. */
struct bound {
    struct expr_bound *expr;
    struct expr_work *work;
    struct expr_column *column;
};

struct eval {
    const struct plan *plan;
    int is_bound;
    uint64_t first, last; /* it is bound for these labels */
    struct bound where, by;
    struct bound *output; /* of the computed outputs; the others are not used */
    double *computed;     /* BATCH values of each output */
    uint8_t *wanted;      /* for each byte of a value whether a column of it is used; NULL: unknown */
    struct batch batch;
};

int eval_init(struct eval *v, const struct plan *p, struct error *e);
void eval_fini(struct eval *v);
/* Bind the expressions for the epoch with this label, in which the records of the next batches are. */
int eval_bind(struct eval *v, uint64_t label, struct error *e);

int batch_add(struct batch *b, const struct deltafs_record *record, struct error *e);
int batch_is_full(const struct batch *b);
struct deltafs_record batch_record(const struct batch *b, size_t i);

/* Of all records of the batch: whether they pass the condition; the value to order by. */
void eval_test(struct eval *v, uint8_t *pass);
void eval_by(struct eval *v, double *by);
/* Compute the computed columns of all records; then write a row, of p->row_size bytes, or of the value's if a row is
 * the value as it is. Returns its bytes. */
void eval_compute(struct eval *v);
size_t eval_put_row(const struct eval *v, size_t i, uint8_t *row);
/* Rows of the `count` records that pass. Free with free. */
int eval_rows(struct eval *v, const uint8_t *pass, size_t count, struct chunk **out, struct error *e);

#endif
