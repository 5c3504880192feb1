#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench_help.h"
#include "bench_run.h"

/* The number behind `name` in a file of /proc. */
static uint64_t proc_number(const char *path, const char *name)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (n < 0)
        bench_die("read %s: %s", path, strerror(errno));
    close(fd);
    text[n] = '\0';
    char *at = strstr(text, name);
    if (!at)
        bench_die("%s has no %s", path, name);
    return strtoull(at + strlen(name), NULL, 10);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

void meter_start(struct meter *m)
{
    struct rusage usage;
    /* Let VmHWM start from what is resident now. Where that is refused it starts from the fork, which is nearly the
     * same. */
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t put = write(fd, "5", 1);
        (void)put;
        close(fd);
    }
    m->resident = proc_number("/proc/self/status", "VmRSS:") * 1024;
    m->calls_read = proc_number("/proc/self/io", "syscr:");
    m->storage_read = proc_number("/proc/self/io", "\nread_bytes:");
    getrusage(RUSAGE_SELF, &usage);
    m->user = seconds(usage.ru_utime);
    m->sys = seconds(usage.ru_stime);
    m->wall = bench_now();
}

void meter_stop(const struct meter *m, struct outcome *out)
{
    struct rusage usage;

    out->wall = bench_now() - m->wall;
    getrusage(RUSAGE_SELF, &usage);
    out->user = seconds(usage.ru_utime) - m->user;
    out->sys = seconds(usage.ru_stime) - m->sys;
    /* Two of the calls were those that read the counters at the start. */
    out->calls_read = (double)(proc_number("/proc/self/io", "syscr:") - m->calls_read) - 2;
    out->storage_read = (double)(proc_number("/proc/self/io", "\nread_bytes:") - m->storage_read);
    uint64_t most = proc_number("/proc/self/status", "VmHWM:") * 1024;
    out->memory = most > m->resident ? (double)(most - m->resident) : 0;
}

static void process_body(void (*fn)(const void *arg, struct outcome *out), const void *arg, struct outcome *out)
{
    /* The parent's handlers only set a flag; here the signals are to end the process. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fn(arg, out);
    fflush(NULL);
    _exit(0);
}

void run_process(const char *what, void (*fn)(const void *arg, struct outcome *out), const void *arg,
                 struct outcome *out)
{
    int status;
    struct outcome *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        bench_die("no memory for the outcome of a run");
    bench_heed_signals();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        bench_die("fork: %s", strerror(errno));
    if (pid == 0)
        process_body(fn, arg, shared);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            bench_die("waitpid: %s", strerror(errno));
        kill(pid, SIGTERM);
    }
    bench_heed_signals();
    if (WIFSIGNALED(status))
        bench_die("%s: its process was ended by signal %d", what, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        bench_die("%s: failed", what);
    *out = *shared;
    munmap(shared, sizeof *shared);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double percentile(double *values, size_t n, double share)
{
    if (n == 0)
        bench_die("no values to take a percentile of");
    qsort(values, n, sizeof *values, compare_double);
    size_t i = (size_t)(share * (double)n);
    return values[i < n ? i : n - 1];
}

struct spread spread_of(const double *values, size_t n)
{
    double sorted[RUNS_MAX];

    if (n == 0 || n > RUNS_MAX)
        bench_die("a spread of %zu values", n);
    memcpy(sorted, values, n * sizeof *values);
    qsort(sorted, n, sizeof *sorted, compare_double);
    double median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return (struct spread){.median = median, .low = sorted[0], .high = sorted[n - 1]};
}

struct spread spread_exact(double value)
{
    return (struct spread){.median = value, .low = value, .high = value};
}
