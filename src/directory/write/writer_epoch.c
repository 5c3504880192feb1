/* An epoch of a writer: its records fill memtables, which a thread sorts and writes as runs of the partitions. */
#include <string.h>
#include "directory/write/writer_state.h"

void deltafs_private_writer_fail(struct writer *w, const struct error *e)
{
    if (w->failed.status == DELTAFS_OK)
        w->failed = *e;
}

/* Let go of the keys held so far: close all partitions' segments. */
static int writer_close_segments(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++)
        if (w->part[i].run_count > 0)
            status = partition_writer_segment(&w->part[i], 0, e);
    keys_clear(&w->shared.keys);
    return status;
}

/* Which of the writer's own partitions a key belongs to. */
static uint32_t writer_partition(const struct writer *w, const struct partitioner *by, uint64_t key)
{
    return w->count > 1 ? partition_of(by, key) - w->first : 0;
}

/* Where the records end, of `n` sorted ones from number `i` on, that belong to the same of the writer's partitions. */
static uint32_t writer_part_end(const struct writer *w, const struct partitioner *by, const uint64_t *keys, uint32_t n,
                                uint32_t i, uint32_t partition)
{
    uint32_t end = i + 1, next = w->first + partition;

    if (w->count == 1 || by->is_unknown || (by->pivots && next + 1 == by->partitions))
        return n;
    if (by->pivots)
        while (end < n && keys[end] < by->pivots[next])
            end++;
    else
        while (end < n && writer_partition(w, by, keys[end]) == partition)
            end++;
    return end;
}

/* Blocks that a memtable becomes, at most. */
static uint64_t writer_blocks(const struct writer *w, const struct memtable *t)
{
    const struct block_writer *block = &w->shared.block;
    uint64_t n = w->count + (t->value_size < 0 ? t->used / block->target : t->count / block->most);

    return n < t->count ? n : t->count;
}

/* Whether the budget has what writing a memtable takes, and the merge after it. */
static int writer_has_room(const struct writer *w, const struct memtable *t)
{
    uint64_t low = UINT64_MAX, high = 0, need = 0;
    uint32_t runs = 0;

    for (uint32_t i = 0; i < t->count; i++) {
        low = t->keys[i] < low ? t->keys[i] : low;
        high = t->keys[i] > high ? t->keys[i] : high;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        need += partition_writer_growth(&w->part[i]);
        runs = w->part[i].run_count > runs ? w->part[i].run_count : runs;
    }
    need += keys_bound(t->count, w->count, high > low ? high - low : 0) + writer_blocks(w, t) * BLOCK_LISTED +
            index_merge_bytes(runs + 1) + (t->epochs ? t->count * (uint64_t)KEYS_EPOCH_MAX : 0);
    if (w->values.is_on && !w->values.is_open)
        need += w->values.buffer; /* of the log that may have to be made yet */
    return w->memory.limit - w->memory.used >= need;
}

/* Write a memtable as a run for each partition that has records in it. */
static int writer_write_table(struct writer *w, const struct memtable *t, struct error *e)
{
    int is_by_key = t->by->pivots || t->by->is_unknown;
    const struct sort_partitions partitions = {t->by, w->first, is_by_key ? 1 : w->count};
    uint32_t n = t->count, end;
    int status = DELTAFS_OK;

    if (!writer_has_room(w, t))
        status = writer_close_segments(w, e);
    const uint8_t *values = t->value_size >= 0 ? t->arena : NULL;
    /* With epochs the order is needed, so no values are moved. */
    const struct sort_input in = {.count = n,
                                  .keys = t->keys,
                                  .values = t->epochs ? NULL : values,
                                  .value_size = (size_t)t->value_size,
                                  .team = w->shared.encoder ? encoder_team(w->shared.encoder) : NULL};
    struct sorted all = sort_records(&in, &partitions, w->sort[0], w->sort[1]);
    if (t->epochs)
        all.values = values;
    for (uint32_t i = 0; i < n && status == DELTAFS_OK; i = end) {
        const struct sorted from = sorted_from(&all, i, in.value_size);
        uint32_t partition = t->by->is_unknown ? t->partition - w->first : writer_partition(w, t->by, all.keys[i]);
        end = writer_part_end(w, t->by, all.keys, n, i, partition);
        status = partition_writer_run(&w->part[partition], t, &from, end - i, e);
    }
    return status;
}

