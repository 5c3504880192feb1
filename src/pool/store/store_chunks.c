#include <endian.h>
#include <stddef.h>
#include <string.h>
#include "base/crc32c.h"
#include "pool/store/store_parts.h"

static void chunk_key(uint64_t id, uint64_t number, uint8_t key[STORE_CHUNK_KEY])
{
    const uint64_t both[2] = {htobe64(id), htobe64(number)};

    memcpy(key, both, sizeof both);
}

/* Checksums of a record that is shorter are 0. */
static void chunk_take(const MDB_val *value, struct store_chunk *c)
{
    memset(c, 0, sizeof *c);
    memcpy(c, value->mv_data, value->mv_size < sizeof *c ? value->mv_size : sizeof *c);
}

static int chunk_get(struct pool_store *s, const uint8_t key[STORE_CHUNK_KEY], struct store_chunk *c, struct error *e)
{
    MDB_val value;
    int status = store_get(s, STORE_CHUNKS, key, STORE_CHUNK_KEY, &value, e);

    if (status == DELTAFS_OK)
        chunk_take(&value, c);
    return status;
}

static int chunk_put(struct pool_store *s, const uint8_t key[STORE_CHUNK_KEY], const struct store_chunk *c, int is_new,
                     struct error *e)
{
    size_t size = offsetof(struct store_chunk, crc) + c->count * sizeof c->crc[0];
    MDB_val old;

    return store_put(s, STORE_CHUNKS, key, STORE_CHUNK_KEY, c, size, is_new, &old, e);
}

static uint32_t block_crc(const uint8_t *bytes)
{
    uint32_t crc = crc32c(0, bytes, POOL_BLOCK);

    return crc != 0 ? crc : 1;
}

static uint32_t chunk_blocks(const struct store_chunk *c)
{
    uint32_t blocks = 0;

    for (uint32_t i = 0; i < c->count; i++)
        blocks += c->crc[i] != 0;
    return blocks;
}

/* Read whole blocks, and check them. */
static int blocks_read(struct pool_store *s, const struct store_chunk *c, uint32_t first, uint32_t count, uint8_t *out,
                       struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0, n; i < count && status == DELTAFS_OK; i += n) {
        uint8_t *to = out + (size_t)i * POOL_BLOCK;
        int is_there = c->crc[first + i] != 0;
        for (n = 1; i + n < count && (c->crc[first + i + n] != 0) == is_there;)
            n++;
        if (!is_there) {
            memset(to, 0, (size_t)n * POOL_BLOCK);
            continue;
        }
        status = store_place_read(s, c->place, first + i, to, (size_t)n * POOL_BLOCK, e);
        for (uint32_t k = 0; k < n && status == DELTAFS_OK; k++)
            if (block_crc(to + (size_t)k * POOL_BLOCK) != c->crc[first + i + k])
                status = error_damaged(e, s->folder, (uint64_t)c->place * POOL_CHUNK + (first + i + k) * POOL_BLOCK,
                                       "a block does not match its checksum");
    }
    return status;
}

int pool_store_read(struct pool_store *s, uint64_t id, uint64_t offset, void *out, size_t n, struct error *e)
{
    uint8_t key[STORE_CHUNK_KEY];
    struct store_chunk c;
    uint32_t at = (uint32_t)(offset % POOL_CHUNK), first = at / POOL_BLOCK,
             count = (uint32_t)((at + n + POOL_BLOCK - 1) / POOL_BLOCK) - first;

    chunk_key(id, offset / POOL_CHUNK, key);
    int status = chunk_get(s, key, &c, e);
    if (status == DELTAFS_ERR_NOT_FOUND) {
        memset(out, 0, n);
        return DELTAFS_OK;
    }
    if (status != DELTAFS_OK)
        return status;
    int is_whole = at % POOL_BLOCK == 0 && n % POOL_BLOCK == 0;
    uint8_t *to = is_whole ? out : s->scratch;
    status = blocks_read(s, &c, first, count, to, e);
    if (status == DELTAFS_OK && !is_whole)
        memcpy(out, to + at % POOL_BLOCK, n);
    return status;
}

/* Whole blocks that have the bytes, with what is stored before and behind them. */
static int blocks_fill(struct pool_store *s, const struct store_chunk *c, uint32_t at, const void *bytes, size_t n,
                       struct error *e)
{
    uint32_t first = at / POOL_BLOCK, before = at % POOL_BLOCK, last = (uint32_t)((at + n - 1) / POOL_BLOCK);
    int status = DELTAFS_OK;

    if (before > 0 || n < POOL_BLOCK)
        status = blocks_read(s, c, first, 1, s->scratch, e);
    if (status == DELTAFS_OK && last > first && (at + n) % POOL_BLOCK > 0)
        status = blocks_read(s, c, last, 1, s->scratch + (size_t)(last - first) * POOL_BLOCK, e);
    if (status == DELTAFS_OK)
        memcpy(s->scratch + before, bytes, n);
    return status;
}

/* A write has failed: blocks have their old bytes, or the new ones. */
static void blocks_accept(struct pool_store *s, struct store_chunk *c, const struct store_chunk *after, uint32_t first,
                          uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        if (c->crc[i] != 0 && store_place_read(s, c->place, i, s->scratch, POOL_BLOCK, error_ignored()) == DELTAFS_OK &&
            block_crc(s->scratch) == after->crc[i])
            c->crc[i] = after->crc[i];
}

static void blocks_written(struct pool_store *s, struct store_chunk *c, uint32_t first, uint32_t count,
                           const uint8_t *bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        s->count_blocks += c->crc[first + i] == 0;
        c->crc[first + i] = block_crc(bytes + (size_t)i * POOL_BLOCK);
    }
    if (c->count < first + count)
        c->count = first + count;
}

