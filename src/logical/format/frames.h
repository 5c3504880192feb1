/* The data log of a logical file's writer: bytes at positions that count from 0, in frames of FRAME_SIZE bytes, each
 * with a checksum. FRAME_GROUP frames and then the page of their checksums make a group, so a position gives the place
 * in the file by arithmetic, and no frame is ever written again once it was flushed. */
#ifndef DELTAFS_LOGICAL_FRAMES_H
#define DELTAFS_LOGICAL_FRAMES_H

#include "base/memory.h"
#include "base/team.h"
#include "io/io.h"

/* ---- Cache ---- */

/* Slots of one size, each for what its owner has at one number, in sets by hash; of a set the one with the
 * lowest `used` is reused. */
struct frame_slot {
    uint64_t owner, number;
    uint64_t valid; /* a bit for each frame that is there and was verified */
    uint64_t used;  /* the pool's `uses` at the last use, or less; 0: never */
    uint8_t *bytes;
};

struct frame_pool {
    size_t size; /* bytes of a slot */
    size_t sets, ways;
    struct frame_slot *slot; /* NULL: not used yet */
    uint64_t uses;
};

/* Shared by the readers of a handle, for one thread: windows of verified frames, and pages of checksums. */
struct frame_cache {
    size_t bytes;
    uint64_t owners, readers; /* so far; now */
    struct frame_pool windows, pages;
    struct team *team; /* takes part in reads; NULL: none */
};

/* At most `bytes`, but a few windows at least. Destroy it after its readers. */
void frame_cache_init(struct frame_cache *c, size_t bytes);
void frame_cache_fini(struct frame_cache *c);

/* A log as something to read. */
struct frame_source {
    struct io_file *file;
    struct frame_cache *cache;
    uint64_t owner;      /* in the cache */
    uint32_t seed;       /* of the frames' checksums */
    uint64_t end;        /* positions below it are in the file */
    uint64_t next;       /* end of the last read: a read that continues there reads ahead */
    const uint8_t *page; /* the checksums of the writer's own last group; NULL: all are in the file */
};

/* ---- Writing ---- */

struct frame_log {
    struct io_file file;
    uint64_t base;            /* position of the buffer's first byte: all before it is in the file */
    uint8_t *buffer;          /* it ends within the group that `base` is in */
    size_t used, capacity;    /* the capacity is a power of two that divides a group */
    uint8_t page[4096];       /* checksums of that group's whole frames, up to the end */
    int is_page_due;          /* it has more of them than the file */
    int is_sync_due, is_lost; /* written since the last sync; a sync has failed */
    uint64_t room;            /* end of the space that is allocated in the file; 0: none */
    uint64_t flushed, synced; /* `base` at the last flush, and at the last sync */
    uint64_t reach;           /* end of the last page of checksums that was written */
    int is_crowded;           /* nothing more is allocated */
    uint32_t seed;
    struct frame_source own;
    struct memory *memory;
};

/* Create the file, which must not be there. `capacity`: bytes of the buffer, about. */
int frame_log_create(struct frame_log *l, struct io *io, const char *path, uint32_t session, uint32_t writer,
                     const uint8_t uuid[16], size_t capacity, struct memory *memory, struct error *e);
/* Close without flushing, and free; a log that is all zero is fine. */
int frame_log_close(struct frame_log *l, struct error *e);

/* The position that the next byte gets. */
static inline uint64_t frame_log_end(const struct frame_log *l)
{
    return l->base + l->used;
}

/* If writing fails, nothing is appended; what was appended before is kept, and written by a later call. */
int frame_log_append(struct frame_log *l, const void *bytes, size_t n, struct error *e);
/* Write all that was appended, padded with zeros to a whole frame: the end moves there. A failed write can be repeated;
 * after a failed sync all flushes fail, as nobody knows what the system has lost. */
int frame_log_flush(struct frame_log *l, int sync, struct error *e);
/* The last flush: the checksums of an incomplete group go behind its last frame, where the file then ends. */
int frame_log_finish(struct frame_log *l, int sync, struct error *e);
void frame_log_use_cache(struct frame_log *l, struct frame_cache *c); /* which outlives the log */
/* Bytes that were appended, flushed or not; after frame_log_use_cache. */
int frame_log_read(struct frame_log *l, uint64_t position, void *bytes, size_t n, struct error *e);

/* ---- Reading ---- */

/* Any writer's log; it may be written at the same time. */
struct frame_reader {
    struct io_file file;
    uint64_t size; /* of the file, as of the last check */
    struct frame_source source;
};

/* A file that is missing is DELTAFS_ERR_DAMAGED. The reader is closed also if this fails. */
int frame_reader_open(struct frame_reader *r, struct io *io, const char *path, uint32_t session, uint32_t writer,
                      const uint8_t uuid[16], struct frame_cache *cache, struct error *e);
int frame_reader_close(struct frame_reader *r, struct error *e);
/* Bytes that were flushed, verified. Whole frames of a long read come straight into `bytes`. */
int frame_reader_read(struct frame_reader *r, uint64_t position, void *bytes, size_t n, struct error *e);
/* Whether the file has the checksums of the frame at a position. */
int frame_reader_has_sums(struct frame_reader *r, uint64_t position);

/* ---- Both ---- */

/* The seed of the checksums of a writer's frames, and the checksum of frame number `frame`. */
uint32_t frame_seed(const uint8_t uuid[16], uint32_t session, uint32_t writer);
uint32_t frame_sum(uint32_t seed, uint64_t frame, const uint8_t *bytes);
/* Offsets in the file: of the byte at a position, and of the checksums of its group, if it is complete or the log is
 * not finished. */
uint64_t frame_offset(uint64_t position);
uint64_t frame_page_offset(uint64_t position);

void frame_source_init(struct frame_source *s, uint32_t seed, struct frame_cache *cache);
/* Bytes below the source's end. */
int frame_source_read(struct frame_source *s, uint64_t position, void *bytes, size_t n, struct error *e);

#endif
