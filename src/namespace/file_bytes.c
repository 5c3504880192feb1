/* The chunks of an open file. A few of them are in memory; the one that was not used for the longest time makes room
 * for another. A chunk that was changed is stored under a new key, so what has been committed never changes. */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "namespace/file_bytes.h"
#include "namespace/shared.h"
#include "namespace/table_data.h"

void file_bytes_fini(struct file_bytes *b)
{
    for (size_t i = 0; b->chunk && i < CHUNKS_MOST; i++)
        buffer_fini(&b->chunk[i].bytes);
    free(b->chunk);
    free(b->place);
}

/* ---- Stored chunks ---- */

/* The bytes of the file that belong to a chunk. */
static size_t chunk_room(uint64_t size, uint64_t number)
{
    uint64_t left = size - number * CHUNK_SIZE;

    return left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
}

int ns_read_own_chunk(deltafs_namespace *ns, const struct entry_id *place, size_t room, uint8_t *to, size_t *got)
{
    int is_pending = place->number > ns->own.data_label;
    const uint8_t *recent = is_pending ? recent_find(&ns->recent, place->number, got) : NULL;

    if (recent && *got <= room) {
        memcpy(to, recent, *got);
        return DELTAFS_OK;
    }
    int status = is_pending && !journal_get(&ns->own.journal, JOURNAL_CHUNK, place->number, NULL) ? ns_commit_data(ns)
                                                                                                  : DELTAFS_OK;
    return status == DELTAFS_OK ? tables_read_chunk(&ns->tables, place, room, to, got, &ns->error) : status;
}

/* Read what is stored at a place, at most `room` bytes. */
static int read_place(deltafs_namespace *ns, const struct entry_id *place, size_t room, uint8_t *to, size_t *got)
{
    if (place->table == ns->own.number)
        return ns_read_own_chunk(ns, place, room, to, got);
    return ns->shared ? shared_read(ns, place, room, to, got)
                      : tables_read_chunk(&ns->tables, place, room, to, got, &ns->error);
}

/* Store a chunk under the next key; the keys of several that are stored together follow each other. */
static int store_bytes(deltafs_namespace *ns, uint64_t key, const void *bytes, size_t size)
{
    int status = own_table_put_chunk(&ns->own, key, bytes, size, &ns->error);

    return status == DELTAFS_OK ? recent_add(&ns->recent, key, bytes, size, &ns->error) : status;
}

static int begin_store(deltafs_namespace *ns)
{
    if (ns->broken.status == DELTAFS_OK)
        return own_table_open_data(&ns->own, &ns->last_stamp, &ns->error);
    ns->error = ns->broken;
    return ns->error.status;
}

static int store_chunk(deltafs_namespace *ns, struct file_bytes *b, struct file_chunk *c)
{
    struct entry_id place = {0, 0};
    int status = begin_store(ns);

    if (status == DELTAFS_OK && c->size > 0) {
        place = (struct entry_id){ns->own.number, ns_stamps(ns, 1)};
        status = store_bytes(ns, place.number, c->bytes.bytes, c->size);
    }
    if (status != DELTAFS_OK)
        return status;
    b->place[c->number] = place;
    c->is_dirty = 0;
    return DELTAFS_OK;
}

/* ---- Places ---- */

static int set_places(deltafs_namespace *ns, struct file_bytes *b, uint64_t size)
{
    size_t count = (size_t)((size + CHUNK_SIZE - 1) / CHUNK_SIZE);
    int status = DELTAFS_OK;

    while (b->places < count && status == DELTAFS_OK) {
        status =
            memory_extend(NULL, &b->place, b->places, &b->place_room, sizeof *b->place, "places of a file", &ns->error);
        if (status == DELTAFS_OK)
            b->place[b->places++] = (struct entry_id){0, 0};
    }
    if (status == DELTAFS_OK)
        b->places = count;
    return status;
}

