/* A logical file's handle, as its parts see it: opening and closing (logical.c), coming to know what stands where
 * (logical_index.c), writing (logical_write.c), reading (logical_read.c), and asking about it (logical_ask.c).
 *
 * All processes that opened the file together run the same collective calls; what they need of each other for that is
 * struct logical_group, which libdeltafs_mpi has over MPI. A process alone has none of it, and skips it. A local error
 * never skips a call of the group: it is carried to the next agreement. */
#ifndef DELTAFS_CORE_LOGICAL_H
#define DELTAFS_CORE_LOGICAL_H

#include <fcntl.h>
#include <string.h>
#include <deltafs/deltafs_logical.h>
#include "base/options.h"
#include "base/private.h"
#include "logical/read/extent_map.h"
#include "logical/write/captured_keys.h"
#include "logical/format/extents.h"
#include "logical/format/frames.h"
#include "logical/format/session.h"

/* Bytes that grow. */
struct bytes {
    struct buffer buffer;
    size_t used;
};

static inline int bytes_append(struct bytes *b, const void *p, size_t n, struct error *e)
{
    int status = buffer_reserve(&b->buffer, b->used + n, "the index of a logical file", e);

    if (status != DELTAFS_OK || n == 0)
        return status;
    memcpy(b->buffer.bytes + b->used, p, n);
    b->used += n;
    return DELTAFS_OK;
}

/* Collective calls of the processes that have a file open together. */
struct logical_group {
    void *ctx;
    uint32_t rank, ranks;
    /* The first error of any is the error of all; returns its status. */
    int (*agree)(void *ctx, struct error *e);
    int (*max)(void *ctx, uint64_t *values, int n, struct error *e);
    /* Rank 0's bytes to all, instead of what theirs are, and DELTAFS_OK; or its error, if *e is one there. An error of
     * another rank stays in its *e, or comes there, to be carried to the next agreement; it has no bytes then. */
    int (*tell)(void *ctx, struct bytes *bytes, struct error *e);
    /* As agree; and if all are well, everybody's bytes, one rank's after another's, behind what `all` has. */
    int (*gather)(void *ctx, const void *mine, size_t n, struct bytes *all, struct error *e);
    void (*destroy)(void *ctx);
};

/* One writer's logs, as a reader knows them. */
struct source {
    uint32_t session, writer;
    uint64_t from;  /* of the extent log: read so far, if it is this process that reads it */
    int is_last;    /* what extent_log_read keeps with it */
    uint64_t began; /* both, when the attempt to learn that is under way began */
    int was_last;
    struct frame_reader reader;
    int is_open;
};

struct deltafs_logical {
    struct io io;
    struct container container;
    struct logical_group group;
    int mode; /* O_RDONLY, O_WRONLY, O_RDWR */
    int is_atomic;
    uint64_t memory_limit; /* for buffers and the cache */
    uint64_t cache_limit, kept_limit;
    struct memory memory; /* of all but the cache, which has its part of the option, and a few bytes for each log */
    enum option_sync sync;
    enum option_extents index;
    char *volumes;
    struct error error;

    int is_forgiving;      /* while it is learnt: what a crash may have taken of a session is done without */
    int is_cut;            /* that was so */
    struct session *known; /* other sessions, as they were when they were last looked at */
    size_t known_count, known_capacity;
    struct bytes heard;     /* read from others' logs, and not in the map yet */
    struct source **source; /* by session, then writer */
    size_t source_count, source_capacity, source_open;
    struct frame_cache cache;
    struct team *team;     /* takes part in long reads; NULL: none does */
    struct extent_map map; /* what this process sees; of a file open for writing only, what others wrote before */
    struct pieces pieces;  /* of the read under way */

