/* Ordered scans by the public functions: record by record, or by calls of a function. */
#include <stdlib.h>
#include <string.h>
#include "directory/dir.h"
#include "directory/read/iter.h"
#include "directory/read/named.h"
#include "directory/read/ordered.h"

struct deltafs_iter {
    deltafs_dir *dir;
    struct reader *reader;
    int is_named; /* keys are bytes */
    union {
        struct ordered ordered;
        struct named named;
    } scan;
};

/* A range of keys of either kind. */
struct key_range {
    enum option_keys kind;
    uint64_t low, high;
    int is_by_key; /* whatever the epoch; only numbers */
    struct name low_name, high_name;
};

static struct key_range range_of_numbers(uint64_t low, uint64_t high)
{
    return (struct key_range){.kind = KEYS_U64, .low = low, .high = high};
}

static int iter_open(deltafs_dir *dir, const char *call, const char *missing, const struct key_range *k,
                     const struct deltafs_range *epochs, deltafs_iter **out)
{
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, call, missing, &r, &e);

    if (status != DELTAFS_OK)
        return status;
    if (r->manifest.keys != k->kind)
        return dir_end(dir,
                       error_set(e, DELTAFS_ERR_MODE, "%s: its keys are %s", r->path,
                                 k->kind == KEYS_U64 ? "bytes; use deltafs_scan_range_bytes or deltafs_iter_open_bytes"
                                                     : "numbers; use deltafs_scan_range or deltafs_iter_open"));
    struct deltafs_iter *i = calloc(1, sizeof *i);
    if (!i)
        return dir_end(dir, error_no_memory(e, sizeof *i, "a scan"));
    *i = (struct deltafs_iter){.dir = dir, .reader = r, .is_named = k->kind == KEYS_BYTES};
    status = i->is_named ? named_init(&i->scan.named, r, &k->low_name, &k->high_name, epochs, e)
                         : ordered_init(&i->scan.ordered, r, k->low, k->high, k->is_by_key, epochs, e);
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
    struct key_range k = range_of_numbers(low, high);

    return iter_open(dir, "deltafs_iter_open", out ? NULL : "out", &k, epochs, out);
}

int iter_open_by_key(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                     deltafs_iter **out)
{
    struct key_range k = range_of_numbers(low, high);

    k.is_by_key = 1;
    return iter_open(dir, "iter_open_by_key", NULL, &k, epochs, out);
}

int iter_next_number(deltafs_iter *i, const struct deltafs_record **record, struct error *e)
{
    int status = ordered_next(&i->scan.ordered, record, e);

    return status == DELTAFS_OK && !*record ? damages_status(&i->scan.ordered.damages, e) : status;
}

int iter_is_last_of_key(const deltafs_iter *i)
{
    return ordered_is_last_of_key(&i->scan.ordered);
}

void iter_limit(deltafs_iter *i, size_t bytes)
{
    i->scan.ordered.limit = bytes;
}

int iter_has_damage(const deltafs_iter *i)
{
    return (i->is_named ? i->scan.named.damages.count : i->scan.ordered.damages.count) > 0;
}

/* A range of names; a failing call leaves its message with the handle. */
static int range_of_names(deltafs_dir *dir, const char *call, const void *low, size_t low_size, const void *high,
                          size_t high_size, struct key_range *out)
{
    struct reader *r;
    struct error *e;
    int is_low = !low || (low_size > 0 && low_size <= KEY_BYTES_MAX);
    int is_high = !high || (high_size > 0 && high_size <= KEY_BYTES_MAX);

    if (is_low && is_high) {
        *out = (struct key_range){.kind = KEYS_BYTES};
        out->low_name.size = low ? low_size : 0;
        out->high_name.size = high ? high_size : 0;
        if (low)
            memcpy(out->low_name.bytes, low, low_size);
        if (high)
            memcpy(out->high_name.bytes, high, high_size);
        return DELTAFS_OK;
    }
    int status = dir_reader(dir, call, NULL, &r, &e);
    if (status != DELTAFS_OK)
        return status;
    return dir_end(dir, error_set(e, DELTAFS_ERR_INVALID, "%s: a key of %zu bytes; it has 1 to %d", call,
                                  is_low ? high_size : low_size, KEY_BYTES_MAX));
}

