/* What the worker writes and the judge expects: epochs 1, 2, 3, ... whose records follow from a seed and the label
 * alone, whatever number of ranks writes them.
 *
 * Record i of an epoch has the key of slot i / copies; so the key, and the copy's number in the value's first byte,
 * tell which record one is that was read. */
#ifndef TORTURE_TRUTH_H
#define TORTURE_TRUTH_H

#include <deltafs/deltafs.h>

#define TRUTH_VALUE_MAX 4096
#define TRUTH_NAME_MAX  24

struct truth {
    uint64_t seed;
    int is_bytes;                                 /* keys */
    const char *value_size, *place, *partitioner; /* the options */
    uint32_t value_most;                          /* bytes of the largest value, less than TRUTH_VALUE_MAX */
    uint64_t factor;                              /* from slots to keys */
};

struct truth_record {
    uint64_t key; /* a number, or */
    char name[TRUTH_NAME_MAX];
    size_t name_size, size;
    uint8_t value[TRUTH_VALUE_MAX];
};

/* A number that looks like any other, and follows from these. */
uint64_t truth_mix(uint64_t a, uint64_t b, uint64_t c);

void truth_init(struct truth *t, uint64_t seed);
uint64_t truth_copies(const struct truth *t, uint64_t label);
uint64_t truth_records(const struct truth *t, uint64_t label);
void truth_make(const struct truth *t, uint64_t label, uint64_t i, struct truth_record *out);
/* Which record of its epoch this would be; UINT64_MAX if none. */
uint64_t truth_find(const struct truth *t, const struct deltafs_record *record);
/* Whether it is that record, byte for byte. */
int truth_is(const struct truth *t, uint64_t i, const struct deltafs_record *record);

#endif
