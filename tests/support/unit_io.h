/* File operations that a test has in hand: slow ones, ones that wait until they may go on, ones that fail, by what they
 * do and to which file. Any thread may come through them. They stand in for the operating system's in directories that
 * are opened between unit_io_begin and unit_io_end. */
#ifndef DELTAFS_UNIT_IO_H
#define DELTAFS_UNIT_IO_H

#include "fake_io.h"

/* What a rule is about. */
enum unit_op {
    OP_OPEN = FAKE_OPEN,
    OP_READ = FAKE_READ,
    OP_WRITE = FAKE_WRITE,
    OP_SYNC = FAKE_SYNC,
    OP_TRUNCATE = FAKE_TRUNCATE,
    OP_LINK = FAKE_LINK,
    OP_LOCK = FAKE_LOCK, /* that waits */
    OP_DIRECT = FAKE_OPS,
    OP_COUNT
};

void unit_io_begin(void);
/* Takes the rules back; fails the test if a file is still open. */
void unit_io_end(void);

/* Each operation of this kind takes so long. OP_DIRECT: writing to what was opened with O_DIRECT, which is OP_WRITE
 * too. */
void unit_io_slow(enum unit_op op, unsigned microseconds);
/* Writes to files with `name` in their path wait until unit_io_release. */
void unit_io_hold(const char *name);
void unit_io_release(void);
/* How many wait, or have waited. */
uint64_t unit_io_held(void);
/* Of the operations of this kind on files with `name` in their path, `skip` go well from now on, and `count` after
 * these fail with `errnum`. One such rule at a time; count 0 ends it. Returns nothing; unit_io_failures counts. */
void unit_io_fail(enum unit_op op, const char *name, uint64_t skip, uint64_t count, int errnum);
uint64_t unit_io_failures(void);
/* Before the next operation of this kind on a file with `name` in its path, `fn` is called, once. */
void unit_io_call(enum unit_op op, const char *name, void (*fn)(void *arg), void *arg);
/* Operations of this kind so far; and the most that were under way at once. */
uint64_t unit_io_count(enum unit_op op);
unsigned unit_io_most(enum unit_op op);
/* When the size of a file with `name` in its path is asked for next, it is told, and then the file is cut to `size`. */
void unit_io_shrink(const char *name, uint64_t size);
/* O_DIRECT is taken by any file system, and `errnum` (0: none) is what the first write of each such descriptor gives;
 * writes that are `is_short` write the half of what they should, whatever the alignment. */
void unit_io_fake_direct(int errnum, int is_short);

/* For tests whose operations show late what another host has written: a refresh helps when it was done `left` times
 * more; `asked` counts. */
struct unit_cached {
    int is_client_cached, left, asked;
};
extern struct unit_cached unit_cached;
int unit_cached_refresh(void);

#endif
