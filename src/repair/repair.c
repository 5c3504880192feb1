/* Repair: look at the manifest's end and at all logs' ends, decide what there is to do, do it, and say what was done;
 * or what would be. What comes last, cutting logs off and closing, is what a writer does that reopens the directory.
 *
 * An epoch behind the last committed one is whole if all partitions have its footers, and all its leaves and blocks are
 * right. That all ranks had brought their records to it is known only if the job had agreed upon that: then it noted
 * the epoch in its lease before it began to write the line. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/sized.h"
#include "directory/dir.h"
#include "directory/read/reader_open.h"
#include "directory/read/scan.h"
#include "directory/serial.h"
#include "io/io_format.h"
#include "repair/repair_state.h"

#define BEHIND_MOST (1u << 20) /* epochs that index logs tell of behind the manifest's end, at most */

/* Whether there is anything that a writer would do. */
static int repair_is_sound(const struct repair *r)
{
    const struct manifest *m = &r->manifest;

    if (!m->is_closed || r->manifest_size > m->size || r->reported > 0)
        return 0;
    for (uint32_t i = 0; i < m->partitions; i++) {
        const struct repair_part *p = &r->part[i];
        if (p->lacks_tail || p->size[REPAIR_DATA] > p->end[REPAIR_DATA])
            return 0;
    }
    return 1;
}

/* Report an error; the first of its kind is kept in `first`. */
static void repair_fail(struct repair *r, struct error *first, const struct error *e)
{
    if (first->status == DELTAFS_OK)
        *first = *e;
    if (r->fn)
        r->fn(e->status, e->text, r->arg);
}

/* ---- The epoch behind the last committed one ---- */

static int repair_is_noted(const struct repair *r)
{
    return r->has_noted && r->noted.number == r->manifest.epoch_count;
}

/* The records of an epoch in a partition. */
struct last_count {
    struct manifest_epoch *last;
    struct partitioner by;
    uint32_t partition;
    int is_misplaced; /* a reader would not look there for some */
};

static int count_record(const struct deltafs_record *record, void *arg)
{
    struct last_count *c = arg;

    c->last->records++;
    c->last->bytes_raw += (record->key_bytes ? record->key_size : 8) + record->size;
    c->is_misplaced |= !c->by.is_unknown && partition_of(&c->by, record->key) != c->partition;
    return 0;
}

/* Whether all records of the epoch behind the last committed one are right; counts them. */
static int repair_check_last(struct repair *r, uint64_t label, struct error *e)
{
    struct last_count count = {.last = &r->last};
    struct scan_to to = {.fn = count_record, .arg = &count};
    struct damages damages = {0};
    struct part_reader *p;
    struct reader *reader;
    int status = reader_open(r->path, 0, 0, &reader, e);

    if (status != DELTAFS_OK)
        return status;
    struct manifest *m = &reader->manifest;
    status = memory_extend(NULL, &m->epoch, m->epoch_count, &m->epoch_capacity, sizeof *m->epoch, "the epochs", e);
    if (status == DELTAFS_OK) {
        m->epoch[m->epoch_count++] = (struct manifest_epoch){.label = label};
        m->is_closed = 0;
    }
    count.by = manifest_partitioner(m, m->epoch_count - 1, NULL);
    for (uint32_t i = 0; i < m->partitions && status == DELTAFS_OK; i++) {
        count.partition = i;
        status = reader_part(reader, i, &p, e);
        if (status == DELTAFS_OK)
            status = part_scan(reader, p, (uint32_t)m->epoch_count - 1, &to, &damages, e);
    }
    if (status == DELTAFS_OK && damages.count > 0) {
        *e = damages.first;
        status = e->status;
    }
    if (status == DELTAFS_OK && count.is_misplaced)
        status = error_set(e, DELTAFS_ERR_DAMAGED,
                           "its records are in other partitions than the manifest says: a line "
                           "of pivots is lost");
    reader_close(reader);
    return status;
}

/* Add up what the logs have of the epoch. Returns whether all partitions have it. */
static int repair_sum_last(struct repair *r, uint64_t *records, uint64_t *bytes)
{
    *records = *bytes = 0;
    for (uint32_t i = 0; i < r->manifest.partitions; i++) {
        const struct repair_part *p = &r->part[i];
        if (!p->has_last)
            return 0;
        *records += p->records;
        for (int log = 0; log < REPAIR_LOGS; log++)
            *bytes += p->last_end[log] - p->end[log];
    }
    return 1;
}

