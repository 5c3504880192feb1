#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/number.h"
#include "namespace/journal.h"

#define JOURNAL_MAX (16u << 20) /* bytes that a reader takes */

#define INSERT_MOST 32
#define SLOT_BITS   14
#define SLOTS       ((size_t)1 << SLOT_BITS)

#define MESSAGE "a journal"

/* ---- Records in memory ---- */

/* The records have moved, or are others. */
static void forget_slots(struct journal *j)
{
    if (j->slotted > 0)
        memset(j->slot, 0, SLOTS * sizeof *j->slot);
    j->slotted = 0;
}

static void journal_clear(struct journal *j)
{
    j->last_label = 0;
    j->used = j->end = 0;
    j->records = j->committed = j->sorted = 0;
    forget_slots(j);
    j->is_full = 0;
}

void journal_fini(struct journal *j)
{
    buffer_fini(&j->bytes);
    free(j->record);
    free(j->slot);
    *j = (struct journal){.table = j->table};
}

static int add_record(struct journal *j, const struct journal_record *r, struct error *e)
{
    int status = memory_extend(NULL, &j->record, j->records, &j->room, sizeof *j->record, MESSAGE, e);

    if (status == DELTAFS_OK && !j->slot && !(j->slot = calloc(SLOTS, sizeof *j->slot)))
        status = error_no_memory(e, SLOTS * sizeof *j->slot, MESSAGE);
    if (status == DELTAFS_OK)
        j->record[j->records++] = *r;
    return status;
}

/* All records are of groups now. */
static void note_committed(struct journal *j, uint64_t label)
{
    for (size_t i = j->committed; i < j->records; i++)
        j->record[i].label = label;
    j->committed = j->records;
    j->end = j->used;
    j->last_label = label;
}

static int compare_records(const void *a, const void *b)
{
    const struct journal_record *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return compare_two(x->key, y->key, x->label, y->label);
}

