/* Sets of keys: those that a select is limited to, and those that it leaves out. */
#ifndef DELTAFS_QUERY_SELECT_KEYS_H
#define DELTAFS_QUERY_SELECT_KEYS_H

#include <deltafs/deltafs_query.h>
#include "directory/format/manifest.h"

struct set_key {
    uint64_t number;      /* of a key of bytes: its hash */
    const uint8_t *bytes; /* NULL if keys are numbers */
    uint32_t partition;
    uint32_t record; /* the number of its record in what an index has found, from 1 on; 0: it is looked up */
    uint32_t code;   /* of its value in the index */
    uint16_t size;   /* of the bytes */
    uint8_t is_sure; /* a record passes; if the key has several, another may not */
};

/* Each key once, sorted by partition (0 where that depends on the epoch), then by key. */
struct key_set {
    int is_given;
    size_t count;
    struct set_key *key;
    uint8_t *bytes; /* of all keys */
};

/* Take a copy of the caller's keys; `keys` NULL: not given. `name` is for messages. */
int key_set_take(struct key_set *s, const struct deltafs_key_list *keys, const struct manifest *m, const char *name,
                 struct error *e);
/* A key that is a number. */
struct set_key key_set_number(const struct manifest *m, uint64_t number);
/* Make a set of `n` keys, which it takes over. Those that are there several times are looked up, and
 * tested. */
void key_set_own(struct key_set *s, struct set_key *keys, size_t n);
void key_set_fini(struct key_set *s);

/* Where the first key is whose partition is `partition` or above, of those its number `number` or above. */
size_t key_set_from(const struct key_set *s, uint32_t partition, uint64_t number);
int key_set_has(const struct key_set *s, const struct manifest *m, const struct deltafs_record *record);
/* Keep the keys of `s` that are also in `other`, or are not. */
void key_set_filter(struct key_set *s, const struct key_set *other, int is_in);
/* The keys that may be in a partition of an epoch: *first <= i < *end. Returns whether others have been left out; if
 * not, partition_of says which are in it. */
int key_set_part(const struct key_set *s, const struct manifest *m, uint32_t epoch, uint32_t partition, size_t *first,
                 size_t *end);

#endif
