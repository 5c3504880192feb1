#include <stdlib.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/number.h"
#include "directory/format/directory_format.h"
#include "directory/format/index.h"

#define SCAN_CHUNK (64u << 10)          /* bytes read at a time when looking for footers */
#define TAIL_AHEAD (UINT64_C(16) << 20) /* bytes of a tail read at once: all of it, but for the longest */
#define TAIL_MAX   (UINT64_C(1) << 30)  /* bytes of the longest tail that is used */

/* Decode a footer; returns a text on what is wrong, or NULL. */
static const char *footer_get(struct footer *f, const uint8_t *p, uint32_t seed, uint32_t partition)
{
    if (memcmp(p + 96, FOOTER_MAGIC, 8) != 0 || !log_is_sealed(seed, p, FOOTER_SIZE) || p[4] != FORMAT_FOOTER)
        return "a footer does not match its checksum";
    *f = (struct footer){
        .partition = get_u32(p + 8),
        .epoch = get_u32(p + 12),
        .segment = get_u32(p + 16),
        .is_last = (p[5] & FOOTER_FLAG_LAST) != 0,
        .key_shift = p[6],
        .leaves = get_u32(p + 20),
        .runs = get_u32(p + 24),
        .fence_length = get_u32(p + 28),
        .fence_offset = get_u64(p + 32),
        .records = get_u64(p + 40),
        .bytes_raw = get_u64(p + 48),
        .previous = get_u64(p + 56),
        .first_key = get_u64(p + 64),
        .last_key = get_u64(p + 72),
        .data_end = get_u64(p + 80),
        .offset = get_u64(p + 88),
        .checksum = get_u32(p),
    };
    if (f->partition != partition || (p[5] & ~FOOTER_FLAG_LAST) != 0 || p[6] > FOOTER_SHIFT_MAX || p[7] != 0)
        return "a footer belongs elsewhere";
    if (f->fence_length < FENCE_HEADER_SIZE || f->fence_length > FENCE_SIZE_MAX || f->fence_offset < LOG_HEADER_SIZE ||
        f->offset < f->fence_length || f->fence_offset != f->offset - f->fence_length)
        return "a footer's offsets do not agree";
    return NULL;
}

/* What a footer at `at` says of commits: one that is in its own place, of those before its epoch, if it is the last of
 * that, else but for one; a tail's copy, of its epoch, too. */
static void reader_note(struct index_reader *r, const struct footer *f, uint64_t at)
{
    uint64_t seen = (uint64_t)f->epoch + 1, committed = seen;

    if (f->offset == at || at < r->tail_start)
        committed = f->is_last || f->epoch == 0 ? f->epoch : f->epoch - 1;
    if (seen > r->seen.epochs)
        r->seen = (struct index_known){seen, at};
    if (committed > r->committed.epochs)
        r->committed = (struct index_known){committed, at};
}

static int reader_add(struct index_reader *r, const struct footer *f, struct error *e)
{
    int status =
        memory_extend(r->memory, &r->segment, r->count, &r->capacity, sizeof *r->segment, "the index's footers", e);

    if (status == DELTAFS_OK)
        r->segment[r->count++] = (struct segment){.footer = *f};
    return status;
}

const char *index_take_fence(struct index_reader *r, struct segment *s, const uint8_t *p, int *status, struct error *e)
{
    const struct footer *f = &s->footer;

    if (!log_is_sealed(r->seed, p, f->fence_length) || p[4] != FORMAT_FENCE || p[5] != 0 || get_u16(p + 6) != 0 ||
        get_u32(p + 28) != 0 || get_u32(p + 8) != f->fence_length)
        return "a fence does not match its checksum";
    if (get_u32(p + 12) != f->partition || get_u32(p + 16) != f->epoch || get_u32(p + 20) != f->segment)
        return "a fence belongs elsewhere";
    if (get_u32(p + 24) != f->leaves || f->leaves > (f->fence_length - FENCE_HEADER_SIZE) / 2)
        return "a fence's sizes do not agree";
    fence_fini(&s->fence, r->memory);
    const char *wrong = fence_parse(&s->fence, p, f->fence_length, f->leaves, f->fence_offset, r->memory, status, e);
    if (!wrong && *status == DELTAFS_OK && f->leaves > 0 && fence_leaf(&s->fence, 0).first_key != f->first_key)
        wrong = "a fence's first key is not its footer's";
    if (wrong)
        fence_fini(&s->fence, r->memory);
    return wrong;
}