/* The first of so many records, which are in order, that is not before this one. */
static size_t position(const struct journal *j, size_t end, const struct journal_record *sought)
{
    size_t first = 0;

    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (compare_records(&j->record[middle], sought) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Bring the committed records into order; mostly one commit is new. */
static void sort(struct journal *j)
{
    if (j->sorted < j->committed)
        forget_slots(j);
    if (j->committed - j->sorted > INSERT_MOST) {
        qsort(j->record, j->committed, sizeof *j->record, compare_records);
        j->sorted = j->committed;
    }
    for (; j->sorted < j->committed; j->sorted++) {
        const struct journal_record r = j->record[j->sorted];
        struct journal_record *to = j->record + position(j, j->sorted, &r);
        memmove(to + 1, to, (size_t)(j->record + j->sorted - to) * sizeof *to);
        *to = r;
    }
}

static uint32_t *slot_of(const struct journal *j, uint64_t key)
{
    return &j->slot[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS)];
}

const struct journal_record *journal_get(struct journal *j, int kind, uint64_t key, const struct journal_record *before)
{
    if (j->committed == 0)
        return NULL;
    for (; j->slotted < j->committed; j->slotted++) {
        struct journal_record *r = &j->record[j->slotted];
        uint32_t *slot = slot_of(j, r->key);
        r->next = *slot;
        *slot = (uint32_t)j->slotted + 1;
    }
    for (uint32_t i = before ? before->next : *slot_of(j, key); i > 0; i = j->record[i - 1].next)
        if (j->record[i - 1].key == key && j->record[i - 1].kind == kind)
            return &j->record[i - 1];
    return NULL;
}

const struct journal_record *journal_find(struct journal *j, int kind, uint64_t low, uint64_t high, size_t *count)
{
    const struct journal_record least = {.kind = (uint8_t)kind, .key = low};

    sort(j);
    size_t first = position(j, j->committed, &least), end = first;
    while (end < j->committed && j->record[end].kind == kind && j->record[end].key <= high)
        end++;
    *count = end - first;
    return j->record + first;
}

void journal_drop(struct journal *j, uint64_t label)
{
    size_t n = 0;

    for (size_t i = 0; i < j->records; i++)
        if (j->record[i].label > label)
            j->record[n++] = j->record[i];
    j->records = j->committed = n;
    j->sorted = 0;
    forget_slots(j);
    if (j->last_label <= label)
        j->last_label = 0;
}

/* ---- Reading ---- */

/* The bytes of the group that begins here, if it is whole; or 0. */
static size_t whole_group(const uint8_t *p, size_t n)
{
    if (n < JOURNAL_HEADER_SIZE || get_u32(p) != JOURNAL_MAGIC)
        return 0;
    size_t size = get_u32(p + 24);
    if (size > n - JOURNAL_HEADER_SIZE || get_u32(p + 4) != crc32c(0, p + 8, JOURNAL_HEADER_SIZE - 8 + size))
        return 0;
    return JOURNAL_HEADER_SIZE + size;
}

/* Whether a group that is not whole was whole once: somewhere behind it is one that was written after that. (One of
 * another table, or an older one, is in the bytes of a file: a copy of a journal.) */
static int was_whole(const struct journal *j, const uint8_t *p, size_t n)
{
    const uint8_t first = JOURNAL_MAGIC & 0xff, *end = p + n;

    for (const uint8_t *at = p + 1; at < end && (at = memchr(at, first, (size_t)(end - at))); at++) {
        size_t left = (size_t)(end - at);
        if (left >= JOURNAL_HEADER_SIZE && get_u64(at + 16) == j->table && get_u64(at + 8) > j->last_label &&
            (get_u32(at + 28) & JOURNAL_FLAG_SYNCED) && whole_group(at, left) > 0)
            return 1;
    }
    return 0;
}

static int is_record(const struct journal_record *r)
{
    return r->kind == JOURNAL_ENTRY ? r->size <= ENTRY_SIZE_MAX : r->kind == JOURNAL_CHUNK && r->size <= CHUNK_SIZE;
}

/* Take the records of a whole group, from *at to `end` of the bytes. */
static int take_records(struct journal *j, const char *path, size_t at, size_t end, struct error *e)
{
    const uint8_t *p = j->bytes.bytes;
    uint64_t label = get_u64(p + at + 8);
    size_t begin = at;
    int status = DELTAFS_OK, is_seal = end - at == JOURNAL_HEADER_SIZE;

    if (get_u64(p + at + 16) != j->table || (is_seal ? label < j->last_label : label <= j->last_label) ||
        get_u32(p + at + 28) > JOURNAL_FLAG_SYNCED)
        return error_damaged(e, path, at, "the commit is not of this table, or not behind the one before it");
    for (at += JOURNAL_HEADER_SIZE; at < end && status == DELTAFS_OK;) {
        if (end - at < JOURNAL_RECORD_SIZE)
            return error_damaged(e, path, begin, "the last record of the commit is malformed");
        struct journal_record r = {.kind = p[at], .size = get_u32(p + at + 1), .key = get_u64(p + at + 5)};
        at += JOURNAL_RECORD_SIZE;
        if (!is_record(&r) || r.size > end - at)
            return error_damaged(e, path, begin, "a record of the commit is malformed");
        r.at = (uint32_t)at;
        at += r.size;
        status = add_record(j, &r, e);
    }
    j->used = end;
    if (status == DELTAFS_OK)
        note_committed(j, is_seal ? j->last_label : label);
    return status;
}

static int take_groups(struct journal *j, const char *path, size_t begin, size_t n, struct error *e)
{
    const uint8_t *p = j->bytes.bytes;
    int status = DELTAFS_OK;

    for (size_t at = begin, size; at < n && status == DELTAFS_OK; at += size) {
        size = whole_group(p + at, n - at);
        if (size > 0)
            status = take_records(j, path, at, at + size, e);
        else if (was_whole(j, p + at, n - at))
            return error_damaged(e, path, at,
                                 "the checksum of a commit does not match, and other commits follow it; bring back a "
                                 "copy of the file, or keep the other commits with 'deltafs repair'");
        else
            break; /* the last one was interrupted */
    }
    return status;
}

static int take_bytes(struct journal *j, const uint8_t *bytes, size_t n, uint64_t table, struct error *e)
{
    *j = (struct journal){.table = table};
    int status = n > 0 ? buffer_reserve(&j->bytes, n, MESSAGE, e) : DELTAFS_OK;

    if (status == DELTAFS_OK && n > 0)
        memcpy(j->bytes.bytes, bytes, n);
    return status;
}

int journal_parse(struct journal *j, const char *path, const uint8_t *bytes, size_t n, uint64_t table, struct error *e)
{
    int status = take_bytes(j, bytes, n, table, e);

    return status == DELTAFS_OK ? take_groups(j, path, 0, n, e) : status;
}

int journal_salvage(struct journal *j, const char *path, const uint8_t *bytes, size_t n, uint64_t table, size_t *lost,
                    struct error *e)
{
    int status = take_bytes(j, bytes, n, table, e);

    *lost = 0;
    for (size_t at = 0, size; at < n && status == DELTAFS_OK; at += size) {
        size = whole_group(bytes + at, n - at);
        status = DELTAFS_ERR_DAMAGED;
        if (size > 0) {
            memcpy(j->bytes.bytes + j->end, bytes + at, size);
            status = take_records(j, path, j->end, j->end + size, e);
        } else {
            size = 1;
        }
        if (status == DELTAFS_ERR_DAMAGED) {
            journal_abort(j);
            *lost += size;
            status = DELTAFS_OK;
        }
    }
    return status;
}

/* Read the bytes from `begin` on, and take their groups. */
static int read_groups(struct journal *j, struct io_file *file, size_t begin, struct error *e)
{
    size_t end = (size_t)j->seen.size;
    int status = DELTAFS_OK;

    if (j->seen.size > JOURNAL_MAX)
        return error_damaged(e, file->path, JOURNAL_MAX, "a journal is not that long");
    if (end > begin)
        status = buffer_reserve(&j->bytes, end, MESSAGE, e);
    if (status == DELTAFS_OK && end > begin)
        status = io_file_read(file, begin, j->bytes.bytes + begin, end - begin, e);
    return status == DELTAFS_OK ? take_groups(j, file->path, begin, end, e) : status;
}

static int read_file(struct journal *j, struct io_file *file, struct error *e)
{
    journal_clear(j);
    int status = io_file_attributes(file, &j->seen, e);
    return status == DELTAFS_OK ? read_groups(j, file, 0, e) : status;
}

/* A writer has just truncated a group that was interrupted. */
static int has_shrunk(const struct journal *j, struct io_file *file)
{
    uint64_t now;

    return io_file_size(file, &now, error_ignored()) == DELTAFS_OK && now < j->seen.size;
}

int journal_read(struct journal *j, struct io *io, const char *path, uint64_t table, struct error *e)
{
    struct io_file file;
    unsigned waited = 0;

    *j = (struct journal){.table = table};
    int status = io_file_open_name(io, path, O_RDONLY, &file, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    do
        status = read_file(j, &file, e);
    while (status == DELTAFS_ERR_DAMAGED && (has_shrunk(j, &file) || io_file_wait(&file, &waited)));
    return io_file_finish(&file, status, e);
}

/* What is new in the file, which is open. */
static int extend(struct journal *j, struct error *e)
{
    const struct io_attributes was = j->seen;
    int status = io_file_attributes(&j->file, &j->seen, e);

    if (status == DELTAFS_OK &&
        (j->seen.inode != was.inode || j->seen.born != was.born || j->seen.size < j->end || j->seen.is_removed))
        return DELTAFS_ERR_CHANGED;
    return status == DELTAFS_OK ? read_groups(j, &j->file, j->end, e) : status;
}

int journal_extend(struct journal *j, struct io *io, const char *path, int keeps)
{
    const struct journal was = *j;
    int status = DELTAFS_OK;

    if (j->last_label == 0) /* if nothing counts that was read, the next writer may have begun a new file */
        return 0;
    if (!j->file.path)
        status = io_file_open_name(io, path, O_RDONLY, &j->file, error_ignored());
    if (status == DELTAFS_OK)
        status = extend(j, error_ignored());
    if (j->file.path && (!keeps || status != DELTAFS_OK))
        io_file_close(&j->file, error_ignored());
    if (status == DELTAFS_OK)
        return 1;
    j->seen = was.seen;
    j->last_label = was.last_label;
    j->used = was.used;
    j->end = was.end;
    j->records = was.records;
    j->committed = was.committed;
    return 0;
}

/* ---- Writing ---- */

void journal_abort(struct journal *j)
{
    j->used = j->end;
    j->records = j->committed;
    j->is_full = 0;
}

int journal_put(struct journal *j, int kind, uint64_t key, const void *bytes, size_t size, struct error *e)
{
    size_t begin = j->used > j->end ? j->used : j->end + JOURNAL_HEADER_SIZE, at = begin + JOURNAL_RECORD_SIZE;

    j->is_full |= at + size - j->end > JOURNAL_GROUP_MAX;
    if (j->is_full)
        return DELTAFS_OK;
    int status = buffer_reserve(&j->bytes, at + size, MESSAGE, e);
    if (status == DELTAFS_OK)
        status = add_record(
            j, &(struct journal_record){.key = key, .at = (uint32_t)at, .size = (uint32_t)size, .kind = (uint8_t)kind},
            e);
    if (status != DELTAFS_OK)
        return status;
    uint8_t *p = j->bytes.bytes + begin;
    p[0] = (uint8_t)kind;
    put_u32(p + 1, (uint32_t)size);
    put_u64(p + 5, key);
    memcpy(p + JOURNAL_RECORD_SIZE, bytes, size);
    j->used = at + size;
    return DELTAFS_OK;
}

/* The header of the group that is not committed. */
static void seal_group(struct journal *j, uint64_t label, int sync)
{
    uint8_t *p = j->bytes.bytes + j->end;
    size_t size = j->used - j->end;

    put_u32(p, JOURNAL_MAGIC);
    put_u64(p + 8, label);
    put_u64(p + 16, j->table);
    put_u32(p + 24, (uint32_t)(size - JOURNAL_HEADER_SIZE));
    put_u32(p + 28, sync ? JOURNAL_FLAG_SYNCED : 0);
    put_u32(p + 4, crc32c(0, p + 8, size - 8));
}

int journal_sync(struct journal *j, struct error *e)
{
    int status = j->file.path ? io_file_sync(&j->file, e) : DELTAFS_OK;

    return j->file.path && status == DELTAFS_OK ? io_sync_parent(j->file.io, j->file.path, e) : status;
}

/* Create the file; or go on with one that was read, behind its last whole group. With `sync`, the next group says that
 * those are durable. */
static int open_file(struct journal *j, struct io *io, const char *path, int sync, struct error *e)
{
    int is_new = j->end == 0, status;

    status = io_file_open(io, path, is_new ? O_CREAT | O_EXCL | O_WRONLY : O_WRONLY, &j->file, e);
    if (status != DELTAFS_OK || is_new)
        return status;
    status = io_file_truncate(&j->file, j->end, e);
    if (status == DELTAFS_OK && sync)
        status = journal_sync(j, e);
    if (status != DELTAFS_OK)
        io_file_close(&j->file, error_ignored());
    return status;
}

int journal_commit(struct journal *j, struct io *io, const char *path, uint64_t label, int sync, struct error *e)
{
    int is_new = j->end == 0, status = DELTAFS_OK;

    if (j->used == j->end)
        return DELTAFS_OK;
    if (!j->file.path)
        status = open_file(j, io, path, sync, e);
    if (status != DELTAFS_OK)
        return status;
    seal_group(j, label, sync);
    status = io_file_write(&j->file, j->end, j->bytes.bytes + j->end, j->used - j->end, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&j->file, e);
    if (status == DELTAFS_OK && sync && is_new)
        status = io_sync_parent(io, path, e);
    if (status == DELTAFS_OK)
        note_committed(j, label);
    else if (io_file_truncate(&j->file, j->end, error_ignored()) == DELTAFS_OK && sync)
        io_file_sync(&j->file, error_ignored());
    return status;
}

int journal_seal(struct journal *j, struct error *e)
{
    journal_abort(j);
    if (!j->file.path || j->end == 0)
        return DELTAFS_OK;
    int status = buffer_reserve(&j->bytes, j->end + JOURNAL_HEADER_SIZE, MESSAGE, e);
    if (status != DELTAFS_OK)
        return status;
    j->used = j->end + JOURNAL_HEADER_SIZE;
    seal_group(j, j->last_label, 1);
    status = io_file_write(&j->file, j->end, j->bytes.bytes + j->end, JOURNAL_HEADER_SIZE, e);
    if (status == DELTAFS_OK)
        note_committed(j, j->last_label);
    return status;
}

int journal_close(struct journal *j, struct error *e)
{
    int status = j->file.path ? io_file_close(&j->file, e) : DELTAFS_OK;

    journal_fini(j);
    return status;
}

int journal_remove(struct journal *j, struct io *io, const char *path, struct error *e)
{
    int status = j->end > 0 ? io_unlink(io, path, e) : DELTAFS_OK;

    if (j->file.path)
        status = error_first(status, io_file_close(&j->file, error_after(status, e)));
    journal_clear(j);
    return status;
}
