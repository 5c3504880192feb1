/* deltafs_repair, in parts: examine.c and repair.c decide, index_rebuild.c
 * rebuilds index logs, log_restore.c restores headers, footers and fences, value_log_repair.c repairs value logs, and
 * text_repair.c lines of the manifest. */
#ifndef DELTAFS_REPAIR_H
#define DELTAFS_REPAIR_H

#include "directory/format/index.h"
#include "directory/format/manifest.h"
#include "directory/read/scan.h"

/* Index logs that are rebuilt from their data logs, of a directory whose keys are bytes, which stand before the values.
 */
struct rebuild_job {
    struct io *io;
    const char *folder;
    const struct manifest *manifest;
    uint64_t epochs;         /* to be had: those that are committed, or one more */
    uint64_t memory;         /* bytes for them, at most */
    uint64_t *records;       /* of each epoch: the count of each log is added */
    const uint8_t *is_short; /* of each epoch, once all logs are counted: records are missing. NULL: only count */
};

/* Count the records of one, or write it beside the old one. Of what is not committed, an epoch whose blocks are damaged
 * is left out. *bad_at: the first damage of its data log, or the log's end. */
int rebuild_index(struct rebuild_job *job, uint32_t partition, uint64_t *bad_at, struct error *e);
/* Put it in the old one's place, which gets the name `kept`; NULL: there is none. Or remove it. */
int rebuild_adopt(struct io *io, const char *folder, uint32_t partition, const char *kept, struct error *e);
void rebuild_discard(struct io *io, const char *folder, uint32_t partition);

/* ---- The manifest ---- */

struct text {
    char *bytes;
    size_t n;
};
/* A whole file; one that is missing is empty. */
int text_load(struct io *io, const char *folder, const char *name, struct text *out, struct error *e);
void text_fini(struct text *t);

/* What a damaged manifest is to be, from its own lines and its copy's, and parsed. DELTAFS_ERR_DAMAGED: a line is
 * damaged in both. */
int text_repair(struct io *io, const char *folder, struct text *out, struct manifest *m, struct error *e);
/* Whether the copy has the lines of the manifest, which is sound, or the first of them; a missing one has none. Without
 * `is_closed`, other bytes may follow that are no sound line. */
int text_check_copy(struct io *io, const char *folder, int is_closed, struct error *e);
/* The manifest up to the line of epoch `number`. */
int text_cut(struct io *io, const char *folder, uint64_t number, struct text *out, struct error *e);
int text_parse(const struct text *t, const char *folder, struct manifest *m, struct error *e);
/* Replace the manifest, or another file of the folder; the former one is kept under the name `kept`, or there is none
 * (NULL). */
int text_replace(struct io *io, const char *folder, const char *name, const struct text *t, const char *kept,
                 struct error *e);
/* ---- Verifying ---- */

/* Add what a step found that ended with `status` and *e, unless it is DELTAFS_OK; returns `status`. */
int damages_of(struct damages *d, int status, const struct error *e);
/* The end of a verify function: the caller's counts, if it wants any, and the status, with *e. */
int damages_end(const struct damages *d, struct deltafs_verify_counts *counts, struct deltafs_verify_counts *out,
                const char *call, struct error *e);

/* Write to a file at an offset, durably; `flags` are of open(2), besides O_RDWR. */
int repair_write(struct io *io, const char *path, int flags, uint64_t at, const void *bytes, size_t n, struct error *e);
/* A name that nothing has yet, for a file that is replaced, put into `kept`; returns its last part. */
const char *repair_kept_name(struct io *io, const char *path, char kept[PATH_ROOM]);

#endif
