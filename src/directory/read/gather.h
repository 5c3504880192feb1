/* Gathers records from the blocks that hold them: blocks of a partition's data log, which leaves name, and with
 * layout=local blocks of the writers' value logs, which the data log names in turn. */
#ifndef DELTAFS_DIRECTORY_GATHER_H
#define DELTAFS_DIRECTORY_GATHER_H

#include "directory/format/value_log.h"
#include "directory/read/reader.h"

/* Records of one block, one after the other. */
struct ref {
    uint32_t epoch;
    uint32_t note; /* the caller's */
    /* The first of them in the partition's data log, and for gather itself in the value log of writer `run`, of which
     * at.length is the number of bytes to read at first. Gathering moves it on to the next. */
    struct leaf_place place;
    int is_bad; /* the rest cannot be read, and that has been reported */
    /* Used by gather: */
    uint32_t wanted; /* records, in the portion that is being gathered */
    uint32_t at;     /* of the next one in memory; its number among those of a portion if whole blocks are looked at */
    uint32_t seen;   /* records of it whose keys are known */
    uint8_t tag;     /* of a value log's record */
};

/* A record that is wanted: the next one of a ref. */
struct ref_record {
    uint64_t key;
    uint32_t ref;
};

/* Whole blocks instead of copies of their values. A call that returns another status than DELTAFS_OK ends the
 * gathering, but if it is DELTAFS_ERR_DAMAGED for a block, only this block is left out. */
struct gather_look {
    int needs_keys;
    /* A block, of which the reader's wanted bytes are there. `keys` are those of its records, as 8 bytes each, where
     * the records are gathered; NULL if they are not needed. *marks gets a number for each record, 0 for those that
     * give is not to be called for; NULL: for none. */
    int (*look)(void *arg, struct block *b, const uint8_t *keys, const uint32_t **marks, struct error *e);
    /* A record with its mark, in order. */
    int (*give)(void *arg, uint64_t key, uint32_t mark, struct error *e);
    /* All records of a portion have been given: its marks are used again. */
    int (*end)(void *arg, struct error *e);
    void *arg;
};

struct gather_to {
    const struct gather_look *look; /* NULL: give is called for each record */
    /* Called for each record in order; `stored` is NULL for one that cannot be read. What it returns ends the
     * gathering, unless it is DELTAFS_OK. */
    int (*give)(void *arg, const struct ref *ref, uint64_t key, const uint8_t *stored, size_t size, struct error *e);
    void (*damage)(void *arg, const struct error *e); /* called for each block or record that cannot be read */
    void *arg;
    uint64_t blocks; /* that were read; each counts with its first record */
};

/* Gather `n` records of the partition `p`, in portions of about `most` bytes. Each block is read once for all of a
 * portion's records, in the order of the blocks in their logs, several at a time where storage is slow. */
int gather(struct reader *r, struct part_reader *p, struct ref *refs, const struct ref_record *records, size_t n,
           size_t most, struct gather_to *to, struct error *e);
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