static int segment_compare(const void *a, const void *b)
{
    const struct footer *x = &((const struct segment *)a)->footer, *y = &((const struct segment *)b)->footer;

    return compare_two(x->epoch, y->epoch, x->segment, y->segment);
}

/* Order the segments, and leave one of each. */
static void reader_order(struct index_reader *r)
{
    uint32_t kept = 0;

    if (r->count > 0)
        qsort(r->segment, r->count, sizeof *r->segment, segment_compare);
    for (uint32_t i = 0; i < r->count; i++) {
        if (kept > 0 && segment_compare(&r->segment[kept - 1], &r->segment[i]) == 0)
            fence_fini(&r->segment[i].fence, r->memory);
        else
            r->segment[kept++] = r->segment[i];
    }
    r->count = kept;
}

/* Whether the last bytes of a file are the trailer of a tail, which is not longer than `most`. */
static int tail_is_here(const struct index_reader *r, const uint8_t *p, uint64_t most)
{
    uint64_t length = get_u64(p + 16);

    return memcmp(p + 24, TAIL_MAGIC, 8) == 0 && p[4] == FORMAT_TAIL && (p[5] & ~TAIL_FLAG_NO_FENCES) == 0 &&
           get_u16(p + 6) == 0 && length >= TAIL_TRAILER_SIZE && length <= most && get_u32(p + 8) == r->partition;
}

static void reader_forget(struct index_reader *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        fence_fini(&r->segment[i].fence, r->memory);
    r->count = 0;
}

/* Parse a tail of `n` bytes. */
static int reader_parse_tail(struct index_reader *r, const uint8_t *bytes, size_t n, struct error *e)
{
    const uint8_t *trailer = bytes + n - TAIL_TRAILER_SIZE, *p = bytes;
    uint64_t start = r->size - n;
    uint32_t footers = get_u32(trailer + 12);
    const char *wrong = NULL;
    int status = DELTAFS_OK;

    r->tail_start = start;
    if (get_u32(trailer) != crc32c(crc32c(r->seed, bytes, n - TAIL_TRAILER_SIZE), trailer + 4, TAIL_TRAILER_SIZE - 4))
        wrong = "the tail does not match its checksum";
    for (; footers > 0 && !wrong && status == DELTAFS_OK; footers--) {
        struct footer f;
        wrong = trailer - p < FOOTER_SIZE ? "the tail is too short" : footer_get(&f, p, r->seed, r->partition);
        if (!wrong && (start < FOOTER_SIZE || f.offset > start - FOOTER_SIZE))
            wrong = "a footer is said to be where the file has none";
        if (wrong)
            break;
        reader_note(r, &f, start + (size_t)(p - bytes));
        status = reader_add(r, &f, e);
        p += FOOTER_SIZE;
        if (status != DELTAFS_OK || (trailer[5] & TAIL_FLAG_NO_FENCES))
            continue;
        wrong = trailer - p < f.fence_length ? "the tail is too short"
                                             : index_take_fence(r, &r->segment[r->count - 1], p, &status, e);
        p += f.fence_length;
    }
    if (!wrong && status == DELTAFS_OK && p != trailer)
        wrong = "the tail has bytes left over";
    return wrong ? error_damaged(e, r->file.path, start, "%s", wrong) : status;
}

/* The last `n` bytes of the file. */
static int reader_read_end(struct index_reader *r, size_t n, struct buffer *b, struct error *e)
{
    int status = buffer_reserve(b, n, "the tail", e);

    return status == DELTAFS_OK ? io_file_read(&r->file, r->size - n, b->bytes, n, e) : status;
}

/* Read the tail, which by the manifest is not longer than `most`. One read is enough, unless that is so much that the
 * trailer must confirm it first. */
