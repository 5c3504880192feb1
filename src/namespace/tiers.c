/* Merging epochs of the own table, so that a lookup asks few of them, however often a writer commits.
 *
 * When there are more than EPOCHS_MOST, the last ones are merged: one more epoch gets the newest record of each entry
 * that they have, also of those that were removed, and its line in MANIFEST says that it covers them. Readers leave out
 * what it covers, but for those that read up to an older epoch: snapshots. It is an epoch as any other, so a writer
 * that dies leaves what was there before, or all of it; and who does not know of covers reads the same records twice.
 *
 * Which: the longest row of epochs at the end of which the first has no more records than all others. So an epoch that
 * is written again comes into one that is at least twice as large. Large ones stay as they are: a lookup asks at most
 * EPOCHS_MOST others, and a merge does not take long. With 1,000 commits of 10,000 new names each record is written 3.2
 * times more, and a lookup asks 9 epochs on average. Who creates very many names without a commit does not
 * wait for merges: of epochs that were made because the memory was full, one after the other, none is merged here. */
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "namespace/all_records.h"
#include "namespace/compacted.h"
#include "namespace/own_table.h"

#define EPOCHS_MOST  8
#define ROW_MOST     32         /* epochs that are merged at once: each takes memory */
#define LARGE        (1u << 19) /* records of a large epoch */
#define MERGE_MEMORY "8M"       /* half of it for records */

struct row_epoch {
    uint32_t first; /* the number of the first epoch that it has: itself, or one that it covers */
    uint64_t label, records;
};

/* The epochs behind the label `from` at the end that are neither large nor covered; the last one first. */
static uint32_t read_row(const struct manifest *m, uint64_t from, struct row_epoch row[ROW_MOST])
{
    uint64_t end = m->epoch_count;
    uint32_t n = 0;

    while (end > 0 && n < ROW_MOST) {
        const struct manifest_epoch *epoch = &m->epoch[end - 1];
        if (epoch->label <= from || epoch->records >= LARGE)
            break;
        end -= 1 + (uint64_t)epoch->covers;
        row[n++] = (struct row_epoch){(uint32_t)end, epoch->label, epoch->records};
    }
    return n;
}

/* How many of them are merged. */
static uint32_t choose(const struct row_epoch *row, uint32_t n)
{
    uint32_t chosen = 2;
    uint64_t behind = 0;

    if (n <= EPOCHS_MOST)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (row[i].records <= behind)
            chosen = i + 1;
        behind += row[i].records;
    }
    return chosen;
}

/* Put what counts of these epochs into the own table. All of their records must be there: what is covered is not read
 * any more. */
static int copy_row(struct own_table *own, deltafs_dir *from, const struct row_epoch *row, uint32_t n, struct error *e)
{
    struct table_reader reader = {.dir = from, .users = 1};
    struct table table = {.number = own->number,
                          .path = own->path,
                          .epochs = {row[n - 1].label, UINT64_MAX},
                          .limit = UINT64_MAX,
                          .reader = &reader};
    const struct tables one = {.table = &table, .count = 1};
    struct all_records records;
    uint64_t left = 0, put = 0;
    int status = all_records_open(&records, &one, e);

    for (uint32_t i = 0; i < n; i++)
        left += row[i].records;
    while (status == DELTAFS_OK && (status = all_records_next(&records, e)) == DELTAFS_OK && records.versions > 0) {
        left -= records.versions;
        status = all_records_put(&records, own->dir, &put, e);
    }
    all_records_close(&records);
    return status == DELTAFS_OK && left != 0
               ? error_set(e, DELTAFS_ERR_DAMAGED, "%s: epochs have not as many records as MANIFEST says", own->path)
               : status;
}

/* Merge `n` epochs, if the reader has seen all that were committed. */
static int merge_row(struct own_table *own, deltafs_dir *from, const struct row_epoch *row, uint32_t n, uint64_t epochs,
                     uint64_t label, struct error *e)
{
    uint64_t last = 0;

    if (deltafs_last_label(own->dir, &last) != DELTAFS_OK || last != row[0].label)
        return DELTAFS_ERR_BUSY;
    dir_cover_epochs(own->dir, (uint32_t)(epochs - row[n - 1].first));
    int status = copy_row(own, from, row, n, e);
    if (status != DELTAFS_OK)
        deltafs_epoch_cancel(own->dir, e->text);
    return error_first(status, error_of_call(deltafs_epoch_end(own->dir, label), error_after(status, e)));
}

/* Epochs up to this label stay: they were compacted, or made when the memory was full. */
static uint64_t stay_until(const struct own_table *own)
{
    struct compacted c;
    int status = compacted_read(own->io, own->path, &c, error_ignored());
    uint64_t limit = status == DELTAFS_OK ? compacted_limit(&c, own->number) : 0;

    compacted_fini(&c);
    return limit > own->full_label ? limit : own->full_label;
}

static int open_reader(const struct own_table *own, deltafs_dir **out, struct reader **reader, struct error *e)
{
    char path[PATH_ROOM];
    struct error *of_reader;
    deltafs_options *o = NULL;
    int status = error_of_call(deltafs_options_create(&o), e);

    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(o, "memory", MERGE_MEMORY), e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(o, "read_threads", "0"), e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_open(table_path(path, own->path, own->number, ""), o, out), e);
    deltafs_options_destroy(o);
    if (status != DELTAFS_OK)
        return status;
    dir_skip_covered(*out);
    return error_of_call(dir_reader(*out, "own_table_merge", NULL, reader, &of_reader), e);
}

/* Merge, if there are too many. */
static void merge_some(struct own_table *own, uint64_t label)
{
    struct error e;
    struct row_epoch row[ROW_MOST];
    struct reader *reader;
    deltafs_dir *dir = NULL;

    own->epochs_left = EPOCHS_MOST;
    if (open_reader(own, &dir, &reader, &e) == DELTAFS_OK) {
        const struct manifest *m = &reader->manifest;
        uint32_t n = read_row(m, stay_until(own), row), merged = choose(row, n);
        if (merged == 0 || merge_row(own, dir, row, merged, m->epoch_count, label, &e) == DELTAFS_OK) {
            n -= merged > 0 ? merged - 1 : 0;
            own->epochs_left = n < EPOCHS_MOST ? EPOCHS_MOST - n : 0;
        }
    }
    deltafs_close(dir);
}

void own_table_merge(struct own_table *own, uint64_t label)
{
    if (own->has_failed)
        return;
    if (own->is_memory_full && own->was_memory_full)
        own->full_label = label;
    own->was_memory_full = own->is_memory_full;
    if (own->epochs_left > 0)
        own->epochs_left--;
    else if (!own->is_memory_full)
        merge_some(own, label);
}
