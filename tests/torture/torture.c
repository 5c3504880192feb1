/* Torture of a directory's writer, seeded. Each case is a small job that something befalls; afterwards what is on disk
 * is compared with what its calls returned.
 *
 *     torture KIND --count N --seed S [--folder DIR]
 *
 *     crash    the power goes at some operation, and what was not synced may be gone
 *     fault    each operation in turn fails, in each way; of a reader, then of the writer
 *     full     DIR is on a file system of about 1 MiB, which gets full
 *
 * Case i has seed S + i (for fault: job i), so one that failed is repeated alone by --seed. Ends with the line
 * "torture: KIND N tried, L lost, W wrong" and an exit code that says whether L or W is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "torture_job.h"
#include "torture_kinds.h"

static const struct {
    const char *name;
    void (*run)(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally);
} kinds[] = {{"crash", torture_crash}, {"fault", torture_fault}, {"full", torture_full}};

static int usage(void)
{
    fputs("usage: torture crash|fault|full --count N --seed S [--folder DIR]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    struct torture_options o = {.count = 1000, .seed = 1, .folder = tmp ? tmp : "/tmp"};
    size_t kind = 0, n = sizeof kinds / sizeof kinds[0];
    char folder[256], path[300];
    struct torture_tally tally = {0};

    while (argc > 1 && kind < n && strcmp(argv[1], kinds[kind].name) != 0)
        kind++;
    if (argc < 2 || kind == n || !torture_options_parse(argc, argv, 2, &o))
        return usage();
    snprintf(folder, sizeof folder, "%s/deltafs-torture.XXXXXX", o.folder);
    if (!mkdtemp(folder)) {
        perror(folder);
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof path, "%s/d", folder);
    kinds[kind].run(path, o.count, o.seed, &tally);
    torture_remove(folder);
    return torture_case_report(kinds[kind].name, &tally);
}
