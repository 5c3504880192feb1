/* A merge of streams, one for each segment of the epoch, or of all epochs. A stream reads a portion of its records at a
 * time, so that memory is bounded; a heap says whose next record has the least key. Records of one key are all in one
 * partition, and in the order of its segments, which is that of epochs: so streams with equal keys come in the order of
 * their numbers. */
#include <stdlib.h>
#include <string.h>
#include "directory/read/ordered.h"
#include "directory/serial.h"

#define PORTION_MIN ((size_t)16 << 10) /* bytes */
#define AHEAD_MIN   ((size_t)16 << 10) /* bytes */
#define STREAM_FULL 1                  /* no status is above 0 */

struct stream {
    struct scan scan;
    struct scan_to to;
    struct buffer records; /* struct deltafs_record: a portion */
    struct buffer values;  /* theirs, one after the other */
    size_t count, at;
    size_t used, value_at; /* bytes of values */
    size_t room;           /* bytes that the portion may have */
    size_t most;           /* records of the next portion, after one that was too large; 0: by their average size */
    struct error *error;   /* of stream_take */
};

/* ---- Streams ---- */

static struct deltafs_record *stream_record(const struct stream *s)
{
    return (struct deltafs_record *)(void *)s->records.bytes + s->at;
}

static int stream_take(const struct deltafs_record *record, void *arg)
{
    struct stream *s = arg;
    size_t n = s->count + 1;

    if (s->count > 0 && s->used + record->size + n * sizeof *record > s->room)
        return STREAM_FULL;
    int status = buffer_reserve(&s->records, n * sizeof *record, "records", s->error);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->values, s->used + record->size + 1, "records", s->error);
    if (status != DELTAFS_OK)
        return status;
    ((struct deltafs_record *)(void *)s->records.bytes)[s->count++] = *record;
    memcpy(s->values.bytes + s->used, record->value, record->size);
    s->used += record->size;
    return 0;
}

/* How many records of average size have so many bytes. */
static size_t stream_records(const struct stream *s, size_t bytes)
{
    size_t n = bytes / (size_t)(scan_record_size(&s->scan) + sizeof(struct deltafs_record));

    return n > 0 ? n : 1;
}

/* Take the next portion. Where values are far longer than their average, it ends early, and the next ones have fewer
 * records. */
static int stream_portion(struct stream *s, size_t share, struct error *e)
{
    size_t bytes = share < PORTION_MIN ? PORTION_MIN : share, most = stream_records(s, bytes);
    int is_short = s->most > 0 && s->most < most;

    s->room = 2 * bytes; /* so that no portion of usual sizes ends early */
    int status = scan_give_portion(&s->scan, is_short ? s->most : most, e);
    if (s->to.stopped == STREAM_FULL) {
        s->to.stopped = 0;
        s->most = (s->count + 1) / 2;
        return scan_stay(&s->scan, e);
    }
    if (is_short && s->used < bytes / 2)
        s->most *= 2;
    return status;
}

/* Read the next portion that has records, if there is any. */
static int stream_fill(struct stream *s, size_t share, struct error *e)
{
    int status = DELTAFS_OK;

    s->to = (struct scan_to){.fn = stream_take, .arg = s};
    s->scan.to = &s->to;
    s->error = e;
    s->count = s->at = s->used = s->value_at = 0;
    while (status == DELTAFS_OK && s->count == 0 && !scan_is_done(&s->scan))
        status = stream_portion(s, share, e);
    if (s->to.stopped)
        status = s->to.stopped;
    if (s->count > 0)
        stream_record(s)->value = s->values.bytes;
    return status;
}

/* Go on to the next record of the portion, if there is one. Among many streams it takes a while until the one behind it
 * is wanted, so have the processor fetch that. */
static void stream_advance(struct stream *s)
{
    s->value_at += stream_record(s)->size;
    if (++s->at == s->count)
        return;
    stream_record(s)->value = s->values.bytes + s->value_at;
    __builtin_prefetch(s->values.bytes + s->value_at + stream_record(s)->size);
    __builtin_prefetch(stream_record(s) + 2);
}

static void stream_fini(struct stream *s)
{
    scan_fini(&s->scan);
    buffer_fini(&s->records);
    buffer_fini(&s->values);
}

/* ---- The heap ---- */

/* Without branches, which a processor could not foresee. */
static int item_is_less(const struct heap_item *a, const struct heap_item *b)
{
    return (a->key < b->key) | ((a->key == b->key) & (a->stream < b->stream));
}

