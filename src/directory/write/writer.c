/* How the memory budget is shared out. For n partitions, t memtables (one fills, and one more for each thread, up to 3)
 * of c records of r bytes (key and value):
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
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "base/queue.h"
#include "directory/write/partition_writer.h"
#include "directory/format/partition.h"
#include "directory/write/value_log_write.h"
#include "directory/write/writer.h"
#include "directory/format/planes.h"
#include "io/io_format.h"

#define TABLES_MOST       3
#define DATA_BUFFER_MAX   (1u << 20)
#define INDEX_BUFFER_MAX  (256u << 10)
#define BUFFER_MIN        (4u << 10)
#define SPARE_BUFFERS     2            /* of the flusher */
#define DIRECT_BUFFER_MIN (256u << 10) /* shorter writes are better left to the page cache */
#define BUFFERS_SHARE     8            /* the logs' buffers get at most 1/8 of the memory */
#define TAIL_SHARE        4 /* a tail's fences get at most 1/4 of the memory: its footers may need the rest */
#define TAIL_FENCES_MAX   (16u << 20)
#define SYSTEM_ROOM       (192u << 10) /* for threads' stacks, handles of files, and what the heap adds to all this */
#define FENCE_ROOM_MIN    (64u << 10)  /* bytes of a fence, */
#define FENCE_SHARE       512          /* and this part of the memory */
#define HELD_SHARE        2            /* held keys get this part of what memtables and sorting take */
#define TABLES_SHARE      4            /* memtables get at least this part of the memory, or threads are fewer */
#define BLOCK_LISTED      24           /* bytes of a block in a run's list, while that doubles */
#define FILES_SHARE       8 /* partitions with open logs: for so many of the descriptors that the process may have, one */
#define TABLE_RECORDS_MIN 2u
#define TABLE_RECORDS_MAX (1u << 30)

static void writer_work(void *arg, const void *item);

static _Atomic uint32_t partitions_kept; /* with open logs, of all writers of the process */

struct writer {
    struct io io;
    struct memory memory;
    struct writer_config c; /* its path is the writer's own; schema and volumes are not kept */
    uint32_t first, count;  /* its own */
    uint32_t kept;          /* of these have their logs open all the time; the others open them for each call */
    size_t part_capacity;
    struct partition_writer *part;
    struct part_shared shared;
    struct memtable table[TABLES_MOST];
    uint32_t threads, tables;
    struct memtable *filling;    /* the one that fills */
    struct queue *queue;         /* of full memtables; NULL: an epoch's end. Its thread is the worker */
    uint64_t end_number;         /* of the last epoch's end in it */
    struct values_writer values; /* with layout=local */
    uint32_t epoch;              /* the first that is not committed */
    uint32_t stamp;              /* where epochs are compacted: that of the records that are put */
    int has_label;
    uint64_t last_label;
    uint64_t last_records; /* of the last epoch that was committed here, of all processes */
    struct error failed;   /* the first error of the epoch that fills, but for what the worker finds */
    struct error broken;   /* after this no epoch can follow */
    int is_ending;
    struct { /* the epoch that is ending; the worker's until it is done */
        uint64_t label;
        struct error failed;
        struct writer_totals totals, values;
    } ending;
    /* The worker's: */
    uint64_t *sort[2];        /* room for a memtable's records each */
    struct error work_failed; /* its first error; until the epoch is discarded nothing more is written */
    int is_maker;
    struct lease lease; /* the maker's */
    int has_cut;        /* an epoch without its commit, which all of the former job's processes had written, */
    uint64_t cut_label; /* under this label */
    struct io_file manifest;
    uint64_t manifest_size;
    uint64_t manifest_copied; /* bytes of it that its copy has for certain */
};

/* ---- Opening ---- */

/* What the paths of a partition's two logs take. */
static uint64_t writer_path_room(const struct writer_config *c)
{
    return 2 * (strlen(c->path) + 64);
}

/* One fills; one more for each thread. */
static uint32_t writer_tables(uint32_t threads)
{
    return 1 + threads < TABLES_MOST ? 1 + threads : TABLES_MOST;
}

/* Threads beside the worker and the flusher encode. */
static uint32_t writer_encoders(const struct writer_config *c, uint32_t threads)
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

