#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "io/io_format.h"
#include "io/lease.h"
#include "base/uuid.h"

#define LEASE_TRIES  100 /* to open a lease that others remove just then */
#define LEASE_SETTLE 1   /* seconds from asking to having written, at most, of who takes one that cannot be locked */

#define NO_NOTE UINT64_MAX /* as an epoch's number */

#define LINE_ROOM 640

/* The batch job that this process belongs to, and which run of it: "ID.RUN"; "-" if none is known. */
static void lease_job(char job[static 80])
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
    const char *run = getenv("SLURM_RESTART_COUNT");

    strcpy(job, "-");
    run = run && *run && strlen(run) < 12 && strspn(run, "0123456789") == strlen(run) ? run : "0";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *id = getenv(names[i]);
        if (id && *id && strlen(id) < 64 && !strpbrk(id, " \n")) {
            snprintf(job, 80, "%s.%s", id, run);
            return;
        }
    }
}

/* Whether `job` is the batch job `self` in an earlier run: that has ended before this one began. */
static int lease_is_earlier_run(const char *job, const char *self)
{
    const char *dot = strrchr(job, '.'), *own = strrchr(self, '.');

    return dot && own && dot - job == own - self && strncmp(job, self, (size_t)(dot - job)) == 0 &&
           strtoull(dot + 1, NULL, 10) < strtoull(own + 1, NULL, 10);
}

static int lease_self(struct lease_holder *h, struct error *e)
{
    uint8_t session[FORMAT_UUID_SIZE];
    char host[sizeof h->host] = "";
    int status = uuid_create(session, e);

    if (status != DELTAFS_OK)
        return status;
    *h = (struct lease_holder){.pid = (uint64_t)getpid(), .note.number = NO_NOTE};
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strpbrk(host, " \n"))
        strcpy(host, "-");
    strcpy(h->host, host);
    lease_job(h->job);
    uuid_to_text(session, h->session);
    return DELTAFS_OK;
}

/* Returns 0, or -1 if the text is not a lease's line. */
static int lease_parse(const char *text, struct lease_holder *h)
{
    *h = (struct lease_holder){0};
    int n = sscanf(text,
                   "host=%255s pid=%" SCNu64 " job=%79s session=%36s renewed=%" SCNu64 " epoch=%" SCNu64
                   " label=%" SCNu64 " records=%" SCNu64 " stored=%" SCNu64,
                   h->host, &h->pid, h->job, h->session, &h->renewed, &h->note.number, &h->note.label, &h->note.records,
                   &h->note.bytes_stored);
    if (n < 9 || !strchr(text, '\n'))
        h->note.number = NO_NOTE;
    return n >= 5 ? 0 : -1;
}

/* All lines of a holder have the same length. */
static int lease_write(struct lease *l, uint64_t *size, struct error *e)
{
    const struct lease_epoch *note = &l->own.note;
    char line[LINE_ROOM];

    l->own.renewed = (uint64_t)time(NULL);
    *size = (uint64_t)snprintf(line, sizeof line,
                               "host=%s pid=%" PRIu64 " job=%s session=%s renewed=%020" PRIu64 " epoch=%020" PRIu64
                               " label=%020" PRIu64 " records=%020" PRIu64 " stored=%020" PRIu64 "\n",
                               l->own.host, l->own.pid, l->own.job, l->own.session, l->own.renewed, note->number,
                               note->label, note->records, note->bytes_stored);
    return io_file_write(&l->file, 0, line, (size_t)*size, e);
}

/* What the file says; *is_line: it is a lease's line. */
static int lease_read(struct io_file *file, struct lease_holder *h, int *is_line, struct error *e)
{
    char text[LINE_ROOM];
    uint64_t size = 0;
    int status = io_file_size(file, &size, e);
    size_t n = size < sizeof text ? (size_t)size : sizeof text - 1;

    text[n] = '\0';
    if (status == DELTAFS_OK)
        status = io_file_read(file, 0, text, n, e);
    *is_line = status == DELTAFS_OK && lease_parse(text, h) == 0;
    return status;
}