/* Write the last segments, and force all to storage. */
static int writer_seal(struct writer *w, struct writer_totals *out, struct error *e)
{
    int status = DELTAFS_OK;

    *out = (struct writer_totals){0};
    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++) {
        status = partition_writer_seal(&w->part[i], e);
        out->records += w->part[i].totals.records;
        out->bytes_raw += w->part[i].totals.bytes_raw;
        out->bytes_stored += w->part[i].totals.bytes_stored;
    }
    keys_clear(&w->shared.keys);
    if (w->shared.flusher)
        status = error_first(status, flusher_drain(w->shared.flusher, error_after(status, e)));
    if (status == DELTAFS_OK && w->c.sync == SYNC_COMMIT)
        status = values_sync(&w->values, e);
    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK && w->c.sync == SYNC_COMMIT; i++)
        status = partition_writer_sync(&w->part[i], e);
    return status;
}

void writer_work(void *arg, const void *item)
{
    struct writer *w = arg;
    struct memtable *table = *(struct memtable *const *)item;
    struct error e;

    if (table) {
        if (w->work_failed.status == DELTAFS_OK && table->count > 0 && writer_write_table(w, table, &e) != DELTAFS_OK)
            w->work_failed = e;
        memtable_clear(table);
        return;
    }
    if (w->work_failed.status == DELTAFS_OK)
        w->work_failed = w->ending.failed;
    if (w->work_failed.status == DELTAFS_OK && writer_seal(w, &w->ending.totals, &e) != DELTAFS_OK)
        w->work_failed = e;
    w->ending.failed = w->work_failed;
    for (uint32_t i = 0; i < w->count && w->work_failed.status == DELTAFS_OK; i++)
        partition_writer_next(&w->part[i]);
}

/* Have the memtable that fills written, and fill another. */
static void writer_hand_over(struct writer *w)
{
    w->filling->by = &w->by[w->now];
    w->filling->partition = w->partition;
    queue_put(w->queue, &w->filling);
    w->filling = queue_take(w->queue);
}

/* Have a memtable with room for a value of `size`; 0 if it would be for nothing, because the epoch has failed. */
static int writer_make_room(struct writer *w, size_t size)
{
    if (memtable_has_room(w->filling, size))
        return 1;
    if (w->failed.status != DELTAFS_OK || w->broken.status != DELTAFS_OK)
        return 0;
    writer_hand_over(w);
    return 1;
}

size_t deltafs_private_writer_put(struct writer *w, int waits, size_t n, const uint8_t *keys, size_t key_stride,
                                  const uint8_t *values, size_t value_stride, size_t size)
{
    size_t left = n;

    while (left > 0) {
        if (!waits && !memtable_has_room(w->filling, size) && !queue_has_free(w->queue))
            break;
        if (!writer_make_room(w, size))
            return n; /* it would be for nothing */
        uint32_t first = w->filling->count;
        size_t some = memtable_put_some(w->filling, left, keys, key_stride, values, value_stride, size);
        memtable_set_epoch(w->filling, first, w->stamp);
        sample_add(&w->sample, some, keys, key_stride);
        left -= some;
        keys += some * key_stride;
        values += size > 0 ? some * value_stride : 0;
    }
    return n - left;
}

void deltafs_private_writer_stamp(struct writer *w, uint32_t epoch)
{
    w->stamp = epoch;
}

void deltafs_private_writer_put_to(struct writer *w, uint32_t partition)
{
    w->partition = partition;
}

void deltafs_private_writer_cut_run(struct writer *w)
{
    if (w->filling->count > 0)
        writer_hand_over(w);
}

void deltafs_private_writer_room(const struct writer *w, uint64_t *records, uint64_t *bytes)
{
    *records = w->filling->capacity;
    *bytes = w->filling->value_size < 0 ? w->filling->room : UINT64_MAX;
}

