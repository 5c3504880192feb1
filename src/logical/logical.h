/* The internal handle of a logical file: opening and closing (logical.c), reading the extent index (logical_refresh.c),
 * writing (logical_write.c), reading (logical_read.c), statistics and whole files (logical_stat.c).
 *
 * All processes that opened the file together make the same collective calls, through struct collective
 * (base/collective.h). */
#ifndef DELTAFS_LOGICAL_LOGICAL_H
#define DELTAFS_LOGICAL_LOGICAL_H

#include <fcntl.h>
#include <deltafs/deltafs_logical.h>
#include "base/collective.h"
#include "base/options.h"
#include "base/private.h"
#include "logical/read/extent_map.h"
#include "logical/write/captured_keys.h"
#include "logical/write/write_order.h"
#include "logical/format/extents.h"
#include "logical/format/frames.h"
#include "logical/format/session.h"

/* The logs of one writer, for reading. */
struct writer_logs {
    uint32_t session, writer;
    uint64_t from; /* bytes of the extent log that this process has read */
    int is_last;   /* state of extent_log_read */
    struct frame_reader reader;
    int is_open;
};

struct deltafs_logical {
    struct io io;
    struct container container;
    struct collective group;
    int (*on_close)(struct deltafs_logical *f); /* does the close, instead of deltafs_private_logical_close; or NULL */
    int mode;                                   /* O_RDONLY, O_WRONLY, O_RDWR */
    int is_atomic;
    uint64_t memory_limit; /* for buffers and the cache */
    uint64_t cache_limit, capture_limit;
    struct memory memory; /* for everything except the cache, and a few bytes for each log */
    enum option_sync sync;
    enum option_extents index;
    char *volumes;

    int accepts_loss;      /* during a refresh: accept that a crash has lost part of an unsynced session */
    int is_cut;            /* a refresh had to accept that */
    int reads_alone;       /* this refresh is this process's own */
    struct session *known; /* other sessions, as of the last refresh */
    size_t known_count, known_capacity;
    struct writer_logs **logs; /* by session, then writer */
    size_t logs_count, logs_capacity, logs_open;
    struct frame_cache cache;
    struct team *team;     /* takes part in reads; NULL: no threads */
    struct extent_map map; /* what this process sees; for a write-only file, what others wrote before */
    struct pieces pieces;  /* of the current read */

    int has_session, has_logs;
    int is_durable;         /* on rank 0: the container, and the session if any, are durable */
    int is_named;           /* the logs' names are durable */
    int is_unsynced;        /* there are writes after the last sync to storage */
    struct session session; /* the session that this handle writes */
    struct frame_log data;
    struct extent_log extents;
    struct extent_list list;        /* writes since the last encoding, all with order `order` */
    struct bytes unpublished;       /* encoded */
    struct bytes batches;           /* published or read, and not yet exchanged within the group and added to the map */
    uint64_t order;                 /* of the next write */
    struct write_order *turn;       /* shared with the process's other handles; NULL: read-only */
    uint64_t size;                  /* of the file */
    struct error lost;              /* earlier writes may be lost: every later call fails */
    struct io_file lock;            /* of atomic mode */
    struct captured_keys *captured; /* keys captured from writes; NULL: none */
};

static inline int logical_is_alone(const deltafs_logical *f)
{
    return f->group.ranks <= 1;
}

static inline int logical_can_read(const deltafs_logical *f)
{
    return f->mode != O_WRONLY;
}

/* Open with a group; takes ownership of it on success. An error of this rank in *e becomes that of all ranks. */
DELTAFS_PRIVATE int deltafs_private_logical_open_group(const char *path, int flags, const deltafs_options *options,
                                                       const struct collective *group, deltafs_logical **out,
                                                       struct error *e);

/* deltafs_logical_close without what a job does at a close. */
DELTAFS_PRIVATE int deltafs_private_logical_close(deltafs_logical *f);

/* Capture the keys of later writes, as far as memory allows, if the options say where a record has its key. The caller
 * takes them out of `captured` before the close, and destroys them. */
DELTAFS_PRIVATE void deltafs_private_logical_capture_keys(deltafs_logical *f, const deltafs_options *o);

/* ---- logical_refresh.c ---- */

/* Collective: exchange what the group has published, read what other jobs have published since, and raise the order
 * above all known orders. An error of this rank in *e becomes that of all. */
int logical_refresh(deltafs_logical *f, struct error *e);
/* As logical_refresh, for this process alone; not collective. */
int logical_refresh_alone(deltafs_logical *f, struct error *e);
/* A session that the last refresh found, or NULL. */
const struct session *logical_known(const deltafs_logical *f, uint32_t number);
/* Make the next logical_refresh read all logs from the beginning: in atomic mode each rank has read logs for itself,
 * without exchanging them. */
void logical_refresh_again(deltafs_logical *f);
/* Append all that this process has published to `out`. */
int logical_read_own(deltafs_logical *f, struct bytes *out, struct error *e);
/* The entry for a writer's logs, created if missing. NULL without memory. */
struct writer_logs *logical_writer_logs(deltafs_logical *f, uint32_t session, uint32_t writer, struct error *e);
/* Add encoded batches to the map, and raise the order above theirs. */
int logical_add_batches(deltafs_logical *f, const struct bytes *b, struct error *e);
/* Take the file's size from the map. */
void logical_find_size(deltafs_logical *f);

/* ---- logical_read.c ---- */

/* Close the data logs that are open for reading. */
int logical_close_logs(deltafs_logical *f, struct error *e);

/* ---- logical_write.c ---- */

/* Create the session and its logs, unless they exist. */
int logical_create_session(deltafs_logical *f, struct error *e);
/* Rank 0: remove the session. Nothing was ever published in it, so its number may be used again. */
int logical_discard_session(deltafs_logical *f, struct error *e);
/* Encode the list's entries, which do not change from then on. */
int logical_seal(deltafs_logical *f, int is_last, struct error *e);
/* Write data and extents to the logs. */
int logical_publish(deltafs_logical *f, int sync, int is_last, struct error *e);

/* Collective: make the file `size` bytes long. */
int logical_truncate(deltafs_logical *f, uint64_t size, struct error *e);

/* ---- logical_atomic.c ---- */

/* Lock the file for a write, or with `is_shared` for reads. DELTAFS_ERR_NOT_FOUND if the file is open for reading only
 * and was never written in atomic mode. */
int logical_lock(deltafs_logical *f, int is_shared, struct error *e);
void logical_unlock(deltafs_logical *f);
/* As logical_refresh_alone, under the lock: no write happens between the reads of two logs. */
int logical_refresh_atomic(deltafs_logical *f, struct error *e);

#endif