/* The label that the epoch, which all logs have, is to be committed under. Returns whether there is one. */
static int repair_label(struct repair *r, uint64_t records, uint64_t bytes, uint64_t *label)
{
    const struct manifest *m = &r->manifest;
    struct error e;

    /* An index log that was rebuilt has another length, and value logs are not counted here. */
    if (repair_is_noted(r) && r->noted.records == records &&
        (r->lost > 0 || m->is_local || r->noted.bytes_stored == bytes)) {
        *label = r->noted.label;
    } else if (r->options->has_label && (r->lost < m->partitions || records > 0)) {
        *label = r->options->label;
    } else {
        repair_report(r,
                      "%s: epoch number %" PRIu64 " is in all logs, but its job did not record that all processes had "
                      "finished it; it is discarded%s",
                      r->path, m->epoch_count,
                      r->options->dry_run ? " unless it gets a label (the same command with --label L)" : "");
        return 0;
    }
    if (m->epoch_count == 0 || *label > m->epoch[m->epoch_count - 1].label)
        return 1;
    error_set(&e, DELTAFS_ERR_LABEL, "%s: the label %" PRIu64 " is not above the last one, %" PRIu64, r->path, *label,
              m->epoch[m->epoch_count - 1].label);
    repair_fail(r, &r->first, &e);
    return 0;
}

/* Who gives a label wants the epoch kept: if it cannot be, nothing is truncated. */
static int repair_check_label(const struct repair *r, struct error *e)
{
    uint64_t label = r->options->label;

    if (!r->options->has_label || (r->is_kept && r->last.label == label))
        return DELTAFS_OK;
    if (r->is_kept)
        return error_set(e, DELTAFS_ERR_LABEL,
                         "%s: epoch number %" PRIu64 " cannot get the label %" PRIu64 ": its job noted %" PRIu64
                         "; nothing more is changed",
                         r->path, r->manifest.epoch_count, label, r->last.label);
    return error_set(e, DELTAFS_ERR_NOT_FOUND,
                     "%s: there is no complete epoch number %" PRIu64 " for the label %" PRIu64
                     "; nothing more is changed%s",
                     r->path, r->manifest.epoch_count, label,
                     r->committed > r->manifest.epoch_count ? "" : "; without the label, its data is truncated");
}

/* Whether the epoch is to be committed. */
static int repair_decide(struct repair *r, struct error *e)
{
    struct error damage;
    uint64_t records, bytes, label;

    if (!repair_sum_last(r, &records, &bytes)) {
        if (repair_is_noted(r) && !(r->options->dry_run && r->lost > 0) && !repair_is_sound(r))
            repair_report(r, "%s: epoch number %" PRIu64 " had no commit, and is not in all logs: it is discarded",
                          r->path, r->manifest.epoch_count);
        return DELTAFS_OK;
    }
    if (!repair_label(r, records, bytes, &label))
        return DELTAFS_OK;
    int status = repair_check_last(r, label, &damage);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_DAMAGED) {
        *e = damage;
        return status;
    }
    if (status == DELTAFS_OK && r->last.records != records)
        status = error_set(&damage, DELTAFS_ERR_DAMAGED, "%" PRIu64 " records of %" PRIu64 " are in its blocks",
                           r->last.records, records);
    if (status != DELTAFS_OK) {
        repair_report(r, "%s: epoch number %" PRIu64 " had no commit, and is incomplete (%s): it %s", r->path,
                      r->manifest.epoch_count, damage.text,
                      r->committed > r->manifest.epoch_count ? "stays as it is" : "is discarded");
        return DELTAFS_OK;
    }
    r->last.label = label;
    r->last.bytes_stored = r->manifest.is_local && repair_is_noted(r) ? r->noted.bytes_stored : bytes;
    r->is_kept = 1;
    return DELTAFS_OK;
}

/* What a line in the manifest counts on, whatever the job did that wrote it. */
static int repair_sync(struct repair *r, struct error *e)
{
    uint32_t partitions = r->manifest.partitions;
    char path[PATH_ROOM];
    struct io_file file;
    int status = DELTAFS_OK;

    for (uint64_t i = 0; i < (uint64_t)REPAIR_LOGS * partitions && status == DELTAFS_OK; i++) {
        repair_log_path(r, (int)(i % REPAIR_LOGS), (uint32_t)(i / REPAIR_LOGS), path);
        status = io_file_open(&r->io, path, O_RDWR, &file, e);
        if (status == DELTAFS_OK)
            status = io_file_finish(&file, io_file_sync(&file, e), e);
    }
    for (uint32_t b = 0; b < BUCKET_COUNT && b < partitions && status == DELTAFS_OK; b++)
        status = io_sync_folder(&r->io, io_path_in(path, r->path, BUCKET_NAME, b), e);
    return status == DELTAFS_OK ? io_sync_folder(&r->io, r->path, e) : status;
}