int deltafs_private_writer_is_local(const struct writer *w)
{
    return w->values.is_on;
}

int deltafs_private_writer_can_put_values(struct writer *w, size_t size)
{
    return values_can_put(&w->values, size);
}

size_t deltafs_private_writer_put_values(struct writer *w, size_t n, const uint8_t *keys, size_t key_stride,
                                         const uint8_t *values, size_t value_stride, size_t size,
                                         const uint8_t **places)
{
    struct error e;
    size_t count;

    if (w->failed.status != DELTAFS_OK || w->broken.status != DELTAFS_OK)
        return 0;
    if (values_put(&w->values, n, keys, key_stride, values, value_stride, size, &count, &e) != DELTAFS_OK) {
        deltafs_private_writer_fail(w, &e);
        return 0;
    }
    *places = (const uint8_t *)w->values.places;
    return count;
}

int deltafs_private_writer_can_end(struct writer *w)
{
    return (!w->queue || queue_has_free(w->queue)) && (!w->values.is_on || values_seal_ahead(&w->values));
}

/* The values of the epoch that ends; the worker forces them to storage, if there is one. */
static void writer_seal_values(struct writer *w)
{
    struct error e;

    if (!w->values.is_on)
        return;
    int status = values_seal(&w->values, &w->ending.values, &e);
    if (status == DELTAFS_OK && !w->queue && w->c.sync == SYNC_COMMIT)
        status = values_sync(&w->values, &e);
    if (status != DELTAFS_OK && w->ending.failed.status == DELTAFS_OK)
        w->ending.failed = e;
}

/* If pivots have been chosen, records are placed by them from now on. Returns whether they have. */
static int writer_take_chosen(struct writer *w)
{
    uint32_t next = !w->now;

    sample_clear(&w->sample);
    if (!w->pivots[next] || w->pivots[next][0] == 0)
        return 0;
    w->pivots[next][0] = 0;
    w->by[next].pivots = w->pivots[next] + 1;
    w->now = next;
    return 1;
}

/* The next epoch begins. */
static void writer_place_next(struct writer *w)
{
    w->ending.by = w->now;
    w->ending.has_next = writer_take_chosen(w);
    hold_begin(&w->hold);
}

int deltafs_private_writer_has_pivots(const struct writer *w)
{
    return w->pivots[0] != NULL;
}

uint64_t deltafs_private_writer_sampled(const struct writer *w)
{
    return w->sample.seen;
}

int deltafs_private_writer_sample(struct writer *w, uint64_t sampled, struct bytes *out, struct error *e)
{
    return sample_pack(&w->sample, w->c.partitions, sampled, out, e);
}

void deltafs_private_writer_choose(struct writer *w, const struct bytes *samples)
{
    uint64_t *next = w->pivots[!w->now];

    next[0] = (uint64_t)pivots_choose(samples, &w->by[w->now], next + 1);
}

void *deltafs_private_writer_chosen(struct writer *w, size_t *n)
{
    *n = w->c.partitions * sizeof *w->pivots[0];
    return w->pivots[!w->now];
}

void deltafs_private_writer_place(struct writer *w)
{
    w->has_own |= writer_take_chosen(w);
}

int deltafs_private_writer_hold(struct writer *w, size_t n, const uint8_t *keys, size_t key_stride,
                                const uint8_t *values, size_t value_stride, size_t size)
{
    return hold_add(&w->hold, n, keys, key_stride, values, value_stride, size);
}

size_t deltafs_private_writer_hold_room(const struct writer *w, size_t size)
{
    return hold_room(&w->hold, size);
}

int deltafs_private_writer_is_placed(const struct writer *w)
{
    return w->by[w->now].pivots != NULL;
}

int deltafs_private_writer_is_holding(const struct writer *w)
{
    return w->hold.is_on;
}

void deltafs_private_writer_sample_held(struct writer *w)
{
    hold_sample(&w->hold, &w->sample);
}

void deltafs_private_writer_release(struct writer *w, hold_put_fn *put, void *arg)
{
    hold_release(&w->hold, put, arg);
}

const struct partitioner *deltafs_private_writer_partitioner(const struct writer *w)
{
    return &w->by[w->now];
}

