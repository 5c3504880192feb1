/* Records of names that a list is to show: those of one hash, and many such groups in the order of files' bytes. */
#ifndef DELTAFS_NAMESPACE_LIST_BATCH_H
#define DELTAFS_NAMESPACE_LIST_BATCH_H

#include "base/buffer.h"
#include "directory/write/sort.h"
#include "namespace/entry.h"

/* A record. The texts of its entry are in its bytes. */
struct member {
    struct entry entry;
    const uint8_t *bytes;
    size_t size;
    int is_done; /* its name was shown */
};

/* The records of one hash. */
struct group {
    uint32_t hash;
    struct buffer copies;
    size_t used; /* of them */
    struct member *member;
    size_t count, room;
};

void group_clear(struct group *g, uint32_t hash);
void group_fini(struct group *g);
/* Add a record, which was decoded, and stays where it is until the group is cleared. */
int group_add(struct group *g, const uint8_t *bytes, size_t size, const struct entry *entry, struct error *e);
/* Add a copy of it, to a group that has nothing else. All are valid after group_settle. */
int group_copy(struct group *g, const uint8_t *bytes, size_t size, const struct entry *entry, struct error *e);
/* All copies have been added. */
void group_settle(struct group *g);

/* Groups. */
struct list_batch {
    struct buffer bytes; /* of each group u32 hash and u32 count, and of each record u32 size, and itself */
    size_t used;
    struct buffer place, at;    /* uint64_t: of each group the place of its newest file's bytes, and its own */
    struct buffer keys, values; /* of the same size, for sorting */
    struct sorted sorted;       /* the groups; `values` are those of `at` */
    size_t count, next;
    struct error error; /* that came behind them */
};

void list_batch_fini(struct list_batch *b);
/* Begin to fill it, with about `bytes`. */
int list_batch_begin(struct list_batch *b, size_t bytes, struct error *e);
int list_batch_add(struct list_batch *b, const struct group *g, struct error *e);
/* Bytes that it takes. */
size_t list_batch_size(const struct list_batch *b);
/* Order the groups by the places of their files' bytes, if there is memory; those of each table are then in order. */
void list_batch_sort(struct list_batch *b);
/* The next group; one without records at the end. */
int list_batch_take(struct list_batch *b, struct group *out, struct error *e);

#endif