/* Write the epoch's line, at the manifest's end without an incomplete line. */
static int repair_write_line(struct repair *r, struct error *e)
{
    struct io_file file;
    uint64_t size = r->manifest.size;
    int status = manifest_open(&r->io, r->path, O_RDWR, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_truncate(&file, size, e);
    if (status == DELTAFS_OK)
        status = io_file_sync(&file, e);
    if (status == DELTAFS_OK)
        status = manifest_append_epoch(&file, &size, r->manifest.epoch_count, &r->last, 1, e);
    return io_file_finish(&file, status, e);
}

static int repair_commit(struct repair *r, struct error *e)
{
    int status = repair_values(r, 1, e);

    if (status == DELTAFS_OK)
        status = repair_sync(r, e);
    if (status == DELTAFS_OK)
        status = repair_renew(r, e);
    if (status == DELTAFS_OK)
        status = repair_write_line(r, e);
    return status == DELTAFS_OK ? lease_confirm(&r->lease, e) : status;
}

/* ---- Index logs ---- */

/* Count the records of all index logs that must be rebuilt, or write these. */
static int repair_rebuild_all(struct repair *r, struct rebuild_job *job, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < r->manifest.partitions && status == DELTAFS_OK; i++)
        if (r->part[i].lost)
            status = rebuild_index(job, i, &r->part[i].bad_at, e);
    return status;
}

/* No epoch can have more records than were committed. One that has fewer is short of them. */
static int repair_find_short(struct repair *r, const struct rebuild_job *job, uint8_t *is_short, struct error *e)
{
    const struct manifest *m = &r->manifest;

    for (uint64_t i = 0; i < m->epoch_count; i++) {
        if (job->records[i] > m->epoch[i].records)
            return error_set(e, DELTAFS_ERR_DAMAGED,
                             "%s: epoch %" PRIu64 " has %" PRIu64 " records in the logs, its commit says %" PRIu64
                             ": the index logs are not replaced",
                             r->path, m->epoch[i].label, job->records[i], m->epoch[i].records);
        is_short[i] = job->records[i] < m->epoch[i].records;
    }
    return DELTAFS_OK;
}

/* The first epoch that some partition has not all of, and why; NO_EPOCH if there is none. Of the partitions whose index
 * logs are rebuilt, or of all others. */
static uint64_t repair_first_lost(const struct repair *r, int of_rebuilt, const char **why)
{
    uint64_t first = NO_EPOCH;

    for (uint32_t i = 0; i < r->manifest.partitions; i++) {
        const struct repair_part *p = &r->part[i];
        if ((p->lost != NULL) == of_rebuilt && p->whole < r->manifest.epoch_count && p->whole < first) {
            first = p->whole;
            *why = p->lost ? p->lost : p->bad ? p->bad : "an index log says that records are lost";
        }
    }
    return first;
}

/* Say what is lost of an epoch, as the new index logs do. */
static void repair_report_loss(struct repair *r, uint64_t epoch, uint64_t found)
{
    const struct manifest_epoch *known = &r->manifest.epoch[epoch];
    char path[PATH_ROOM];
    struct error e;

    for (uint32_t i = 0; i < r->manifest.partitions; i++) {
        if (!r->part[i].lost)
            continue;
        error_damaged(&e, repair_log_path(r, REPAIR_DATA, i, path), r->part[i].bad_at,
                      "records of epoch %" PRIu64
                      " are lost; a query for any key of this partition returns an error for this epoch",
                      known->label);
        repair_fail(r, &r->losses, &e);
    }
    error_set(&e, DELTAFS_ERR_DAMAGED, "%s: epoch %" PRIu64 " has lost %" PRIu64 " of %" PRIu64 " record%s", r->path,
              known->label, known->records - found, known->records, repair_plural(known->records));
    repair_fail(r, &r->losses, &e);
}

/* What the user can do, if epochs are incomplete from number `first` on. */
static void repair_remark_loss(struct repair *r, uint64_t first)
{
    const struct manifest *m = &r->manifest;
    uint64_t n = m->epoch_count - first, label = m->epoch[first].label;

    if (first < m->compacted)
        repair_remark(r, "%s: restore a copy; or remove the directory, and compact the source again", r->path);
    else
        repair_remark(r,
                      "%s: epochs are incomplete from the one labelled %" PRIu64
                      " on; readers return what they can of them: restore a copy; or, instead of keeping incomplete "
                      "epochs, discard %" PRIu64 " epoch%s (epochs that stay: %" PRIu64
                      ") with 'deltafs repair --drop-from %" PRIu64 " %s'",
                      r->path, label, n, repair_plural(n), first, label, r->path);
}

/* Lines of the manifest are lost for good. */
static void repair_remark_attributes(struct repair *r)
{
    repair_remark(
        r,
        "%s: attributes that were set after the last line that is left are lost, too: 'deltafs info %s' shows "
        "those that there are",
        r->path, r->path);
}

