/* How the memory budget is shared out. For n partitions, t memtables (one fills; one is written if there are
 * threads) of c records of r bytes (key and value):
 *     t r c       the memtables, which the partitions share
 *     16 c        the two arrays that sort one
 *     11 c + (t r + 16) c / 2     keys of written runs, held for the segments' merge: at least those of one memtable
 *     24 c / b    the list of a run's blocks, of b records each, as it grows
 *     n k         k: a partition's log buffers, and the heads of a few runs; and the flusher's spare buffers
 *     64 KiB + 1/512, 92 KiB, 25 KiB     a fence, a leaf, a merge of one run
 *     192 KiB     threads' stacks and what else the system takes
 * and one block being encoded, or a batch of them by each thread that does so. c is what makes that the budget.
 *
 * Before a memtable is written, segments are closed (which lets go of held keys) if what it needs, and the merge after
 * it, is not there; then it is. At the close the memtables go first, and the tails take their place. And where a
 * container is reopened, its index logs are read first, one after the other, with all of the memory; only the manifest,
 * of 32 bytes an epoch, has been read before that, and let go of. */
#include <string.h>
#include "directory/format/planes.h"
#include "directory/write/writer_state.h"

#define DATA_BUFFER_MAX   (1u << 20)
#define INDEX_BUFFER_MAX  (256u << 10)
#define BUFFER_MIN        (4u << 10)
#define BUFFERS_SHARE     8 /* the logs' buffers get at most 1/8 of the memory */
#define HOLD_SHARE        8 /* records that are held back get 1/8 of the memory */
#define TAIL_SHARE        4 /* a tail's fences get at most 1/4 of the memory: its footers may need the rest */
#define TAIL_FENCES_MAX   (16u << 20)
#define FENCE_ROOM_MIN    (64u << 10) /* bytes of a fence, */
#define FENCE_SHARE       512         /* and this part of the memory */
#define HELD_SHARE        2           /* held keys get this part of what memtables and sorting take */
#define TABLES_SHARE      4           /* memtables and sorting get this part of the memory, or threads are fewer */
#define TABLE_RECORDS_MIN 2u
#define TABLE_RECORDS_MAX (1u << 30)

uint64_t writer_path_room(const struct writer_config *c)
{
    return 2 * (strlen(c->path) + 64);
}

/* More than two would only make each smaller: one thread writes them, so an epoch would have more runs. */
uint32_t writer_tables(uint32_t threads)
{
    return threads > 0 ? TABLES_MOST : 1;
}

/* Threads beside the worker and the flusher encode. */
uint32_t writer_encoders(const struct writer_config *c, uint32_t threads)
{
    return threads > 2 && c->value_size >= 0 ? threads - 2 : 0;
}

static size_t writer_buffer(uint64_t share, size_t most)
{
    size_t n = BUFFER_MIN;

    while (2 * n <= share && 2 * n <= most)
        n *= 2;
    return n;
}

/* What each partition takes besides its buffers: itself, its paths, and a first few runs. */
static uint64_t writer_part_room(const struct writer_config *c)
{
    return sizeof(struct partition_writer) + writer_path_room(c) + VARINT_MAX +
           MEMORY_FIRST * (sizeof(struct run) + sizeof(struct run_block));
}

uint32_t writer_sample(const struct writer_config *c)
{
    return sample_capacity(c->partitions, c->memory);
}

/* A compaction's records are not held: where they go is known before. */
static uint64_t writer_hold(const struct writer_config *c)
{
    return c->partitioner == PARTITIONER_RANGE && c->partitions > 1 && c->compacted == 0 ? c->memory / HOLD_SHARE : 0;
}

/* What sampling keys and choosing pivots take. */
static uint64_t writer_pivots_room(const struct writer_config *c)
{
    return c->partitioner == PARTITIONER_RANGE ? writer_sample(c) * sizeof(uint64_t) + pivots_memory(c->partitions) : 0;
}

