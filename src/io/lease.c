#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/number.h"
#include "io/io_format.h"
#include "io/lease.h"
#include "base/uuid.h"

#define LEASE_TRIES  100 /* to open a lease that others remove just then */
#define LEASE_SETTLE 1   /* seconds from asking to having written, at most, of who takes one that cannot be locked */

#define NO_NOTE UINT64_MAX /* as an epoch's number */

/* What a lease's line says. */
struct holder {
    char host[256], job[80], session[UUID_TEXT_SIZE];
    uint64_t pid, renewed; /* seconds since 1970 */
    struct lease_epoch note;
};

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

static int lease_self(struct holder *h, struct error *e)
{
    uint8_t session[FORMAT_UUID_SIZE];
    char host[sizeof h->host] = "";
    int status = uuid_create(session, e);

    if (status != DELTAFS_OK)
        return status;
    *h = (struct holder){.pid = (uint64_t)getpid(), .note.number = NO_NOTE};
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strpbrk(host, " \n"))
        strcpy(host, "-");
    strcpy(h->host, host);
    lease_job(h->job);
    uuid_to_text(session, h->session);
    return DELTAFS_OK;
}

/* Returns 0, or -1 if the text is not a lease's line. */
static int lease_parse(const char *text, struct holder *h)
{
    *h = (struct holder){0};
    int n = sscanf(text,
                   "host=%255s pid=%" SCNu64 " job=%79s session=%36s renewed=%" SCNu64 " epoch=%" SCNu64
                   " label=%" SCNu64 " records=%" SCNu64 " stored=%" SCNu64,
                   h->host, &h->pid, h->job, h->session, &h->renewed, &h->note.number, &h->note.label, &h->note.records,
                   &h->note.bytes_stored);
    if (n < 9 || !strchr(text, '\n'))
        h->note.number = NO_NOTE;
    return n >= 5 ? 0 : -1;
}

/* Whether a process of this host has ended, though nobody may have waited for it yet (proc(5)). */
static int lease_has_ended(uint64_t pid)
{
    char path[64], text[512] = "", *name_end;

    if (pid == 0 || pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return 1;
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    name_end = strrchr(text, ')');
    /* Its other threads may go on. */
    char state;
    long threads;
    return name_end &&
           sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
                  &threads) == 2 &&
           state == 'Z' && threads <= 1;
}

/* All lines of a holder are equally long. */
static int lease_write(struct lease *l, struct holder *h, struct error *e)
{
    h->renewed = (uint64_t)time(NULL);
    l->size = (size_t)snprintf(l->line, sizeof l->line,
                               "host=%s pid=%" PRIu64 " job=%s session=%s renewed=%020" PRIu64 " epoch=%020" PRIu64
                               " label=%020" PRIu64 " records=%020" PRIu64 " stored=%020" PRIu64 "\n",
                               h->host, h->pid, h->job, h->session, h->renewed, h->note.number, h->note.label,
                               h->note.records, h->note.bytes_stored);
    return io_file_write(&l->file, 0, l->line, l->size, e);
}

/* What stands in the file; "" if nothing does. */
static int lease_read(struct io_file *file, char *text, size_t room, struct error *e)
{
    uint64_t size;
    int status = io_file_size(file, &size, e);

    if (status != DELTAFS_OK)
        return status;
    size_t n = size < room ? (size_t)size : room - 1;
    text[n] = '\0';
    return io_file_read(file, 0, text, n, e);
}