/* Put a partition's new index log into its place. */
static int repair_adopt(struct repair *r, uint32_t partition, struct error *e)
{
    struct repair_part *p = &r->part[partition];
    char path[PATH_ROOM], kept[PATH_ROOM];
    const char *name = repair_kept_name(&r->io, repair_log_path(r, REPAIR_INDEX, partition, path), kept);
    int status = repair_renew(r, e);

    if (status == DELTAFS_OK && !r->options->dry_run)
        status = rebuild_adopt(&r->io, r->path, partition, p->has_index ? kept : NULL, e);
    if (status == DELTAFS_OK)
        repair_report(r, "%s; it is rebuilt from the data log%s%s", p->lost,
                      p->has_index ? "; the damaged one is saved as " : "", p->has_index ? name : "");
    return status == DELTAFS_OK && !r->options->dry_run ? repair_partition(r, partition, e) : status;
}

static int repair_rebuild(struct repair *r, struct rebuild_job *job, uint8_t *is_short, struct error *e)
{
    int has_loss = 0, status = repair_rebuild_all(r, job, e);

    if (status == DELTAFS_OK)
        status = repair_find_short(r, job, is_short, e);
    job->is_short = is_short;
    if (status == DELTAFS_OK && !r->options->dry_run)
        status = repair_rebuild_all(r, job, e);
    for (uint32_t i = 0; i < r->manifest.partitions && status == DELTAFS_OK; i++)
        if (r->part[i].lost)
            status = repair_adopt(r, i, e);
    for (uint64_t i = 0; i < r->manifest.epoch_count && status == DELTAFS_OK; i++)
        if (is_short[i]) {
            repair_report_loss(r, i, job->records[i]);
            has_loss = 1;
        }
    const char *why;
    uint64_t first = has_loss && r->options->dry_run ? repair_first_lost(r, 1, &why) : NO_EPOCH;
    if (first != NO_EPOCH)
        repair_remark_loss(r, first);
    for (uint32_t i = 0; i < r->manifest.partitions && status != DELTAFS_OK && !r->options->dry_run; i++)
        if (r->part[i].lost)
            rebuild_discard(&r->io, r->path, i);
    return status;
}

static int repair_indexes(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    uint64_t epochs = m->epoch_count + (repair_is_noted(r) || r->options->has_label);
    if (r->options->has_label && r->committed > epochs && r->committed - epochs > BEHIND_MOST)
        return error_damaged(e, r->path, 0,
                             "an index log tells of %" PRIu64 " epochs, and the manifest of %" PRIu64
                             ": so many lines are not lost, but the log is damaged",
                             r->committed, epochs);
    if (r->options->has_label && r->committed > epochs)
        epochs = r->committed;
    uint64_t memory = deltafs_private_options_number(r->settings, OPTION_MEMORY);
    struct rebuild_job job = {.io = &r->io,
                              .folder = r->path,
                              .manifest = m,
                              .epochs = epochs,
                              .memory = memory == OPTION_AUTO ? SERIAL_MEMORY_DEFAULT : memory,
                              .records = calloc(epochs + 1, sizeof *job.records)};
    uint8_t *is_short = calloc(epochs + 1, 1);
    int status = is_short && job.records ? DELTAFS_OK : error_no_memory(e, epochs * 9, "the epochs");

    if (status == DELTAFS_OK) {
        memcpy(job.records, r->records, m->epoch_count * sizeof *job.records);
        status = repair_rebuild(r, &job, is_short, e);
    }
    free(is_short);
    free(job.records);
    return status;
}

/* ---- The manifest ---- */

/* Read the manifest; where lines are damaged or lost, as it is to be. */
static int repair_read_manifest(struct repair *r, struct error *e)
{
    struct error why;

    text_fini(&r->text);
    manifest_fini(&r->manifest);
    r->damage = (struct error){0};
    int status = manifest_read_to_repair(&r->io, r->path, &r->manifest, e);
    if (status == DELTAFS_OK) {
        status = text_check_copy(&r->io, r->path, 1, e);
        r->damage = status == DELTAFS_ERR_DAMAGED ? *e : r->damage;
        return status == DELTAFS_ERR_DAMAGED ? DELTAFS_OK : status;
    }
    if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_NOT_DELTAFS)
        return status;
    int repaired = text_repair(&r->io, r->path, &r->text, &r->manifest, &why);
    if (repaired == DELTAFS_OK) {
        r->damage = *e;
        return DELTAFS_OK;
    }
    if (status == DELTAFS_ERR_DAMAGED)
        error_set(e, status, "%s", why.text);
    else if (repaired != DELTAFS_ERR_NOT_FOUND)
        error_set(e, status, "%s; " MANIFEST_COPY_NAME " does not help: restore a backup of one of the two", e->text);
    return status;
}

