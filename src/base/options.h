/* The values of options, as the library reads them. The table of options is in options.c. */
#ifndef DELTAFS_BASE_OPTIONS_H
#define DELTAFS_BASE_OPTIONS_H

#include "base/error.h"
#include "base/private.h"

/* The rows of the table, in its order. */
enum option_id {
    OPTION_BLOCK,
    OPTION_CODEC,
    OPTION_COMMIT,
    OPTION_EPOCH,
    OPTION_EXTENTS,
    OPTION_HDF5,
    OPTION_INDEX,
    OPTION_INDEX_BY,
    OPTION_KEY,
    OPTION_KEYS,
    OPTION_LAYOUT,
    OPTION_LEASE,
    OPTION_MEMORY,
    OPTION_OLD_LABEL,
    OPTION_PADDING,
    OPTION_PARTITIONER,
    OPTION_PARTITIONS,
    OPTION_PROGRESS,
    OPTION_READ_CACHE,
    OPTION_READ_THREADS,
    OPTION_ROUTE,
    OPTION_SCHEMA,
    OPTION_SKIP,
    OPTION_STATS,
    OPTION_SYNC,
    OPTION_THREADS,
    OPTION_VALUE_SIZE,
    OPTION_VOLUMES,
    OPTION_COUNT
};

#define OPTION_AUTO UINT64_MAX /* the number of an option that is "auto", "any" or "none" */

enum option_codec { CODEC_NONE, CODEC_SNAPPY };
enum option_commit { COMMIT_WAIT, COMMIT_ASYNC };
enum option_extents { EXTENTS_PARALLEL, EXTENTS_BROADCAST, EXTENTS_FLATTEN };
enum option_keys { KEYS_U64, KEYS_BYTES };
enum option_layout { LAYOUT_PARTITIONED, LAYOUT_LOCAL };
enum option_old_label { OLD_LABEL_DISCARD, OLD_LABEL_KEEP, OLD_LABEL_SKIP };
enum option_partitioner { PARTITIONER_HASH, PARTITIONER_RANGE, PARTITIONER_CALLER };
enum option_progress { PROGRESS_CALLS, PROGRESS_THREAD };
enum option_route { ROUTE_AUTO, ROUTE_DIRECT, ROUTE_3HOP, ROUTE_GRID };
enum option_sync { SYNC_NONE, SYNC_COMMIT, SYNC_CLOSE };

/* The number of an option: bytes, a count, or the index of the chosen word. */
DELTAFS_PRIVATE uint64_t deltafs_private_options_number(const deltafs_options *o, enum option_id id);
DELTAFS_PRIVATE const char *deltafs_private_options_text(const deltafs_options *o, enum option_id id);

#define PARTITIONER_NAME_ROOM 32

/* A caller's own partitioner. */
struct caller_partitioner {
    deltafs_partition_fn fn; /* NULL: none is given */
    void *arg;
};
/* The one of this name. */
DELTAFS_PRIVATE struct caller_partitioner deltafs_private_options_partitioner(const deltafs_options *o,
                                                                              const char *name);
/* Whether it can be the name of one; 0 for the words of the option. */
int partitioner_is_name(const char *name);

/* Whether the caller or the environment has set the option, also to its default. */
DELTAFS_PRIVATE int deltafs_private_options_is_given(const deltafs_options *o, enum option_id id);
/* Give `to` the values of `from`, and where they came from. */
DELTAFS_PRIVATE int deltafs_private_options_copy(deltafs_options *to, const deltafs_options *from, struct error *e);
/* Let the option be this unless it is said otherwise: as if it had not been set. */
DELTAFS_PRIVATE int deltafs_private_options_prefer(deltafs_options *o, enum option_id id, const char *text,
                                                   struct error *e);
/* Reset the option to its default, as if it had not been set. */
DELTAFS_PRIVATE int deltafs_private_options_reset(deltafs_options *o, enum option_id id, struct error *e);
/* A directory that is opened for writing may have another's partitioner: no record is put. */
DELTAFS_PRIVATE void deltafs_private_options_mark_repair(deltafs_options *o);
DELTAFS_PRIVATE int deltafs_private_options_is_repair(const deltafs_options *o);
/* A directory that is created with these options is an index over files. */
DELTAFS_PRIVATE void deltafs_private_options_mark_index(deltafs_options *o);
DELTAFS_PRIVATE int deltafs_private_options_is_index(const deltafs_options *o);
/* DELTAFS_ERR_OPTION: the option asks for another than the directory at `path` was made with, which `is` that ("": it
 * was made without one). */
DELTAFS_PRIVATE int deltafs_private_options_refuse(const deltafs_options *o, enum option_id id, const char *path,
                                                   const char *is, struct error *e);

/* Where calls without a handle leave their message; deltafs_errmsg(NULL) reads it. */
DELTAFS_PRIVATE struct error *deltafs_private_thread_error(void);

/* The status of a public function that was called; if it is an error, its message becomes *e. */
static inline int error_of_call(int status, struct error *e)
{
    if (status != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    return status;
}

/* The status that a public function returns; if it is an error, its message is that in *e. */
static inline int error_of_thread(int status, const struct error *e)
{
    if (status != DELTAFS_OK)
        *deltafs_private_thread_error() = *e;
    return status;
}

#endif
