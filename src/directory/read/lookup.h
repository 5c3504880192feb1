/* Point reads: the records of some keys of one partition.
 *
 * For all keys and epochs it is known first which leaves can hold them; these are read in the order of their places,
 * each once, and in parallel where storage is slow; then the same is done with the blocks that hold the records. Both
 * in windows, so that memory stays bounded. */
#ifndef DELTAFS_DIRECTORY_LOOKUP_H
#define DELTAFS_DIRECTORY_LOOKUP_H

#include "directory/read/reader.h"

/* A key that is asked for. */
struct lookup_key {
    uint32_t partition;
    uint64_t key;
    const void *bytes; /* of a key of bytes, whose hash `key` is */
    size_t size;
    size_t place; /* in the caller's arrays */
};

/* The records of one key, as deltafs_records has them: its values stand one after the other in a buffer, and until it
 * is finished record.value and key_bytes are NULL. */
struct answer {
    deltafs_records public;
    struct deltafs_record *record;
    size_t capacity;
    struct buffer bytes;
    size_t used;
    struct buffer missing; /* labels, in no order */
    int is_dropped;        /* no memory to note a missing epoch: the answer must not look complete */
};

/* Note that epochs `first` to `end` - 1 are missing from the answer. */
void answer_miss(const struct reader *r, struct answer *c, uint32_t first, uint32_t end);

/* Add the records of the keys w[0 .. n), all of the partition `p`, in epochs `first` to `end` - 1, to out[w[i].place].
 * An epoch of which a part cannot be read is left out and noted as missing; the first error is returned. */
int lookup_get(struct reader *r, struct part_reader *p, const struct lookup_key *w, size_t n, uint32_t first,
               uint32_t end, struct answer **out, struct error *e);

/* Give their records to a function instead, one after the other: by epoch, segment, key. Nothing that is read is kept
 * for later lookups. What the function returns ends the lookup, unless it is 0; *stopped gets it. */
struct lookup_to {
    deltafs_record_fn fn;
    void *arg;
    int stopped;
};
int lookup_give(struct reader *r, struct part_reader *p, const struct lookup_key *w, size_t n, uint32_t first,
                uint32_t end, struct lookup_to *to, struct error *e);

/* What both keep from call to call. */
struct lookup_scratch;
void lookup_scratch_destroy(struct lookup_scratch *s);

#endif
