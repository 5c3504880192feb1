/* Scans into arrays of the caller. */
#include <string.h>
#include "base/sized.h"
#include "directory/dir.h"
#include "directory/read/reader.h"

struct scan_many {
    struct deltafs_arrays to;
    size_t count;
};

static int scan_many_record(const struct deltafs_record *record, void *arg)
{
    struct scan_many *s = arg;
    size_t i = s->count++;

    if (i >= s->to.capacity)
        return 0;
    if (s->to.keys)
        memcpy((uint8_t *)s->to.keys + i * s->to.key_stride, &record->key, sizeof record->key);
    if (s->to.labels)
        memcpy((uint8_t *)s->to.labels + i * s->to.label_stride, &record->label, sizeof record->label);
    if (s->to.values && record->size > 0)
        memcpy((uint8_t *)s->to.values + i * s->to.value_stride, record->value, record->size);
    return 0;
}

/* Check the arguments of `call`. */
static int scan_many_begin(struct scan_many *s, deltafs_dir *dir, const char *call, const struct deltafs_arrays *to,
                           const size_t *count)
{
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, call, to && count ? NULL : "to and count", &r, &e);

    if (status != DELTAFS_OK)
        return status;
    status = sized_take(&s->to, to, sizeof s->to, call, e);
    if (status == DELTAFS_OK && (r->manifest.keys != KEYS_U64 || r->manifest.value_size < 0))
        status = error_set(e, DELTAFS_ERR_MODE, "%s: its %s; use deltafs_scan", r->path,
                           r->manifest.keys != KEYS_U64 ? "keys are bytes" : "values have different sizes");
    s->count = 0;
    return dir_end(dir, status);
}

/* *count gets the number of records, if a scan has counted all that can be read. */
static int scan_many_end(const struct scan_many *s, int status, size_t *count)
{
    if (status == DELTAFS_OK || status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_IO)
        *count = s->count;
    return status;
}

int deltafs_scan_many(deltafs_dir *dir, const uint32_t *partition, const struct deltafs_range *range,
                      const struct deltafs_arrays *to, size_t *count)
{
    struct scan_many s;
    int status = scan_many_begin(&s, dir, "deltafs_scan_many", to, count);

    if (status != DELTAFS_OK)
        return status;
    status = partition ? deltafs_scan_partition(dir, *partition, range, scan_many_record, &s, NULL)
                       : deltafs_scan(dir, range, scan_many_record, &s, NULL);
    return scan_many_end(&s, status, count);
}

int deltafs_scan_range_many(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                            const struct deltafs_arrays *to, size_t *count)
{
    struct scan_many s;
    int status = scan_many_begin(&s, dir, "deltafs_scan_range_many", to, count);

    if (status != DELTAFS_OK)
        return status;
    return scan_many_end(&s, deltafs_scan_range(dir, low, high, epochs, scan_many_record, &s, NULL), count);
}
