/* Records of names that a list is to show: those of one hash, and many such groups in the order of files' bytes. */
#ifndef DELTAFS_NAMESPACE_LIST_BATCH_H
#define DELTAFS_NAMESPACE_LIST_BATCH_H

#include "base/buffer.h"
#include "namespace/entry.h"

/* A record. The texts of its entry are valid after group_settle. */
struct member {
    struct entry entry;
    size_t at, size; /* of it in the group's bytes */
    int is_done;     /* its name was shown */
};

/* The records of one hash. */
struct group {
    uint32_t hash;
    struct buffer bytes;
    size_t used;
    struct member *member;
    size_t count, room;
};

void group_clear(struct group *g, uint32_t hash);
void group_fini(struct group *g);
/* Add a record, which was decoded. */
int group_add(struct group *g, const void *bytes, size_t size, const struct entry *entry, struct error *e);
/* All have been added. */
void group_settle(struct group *g);

struct batch_group;

/* Groups. */
struct list_batch {
    struct buffer bytes; /* of each record u32 size, and itself */
    size_t used;
    struct batch_group *group;
    size_t count, room;
    struct buffer place, sorted, scratch; /* uint64_t: of each group the place of its first file's bytes */
    const uint32_t *order;                /* the groups, if they are sorted; else NULL */
    size_t next;                          /* place there of the one that is taken next */
    struct error error;                   /* that came behind them */
};

void list_batch_fini(struct list_batch *b);
/* Begin to fill it. */
void list_batch_clear(struct list_batch *b);
int list_batch_add(struct list_batch *b, const struct group *g, struct error *e);
/* Bytes that it takes. */
size_t list_batch_size(const struct list_batch *b);
/* Order the groups by the places of their files' bytes, if there is memory; those of each table are then in order. */
void list_batch_sort(struct list_batch *b);
/* The hash of a group that is taken soon, which is then in the processor's cache. Returns 0 if there is none. */
int list_batch_prefetch(const struct list_batch *b, uint32_t *hash);
/* The next group; one without records at the end. */
int list_batch_take(struct list_batch *b, struct group *out, struct error *e);

#endif
