/* What a directory should have, known without reading it: records follow from an epoch's seed. */
#ifndef DELTAFS_TORTURE_MODEL_H
#define DELTAFS_TORTURE_MODEL_H

#include <deltafs/deltafs.h>
#include "torture_rng.h"
#include "torture_verdict.h"

#define TORTURE_VALUE_MAX 8192u
#define TORTURE_EPOCHS    32

/* How the directory is made; texts are options' values. */
struct torture_shape {
    const char *partitions, *keys, *value_size, *codec, *threads, *commit, *sync, *memory, *place, *partitioner;
    uint32_t size_max; /* of values; all have it unless value_size is any */
    uint64_t key_kind; /* dense, few, or any numbers */
};

struct torture_epoch {
    uint64_t label, seed;
    uint32_t records;
};

/* Append the records `first`, first + step, ... of an epoch. Returns the first status that is not DELTAFS_OK. */
int torture_append(const struct torture_shape *s, const struct torture_epoch *epoch, uint32_t first, uint32_t step,
                   deltafs_dir *dir);

/* The records of some epochs. */
struct torture_model;
struct torture_model *torture_model_create(const struct torture_shape *s, const struct torture_epoch *epochs, size_t n);
void torture_model_destroy(struct torture_model *m);

/* Whether an open directory has these epochs: by deltafs_stat. */
int torture_model_fits(const struct torture_model *m, deltafs_dir *dir);
/* Compare a scan, keys that are there and keys that are not, and ask deltafs_verify. With `may_fail` (a status, or
 * DELTAFS_OK) calls may fail with that status, but what they hand out must be right. Returns how many failed. */
unsigned torture_model_check(struct torture_model *m, deltafs_dir *dir, int may_fail, struct torture_verdict *v);

#endif
