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

int progress_is_seen(void)
{
    return isatty(STDERR_FILENO) || launcher_has_terminal();
}

void progress_begin(struct progress *p, uint64_t total, int is_wanted)
{
    *p = (struct progress){.total = total, .started = progress_now()};
    p->is_shown = is_wanted && total > 0 && progress_is_seen();
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
    char bar[BAR_WIDTH + 1], rate[32], left[32] = "";
    double t;

    p->done += n;
    if (!p->is_shown || (t = progress_now()) - p->drawn < DRAW_EVERY)
        return;
    p->drawn = t;
    double share = (double)p->done / (double)p->total;
    size_t filled = (size_t)(share * BAR_WIDTH);
    memset(bar, '-', BAR_WIDTH);
    memset(bar, '#', filled < BAR_WIDTH ? filled : BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    progress_rate(p, t, rate);
    if (share > 0)
        snprintf(left, sizeof left, ", %.0f s left", (t - p->started) * (1 / share - 1));
    fprintf(stderr, "\r[%s] %3.0f%%  %s%s ", bar, 100 * share, rate, left);
    fflush(stderr);
}

void progress_wipe(struct progress *p)
{
    if (p->is_shown && p->drawn > 0)
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 35, "");
    p->drawn = 0;
}

static void progress_reach(struct progress *p)
{
    uint64_t done = p->watched(p->arg);

    progress_add(p, done > p->done ? done - p->done : 0);
}

static void *progress_run(void *arg)
{
    struct progress *p = arg;
    struct timespec next;

    pthread_mutex_lock(&p->lock);
    while (p->is_watching) {
        progress_reach(p);
        clock_gettime(CLOCK_REALTIME, &next);
        next.tv_nsec += (long)(DRAW_EVERY * 1e9);
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p->end, &p->lock, &next);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void progress_watch(struct progress *p, progress_done *watched, void *arg)
{
    if (!p->is_shown)
        return;
    p->watched = watched;
    p->arg = arg;
    progress_reach(p); /* at once, for a command that is done before the thread runs */
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->end, NULL);
    p->is_watching = 1;
    if (pthread_create(&p->thread, NULL, progress_run, p) == 0)
        return;
    p->is_watching = 0;
    pthread_cond_destroy(&p->end);
    pthread_mutex_destroy(&p->lock);
}

void progress_unwatch(struct progress *p)
{
    if (!p->is_watching)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_watching = 0;
    pthread_cond_signal(&p->end);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->end);
    pthread_mutex_destroy(&p->lock);
}

void progress_end(struct progress *p)
{
    progress_unwatch(p);
    progress_wipe(p);
    p->is_shown = 0;
}
