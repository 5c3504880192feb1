#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include "bench_help.h"
#include "bench_mpi.h"
#include "bench_table.h"

/* Returns how many arguments the option at `arg` takes up; 0 if it is none of these. */
static int take_option(const struct bench_option *o, char **arg)
{
    if (strncmp(arg[0], "--", 2) != 0)
        return 0;
    while (o->name && strcmp(arg[0] + 2, o->name) != 0)
        o++;
    if (!o->name || (!o->is_on && !arg[1]))
        return 0;
    if (o->is_on)
        *o->is_on = 1;
    else if (o->number)
        *o->number = atoi(arg[1]);
    else
        *o->text = arg[1];
    return o->is_on ? 1 : 2;
}

char **bench_options(int argc, char **argv, const struct bench_option *options, int operands, const int *runs,
                     const char *usage)
{
    char **arg = argv + 1;

    for (int n; argv + argc - arg > operands && (n = take_option(options, arg)) > 0;)
        arg += n;
    if (argv + argc - arg != operands || *runs < 1 || *runs > RUNS_MAX)
        bench_die("usage: %s", usage);
    return arg;
}

void mpi_must(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n, rank;

    if (code == MPI_SUCCESS)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Error_string(code, text, &n);
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

double slowest(double own)
{
    double all;

    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}
