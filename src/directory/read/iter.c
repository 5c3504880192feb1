/* Ordered scans by the public functions: record by record, or by calls of a function. */
#include <stdlib.h>
#include "directory/dir.h"
#include "directory/read/ordered.h"

struct deltafs_iter {
    deltafs_dir *dir;
    struct reader *reader;
    struct error *error; /* of the handle */
    struct ordered ordered;
};

static int iter_open(deltafs_dir *dir, const char *call, const char *missing, uint64_t low, uint64_t high,
                     const struct deltafs_range *epochs, deltafs_iter **out)
{
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, call, missing, &r, &e);

    if (status != DELTAFS_OK)
        return status;
    if (r->manifest.keys != KEYS_U64)
        return dir_end(dir, error_set(e, DELTAFS_ERR_MODE, "%s: %s: its keys are bytes, which are not stored in order",
                                      call, r->path));
    struct deltafs_iter *i = calloc(1, sizeof *i);
    if (!i)
        return dir_end(dir, error_no_memory(e, sizeof *i, "a scan"));
    *i = (struct deltafs_iter){.dir = dir, .reader = r, .error = e};
    status = ordered_init(&i->ordered, r, low, high, epochs, e);
    r->iterators++;
    if (status == DELTAFS_OK)
        *out = i;
    else
        deltafs_iter_close(i);
    return dir_end(dir, status);
}

int deltafs_iter_open(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                      deltafs_iter **out)
{
    return iter_open(dir, "deltafs_iter_open", out ? NULL : "out", low, high, epochs, out);
}

int deltafs_iter_next(deltafs_iter *i, const struct deltafs_record **record)
{
    static const char call[] = "deltafs_iter_next";
    struct reader *r;
    struct error *e;

    if (!i)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: no iterator", call);
    int status = dir_reader(i->dir, call, record ? NULL : "record", &r, &e);
    if (status != DELTAFS_OK)
        return status;
    status = ordered_next(&i->ordered, record, e);
    if (status == DELTAFS_OK && !*record)
        status = damages_status(&i->ordered.damages, e);
    return dir_end(i->dir, status);
}

int deltafs_iter_close(deltafs_iter *i)
{
    if (!i)
        return DELTAFS_OK;
    i->reader->iterators--;
    ordered_fini(&i->ordered);
    free(i);
    return DELTAFS_OK;
}

/* Call `fn` for the records that are left. */
static int iter_each(deltafs_iter *i, deltafs_record_fn fn, void *arg, int *stopped)
{
    const struct deltafs_record *record = NULL;
    int status;

    while ((status = deltafs_iter_next(i, &record)) == DELTAFS_OK && record) {
        i->reader->is_scanning = 1;
        *stopped = fn(record, arg);
        i->reader->is_scanning = 0;
        if (*stopped)
            break;
    }
    return status;
}

int deltafs_scan_range(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                       deltafs_record_fn fn, void *arg, int *stopped)
{
    deltafs_iter *i = NULL;
    int ignored;

    if (!stopped)
        stopped = &ignored;
    *stopped = 0;
    int status = iter_open(dir, "deltafs_scan_range", fn ? NULL : "fn", low, high, epochs, &i);
    if (status == DELTAFS_OK)
        status = iter_each(i, fn, arg, stopped);
    deltafs_iter_close(i);
    return status;
}
