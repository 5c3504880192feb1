/* The index log of a partition: segments of leaves, each with a fence (where the leaves are) and a footer.
 *
 * Writing: index_write_segment merges the runs of a segment by key and appends leaves, fence and footer; a clean close
 * appends the tail, which repeats all footers and fences, so that a reader gets them in one read.
 *
 * Reading: index_reader_open takes the segments from the tail, or where there is none (a crash, a directory still being
 * written) looks for footers from the end of the file backwards; index_leaf_of says which leaf to read. */
#ifndef DELTAFS_DIRECTORY_INDEX_H
#define DELTAFS_DIRECTORY_INDEX_H

#include "directory/format/fence.h"
#include "directory/format/leaf.h"
#include "io/window.h"

/* A footer, decoded. */
struct footer {
    uint32_t partition;
    uint32_t epoch;
    uint32_t segment;
    int is_last;        /* of its epoch */
    int is_lost;        /* its leaf says that records are lost; not stored in the footer */
    unsigned key_shift; /* the segment's keys are without so many of their lowest bits */
    uint32_t leaves;
    uint32_t runs;
    uint32_t fence_length;
    uint64_t fence_offset;
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t previous; /* offset of the footer before, 0 if none */
    uint64_t first_key, last_key;
    uint64_t data_end;
    uint64_t offset;   /* its own */
    uint32_t checksum; /* of one that was read: two segments that lie at the same place, but are not the same, differ in
                          it */
};

/* Scratch memory that the index logs of a process share. */
struct index_scratch {
    struct buffer leaf;
    struct buffer fence;
    size_t fence_max; /* bytes of a fence beyond which another segment begins; 0: none are */
};

struct index_writer {
    struct log log;
    struct index_scratch *scratch;
    uint32_t partition;
    struct memory *memory;
    size_t tail_fences_max; /* bytes of fences beyond which they are left out of the tail */
    struct index_end {
        uint64_t log_end;     /* where this was so */
        uint64_t last_footer; /* 0: none yet */
        uint32_t footers;     /* so far */
        uint64_t fences;      /* bytes of theirs */
    } end;                    /* now, but for log_end */
};

/* Go on with an index log behind the epochs that a reader of it has found. `end` NULL: create it (log_create). */
int index_writer_open(struct index_writer *w, struct io *io, const char *path, uint32_t partition,
                      const uint8_t uuid[16], const struct index_end *end, int is_new, size_t capacity,
                      size_t tail_fences_max, struct index_scratch *scratch, struct memory *memory, struct error *e);

/* Bytes of memory that merging so many runs takes, besides the scratch memory. */
size_t index_merge_bytes(uint32_t runs);
/* Merge `runs` (may be none) into a segment; or several, where a fence would grow too long: then the last of them has
 * the raw bytes of all. The footer's epoch, segment (the first's), is_last, key_shift, bytes_raw and data_end are the
 * caller's; the others are filled in, and are the last one's. */
int index_write_segment(struct index_writer *w, const struct run *runs, uint32_t run_count, struct footer *footer,
                        struct error *e);
/* What a reader must not take for absent: records of keys, or hashes, from `low` to `high`, once at `offset` of the
 * data log in so many bytes. */
struct index_lost {
    uint64_t low, high, offset, length;
};
/* A segment that says so: whoever looks for such a key gets DELTAFS_ERR_DAMAGED. Of the footer epoch, segment, is_last
 * and data_end are the caller's. */
int index_write_lost(struct index_writer *w, const struct index_lost *lost, struct footer *footer, struct error *e);
/* The header and the seal of a fence of `n` bytes, whose leaves begin at an offset. A footer's FOOTER_SIZE bytes. */
void index_put_fence(const struct footer *f, uint64_t leaves_offset, uint32_t seed, uint8_t *h, size_t n);
void index_put_footer(const struct footer *f, uint32_t seed, uint8_t *p);
/* This point; and the way back to it. */
struct index_end index_mark(const struct index_writer *w);
int index_rewind(struct index_writer *w, const struct index_end *mark, struct error *e);
/* Append the tail, which is read together from the log along the footers' chain, and flush; *length gets its bytes. */
int index_write_tail(struct index_writer *w, uint64_t *length, struct error *e);

/* What a reader knows of one segment. */
struct segment {
    struct footer footer;
    struct fence fence; /* its bytes: NULL until it was read and checked */
};

