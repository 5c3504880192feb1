/* Measured runs: each in a process of its own, forked for it, so that its processor time and its memory are its own. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stddef.h>
#include <stdint.h>

#define SAMPLES_MAX 4096
#define RUNS_MAX    16

/* What a run found out. */
struct outcome {
    double wall, user, sys; /* seconds between meter_start and meter_stop, of all threads */
    double memory;          /* bytes by which VmHWM grew */
    double storage_read;    /* bytes fetched from storage */
    double calls_read;      /* read calls to the operating system */
    double stored;          /* bytes of the files left behind */
    double library_peak;    /* ours: of the library's own account */
    double library_reads, library_bytes_read;
    size_t samples;
    double sample[SAMPLES_MAX]; /* of single operations, in seconds */
};

struct meter {
    double wall, user, sys;
    uint64_t resident, storage_read, calls_read;
};

/* Around the measured part, in the process of the run. */
void meter_start(struct meter *m);
void meter_stop(const struct meter *m, struct outcome *out);

/* Run fn(arg, out) in a new process; it dies (bench_die) or returns. Its death is the benchmark's. */
void run_process(const char *what, void (*fn)(const void *arg, struct outcome *out), const void *arg,
                 struct outcome *out);

/* Several values of the same thing. */
struct spread {
    double median, low, high;
};

struct spread spread_of(const double *values, size_t n);
struct spread spread_exact(double value);
/* The value below which `share` of the n values lie; sorts them. */
double percentile(double *values, size_t n, double share);

#endif
