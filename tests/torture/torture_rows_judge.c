/* Judges a directory that jobs of torture_rows_worker, 'deltafs-mpi index --by' or 'deltafs-mpi compact' have left.
 *
 *     torture_rows_judge --dir DIR --seed S --list FILE [--first A --last B]
 *
 * The epochs must be 1, 2, ...: all that FILE lists, and at most one more, whose job had no time to list it; or A to B.
 * Selects must have the rows of torture_rows.h and no others, whatever has become of indexes.
 *
 * Lost: something that was committed is not there, or cannot be read. Wrong: something is there that must not be. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "torture_rows.h"

#define QUESTIONS 30

/* The last label listed; an incomplete line does not count. */
static uint64_t last_listed(const char *path)
{
    char line[32];
    uint64_t last = 0;
    FILE *f = fopen(path, "r");

    while (f && fgets(line, sizeof line, f))
        if (strchr(line, '\n'))
            last = strtoull(line, NULL, 10);
    if (f)
        fclose(f);
    return last;
}

/* How many epochs the directory has. */
static uint64_t count_epochs(const char *path, uint64_t listed, struct torture_verdict *v)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d;
    int status = deltafs_open(path, NULL, &d);

    if (status == DELTAFS_OK) {
        status = deltafs_stat(d, &stat);
        deltafs_close(d);
    } else if (listed == 0 && (status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_DELTAFS)) {
        return 0;
    }
    if (status != DELTAFS_OK)
        torture_lost(v, "%s cannot be opened: %s", path, deltafs_errmsg(NULL));
    else if (stat.epochs < listed)
        torture_lost(v, "%" PRIu64 " epochs of %" PRIu64, (uint64_t)stat.epochs, listed);
    return (uint64_t)stat.epochs;
}

static void judge(const char *path, uint64_t seed, uint64_t first, uint64_t n, struct torture_verdict *v)
{
    struct torture_epoch *epochs = calloc(n + 1, sizeof *epochs);
    struct torture_rng r = {seed + n};
    deltafs_dir *d;

    if (!epochs || deltafs_open(path, NULL, &d) != DELTAFS_OK) {
        torture_lost(v, "%s cannot be opened: %s", path, deltafs_errmsg(NULL));
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        epochs[i] = rows_epoch(seed, first + i, ROWS_MOST);
    struct rows *m = rows_create(epochs, n);
    if (!rows_fit(m, d))
        torture_wrong(v, "%s has other epochs than %" PRIu64 " from %" PRIu64 " on", path, n, first);
    deltafs_close(d);
    rows_check(m, path, QUESTIONS, &r, v);
    rows_destroy(m);
    free(epochs);
}

int main(int argc, char **argv)
{
    struct torture_verdict v = {.about = "directory"};
    const char *path = NULL, *list = NULL;
    uint64_t seed = 0, first = 1, last = 0, n;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            path = argv[i + 1];
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--list") == 0)
            list = argv[i + 1];
        else if (strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--last") == 0)
            last = strtoull(argv[i + 1], NULL, 10);
    }
    if (!path || !list) {
        fputs("usage: torture_rows_judge --dir DIR --seed S --list FILE [--first A --last B]\n", stderr);
        return 2;
    }
    v.seed = seed;
    if (last > 0) {
        n = last - first + 1;
    } else {
        uint64_t listed = last_listed(list);
        n = count_epochs(path, listed, &v);
        if (n > listed + 1)
            torture_wrong(&v, "%" PRIu64 " epochs, and %" PRIu64 " are listed", n, listed);
    }
    if (n > 0)
        judge(path, seed, first, n, &v);
    printf("judge: %" PRIu64 " epochs, 0 records, 0 looks, %d lost, %d wrong\n", n, v.is_lost, v.is_wrong);
    return v.is_lost || v.is_wrong;
}
