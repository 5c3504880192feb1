/* What a repair has found and does: shared by repair.c, which decides, and examine.c, which looks at the logs. */
#ifndef DELTAFS_REPAIR_REPAIR_STATE_H
#define DELTAFS_REPAIR_REPAIR_STATE_H

#include "repair/repair_parts.h"
#include "io/lease.h"

enum { REPAIR_INDEX, REPAIR_DATA, REPAIR_LOGS };

#define NO_EPOCH UINT64_MAX

/* What was found of a partition. */
struct repair_part {
    char *lost;                   /* why its index log must be rebuilt; NULL: it need not */
    char *bad;                    /* why it cannot be repaired */
    uint64_t bad_at;              /* the first damage of the data log, if the index log is rebuilt */
    uint64_t whole;               /* epochs, the first, of which its logs have all */
    int has_last;                 /* it has the epoch behind the last committed one, */
    uint64_t records;             /* and so many records of it */
    struct index_known committed; /* by what its index log has */
    uint64_t seen;                /* epochs that it has something of */
    int has_index;                /* there is an index log, */
    int has_tail;                 /* which has nothing but a tail behind its last committed epoch */
    int lacks_tail;               /* though the directory is closed */
    uint64_t size[REPAIR_LOGS], end[REPAIR_LOGS], last_end[REPAIR_LOGS]; /* ends: with the last committed epoch; with
                                                                            one more */
};

struct repair {
    const char *path;
    const struct deltafs_repair_options *options;
    const deltafs_options *settings; /* lease and memory */
    deltafs_repair_fn fn;
    void *arg;
    struct io io;
    struct lease lease;
    struct manifest manifest;
    uint64_t manifest_size; /* with an incomplete last line */
    struct text text;       /* what the manifest is to be; without bytes: what it is */
    struct error damage;    /* why it is to be restored; of its copy; or DELTAFS_OK */
    int is_dropped;         /* epochs were discarded */
    struct error first;     /* of what cannot be repaired */
    struct error losses;    /* the first of what is lost, though all else is done */
    struct repair_part *part;
    uint64_t committed;    /* epochs, by what the logs have: where it is more than the manifest has, that lost lines */
    uint32_t committed_in; /* the partition that says so */
    uint64_t seen;         /* epochs that any log has something of */
    uint32_t lost;         /* partitions whose index log must be rebuilt */
    uint64_t *records;     /* of each epoch, as the footers say */
    int has_noted;         /* the job noted the epoch whose line was next */
    struct lease_epoch noted;
    int is_kept; /* the epoch behind the last committed one: it is to be committed */
    struct manifest_epoch last;
    uint64_t reported;
};

/* Say what has been done, or is to be. */
__attribute__((format(printf, 3, 4))) void repair_say(struct repair *r, int status, const char *fmt, ...);
#define repair_report(r, ...) repair_say(r, DELTAFS_OK, __VA_ARGS__)
#define repair_remark(r, ...) repair_say(r, DELTAFS_REPAIR_REMARK, __VA_ARGS__)

const char *repair_plural(uint64_t n);
/* The path of a log, put into `path`. */
char *repair_log_path(const struct repair *r, int log, uint32_t partition, char path[PATH_ROOM]);
/* A file's size; DELTAFS_ERR_DAMAGED if it is missing. */
int repair_size(struct repair *r, const char *path, uint64_t *size, struct error *e);

/* Looking at the logs may take longer than a lease counts: that the directory is still ours, before any of it is
 * replaced. DELTAFS_ERR_BUSY. */
int repair_renew(struct repair *r, struct error *e);

/* Look at all logs, and restore what can be. */
int repair_inspect(struct repair *r, struct error *e);
/* At one partition's, again. */
int repair_partition(struct repair *r, uint32_t partition, struct error *e);
void repair_forget(struct repair *r);

/* Restore footers and fences of an index log, from what the reader has of them: the tail's copy; and fences from the
 * leaves. If one cannot be, *whole gets its epoch. */
int restore_segments(struct repair *r, struct index_reader *index, uint64_t *whole, struct error *e);
/* Restore a log's header, if the log is known to be this partition's by what else is in it. */
int restore_header(struct repair *r, const struct index_reader *index, const char *path, int kind, struct error *e);
/* Read all leaves. *lost is lowered to the first epoch in which a leaf says that records are lost. */
int restore_check_leaves(struct repair *r, struct index_reader *index, uint64_t *lost, struct error *e);

/* Restore and truncate what can be of value logs, once it is known which epochs count; or, with `is_sync`, force to
 * storage what the epoch behind the last committed one may have in them. */
int repair_values(struct repair *r, int is_sync, struct error *e);

#endif
