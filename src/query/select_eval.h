/* One thread's evaluation, for batches: of records that pass, rows are made. A batch is a part of a block, of whose
 * columns only those are decoded that an expression names. Where there are no such blocks (values of any size, keys of
 * bytes, records that stay with their writers, lookups of keys), it is filled with copies of records. */
#ifndef DELTAFS_QUERY_SELECT_EVAL_H
#define DELTAFS_QUERY_SELECT_EVAL_H

#include "directory/format/block.h"
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
    size_t count, bytes; /* bytes of the records */
    size_t room;         /* bytes of a chunk that can be used again, its own among them; others: 0 */
    struct deltafs_record record[];
};

/* An expression that is bound for an epoch. */
struct bound {
    struct expr_bound *expr;
    struct expr_work *work;
    struct expr_column *column;
};

/* What is needed of a value. */
struct wanted {
    uint8_t *bytes;  /* for each byte of a value whether it is; NULL: all, or there is no schema */
    uint8_t *fields; /* for each field of the schema whether an expression uses it */
};

struct eval {
    const struct select_plan *plan;
    int is_bound;
    uint64_t first, last; /* it is bound for these labels */
    struct bound where, by;
    struct bound *output; /* of the computed outputs; the others are not used */
    double *computed;     /* BATCH values of each output */
    struct wanted test;   /* by where and by, */
    struct wanted row;    /* and by the rows, too; */
    struct wanted sure;   /* by the rows of records that are not tested */
    int needs_keys;       /* an expression uses the key */
    struct batch batch;
    struct expr_column *field; /* where the batch has each field of the schema */
    /* Of a block: */
    struct block *block;
    const uint8_t *keys;   /* of its records */
    size_t at;             /* of the batch */
    struct buffer *column; /* of each field: its values, one after the other */
    int has_rows;          /* what the rows need is decoded, too */
};

int eval_init(struct eval *v, const struct select_plan *p, struct error *e);
void eval_fini(struct eval *v);
/* Bind the expressions for the epoch with this label, in which the records of the next batches are. Computed outputs
 * that name what is not set for this epoch are missing there. If the condition or the order does, the call returns
 * DELTAFS_ERR_NOT_FOUND; eval_bind_failed makes it an error of the caller. */
int eval_bind(struct eval *v, uint64_t label, struct error *e);
int eval_bind_failed(int status, uint64_t label, struct error *e);

int batch_add(struct batch *b, const struct deltafs_record *record, struct error *e);
int batch_is_full(const struct batch *b);
struct deltafs_record batch_record(const struct batch *b, size_t i);

/* Let batches be parts of a block, of which v->test is wanted. `keys` as in gather_look. */
int eval_set_block(struct eval *v, struct block *b, const uint8_t *keys, struct error *e);
void eval_set_part(struct eval *v, size_t at, size_t n);
/* Rows of p->row_size bytes of the part's `count` records that pass. */
int eval_part_rows(struct eval *v, const uint8_t *pass, size_t count, uint8_t *rows, struct error *e);

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
