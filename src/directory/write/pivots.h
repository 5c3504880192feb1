/* Pivots: they divide the keys of an epoch into ranges of about as many records each. Each process samples the keys
 * that it stores; at the end of the epoch the samples of all processes give the pivots for the next one. */
#ifndef DELTAFS_DIRECTORY_PIVOTS_H
#define DELTAFS_DIRECTORY_PIVOTS_H

#include "base/collective.h"
#include "directory/format/partition.h"

/* A sample of the keys that were added: of each `stride` keys one, at random. When it is full, every other key goes,
 * and the stride doubles. */
struct key_sample {
    uint64_t *key; /* NULL: no keys are sampled */
    uint32_t count, capacity;
    uint64_t stride, seen, next; /* `next`: the number of the key that is taken next, of those seen and to come */
    uint64_t random;
    struct memory *memory;
};

/* Bytes that choosing pivots takes at most, beside the sample, for a directory of so many partitions: with the pivots
 * of two epochs, and those of the manifest when it is opened. */
uint64_t pivots_memory(uint32_t partitions);
/* Keys of a sample, with `memory` bytes for all that the process does. */
uint32_t sample_capacity(uint32_t partitions, uint64_t memory);
int sample_init(struct key_sample *s, uint32_t capacity, uint64_t seed, struct memory *memory, struct error *e);
void sample_fini(struct key_sample *s);
void sample_clear(struct key_sample *s);
void sample_add_keys(struct key_sample *s, size_t n, const uint8_t *keys, size_t stride);
static inline void sample_add(struct key_sample *s, size_t n, const uint8_t *keys, size_t stride)
{
    if (s->key && s->seen + n > s->next)
        sample_add_keys(s, n, keys, stride);
    s->seen += n;
}

/* Append what other processes need of the sample, which is sorted by that; `seen` are the keys of all processes. After
 * an error nothing is appended. */
int sample_pack(struct key_sample *s, uint32_t partitions, uint64_t seen, struct bytes *out, struct error *e);

/* The pivots by the packed samples of all processes. Returns whether they are better than those of `now`, and so many
 * records there are that they mean anything. No memory: they are not. */
int pivots_choose(const struct bytes *packed, const struct partitioner *now, uint64_t *pivots);

#endif
