/* A scan begins when some keys in row were ascending. It ends at the first key that it does not have, or that is too
 * far ahead. A scan that was of little use makes the next one begin later. */
#include "namespace/chunk_stream.h"
#include "directory/read/iter.h"

#define SMALL_MAX      ((size_t)16 << 10)  /* bytes of a chunk */
#define HELD           ((size_t)512 << 10) /* bytes of records, so that they stay in the processor's cache */
#define ASCENDING      8u                  /* keys, before a scan begins; twice as many after each failure */
#define FAILURES_MAX   16
#define USEFUL         8                  /* times as many hits make a scan a success */
#define CREDIT_MAX     ((size_t)64 << 10) /* bytes */
#define CREDIT_HIT     8                  /* a hit lets so many records of its size be skipped */
#define RECORD_BESIDES 128                /* bytes that skipping a record counts besides its own */

void chunk_stream_close(struct chunk_stream *s)
{
    unsigned useful = USEFUL * ASCENDING;

    if (!s->iter)
        return;
    deltafs_iter_close(s->iter);
    s->iter = NULL;
    s->record = NULL;
    if (s->hits >= useful << s->failures)
        s->failures = 0;
    else
        s->failures += s->failures < FAILURES_MAX;
    s->hits = 0;
    s->ascending = 0;
}

/* Go on to the next record, if there is one that can be read. */
static void stream_step(struct chunk_stream *s)
{
    if (iter_next_number(s->iter, &s->record, error_ignored()) != DELTAFS_OK)
        s->record = NULL;
}

static void stream_open(struct chunk_stream *s, deltafs_dir *dir, uint64_t key)
{
    const struct deltafs_range epochs = {key, UINT64_MAX}; /* their labels are above the keys of their chunks */

    if (deltafs_iter_open(dir, key, UINT64_MAX, &epochs, &s->iter) != DELTAFS_OK)
        s->iter = NULL;
    s->credit = CREDIT_MAX;
    if (s->iter) {
        iter_limit(s->iter, HELD);
        stream_step(s);
    }
}

/* Skip the records before a key. */
static void stream_skip(struct chunk_stream *s, uint64_t key)
{
    while (s->record && s->record->key < key) {
        size_t cost = s->record->size + RECORD_BESIDES;
        if (cost > s->credit)
            return;
        s->credit -= cost;
        stream_step(s);
    }
}

const struct deltafs_record *chunk_stream_find(struct chunk_stream *s, deltafs_dir *dir, uint64_t key, size_t room)
{
    if (room > SMALL_MAX)
        return NULL;
    s->ascending = key > s->last ? s->ascending + 1 : 0;
    s->last = key;
    if (!s->iter && s->ascending >= ASCENDING << s->failures)
        stream_open(s, dir, key);
    if (!s->iter)
        return NULL;
    stream_skip(s, key);
    if (!s->record || s->record->key != key || s->record->size > room) {
        chunk_stream_close(s);
        return NULL;
    }
    s->hits++;
    s->credit += CREDIT_HIT * (s->record->size + RECORD_BESIDES);
    if (s->credit > CREDIT_MAX)
        s->credit = CREDIT_MAX;
    return s->record;
}
