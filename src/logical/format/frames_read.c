/* Reading data logs.
 *
 * Whole frames of a long read come into the caller's memory and are verified there. Else a frame comes into a window of
 * the cache; if the reads of the log go forward, with all of the window that follows. When no window is free, those
 * that were read forward to their end are reused first. A window's size depends on how many logs are read by turns:
 * each must find its own again when its turn comes. Where there is a team, it shares what is read at once.
 *
 * A log may be growing. What is read beyond what was asked for may not be written yet, then it does not match and is
 * left out. A page of checksums that was kept from before may lack the frame asked for: it is read once more; and so
 * are both for some seconds, where the file system may show late what another host has written. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "logical/format/frames.h"
#include "io/log.h"
#include "logical/format/logical_format.h"

#define GROUP_BYTES     ((uint64_t)FRAME_GROUP * FRAME_SIZE)
#define GROUP_STRIDE    (GROUP_BYTES + FRAME_SIZE)
#define WINDOW_MIN      (4 * FRAME_SIZE)
#define WINDOW_MAX      (64 * FRAME_SIZE) /* frames: the bits of frame_slot.valid */
#define WINDOWS_PER_LOG 2
#define PAGES_PART      8  /* this part of the cache is for pages of checksums */
#define WAYS            16 /* slots in one set, which a search examines one by one */
#define SLOTS_MIN       4
#define SLOT_OLD        1 /* `used` of a slot that is to be reused before others */
#define SLOTS_MAX       65536u
#define LONG_BYTES      (64u << 10)       /* bytes of a read that do not go by way of the cache */
#define PIECE           (64 * FRAME_SIZE) /* of them in one read: they are still in the processor's cache when verified */
#define SHARE           (128u << 10) /* bytes that a thread of the team takes at a time; or half of a read, if less */
#define SHARED_MIN      (128u << 10) /* shorter reads are not shared */
#define FORWARD_GAP     (64u << 10)  /* what a forward reader may leave out */

/* ---- Cache ---- */

static void pool_init(struct frame_pool *p, size_t size, size_t bytes)
{
    size_t limit = bytes / size;

    limit = limit < SLOTS_MIN ? SLOTS_MIN : limit > SLOTS_MAX ? SLOTS_MAX : limit;
    *p = (struct frame_pool){.size = size, .sets = limit < 2 * WAYS ? 1 : limit / WAYS};
    p->ways = limit / p->sets;
}

static void pool_fini(struct frame_pool *p)
{
    for (size_t i = 0; p->slot && i < p->sets * p->ways; i++)
        free(p->slot[i].bytes);
    free(p->slot);
}

/* The slot for what `owner` has at `number`; valid is 0 if that is not there. */
static int pool_get(struct frame_pool *p, uint64_t owner, uint64_t number, struct frame_slot **out, struct error *e)
{
    /* What several owners have at one number is spread evenly. */
    uint64_t h = owner + (number * UINT64_C(0x9e3779b97f4a7c15) >> 32);

    if (!p->slot && !(p->slot = calloc(p->sets * p->ways, sizeof *p->slot)))
        return error_no_memory(e, p->sets * p->ways * sizeof *p->slot, "the cache");
    struct frame_slot *set = p->slot + h % p->sets * p->ways, *s = set, *oldest = set;
    for (; s < set + p->ways && !(s->used > 0 && s->owner == owner && s->number == number); s++)
        if (s->used < oldest->used)
            oldest = s;
    if (s == set + p->ways) {
        s = oldest;
        /* A long window begins at a page: the system copies to there twice as fast as to an odd address. */
        if (!s->bytes && memory_take(NULL, p->size, "the cache", &s->bytes, e) != DELTAFS_OK)
            return e->status;
        s->owner = owner;
        s->number = number;
        s->valid = 0;
    }
    s->used = ++p->uses;
    *out = s;
    return DELTAFS_OK;
}

/* Let windows become small enough for all the logs that are read. */
static void cache_fit(struct frame_cache *c)
{
    size_t bytes = c->bytes - c->bytes / PAGES_PART, size = WINDOW_MAX;

    while (size > WINDOW_MIN && bytes / size < WINDOWS_PER_LOG * c->readers)
        size /= 2;
    if (c->windows.size != 0 && c->windows.size <= size)
        return;
    pool_fini(&c->windows);
    pool_init(&c->windows, size, bytes);
}

void frame_cache_init(struct frame_cache *c, size_t bytes)
{
    *c = (struct frame_cache){.bytes = bytes};
    pool_init(&c->pages, FRAME_SIZE, bytes / PAGES_PART);
    cache_fit(c);
}

void frame_cache_fini(struct frame_cache *c)
{
    pool_fini(&c->windows);
    pool_fini(&c->pages);
    *c = (struct frame_cache){0};
}

/* ---- Verified frames ---- */

