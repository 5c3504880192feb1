/* How evenly the records of epochs are distributed over the partitions: the footers say it. */
#include <string.h>
#include "directory/dir.h"
#include "directory/read/scan.h"

/* What a partition has of each epoch: *balance gets the most that any of them has. */
static int balance_add(struct reader *r, uint32_t partition, double *balance, struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct part_reader *p;
    int status = reader_part(r, partition, &p, e);

    for (uint32_t i = 0; i < m->epoch_count && status == DELTAFS_OK; i++) {
        struct segment *segment;
        uint32_t segments;
        double records = 0;
        status = reader_epoch(r, p, scan_stored_epoch(r, i), &segment, &segments, e);
        for (uint32_t k = 0; status == DELTAFS_OK && k < segments; k++)
            records += (double)segment[k].footer.records;
        balance[i] = status == DELTAFS_OK && records > balance[i] ? records : balance[i];
    }
    return status;
}

int deltafs_balance(deltafs_dir *dir, double *balance)
{
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, "deltafs_balance", balance ? NULL : "balance", &r, &e);

    if (status != DELTAFS_OK)
        return status;
    const struct manifest *m = &r->manifest;
    memset(balance, 0, m->epoch_count * sizeof *balance);
    /* Without epochs, logs may be missing. */
    for (uint32_t i = 0; m->epoch_count > 0 && i < m->partitions && status == DELTAFS_OK; i++)
        status = balance_add(r, i, balance, e);
    double compacted = 0;
    for (uint32_t i = 0; i < m->compacted; i++)
        compacted += (double)m->epoch[i].records;
    for (uint64_t i = 0; i < m->epoch_count; i++) {
        double records = i < m->compacted ? compacted : (double)m->epoch[i].records;
        balance[i] = records > 0 ? balance[i] * m->partitions / records : 0;
    }
    return dir_end(dir, status);
}
