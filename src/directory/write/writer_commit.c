/* What the writer does with the manifest: the labels of epochs, their commits, attributes, and the close. */
#include <fcntl.h>
#include "directory/write/writer_state.h"

/* ---- Opening ---- */

int writer_open_manifest(struct writer *w, struct error *e)
{
    int status = manifest_open(&w->io, w->c.path, O_RDWR, &w->manifest, e);

    return status == DELTAFS_OK ? io_file_size(&w->manifest, &w->manifest_size, e) : status;
}

static int writer_not_alone(const struct writer *w, struct error *e)
{
    return error_set(e, DELTAFS_ERR_BUSY, "%s: another job has written to it: nothing more can be committed",
                     w->manifest.path);
}

/* What is about to be truncated is an incomplete line, and not lines that the file system did not show when the
 * manifest was read. */
static int writer_check_torn(struct writer *w, const struct writer_config *c, struct error *e)
{
    struct manifest now = {0};
    int status = manifest_read_file(&w->manifest, &now, e);

    if (status == DELTAFS_OK && now.size != c->manifest_size)
        status = writer_not_alone(w, e);
    manifest_fini(&now);
    return status;
}

int deltafs_private_writer_note_open(struct writer *w, const struct writer_config *c, struct error *e)
{
    int is_torn = w->manifest_size > c->manifest_size;
    int status = is_torn ? writer_check_torn(w, c, e) : DELTAFS_OK;

    if (status == DELTAFS_OK && is_torn)
        status = io_file_truncate(&w->manifest, c->manifest_size, e);
    /* Or a power loss could leave a mixture of an incomplete line and of what takes its place. */
    if (status == DELTAFS_OK && is_torn && w->c.sync != SYNC_NONE)
        status = io_file_sync(&w->manifest, e);
    w->manifest_size = c->manifest_size;
    if (status == DELTAFS_OK)
        status = manifest_append_open(&w->manifest, &w->manifest_size, c->epochs, w->c.sync != SYNC_NONE, e);
    if (status == DELTAFS_OK && c->place == LAYOUT_LOCAL)
        status = manifest_append_job(&w->manifest, &w->manifest_size, &c->job, w->c.sync != SYNC_NONE, e);
    if (status == DELTAFS_OK)
        status = manifest_copy(&w->manifest, &w->manifest_copied, w->manifest_size, w->c.sync != SYNC_NONE, e);
    if (status != DELTAFS_OK)
        return status;
    w->lease.has_note = 0; /* what it says is about to be truncated */
    return lease_renew(&w->lease, NULL, e);
}

int deltafs_private_writer_has_truncated(const struct writer *w, uint64_t *label)
{
    *label = w->cut_label;
    return w->has_cut;
}

/* ---- Labels ---- */

int deltafs_private_writer_last_label(const struct writer *w, uint64_t *label)
{
    if (w->is_ending || w->has_label)
        *label = w->is_ending ? w->ending.label : w->last_label;
    return w->is_ending || w->has_label;
}

uint64_t deltafs_private_writer_last_records(const struct writer *w)
{
    return w->last_records;
}

int deltafs_private_writer_check_label(const struct writer *w, uint64_t label, struct error *e)
{
    uint64_t last;

    if (deltafs_private_writer_last_label(w, &last) && label <= last)
        return error_set(e, DELTAFS_ERR_LABEL, "%s: the epoch's label %llu is not greater than the last one, %llu",
                         w->c.path, (unsigned long long)label, (unsigned long long)last);
    return DELTAFS_OK;
}

enum option_old_label deltafs_private_writer_old_label(const struct writer *w)
{
    return w->c.old_label;
}

int deltafs_private_writer_find_label(struct writer *w, uint64_t label, int *is_committed, struct error *e)
{
    return manifest_find_label(&w->manifest, label, is_committed, e);
}

void deltafs_private_writer_explain_label(const struct writer *w, uint64_t records, struct error *e)
{
    static const char *const what[] = {
        [OLD_LABEL_DISCARD] = "discarded; a job that repeats committed steps after a restart gives the option "
                              "old_label=skip",
        [OLD_LABEL_KEEP] = "kept for the next label (old_label=keep)",
        [OLD_LABEL_SKIP] = "discarded; old_label=skip is for labels that are committed"};

    error_set(e, e->status, "%s; its records (%llu) are %s", e->text, (unsigned long long)records,
              what[w->c.old_label]);
}

/* ---- Lines ---- */

void deltafs_private_writer_cover(struct writer *w, uint32_t epochs)
{
    w->covers = epochs;
}

/* Whether an epoch is committed is not known. */
static int writer_mark_unknown(const struct writer *w, const char *more, struct error *e)
{
    return error_set(e, e->status,
                     "%s; %swhether the epoch labelled %llu is committed shows when the directory is opened; no "
                     "other can follow",
                     e->text, more, (unsigned long long)w->ending.label);
}

/* The manifest is still this job's, and ends where this job's last line ends. */
static int writer_begin_line(struct writer *w, const struct lease_epoch *note, struct error *e)
{
    uint64_t now;
    int status = lease_renew(&w->lease, note, e);

    if (status == DELTAFS_OK)
        status = io_file_size(&w->manifest, &now, e);
    return status == DELTAFS_OK && now != w->manifest_size ? writer_not_alone(w, e) : status;
}