int deltafs_iter_open_bytes(deltafs_dir *dir, const void *low, size_t low_size, const void *high, size_t high_size,
                            const struct deltafs_range *epochs, deltafs_iter **out)
{
    static const char call[] = "deltafs_iter_open_bytes";
    struct key_range k;
    int status = range_of_names(dir, call, low, low_size, high, high_size, &k);

    return status == DELTAFS_OK ? iter_open(dir, call, out ? NULL : "out", &k, epochs, out) : status;
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
    status = i->is_named ? named_next(&i->scan.named, record, e) : ordered_next(&i->scan.ordered, record, e);
    if (status == DELTAFS_OK && !*record)
        status = damages_status(i->is_named ? &i->scan.named.damages : &i->scan.ordered.damages, e);
    return dir_end(i->dir, status);
}

int deltafs_iter_close(deltafs_iter *i)
{
    if (!i)
        return DELTAFS_OK;
    i->reader->iterators--;
    if (i->is_named)
        named_fini(&i->scan.named);
    else
        ordered_fini(&i->scan.ordered);
    free(i);
    return DELTAFS_OK;
}

/* Call `fn` for each of the names. */
static int named_each(struct named *n, deltafs_record_fn fn, void *arg, int *stopped, struct error *e)
{
    const struct deltafs_record *record = NULL;
    int status = DELTAFS_OK;

    while (!*stopped && (status = named_next(n, &record, e)) == DELTAFS_OK && record)
        *stopped = fn(record, arg);
    return status == DELTAFS_OK && !*stopped ? damages_status(&n->damages, e) : status;
}

/* Call `fn` for all records. */
static int iter_each(deltafs_iter *i, const char *call, deltafs_record_fn fn, void *arg, int *stopped)
{
    struct reader *r;
    struct error *e;
    int status = dir_reader(i->dir, call, NULL, &r, &e);

    if (status != DELTAFS_OK)
        return status;
    r->is_scanning = 1;
    status = i->is_named ? named_each(&i->scan.named, fn, arg, stopped, e)
                         : ordered_each(&i->scan.ordered, fn, arg, stopped, e);
    r->is_scanning = 0;
    return dir_end(i->dir, status);
}

static int scan_range(deltafs_dir *dir, const char *call, const struct key_range *k, const struct deltafs_range *epochs,
                      deltafs_record_fn fn, void *arg, int *stopped)
{
    deltafs_iter *i = NULL;
    int ignored;

    if (!stopped)
        stopped = &ignored;
    *stopped = 0;
    int status = iter_open(dir, call, fn ? NULL : "fn", k, epochs, &i);
    if (status == DELTAFS_OK)
        status = iter_each(i, call, fn, arg, stopped);
    deltafs_iter_close(i);
    return status;
}

int deltafs_scan_range(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                       deltafs_record_fn fn, void *arg, int *stopped)
{
    struct key_range k = range_of_numbers(low, high);

    return scan_range(dir, "deltafs_scan_range", &k, epochs, fn, arg, stopped);
}

int deltafs_scan_range_bytes(deltafs_dir *dir, const void *low, size_t low_size, const void *high, size_t high_size,
                             const struct deltafs_range *epochs, deltafs_record_fn fn, void *arg, int *stopped)
{
    static const char call[] = "deltafs_scan_range_bytes";
    struct key_range k;
    int status = range_of_names(dir, call, low, low_size, high, high_size, &k);

    if (status == DELTAFS_OK)
        return scan_range(dir, call, &k, epochs, fn, arg, stopped);
    if (stopped)
        *stopped = 0;
    return status;
}
