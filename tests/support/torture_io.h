/* File operations that can fail, and a disk that can lose power. They stand in for the operating system's in
 * directories that are opened between torture_io_begin and torture_io_end, in any thread.
 *
 * Of each file it is known what a sync has made durable, of each folder which entries are. When the power goes, any
 * sector of 512 bytes that was written since may be there or not, on its own; a size may have changed or not; a new
 * entry, a rename or a removal whose folder was not synced may have happened or not. A sync that failed counts for
 * nothing, and a later one does not make up for it: so it is on Linux, where a page that could not be written is taken
 * for clean. Writes around the page cache are no safer than others. */
#ifndef DELTAFS_TORTURE_IO_H
#define DELTAFS_TORTURE_IO_H

#include <stdint.h>

enum torture_fault {
    TORTURE_NONE,
    TORTURE_EIO,
    TORTURE_ENOSPC,
    TORTURE_SHORT, /* half of a read or write is done */
    TORTURE_EINTR, /* of what a signal can interrupt */
    TORTURE_CRASH, /* from then on every operation fails; the one at hand is done, done in part, or not */
};

/* The operation number `at`, counted from 0, fails. `seed` is for what is left to chance. */
void torture_io_begin(enum torture_fault fault, uint64_t at, uint64_t seed);
void torture_io_end(void);

/* From the operation number `at` on all fail, as in a crash, whatever else does. */
void torture_io_die(uint64_t at);

/* Nothing fails any more; operations still count, and what is not synced is still known. */
void torture_io_disarm(void);

uint64_t torture_io_count(void); /* operations so far */
/* The number of some operation of those so far that changed MANIFEST, as `random` says; 0 if there is none. */
uint64_t torture_io_manifest(uint64_t random);
int torture_io_has_failed(void); /* whether the fault has come to pass */
int torture_io_open_files(void);

/* The power goes, between torture_io_begin and torture_io_end, when all files are closed. What is left is durable. */
void torture_io_lose_power(void);

#endif
