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
    uint32_t at;     /* of the next one in memory; or, for gather_blocks, its number */
    uint8_t tag;     /* of a value log's record */
};

/* A record that is wanted: the next one of a ref. */
struct ref_record {
    uint64_t key;
    uint32_t ref;
    uint32_t epoch; /* of the record; that of its ref is of what its block is stored with */
};

struct gather_to {
    /* Called for each record in order; `stored` is NULL for one that cannot be read. What it returns ends the
     * gathering, unless it is DELTAFS_OK. */
    int (*give)(void *arg, const struct ref *ref, const struct ref_record *record, const uint8_t *stored, size_t size,
                struct error *e);
    void (*damage)(void *arg, const struct error *e); /* called for each block or record that cannot be read */
    void *arg;
    size_t piece;    /* bytes that are read at once of blocks side by side, about; 0: what is best for many blocks */
    int is_slow;     /* what leads to the blocks came from storage, as they will */
    uint64_t blocks; /* that were read; each counts with its first record */
};

/* Gather `n` records of the partition `p`, in portions of about `most` bytes. Each block is read once for all of a
 * portion's records, in the order of the blocks in their logs, several at a time where storage is slow. */
int gather(struct reader *r, struct part_reader *p, struct ref *refs, const struct ref_record *records, size_t n,
           size_t most, struct gather_to *to, struct error *e);
/* Whole blocks instead of copies of their values. */
struct gather_look {
    /* A block, of which the reader's wanted bytes are there. `keys` are those of its records, as 8 bytes each, if they
     * were given. *marks gets a number for each record, or NULL: all 0. DELTAFS_ERR_DAMAGED leaves out this block;
     * other errors end the gathering. */
    int (*look)(void *arg, struct block *b, const uint8_t *keys, const uint32_t **marks, struct error *e);
    void (*damage)(void *arg, const struct error *e); /* as above */
    void *arg;
};

/* Let the blocks of all refs of a data log be looked at. Each ref has its number of records in `wanted`; together they
 * are `n`, and numbered in the order of the refs. `keys` are theirs, or NULL. *marks gets those of the records, which
 * are 0 if they could not be read; NULL: all are 0. */
int gather_blocks(struct reader *r, struct part_reader *p, struct ref *refs, uint32_t ref_count, size_t n,
                  const uint8_t *keys, const struct gather_look *look, const uint32_t **marks, struct error *e);
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
