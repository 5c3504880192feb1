/* Scans epoch after epoch where epochs are compacted: their records are stored by key, and within a key by epoch. So a
 * pass over all of them holds the records of as many epochs as fit into memory, and then hands these out. It begins
 * with all epochs that are left; whenever the records take more than the limit, those of the later half are dropped. At
 * last an epoch that does not fit alone is handed out as it is read: it is in order. */
#include <stdlib.h>
#include <string.h>
#include "directory/read/scan.h"

#define MEMORY_DEFAULT ((size_t)64 << 20) /* bytes, if the option memory is auto */

/* A record that is held; its bytes are behind those of the one before, its key of bytes first. */
struct held_record {
    uint64_t key;
    size_t at; /* of its bytes */
    uint32_t epoch;
    uint32_t key_size, size;
};

struct epoch_scan {
    struct reader *reader;
    struct scan_to *to;
    uint32_t first, end; /* of the pass */
    int is_direct;       /* its only epoch does not fit */
    size_t limit;
    struct buffer records, bytes;
    size_t count, used;
    uint32_t near;       /* the epoch of the last record */
    struct error failed; /* of holding records */
};

/* ---- Holding records ---- */

static struct held_record *held_records(const struct epoch_scan *s)
{
    return (struct held_record *)(void *)s->records.bytes;
}

/* What they take, with the list of their order. */
static size_t held_bytes(const struct epoch_scan *s)
{
    return s->used + s->count * (sizeof(struct held_record) + sizeof(size_t));
}

/* The number of a record's epoch, mostly the next one. */
static uint32_t held_epoch(struct epoch_scan *s, uint64_t label)
{
    const struct deltafs_range one = {label, label};
    uint32_t end;

    if (s->near + 1 < s->end && s->reader->manifest.epoch[s->near + 1].label == label)
        s->near++;
    else if (s->reader->manifest.epoch[s->near].label != label)
        reader_epochs(s->reader, &one, &s->near, &end);
    return s->near;
}

static int hold(struct epoch_scan *s, const struct deltafs_record *record, uint32_t epoch)
{
    size_t bytes = record->key_size + record->size;
    int status = buffer_reserve(&s->records, (s->count + 1) * sizeof(struct held_record), "a scan", &s->failed);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->bytes, s->used + bytes + 1, "a scan", &s->failed);
    if (status != DELTAFS_OK)
        return status;
    held_records(s)[s->count++] =
        (struct held_record){record->key, s->used, epoch, (uint32_t)record->key_size, (uint32_t)record->size};
    if (record->key_size > 0)
        memcpy(s->bytes.bytes + s->used, record->key_bytes, record->key_size);
    if (record->size > 0)
        memcpy(s->bytes.bytes + s->used + record->key_size, record->value, record->size);
    s->used += bytes;
    return DELTAFS_OK;
}

static int held_give(struct epoch_scan *s, const struct held_record *held)
{
    const uint8_t *bytes = s->bytes.bytes + held->at;
    const struct deltafs_record record = {.key = held->key,
                                          .label = s->reader->manifest.epoch[held->epoch].label,
                                          .key_bytes = held->key_size > 0 ? bytes : NULL,
                                          .key_size = held->key_size,
                                          .value = bytes + held->key_size,
                                          .size = held->size};

    return s->to->fn(&record, s->to->arg);
}

/* Leave out the records of the later half of the epochs. */
static void held_halve(struct epoch_scan *s)
{
    struct held_record *held = held_records(s);
    size_t n = 0, used = 0;

    s->end = s->first + (s->end - s->first) / 2;
    for (size_t i = 0; i < s->count; i++) {
        size_t bytes = held[i].key_size + (size_t)held[i].size;
        if (held[i].epoch >= s->end)
            continue;
        memmove(s->bytes.bytes + used, s->bytes.bytes + held[i].at, bytes);
        held[n] = held[i];
        held[n++].at = used;
        used += bytes;
    }
    s->count = n;
    s->used = used;
}

