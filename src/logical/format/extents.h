/* Extents: where in a logical file a writer's bytes belong. A writer adds its writes to a list, which keeps regular
 * patterns as runs. To publish them, it encodes the list as a batch (extent_list_encode), appends that to its extent
 * log (extent_log_append), and clears the list (extent_list_clear). Readers decode the batches.
 *
 * A run is pieces of one size at one distance in the file, and at one distance in the data log: the pieces' size, or,
 * of several variables written in turn, the size of all of them. So a strided pattern of any length is one entry, and
 * that of k variables is k. */
#ifndef DELTAFS_LOGICAL_EXTENTS_H
#define DELTAFS_LOGICAL_EXTENTS_H

#include "base/buffer.h"
#include "io/io.h"

#define EXTENT_MAX ((uint64_t)INT64_MAX) /* no offset, position or order is above; nor is an end */

enum extent_kind {
    EXTENT_DATA = 0,
    EXTENT_TRUNCATE = 1, /* the file's size becomes `offset`: what is beyond, and lower in order, is gone */
    EXTENT_EXTEND = 2,   /* the file's size becomes at least `offset` */
};

struct extent {
    uint64_t offset;          /* in the logical file, of the first piece; of the others the new size */
    uint64_t size;            /* of a piece; of the others 0 */
    uint64_t stride;          /* from one piece's begin to the next's, at least size if count > 1; 0 else */
    uint64_t count;           /* pieces, at least 1; of the others 1 */
    uint64_t position;        /* in the writer's data log, of the first piece; of the others: its end at that time */
    uint64_t position_stride; /* from one piece's begin to the next's in the log, as `stride` is in the file */
    uint64_t order;
    uint32_t session, writer;
    enum extent_kind kind;
};

/* Whether all numbers are as said above, without any overflow. */
int extent_is_valid(const struct extent *x);

/* Where the last piece ends, in the file and in the data log; of a valid one. */
static inline uint64_t extent_end(const struct extent *x)
{
    return x->offset + (x->count - 1) * x->stride + x->size;
}

static inline uint64_t extent_position_end(const struct extent *x)
{
    return x->position + (x->count - 1) * x->position_stride + x->size;
}

/* ---- What a writer has written since it published last ---- */

/* Variables written in turn that become a run each. The search for them costs as much. */
#define EXTENT_COLUMNS_MAX 32

struct extent_list {
    struct extent *extent; /* all of them, at any time; without order, session and writer */
    size_t count, capacity;
    struct memory *memory;                    /* NULL: not counted */
    int is_open;                              /* the last entry is a piece that may go on */
    size_t first;                             /* entries before this one do not change any more, but for the columns */
    size_t examined;                          /* entries before this one have been compared with those before them */
    uint32_t repeats[EXTENT_COLUMNS_MAX + 1]; /* by period: how many closed entries in a row go on with it */
    /* The variables written in turn; columns 0: there are none. */
    size_t column_first;
    uint32_t columns, column_next;
    uint64_t column_step; /* in the data log, from one turn to the next */
};

/* Bytes were written: `position` is never below that of the call before. A piece that continues the last one, in file
 * and log, extends it; a piece that covers the last one replaces it. DELTAFS_ERR_INVALID beyond EXTENT_MAX,
 * DELTAFS_ERR_MEMORY; then the list is unchanged. */
int extent_list_add(struct extent_list *l, uint64_t offset, uint64_t size, uint64_t position, struct error *e);
/* The file was truncated or extended to `size`; `position` is where the next byte goes. */
int extent_list_mark(struct extent_list *l, enum extent_kind kind, uint64_t size, uint64_t position, struct error *e);
/* The last piece is complete: fold it into the runs. */
void extent_list_settle(struct extent_list *l);
void extent_list_clear(struct extent_list *l); /* keeps the memory */
void extent_list_fini(struct extent_list *l);

/* ---- Batches ---- */

/* Settle the list, of at most BATCH_ENTRIES_MAX entries, and append it to the *n bytes of `out` as a batch. `is_last`:
 * no batch follows in this log. `data_end`: where the data log ends, or later. */
int extent_list_encode(struct extent_list *l, uint32_t seed, uint32_t session, uint32_t writer, uint64_t order,
                       uint64_t data_end, int is_last, struct buffer *out, size_t *n, struct error *e);

typedef int extent_fn(const struct extent *x, void *arg, struct error *e);

/* Decode consecutive batches in bytes[0 .. n), which are at `base` of `path`. `fn` (may be NULL) gets each extent of
 * the batches that match their checksums; a status other than DELTAFS_OK ends the decoding. *used: bytes of whole
 * batches. The rest is a torn tail: a batch that is truncated or lacks a sector, or zeros. *is_last: whether the last
 * batch has that flag; unchanged if there is no batch. Both may be NULL. Anything else is DELTAFS_ERR_DAMAGED. */
int extent_batches_decode(const uint8_t *bytes, size_t n, uint32_t seed, const char *path, uint64_t base, extent_fn *fn,
                          void *arg, size_t *used, int *is_last, struct error *e);

/* ---- Extent logs ---- */

struct extent_log {
    struct io_file file;
    uint64_t end;
    int is_dirty;             /* the file may have parts of a failed write behind the end */
    int is_sync_due, is_lost; /* appended since the last sync; a sync has failed */
};

/* Create the file and write its header. The caller closes it, also after an error. */
int extent_log_create(struct extent_log *l, struct io *io, const char *path, uint32_t writer, const uint8_t uuid[16],
                      struct error *e);
/* Append batches, or only sync. If writing fails, the end is unchanged, and the next call truncates the file there.
 * After a failed sync all calls fail, as nobody knows what the system has lost. */
int extent_log_append(struct extent_log *l, const void *batches, size_t n, int sync, struct error *e);
int extent_log_close(struct extent_log *l, struct error *e);

/* Append what an extent log has from *from on to the *n bytes of `out`; *from moves to the end of the last whole batch,
 * so that the next call reads only what is new. *from and *is_last are 0 at first. Everything is checked. `is_whole`: a
 * torn tail is damage, and so is a log without a last batch. DELTAFS_ERR_NOT_FOUND if there is no such file. After an
 * error *from, *is_last and *n are unchanged. */
int extent_log_read(struct io *io, const char *path, uint32_t session, uint32_t writer, const uint8_t uuid[16],
                    int is_whole, uint64_t *from, int *is_last, struct buffer *out, size_t *n, struct error *e);

/* The same, but the batches are not kept: `take` gets them, some at a time. What it got before an error it gets again.
 * `buffer` is for what was read and not passed on yet. */
struct extent_sink {
    int (*take)(void *arg, const void *batches, size_t n, struct error *e);
    void *arg;
};
int extent_log_pass(struct io *io, const char *path, uint32_t session, uint32_t writer, const uint8_t uuid[16],
                    int is_whole, uint64_t *from, int *is_last, struct buffer *buffer, const struct extent_sink *sink,
                    struct error *e);

/* ---- Indexes of sessions ---- */

/* One file with all batches of all extent logs of a closed session: readers open it instead of the logs. */
int extent_index_write(struct io *io, const char *path, uint32_t session, const uint8_t uuid[16], const void *batches,
                       size_t n, int sync, struct error *e);
/* Append the batches to the *n bytes that `out` holds. DELTAFS_ERR_DAMAGED if anything is wrong; the logs have the
 * same. */
int extent_index_read(struct io *io, const char *path, uint32_t session, const uint8_t uuid[16], struct buffer *out,
                      size_t *n, struct error *e);

#endif