/* Before epochs are discarded, whose lines the copy has, or after it was used. It is written again at the end. */
static int repair_remove_copy(struct repair *r, struct error *e)
{
    char path[PATH_ROOM];
    int status = io_unlink(&r->io, io_path_in(path, r->path, MANIFEST_COPY_NAME), e);

    status = status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    return status == DELTAFS_OK ? io_sync_folder(&r->io, r->path, e) : status;
}

/* Write what the manifest is to be. */
static int repair_write_manifest(struct repair *r, struct error *e)
{
    char path[PATH_ROOM], kept[PATH_ROOM];
    const char *name = repair_kept_name(&r->io, io_path_in(path, r->path, MANIFEST_NAME), kept);
    struct io_file old;
    int has_old = io_file_open(&r->io, path, O_RDONLY, &old, error_ignored()) == DELTAFS_OK;

    if (has_old)
        io_file_close(&old, error_ignored());
    int status = repair_renew(r, e);
    if (status == DELTAFS_OK && !r->options->dry_run)
        status = text_replace(&r->io, r->path, MANIFEST_NAME, &r->text, has_old ? kept : NULL, e);
    if (status == DELTAFS_OK)
        repair_report(r, "%s: is written again%s%s", path, has_old ? "; the former one is saved as " : "",
                      has_old ? name : "");
    return status;
}

/* ---- Epochs that are lost ---- */

/* Say what cannot be repaired, and what could be discarded for it. */
static int repair_report_bad(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    const char *why;
    uint64_t first = repair_first_lost(r, 0, &why);

    for (uint32_t i = 0; i < m->partitions; i++)
        if (r->part[i].bad) {
            error_set(e, DELTAFS_ERR_DAMAGED, "%s", r->part[i].bad);
            repair_fail(r, &r->first, e);
        }
    if (r->first.status == DELTAFS_OK)
        return DELTAFS_OK;
    if (first != NO_EPOCH)
        repair_remark_loss(r, first);
    *e = r->first;
    return e->status;
}

/* An earlier repair could not save all records, and the index logs say so. That does not change by another repair. */
static void repair_report_recorded(struct repair *r)
{
    const struct manifest *m = &r->manifest;
    const char *why;
    uint64_t first = repair_first_lost(r, 0, &why);
    struct error e;

    if (first == NO_EPOCH)
        return;
    error_set(&e, DELTAFS_ERR_DAMAGED,
              "%s: records are lost, of epoch %" PRIu64 " and perhaps of later ones, as an earlier repair recorded; "
              "'deltafs verify' lists them",
              r->path, m->epoch[first].label);
    repair_fail(r, &r->losses, &e);
    repair_remark_loss(r, first);
}

/* Whether a job that writes meanwhile, as it may in a dry run, has committed what the logs had. */
static int repair_has_grown(struct repair *r)
{
    struct manifest now = {0};
    int has_grown = r->options->dry_run && manifest_read(&r->io, r->path, &now, error_ignored()) == DELTAFS_OK &&
                    now.epoch_count >= r->committed;

    manifest_fini(&now);
    return has_grown;
}

/* Epochs that were committed and have no line in the manifest are not truncated, unless somebody asks for that. */
static int repair_check_behind(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    uint64_t n = r->committed - m->epoch_count;
    uint64_t next = m->epoch_count > 0 ? m->epoch[m->epoch_count - 1].label + 1 : 0;

    if (r->committed <= m->epoch_count || r->options->has_label || r->options->has_drop_from || repair_has_grown(r))
        return DELTAFS_OK;
    char log[PATH_ROOM];
    repair_log_path(r, REPAIR_INDEX, r->committed_in, log);
    error_set(e, DELTAFS_ERR_DAMAGED,
              "%s/%s: has lost the line%s of at least %" PRIu64 " committed epoch%s (%s: the footer at offset "
              "%" PRIu64 " says so)",
              r->path, MANIFEST_NAME, repair_plural(n), n, repair_plural(n), log,
              r->part[r->committed_in].committed.at);
    repair_fail(r, &r->first, e);
    repair_remark(r,
                  "%s: restore a copy of its " MANIFEST_NAME "; if you have none, give the first of these epochs its "
                  "label ('deltafs repair --label L %s'), then the next, or discard %s ('deltafs repair --drop-from "
                  "%" PRIu64 " %s')",
                  r->path, r->path, n == 1 ? "it" : "all", next, r->path);
    return e->status;
}