/* Hand out what is held, epoch after epoch. */
static int held_give_all(struct epoch_scan *s)
{
    size_t epochs = s->end - s->first, *place = calloc(epochs + 1, sizeof *place), *order;
    const struct held_record *held = held_records(s);
    int status = DELTAFS_OK;

    order = malloc(s->count * sizeof *order + 1);
    if (!place || !order)
        status = error_no_memory(&s->failed, (epochs + s->count) * sizeof *order, "a scan");
    for (size_t i = 0; status == DELTAFS_OK && i < s->count; i++)
        place[held[i].epoch - s->first + 1]++;
    for (size_t i = 0; status == DELTAFS_OK && i < epochs; i++)
        place[i + 1] += place[i];
    for (size_t i = 0; status == DELTAFS_OK && i < s->count; i++)
        order[place[held[i].epoch - s->first]++] = i;
    for (size_t i = 0; status == DELTAFS_OK && i < s->count && !s->to->stopped; i++)
        s->to->stopped = held_give(s, &held[order[i]]);
    free(order);
    free(place);
    s->count = s->used = 0;
    return status;
}

/* ---- Passes ---- */

/* A deltafs_record_fn: ends the pass after an error, or where the caller stops it. */
static int epoch_scan_take(const struct deltafs_record *record, void *arg)
{
    struct epoch_scan *s = arg;
    uint32_t epoch = held_epoch(s, record->label);

    if (epoch >= s->end)
        return 0;
    if (s->is_direct)
        return s->to->stopped = s->to->fn(record, s->to->arg);
    int status = hold(s, record, epoch);
    while (status == DELTAFS_OK && s->end - s->first > 1 && held_bytes(s) > s->limit)
        held_halve(s);
    if (status == DELTAFS_OK && held_bytes(s) > s->limit) {
        s->is_direct = 1;
        status = held_give_all(s);
    }
    return status != DELTAFS_OK || s->to->stopped;
}

/* The compacted epochs `first` to `end` - 1. Damage is reported by the first pass that finds any. */
static int scan_compacted(struct reader *r, struct part_reader *p, uint32_t first, uint32_t end, struct scan_to *to,
                          struct damages *damages, struct error *e)
{
    struct epoch_scan s = {.reader = r, .to = to, .first = first, .end = end};
    struct scan_to pass = {.fn = epoch_scan_take, .arg = &s};
    struct damages again = {0};
    uint64_t before = damages->count;
    uint32_t many = end - first;
    int status = DELTAFS_OK;

    s.limit = (r->memory == OPTION_AUTO ? MEMORY_DEFAULT : (size_t)r->memory) / 2;
    while (s.first < end && status == DELTAFS_OK && !to->stopped) {
        s.end = s.first + many < end ? s.first + many : end;
        s.near = s.first;
        s.is_direct = s.end - s.first == 1; /* it is in order as it is stored */
        s.count = s.used = 0;
        status = part_scan_stored(r, p, 0, s.first, s.end, &pass, s.first == first ? damages : &again, e);
        if (status == DELTAFS_OK && s.failed.status == DELTAFS_OK && !to->stopped)
            held_give_all(&s);
        if (status == DELTAFS_OK && s.failed.status != DELTAFS_OK) {
            *e = s.failed;
            status = e->status;
        }
        many = s.end - s.first;
        s.first = s.end;
    }
    if (damages->count == before && again.count > 0)
        damages_add(damages, &again.first);
    buffer_fini(&s.records);
    buffer_fini(&s.bytes);
    return status;
}

int part_scan_epochs(struct reader *r, struct part_reader *p, uint32_t first, uint32_t end, struct scan_to *to,
                     struct damages *damages, struct error *e)
{
    uint32_t compacted = r->manifest.compacted < end ? r->manifest.compacted : end;
    int status = first < compacted ? scan_compacted(r, p, first, compacted, to, damages, e) : DELTAFS_OK;

    for (uint32_t epoch = first < compacted ? compacted : first; epoch < end && status == DELTAFS_OK && !to->stopped;
         epoch++)
        status = part_scan(r, p, epoch, to, damages, e);
    return status;
}