struct index_reader {
    struct io_file file;
    uint32_t partition;
    uint32_t seed;
    uint32_t compacted; /* epochs that the manifest says are stored with the first; set behind index_reader_open */
    uint64_t size;
    uint32_t count;
    struct segment *segment; /* by epoch, then segment */
    size_t capacity;
    uint64_t tail_offset; /* of the tail found, or 0 */
    uint64_t tail_start;  /* of what ends the file as a tail does; UINT64_MAX if nothing does */
    struct index_known {
        uint64_t epochs, at; /* so many, says the footer at that offset */
    } committed,             /* were, as one behind them, or a tail with them, says */
        seen;                /* have a footer, or come before one that has */
    struct memory *memory;   /* NULL: not counted */
};

/* Open the log and find the segments of all epochs below `epochs`, of which those below `committed` must be there: if
 * they are not, and the file may be seen late, it is looked at again for a while. `tail_length` is the manifest's bound
 * of the tails' lengths, or 0. An epoch whose segments are damaged is left out: index_epoch finds that. `tail` gets the
 * error of a tail that is not right, and stays as it is otherwise. */
int index_reader_open(struct index_reader *r, struct io *io, const char *path, uint32_t partition,
                      const uint8_t uuid[16], uint32_t committed, uint32_t epochs, uint64_t tail_length,
                      struct error *tail, struct error *e);
int index_reader_close(struct index_reader *r, struct error *e);

/* The segments of an epoch, complete and with their fences: *first and the count. DELTAFS_ERR_DAMAGED. */
int index_epoch(struct index_reader *r, uint32_t epoch, struct segment **first, uint32_t *count, struct error *e);

/* Where the log, and the data log, end with the last of `epochs` epochs (1 or more), all of which must be there. */
int index_find_end(const struct index_reader *r, uint32_t epochs, struct index_end *end, uint64_t *data_end,
                   struct error *e);

/* The epochs that were committed, by what the log has. An epoch's last footer, and a tail, are written once the line of
 * the one before is in the manifest (its others may be written while that is awaited); and of a directory whose last
 * word is that it was closed, a log has no others than committed ones. */
struct index_known index_committed(const struct index_reader *r, int is_closed);
/* DELTAFS_ERR_DAMAGED if they are more than the manifest has. */
int index_check_committed(const struct index_reader *r, uint64_t epochs, int is_closed, struct error *e);

/* The same as index_find_end for a writer that goes on with the logs and truncates the tail: reads nothing from the
 * tail, and checks all footers and fences in their own places. If index_check_committed finds more epochs, that is an
 * error, unless `may_drop`. Of no epochs there need not be a log. While it works it takes 200 to 400 bytes of the
 * memory for each segment, and for one fence its bytes twice and 2 for each leaf. */
int index_resume(struct io *io, const char *path, uint32_t partition, const uint8_t uuid[16], uint32_t epochs,
                 int is_closed, int may_drop, struct memory *memory, struct index_end *end, uint64_t *data_end,
                 struct error *e);

/* Take the fence of a segment, of the footer's fence_length bytes; returns a text on what is wrong, or NULL. *status is
 * set if memory is what is missing. */
const char *index_take_fence(struct index_reader *r, struct segment *s, const uint8_t *p, int *status, struct error *e);
/* Read a segment's own fence and footer, which a tail makes a reader pass over, and check them. */
int index_verify_segment(struct index_reader *r, const struct segment *s, struct error *e);

/* The first leaf of the segment that can hold `key` (shifted, as all of a segment's); *leaves is how many after it can
 * too. 0 leaves if none can. */
uint32_t index_leaf_of(const struct segment *s, uint64_t key, uint32_t *leaves);

/* Take leaf number `i` of a segment apart, but for its run table, which was read from where its fence says; LEAF_SLACK
 * bytes can be read behind it. */
int index_parse_leaf(struct index_reader *r, const struct segment *s, uint32_t i, const uint8_t *bytes,
                     struct leaf *leaf, struct error *e);
/* Read leaf number `i` of a segment into `bytes` and take all of it apart. */
int index_read_leaf(struct index_reader *r, const struct segment *s, uint32_t i, struct window *window,
                    struct buffer *bytes, struct leaf *leaf, struct error *e);

#endif