/* Put an item at place `i`, or below it. */
static void heap_sink(struct ordered *o, size_t i, struct heap_item moved)
{
    for (size_t child = 2 * i + 1; child < o->heap_count; child = 2 * i + 1) {
        child += child + 1 < o->heap_count && item_is_less(&o->heap[child + 1], &o->heap[child]);
        if (!item_is_less(&o->heap[child], &moved))
            break;
        o->heap[i] = o->heap[child];
        i = child;
    }
    o->heap[i] = moved;
}

/* ---- Epochs ---- */

/* One more stream, for a segment. */
static int ordered_add(struct ordered *o, struct part_reader *p, const struct segment *segment, struct error *e)
{
    if (o->streams == o->streams_most) {
        size_t n = o->streams_most > 0 ? 2 * o->streams_most : o->reader->manifest.partitions;
        struct stream *stream = realloc(o->stream, n * sizeof *stream);
        if (stream)
            o->stream = stream;
        struct heap_item *heap = realloc(o->heap, n * sizeof *heap);
        if (heap)
            o->heap = heap;
        if (!stream || !heap)
            return error_no_memory(e, n * (sizeof *stream + sizeof *heap), "a scan");
        memset(o->stream + o->streams_most, 0, (n - o->streams_most) * sizeof *stream);
        o->streams_most = n;
    }
    struct scan *s = &o->stream[o->streams].scan;
    s->reader = o->reader;
    s->part = p;
    s->damages = &o->damages;
    s->first_epoch = o->epoch;
    s->end_epoch = o->epoch + 1;
    window_fini(&s->index_window);
    scan_begin(s, segment, o->low, o->high);
    o->stream[o->streams].most = 0;
    o->streams += !scan_is_done(s);
    return DELTAFS_OK;
}

/* The streams of a partition. */
static int ordered_add_part(struct ordered *o, uint32_t partition, struct error *e)
{
    struct part_reader *p;
    struct segment *segment;
    uint32_t segments = 0;
    int status = reader_part(o->reader, partition, &p, e);

    o->is_lost[partition] = status != DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = reader_epoch(o->reader, p, scan_stored_epoch(o->reader, o->epoch), &segment, &segments, e);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_MEMORY) {
        damages_add(&o->damages, e);
        return DELTAFS_OK;
    }
    for (uint32_t i = 0; i < segments && status == DELTAFS_OK; i++)
        status = ordered_add(o, p, &segment[i], e);
    return status;
}

static size_t ordered_share(const struct ordered *o)
{
    return o->limit / (2 * o->streams);
}

/* Open the streams of the next epoch, or of all. */
static int ordered_begin_epoch(struct ordered *o, struct error *e)
{
    uint32_t first, last;
    int status = DELTAFS_OK;

    o->streams = 0;
    do {
        const struct partitioner by = manifest_partitioner(&o->reader->manifest, o->epoch, NULL);
        partition_range(&by, o->low, o->high, &first, &last);
        for (uint32_t i = first; i <= last && status == DELTAFS_OK; i++)
            if (!o->is_lost[i])
                status = ordered_add_part(o, i, e);
        o->epoch = o->is_by_key ? reader_next_epoch(o->reader, o->epoch + 1, o->end) : o->epoch + 1;
    } while (o->is_by_key && o->epoch < o->end && status == DELTAFS_OK);
    for (size_t i = 0; i < o->streams && status == DELTAFS_OK; i++) {
        struct window *w = &o->stream[i].scan.index_window;
        size_t share = ordered_share(o), ahead = share < AHEAD_MIN ? AHEAD_MIN : share;
        w->ahead = w->ahead > ahead ? ahead : w->ahead;
    }
    return status;
}

/* Read a portion of each stream. */
static int ordered_fill(struct ordered *o, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t i = 0; i < o->streams && status == DELTAFS_OK; i++) {
        struct stream *s = &o->stream[i];
        status = stream_fill(s, ordered_share(o), e);
        if (s->count > 0)
            o->heap[o->heap_count++] = (struct heap_item){stream_record(s)->key, i};
    }
    for (size_t i = o->heap_count / 2; i-- > 0;)
        heap_sink(o, i, o->heap[i]);
    return status;
}