/* The bytes of part `k` of the list of places. */
static size_t list_part(const struct file_bytes *b, size_t k)
{
    return chunk_room((uint64_t)b->places * PLACE_SIZE, k);
}

static size_t list_parts(const struct file_bytes *b)
{
    return (b->places * PLACE_SIZE + CHUNK_SIZE - 1) / CHUNK_SIZE;
}

static int read_list(deltafs_namespace *ns, struct file_bytes *b, const struct entry_id *data)
{
    struct entry_id *place = b->place;
    uint8_t *bytes = malloc(list_part(b, 0));
    int status = bytes ? DELTAFS_OK : error_no_memory(&ns->error, list_part(b, 0), "places of a file");

    for (size_t k = 0; k < list_parts(b) && status == DELTAFS_OK; k++) {
        struct entry_id at = {data->table, data->number + k};
        size_t size = list_part(b, k), got = 0;
        status = read_place(ns, &at, size, bytes, &got);
        if (status == DELTAFS_OK && got != size)
            status = error_set(&ns->error, DELTAFS_ERR_DAMAGED,
                               "%s: the list of a file's chunks, with the key %llu, is incomplete", ns->path,
                               (unsigned long long)at.number);
        for (size_t i = 0; i < size && status == DELTAFS_OK; i += PLACE_SIZE, place++)
            *place = (struct entry_id){get_u64(bytes + i), get_u64(bytes + i + 8)};
    }
    free(bytes);
    return status;
}

static int load_places(deltafs_namespace *ns, struct file_bytes *b, const struct inode *inode)
{
    if (b->has_places)
        return DELTAFS_OK;
    int status = set_places(ns, b, inode->size);
    if (status == DELTAFS_OK && b->places == 1)
        b->place[0] = inode->data;
    if (status == DELTAFS_OK && b->places > 1)
        status = read_list(ns, b, &inode->data);
    b->has_places = status == DELTAFS_OK;
    return status;
}

static int store_list(deltafs_namespace *ns, const struct file_bytes *b, struct inode *inode)
{
    size_t parts = list_parts(b);
    uint8_t *bytes = malloc(list_part(b, 0));
    const struct entry_id *place = b->place;
    int status = bytes ? begin_store(ns) : error_no_memory(&ns->error, list_part(b, 0), "places of a file");

    if (status == DELTAFS_OK)
        inode->data = (struct entry_id){ns->own.number, ns_stamps(ns, parts)};
    for (size_t k = 0; k < parts && status == DELTAFS_OK; k++) {
        size_t size = list_part(b, k);
        for (size_t i = 0; i < size; i += PLACE_SIZE, place++) {
            put_u64(bytes + i, place->table);
            put_u64(bytes + i + 8, place->number);
        }
        status = store_bytes(ns, inode->data.number + k, bytes, size);
    }
    free(bytes);
    return status;
}

int file_bytes_store(deltafs_namespace *ns, struct file_bytes *b, struct inode *inode)
{
    int status = load_places(ns, b, inode);

    for (size_t i = 0; i < b->chunks && status == DELTAFS_OK; i++)
        if (b->chunk[i].is_dirty)
            status = store_chunk(ns, b, &b->chunk[i]);
    if (status != DELTAFS_OK || b->places > 1)
        return status == DELTAFS_OK ? store_list(ns, b, inode) : status;
    inode->data = b->places == 1 ? b->place[0] : (struct entry_id){0, 0};
    return DELTAFS_OK;
}

/* ---- Chunks in memory ---- */

static struct file_chunk *find_chunk(struct file_bytes *b, uint64_t number)
{
    for (size_t i = 0; i < b->chunks; i++)
        if (b->chunk[i].number == number)
            return &b->chunk[i];
    return NULL;
}