static int reader_read_tail(struct index_reader *r, uint64_t most, struct error *e)
{
    struct buffer b = {.memory = r->memory};
    uint64_t length = 0;

    most = most < r->size ? most : r->size;
    if (most < TAIL_TRAILER_SIZE)
        return error_damaged(e, r->file.path, r->size, "the file is too short for its tail");
    size_t n = most <= TAIL_AHEAD ? (size_t)most : TAIL_TRAILER_SIZE;
    int status = reader_read_end(r, n, &b, e);
    const uint8_t *trailer = b.bytes + n - TAIL_TRAILER_SIZE;
    if (status == DELTAFS_OK && !tail_is_here(r, trailer, most < TAIL_MAX ? most : TAIL_MAX))
        status = error_damaged(e, r->file.path, r->size - TAIL_TRAILER_SIZE, "there is no tail of this partition");
    if (status == DELTAFS_OK)
        length = get_u64(trailer + 16);
    if (status == DELTAFS_OK && length > n) {
        n = (size_t)length;
        status = reader_read_end(r, n, &b, e);
    }
    if (status == DELTAFS_OK)
        status = reader_parse_tail(r, b.bytes + n - length, (size_t)length, e);
    if (status == DELTAFS_OK) {
        r->tail_offset = r->size - length;
        reader_order(r);
    } else {
        reader_forget(r);
    }
    buffer_fini(&b);
    return status;
}

/* Add a footer and all before it by their chain. Returns whether the chain is whole: it begins with the last segment of
 * the last epoch, or a later one, and reaches the first. */
static int reader_follow_chain(struct index_reader *r, struct footer f, uint32_t epochs, int *status, struct error *e)
{
    uint8_t p[FOOTER_SIZE];
    int has_last = 0;

    for (;;) {
        has_last |= f.epoch + 1 == epochs && f.is_last;
        reader_note(r, &f, f.offset);
        if (f.epoch < epochs && (*status = reader_add(r, &f, e)) != DELTAFS_OK)
            return 0;
        if (f.previous == 0)
            return has_last;
        uint64_t at = f.previous;
        if (at >= f.offset || io_file_read(&r->file, at, p, sizeof p, error_ignored()) != DELTAFS_OK ||
            footer_get(&f, p, r->seed, r->partition) || f.offset != at)
            return 0;
    }
}

/* Look for footers from the end of the file backwards: follow the chain of the last one. If that is not whole, add all
 * there are. */
static int reader_scan(struct index_reader *r, uint8_t *chunk, uint32_t epochs, struct error *e)
{
    uint64_t end = r->size; /* footers that begin at `end` or behind it were seen */
    int status = DELTAFS_OK, is_first = 1;

    while (end > 0 && status == DELTAFS_OK) {
        uint64_t start = end > SCAN_CHUNK ? end - SCAN_CHUNK : 0;
        uint64_t stop = end + FOOTER_SIZE - 1 < r->size ? end + FOOTER_SIZE - 1 : r->size;
        size_t n = (size_t)(stop - start);
        status = io_file_read(&r->file, start, chunk, n, e);
        if (status == DELTAFS_OK && stop == r->size && n >= TAIL_TRAILER_SIZE) {
            const uint8_t *trailer = chunk + n - TAIL_TRAILER_SIZE;
            r->tail_start = tail_is_here(r, trailer, r->size) ? r->size - get_u64(trailer + 16) : UINT64_MAX;
        }
        for (size_t at = n < FOOTER_SIZE ? 0 : n - FOOTER_SIZE + 1; at-- > 0 && status == DELTAFS_OK;) {
            struct footer f;
            if (chunk[at + 96] != (uint8_t)FOOTER_MAGIC[0] || footer_get(&f, chunk + at, r->seed, r->partition))
                continue;
            reader_note(r, &f, start + at);
            if (is_first && (reader_follow_chain(r, f, epochs, &status, e) || epochs == 0))
                return status;
            if (!is_first && f.epoch < epochs)
                status = reader_add(r, &f, e);
            is_first = 0;
        }
        end = start;
    }
    return status;
}

