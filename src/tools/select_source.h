/* Where the rows of a select come from. `deltafs select` reads them itself (select_alone.c). In `deltafs-mpi select`,
 * each rank reads its part, and rank 0 merges the parts and prints them (select_ranks.c). */
#ifndef DELTAFS_TOOLS_SELECT_SOURCE_H
#define DELTAFS_TOOLS_SELECT_SOURCE_H

#include <stdio.h>
#include <deltafs/deltafs_query.h>

/* What standard input has, in *out, to be closed with fclose. Returns an exit code, the same on all ranks. Collective.
 */
int select_read_stdin(FILE **out);

/* The part of the work that is that of this process. */
void select_divide(struct deltafs_select_options *o);
/* An exit code for all ranks. Collective. */
int select_agree(int code);
/* Whether this process prints. If not, it gives its rows to the one that does. */
int select_prints(deltafs_select *rows);

struct select_source;

/* The rows of all processes, in the order of one select. */
struct select_source *select_source_open(const struct deltafs_select_options *o, deltafs_select *rows);
/* The next rows, as of deltafs_select_next; *message gets its text. */
int select_source_next(struct select_source *s, const struct deltafs_record **rows, size_t *n, const char **message);
/* The rows that were not taken are lost. */
void select_source_close(struct select_source *s);

#endif