/* Discard the epochs that have no line. */
static int repair_drop_behind(struct repair *r, struct error *e)
{
    const struct manifest *m = &r->manifest;
    uint64_t n = r->committed - m->epoch_count;

    if (m->epoch_count > 0 && r->options->drop_from <= m->epoch[m->epoch_count - 1].label)
        return error_set(e, DELTAFS_ERR_LABEL,
                         "%s: the logs have all epochs up to that labelled %" PRIu64
                         "; the epochs to discard come after it, and their labels are lost: give any higher label; "
                         "nothing is changed",
                         r->path, m->epoch[m->epoch_count - 1].label);
    repair_report(r,
                  "%s: at least %" PRIu64
                  " committed epoch%s discarded, with all data after that: the manifest has no line%s of %s",
                  r->path, n, n == 1 ? " is" : "s are", repair_plural(n), n == 1 ? "it" : "them");
    repair_remark_attributes(r);
    r->is_dropped = 1;
    return DELTAFS_OK;
}

/* Give up the epochs from the one on that is named, which must be the first that is lost. */
static int repair_drop(struct repair *r, struct error *e)
{
    struct manifest *m = &r->manifest;
    const char *why = "";
    uint64_t first = repair_first_lost(r, 0, &why), from = r->options->drop_from, count = m->epoch_count;

    if (r->text.bytes)
        return error_set(e, DELTAFS_ERR_DAMAGED,
                         "%s: the manifest is damaged, too: repair it before you discard epochs", r->path);
    if (first == NO_EPOCH && r->committed > count)
        return repair_drop_behind(r, e);
    if (first == NO_EPOCH)
        first = repair_first_lost(r, 1, &why);
    if (first == NO_EPOCH && m->is_local) {
        /* Value logs are not looked through for what they lack: verify names their damage. */
        why = "its label was given";
        for (first = 0; first < count && m->epoch[first].label < from;)
            first++;
        first = first < count ? first : NO_EPOCH;
    }
    if (first == NO_EPOCH)
        return error_set(e, DELTAFS_ERR_NOT_FOUND,
                         "%s: the logs have all epochs: none is discarded, and nothing is changed", r->path);
    if (first < m->compacted)
        return error_set(e, DELTAFS_ERR_DAMAGED,
                         "%s: the first %" PRIu32
                         " epochs were compacted, and are stored together: none of them can be "
                         "discarded; remove the directory, and compact the source again",
                         r->path, m->compacted);
    if (m->epoch[first].label != from)
        return error_set(e, DELTAFS_ERR_LABEL,
                         "%s: the first epoch to discard is labelled %" PRIu64 ", not %" PRIu64 "; nothing is changed",
                         r->path, m->epoch[first].label, from);
    int status = text_cut(&r->io, r->path, first, &r->text, e);
    if (status == DELTAFS_OK && !r->options->dry_run)
        status = repair_remove_copy(r, e);
    if (status == DELTAFS_OK)
        status = repair_write_manifest(r, e);
    for (uint64_t i = first; i < count && status == DELTAFS_OK; i++)
        repair_report(r, "%s: epoch %" PRIu64 ", of %" PRIu64 " record%s, is discarded: %s", r->path, m->epoch[i].label,
                      m->epoch[i].records, repair_plural(m->epoch[i].records), why);
    if (status != DELTAFS_OK)
        return status;
    /* From here on they have never been. */
    repair_forget(r);
    manifest_fini(m);
    status = text_parse(&r->text, r->path, m, e);
    r->is_dropped = 1;
    return status == DELTAFS_OK ? repair_inspect(r, e) : status;
}

/* ---- All of it ---- */

/* What a log has behind its last epoch goes, a tail to be written again at the close. */
static void repair_report_log(struct repair *r, int log, uint32_t partition)
{
    const struct repair_part *p = &r->part[partition];
    uint64_t end = r->is_kept ? p->last_end[log] : p->end[log], size = p->size[log], n = size - end;
    char path[PATH_ROOM];

    repair_log_path(r, log, partition, path);
    if ((log == REPAIR_INDEX && r->manifest.is_closed && !p->lacks_tail) || (p->lost && r->options->dry_run))
        return;
    if (r->manifest.epoch_count == 0 && !r->is_kept && size > LOG_HEADER_SIZE)
        repair_report(r, "%s: is created again, without its %" PRIu64 " bytes: no epoch is committed", path, size);
    else if (size > end && log == REPAIR_INDEX && p->has_tail && !r->is_kept)
        repair_report(r, "%s: the tail, %" PRIu64 " byte%s at offset %" PRIu64 ", is truncated and written again", path,
                      n, repair_plural(n), end);
    else if (size > end && log == REPAIR_INDEX && p->lacks_tail)
        repair_report(r,
                      "%s: the tail is damaged: %" PRIu64 " byte%s at offset %" PRIu64
                      " are truncated, and it is written again",
                      path, n, repair_plural(n), end);
    else if (size > end)
        repair_report(r, "%s: data after the last committed epoch is truncated: %" PRIu64 " byte%s at offset %" PRIu64,
                      path, n, repair_plural(n), end);
    else if (log == REPAIR_INDEX && p->lacks_tail && !p->lost)
        repair_report(r, "%s: the tail is missing, and is written again", path);
}

