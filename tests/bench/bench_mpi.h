/* What the benchmarks that are MPI programs of one file share: their options, and what all ranks agree on. */
#ifndef BENCH_MPI_H
#define BENCH_MPI_H

/* An option with a number or a text, or, with neither, one that sets *is_on. */
struct bench_option {
    const char *name;
    int *number;
    const char **text;
    int *is_on;
};

/* Read the options, which end with one without a name; `operands` operands must follow, and *runs be from 1 to
 * RUNS_MAX. Returns the operands. Death with `usage` if anything is wrong. */
char **bench_options(int argc, char **argv, const struct bench_option *options, int operands, const int *runs,
                     const char *usage);

/* End the job with MPI's words if `code`, of MPI, is an error. */
void mpi_must(int code, const char *what);
double slowest(double own); /* Collective: the largest of all ranks. */

#endif