/* A chunk that another one may replace. */
static int free_chunk(deltafs_namespace *ns, struct file_bytes *b, struct file_chunk **out)
{
    if (!b->chunk)
        b->chunk = calloc(CHUNKS_MOST, sizeof *b->chunk);
    if (!b->chunk)
        return error_no_memory(&ns->error, CHUNKS_MOST * sizeof *b->chunk, "a file");
    struct file_chunk *oldest = b->chunk;
    if (b->chunks < CHUNKS_MOST) {
        *out = &b->chunk[b->chunks++];
        return DELTAFS_OK;
    }
    for (struct file_chunk *c = b->chunk + 1; c < b->chunk + CHUNKS_MOST; c++)
        oldest = c->used < oldest->used ? c : oldest;
    *out = oldest;
    return oldest->is_dirty ? store_chunk(ns, b, oldest) : DELTAFS_OK;
}

/* Remove a chunk from memory; the last one takes its place. */
static void drop_chunk(struct file_bytes *b, struct file_chunk *c)
{
    struct file_chunk was = *c;

    *c = b->chunk[--b->chunks];
    b->chunk[b->chunks] = (struct file_chunk){.bytes = was.bytes};
}

/* Have a chunk in memory; with `is_replaced`, none of its bytes matters. */
static int get_chunk(deltafs_namespace *ns, struct file_bytes *b, uint64_t size, uint64_t number, int is_replaced,
                     struct file_chunk **out)
{
    struct file_chunk *c = find_chunk(b, number);
    int status = DELTAFS_OK;

    if (!c) {
        status = free_chunk(ns, b, &c);
        if (status != DELTAFS_OK)
            return status;
        c->number = number;
        c->size = 0;
        c->is_dirty = 0;
        if (!is_replaced && b->place[number].table != 0) {
            status = buffer_reserve(&c->bytes, chunk_room(size, number), "a file", &ns->error);
            if (status == DELTAFS_OK)
                status = read_place(ns, &b->place[number], chunk_room(size, number), c->bytes.bytes, &c->size);
        }
    }
    if (status != DELTAFS_OK) {
        drop_chunk(b, c);
        return status;
    }
    c->used = ++b->clock;
    *out = c;
    return DELTAFS_OK;
}

/* ---- Bytes ---- */

/* The bytes from `offset` on that are in its chunk, of `size`. */
static size_t within_chunk(uint64_t offset, size_t size)
{
    size_t room = CHUNK_SIZE - (size_t)(offset % CHUNK_SIZE);

    return room < size ? room : size;
}

/* Read all bytes of a file that has one chunk, which is not in memory. */
static int read_only_chunk(deltafs_namespace *ns, const struct file_bytes *b, const struct inode *inode, uint8_t *to)
{
    const struct entry_id *place = b->has_places ? b->place : &inode->data;
    size_t size = (size_t)inode->size, got = 0;
    int status = place->table != 0 ? read_place(ns, place, size, to, &got) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        memset(to + got, 0, size - got);
    return status;
}

int file_bytes_read(deltafs_namespace *ns, struct file_bytes *b, const struct inode *inode, uint64_t offset,
                    uint8_t *to, size_t size)
{
    struct file_chunk *c;

    if (offset == 0 && size == inode->size && size <= CHUNK_SIZE && b->chunks == 0)
        return read_only_chunk(ns, b, inode, to);
    int status = load_places(ns, b, inode);

    for (size_t n; size > 0 && status == DELTAFS_OK; size -= n, offset += n, to += n) {
        size_t at = (size_t)(offset % CHUNK_SIZE);
        n = within_chunk(offset, size);
        status = get_chunk(ns, b, inode->size, offset / CHUNK_SIZE, 0, &c);
        if (status != DELTAFS_OK)
            break;
        size_t stored = c->size > at ? c->size - at : 0;
        if (stored > n)
            stored = n;
        if (stored > 0)
            memcpy(to, c->bytes.bytes + at, stored);
        memset(to + stored, 0, n - stored);
    }
    return status;
}