void deltafs_private_writer_end(struct writer *w, uint64_t label)
{
    w->ending.label = label;
    w->ending.failed = w->broken.status != DELTAFS_OK ? w->broken : w->failed;
    w->ending.totals = w->ending.values = (struct writer_totals){0};
    w->failed = (struct error){0};
    w->is_ending = 1;
    writer_seal_values(w);
    if (w->queue) { /* else no partition is this process's */
        w->filling->by = &w->by[w->now];
        w->filling->partition = w->partition;
        queue_put(w->queue, &w->filling);
        w->end_number = queue_put(w->queue, &(struct memtable *){NULL});
        w->filling = queue_take(w->queue);
    }
    writer_place_next(w);
}

int deltafs_private_writer_is_ending(const struct writer *w, uint64_t *label)
{
    *label = w->ending.label;
    return w->is_ending;
}

int deltafs_private_writer_has_ended(struct writer *w)
{
    return !w->queue || queue_has_done(w->queue, w->end_number);
}

int deltafs_private_writer_wait_end(struct writer *w, struct writer_totals *out, struct error *e)
{
    if (w->queue)
        queue_wait(w->queue, w->end_number);
    *out = w->ending.totals;
    out->bytes_raw += w->ending.values.bytes_raw;
    out->bytes_stored += w->ending.values.bytes_stored;
    if (w->ending.failed.status != DELTAFS_OK)
        *e = w->ending.failed;
    return w->ending.failed.status;
}

void deltafs_private_writer_keep(struct writer *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        partition_writer_keep(&w->part[i]);
    values_keep(&w->values);
    w->epoch++;
    w->covers = 0;
    w->is_ending = 0;
    w->has_label = 1;
    w->last_label = w->ending.label;
}

void deltafs_private_writer_discard(struct writer *w, int is_commit_unknown, const struct error *why)
{
    struct error e;

    if (w->is_ending) /* what follows is again by the pivots that are stored */
        w->now = w->ending.by;
    w->is_ending = 0;
    w->covers = 0;
    sample_clear(&w->sample);
    hold_begin(&w->hold);
    if (w->queue) {
        queue_wait(w->queue, QUEUE_ALL);
        memtable_clear(w->filling);
    }
    if (w->shared.flusher)
        flusher_drain(w->shared.flusher, &e); /* of its errors this is the end */
    keys_clear(&w->shared.keys);
    if (w->broken.status == DELTAFS_OK && is_commit_unknown)
        w->broken = *why;
    for (uint32_t i = 0; i < w->count && w->broken.status == DELTAFS_OK; i++)
        if (partition_writer_give_up(&w->part[i], &e) != DELTAFS_OK)
            w->broken = e;
    if (w->broken.status == DELTAFS_OK && values_discard(&w->values, &e) != DELTAFS_OK)
        w->broken = e;
    w->failed = (struct error){0};
    w->work_failed = w->broken; /* then runs stay whose keys are gone: nothing may be done with them */
}

int deltafs_private_writer_finish(struct writer *w, uint64_t *tail_length, struct error *e)
{
    int status = w->broken.status;

    *tail_length = 0;
    writer_close_tables(w);
    if (w->shared.flusher)
        flusher_drain(w->shared.flusher, error_ignored()); /* of an epoch that was not ended */
    if (status != DELTAFS_OK)
        *e = w->broken;
    else
        status = values_finish(&w->values, e);
    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++) {
        uint64_t length;
        status = partition_writer_finish(&w->part[i], w->c.sync != SYNC_NONE, &length, e);
        if (status == DELTAFS_OK && length > *tail_length)
            *tail_length = length;
    }
    return status;
}

void deltafs_private_writer_memory(const struct writer *w, struct deltafs_memory_stat *out)
{
    uint64_t used = w->memory.used, peak = w->memory.peak; /* a thread may have raised the one and not yet the other */

    *out = (struct deltafs_memory_stat){sizeof *out, w->memory.limit, used, peak > used ? peak : used};
}

void deltafs_private_writer_io(const struct writer *w, struct deltafs_io_stat *out)
{
    io_stat(&w->io, out);
}
