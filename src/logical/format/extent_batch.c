/* Batches of extents as bytes. The header has a checksum of its own and stores the batch's length: so a truncated batch
 * differs from a damaged one. */
#include <inttypes.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "logical/format/extents.h"
#include "io/log.h"
#include "logical/format/logical_format.h"

/* Where the entry before ended; the next one's numbers count from there. */
struct batch_place {
    uint64_t offset, position;
};

static void place_move(struct batch_place *at, const struct extent *x)
{
    at->offset = extent_end(x);
    at->position = extent_position_end(x);
}

/* Numbers modulo 2^64: small ones of either sign become small. */
static uint64_t zigzag(uint64_t v)
{
    return v << 1 ^ (v >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t v)
{
    return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

/* ---- Encoding ---- */

static uint8_t *put_entry(uint8_t *p, const struct extent *x, struct batch_place *at)
{
    int is_run = x->count > 1, has_gaps = is_run && x->position_stride != x->size,
        is_moved = x->position != at->position;

    *p++ = (uint8_t)((unsigned)x->kind | (is_run ? EXTENT_TAG_RUN : 0) | (has_gaps ? EXTENT_TAG_GAPS : 0) |
                     (is_moved ? EXTENT_TAG_MOVED : 0));
    p = put_varint(p, zigzag(x->offset - at->offset));
    if (x->kind == EXTENT_DATA)
        p = put_varint(p, x->size);
    if (is_run) {
        p = put_varint(p, x->count);
        p = put_varint(p, x->stride - x->size);
    }
    if (has_gaps)
        p = put_varint(p, x->position_stride - x->size);
    if (is_moved)
        p = put_varint(p, zigzag(x->position - at->position));
    place_move(at, x);
    return p;
}

int extent_list_encode(struct extent_list *l, uint32_t seed, uint32_t session, uint32_t writer, uint64_t order,
                       uint64_t data_end, int is_last, struct buffer *out, size_t *n, struct error *e)
{
    struct batch_place at = {0, 0};
    size_t used = *n + BATCH_HEADER_SIZE;

    extent_list_settle(l);
    if (order > EXTENT_MAX || data_end > EXTENT_MAX || l->count > BATCH_ENTRIES_MAX)
        return error_set(e, DELTAFS_ERR_INVALID,
                         "the order %" PRIu64 ", the end %" PRIu64 " or the number of entries %zu is too great", order,
                         data_end, l->count);
    int status = buffer_reserve(out, used, "a batch of extents", e);
    for (size_t i = 0; i < l->count && status == DELTAFS_OK; i++) {
        status = buffer_reserve(out, used + EXTENT_ENTRY_MAX, "a batch of extents", e);
        if (status == DELTAFS_OK)
            used = (size_t)(put_entry(out->bytes + used, &l->extent[i], &at) - out->bytes);
    }
    if (status != DELTAFS_OK)
        return status;
    uint8_t *h = out->bytes + *n;
    memset(h, 0, BATCH_HEADER_SIZE);
    h[4] = FORMAT_EXTENTS;
    h[5] = is_last ? BATCH_FLAG_LAST : 0;
    put_u32(h + 8, (uint32_t)(used - *n));
    put_u32(h + 12, session);
    put_u32(h + 16, writer);
    put_u32(h + 20, (uint32_t)l->count);
    put_u64(h + 24, order);
    put_u64(h + 32, data_end);
    put_u32(h + 40, crc32c(seed, h + BATCH_HEADER_SIZE, used - *n - BATCH_HEADER_SIZE));
    log_seal(seed, h, BATCH_HEADER_SIZE);
    *n = used;
    return DELTAFS_OK;
}

/* ---- Decoding ---- */

/* The next entry; NULL if it is none. All but its order, session and writer. */
static const uint8_t *get_entry(const uint8_t *p, const uint8_t *end, struct batch_place *at, struct extent *x)
{
    uint64_t v;

    if (p == end || *p & ~EXTENT_TAGS_KNOWN || (*p & EXTENT_TAG_KIND) > EXTENT_EXTEND)
        return NULL;
    unsigned tag = *p++;
    x->kind = (enum extent_kind)(tag & EXTENT_TAG_KIND);
    x->size = x->stride = x->position_stride = 0;
    x->count = 1;
    x->position = at->position;
    if ((x->kind != EXTENT_DATA && tag & EXTENT_TAG_RUN) || (tag & EXTENT_TAG_GAPS && !(tag & EXTENT_TAG_RUN)))
        return NULL;
    if (!(p = get_varint(p, end, &v)))
        return NULL;
    x->offset = at->offset + unzigzag(v);
    if (x->kind == EXTENT_DATA && !(p = get_varint(p, end, &x->size)))
        return NULL;
    if (tag & EXTENT_TAG_RUN) {
        if (!(p = get_varint(p, end, &x->count)) || x->count < 2 || !(p = get_varint(p, end, &v)) || v > EXTENT_MAX ||
            x->size > EXTENT_MAX)
            return NULL;
        x->stride = x->size + v;
        x->position_stride = x->size;
    }
    if (tag & EXTENT_TAG_GAPS) {
        if (!(p = get_varint(p, end, &v)) || v > EXTENT_MAX)
            return NULL;
        x->position_stride += v;
    }
    if (tag & EXTENT_TAG_MOVED) {
        if (!(p = get_varint(p, end, &v)))
            return NULL;
        x->position += unzigzag(v);
    }
    return p;
}

static int decode_entries(const uint8_t *batch, size_t length, const char *path, uint64_t offset, extent_fn *fn,
                          void *arg, struct error *e)
{
    const uint8_t *p = batch + BATCH_HEADER_SIZE, *end = batch + length;
    uint32_t entries = get_u32(batch + 20);
    uint64_t data_end = get_u64(batch + 32);
    struct batch_place at = {0, 0};
    struct extent x = {.session = get_u32(batch + 12), .writer = get_u32(batch + 16), .order = get_u64(batch + 24)};

    for (uint32_t i = 0; i < entries; i++) {
        const uint8_t *begin = p;
        p = get_entry(p, end, &at, &x);
        if (!p || !extent_is_valid(&x) || extent_position_end(&x) > data_end)
            return error_damaged(e, path, offset + (uint64_t)(begin - batch), "entry %" PRIu32 " is impossible", i);
        place_move(&at, &x);
        int status = fn ? fn(&x, arg, e) : DELTAFS_OK;
        if (status != DELTAFS_OK)
            return status;
    }
    if (p != end)
        return error_damaged(e, path, offset + (uint64_t)(p - batch), "there is more than the batch's entries");
    return DELTAFS_OK;
}

static int is_zero(const uint8_t *bytes, size_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Whether a sector of the `n` bytes at `offset` was never written: so a crash leaves what was not synced, while what is
 * damaged is something else than zeros. Of the first sector there may be what was written before; of the last one
 * nothing that comes behind is there either, of the `available` bytes in all. */
static int has_lost_sector(const uint8_t *bytes, uint64_t offset, size_t n, size_t available)
{
    for (size_t at = 0, part; at < n; at += part) {
        part = FORMAT_SECTOR - (size_t)((offset + at) % FORMAT_SECTOR);
        part = part < available - at ? part : available - at;
        if (is_zero(bytes + at, part))
            return 1;
    }
    return 0;
}

/* The header of a batch that begins at `h`, of which `n` bytes are there. *length: 0 if it is incomplete. */
static int check_header(const uint8_t *h, size_t n, uint32_t seed, const char *path, uint64_t offset, size_t *length,
                        struct error *e)
{
    *length = 0;
    if (n < BATCH_HEADER_SIZE || is_zero(h, n))
        return DELTAFS_OK;
    if (!log_is_sealed(seed, h, BATCH_HEADER_SIZE))
        return has_lost_sector(h, offset, BATCH_HEADER_SIZE, n)
                   ? DELTAFS_OK
                   : error_damaged(e, path, offset, "a batch's header does not match its checksum");
    if (h[4] != FORMAT_EXTENTS || h[5] & ~BATCH_FLAG_LAST || get_u16(h + 6) != 0)
        return error_damaged(e, path, offset, "there is something else in the place of a batch");
    if (get_u32(h + 8) < BATCH_HEADER_SIZE || get_u32(h + 8) > BATCH_SIZE_MAX || get_u64(h + 24) > EXTENT_MAX ||
        get_u64(h + 32) > EXTENT_MAX)
        return error_damaged(e, path, offset, "a batch's header is impossible");
    *length = get_u32(h + 8) <= n ? get_u32(h + 8) : 0;
    return DELTAFS_OK;
}

int extent_batches_decode(const uint8_t *bytes, size_t n, uint32_t seed, const char *path, uint64_t base, extent_fn *fn,
                          void *arg, size_t *used, int *is_last, struct error *e)
{
    size_t at = 0, length;

    for (; at < n; at += length) {
        const uint8_t *h = bytes + at;
        int status = check_header(h, n - at, seed, path, base + at, &length, e);
        if (status != DELTAFS_OK)
            return status;
        if (length == 0)
            break;
        int is_sound = get_u32(h + 40) == crc32c(seed, h + BATCH_HEADER_SIZE, length - BATCH_HEADER_SIZE);
        if (!is_sound && has_lost_sector(h, base + at, length, n - at))
            break;
        if (!is_sound)
            return error_damaged(e, path, base + at, "a batch's entries do not match their checksum");
        status = decode_entries(h, length, path, base + at, fn, arg, e);
        if (status != DELTAFS_OK)
            return status;
        if (is_last)
            *is_last = h[5] & BATCH_FLAG_LAST;
    }
    if (used)
        *used = at;
    return DELTAFS_OK;
}