/* What a writer does that opens the directory and closes it. */
static void repair_report_ends(struct repair *r)
{
    const struct manifest *m = &r->manifest;
    uint64_t torn = r->manifest_size - m->size;

    if (r->manifest_size > m->size && !r->text.bytes)
        repair_report(r, "%s/%s: an incomplete last line is removed: %" PRIu64 " byte%s at offset %" PRIu64, r->path,
                      MANIFEST_NAME, torn, repair_plural(torn), m->size);
    for (uint32_t i = 0; i < m->partitions; i++)
        for (int log = 0; log < REPAIR_LOGS; log++)
            if (r->part[i].size[log] > 0)
                repair_report_log(r, log, i);
    if (!m->is_closed)
        repair_report(r, "%s: the directory is closed", r->path);
}

/* What comes before the epoch behind the last committed one is looked at. */
static int repair_committed(struct repair *r, struct error *e)
{
    int status = repair_inspect(r, e);

    if (status == DELTAFS_OK && r->options->has_drop_from)
        status = repair_drop(r, e);
    if (status == DELTAFS_OK)
        status = repair_report_bad(r, e);
    if (status == DELTAFS_OK)
        status = repair_check_behind(r, e);
    if (status == DELTAFS_OK)
        repair_report_recorded(r);
    if (status == DELTAFS_OK && r->damage.status != DELTAFS_OK)
        repair_report(r, "%s; it is %s", r->damage.text,
                      r->text.bytes ? "restored from MANIFEST.copy" : "written again");
    if (status == DELTAFS_OK && r->damage.status != DELTAFS_OK && r->text.bytes) {
        status = repair_write_manifest(r, e);
        /* The manifest has all that the copy had; a copy that is damaged would still seem to have more. */
        if (status == DELTAFS_OK && !r->options->dry_run)
            status = repair_remove_copy(r, e);
    }
    return status == DELTAFS_OK && r->lost > 0 ? repair_indexes(r, e) : status;
}

/* A dry run, before repair_decide can know: say that there is something to decide; or what, if only a label can keep
 * the epoch. */
static void repair_announce(struct repair *r)
{
    uint64_t records, bytes, label;

    if (repair_is_noted(r))
        repair_report(r, "%s: epoch number %" PRIu64 " has no commit; this is decided after that", r->path,
                      r->manifest.epoch_count);
    else if (r->text.bytes && repair_sum_last(r, &records, &bytes))
        repair_label(r, records, bytes, &label);
}

/* All but what the directory's next writer does. */
static int repair_all(struct repair *r, struct error *e)
{
    int status = repair_committed(r, e);

    /* In a dry run the manifest cannot be read yet, or has other epochs; or index logs are not rebuilt. */
    int is_early = r->text.bytes && r->options->dry_run;
    if (status == DELTAFS_OK && (is_early || (r->options->dry_run && r->lost > 0)) && !r->is_dropped)
        repair_announce(r);
    if (status == DELTAFS_OK && !is_early && !r->is_dropped)
        status = repair_decide(r, e);
    if (status == DELTAFS_OK && r->first.status != DELTAFS_OK) {
        *e = r->first;
        status = e->status;
    }
    if (status == DELTAFS_OK && !is_early)
        status = repair_check_label(r, e);
    if (status == DELTAFS_OK && r->is_kept && !r->options->dry_run)
        status = repair_commit(r, e);
    if (status == DELTAFS_OK && r->is_kept)
        repair_report(r,
                      "%s: epoch number %" PRIu64 ", complete but without its commit, is committed: %" PRIu64
                      " record%s labelled %" PRIu64,
                      r->path, r->manifest.epoch_count, r->last.records, repair_plural(r->last.records), r->last.label);
    if (status == DELTAFS_OK && r->is_kept && r->options->has_label && r->committed > r->manifest.epoch_count)
        repair_remark_attributes(r);
    return status == DELTAFS_OK && !is_early ? repair_values(r, 0, e) : status;
}

/* Have the lease, in which stays what the job noted that had it before, and the manifest as it is then. A dry run only
 * reports who writes the directory, or did last. */