/* Records of each of `tables` memtables that fit `memory` bytes, which hold what else it takes for each record too. */
static uint64_t writer_records(const struct writer_config *c, uint64_t memory, uint32_t tables)
{
    uint64_t arena = tables * memtable_arena_bytes(c->value_size), least = tables * (uint64_t)MEMTABLE_ROOM_MIN;
    uint64_t blocks = c->value_size < 0 ? memtable_arena_bytes(-1) * BLOCK_LISTED / c->block + 1
                                        : BLOCK_LISTED / block_records(c->value_size, c->block) + 1;
    uint64_t epochs = c->compacted > 0 ? tables * sizeof(uint32_t) + KEYS_EPOCH_MAX : 0;
    uint64_t each = tables * memtable_record_bytes(c->value_size) + SORT_RECORD_BYTES;
    each += each / HELD_SHARE + VARINT_MAX + 1 + blocks + epochs;
    uint64_t records = memory / each;

    /* An arena for values of any size has a least size. */
    if (c->value_size < 0 && records * arena < least)
        records = memory > least ? (memory - least) / (each - arena) : 0;
    if (c->value_size < 0 && records > TABLE_RECORDS_MIN && records * arena < least)
        records = records < least / arena ? records : least / arena;
    return records < TABLE_RECORDS_MAX ? records : TABLE_RECORDS_MAX;
}

/* Share out `memory` bytes, besides those of records that are held back, as the head of this file says; returns the
 * memtables' records. */
static uint64_t writer_share_out(const struct writer_config *c, uint64_t memory, uint32_t count, uint32_t threads,
                                 struct part_shared *shared)
{
    uint64_t n = count > 0 ? count : 1, tables = writer_tables(threads), tail = memory / TAIL_SHARE;
    uint64_t buffers = n + (threads > 1 ? SPARE_BUFFERS : 0), own = c->place == LAYOUT_LOCAL;

    shared->data_buffer = writer_buffer(memory / BUFFERS_SHARE / (buffers + own), DATA_BUFFER_MAX);
    shared->index_buffer = writer_buffer(memory / BUFFERS_SHARE / n / 4, INDEX_BUFFER_MAX);
    shared->tail_fences_max = tail > TAIL_FENCES_MAX ? TAIL_FENCES_MAX : (size_t)tail;
    shared->scratch.fence_max = (size_t)(FENCE_ROOM_MIN + memory / FENCE_SHARE);
    uint64_t fixed = buffers * shared->data_buffer + n * (shared->index_buffer + writer_part_room(c)) +
                     shared->scratch.fence_max + LEAF_ENCODED_MAX + index_merge_bytes(1) + 3 * KEYS_CHUNK +
                     SYSTEM_ROOM + block_writer_memory(c->value_size, c->block) + c->reserved +
                     (2 * tables + 2) * PLANES_SLACK + values_writer_memory(c, shared->data_buffer) +
                     writer_pivots_room(c) +
                     (c->value_size < 0 ? (MEMTABLE_ROOM_MIN / c->block + 1) * BLOCK_LISTED : 0) +
                     (writer_encoders(c, threads) > 0 ? encoder_memory(c, writer_encoders(c, threads)) : 0);
    return memory > fixed ? writer_records(c, memory - fixed, (uint32_t)tables) : 0;
}

/* Where memory is too small for all threads, there are fewer: most of it is better spent on memtables. Returns the
 * memtables' records. */
static uint64_t writer_choose_threads(struct writer *w, const struct writer_config *c, uint32_t count)
{
    for (w->threads = c->threads;; w->threads--) {
        uint64_t n = writer_share_out(c, c->memory - w->hold_room, count, w->threads, &w->shared);
        uint64_t bytes = n * (writer_tables(w->threads) * memtable_record_bytes(c->value_size) + SORT_RECORD_BYTES);
        if ((n >= TABLE_RECORDS_MIN && bytes >= c->memory / TABLES_SHARE) || w->threads == 0)
            return n;
    }
}

/* Where memory is too small to hold records back, none are. */
int writer_plan(struct writer *w, const struct writer_config *c, uint32_t count, uint32_t *records, struct error *e)
{
    uint64_t enough = c->memory;

    w->hold_room = writer_hold(c);
    uint64_t n = writer_choose_threads(w, c, count);
    if (n < TABLE_RECORDS_MIN && w->hold_room > 0) {
        w->hold_room = 0;
        n = writer_choose_threads(w, c, count);
    }
    *records = (uint32_t)n;
    if (n >= TABLE_RECORDS_MIN)
        return DELTAFS_OK;
    while (writer_share_out(c, enough, count, 0, &w->shared) < TABLE_RECORDS_MIN)
        enough += enough / 16 + 4096;
    return error_set(e, DELTAFS_ERR_MEMORY,
                     "option memory: %llu bytes are too few for %u partitions in one process and values of this size; "
                     "give %llu, or use more processes or fewer partitions",
                     (unsigned long long)c->memory, count, (unsigned long long)enough);
}
