#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "directory/read/named.h"
#include "directory/read/ordered.h"

struct named_record {
    struct deltafs_record record; /* without its addresses */
    size_t offset;                /* of its key in `bytes`; the value follows */
    size_t order;                 /* in which it was read */
    const uint8_t *key;           /* while records are sorted */
};

static int name_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);

    return order != 0 ? order : compare(a_size, b_size);
}

static struct named_record *named_records(const struct named *n)
{
    return (struct named_record *)(void *)n->records.bytes;
}

/* ---- A pass ---- */

static int record_compare(const void *a, const void *b)
{
    const struct named_record *x = a, *y = b;
    int order = name_compare(x->key, x->record.key_size, y->key, y->record.key_size);

    return order != 0 ? order : compare(x->order, y->order);
}

static void named_sort(struct named *n)
{
    struct named_record *r = named_records(n);

    for (size_t i = 0; i < n->count; i++)
        r[i].key = n->bytes.bytes + r[i].offset;
    if (n->count > 0)
        qsort(r, n->count, sizeof *r, record_compare);
}

static size_t named_size(const struct named_record *r)
{
    return r->record.key_size + r->record.size;
}

/* Leave out the later half of the records; but all records of a key stay together. */
static int named_drop(struct named *n, struct error *e)
{
    struct named_record *r = named_records(n);
    size_t kept = 0, used = 0;

    named_sort(n);
    for (; kept < n->count; kept++) {
        if (used >= n->room / 2 &&
            name_compare(r[kept].key, r[kept].record.key_size, r[kept - 1].key, r[kept - 1].record.key_size) != 0)
            break;
        used += named_size(&r[kept]) + sizeof *r;
    }
    if (kept == n->count) { /* one key has so many */
        n->room *= 2;
        return DELTAFS_OK;
    }
    int status = buffer_reserve(&n->spare, used, "records", e);
    if (status != DELTAFS_OK)
        return status;
    n->count = kept;
    n->used = 0;
    for (size_t i = 0; i < kept; i++) {
        memcpy(n->spare.bytes + n->used, r[i].key, named_size(&r[i]));
        r[i].offset = n->used;
        n->used += named_size(&r[i]);
    }
    struct buffer bytes = n->bytes;
    n->bytes = n->spare;
    n->spare = bytes;
    n->cut.size = r[kept - 1].record.key_size;
    memcpy(n->cut.bytes, n->bytes.bytes + r[kept - 1].offset, n->cut.size);
    return DELTAFS_OK;
}

/* How a record's key compares to another key. */
static int named_compare(const struct deltafs_record *r, const struct name *to)
{
    return name_compare(r->key_bytes, r->key_size, to->bytes, to->size);
}

static int named_is_wanted(const struct named *n, const struct deltafs_record *r)
{
    return (n->low.size == 0 || named_compare(r, &n->low) >= 0) &&
           (n->high.size == 0 || named_compare(r, &n->high) <= 0) &&
           (n->after.size == 0 || named_compare(r, &n->after) > 0) &&
           (n->cut.size == 0 || named_compare(r, &n->cut) <= 0);
}

static int named_take(const struct deltafs_record *record, void *arg)
{
    struct named *n = arg;
    size_t size = record->key_size + record->size;

    if (!named_is_wanted(n, record))
        return 0;
    int status = buffer_reserve(&n->records, (n->count + 1) * sizeof(struct named_record), "records", n->error);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&n->bytes, n->used + size, "records", n->error);
    if (status != DELTAFS_OK)
        return status;
    named_records(n)[n->count] = (struct named_record){.record = *record, .offset = n->used, .order = n->order++};
    n->count++;
    memcpy(n->bytes.bytes + n->used, record->key_bytes, record->key_size);
    memcpy(n->bytes.bytes + n->used + record->key_size, record->value, record->size);
    n->used += size;
    return n->used + n->count * sizeof(struct named_record) > n->room ? named_drop(n, n->error) : DELTAFS_OK;
}

/* Read the epoch, for the records behind n->after. */
static int named_pass(struct named *n, struct error *e)
{
    struct scan_to to = {.fn = named_take, .arg = n};
    struct reader *r = n->reader;
    int status = DELTAFS_OK;

    n->count = n->at = n->used = n->order = 0;
    n->cut.size = 0;
    n->room = n->limit;
    n->error = e;
    for (uint32_t i = 0; i < r->manifest.partitions && status == DELTAFS_OK; i++) {
        struct part_reader *p;
        status = reader_part(r, i, &p, e);
        if (status == DELTAFS_OK)
            status =
                part_scan_stored(r, p, scan_stored_epoch(r, n->epoch), n->epoch, n->epoch + 1, &to, &n->damages, e);
        else if (status != DELTAFS_ERR_MEMORY) {
            damages_add(&n->damages, e);
            status = DELTAFS_OK;
        }
        if (to.stopped)
            status = to.stopped;
    }
    named_sort(n);
    n->after = n->cut;
    n->epoch += n->cut.size == 0;
    return status;
}

/* ---- The scan ---- */

int named_init(struct named *n, struct reader *r, const struct name *low, const struct name *high,
               const struct deltafs_range *epochs, struct error *e)
{
    *n = (struct named){.reader = r, .low = *low, .high = *high, .limit = ordered_limit(r)};
    reader_epochs(r, epochs, &n->epoch, &n->end);
    return reader_keep(r, r->manifest.partitions, e);
}

int named_next(struct named *n, const struct deltafs_record **out, struct error *e)
{
    int status = DELTAFS_OK;

    *out = NULL;
    while (n->at == n->count && n->epoch < n->end && status == DELTAFS_OK)
        status = named_pass(n, e);
    if (status != DELTAFS_OK) { /* there is no way on */
        n->count = n->at = 0;
        n->epoch = n->end;
        return status;
    }
    if (n->at == n->count)
        return DELTAFS_OK;
    const struct named_record *r = &named_records(n)[n->at++];
    n->record = r->record;
    n->record.key_bytes = n->bytes.bytes + r->offset;
    n->record.value = n->bytes.bytes + r->offset + r->record.key_size;
    *out = &n->record;
    return DELTAFS_OK;
}

void named_fini(struct named *n)
{
    buffer_fini(&n->records);
    buffer_fini(&n->bytes);
    buffer_fini(&n->spare);
}