void frame_source_init(struct frame_source *s, uint32_t seed, struct frame_cache *cache)
{
    *s = (struct frame_source){.cache = cache, .seed = seed, .owner = cache->owners++, .next = UINT64_MAX};
    cache->readers++;
    cache_fit(cache);
}

static const uint8_t zero_frame[FRAME_SIZE];

/* Read the checksums of the group that begins at the offset `begin`, in a file of `size` bytes: they are at the group's
 * end, or, in the last group of a log that was finished, behind the last frame. If a crash has come between, zeros may
 * follow. DELTAFS_ERR_DAMAGED if there are none. */
static int source_find_sums(struct frame_source *s, uint64_t begin, uint64_t size, uint8_t *page, struct error *e)
{
    uint64_t at = size < begin ? begin : size - (size - begin) % FRAME_SIZE;
    int status = DELTAFS_OK;

    at = (at < begin + GROUP_STRIDE ? at : begin + GROUP_STRIDE) - FRAME_SIZE;
    for (; at > begin; at -= FRAME_SIZE) {
        size_t used = (size_t)(at - begin) / FRAME_SIZE * 4; /* bytes for the frames before it; none follow */
        status = io_file_read(s->file, at, page, FRAME_SIZE, e);
        if (status != DELTAFS_OK)
            return status;
        if (used == FRAME_SIZE || used == 4 || memcmp(page, zero_frame, FRAME_SIZE) != 0)
            return memcmp(page + used, zero_frame, FRAME_SIZE - used) == 0 ? DELTAFS_OK : DELTAFS_ERR_DAMAGED;
    }
    return DELTAFS_ERR_DAMAGED;
}

/* Read the checksums of the group of `position`. The log may be finished meanwhile, which moves them. */
static int source_read_sums(struct frame_source *s, uint64_t position, uint8_t *page, struct error *e)
{
    uint64_t begin = frame_offset(position - position % GROUP_BYTES), size = 0, before;
    int status;

    do {
        before = size;
        status = io_file_size(s->file, &size, e);
        if (status != DELTAFS_OK)
            return status;
        status = source_find_sums(s, begin, size, page, e);
    } while (status == DELTAFS_ERR_DAMAGED && size != before);
    return status == DELTAFS_ERR_DAMAGED
               ? error_damaged(e, s->file->path, size,
                               "the file ends before the checksums of its last frames: no frame from offset %llu on "
                               "can be checked",
                               (unsigned long long)begin)
               : status;
}

/* The checksums of the group of `position`: as they were when last read, unless *is_new is set, which it is
 * afterwards if they are of now. */
static int source_page(struct frame_source *s, uint64_t position, int *is_new, const uint8_t **page, struct error *e)
{
    uint64_t group = position / GROUP_BYTES;
    struct frame_slot *slot = NULL;

    if (s->page && group == s->end / GROUP_BYTES) {
        *is_new = 1;
        *page = s->page;
        return DELTAFS_OK;
    }
    int status = pool_get(&s->cache->pages, s->owner, group, &slot, e);
    if (status == DELTAFS_OK && (slot->valid == 0 || *is_new)) {
        slot->valid = 0;
        status = source_read_sums(s, position, slot->bytes, e);
        slot->valid = status == DELTAFS_OK;
        *is_new = 1;
    }
    *page = slot ? slot->bytes : NULL;
    return status;
}