/* The same of the file that has the lease's name now: network file systems look anew at files that are opened. */
static int lease_reread(const struct lease *l, char *text, size_t room, struct error *e)
{
    struct io_file file;
    int status = io_file_open(l->file.io, l->file.path, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = lease_read(&file, text, room, e);
    io_file_close(&file, error_ignored());
    return status;
}

static int lease_busy(struct error *e, const struct holder *h, const char *path, const char *more)
{
    return error_set(e, DELTAFS_ERR_BUSY, "%s: process %" PRIu64 " on host %s (job %.60s) is writing the directory%s",
                     path, h->pid, h->host, h->job, more);
}

/* Whether whoever wrote `text` can be writing still; the lock is ours if `is_sure`. */
static int lease_check(const struct lease *l, const char *text, int is_sure, uint64_t seconds, struct error *e)
{
    struct holder self, h;
    char more[200];
    uint64_t now = (uint64_t)time(NULL);
    int status = lease_self(&self, e);

    if (status != DELTAFS_OK || lease_parse(text, &h) != 0)
        return status;
    int is_here = strcmp(h.host, self.host) == 0;
    if (is_sure ? is_here || lease_is_earlier_run(h.job, self.job) : is_here && lease_has_ended(h.pid))
        return DELTAFS_OK;
    /* Far ahead: clocks differ, or one has been set back. */
    if ((now >= h.renewed ? now - h.renewed : h.renewed - now) >= seconds)
        return DELTAFS_OK;
    snprintf(more, sizeof more,
             ", or was %" PRIu64 " s ago; if it has ended, give the option lease=0 (now %" PRIu64 " s)",
             now < h.renewed ? 0 : now - h.renewed, seconds);
    return lease_busy(e, &h, l->file.path, more);
}

/* Open and lock the file; another may remove it at that moment. */
static int lease_open(struct lease *l, struct io *io, const char *path, int *is_sure, struct error *e)
{
    struct holder h;
    char text[sizeof l->line];
    int status = DELTAFS_ERR_NOT_FOUND;

    for (int i = 0; i < LEASE_TRIES && status == DELTAFS_ERR_NOT_FOUND; i++) {
        status = io_file_open(io, path, O_RDWR | O_CREAT, &l->file, e);
        if (status != DELTAFS_OK)
            return status;
        status = io_file_lock(&l->file, is_sure, e);
        if (status == DELTAFS_ERR_BUSY && lease_read(&l->file, text, sizeof text, error_ignored()) == DELTAFS_OK &&
            lease_parse(text, &h) == 0)
            lease_busy(e, &h, path, "");
        if (status != DELTAFS_OK)
            io_file_close(&l->file, error_ignored());
    }
    return status;
}

/* Whether the file is still that of the folder, and its line this job's: DELTAFS_OK or DELTAFS_ERR_BUSY. */
static int lease_is_ours(struct lease *l, struct holder *own, struct error *e)
{
    char text[sizeof l->line];
    struct holder h;
    int is_sure, status = io_file_lock(&l->file, &is_sure, e);

    lease_parse(l->line, own);
    if (status == DELTAFS_OK)
        status = l->is_sure ? lease_read(&l->file, text, sizeof text, e) : lease_reread(l, text, sizeof text, e);
    if (status == DELTAFS_ERR_NOT_FOUND || (status == DELTAFS_OK && lease_parse(text, &h) != 0))
        return error_set(e, DELTAFS_ERR_BUSY,
                         "%s: somebody has removed or changed the lease: nothing more can be committed", l->file.path);
    if (status == DELTAFS_OK && strcmp(h.session, own->session) != 0)
        return lease_busy(e, &h, l->file.path, ", which it took over: nothing more can be committed");
    return status;
}

/* Write the line to a file that is not locked, and see whether others do. */
static int lease_settle(struct lease *l, struct error *e)
{
    struct timespec wait = {.tv_sec = LEASE_SETTLE};
    struct holder own;
    int status = io_file_sync(&l->file, e);

    if (status != DELTAFS_OK)
        return status;
    while (nanosleep(&wait, &wait) != 0 && errno == EINTR)
        ;
    return lease_is_ours(l, &own, e);
}

int lease_take(struct lease *l, struct io *io, const char *folder, uint64_t seconds, int keeps_note, struct error *e)
{
    char *path = io_path(folder, LEASE_NAME), text[sizeof l->line];
    struct holder self, before = {.note.number = NO_NOTE};
    uint64_t size = 0;

    *l = (struct lease){.file.fd = -1};
    if (!path)
        return error_no_memory(e, strlen(folder), "a path");
    int status = lease_open(l, io, path, &l->is_sure, e);
    if (status == DELTAFS_OK)
        status = lease_read(&l->file, text, sizeof text, e);
    if (status == DELTAFS_OK)
        status = lease_check(l, text, l->is_sure, seconds, e);
    if (status == DELTAFS_OK)
        status = lease_self(&self, e);
    if (status == DELTAFS_OK && lease_parse(text, &before) == 0 && before.note.number != NO_NOTE) {
        l->has_note = 1;
        l->note = before.note;
        if (keeps_note)
            self.note = before.note;
    }
    /* First the line, so that a note which is kept is never gone; then what is left of a longer one. */
    if (status == DELTAFS_OK)
        status = lease_write(l, &self, e);
    if (status == DELTAFS_OK)
        status = io_file_size(&l->file, &size, e);
    if (status == DELTAFS_OK && size > l->size)
        status = io_file_truncate(&l->file, l->size, e);
    if (status == DELTAFS_OK && !l->is_sure)
        status = lease_settle(l, e);
    if (status != DELTAFS_OK)
        io_file_close(&l->file, error_ignored());
    if (status != DELTAFS_OK && status != DELTAFS_ERR_BUSY)
        io_explain(path, 1, "what was written does not need it: remove it", e);
    free(path);
    return status;
}

int lease_find_epoch(struct io *io, const char *folder, struct lease_epoch *out)
{
    char *path = io_path(folder, LEASE_NAME), text[sizeof((struct lease *)0)->line];
    struct lease l = {0};
    struct holder h = {.note.number = NO_NOTE};

    if (path && io_file_open(io, path, O_RDONLY, &l.file, error_ignored()) == DELTAFS_OK) {
        if (lease_read(&l.file, text, sizeof text, error_ignored()) == DELTAFS_OK && lease_parse(text, &h) == 0)
            *out = h.note;
        io_file_close(&l.file, error_ignored());
    }
    free(path);
    return h.note.number != NO_NOTE;
}

/* How long ago, or on which day, a lease was renewed. */
static void lease_age(const struct holder *h, uint64_t now, char *text, size_t room)
{
    time_t then = (time_t)h->renewed;
    struct tm tm;
    char date[40] = "";

    if (gmtime_r(&then, &tm))
        strftime(date, sizeof date, ", %Y-%m-%d %H:%M:%S UTC", &tm);
    snprintf(text, room, "%" PRIu64 " s ago%s", now > h->renewed ? now - h->renewed : 0, date);
}

int lease_describe(struct io *io, const char *folder, uint64_t seconds, char *text, size_t room)
{
    char *path = io_path(folder, LEASE_NAME), line[sizeof((struct lease *)0)->line], age[100];
    const char *state = "may be writing the directory: if so, repairing it is refused";
    struct io_file file = {.fd = -1, .direct = -1};
    struct holder h, self;
    uint64_t now = (uint64_t)time(NULL);
    int is_there = path && io_file_open(io, path, O_RDONLY, &file, error_ignored()) == DELTAFS_OK;

    const char *misfit = path ? io_misfit(path, 1) : NULL;

    if (misfit) {
        snprintf(text, room, "%s: is %s, and no file; the next writer is refused until it is removed", path, misfit);
        is_there = 1;
    } else if (is_there &&
               (lease_read(&file, line, sizeof line, error_ignored()) != DELTAFS_OK || lease_parse(line, &h) != 0)) {
        snprintf(text, room, "%s: does not name the writer of the directory; the next writer takes it over", path);
    } else if (is_there && lease_self(&self, error_ignored()) == DELTAFS_OK) {
        int is_here = strcmp(h.host, self.host) == 0, is_gone = is_here && lease_has_ended(h.pid);
        int is_old = (now >= h.renewed ? now - h.renewed : h.renewed - now) >= seconds;
        if (is_gone || lease_is_earlier_run(h.job, self.job) || (!is_here && is_old))
            state = "has ended without closing the directory; the next writer takes it over";
        else if (is_here)
            state = "is writing the directory: repairing it is refused until it has ended";
        lease_age(&h, now, age, sizeof age);
        snprintf(text, room, "%s: process %" PRIu64 " on host %s (job %.60s), which renewed it %s, %s", path, h.pid,
                 h.host, h.job, age, state);
    }
    io_file_close(&file, error_ignored());
    free(path);
    return is_there;
}

int lease_renew(struct lease *l, const struct lease_epoch *note, struct error *e)
{
    struct holder own;
    int status = lease_is_ours(l, &own, e);

    if (status != DELTAFS_OK)
        return status;
    own.note = note ? *note : (struct lease_epoch){.number = NO_NOTE};
    status = lease_write(l, &own, e);
    return status == DELTAFS_OK && !l->is_sure ? io_file_sync(&l->file, e) : status;
}

int lease_confirm(struct lease *l, struct error *e)
{
    struct holder own;

    return l->is_sure ? DELTAFS_OK : lease_is_ours(l, &own, e);
}

int lease_drop(struct lease *l, struct error *e)
{
    struct holder own;

    if (!l->file.path)
        return DELTAFS_OK;
    int status = lease_is_ours(l, &own, e);
    if (status == DELTAFS_OK)
        status = io_unlink(l->file.io, l->file.path, e);
    else if (status == DELTAFS_ERR_BUSY)
        status = DELTAFS_OK; /* whose it is now knows what to do with it */
    return io_file_finish(&l->file, status, e);
}
