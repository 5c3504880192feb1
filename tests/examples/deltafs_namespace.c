/* Keep the results of runs in a namespace, and publish them: the example of deltafs_namespace(3).
 *
 *     cc -o results results.c $(pkg-config --cflags --libs deltafs)
 *     ./results results 7 registry@run7
 *
 * The results of run 7 become the file /runs/7. Then the files of all runs are listed as the snapshot has them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <deltafs/deltafs_namespace.h>

static int write_file(deltafs_namespace *ns, const char *path, const char *text)
{
    deltafs_namespace_file *file;
    int status = deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &file);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_namespace_file_write(file, 0, text, strlen(text));
    int closed = deltafs_namespace_file_close(file);
    return status != DELTAFS_OK ? status : closed;
}

static int write_results(deltafs_namespace *ns, const char *run)
{
    char path[256], text[256];
    int status = deltafs_namespace_mkdir(ns, "/runs", 0755);

    if (status != DELTAFS_OK && status != DELTAFS_ERR_EXISTS)
        return status;
    snprintf(path, sizeof path, "/runs/%s", run);
    snprintf(text, sizeof text, "energy of run %s: 1.5\n", run);
    return write_file(ns, path, text);
}

static int list_runs(deltafs_namespace *ns)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *list;
    int status = deltafs_namespace_list_open(ns, "/runs", &list);

    if (status != DELTAFS_OK)
        return status;
    while ((status = deltafs_namespace_list_next(list, &entry)) == DELTAFS_OK && entry)
        printf("%s: %llu bytes\n", entry->name, (unsigned long long)entry->stat.size);
    deltafs_namespace_list_close(list);
    return status;
}

/* Change the namespace. Only what was committed, here by the close, is in the snapshot. */
static int add_run(const char *path, const char *run, const char *snapshot)
{
    deltafs_namespace *ns;
    int status = deltafs_namespace_open(path, O_RDWR | O_CREAT, NULL, &ns);

    if (status != DELTAFS_OK)
        return status;
    status = write_results(ns, run);
    int closed = deltafs_namespace_close(ns);
    if (status == DELTAFS_OK)
        status = closed;
    return status == DELTAFS_OK ? deltafs_snapshot_publish(path, snapshot) : status;
}

int main(int argc, char **argv)
{
    deltafs_namespace *ns;

    if (argc != 4)
        return fprintf(stderr, "usage: results NAMESPACE RUN REGISTRY@NAME\n"), 2;
    int status = add_run(argv[1], argv[2], argv[3]);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_open(argv[3], O_RDONLY, NULL, &ns);
    if (status == DELTAFS_OK) {
        status = list_runs(ns);
        deltafs_namespace_close(ns);
    }
    if (status != DELTAFS_OK)
        fprintf(stderr, "results: %s\n", deltafs_errmsg(NULL)); /* of the call that failed last */
    return status != DELTAFS_OK;
}
