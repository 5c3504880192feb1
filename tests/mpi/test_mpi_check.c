#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"

#define SHOWN_MAX 10 /* failures that one rank shows */

int check_rank, check_ranks;

static int failures;
static char about[256];

void check_begin(int *argc, char ***argv, int thread_level)
{
    int provided;

    MPI_Init_thread(argc, argv, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_ranks);
}

void check_about(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(about, sizeof about, fmt, ap);
    va_end(ap);
}

static int fails(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    char text[1600];

    if (failures++ >= SHOWN_MAX)
        return 0;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s:%d: rank %d of %d: %s%s%s\n", file, line, check_rank, check_ranks, about, *about ? ": " : "",
            text);
    return 0;
}

int check_note(int is_right, const char *file, int line, const char *what)
{
    return is_right ? 1 : fails(file, line, "not true: %s", what);
}

int check_status(int wanted, int got, const deltafs_dir *dir, const char *file, int line, const char *what)
{
    if (got == wanted)
        return 1;
    return fails(file, line, "%s: %d (%s: %s) instead of %d (%s)", what, got, deltafs_strerror(got),
                 got == DELTAFS_OK ? "-" : deltafs_errmsg(dir), wanted, deltafs_strerror(wanted));
}

int check_says(const deltafs_dir *dir, const char *part, const char *file, int line)
{
    const char *text = deltafs_errmsg(dir);

    return strstr(text, part) ? 1 : fails(file, line, "no '%s' in the message '%s'", part, text);
}

static int all_failures(void)
{
    int all;

    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

void check_require(void)
{
    if (all_failures() == 0)
        return;
    /* Directories may be open and messages under way, so that MPI_Finalize could wait for ever. */
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int check_end(void)
{
    int all = all_failures();

    if (check_rank == 0 && all > 0)
        fprintf(stderr, "%d checks failed\n", all);
    MPI_Finalize();
    return all > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

deltafs_options *check_options(const char *text)
{
    deltafs_options *o = NULL;
    char copy[256], *rest = copy, *word;

    snprintf(copy, sizeof copy, "%s", text);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_create(&o), NULL);
    while ((word = strtok_r(rest, " ", &rest))) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, word, value), NULL);
    }
    return o;
}

const char *check_path(const char *folder, const char *name)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
