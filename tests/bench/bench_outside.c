/* How long calls of files take that are in no mount. Prints a line for each: its name, and nanoseconds, the least of
 * several tries.
 *
 *     bench_outside CALLS FILE
 *
 * CALLS is how often each is called in a try; FILE exists. Run it as it is, and with 'deltafs run --mount'. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES 1000

static const char *path;
static int null;
static char byte;
static struct stat st;

static long call_read(void)
{
    return read(null, &byte, 1);
}

static long call_write(void)
{
    return write(null, &byte, 1) - 1;
}

static long call_lseek(void)
{
    return lseek(null, 0, SEEK_SET);
}

static long call_fstat(void)
{
    return fstat(null, &st);
}

static long call_stat(void)
{
    return stat(path, &st);
}

static long call_open(void)
{
    return close(open(path, O_RDONLY));
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(long (*call)(void), long calls)
{
    double least = 1e18;

    for (int i = 0; i < TRIES; i++) {
        double begin = now();
        for (long n = 0; n < calls; n++) {
            if (call() != 0) {
                perror("a call fails");
                exit(1);
            }
        }
        double spent = (now() - begin) / (double)calls;
        least = spent < least ? spent : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        long (*call)(void);
    } calls[] = {{"read", call_read},   {"write", call_write}, {"lseek", call_lseek},
                 {"fstat", call_fstat}, {"stat", call_stat},   {"open_and_close", call_open}};
    long n = argc > 2 ? atol(argv[1]) : 0;

    path = argv[argc - 1];
    null = open("/dev/null", O_RDWR);
    if (n <= 0 || null < 0) {
        fprintf(stderr, "usage: bench_outside CALLS FILE\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        printf("%s %.1f\n", calls[i].name, measure(calls[i].call, n));
    return 0;
}
