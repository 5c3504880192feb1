#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "bench_help.h"

#define READ_SIZE (1u << 20)

static char scratch[4096];
static pid_t scratch_owner;
static volatile sig_atomic_t signal_seen;

_Noreturn void bench_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "deltafs-bench: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    /* A measured process must not remove its parent's scratch folder. */
    if (scratch_owner != 0 && getpid() != scratch_owner)
        _exit(1);
    exit(1);
}

void bench_say(const char *fmt, ...)
{
    static double start;
    va_list ap;

    bench_heed_signals();
    if (start == 0)
        start = bench_now();
    va_start(ap, fmt);
    fprintf(stderr, "[%4.0f s] ", bench_now() - start);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
}

static void on_signal(int signal)
{
    signal_seen = signal;
}

void bench_heed_signals(void)
{
    if (signal_seen != 0)
        bench_die("ended by signal %d", (int)signal_seen);
}

static void scratch_remove(void)
{
    if (getpid() == scratch_owner)
        tree_remove(scratch);
}

const char *bench_scratch_make(const char *parent)
{
    struct sigaction action = {.sa_handler = on_signal};

    snprintf(scratch, sizeof scratch, "%s/deltafs-bench.XXXXXX", parent);
    if (!mkdtemp(scratch))
        bench_die("make a folder in %s: %s", parent, strerror(errno));
    scratch_owner = getpid();
    if (atexit(scratch_remove) != 0)
        bench_die("atexit fails");
    for (size_t i = 0; i < 3; i++)
        if (sigaction((const int[]){SIGINT, SIGTERM, SIGHUP}[i], &action, NULL) != 0)
            bench_die("sigaction: %s", strerror(errno));
    return scratch;
}

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void bench_sleep(double seconds)
{
    if (seconds <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

void *bench_alloc(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        bench_die("no memory for %zu bytes of input", n);
    /* Only a wish: without large pages all that is measured has the same small ones. */
    madvise(p, n, MADV_HUGEPAGE);
    return p;
}

void bench_free(void *p, size_t n)
{
    if (p)
        munmap(p, n);
}

void *bench_grow(void *p, size_t n)
{
    void *out = realloc(p, n > 0 ? n : 1);

    if (!out)
        bench_die("no memory for %zu bytes", n);
    return out;
}

char *bench_text(char out[static 256], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(out, 256, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= 256)
        bench_die("too long a path: %s...", out);
    return out;
}

char *bench_count(char out[static 16], uint64_t n)
{
    if (n >= 1000000)
        snprintf(out, 16, "%.4gM", (double)n / 1e6);
    else if (n >= 1000)
        snprintf(out, 16, "%.4gk", (double)n / 1e3);
    else
        snprintf(out, 16, "%u", (unsigned)n);
    return out;
}

/* ---- Folders of files ---- */

/* nftw hands its callback no argument, so a walk's sum stands here. */
static uint64_t walk_bytes;

static int walk_add(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path;
    (void)ftw;
    if (type == FTW_F)
        walk_bytes += (uint64_t)st->st_size;
    return 0;
}

static int walk_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int walk_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        bench_die("open %s: %s", path, strerror(errno));
    return fd;
}

static int walk_evict(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type != FTW_F)
        return 0;
    int fd = walk_open(path);
    if (fsync(fd) != 0)
        bench_die("fsync %s: %s", path, strerror(errno));
    int rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rc != 0)
        bench_die("drop %s from the page cache: %s", path, strerror(rc));
    close(fd);
    return 0;
}

static int walk_read(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    static uint8_t buffer[READ_SIZE];
    ssize_t got;

    (void)st;
    (void)ftw;
    if (type != FTW_F)
        return 0;
    int fd = walk_open(path);
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        continue;
    if (got < 0)
        bench_die("read %s: %s", path, strerror(errno));
    close(fd);
    return 0;
}

static void tree_walk(const char *path, __nftw_func_t fn, int flags)
{
    if (nftw(path, fn, 32, flags | FTW_PHYS) != 0)
        bench_die("go through %s: %s", path, strerror(errno));
}

uint64_t tree_bytes(const char *path)
{
    walk_bytes = 0;
    tree_walk(path, walk_add, 0);
    return walk_bytes;
}

void tree_remove(const char *path)
{
    if (access(path, F_OK) == 0)
        tree_walk(path, walk_remove, FTW_DEPTH);
}

void tree_evict(const char *path)
{
    tree_walk(path, walk_evict, 0);
}

void tree_read(const char *path)
{
    tree_walk(path, walk_read, 0);
}

void tree_sync_system(const char *path)
{
    int fd = walk_open(path);

    if (syncfs(fd) != 0)
        bench_die("syncfs %s: %s", path, strerror(errno));
    close(fd);
}
