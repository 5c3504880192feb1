/* Records of particles that wait for the end of their epoch: in memory, and, beyond a limit, in an unlinked file. */
#ifndef DELTAFS_POSIX_SPOOL_H
#define DELTAFS_POSIX_SPOOL_H

#include <stddef.h>
#include <stdint.h>

struct spool;

/* A record as it is stored. Behind it are the bytes of the key, if keys are bytes, and those of the value. */
struct spool_record {
    uint64_t key;
    uint32_t key_size; /* 0: the key is the number */
    uint32_t size;
};

/* `memory`: bytes that it may use. `folder`: where the file is created if they are not enough. NULL: no memory. */
struct spool *spool_create(size_t memory, const char *folder);
void spool_destroy(struct spool *s);
/* Add a record. Returns an error number; then the spool is as it was. */
int spool_add(struct spool *s, const struct spool_record *r, const void *key, const void *value);
uint64_t spool_count(const struct spool *s);

/* Takes `n` records that lie one after the other at `at`, which is not aligned; `first` is a copy of the head of the
 * first. If `n` is more than 1, their keys are numbers, and their sizes the same. */
typedef int (*spool_fn)(const struct spool_record *first, const uint8_t *at, size_t n, void *arg);
/* Call `fn` for all records in their order, until it returns something other than 0. Returns that, which must be
 * negative, or an error number. */
int spool_each(struct spool *s, spool_fn fn, void *arg);

#endif
