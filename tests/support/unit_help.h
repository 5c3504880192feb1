/* What the unit tests share: seeded random numbers, a folder of the test's own, whole files in memory, and a model: the
 * oracle of a directory, a plain list of all records ever appended.
 *
 * Random tests are deterministic. A failed CHECK prints the seed; UNIT_SEED=N in the environment sets another. */
#ifndef DELTAFS_UNIT_HELP_H
#define DELTAFS_UNIT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <deltafs/deltafs.h>

extern uint64_t unit_seed;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("seed %llu: %s", (unsigned long long)unit_seed, #condition);                                      \
    } while (0)

#define CHECK_IS(got, want)                                                                                            \
    do {                                                                                                               \
        long long check_got = (long long)(got), check_want = (long long)(want);                                        \
        if (check_got != check_want)                                                                                   \
            fail_msg("seed %llu: %s is %lld, not %lld: %s", (unsigned long long)unit_seed, #got, check_got,            \
                     check_want, deltafs_errmsg(NULL));                                                                \
    } while (0)

/* For a thread, which cannot end the test: 1 if the call failed, after its message. */
#define FAILED(call) unit_failed((call), #call)
int unit_failed(int status, const char *call);

/* The same of a call on a handle: its message goes with it. */
#define CHECK_CALL(dir, got, want)                                                                                     \
    do {                                                                                                               \
        long long check_got = (long long)(got), check_want = (long long)(want);                                        \
        if (check_got != check_want)                                                                                   \
            fail_msg("seed %llu: %s is %lld, not %lld: %s", (unsigned long long)unit_seed, #got, check_got,            \
                     check_want, deltafs_errmsg(dir));                                                                 \
    } while (0)

/* ---- Random numbers ---- */

struct rng {
    uint64_t state;
};

struct rng rng_init(uint64_t seed);
/* One more sequence, in any thread, whatever UNIT_SEED is. */
static inline struct rng rng_of(uint64_t seed)
{
    return (struct rng){seed};
}
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* 0 .. n - 1 */
void rng_fill(struct rng *r, void *bytes, size_t n);

/* Keys of several characters: dense, sparse, rank and counter, few, the ends. */
enum key_kind { KEYS_DENSE, KEYS_SPARSE, KEYS_CLUSTERED, KEYS_FEW, KEYS_ENDS, KEYS_KINDS };
uint64_t rng_key(struct rng *r, enum key_kind kind);

/* ---- Files ---- */

/* Setup and teardown of a group: make unit_folder, and remove it with all in it. Clears DELTAFS_* of the environment.
 */
extern char unit_folder[256];
int unit_setup(void **state);
int unit_teardown(void **state);

/* "FOLDER/NAME" as printf has it; valid until the teardown. */
__attribute__((format(printf, 1, 2))) const char *unit_path(const char *fmt, ...);

/* A whole file, with `n` bytes; freed by the caller. */
uint8_t *unit_load(const char *path, size_t *n);
void unit_save(const char *path, const void *bytes, size_t n);
/* Replace one byte. */
void unit_poke(const char *path, size_t offset, uint8_t byte);
int unit_exists(const char *path);
void unit_remove(const char *path); /* a file, or a folder with all in it */

/* Copy a folder with all in it; `to` must not exist. */
void unit_copy(const char *from, const char *to);
/* Cut a directory's manifest after `n` bytes, as a crash does: its copy has no line that it has not. */
void unit_cut_manifest(const char *folder, size_t n);

/* Options from name, value, ..., NULL; sync is "none" unless given. Freed by the caller. */
deltafs_options *unit_options(const char *name, ...);
/* Create, then free the options. Fails the test on error. */
deltafs_dir *unit_create(const char *path, deltafs_options *options);
deltafs_dir *unit_open(const char *path);

/* ---- The model ---- */

struct model_record {
    uint64_t key; /* of bytes: their hash */
    uint64_t label;
    uint64_t serial; /* in order of appending, from 1 */
    uint32_t size;
    uint32_t name_size; /* of a key of bytes; 0: it is a number */
    const void *name;
};

struct model {
    struct model_record *record;
    size_t count, capacity;
    size_t committed; /* records of epochs that ended */
    size_t epochs;
    int is_sorted; /* since the last epoch end */
    int is_bytes;  /* keys are */
};

void model_fini(struct model *m);
/* The value of the record `serial`: noise, or something that can be packed. */
void model_value(uint64_t serial, uint8_t *bytes, size_t size);
/* Note a record, and append it to `d` unless that is NULL. Returns the status of the append. */
int model_append(struct model *m, deltafs_dir *d, uint64_t key, uint32_t size);
/* The same with a key of bytes; `name` is kept, and must stay as long as the model. */
int model_append_bytes(struct model *m, deltafs_dir *d, const void *name, size_t name_size, uint32_t size);
/* The epoch ended under `label`, or was discarded. */
void model_keep(struct model *m, uint64_t label);
void model_discard(struct model *m);
/* Whether a record has the bytes of the `serial`-th. */
int model_is_value(const struct model_record *want, const struct deltafs_record *got);
/* The committed records of `key` with first <= label <= last: their number, and the first. They stand together. */
size_t model_find(struct model *m, uint64_t key, uint64_t first, uint64_t last, const struct model_record **out);

/* Compare one key; `range` as in deltafs_get. */
void model_check_key(struct model *m, deltafs_dir *d, uint64_t key, const struct deltafs_range *range);
void model_check_name(struct model *m, deltafs_dir *d, const void *name, size_t name_size,
                      const struct deltafs_range *range);
/* Compare all keys by deltafs_get_many, in batches and in random order. */
void model_check_all(struct model *m, deltafs_dir *d, struct rng *r);
/* Compare a whole scan. */
void model_check_scan(struct model *m, deltafs_dir *d, const struct deltafs_range *range);
/* For a directory with damage, or whose reading fails: whatever calls return, they hand out nothing wrong, no part of
 * an epoch as if it were all, and never say of a key that it is not there. Returns how many calls failed. */
unsigned model_check_honest(struct model *m, deltafs_dir *d);
/* Compare deltafs_stat and deltafs_epoch_stat, and ask deltafs_verify. */
void model_check_facts(struct model *m, deltafs_dir *d);
/* Append records of a kind of keys; of values of random sizes, if value_size is -1. */
void model_append_some(struct model *m, deltafs_dir *d, struct rng *r, enum key_kind kind, uint32_t n,
                       int64_t value_size);
void model_end_epoch(struct model *m, deltafs_dir *d, uint64_t label);
/* All of it, and some keys that need not be there. */
void model_check_directory(struct model *m, const char *path, struct rng *r);

#endif
