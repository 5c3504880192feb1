/* What all parts of the benchmark use: messages, memory, random numbers, folders of files. */
#ifndef BENCH_HELP_H
#define BENCH_HELP_H

#include <stddef.h>
#include <stdint.h>

/* Say what failed and end the process with 1. The benchmark's own process removes its scratch folder first. */
__attribute__((format(printf, 1, 2))) _Noreturn void bench_die(const char *fmt, ...);
/* A line about the progress, on standard error. */
__attribute__((format(printf, 1, 2))) void bench_say(const char *fmt, ...);

/* Make the folder that holds everything the benchmark writes, inside `parent`; it goes when the process ends, also on
 * SIGINT and SIGTERM. */
const char *bench_scratch_make(const char *parent);
/* Whether such a signal has come; the process ends at the next convenient place. */
void bench_heed_signals(void);

double bench_now(void); /* seconds of a clock that only runs forward */
void bench_sleep(double seconds);

/* `n` bytes of zeros, in large pages where the system has them; to be given back with the same n. */
void *bench_alloc(size_t n);
void bench_free(void *p, size_t n);
void *bench_grow(void *p, size_t n); /* realloc, or death */
/* A text, such as a path; returns `out`. Death if it is too long. */
__attribute__((format(printf, 2, 3))) char *bench_text(char out[static 256], const char *fmt, ...);

/* 8000000 as "8M", 62500 as "62.5k". */
char *bench_count(char out[static 16], uint64_t n);

/* splitmix64 (Steele, Lea, Flood; 2014): any seed is good, and it is quick enough to fill gigabytes. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Below n, which is far below 2^64, so that the bias does not matter. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    return (uint64_t)((unsigned __int128)random_next(state) * n >> 64);
}

uint64_t tree_bytes(const char *path);   /* of all files */
void tree_remove(const char *path);      /* if it is there */
void tree_evict(const char *path);       /* sync all files and drop them from the page cache */
void tree_read(const char *path);        /* read all files once, 1 MiB at a time: into the page cache, or to be timed */
void tree_sync_system(const char *path); /* write out what the file system still has to write, of earlier runs too */

#endif