/* Let go of the least record. */
static int ordered_advance(struct ordered *o, struct error *e)
{
    struct stream *s = &o->stream[o->heap[0].stream];
    int status = DELTAFS_OK;

    stream_advance(s);
    if (s->at == s->count)
        status = stream_fill(s, ordered_share(o), e);
    if (o->heap_count == 1 && s->count > 0) { /* the usual case where all was compacted */
        o->heap[0].key = stream_record(s)->key;
        return status;
    }
    struct heap_item next = {s->count > 0 ? stream_record(s)->key : 0, o->heap[0].stream};
    if (s->count == 0)
        next = o->heap[--o->heap_count];
    if (o->heap_count > 0)
        heap_sink(o, 0, next);
    return status;
}

/* ---- The scan ---- */

size_t ordered_limit(const struct reader *r)
{
    return (size_t)(r->memory == OPTION_AUTO ? SERIAL_MEMORY_DEFAULT : r->memory) / 2;
}

int ordered_init(struct ordered *o, struct reader *r, uint64_t low, uint64_t high, int is_by_key,
                 const struct deltafs_range *epochs, struct error *e)
{
    uint32_t partitions = r->manifest.partitions;

    *o = (struct ordered){.reader = r, .low = low, .high = high, .is_by_key = is_by_key, .limit = ordered_limit(r)};
    reader_epochs(r, epochs, &o->epoch, &o->end);
    if (is_by_key)
        o->epoch = reader_next_epoch(r, o->epoch, o->end);
    if (low > high)
        o->end = o->epoch;
    o->is_lost = calloc(partitions, 1);
    return o->is_lost ? reader_keep(r, partitions, e) : error_no_memory(e, partitions, "partitions");
}

int ordered_next(struct ordered *o, const struct deltafs_record **out, struct error *e)
{
    int status = o->is_given ? ordered_advance(o, e) : DELTAFS_OK;

    while (status == DELTAFS_OK && o->heap_count == 0 && o->epoch < o->end) {
        status = ordered_begin_epoch(o, e);
        if (status == DELTAFS_OK)
            status = ordered_fill(o, e);
    }
    if (status != DELTAFS_OK) { /* there is no way on */
        o->heap_count = 0;
        o->epoch = o->end;
    }
    o->is_given = o->heap_count > 0;
    *out = o->is_given ? stream_record(&o->stream[o->heap[0].stream]) : NULL;
    return status;
}

/* Hand out the records of the only stream, without copies. */
static int ordered_each_alone(struct ordered *o, deltafs_record_fn fn, void *arg, int *stopped, struct error *e)
{
    struct stream *s = &o->stream[0];
    int status = DELTAFS_OK;

    s->to = (struct scan_to){.fn = fn, .arg = arg};
    s->scan.to = &s->to;
    while (status == DELTAFS_OK && !scan_is_done(&s->scan))
        status = scan_give_portion(&s->scan, stream_records(s, ordered_share(o)), e);
    *stopped = s->to.stopped;
    return *stopped ? DELTAFS_OK : status;
}

int ordered_each(struct ordered *o, deltafs_record_fn fn, void *arg, int *stopped, struct error *e)
{
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && !*stopped && o->epoch < o->end) {
        status = ordered_begin_epoch(o, e);
        if (status == DELTAFS_OK && o->streams == 1) {
            status = ordered_each_alone(o, fn, arg, stopped, e);
            continue;
        }
        if (status == DELTAFS_OK)
            status = ordered_fill(o, e);
        while (status == DELTAFS_OK && o->heap_count > 0) {
            *stopped = fn(stream_record(&o->stream[o->heap[0].stream]), arg);
            if (*stopped)
                break;
            status = ordered_advance(o, e);
        }
    }
    return status == DELTAFS_OK && !*stopped ? damages_status(&o->damages, e) : status;
}

int ordered_is_last_of_key(const struct ordered *o)
{
    const struct heap_item *least = o->heap;
    const struct stream *s = &o->stream[least->stream];

    if (s->at + 1 == s->count || stream_record(s)[1].key == least->key)
        return 0;
    for (size_t child = 1; child <= 2 && child < o->heap_count; child++) /* the least of the others is there */
        if (o->heap[child].key == least->key)
            return 0;
    return 1;
}

void ordered_fini(struct ordered *o)
{
    for (size_t i = 0; i < o->streams_most; i++)
        stream_fini(&o->stream[i]);
    free(o->stream);
    free(o->heap);
    free(o->is_lost);
}