/* Look for the footers of all epochs. A writer that gives one up meanwhile cuts it off the file: then its new end
 * counts. */
static int reader_search(struct index_reader *r, uint32_t epochs, struct error *e)
{
    uint64_t size;
    uint8_t *chunk;
    int status = memory_take(r->memory, SCAN_CHUNK + FOOTER_SIZE, "looking for footers", &chunk, e);

    if (status != DELTAFS_OK)
        return status;
    do {
        reader_forget(r);
        size = r->size;
        status = reader_scan(r, chunk, epochs, e);
    } while (status == DELTAFS_ERR_DAMAGED && io_file_size(&r->file, &r->size, error_ignored()) == DELTAFS_OK &&
             r->size < size);
    memory_give(r->memory, chunk, SCAN_CHUNK + FOOTER_SIZE);
    reader_order(r);
    return status;
}

static int reader_begin(struct index_reader *r, struct io *io, const char *path, uint32_t partition,
                        const uint8_t uuid[16], struct memory *memory, struct error *e)
{
    *r = (struct index_reader){
        .partition = partition, .seed = log_seed(uuid), .memory = memory, .tail_start = UINT64_MAX};
    return log_open_read(io, path, &r->file, &r->size, e);
}

/* What must be in the file is not there: returns whether it may only be seen late, and is worth another look. */
static int reader_reload(struct index_reader *r, unsigned *waited)
{
    return io_file_wait(&r->file, waited) && io_file_size(&r->file, &r->size, error_ignored()) == DELTAFS_OK;
}

/* All segments, in order. */
static int reader_search_all(struct index_reader *r, uint32_t committed, uint32_t epochs, unsigned *waited,
                             struct error *e)
{
    struct index_end end;
    uint64_t data_end;
    int status;

    do
        status = reader_search(r, epochs, e);
    while ((status == DELTAFS_ERR_DAMAGED ||
            (status == DELTAFS_OK && index_find_end(r, committed, &end, &data_end, error_ignored()) != DELTAFS_OK)) &&
           reader_reload(r, waited));
    return status;
}

int index_reader_open(struct index_reader *r, struct io *io, const char *path, uint32_t partition,
                      const uint8_t uuid[16], uint32_t committed, uint32_t epochs, uint64_t tail_length,
                      struct error *tail, struct error *e)
{
    unsigned waited = 0;
    int status = reader_begin(r, io, path, partition, uuid, NULL, e), tail_status = DELTAFS_ERR_DAMAGED;

    if (status != DELTAFS_OK)
        return status;
    if (tail_length > 0)
        do
            tail_status = reader_read_tail(r, tail_length, tail);
        while (tail_status == DELTAFS_ERR_DAMAGED && reader_reload(r, &waited));
    if (tail_status == DELTAFS_ERR_MEMORY)
        *e = *tail;
    if (tail_status == DELTAFS_OK)
        *tail = (struct error){0};
    if (tail_status == DELTAFS_OK || tail_status == DELTAFS_ERR_MEMORY)
        return tail_status;
    return reader_search_all(r, committed, epochs, &waited, e);
}

int index_reader_close(struct index_reader *r, struct error *e)
{
    reader_forget(r);
    memory_give(r->memory, r->segment, r->capacity * sizeof *r->segment);
    r->segment = NULL;
    return io_file_close(&r->file, e);
}

static int reader_try_fence(struct index_reader *r, struct segment *s, int has_footer, uint8_t *bytes, struct error *e)
{
    const struct footer *f = &s->footer;
    size_t n = f->fence_length;
    struct footer own;
    int status = io_file_read(&r->file, f->fence_offset, bytes, n + (has_footer ? FOOTER_SIZE : 0), e);

    if (status != DELTAFS_OK)
        return status;
    const char *wrong = index_take_fence(r, s, bytes, &status, e);
    if (wrong)
        return error_damaged(e, r->file.path, f->fence_offset, "%s", wrong);
    if (status != DELTAFS_OK || !has_footer)
        return status;
    wrong = footer_get(&own, bytes + n, r->seed, r->partition);
    if (!wrong && (own.offset != f->offset || own.epoch != f->epoch || own.segment != f->segment))
        wrong = "a footer belongs elsewhere";
    return wrong ? error_damaged(e, r->file.path, f->offset, "%s", wrong) : DELTAFS_OK;
}

