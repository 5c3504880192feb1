/* The end of an epoch of particles: all ranks of a job put their records into the directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "posix/locks.h"
#include "posix/posix_job.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/particles_parts.h"

#define BUSY_PAUSE_NS 10000000 /* between tries to open a directory that another process is writing, */
#define BUSY_TRIES    3000     /* for half a minute */

/* An epoch that ends. */
struct ending {
    struct particles *p;
    struct spool *spool; /* NULL: this process has no records */
    struct label label;
    int error; /* what records of it were lost for */
    int is_synced;
    deltafs_dir *dir;
    int is_tried; /* to put the records into the directory */
};

/* ---- The directory ---- */

static int writer_options(const struct ending *e, deltafs_options **out)
{
    char half[32];
    const char *memory = "auto";
    int status = deltafs_options_create(out);

    if (status == DELTAFS_OK)
        status = deltafs_options_get(*out, "memory", &memory);
    if (status == DELTAFS_OK && strcmp(memory, "auto") != 0) { /* the spool has the other half */
        snprintf(half, sizeof half, "%zu", e->p->memory > (size_t)8 << 20 ? e->p->memory : (size_t)8 << 20);
        status = deltafs_options_set(*out, "memory", half);
    }
    if (status == DELTAFS_OK)
        status = deltafs_options_set(*out, "sync", e->is_synced ? "commit" : "none");
    return status;
}

static int open_once(const struct ending *e, const deltafs_options *o, deltafs_dir **out)
{
    const char *path = e->p->target;
    int status = job_is_on() ? job_open(path, o, 0, out) : deltafs_reopen(path, o, out);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = job_is_on() ? job_open(path, o, 1, out) : deltafs_create(path, o, out);
    return status;
}

/* Another process of the run may be ending an epoch, or creating the directory. The ranks of a job get the same status.
 */
static int open_directory(struct ending *e)
{
    const struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};
    deltafs_options *o = NULL;
    int status = writer_options(e, &o);

    for (int i = 0; status == DELTAFS_OK && i < BUSY_TRIES; i++) {
        status = open_once(e, o, &e->dir);
        if (status != DELTAFS_ERR_BUSY && status != DELTAFS_ERR_EXISTS && status != DELTAFS_ERR_NOT_DELTAFS)
            break;
        nanosleep(&pause, NULL);
        status = i + 1 < BUSY_TRIES ? DELTAFS_OK : status;
    }
    deltafs_options_destroy(o);
    return status;
}

/* ---- The records ---- */

static int put_records(const struct spool_record *first, const uint8_t *at, size_t n, void *dir)
{
    const uint8_t *key = at + sizeof *first, *value = key + first->key_size;
    size_t stride = sizeof *first + first->size;

    if (first->key_size > 0)
        return deltafs_append_bytes(dir, key, first->key_size, value, first->size);
    return deltafs_append_many(dir, n, at + offsetof(struct spool_record, key), stride, value, stride, first->size);
}