static int repair_take(struct repair *r, struct error *e)
{
    uint64_t seconds = deltafs_private_options_number(r->settings, OPTION_LEASE);
    char text[1200];

    if (r->options->dry_run) {
        r->has_noted = lease_find_epoch(&r->io, r->path, &r->noted);
        if (lease_describe(&r->io, r->path, seconds, text, sizeof text))
            repair_remark(r, "%s", text);
        return DELTAFS_OK;
    }
    int status = lease_take(&r->lease, &r->io, r->path, seconds, 1, e);
    if (status != DELTAFS_OK)
        return status;
    r->has_noted = r->lease.has_note;
    r->noted = r->lease.note;
    return repair_read_manifest(r, e);
}

/* Whether an epoch that got its label is not the last one that there is something of: the next is looked at by itself,
 * with what the job noted. */
static int repair_goes_on(const struct repair *r)
{
    uint64_t count = r->manifest.epoch_count + 1;

    return r->is_kept && r->options->has_label && (r->seen > count || (r->has_noted && r->noted.number >= count));
}

/* As deltafs_repair. `settings` has the options lease and memory; the directory is reopened with it at the end. */
static int repair_directory(const char *path, const struct deltafs_repair_options *options,
                            const deltafs_options *settings, deltafs_repair_fn fn, void *arg, struct error *e)
{
    struct repair r = {
        .path = path, .options = options, .settings = settings, .fn = fn, .arg = arg, .io = io_default()};
    int status = repair_read_manifest(&r, e);

    if (status == DELTAFS_OK)
        status = manifest_check_compacted(&r.manifest, path, e);
    if (status == DELTAFS_OK)
        status = manifest_check_sources(&r.io, path, &r.manifest, e);
    if (status == DELTAFS_OK)
        status = repair_take(&r, e);
    if (status == DELTAFS_OK)
        status = repair_all(&r, e);
    /* Where it failed, be it at reading how many epochs there are, what the job noted stays for the next attempt. */
    int keeps = r.has_noted && (status != DELTAFS_OK || repair_goes_on(&r));
    struct error *after = error_after(status, e);
    status = error_first(status, keeps ? io_file_close(&r.lease.file, after) : lease_drop(&r.lease, after));
    if (status == DELTAFS_OK && repair_goes_on(&r))
        repair_report(&r, "%s: the data after it in the logs stays as it is: 'deltafs repair' lists it", path);
    else if (status == DELTAFS_OK && !repair_is_sound(&r)) {
        deltafs_dir *d = NULL;
        /* Opening the directory to write and closing it truncates its logs and writes their tails. */
        /* Epochs that are written again may have the same labels: their indexes would tell of those that were. */
        if (!options->dry_run && r.is_dropped)
            status = dir_remove_value_indexes(path, settings, e);
        if (!options->dry_run && status == DELTAFS_OK)
            status = serial_open_directory(path, settings, 1, r.is_dropped, &d, e);
        if (status == DELTAFS_OK)
            status = deltafs_close(d);
        if (status == DELTAFS_OK)
            repair_report_ends(&r);
    }
    if (status == DELTAFS_OK && r.losses.status != DELTAFS_OK) {
        *e = r.losses;
        status = e->status;
    }
    repair_forget(&r);
    text_fini(&r.text);
    manifest_fini(&r.manifest);
    return status;
}

/* ---- The call ---- */

/* Only the options lease and memory apply: what else the environment has is for directories that are created. */
static int repair_set_options(deltafs_options *o, const struct deltafs_repair_options *options)
{
    char lease[32];
    int status = DELTAFS_OK;

    for (int i = 0; i < OPTION_COUNT && status == DELTAFS_OK; i++)
        if (i != OPTION_LEASE && i != OPTION_MEMORY)
            status = deltafs_private_options_reset(o, (enum option_id)i, deltafs_private_thread_error());
    deltafs_private_options_mark_index(o);  /* repair may reopen an index, too, */
    deltafs_private_options_mark_repair(o); /* and what it has no partitioner of */
    snprintf(lease, sizeof lease, "%llu", (unsigned long long)options->lease);
    if (status == DELTAFS_OK && options->has_lease)
        status = deltafs_options_set(o, "lease", lease);
    return status;
}

int deltafs_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn, void *arg)
{
    struct deltafs_repair_options given = {.struct_size = sizeof given};
    struct error *e = deltafs_private_thread_error();
    deltafs_options *o = NULL;

    if (!path || !*path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_repair: path must be given");
    if (options && sized_take(&given, options, sizeof given, "deltafs_repair", e) != DELTAFS_OK)
        return e->status;
    if (given.has_label && given.has_drop_from)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_repair: has_label and has_drop_from exclude each other");
    int status = deltafs_options_create(&o);
    if (status == DELTAFS_OK)
        status = repair_set_options(o, &given);
    if (status == DELTAFS_OK)
        status = repair_directory(path, &given, o, fn, arg, e);
    deltafs_options_destroy(o);
    return status;
}