/* Read a segment's fence, and check the footer behind it. */
static int reader_read_fence(struct index_reader *r, struct segment *s, int has_footer, struct error *e)
{
    const struct footer *f = &s->footer;
    struct buffer b = {.memory = r->memory};
    unsigned waited = 0;

    if (f->offset > r->size)
        return error_damaged(e, r->file.path, f->fence_offset, "the file ends before this fence");
    int status = buffer_reserve(&b, f->fence_length + (size_t)FOOTER_SIZE, "a fence", e);
    if (status == DELTAFS_OK)
        do
            status = reader_try_fence(r, s, has_footer, b.bytes, e);
        while (status == DELTAFS_ERR_DAMAGED && io_file_wait(&r->file, &waited));
    buffer_fini(&b);
    return status;
}

static int index_lacks(const struct index_reader *r, uint32_t epoch, struct error *e)
{
    return error_damaged(e, r->file.path, r->size, "the footer of epoch number %u is not in the file", epoch);
}

int index_find_end(const struct index_reader *r, uint32_t epochs, struct index_end *end, uint64_t *data_end,
                   struct error *e)
{
    uint32_t epoch = 0, segment = 0;

    *end = (struct index_end){0};
    *data_end = 0;
    for (uint32_t i = 0; i < r->count && epoch < epochs; i++) {
        const struct footer *f = &r->segment[i].footer;
        if (f->epoch != epoch || f->segment != segment || f->offset < end->log_end || f->data_end < *data_end ||
            f->data_end < LOG_HEADER_SIZE || r->size < FOOTER_SIZE || f->offset > r->size - FOOTER_SIZE)
            break;
        end->last_footer = f->offset;
        end->log_end = f->offset + FOOTER_SIZE;
        end->footers++;
        end->fences += f->fence_length;
        *data_end = f->data_end;
        epoch += f->is_last != 0;
        segment = f->is_last ? 0 : segment + 1;
    }
    return epoch == epochs ? DELTAFS_OK : index_lacks(r, epoch, e);
}

int index_epoch(struct index_reader *r, uint32_t epoch, struct segment **first, uint32_t *count, struct error *e)
{
    uint32_t low = 0, high = r->count, n = 0;
    int has_last = 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->segment[middle].footer.epoch < epoch)
            low = middle + 1;
        else
            high = middle;
    }
    struct segment *s = low < r->count ? &r->segment[low] : NULL;
    while (low + n < r->count && s[n].footer.epoch == epoch && s[n].footer.segment == n && !has_last)
        has_last = s[n++].footer.is_last;
    if (!has_last || (low + n < r->count && s[n].footer.epoch == epoch))
        return index_lacks(r, epoch, e);
    for (uint32_t i = 0; i < n; i++) {
        int status = s[i].fence.bytes ? DELTAFS_OK : reader_read_fence(r, &s[i], 0, e);
        if (status != DELTAFS_OK)
            return status;
    }
    *first = s;
    *count = n;
    return DELTAFS_OK;
}

int index_verify_segment(struct index_reader *r, const struct segment *s, struct error *e)
{
    struct segment again = {.footer = s->footer};
    int status = reader_read_fence(r, &again, 1, e);

    fence_fini(&again.fence, r->memory);
    return status;
}

struct index_known index_committed(const struct index_reader *r, int is_closed)
{
    return is_closed ? r->seen : r->committed;
}

int index_check_committed(const struct index_reader *r, uint64_t epochs, int is_closed, struct error *e)
{
    struct index_known known = index_committed(r, is_closed);

    if (known.epochs <= epochs)
        return DELTAFS_OK;
    return error_set(
        e, DELTAFS_ERR_DAMAGED,
        "%s: the footer at offset %llu says that at least %llu epochs were committed, and the "
        "manifest has lines of %llu: its end is lost; put a copy of MANIFEST back, or see 'deltafs repair'",
        r->file.path, (unsigned long long)known.at, (unsigned long long)known.epochs, (unsigned long long)epochs);
}