/* Put the record, and write `count` whole blocks. If there is no room for the record, nothing has changed. */
static int blocks_write(struct pool_store *s, const uint8_t key[STORE_CHUNK_KEY], struct store_chunk *c, uint32_t first,
                        uint32_t count, const uint8_t *bytes, int is_new, struct error *e)
{
    struct store_chunk before = *c;
    uint64_t blocks = s->count_blocks;

    blocks_written(s, c, first, count, bytes);
    int status = chunk_put(s, key, c, is_new, e), has_record = status == DELTAFS_OK;
    if (has_record)
        status = store_place_write(s, c->place, first, bytes, (size_t)count * POOL_BLOCK, e);
    if (status == DELTAFS_OK)
        return status;
    s->count_blocks = blocks;
    if (has_record && !is_new) {
        blocks_accept(s, &before, c, first, count);
        chunk_put(s, key, &before, 0, error_ignored());
    } else if (is_new &&
               (!has_record || store_delete(s, STORE_CHUNKS, key, STORE_CHUNK_KEY, error_ignored()) == DELTAFS_OK)) {
        store_place_give(s, c->place, CHUNK_BLOCKS, error_ignored());
    }
    return status;
}

int pool_store_write(struct pool_store *s, uint64_t id, uint64_t offset, const void *bytes, size_t n, struct error *e)
{
    uint8_t key[STORE_CHUNK_KEY];
    struct store_chunk c;
    uint32_t at = (uint32_t)(offset % POOL_CHUNK), first = at / POOL_BLOCK,
             count = (uint32_t)((at + n + POOL_BLOCK - 1) / POOL_BLOCK) - first;

    chunk_key(id, offset / POOL_CHUNK, key);
    int status = chunk_get(s, key, &c, e), is_new = status == DELTAFS_ERR_NOT_FOUND;
    if (is_new) {
        memset(&c, 0, sizeof c);
        status = store_place_take(s, &c.place, e);
    }
    if (status != DELTAFS_OK)
        return status;
    if (at % POOL_BLOCK > 0 || n % POOL_BLOCK > 0) {
        status = blocks_fill(s, &c, at, bytes, n, e);
        bytes = s->scratch;
    }
    if (status != DELTAFS_OK) {
        if (is_new)
            store_place_give(s, c.place, 0, error_ignored());
        return status;
    }
    return blocks_write(s, key, &c, first, count, bytes, is_new, e);
}

/* Remove the blocks behind `keep` bytes of a chunk, and zero what is behind them in the last one. */
static int chunk_cut(struct pool_store *s, const uint8_t key[STORE_CHUNK_KEY], uint32_t keep, struct error *e)
{
    struct store_chunk c;
    int status = chunk_get(s, key, &c, e);

    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    uint32_t left = (keep + POOL_BLOCK - 1) / POOL_BLOCK, last = keep / POOL_BLOCK, tail = keep % POOL_BLOCK;
    for (uint32_t i = left; i < c.count; i++) {
        s->count_blocks -= c.crc[i] != 0;
        c.crc[i] = 0;
    }
    c.count = c.count < left ? c.count : left;
    if (tail == 0 || c.crc[last] == 0)
        return chunk_put(s, key, &c, 0, e);
    status = blocks_read(s, &c, last, 1, s->scratch, e);
    if (status != DELTAFS_OK)
        return status;
    memset(s->scratch + tail, 0, POOL_BLOCK - tail);
    return blocks_write(s, key, &c, last, 1, s->scratch, 0, e);
}

/* The first chunk of the file from `number` on; DELTAFS_ERR_NOT_FOUND: there is none. */
static int chunk_next(struct pool_store *s, uint64_t id, uint64_t number, uint8_t key[STORE_CHUNK_KEY],
                      struct store_chunk *c, struct error *e)
{
    MDB_val k = {.mv_data = key, .mv_size = STORE_CHUNK_KEY}, v;
    MDB_cursor *cursor;

    chunk_key(id, number, key);
    int status = store_cursor(s, STORE_CHUNKS, &cursor, e);
    if (status != DELTAFS_OK)
        return status;
    int code = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    if (code == 0 && memcmp(k.mv_data, key, sizeof id) == 0) {
        memcpy(key, k.mv_data, STORE_CHUNK_KEY);
        chunk_take(&v, c);
    } else {
        status = code == 0 || code == MDB_NOTFOUND ? DELTAFS_ERR_NOT_FOUND : store_fail(s, code, e);
    }
    if (code == 0 || code == MDB_NOTFOUND)
        mdb_cursor_close(cursor);
    return status;
}

int pool_store_cut(struct pool_store *s, uint64_t id, uint64_t size, int *is_more, struct error *e)
{
    uint8_t key[STORE_CHUNK_KEY];
    struct store_chunk c;
    uint64_t number = size / POOL_CHUNK;
    int n, status = DELTAFS_OK;

    if (size % POOL_CHUNK > 0) {
        chunk_key(id, number++, key);
        status = chunk_cut(s, key, (uint32_t)(size % POOL_CHUNK), e);
    }
    for (n = 0; status == DELTAFS_OK && n < POOL_CUT_CHUNKS; n++) {
        status = chunk_next(s, id, number, key, &c, e);
        if (status == DELTAFS_OK)
            status = store_delete(s, STORE_CHUNKS, key, sizeof key, e);
        if (status == DELTAFS_OK) {
            uint32_t blocks = chunk_blocks(&c);
            s->count_blocks -= blocks;
            status = store_place_give(s, c.place, blocks, e);
        }
    }
    if (is_more)
        *is_more = status == DELTAFS_OK && n == POOL_CUT_CHUNKS;
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}
