/* What the parts of a writer share: its configuration and its totals. */
#ifndef DELTAFS_DIRECTORY_WRITER_CONFIG_H
#define DELTAFS_DIRECTORY_WRITER_CONFIG_H

#include "base/options.h"
#include "directory/format/manifest.h"

#define THREADS_AUTO 2 /* beside that of the caller, which may be one of many on its node */

/* What all processes must agree on. */
struct writer_config {
    const char *path;
    uint32_t partitions;
    uint8_t uuid[16];
    enum option_keys keys;
    int64_t value_size;  /* as it is stored with the partitions; -1: any */
    int64_t caller_size; /* without the key of bytes that is before it */
    enum option_partitioner partitioner;
    char partitioner_name[PARTITIONER_NAME_ROOM]; /* of a caller's, which is of this process; */
    struct caller_partitioner caller;             /* without it, writer_put_to says where records go */
    const uint64_t *pivots;                       /* of the first epoch that is written; NULL: none yet */
    const char *schema;                           /* "" for none */
    const char *volumes;  /* folders that buckets are spread over; of who makes the container, "" for none */
    struct strips strips; /* that the values of the data logs are in */
    uint32_t compacted; /* epochs that are stored together, in the first of them; of who makes the container, else 0 */
    int is_index;       /* it is created as an index over files */
    enum option_layout place;
    struct manifest_job job; /* with layout=local: the job, */
    uint32_t writer;         /* and which of its writers this process is */
    enum option_codec codec;
    enum option_sync sync;
    enum option_old_label old_label;
    int is_async;      /* an epoch is committed by the next call */
    uint32_t threads;  /* beside the caller's */
    uint64_t block;    /* bytes */
    uint64_t memory;   /* bytes that this process may use */
    uint64_t reserved; /* of them, for others than the writer */
    uint64_t lease;    /* seconds */
    /* Of a container that is opened again: */
    int is_reopened;
    int may_drop; /* epochs whose lines the manifest has lost are truncated; else they are an error */
    int was_closed;
    uint32_t epochs; /* committed */
    uint64_t last_label;
    uint64_t manifest_size; /* bytes, without an incomplete line */
};

/* Numbers of one epoch, of the partitions of one process or, added up, of all. */
struct writer_totals {
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored;
};

#endif
