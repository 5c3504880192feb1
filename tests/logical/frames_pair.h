/* For the tests of frames: a data log of a logical file, a reader of the same file, and an oracle, which is all the
 * bytes in one array. */
#ifndef DELTAFS_TEST_FRAMES_PAIR_H
#define DELTAFS_TEST_FRAMES_PAIR_H

#include "logical/format/frames.h"
#include "logical/format/logical_format.h"
#include "unit_help.h"

#define SESSION 3
#define WRITER  17
#define GROUP   ((uint64_t)FRAME_GROUP * FRAME_SIZE)

extern const uint8_t pair_uuid[16];

struct pair {
    struct io io;
    struct frame_log log;
    struct frame_cache cache;
    struct frame_reader reader;
    uint8_t *bytes; /* what the log should have, by position */
    uint64_t end, flushed, capacity;
};

/* A new log with a buffer of `capacity` bytes, and its reader. They share a cache of `cache` bytes. */
void pair_open(struct pair *p, const char *name, size_t capacity, size_t cache);
void pair_close(struct pair *p);

/* Append or flush, and note what the log should have then. Return what the log returned. */
int pair_append(struct pair *p, const void *bytes, size_t n);
int pair_flush(struct pair *p, int sync);
/* Note `n` bytes, which begin at `from`; NULL: zeros. */
void pair_note(struct pair *p, const void *from, uint64_t n);

/* Compare what the log reads there; and what the reader reads, if all of it was flushed. */
void pair_check(struct pair *p, uint64_t position, size_t n);

/* `n` random bytes; freed by the caller. */
uint8_t *noise(struct rng *r, size_t n);
/* A new pair; its log has `n` frames of noise, flushed. */
void make_log(const char *name, struct rng *r, size_t n, struct pair *p);
/* Open the file again and read all of it; the bytes that come must be right. Returns the status of that. */
int read_all(const char *name, const struct pair *p, uint32_t session, uint32_t writer, struct error *e);

#endif
