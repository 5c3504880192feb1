#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/progress.h"

#define BAR_WIDTH     40
#define DRAW_EVERY    0.1 /* seconds */
#define ANCESTORS_MAX 4   /* a launcher is the parent, or its proxy's parent */

double progress_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The name and parent of a process. Returns 0, or -1. */
static int process_of(int pid, char name[64], int *parent)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    int got = f ? fscanf(f, "%*d (%63[^)]) %*c %d", name, parent) : 0;
    if (f)
        fclose(f);
    return got == 2 ? 0 : -1;
}

static int process_stderr_is_terminal(int pid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/2", pid);
    int fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), is_terminal = fd >= 0 && isatty(fd);
    if (fd >= 0)
        close(fd);
    return is_terminal;
}

/* Whether an MPI launcher among our ancestors passes our output on to a terminal. */
static int launcher_has_terminal(void)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prte", "hydra_pmi_proxy", "srun"};
    char name[64];
    int pid = getppid(), parent, is_launcher = 1;

    for (int i = 0; i < ANCESTORS_MAX && is_launcher; i++, pid = parent) {
        if (process_of(pid, name, &parent) != 0)
            return 0;
        is_launcher = 0;
        for (size_t k = 0; k < sizeof launchers / sizeof launchers[0]; k++)
            is_launcher |= strncmp(name, launchers[k], strlen(launchers[k])) == 0;
        if (is_launcher && process_stderr_is_terminal(pid))
            return 1;
    }
    return 0;
}

void progress_begin(struct progress *p, uint64_t total, int is_wanted)
{
    *p = (struct progress){.total = total, .started = progress_now()};
    p->is_shown = is_wanted && total > 0 && (isatty(STDERR_FILENO) || launcher_has_terminal());
}

/* Records or bytes per second, such as "1.2 M/s" or "340 MB/s". */
static void progress_rate(const struct progress *p, double now, char rate[32])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    double n = now > p->started ? (double)p->done / (now - p->started) : 0;
    size_t unit = 0;

    for (; n >= 1000 && unit < 4; unit++)
        n /= 1000;
    snprintf(rate, 32, "%.*f %s%s/s", n < 10 ? 1 : 0, n, units[unit], p->is_bytes ? "B" : "");
}

void progress_add(struct progress *p, uint64_t n)
{
    char bar[BAR_WIDTH + 1], rate[32];
    double t;

    p->done += n;
    if (!p->is_shown || (t = progress_now()) - p->drawn < DRAW_EVERY)
        return;
    p->drawn = t;
    double share = (double)p->done / (double)p->total, left = share > 0 ? (t - p->started) * (1 / share - 1) : 0;
    size_t filled = (size_t)(share * BAR_WIDTH);
    memset(bar, '-', BAR_WIDTH);
    memset(bar, '#', filled < BAR_WIDTH ? filled : BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    progress_rate(p, t, rate);
    fprintf(stderr, "\r[%s] %3.0f%%  %s, %.0f s left ", bar, 100 * share, rate, left);
    fflush(stderr);
}

void progress_wipe(struct progress *p)
{
    if (p->is_shown && p->drawn > 0)
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 35, "");
    p->drawn = 0;
}

static void *progress_run(void *arg)
{
    struct progress *p = arg;
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    while (p->is_watching) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(DRAW_EVERY * 1e9)}, NULL);
        if (deltafs_io_stat(p->dir, &io) == DELTAFS_OK && io.bytes_read - p->before > p->done)
            progress_add(p, io.bytes_read - p->before - p->done);
    }
    return NULL;
}

void progress_watch(struct progress *p, const deltafs_dir *d, uint64_t total)
{
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    progress_begin(p, total, 1);
    if (!p->is_shown || deltafs_io_stat(d, &io) != DELTAFS_OK)
        return;
    p->dir = d;
    p->before = io.bytes_read;
    p->is_bytes = 1;
    p->is_watching = 1;
    if (pthread_create(&p->thread, NULL, progress_run, p) != 0)
        p->is_watching = 0;
}

void progress_unwatch(struct progress *p)
{
    if (p->is_watching) {
        p->is_watching = 0;
        pthread_join(p->thread, NULL);
    }
    progress_end(p);
}

void progress_end(struct progress *p)
{
    progress_wipe(p);
    p->is_shown = 0;
}