/* Share out `memory` bytes as the head of this file says; returns the memtables' records. */
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
                     SYSTEM_ROOM + block_writer_memory(c->value_size, c->block) + c->reserved + tables * PLANES_SLACK +
                     values_writer_memory(c, shared->data_buffer) +
                     (c->value_size < 0 ? (MEMTABLE_ROOM_MIN / c->block + 1) * BLOCK_LISTED : 0) +
                     (writer_encoders(c, threads) > 0 ? encoder_memory(c, writer_encoders(c, threads)) : 0);
    return memory > fixed ? writer_records(c, memory - fixed, (uint32_t)tables) : 0;
}

/* Where memory is too small for all threads, there are fewer: most of it is better spent on memtables. */
static int writer_plan(struct writer *w, const struct writer_config *c, uint32_t count, uint32_t *records,
                       struct error *e)
{
    uint64_t n = 0, enough = c->memory, bytes;

    for (w->threads = c->threads;; w->threads--) {
        n = writer_share_out(c, c->memory, count, w->threads, &w->shared);
        bytes = n * writer_tables(w->threads) * memtable_record_bytes(c->value_size);
        if ((n >= TABLE_RECORDS_MIN && bytes >= c->memory / TABLES_SHARE) || w->threads == 0)
            break;
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

/* Take what all partitions share, and start the threads. */
static int writer_open_shared(struct writer *w, const struct writer_config *c, uint32_t records, struct error *e)
{
    int status = DELTAFS_OK;

    w->shared.keys.has_epochs = c->compacted > 0;
    for (; w->tables < writer_tables(w->threads) && status == DELTAFS_OK; w->tables++) {
        status = memtable_init(&w->table[w->tables], c->value_size, records, &w->memory, e);
        if (status == DELTAFS_OK && c->compacted > 0)
            status = memtable_add_epochs(&w->table[w->tables], e);
    }
    for (int i = 0; i < 2 && status == DELTAFS_OK; i++)
        status = memory_take(&w->memory, records * sizeof *w->sort[i], "sorting", &w->sort[i], e);
    if (status == DELTAFS_OK)
        status = block_writer_init(&w->shared.block, c->value_size, &c->strips, c->codec, c->block, &w->memory, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->shared.scratch.leaf, LEAF_ENCODED_MAX, "a leaf", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->shared.scratch.fence, w->shared.scratch.fence_max, "a fence", e);
    if (status == DELTAFS_OK && w->threads > 1)
        status = flusher_create(w->shared.data_buffer, SPARE_BUFFERS, &w->memory, &w->shared.flusher, e);
    if (status == DELTAFS_OK && writer_encoders(c, w->threads) > 0)
        status = encoder_create(c, writer_encoders(c, w->threads), &w->memory, &w->shared.encoder, e);
    if (status == DELTAFS_OK)
        status = queue_create(TABLES_MOST, sizeof w->filling, w->threads > 0, writer_work, w, &w->queue, e);
    for (uint32_t i = 0; i < w->tables && status == DELTAFS_OK; i++)
        queue_add(w->queue, &w->table[i]);
    if (status == DELTAFS_OK)
        w->filling = queue_take(w->queue);
    return status;
}

/* Make the new logs' folder entries durable. */
static int writer_sync_folders(struct writer *w, struct error *e)
{
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    for (uint32_t b = 0; b < BUCKET_COUNT && b < w->count && status == DELTAFS_OK; b++)
        status = io_sync_folder(&w->io, io_path_in(path, w->c.path, BUCKET_NAME, (w->first + b) % BUCKET_COUNT), e);
    return status;
}

static int writer_open_manifest(struct writer *w, struct error *e)
{
    int status = manifest_open(&w->io, w->c.path, O_RDWR, &w->manifest, e);

    return status == DELTAFS_OK ? io_file_size(&w->manifest, &w->manifest_size, e) : status;
}

static int writer_not_alone(const struct writer *w, struct error *e)
{
    return error_set(e, DELTAFS_ERR_BUSY, "%s: another job has written to it: nothing more can be committed",
                     w->manifest.path);
}

/* What is about to be truncated is an incomplete line, and not lines that the file system did not show when the
 * manifest was read. */
static int writer_check_torn(struct writer *w, const struct writer_config *c, struct error *e)
{
    struct manifest now = {0};
    int status = manifest_read_file(&w->manifest, &now, e);

    if (status == DELTAFS_OK && now.size != c->manifest_size)
        status = writer_not_alone(w, e);
    manifest_fini(&now);
    return status;
}

int deltafs_private_writer_note_open(struct writer *w, const struct writer_config *c, struct error *e)
{
    int is_torn = w->manifest_size > c->manifest_size;
    int status = is_torn ? writer_check_torn(w, c, e) : DELTAFS_OK;

    if (status == DELTAFS_OK && is_torn)
        status = io_file_truncate(&w->manifest, c->manifest_size, e);
    /* Or a power loss could leave a mixture of an incomplete line and of what takes its place. */
    if (status == DELTAFS_OK && is_torn && w->c.sync != SYNC_NONE)
        status = io_file_sync(&w->manifest, e);
    w->manifest_size = c->manifest_size;
    if (status == DELTAFS_OK)
        status = manifest_append_open(&w->manifest, &w->manifest_size, c->epochs, w->c.sync != SYNC_NONE, e);
    if (status == DELTAFS_OK && c->place == LAYOUT_LOCAL)
        status = manifest_append_job(&w->manifest, &w->manifest_size, &c->job, w->c.sync != SYNC_NONE, e);
    if (status == DELTAFS_OK)
        status = manifest_copy(&w->manifest, &w->manifest_copied, w->manifest_size, w->c.sync != SYNC_NONE, e);
    if (status != DELTAFS_OK)
        return status;
    w->lease.has_note = 0; /* what it says is about to be truncated */
    return lease_renew(&w->lease, NULL, e);
}

int deltafs_private_writer_has_truncated(const struct writer *w, uint64_t *label)
{
    *label = w->cut_label;
    return w->has_cut;
}

int deltafs_private_writer_truncate(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++)
        status = partition_writer_cut(&w->part[i], w->c.sync != SYNC_NONE, e);
    return status;
}

/* Decide how many of `count` partitions keep their logs open. */
static uint32_t writer_keep(uint32_t count)
{
    struct rlimit files;
    uint64_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / FILES_SHARE : UINT64_MAX;
    uint32_t others = partitions_kept,
             n = most > others ? (uint32_t)(most - others < count ? most - others : count) : 0;

    partitions_kept += n;
    return n;
}

static int writer_open_partitions(struct writer *w, const struct writer_config *c, uint32_t count, struct error *e)
{
    int status = DELTAFS_OK;

    w->kept = writer_keep(count);
    /* A partition whose opening failed half-way is counted: it is closed with the others. */
    for (; w->count < count && status == DELTAFS_OK; w->count++) {
        struct partition_writer *p = &w->part[w->count];
        status = partition_writer_open(p, &w->io, c, w->first + w->count, &w->shared, e);
        if (status == DELTAFS_OK && w->count >= w->kept)
            status = partition_writer_release(p, e);
    }
    return status;
}

/* Write around the page cache, where that brings anything; it takes one more descriptor for each partition. */
static void writer_use_direct(struct writer *w)
{
    if (w->c.sync == SYNC_NONE || w->shared.data_buffer < DIRECT_BUFFER_MIN)
        return;
    w->values.may_direct = 1;
    for (uint32_t i = 0; i < w->kept; i++)
        io_file_use_direct(&w->part[i].data.file);
}

static int writer_open(struct writer *w, const struct writer_config *c, uint32_t count, struct error *e)
{
    uint32_t records;

    w->c.path = strdup(c->path);
    if (!w->c.path)
        return error_no_memory(e, strlen(c->path), "a path");
    int status = writer_plan(w, c, count, &records, e);
    if (status == DELTAFS_OK)
        status = memory_take(&w->memory, (count + (size_t)1) * sizeof *w->part, "partitions", &w->part, e);
    if (status == DELTAFS_OK) {
        memset(w->part, 0, (count + (size_t)1) * sizeof *w->part);
        w->part_capacity = count + 1;
    }
    for (uint32_t i = 0; i < count && c->is_reopened && status == DELTAFS_OK; i++)
        status = partition_writer_find(&w->part[i], &w->io, c, w->first + i, &w->memory, e);
    if (status == DELTAFS_OK && count > 0)
        status = writer_open_shared(w, c, records, e);
    if (status == DELTAFS_OK)
        status = writer_open_partitions(w, c, count, e);
    if (status == DELTAFS_OK && w->c.sync != SYNC_NONE)
        status = writer_sync_folders(w, e);
    if (status == DELTAFS_OK)
        status = values_writer_open(&w->values, &w->io, &w->c, w->shared.data_buffer, w->shared.flusher, &w->memory, e);
    if (status == DELTAFS_OK)
        writer_use_direct(w);
    if (status == DELTAFS_OK && w->is_maker)
        status = writer_open_manifest(w, e);
    return status;
}

int deltafs_private_writer_open(const struct writer_config *c, uint32_t first, uint32_t count, struct lease *lease,
                                struct writer **out, struct error *e)
{
    struct writer *w = calloc(1, sizeof *w);