/* Remove what is left of a line that could not be written. Returns whether it is gone for certain. */
static int writer_undo_line(struct writer *w, uint64_t size)
{
    w->manifest_size = size;
    return io_file_truncate(&w->manifest, size, error_ignored()) == DELTAFS_OK &&
           io_file_sync(&w->manifest, error_ignored()) == DELTAFS_OK;
}

/* A line counts without its copy: the next line, or the close, brings the copy up to date. With sync=close only the
 * close: a power loss must not leave lines in the copy that the manifest does not have yet. */
static void writer_copy_line(struct writer *w)
{
    if (w->c.sync != SYNC_CLOSE)
        manifest_copy(&w->manifest, &w->manifest_copied, w->manifest_size, 0, error_ignored());
}

/* The pivots of the epoch, if the manifest lacks them: from before it says that the epoch may be complete. Without them
 * a repair that commits the epoch would place it otherwise: so they are synced with sync=close, too. */
static int writer_append_own(struct writer *w, int *is_commit_unknown, struct error *e)
{
    uint64_t size = w->manifest_size;

    if (!w->has_own)
        return DELTAFS_OK;
    int status = writer_begin_line(w, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    status = manifest_append_pivots(&w->manifest, &w->manifest_size, w->by[w->ending.by].pivots, w->c.partitions - 1,
                                    w->c.sync != SYNC_NONE, e);
    if (status != DELTAFS_OK)
        *is_commit_unknown = !writer_undo_line(w, size);
    w->has_own = status != DELTAFS_OK;
    return *is_commit_unknown ? writer_mark_unknown(w, "nor can that be undone: ", e) : status;
}

/* The line of the epoch; with the pivots for the next epochs, if there are new ones: of these nothing is committed
 * before their pivots are. */
static int writer_append_epoch(struct writer *w, const struct manifest_epoch *epoch, struct error *e)
{
    int sync = w->c.sync == SYNC_COMMIT, has_next = w->ending.has_next;
    int status = manifest_append_epoch(&w->manifest, &w->manifest_size, w->epoch, epoch, sync && !has_next, e);

    return status == DELTAFS_OK && has_next ? manifest_append_pivots(&w->manifest, &w->manifest_size,
                                                                     w->by[w->now].pivots, w->c.partitions - 1, sync, e)
                                            : status;
}

int deltafs_private_writer_commit(struct writer *w, const struct writer_totals *totals, int *is_commit_unknown,
                                  struct error *e)
{
    uint64_t label = w->ending.label;
    struct manifest_epoch epoch = {label, totals->records, totals->bytes_raw, totals->bytes_stored, w->covers, 0};
    struct lease_epoch next = {w->epoch, label, totals->records, totals->bytes_stored};

    *is_commit_unknown = 0;
    int status = writer_append_own(w, is_commit_unknown, e);
    if (status == DELTAFS_OK)
        status = writer_begin_line(w, &next, e);
    if (status != DELTAFS_OK)
        return status;
    uint64_t size = w->manifest_size;
    status = writer_append_epoch(w, &epoch, e);
    if (status == DELTAFS_OK) {
        w->last_records = totals->records;
        /* If the container is another's now, what is there may be so too: nothing is taken back. */
        *is_commit_unknown = lease_confirm(&w->lease, e) != DELTAFS_OK;
        if (*is_commit_unknown)
            return writer_mark_unknown(w, "", e);
        writer_copy_line(w);
        return DELTAFS_OK;
    }
    /* The line must go again, or a reader would find an epoch whose data is about to be overwritten. */
    *is_commit_unknown = !writer_undo_line(w, size);
    return *is_commit_unknown ? writer_mark_unknown(w, "nor can that be undone: ", e) : status;
}

int deltafs_private_writer_set_attribute(struct writer *w, const struct deltafs_attribute *a, struct error *e)
{
    uint64_t size = w->manifest_size;

    if (w->broken.status != DELTAFS_OK) {
        *e = w->broken;
        return e->status;
    }
    int status = writer_begin_line(w, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    status = attribute_append(&w->manifest, &w->manifest_size, a, w->c.sync == SYNC_COMMIT, e);
    if (status == DELTAFS_OK) {
        status = lease_confirm(&w->lease, e);
        if (status == DELTAFS_OK)
            writer_copy_line(w);
        return status;
    }
    if (!writer_undo_line(w, size)) {
        error_set(e, status, "%s; nor can that be undone: no epoch can follow; close the directory, and reopen it",
                  e->text);
        w->broken = *e;
    }
    return status;
}

int deltafs_private_writer_check_lease(struct writer *w, struct error *e)
{
    return lease_renew(&w->lease, NULL, e);
}

int deltafs_private_writer_confirm_lease(struct writer *w, struct error *e)
{
    return lease_confirm(&w->lease, e);
}

int deltafs_private_writer_commit_close(struct writer *w, uint64_t tail_length, struct error *e)
{
    int sync = w->c.sync != SYNC_NONE;
    int status = manifest_append_close(&w->manifest, &w->manifest_size, w->epoch, tail_length, sync, e);

    return status == DELTAFS_OK ? manifest_copy(&w->manifest, &w->manifest_copied, w->manifest_size, sync, e) : status;
}