int index_resume(struct io *io, const char *path, uint32_t partition, const uint8_t uuid[16], uint32_t epochs,
                 int is_closed, int may_drop, struct memory *memory, struct index_end *end, uint64_t *data_end,
                 struct error *e)
{
    struct index_reader r;
    unsigned waited = 0;
    int status = reader_begin(&r, io, path, partition, uuid, memory, e);

    *end = (struct index_end){0};
    *data_end = 0;
    if (epochs == 0 && status == DELTAFS_ERR_DAMAGED) {
        index_reader_close(&r, error_ignored());
        return DELTAFS_OK;
    }
    if (status == DELTAFS_OK)
        status = reader_search_all(&r, epochs, epochs, &waited, e);
    if (status == DELTAFS_OK)
        status = index_find_end(&r, epochs, end, data_end, e);
    for (uint32_t i = 0; i < r.count && status == DELTAFS_OK; i++)
        status = index_verify_segment(&r, &r.segment[i], e);
    if (status == DELTAFS_OK && !may_drop)
        status = index_check_committed(&r, epochs, is_closed, e);
    index_reader_close(&r, error_ignored());
    return status;
}

uint32_t index_leaf_of(const struct segment *s, uint64_t key, uint32_t *leaves)
{
    *leaves = 0;
    if (key < s->footer.first_key || key > s->footer.last_key)
        return 0;
    return fence_find(&s->fence, key, leaves);
}

int index_parse_leaf(struct index_reader *r, const struct segment *s, uint32_t i, const uint8_t *bytes,
                     struct leaf *leaf, struct error *e)
{
    struct fence_leaf at = fence_leaf(&s->fence, i);
    struct leaf_id id = {s->footer.partition, s->footer.epoch, s->footer.segment, i};
    int status = leaf_parse(leaf, bytes, at.length, &id, r->seed, r->file.path, at.offset, e),
        is_last = i + 1 == s->footer.leaves;

    uint64_t last = is_last ? s->footer.last_key : fence_leaf(&s->fence, i + 1).first_key;
    if (status == DELTAFS_OK &&
        (leaf->first_key != at.first_key || leaf->last_key > last || (is_last && leaf->last_key != last)))
        return error_damaged(e, r->file.path, at.offset, "the leaf's keys are not those that the fence says");
    if (status == DELTAFS_OK && (leaf->epochs != NULL) != (s->footer.epoch < r->compacted))
        return error_damaged(e, r->file.path, at.offset, "the leaf's epochs are not those that the manifest says");
    return status;
}

int index_read_leaf(struct index_reader *r, const struct segment *s, uint32_t i, struct window *window,
                    struct buffer *bytes, struct leaf *leaf, struct error *e)
{
    struct fence_leaf at = fence_leaf(&s->fence, i);
    uint64_t offset = at.offset;
    size_t n = at.length;
    unsigned waited = 0;
    const uint8_t *read;

    if (offset + n > r->size)
        return error_damaged(e, r->file.path, offset, "the file ends before this leaf");
    int status = buffer_reserve(bytes, n + LEAF_SLACK, "a leaf", e);
    if (status != DELTAFS_OK)
        return status;
    for (;; window_fini(window)) {
        status = window_read(window, &r->file, s->footer.fence_offset, offset, n, &read, e);
        if (status == DELTAFS_OK) {
            memcpy(bytes->bytes, read, n);
            memset(bytes->bytes + n, 0, LEAF_SLACK);
            status = index_parse_leaf(r, s, i, bytes->bytes, leaf, e);
        }
        if (status == DELTAFS_OK)
            status = leaf_load(leaf, r->file.path, offset, e);
        if (status != DELTAFS_ERR_DAMAGED || log_is_sealed(r->seed, bytes->bytes, n) ||
            !io_file_wait(&r->file, &waited))
            return status;
    }
}