/* `n` of the lowest bits. */
static uint64_t low_bits(size_t n)
{
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* Which of `n` frames at `position`, all of one group, at most 64, match their checksums. */
static uint64_t source_match(const struct frame_source *s, uint64_t position, const uint8_t *bytes, size_t n,
                             const uint8_t *page)
{
    const uint8_t *sum = page + position % GROUP_BYTES / FRAME_SIZE * 4;
    uint64_t match = 0;

    for (size_t i = 0; i < n; i++)
        if (frame_sum(s->seed, position / FRAME_SIZE + i, bytes + i * FRAME_SIZE) == get_u32(sum + 4 * i))
            match |= UINT64_C(1) << i;
    return match;
}

/* The same; *match gets them. If one of `need` does not match, that is damage. */
static int source_verify(struct frame_source *s, uint64_t position, const uint8_t *bytes, size_t n, uint64_t need,
                         uint64_t *match, struct error *e)
{
    const uint8_t *page = NULL;
    int must_read = 0, is_new, status;

    do {
        is_new = must_read;
        status = source_page(s, position, &is_new, &page, e);
        *match = status == DELTAFS_OK ? source_match(s, position, bytes, n, page) : 0;
        must_read = 1;
    } while (status == DELTAFS_OK && (need & ~*match) && !is_new);
    if (status != DELTAFS_OK || !(need & ~*match))
        return status;
    uint64_t bad = position + (uint64_t)__builtin_ctzll(need & ~*match) * FRAME_SIZE;
    return error_damaged(e, s->file->path, frame_offset(bad), "a frame does not match its checksum");
}

/* Read and verify `n` frames as in source_verify; wait for those of `need` where the file system may show them late. */
static int source_read_frames(struct frame_source *s, uint64_t position, uint8_t *bytes, size_t n, uint64_t need,
                              uint64_t *match, struct error *e)
{
    unsigned waited = 0;
    int status;

    do {
        *match = 0;
        status = io_file_read(s->file, frame_offset(position), bytes, n * FRAME_SIZE, e);
        if (status == DELTAFS_OK)
            status = source_verify(s, position, bytes, n, need, match, e);
    } while (status == DELTAFS_ERR_DAMAGED && io_file_wait(s->file, &waited));
    return status;
}

_Static_assert(SHARE <= 64 * FRAME_SIZE, "source_match tells of no more");

struct shared_read {
    const struct frame_source *source;
    const uint8_t *page;
    uint64_t position;
    uint8_t *bytes;
    size_t n, share;
    _Atomic int is_bad;
};

static void source_read_share(void *ctx, size_t share)
{
    struct shared_read *r = ctx;
    const size_t from = share * r->share, n = r->n - from < r->share ? r->n - from : r->share;
    const size_t frames = n / FRAME_SIZE;
    uint64_t position = r->position + from;
    uint8_t *bytes = r->bytes + from;

    if (r->is_bad)
        return;
    if (io_file_read(r->source->file, frame_offset(position), bytes, n, error_ignored()) != DELTAFS_OK ||
        source_match(r->source, position, bytes, frames, r->page) != low_bits(frames))
        r->is_bad = 1;
}

/* Whole frames of one group, together with the team. Returns whether they are all there and right; else one thread is
 * to read them, which finds out what is wrong. */
static int source_read_shared(struct frame_source *s, uint64_t position, uint8_t *bytes, size_t n)
{
    size_t half = (n / FRAME_SIZE + 1) / 2 * FRAME_SIZE;
    struct shared_read r = {
        .source = s, .position = position, .bytes = bytes, .n = n, .share = half < SHARE ? half : SHARE};
    int is_new = 0;

    if (!s->cache->team || n < SHARED_MIN)
        return 0;
    if (source_page(s, position, &is_new, &r.page, error_ignored()) != DELTAFS_OK)
        return 0;
    team_run(s->cache->team, source_read_share, &r, (n + r.share - 1) / r.share);
    return !r.is_bad;
}

/* Whole frames of one group. */
static int source_read_long(struct frame_source *s, uint64_t position, uint8_t *bytes, size_t n, struct error *e)
{
    uint64_t match;
    int status = DELTAFS_OK;

    if (source_read_shared(s, position, bytes, n))
        return DELTAFS_OK;
    for (size_t at = 0; at < n && status == DELTAFS_OK; at += PIECE) {
        size_t frames = (n - at < PIECE ? n - at : PIECE) / FRAME_SIZE;
        status = source_read_frames(s, position + at, bytes + at, frames, low_bits(frames), &match, e);
    }
    return status;
}

/* As source_read_frames, but with the team. If a frame does not match, also one that is not needed, all is read twice:
 * that is rare, as where a log grows. */
static int source_fill(struct frame_source *s, uint64_t position, uint8_t *bytes, size_t n, uint64_t need,
                       uint64_t *match, struct error *e)
{
    if (!source_read_shared(s, position, bytes, n * FRAME_SIZE))
        return source_read_frames(s, position, bytes, n, need, match, e);
    *match = low_bits(n);
    return DELTAFS_OK;
}

/* Bytes of one window. */
static int source_read_window(struct frame_source *s, uint64_t position, uint8_t *bytes, size_t n, int is_forward,
                              struct error *e)
{
    size_t size = s->cache->windows.size, at = (size_t)(position % size);
    size_t from = at / FRAME_SIZE, to = (at + n - 1) / FRAME_SIZE + 1;
    struct frame_slot *slot;
    int status = pool_get(&s->cache->windows, s->owner, position / size, &slot, e);

    if (status != DELTAFS_OK)
        return status;
    uint64_t need = (low_bits(to - from) << from) & ~slot->valid, match;
    if (need) {
        uint64_t left = s->end - slot->number * size;
        from = (size_t)__builtin_ctzll(need);
        to = 64 - (size_t)__builtin_clzll(need);
        if (is_forward)
            to = (left < size ? (size_t)left : size) / FRAME_SIZE;
        slot->valid &= ~(low_bits(to - from) << from);
        status = source_fill(s, slot->number * size + from * FRAME_SIZE, slot->bytes + from * FRAME_SIZE, to - from,
                             need >> from, &match, e);
        slot->valid |= match << from;
    }
    if (status == DELTAFS_OK)
        memcpy(bytes, slot->bytes + at, n);
    /* A forward reader seldom comes back: if there is no free window, its next one is read where one of these was,
     * which is soon always the same and in the processor's cache. */
    if (is_forward && at + n == size)
        slot->used = SLOT_OLD;
    return status;
}

int frame_source_read(struct frame_source *s, uint64_t position, void *bytes, size_t n, struct error *e)
{
    int is_long = n >= LONG_BYTES + FRAME_SIZE;
    int is_forward = !is_long && position >= s->next && position - s->next <= FORWARD_GAP;
    uint8_t *to = bytes;
    int status = DELTAFS_OK;

    while (n > 0 && status == DELTAFS_OK) {
        uint64_t left = GROUP_BYTES - position % GROUP_BYTES;
        size_t window = s->cache->windows.size - (size_t)(position % s->cache->windows.size), part;
        if (is_long && position % FRAME_SIZE == 0 && n >= FRAME_SIZE) {
            part = n < left ? n - n % FRAME_SIZE : (size_t)left;
            status = source_read_long(s, position, to, part, e);
        } else {
            part = is_long ? FRAME_SIZE - (size_t)(position % FRAME_SIZE) : window;
            part = part < n ? part : n;
            status = source_read_window(s, position, to, part, is_forward, e);
        }
        to += part;
        position += part;
        n -= part;
    }
    s->next = position;
    return status;
}

/* ---- Another's log ---- */

/* Positions that a file of `size` bytes has frames for, if it ends with a page of checksums. */
static uint64_t frames_end(uint64_t size)
{
    uint64_t left = size > FRAME_SIZE ? size - FRAME_SIZE : 0;
    uint64_t rest = left % GROUP_STRIDE / FRAME_SIZE;

    return left / GROUP_STRIDE * GROUP_BYTES + (rest > 0 ? rest - 1 : 0) * FRAME_SIZE;
}

int frame_reader_open(struct frame_reader *r, struct io *io, const char *path, uint32_t session, uint32_t writer,
                      const uint8_t uuid[16], struct frame_cache *cache, struct error *e)
{
    *r = (struct frame_reader){0};
    int status = io_file_open(io, path, O_RDONLY | IO_AWAITED, &r->file, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? error_damaged(e, path, 0, "the file is missing") : status;
    status = log_check_header(&r->file, LOG_KIND_FRAMES, writer, uuid, e);
    if (status != DELTAFS_OK) {
        io_file_close(&r->file, error_ignored());
        return status;
    }
    frame_source_init(&r->source, frame_seed(uuid, session, writer), cache);
    return DELTAFS_OK;
}

int frame_reader_close(struct frame_reader *r, struct error *e)
{
    if (r->source.cache)
        r->source.cache->readers--;
    int status = r->file.path ? io_file_close(&r->file, e) : DELTAFS_OK;
    *r = (struct frame_reader){.file = {.fd = -1, .direct = -1}};
    return status;
}

static int frame_reader_look(struct frame_reader *r, struct error *e)
{
    int status = io_file_size(&r->file, &r->size, e);

    if (status == DELTAFS_OK)
        r->source.end = frames_end(r->size);
    return status;
}

static int frame_reader_try(struct frame_reader *r, uint64_t position, void *bytes, size_t n, struct error *e)
{
    struct frame_source *s = &r->source;
    int status = DELTAFS_OK;

    for (int i = 0; i < 2 && status == DELTAFS_OK && (position > s->end || n > s->end - position); i++)
        /* If the file system refuses to sync what is open for reading, its size is what it is. */
        if (i == 0 || io_file_refresh(&r->file, error_ignored()) == DELTAFS_OK)
            status = frame_reader_look(r, e);
    if (status == DELTAFS_OK && (position > s->end || n > s->end - position))
        return error_damaged(e, r->file.path, r->size, "the file ends before the %zu bytes at position %llu", n,
                             (unsigned long long)position);
    return status == DELTAFS_OK ? frame_source_read(s, position, bytes, n, e) : status;
}

int frame_reader_read(struct frame_reader *r, uint64_t position, void *bytes, size_t n, struct error *e)
{
    r->source.file = &r->file;
    int status = frame_reader_try(r, position, bytes, n, e);
    uint64_t before = r->size;

    /* If the log was finished meanwhile, nothing can be read ahead where the file ended before. */
    if (status == DELTAFS_ERR_DAMAGED && frame_reader_look(r, error_ignored()) == DELTAFS_OK && r->size < before)
        status = frame_reader_try(r, position, bytes, n, e);
    return status;
}

int frame_reader_has_sums(struct frame_reader *r, uint64_t position)
{
    const uint8_t *page;
    int is_new = 1;

    return source_page(&r->source, position, &is_new, &page, error_ignored()) == DELTAFS_OK;
}