    int has_session, has_logs;
    int is_durable;         /* on rank 0: container, and session if there is one */
    int is_named;           /* the logs' names */
    int is_unsynced;        /* something was written since the last sync that went to storage */
    struct session session; /* what this one adds to */
    struct frame_log data;
    struct extent_log extents;
    struct extent_list list;    /* written since it was last encoded: all of the order `order` */
    struct bytes unpublished;   /* encoded */
    struct bytes news;          /* published, and the others of the group have not been told */
    uint64_t order;             /* of what is written next */
    uint64_t size;              /* of the file */
    struct error lost;          /* what was written may be gone: no call can go on */
    struct io_file lock;        /* of atomic mode */
    struct captured_keys *kept; /* keys of what was written; NULL: none */
};

static inline int logical_is_alone(const deltafs_logical *f)
{
    return f->group.ranks <= 1;
}

static inline int logical_can_read(const deltafs_logical *f)
{
    return f->mode != O_WRONLY;
}

/* Whether all of them are well; with the first error of any of them in *e. */
int logical_agree(deltafs_logical *f, struct error *e);

/* Everybody's bytes, where there is no error to tell. */
int logical_gather(deltafs_logical *f, const void *mine, size_t n, struct bytes *all, struct error *e);

/* Open with a group; takes it over on success. If *e is an error of this rank's, it becomes that of all. */
DELTAFS_PRIVATE int deltafs_private_logical_open_group(const char *path, int flags, const deltafs_options *options,
                                                       const struct logical_group *group, deltafs_logical **out,
                                                       struct error *e);

/* Keep the keys of what is written from now on, as far as the memory goes, if the options say where in a record they
 * are. Whoever wants them takes them out of `kept` before the file is closed, and destroys them. */
DELTAFS_PRIVATE void deltafs_private_logical_capture_keys(deltafs_logical *f, const deltafs_options *o);

/* ---- logical_index.c ---- */

/* Collective: tell the others of the group the news, read what anybody else has published since, and raise the order
 * above all that is known. If *e is an error of this rank's, it becomes that of all. */
int logical_refresh(deltafs_logical *f, struct error *e);
/* Collective, of a file open for writing: tell each other what was written, so far as they may read it, and raise the
 * order; nothing more. */
int logical_share(deltafs_logical *f, struct error *e);
/* The same as logical_refresh for this process alone, whoever else has the file open with it. */
int logical_refresh_alone(deltafs_logical *f, struct error *e);
/* Let the next logical_refresh read all logs from the beginning: in atomic mode ranks have read logs that were others'
 * share, and told nobody. */
void logical_refresh_again(deltafs_logical *f);
/* All that this process has published, behind what `out` has. */
int logical_read_own(deltafs_logical *f, struct bytes *out, struct error *e);
/* The logs of a writer; made known if they are not. NULL without memory. */
struct source *logical_source(deltafs_logical *f, uint32_t session, uint32_t writer, struct error *e);
/* The file has been cut to nothing, which the own session's log says: remove the closed sessions below it, which have
 * nothing that can be read any more. */
void logical_recreate_session(deltafs_logical *f);

/* ---- logical_write.c ---- */

/* A session, and logs in it, if there are none yet. */
int logical_create_session(deltafs_logical *f, struct error *e);
/* Rank 0: remove the session, in which nothing was ever published: others can know no more of it than that it is not
 * closed, so that its number may be claimed again. */
int logical_discard_session(deltafs_logical *f, struct error *e);
/* Encode what the list has, which from then on does not change. */
int logical_seal(deltafs_logical *f, int is_last, struct error *e);
/* Put data and extents into the logs. */
int logical_publish(deltafs_logical *f, int sync, int is_last, struct error *e);

/* As logical_refresh_alone, in atomic mode: the logs are read one after another, and so no write comes meanwhile, lest
 * a later one be seen without an earlier one. */
int logical_refresh_atomic(deltafs_logical *f, struct error *e);

/* Collective: make the file `size` bytes long. */
int logical_truncate(deltafs_logical *f, uint64_t size, struct error *e);

#endif