static int write_chunk(deltafs_namespace *ns, struct file_bytes *b, uint64_t size, uint64_t offset, const uint8_t *from,
                       size_t n)
{
    uint64_t number = offset / CHUNK_SIZE;
    size_t at = (size_t)(offset % CHUNK_SIZE);
    struct file_chunk *c;
    int status = get_chunk(ns, b, size, number, at == 0 && n >= chunk_room(size, number), &c);

    if (status != DELTAFS_OK)
        return status;
    status = buffer_reserve(&c->bytes, at + n, "a file", &ns->error);
    if (status != DELTAFS_OK) {
        if (!c->is_dirty) /* it may lack what is stored, since all was to be replaced */
            drop_chunk(b, c);
        return status;
    }
    if (at > c->size)
        memset(c->bytes.bytes + c->size, 0, at - c->size);
    memcpy(c->bytes.bytes + at, from, n);
    c->size = at + n > c->size ? at + n : c->size;
    c->is_dirty = 1;
    return DELTAFS_OK;
}

/* The file is to have so many bytes. */
static int check_size(deltafs_namespace *ns, uint64_t size)
{
    return size <= FILE_MAX ? DELTAFS_OK
                            : error_set(&ns->error, DELTAFS_ERR_TOO_LARGE, "%s: a file can have at most %llu bytes",
                                        ns->path, (unsigned long long)FILE_MAX);
}

int file_bytes_write(deltafs_namespace *ns, struct file_bytes *b, struct inode *inode, uint64_t offset,
                     const uint8_t *from, size_t size)
{
    uint64_t end = offset <= FILE_MAX && size <= FILE_MAX ? offset + size : UINT64_MAX;
    int status = check_size(ns, end);

    if (status == DELTAFS_OK)
        status = load_places(ns, b, inode);
    if (status != DELTAFS_OK)
        return status;
    end = end > inode->size ? end : inode->size;
    status = set_places(ns, b, end);
    for (size_t n; size > 0 && status == DELTAFS_OK; size -= n, offset += n, from += n) {
        n = within_chunk(offset, size);
        status = write_chunk(ns, b, end, offset, from, n);
        if (status == DELTAFS_OK && offset + n > inode->size)
            inode->size = offset + n;
    }
    if (status != DELTAFS_OK)
        set_places(ns, b, inode->size);
    return status;
}

/* Forget all chunks from `size` bytes on, and the bytes of the last one that are behind them: they are zero if the file
 * grows again. */
static int cut(deltafs_namespace *ns, struct file_bytes *b, const struct inode *inode, uint64_t size)
{
    uint64_t count = (size + CHUNK_SIZE - 1) / CHUNK_SIZE;
    struct file_chunk *c;
    int status = size % CHUNK_SIZE > 0 ? get_chunk(ns, b, inode->size, count - 1, 0, &c) : DELTAFS_OK;

    if (status != DELTAFS_OK)
        return status;
    if (size % CHUNK_SIZE > 0 && c->size > size % CHUNK_SIZE) {
        c->size = (size_t)(size % CHUNK_SIZE);
        c->is_dirty = 1;
    }
    for (size_t i = b->chunks; i > 0; i--)
        if (b->chunk[i - 1].number >= count)
            drop_chunk(b, &b->chunk[i - 1]);
    return DELTAFS_OK;
}

int file_bytes_resize(deltafs_namespace *ns, struct file_bytes *b, struct inode *inode, uint64_t size)
{
    int status = check_size(ns, size);

    b->has_places |= size == 0;
    if (status == DELTAFS_OK)
        status = load_places(ns, b, inode);
    if (status == DELTAFS_OK && size < inode->size)
        status = cut(ns, b, inode, size);
    if (status == DELTAFS_OK)
        status = set_places(ns, b, size);
    if (status == DELTAFS_OK)
        inode->size = size;
    return status;
}
