/* The first records of an epoch, held back until it is known how they are best placed: where partitions are ranges of
 * keys, and all processes hold all their records when the epoch ends, its pivots come from all its keys. */
#ifndef DELTAFS_DIRECTORY_HOLD_H
#define DELTAFS_DIRECTORY_HOLD_H

#include "directory/write/pivots.h"

struct hold {
    uint8_t *bytes; /* NULL: nothing is ever held */
    size_t used, room;
    int64_t value_size; /* -1: each record has its size before it */
    int is_on;          /* it has all records of this epoch so far */
    struct memory *memory;
};

/* What takes the records that were held. */
typedef void hold_put_fn(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                         size_t value_stride, size_t size);

int hold_init(struct hold *h, size_t room, int64_t value_size, struct memory *memory, struct error *e);
void hold_fini(struct hold *h);
/* Begin an epoch. What is held is dropped. */
void hold_begin(struct hold *h);
/* How many more records with values of `size` bytes can be held. */
size_t hold_room(const struct hold *h, size_t size);
/* Hold `n` records. Returns whether they are held; if not, no others may be until those that are have been released. */
int hold_add(struct hold *h, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
             size_t value_stride, size_t size);
/* Add the keys of what is held to a sample. */
void hold_sample(const struct hold *h, struct key_sample *s);
/* Put all that is held; up to the end of the epoch nothing is. */
void hold_release(struct hold *h, hold_put_fn *put, void *arg);

#endif