/* The same of the file that has the name now: network file systems refresh files that are opened. */
static int lease_read_name(struct io *io, const char *path, struct lease_holder *h, int *is_line, struct error *e)
{
    struct io_file file;
    int status = io_file_open(io, path, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = lease_read(&file, h, is_line, e);
    io_file_close(&file, error_ignored());
    return status;
}

static int lease_busy(struct error *e, const struct lease_holder *h, const char *path, const char *more)
{
    return error_set(e, DELTAFS_ERR_BUSY, "%s: process %" PRIu64 " on host %s (job %.60s) is writing the directory%s",
                     path, h->pid, h->host, h->job, more);
}

/* Whether it was a process of this host, and there is none with its number any more. */
static int lease_has_ended(const struct lease_holder *h, const struct lease_holder *self)
{
    return strcmp(h->host, self->host) == 0 &&
           (h->pid == 0 || h->pid > INT32_MAX || (kill((pid_t)h->pid, 0) != 0 && errno == ESRCH));
}

/* Another process has the lock. */
static int lease_locked(const struct lease_holder *h, const char *path, struct error *e)
{
    struct lease_holder self;
    int has_ended = lease_self(&self, error_ignored()) == DELTAFS_OK && lease_has_ended(h, &self);

    return lease_busy(e, h, path,
                      has_ended
                          ? ", or has ended, but a process that it started has this file open: end that one ('fuser "
                            "FILE' shows it)"
                          : "");
}

/* Whether the holder can still be writing: DELTAFS_OK if not, or _BUSY. `is_free`: nobody has the lock. */
static int lease_check(const struct lease_holder *h, int is_free, uint64_t seconds, const char *path, struct error *e)
{
    struct lease_holder self;
    char more[200];
    uint64_t now = (uint64_t)time(NULL);
    int status = lease_self(&self, e);

    if (status != DELTAFS_OK)
        return status;
    int is_here = strcmp(h->host, self.host) == 0;
    if (is_free ? is_here || lease_is_earlier_run(h->job, self.job) : lease_has_ended(h, &self))
        return DELTAFS_OK;
    /* Far ahead: clocks differ, or one has been set back. */
    if ((now >= h->renewed ? now - h->renewed : h->renewed - now) >= seconds)
        return DELTAFS_OK;
    snprintf(more, sizeof more,
             ", or was %" PRIu64
             " s ago; if it has ended, give the option lease=0 ('--lease 0' of a command, or DELTAFS_LEASE=0 in the "
             "environment; now %" PRIu64 " s)",
             now < h->renewed ? 0 : now - h->renewed, seconds);
    return lease_busy(e, h, path, more);
}

/* Open and lock the file; another may remove it at that moment. */
static int lease_open(struct lease *l, struct io *io, const char *path, struct error *e)
{
    struct lease_holder h;
    int is_line, status = DELTAFS_ERR_NOT_FOUND;

    for (int i = 0; i < LEASE_TRIES && status == DELTAFS_ERR_NOT_FOUND; i++) {
        status = io_file_open(io, path, O_RDWR | O_CREAT, &l->file, e);
        if (status != DELTAFS_OK)
            return status;
        status = io_file_lock(&l->file, &l->is_sure, e);
        if (status == DELTAFS_ERR_BUSY && lease_read(&l->file, &h, &is_line, error_ignored()) == DELTAFS_OK && is_line)
            lease_locked(&h, path, e);
        if (status != DELTAFS_OK)
            io_file_close(&l->file, error_ignored());
    }
    return status;
}

/* Whether the file is still that of the folder, and its line this job's: DELTAFS_OK or DELTAFS_ERR_BUSY. */
static int lease_is_ours(struct lease *l, struct error *e)
{
    struct lease_holder h;
    int is_sure, is_line = 0, status = io_file_lock(&l->file, &is_sure, e);

    if (status == DELTAFS_OK)
        status = l->is_sure ? lease_read(&l->file, &h, &is_line, e)
                            : lease_read_name(l->file.io, l->file.path, &h, &is_line, e);
    if (status == DELTAFS_ERR_NOT_FOUND || (status == DELTAFS_OK && !is_line))
        return error_set(e, DELTAFS_ERR_BUSY,
                         "%s: somebody has removed or changed the lease: nothing more can be committed", l->file.path);
    if (status == DELTAFS_OK && strcmp(h.session, l->own.session) != 0)
        return lease_busy(e, &h, l->file.path, ", which it took over: nothing more can be committed");
    return status;
}

/* Write the line to a file that is not locked, and see whether others do. */
static int lease_settle(struct lease *l, struct error *e)
{
    struct timespec wait = {.tv_sec = LEASE_SETTLE};
    int status = io_file_sync(&l->file, e);

    while (status == DELTAFS_OK && nanosleep(&wait, &wait) != 0 && errno == EINTR)
        ;
    return status == DELTAFS_OK ? lease_is_ours(l, e) : status;
}

int lease_take(struct lease *l, struct io *io, const char *folder, uint64_t seconds, int keeps_note, struct error *e)
{
    char path[PATH_ROOM];
    struct lease_holder before;
    uint64_t size = 0, written;
    int is_line = 0;

    *l = (struct lease){.file.fd = -1};
    int status = lease_open(l, io, io_path_in(path, folder, LEASE_NAME), e);
    if (status == DELTAFS_OK)
        status = lease_read(&l->file, &before, &is_line, e);
    if (status == DELTAFS_OK && is_line)
        status = lease_check(&before, l->is_sure, seconds, path, e);
    if (status == DELTAFS_OK)
        status = lease_self(&l->own, e);
    if (status == DELTAFS_OK && is_line && before.note.number != NO_NOTE) {
        l->has_note = 1;
        l->note = before.note;
        if (keeps_note)
            l->own.note = before.note;
    }
    /* First the line, so that a note which is kept is never gone; then what is left of a longer one. */
    if (status == DELTAFS_OK)
        status = lease_write(l, &written, e);
    if (status == DELTAFS_OK)
        status = io_file_size(&l->file, &size, e);
    if (status == DELTAFS_OK && size > written)
        status = io_file_truncate(&l->file, written, e);
    if (status == DELTAFS_OK && !l->is_sure)
        status = lease_settle(l, e);
    if (status != DELTAFS_OK)
        io_file_close(&l->file, error_ignored());
    if (status != DELTAFS_OK && status != DELTAFS_ERR_BUSY)
        io_explain(path, 1, "what was written does not need it: remove it", e);
    return status;
}

int lease_find_epoch(struct io *io, const char *folder, struct lease_epoch *out)
{
    char path[PATH_ROOM];
    struct lease_holder h;
    int is_line;

    if (lease_read_name(io, io_path_in(path, folder, LEASE_NAME), &h, &is_line, error_ignored()) != DELTAFS_OK ||
        !is_line || h.note.number == NO_NOTE)
        return 0;
    *out = h.note;
    return 1;
}

int lease_describe(struct io *io, const char *folder, uint64_t seconds, char *text, size_t room)
{
    char path[PATH_ROOM];
    const char *misfit = io_misfit(io_path_in(path, folder, LEASE_NAME), 1);
    struct io_file file;
    struct lease_holder h;
    uint64_t now = (uint64_t)time(NULL);
    int is_line, is_free;

    if (misfit) {
        snprintf(text, room, "%s: is %s; the next writer is refused until it is removed", path, misfit);
        return 1;
    }
    if (io_file_open(io, path, O_RDONLY, &file, error_ignored()) != DELTAFS_OK)
        return 0;
    int is_locked = io_file_is_locked(&file, &is_free);
    if (lease_read(&file, &h, &is_line, error_ignored()) != DELTAFS_OK || !is_line)
        snprintf(text, room, "%s: does not name the writer of the directory; the next writer takes it over", path);
    else
        snprintf(text, room, "%s: process %" PRIu64 " on host %s (job %.60s), which renewed it %" PRIu64 " s ago, %s",
                 path, h.pid, h.host, h.job, now > h.renewed ? now - h.renewed : 0,
                 is_locked ? "is writing the directory: repairing it is refused until it has ended"
                 : lease_check(&h, is_free, seconds, path, error_ignored()) == DELTAFS_OK
                     ? "has ended without closing the directory; the next writer takes it over"
                     : "may be writing the directory: if so, repairing it is refused");
    io_file_close(&file, error_ignored());
    return 1;
}

int lease_create(struct lease *l, struct io *io, const char *aside, const char *path, struct error *e)
{
    uint64_t written;

    *l = (struct lease){.file.fd = -1};
    char *name = strdup(path);
    int status = name ? io_file_open(io, aside, O_RDWR | O_CREAT | O_EXCL, &l->file, e)
                      : error_no_memory(e, strlen(path), "a lease");
    if (status != DELTAFS_OK) {
        free(name);
        return status;
    }
    status = io_file_lock(&l->file, &l->is_sure, e);
    if (status == DELTAFS_OK)
        status = lease_self(&l->own, e);
    if (status == DELTAFS_OK)
        status = lease_write(l, &written, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, path, e);
    if (status == DELTAFS_OK) {
        free(l->file.path);
        l->file.path = name;
        return status;
    }
    free(name);
    io_unlink(io, aside, error_ignored());
    return io_file_finish(&l->file, status, e);
}

int lease_find_holder(struct io *io, const char *path, uint64_t seconds, struct lease_holder *out)
{
    struct io_file file;
    int is_line = 0, is_free;

    *out = (struct lease_holder){.pid = 0};
    int status = io_file_open(io, path, O_RDONLY, &file, error_ignored());
    if (status != DELTAFS_OK)
        return status != DELTAFS_ERR_NOT_FOUND;
    int is_held = io_file_is_locked(&file, &is_free);
    status = lease_read(&file, out, &is_line, error_ignored());
    if (!is_held && is_line)
        is_held = lease_check(out, is_free, seconds, path, error_ignored()) != DELTAFS_OK;
    io_file_close(&file, error_ignored());
    return is_held || status != DELTAFS_OK;
}

int lease_may_be_held(struct io *io, const char *folder, uint64_t seconds)
{
    char path[PATH_ROOM];
    struct lease_holder h;

    return lease_find_holder(io, io_path_in(path, folder, LEASE_NAME), seconds, &h);
}

int lease_renew(struct lease *l, const struct lease_epoch *note, struct error *e)
{
    uint64_t written;
    int status = lease_is_ours(l, e);

    if (status != DELTAFS_OK)
        return status;
    l->own.note = note ? *note : (struct lease_epoch){.number = NO_NOTE};
    status = lease_write(l, &written, e);
    return status == DELTAFS_OK && !l->is_sure ? io_file_sync(&l->file, e) : status;
}

int lease_confirm(struct lease *l, struct error *e)
{
    return l->is_sure ? DELTAFS_OK : lease_is_ours(l, e);
}

int lease_drop(struct lease *l, struct error *e)
{
    if (!l->file.path)
        return DELTAFS_OK;
    int status = lease_is_ours(l, e);
    if (status == DELTAFS_OK)
        status = io_unlink(l->file.io, l->file.path, e);
    else if (status == DELTAFS_ERR_BUSY)
        status = DELTAFS_OK; /* whose it is now knows what to do with it */
    return io_file_finish(&l->file, status, e);
}
