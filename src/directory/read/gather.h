/* Gathers records from the blocks that hold them: blocks of a partition's data log, which leaves name, and with
 * layout=local blocks of the writers' value logs, which the data log names in turn. */
#ifndef DELTAFS_DIRECTORY_GATHER_H
#define DELTAFS_DIRECTORY_GATHER_H

#include "directory/format/value_log.h"
#include "directory/read/reader.h"

struct ref {
    uint64_t key; /* used only with layout=local and keys that are numbers */
    uint32_t epoch;
    uint32_t note; /* the caller's */
    int is_bad;    /* it cannot be read, and that has been reported */
    /* In the partition's data log; later, with layout=local, in the value log of writer `run`, and at.length is the
     * number of bytes to read at first. */
    struct leaf_place place;
    uint32_t at, size; /* of what is stored for it, in the memory of `gather` */
};

struct gather_to {
    /* Called for each ref in order; `stored` is NULL for a bad one. What it returns ends the gathering, unless it is
     * DELTAFS_OK. */
    int (*give)(void *arg, const struct ref *ref, const uint8_t *stored, struct error *e);
    void (*damage)(void *arg, const struct error *e); /* called for each block or record that cannot be read */
    void *arg;
    uint64_t blocks; /* that were read; each counts with its first record */
};

/* Gather the records of the partition `p` at `refs`, in portions of about `most` bytes. Each block is read once for all
 * of a portion's records, in the order of the blocks in their logs, several at a time where storage is slow. */
int gather(struct reader *r, struct part_reader *p, struct ref *refs, size_t n, size_t most, struct gather_to *to,
           struct error *e);
/* DELTAFS_ERR_DAMAGED: `what` is wrong with a record that was gathered. */
int gather_damaged(const struct reader *r, const struct part_reader *p, const struct ref *ref, const char *what,
                   struct error *e);

struct gather;
int gather_create(struct gather **out, struct error *e);
void gather_destroy(struct gather *g);
/* Close all value logs: they may have changed. */
void gather_forget(struct gather *g);
/* Whether opening a value log checks its header, which nothing else reads, and reports damage of it. */
void gather_check_headers(struct gather *g, int does_check);

#endif
