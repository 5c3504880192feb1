/* Checks for tests that run on several ranks.
 *
 * A check that fails on one rank must not end that rank, or the others would wait for it for ever. So CHECK only takes
 * the failure down, with a message; and at places of the test's choice all ranks agree on whether any check of any of
 * them has failed (check_require, check_end), and end together. Never agree between the first append of an epoch and
 * its end: deltafs_append may be waiting for the ranks that agree. */
#ifndef TEST_MPI_CHECK_H
#define TEST_MPI_CHECK_H

#include <deltafs/deltafs_mpi.h>

extern int check_rank, check_ranks; /* of MPI_COMM_WORLD */

/* Start MPI at the thread level asked for. */
void check_begin(int *argc, char ***argv, int thread_level);
/* What the checks that follow are about; goes into their messages. */
__attribute__((format(printf, 1, 2))) void check_about(const char *fmt, ...);

#define CHECK(condition) check_note((condition) ? 1 : 0, __FILE__, __LINE__, #condition)
/* That a call returned `wanted`; if not, the message of `dir` (maybe NULL) is shown. */
#define CHECK_STATUS(wanted, got, dir) check_status((wanted), (got), (dir), __FILE__, __LINE__, #got)
/* That the last error's message has `part` in it. */
#define CHECK_SAYS(dir, part) check_says((dir), (part), __FILE__, __LINE__)

int check_note(int is_right, const char *file, int line, const char *what);
int check_status(int wanted, int got, const deltafs_dir *dir, const char *file, int line, const char *what);
int check_says(const deltafs_dir *dir, const char *part, const char *file, int line);

/* Collective over all: end the job if a check has failed anywhere. */
void check_require(void);
/* Collective: the same, and finish MPI. Returns the exit code for main. */
int check_end(void);

/* Options from a text such as "value_size=8 memory=8M"; destroyed by the caller. */
deltafs_options *check_options(const char *text);
/* FOLDER/NAME, valid until called again. */
const char *check_path(const char *folder, const char *name);

#endif