static int choose_label(const struct ending *e, uint64_t *label)
{
    uint64_t last;
    int status = e->label.is_given ? DELTAFS_OK : deltafs_last_label(e->dir, &last);

    *label = e->label.is_given ? e->label.number : status == DELTAFS_OK ? last + 1 : 0;
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* An append that fails makes the end of the epoch fail, on all ranks. */
static int put_epoch(const struct ending *e)
{
    uint64_t label = 0;
    int status = choose_label(e, &label), error = 0;

    if (status == DELTAFS_OK && e->spool)
        error = spool_each(e->spool, put_records, e->dir);
    if (status != DELTAFS_OK || error > 0)
        deltafs_epoch_cancel(e->dir, status != DELTAFS_OK ? deltafs_strerror(status) : strerror(error));
    return deltafs_epoch_end(e->dir, label);
}

/* Returns an error number, which was said. */
static int put_all(struct ending *e)
{
    e->is_tried = 1;
    int status = open_directory(e), error = 0;
    if (status != DELTAFS_OK)
        return particles_failed(status);
    status = put_epoch(e);
    if (status != DELTAFS_OK) {
        posix_say("%s", deltafs_errmsg(e->dir));
        error = status == DELTAFS_ERR_LABEL ? EINVAL : deltafs_namespace_errno(status);
    }
    status = deltafs_close(e->dir);
    return error == 0 && status != DELTAFS_OK ? particles_failed(status) : error;
}

/* ---- Agreement ---- */

enum { HAS_RECORDS, HAS_LABEL, LABEL, IS_SYNCED, REFUSAL, ERROR, AGREED };

/* What all ranks have to know. Returns why the epoch cannot be stored. */
static int agree(struct ending *e, int refusal, int *has_records)
{
    uint64_t most[AGREED] = {[HAS_RECORDS] = e->spool != NULL, [HAS_LABEL] = (uint64_t)e->label.is_given,
                             [LABEL] = e->label.number,        [IS_SYNCED] = (uint64_t)e->is_synced,
                             [REFUSAL] = (uint64_t)refusal,    [ERROR] = (uint64_t)e->error};
    const char *wrong = job_most(most, AGREED);

    *has_records = most[HAS_RECORDS] != 0;
    if (!e->label.is_given && most[HAS_LABEL])
        e->label = (struct label){.is_given = 1, .number = most[LABEL]};
    e->is_synced = most[IS_SYNCED] != 0;
    e->error = (int)most[ERROR];
    if (wrong && e->spool)
        posix_say("%s: records cannot be stored: %s", e->p->target, wrong);
    return wrong ? EIO : (int)most[REFUSAL];
}

/* ---- Durability ---- */

/* Epochs were committed without waiting for storage, and now all are to be durable. */
static int sync_before(struct particles *p)
{
    int fd = next.openat(AT_FDCWD, p->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || next.syncfs(fd) != 0 ? errno : 0;

    if (fd >= 0)
        next.close(fd);
    if (error != 0)
        posix_say("%s: not safe on storage: %s", p->target, strerror(error));
    return error;
}

static int note_durable(struct particles *p, int is_committed, int is_synced)
{
    int error = 0;

    if (is_synced && p->is_unsynced)
        error = sync_before(p);
    if (is_synced && error == 0)
        p->is_unsynced = 0;
    p->is_unsynced |= is_committed && !is_synced;
    return error;
}

/* ---- The end ---- */

/* Take the records of the current epoch: others can be written meanwhile. Returns whether the epoch ends: it does not
 * if its files are in another folder than the one that is closed. */
static int take_epoch(struct particles *p, const struct label *folder, struct ending *e)
{
    int is_other =
        p->spool && folder && (folder->is_given != p->of_spool.is_given || folder->number != p->of_spool.number);

    if (is_other)
        return 0;
    e->spool = p->spool;
    e->label = p->spool ? p->of_spool : folder ? *folder : (struct label){.is_given = 0};
    e->error = p->error;
    p->lost_before += p->lost;
    p->lost = 0;
    p->error = 0;
    p->spool = NULL;
    return 1;
}

/* With the lock of epochs. Returns an error number. */
static int end_taken(struct ending *e)
{
    struct particles *p = e->p;
    int has_records, refusal = 0, error = 0;

    if (e->spool && !e->label.is_given)
        refusal = label_of_environment(p, &e->label);
    refusal = agree(e, refusal, &has_records);
    if (has_records)
        error = refusal != 0 ? refusal : put_all(e);
    if (error != 0 && e->spool) {
        lock_take(&p->lock);
        p->lost_before += spool_count(e->spool);
        lock_give(&p->lock);
    }
    spool_destroy(e->spool);
    int unsynced = note_durable(p, has_records && error == 0, e->is_synced);
    return error != 0 ? error : e->error != 0 ? e->error : unsynced;
}

static int end_epoch(struct particles *p, const struct label *folder, int is_synced)
{
    struct ending e = {.p = p, .is_synced = is_synced || getenv("DELTAFS_POSIX_SYNC")};

    if (lock_try(&p->epoch_lock) != 0)
        return EDEADLK;
    int error = lock_try(&p->lock);
    if (error == 0) {
        int ends = take_epoch(p, folder, &e);
        lock_give(&p->lock);
        error = ends ? end_taken(&e) : 0;
    }
    lock_give(&p->epoch_lock);
    return error;
}

int particles_end_epoch(struct mount *m, const char *path)
{
    struct place at;
    int error = place_find(m->particles, path, &at);

    return error == 0 && at.kind == PLACE_FOLDER ? end_epoch(m->particles, &at.label, 0) : error;
}

int particles_sync(struct file *f)
{
    struct place at;

    if (f->kind != FILE_FOLDER)
        return 0;
    int error = place_find(f->mount->particles, f->path, &at);
    return error == 0 ? end_epoch(f->mount->particles, &at.label, 1) : error;
}

/* What was lost is said once more where everybody looks. */
static int say_lost(struct particles *p, int error)
{
    uint64_t lost = p->lost_before;

    p->lost_before = 0;
    if (lost > 0)
        posix_say("%s: %llu records of this program were not stored, as messages above say", p->target,
                  (unsigned long long)lost);
    return lost > 0 && error == 0 ? EIO : error;
}

int particles_end_last(struct particles *p)
{
    return say_lost(p, end_epoch(p, NULL, 0));
}
