/* Values that stay with their writers: from the places that the partitions have instead of them. Some are asked for at
 * once; each block that has any of them is read and decoded once, in the order in which blocks stand in their logs,
 * several at a time where storage is slow. */
#ifndef DELTAFS_DIRECTORY_VALUE_LOG_READ_H
#define DELTAFS_DIRECTORY_VALUE_LOG_READ_H

#include "directory/read/reader.h"
#include "directory/format/value_log.h"

/* A value that is asked for. */
struct value_wanted {
    uint64_t hash; /* of its key, if that is a number */
    uint32_t epoch;
    int is_bad;         /* it cannot be read: damage has said why */
    struct position in; /* where it is */
    size_t at, size;    /* where it was put: as it is stored, but for the byte that tells its key */
};

struct values_reader;

/* The table of logs that are open, and buffers. */
int values_reader_create(struct values_reader **out, struct error *e);
void values_reader_destroy(struct values_reader *v);
/* Close all logs: what they have may have changed. */
void values_reader_forget(struct values_reader *v);

/* Whether opening a log checks its header, which nothing else reads, and reports damage of it. */
void values_reader_check_headers(struct values_reader *v, int does_check);

/* Take a place apart, of a record of this epoch; DELTAFS_ERR_DAMAGED names where it stands. */
int values_locate(const struct reader *r, uint32_t epoch, const uint8_t *bytes, const char *path, uint64_t offset,
                  struct position *out, struct error *e);

/* Read `n` values, or the first of them, into `bytes`: returns how many in *done, 1 or more, as they take `most` bytes
 * or, if it is one, more. `damage` is called for each block that cannot be read; `blocks` counts the others.
 * DELTAFS_ERR_MEMORY. */
int values_fetch(struct reader *r, struct value_wanted *wanted, size_t n, size_t most, struct buffer *bytes,
                 size_t *done, void (*damage)(void *arg, const struct error *e), void *arg, uint64_t *blocks,
                 struct error *e);

/* DELTAFS_ERR_DAMAGED, of what is at a place. */
int values_damaged(const struct reader *r, const struct position *in, const char *what, struct error *e);

#endif
