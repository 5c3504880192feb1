#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/progress.h"

#define BAR_WIDTH     40
#define DRAW_EVERY    0.1 /* seconds */
#define ANCESTORS_MAX 4   /* a launcher is the parent, or its proxy's parent */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The name and parent of a process. Returns 0, or -1. */
static int process_of(int pid, char name[64], int *parent)
{
    char path[64], line[256];

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    char *got = fgets(line, sizeof line, f), *open, *close;
    fclose(f);
    if (!got || !(open = strchr(line, '(')) || !(close = strrchr(line, ')')))
        return -1;
    snprintf(name, 64, "%.*s", (int)(close - open - 1), open + 1);
    return sscanf(close + 1, " %*c %d", parent) == 1 ? 0 : -1;
}

static int process_stderr_is_terminal(int pid)
{
    char path[64], target[64];

    snprintf(path, sizeof path, "/proc/%d/fd/2", pid);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return 0;
    target[n] = '\0';
    return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

/* Whether an MPI launcher above us passes what we print on to a terminal. */
static int launcher_has_terminal(void)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prte", "hydra_pmi_proxy", "srun"};
    char name[64];
    int pid = getppid(), parent;

    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent) {
        int is_launcher = 0;
        if (process_of(pid, name, &parent) != 0)
            return 0;
        for (size_t k = 0; k < sizeof launchers / sizeof launchers[0]; k++)
            is_launcher |= strncmp(name, launchers[k], strlen(launchers[k])) == 0;
        if (!is_launcher)
            return 0;
        if (process_stderr_is_terminal(pid))
            return 1;
    }
    return 0;
}

void progress_begin(struct progress *p, uint64_t total, int is_wanted)
{
    *p = (struct progress){.total = total, .started = now()};
    p->is_shown = is_wanted && total > 0 && (isatty(STDERR_FILENO) || launcher_has_terminal());
}

void progress_add(struct progress *p, uint64_t n)
{
    char bar[BAR_WIDTH + 1];
    double t;

    p->done += n;
    if (!p->is_shown || (t = now()) - p->drawn < DRAW_EVERY)
        return;
    p->drawn = t;
    double share = (double)p->done / (double)p->total, left = share > 0 ? (t - p->started) * (1 / share - 1) : 0;
    size_t filled = (size_t)(share * BAR_WIDTH);
    memset(bar, '-', BAR_WIDTH);
    memset(bar, '#', filled < BAR_WIDTH ? filled : BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3.0f%%  %.0f s left ", bar, 100 * share, left);
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->is_shown && p->drawn > 0)
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 30, "");
    p->is_shown = 0;
}