    if (!w)
        return error_no_memory(e, sizeof *w, "a writer");
    w->io = io_default();
    uint64_t taken = c->reserved + SYSTEM_ROOM + count * writer_path_room(c);
    w->memory = (struct memory){.limit = c->memory, .used = taken, .peak = taken};
    w->c = *c;
    w->c.path = w->c.schema = w->c.volumes = NULL;
    w->shared.config = &w->c;
    w->first = first;
    w->is_maker = lease != NULL;
    w->manifest.fd = -1;
    if (c->epochs > 0) {
        w->epoch = c->epochs;
        w->has_label = 1;
        w->last_label = c->last_label;
    }
    w->shared.memory = w->shared.keys.memory = w->shared.scratch.leaf.memory = w->shared.scratch.fence.memory =
        &w->memory;
    int status = writer_open(w, c, count, e);
    if (status != DELTAFS_OK) {
        deltafs_private_writer_destroy(w, error_ignored());
        return status;
    }
    if (lease) {
        w->lease = *lease;
        w->lease.file.io = &w->io;
        *lease = (struct lease){.file.fd = -1};
        w->has_cut = c->is_reopened && w->lease.has_note && w->lease.note.number == c->epochs;
        w->cut_label = w->lease.note.label;
    }
    *out = w;
    return DELTAFS_OK;
}

void deltafs_private_writer_return_lease(struct writer *w, struct lease *lease)
{
    if (!w)
        return;
    *lease = w->lease;
    w->lease = (struct lease){.file.fd = -1};
}

/* End the threads, and let go of the memtables and what sorts them. */
static void writer_close_tables(struct writer *w)
{
    queue_destroy(w->queue);
    w->queue = NULL;
    encoder_destroy(w->shared.encoder);
    w->shared.encoder = NULL;
    for (int i = 0; i < 2 && w->tables > 0; i++) {
        memory_give(&w->memory, w->sort[i], w->table[0].capacity * sizeof *w->sort[i]);
        w->sort[i] = NULL;
    }
    for (uint32_t i = 0; i < w->tables; i++)
        memtable_fini(&w->table[i]);
    w->tables = 0;
    w->filling = NULL;
}

int deltafs_private_writer_destroy(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    if (!w)
        return DELTAFS_OK;
    writer_close_tables(w);
    flusher_destroy(w->shared.flusher);
    for (uint32_t i = 0; i < w->count; i++)
        status = error_first(status, partition_writer_close(&w->part[i], error_after(status, e)));
    partitions_kept -= w->kept;
    status = error_first(status, values_writer_close(&w->values, error_after(status, e)));
    status = error_first(status, io_file_close(&w->manifest, error_after(status, e)));
    status = error_first(status, lease_drop(&w->lease, error_after(status, e)));
    keys_clear(&w->shared.keys);
    block_writer_fini(&w->shared.block);
    buffer_fini(&w->shared.scratch.leaf);
    buffer_fini(&w->shared.scratch.fence);
    memory_give(&w->memory, w->part, w->part_capacity * sizeof *w->part);
    free((char *)(uintptr_t)w->c.path);
    free(w);
    return status;
}

/* ---- An epoch ---- */

int deltafs_private_writer_last_label(const struct writer *w, uint64_t *label)
{
    if (w->is_ending || w->has_label)
        *label = w->is_ending ? w->ending.label : w->last_label;
    return w->is_ending || w->has_label;
}

uint64_t deltafs_private_writer_last_records(const struct writer *w)
{
    return w->last_records;
}

int deltafs_private_writer_check_label(const struct writer *w, uint64_t label, struct error *e)
{
    uint64_t last;

    if (deltafs_private_writer_last_label(w, &last) && label <= last)
        return error_set(e, DELTAFS_ERR_LABEL, "%s: the epoch's label %llu is not greater than the last one, %llu",
                         w->c.path, (unsigned long long)label, (unsigned long long)last);
    return DELTAFS_OK;
}

enum option_old_label deltafs_private_writer_old_label(const struct writer *w)
{
    return w->c.old_label;
}

int deltafs_private_writer_find_label(struct writer *w, uint64_t label, int *is_committed, struct error *e)
{
    return manifest_find_label(&w->manifest, label, is_committed, e);
}

void deltafs_private_writer_explain_label(const struct writer *w, uint64_t records, struct error *e)
{
    static const char *const what[] = {
        [OLD_LABEL_DISCARD] = "discarded; a job that repeats committed steps after a restart gives the option "
                              "old_label=skip",
        [OLD_LABEL_KEEP] = "kept for the next label (old_label=keep)",
        [OLD_LABEL_SKIP] = "discarded; old_label=skip is for labels that are committed"};

    error_set(e, e->status, "%s; its records (%llu) are %s", e->text, (unsigned long long)records,
              what[w->c.old_label]);
}

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
static uint32_t writer_partition(const struct writer *w, uint64_t key)
{
    return w->count > 1 ? partition_of(key, w->c.partitions) - w->first : 0;
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
    const struct sort_partitions partitions = {w->c.partitions, w->first, w->count};
    uint32_t n = t->count, end;
    int status = DELTAFS_OK;

    if (!writer_has_room(w, t))
        status = writer_close_segments(w, e);
    const uint8_t *values = t->value_size >= 0 ? t->arena : NULL;
    /* With epochs the order is needed, so no values are moved. */
    const struct sort_input in = {n, t->keys, t->epochs ? NULL : values, (size_t)t->value_size};
    struct sorted all = sort_records(&in, &partitions, w->sort[0], w->sort[1]);
    if (t->epochs)
        all.values = values;
    for (uint32_t i = 0; i < n && status == DELTAFS_OK; i = end) {
        const struct sorted from = sorted_from(&all, i, in.value_size);
        uint32_t partition = writer_partition(w, all.keys[i]);
        if (w->count == 1)
            end = n;
        else
            for (end = i + 1; end < n && writer_partition(w, all.keys[end]) == partition;)
                end++;
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

/* What the worker does; the caller's thread where there is none. */
static void writer_work(void *arg, const void *item)
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

/* Have a memtable with room for a value of `size`; 0 if it would be for nothing, because the epoch has failed. */
static int writer_make_room(struct writer *w, size_t size)
{
    if (memtable_has_room(w->filling, size))
        return 1;
    if (w->failed.status != DELTAFS_OK || w->broken.status != DELTAFS_OK)
        return 0;
    queue_put(w->queue, &w->filling);
    w->filling = queue_take(w->queue);
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

void deltafs_private_writer_cut_run(struct writer *w)
{
    if (w->filling->count == 0)
        return;
    queue_put(w->queue, &w->filling);
    w->filling = queue_take(w->queue);
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

void deltafs_private_writer_end(struct writer *w, uint64_t label)
{
    w->ending.label = label;
    w->ending.failed = w->broken.status != DELTAFS_OK ? w->broken : w->failed;
    w->ending.totals = w->ending.values = (struct writer_totals){0};
    w->failed = (struct error){0};
    w->is_ending = 1;
    writer_seal_values(w);
    if (!w->queue)
        return; /* no partition is this process's */
    queue_put(w->queue, &w->filling);
    w->end_number = queue_put(w->queue, &(struct memtable *){NULL});
    w->filling = queue_take(w->queue);
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

/* Whether an epoch is committed is not known. */
static int writer_mark_unknown(const struct writer *w, const char *more, struct error *e)
{
    return error_set(e, e->status,
                     "%s; %swhether the epoch labelled %llu is committed shows when the directory is opened; no "
                     "other can follow",
                     e->text, more, (unsigned long long)w->ending.label);
}

/* The manifest is still this job's, and ends where this job's last line ends. */
static int writer_begin_line(struct writer *w, const struct lease_epoch *note, struct error *e)
{
    uint64_t now;
    int status = lease_renew(&w->lease, note, e);

    if (status == DELTAFS_OK)
        status = io_file_size(&w->manifest, &now, e);
    return status == DELTAFS_OK && now != w->manifest_size ? writer_not_alone(w, e) : status;
}

/* Remove what is left of a line that could not be written. Returns whether it is gone for certain. */
static int writer_undo_line(struct writer *w, uint64_t size)
{
    w->manifest_size = size;
    return io_file_truncate(&w->manifest, size, error_ignored()) == DELTAFS_OK &&
           io_file_sync(&w->manifest, error_ignored()) == DELTAFS_OK;
}

/* A line counts without its copy: the next line, or the close, brings the copy up to date. With sync=close only the
 * close: a power loss must not leave lines in the copy that the manifest does not have yet. */
static void writer_copy_line(struct writer *w)
{
    if (w->c.sync != SYNC_CLOSE)
        manifest_copy(&w->manifest, &w->manifest_copied, w->manifest_size, 0, error_ignored());
}

int deltafs_private_writer_commit(struct writer *w, const struct writer_totals *totals, int *is_commit_unknown,
                                  struct error *e)
{
    uint64_t label = w->ending.label, size = w->manifest_size;
    struct manifest_epoch epoch = {label, totals->records, totals->bytes_raw, totals->bytes_stored};
    struct lease_epoch next = {w->epoch, label, totals->records, totals->bytes_stored};
    int status = writer_begin_line(w, &next, e);

    *is_commit_unknown = 0;
    if (status != DELTAFS_OK)
        return status;
    status = manifest_append_epoch(&w->manifest, &w->manifest_size, w->epoch, &epoch, w->c.sync == SYNC_COMMIT, e);
    if (status == DELTAFS_OK) {
        w->last_records = totals->records;
        /* If the container is another's now, what is there may be so too: nothing is taken back. */
        *is_commit_unknown = lease_confirm(&w->lease, e) != DELTAFS_OK;
        if (*is_commit_unknown)
            return writer_mark_unknown(w, "", e);
        writer_copy_line(w);
        return DELTAFS_OK;
    }
    /* The line must go again, or a reader would find an epoch whose data is about to be overwritten. */
    *is_commit_unknown = !writer_undo_line(w, size);
    return *is_commit_unknown ? writer_mark_unknown(w, "nor can that be undone: ", e) : status;
}

int deltafs_private_writer_set_attribute(struct writer *w, const struct deltafs_attribute *a, struct error *e)
{
    uint64_t size = w->manifest_size;

    if (w->broken.status != DELTAFS_OK) {
        *e = w->broken;
        return e->status;
    }
    int status = writer_begin_line(w, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    status = attribute_append(&w->manifest, &w->manifest_size, a, w->c.sync == SYNC_COMMIT, e);
    if (status == DELTAFS_OK) {
        status = lease_confirm(&w->lease, e);
        if (status == DELTAFS_OK)
            writer_copy_line(w);
        return status;
    }
    if (!writer_undo_line(w, size)) {
        error_set(e, status, "%s; nor can that be undone: no epoch can follow; close the directory, and reopen it",
                  e->text);
        w->broken = *e;
    }
    return status;
}

void deltafs_private_writer_keep(struct writer *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        partition_writer_keep(&w->part[i]);
    values_keep(&w->values);
    w->epoch++;
    w->is_ending = 0;
    w->has_label = 1;
    w->last_label = w->ending.label;
}

void deltafs_private_writer_discard(struct writer *w, int is_commit_unknown, const struct error *why)
{
    struct error e;

    w->is_ending = 0;
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

int deltafs_private_writer_check_lease(struct writer *w, struct error *e)
{
    return lease_renew(&w->lease, NULL, e);
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

int deltafs_private_writer_commit_close(struct writer *w, uint64_t tail_length, struct error *e)
{
    int sync = w->c.sync != SYNC_NONE;
    int status = manifest_append_close(&w->manifest, &w->manifest_size, w->epoch, tail_length, sync, e);

    return status == DELTAFS_OK ? manifest_copy(&w->manifest, &w->manifest_copied, w->manifest_size, sync, e) : status;
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
