/* Parts of a log that are known from elsewhere: of a footer and a fence there are copies in the tail, and a fence says
 * nothing that its leaves do not; a log's header is in the manifest and the file's name. They are written where they
 * were, once it is certain that they are what was there: what is written has the checksum that it had. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "repair/repair_state.h"

/* ---- Fences ---- */

/* The leaf at `at`, which ends before `end`: its bytes and first key. */
static int restore_leaf(struct index_reader *r, const struct leaf_id *id, uint64_t at, uint64_t end,
                        struct buffer *bytes, uint64_t *length, uint64_t *key, struct error *e)
{
    uint8_t h[LEAF_HEADER_SIZE];
    struct leaf leaf = {0};

    if (at > end || end - at < sizeof h)
        return error_damaged(e, r->file.path, at, "a leaf is missing");
    int status = io_file_read(&r->file, at, h, sizeof h, e);
    if (status != DELTAFS_OK)
        return status;
    *length = get_u32(h + 8);
    if (*length < sizeof h || *length > LEAF_SIZE_MAX || *length > end - at)
        return error_damaged(e, r->file.path, at, "a leaf's length is wrong");
    status = buffer_reserve(bytes, (size_t)*length + LEAF_SLACK, "a leaf", e);
    if (status == DELTAFS_OK)
        status = io_file_read(&r->file, at, bytes->bytes, (size_t)*length, e);
    if (status != DELTAFS_OK)
        return status;
    memset(bytes->bytes + *length, 0, LEAF_SLACK);
    if (!leaf_is_lost(bytes->bytes, (size_t)*length, r->seed))
        status = leaf_parse(&leaf, bytes->bytes, (size_t)*length, id, r->seed, r->file.path, at, e);
    *key = get_u64(bytes->bytes + 32);
    return status;
}

/* A segment's fence, from its leaves, which stand between the footer before and the fence. The footer says how long it
 * is: there is room for that and for one entry more. */
static int restore_from_leaves(struct index_reader *r, uint32_t i, struct buffer *fence, struct error *e)
{
    const struct segment *s = &r->segment[i];
    const struct footer *f = &s->footer;
    uint64_t first = i == 0 ? LOG_HEADER_SIZE : s[-1].footer.offset + FOOTER_SIZE, at = first, length = 0, key = 0;
    struct leaf_id id = {f->partition, f->epoch, f->segment, 0};
    struct buffer bytes = {0};
    size_t n = FENCE_HEADER_SIZE;
    int status = DELTAFS_OK;

    for (; id.leaf < f->leaves && n <= f->fence_length && status == DELTAFS_OK; id.leaf++) {
        uint64_t before = key;
        status = restore_leaf(r, &id, at, f->fence_offset, &bytes, &length, &key, e);
        uint8_t *p = put_varint(fence->bytes + n, key - before);
        n = (size_t)(put_varint(p, length) - fence->bytes);
        at += length;
    }
    if (status == DELTAFS_OK && at != f->fence_offset)
        status = error_damaged(e, r->file.path, at, "the leaves do not end where the fence begins");
    if (status == DELTAFS_OK && n != f->fence_length)
        status = error_damaged(e, r->file.path, f->offset, "a footer's sizes do not agree");
    if (status == DELTAFS_OK)
        index_put_fence(f, first, r->seed, fence->bytes, n);
    buffer_fini(&bytes);
    return status;
}

/* ---- Segments ---- */

/* Fence and footer of segment `i`, which stand one behind the other. */
static int restore_segment(struct repair *r, struct index_reader *index, uint32_t i, const struct error *damage,
                           struct error *e)
{
    struct segment *s = &index->segment[i];
    const struct footer *f = &s->footer;
    const char *from = "the tail's copy", *wrong = NULL;
    struct buffer b = {0};
    size_t n = f->fence_length;
    int status = buffer_reserve(&b, n + 2 * (size_t)VARINT_MAX + FOOTER_SIZE, "a fence", e);

    if (status == DELTAFS_OK && s->fence.bytes) {
        memcpy(b.bytes, s->fence.bytes, n);
    } else if (status == DELTAFS_OK) {
        from = "its leaves";
        status = restore_from_leaves(index, i, &b, e);
        if (status == DELTAFS_OK)
            wrong = index_take_fence(index, s, b.bytes, &status, e);
    }
    if (status == DELTAFS_OK) {
        index_put_footer(f, index->seed, b.bytes + n);
        if (wrong || get_u32(b.bytes + n) != f->checksum || f->offset > index->size)
            status = error_damaged(e, index->file.path, f->fence_offset, "a fence or footer has no copy that fits it");
        else if (!r->options->dry_run)
            status = repair_write(index->file.io, index->file.path, 0, f->fence_offset, b.bytes, n + FOOTER_SIZE, e);
    }
    buffer_fini(&b);
    if (status == DELTAFS_OK && !r->options->dry_run)
        status = index_verify_segment(index, s, e);
    if (status == DELTAFS_OK)
        repair_report(r, "%s; it is written again, from %s", damage->text, from);
    return status;
}

int restore_segments(struct repair *r, struct index_reader *index, uint64_t *whole, struct error *e)
{
    struct error damage, other;
    int status = DELTAFS_OK;

    struct segment *first;
    uint32_t count;
    /* Have all fences that can be read: where there is no tail, they are not yet. */
    for (uint64_t epoch = 0; epoch < r->manifest.epoch_count; epoch++)
        index_epoch(index, (uint32_t)epoch, &first, &count, error_ignored());
    for (uint32_t i = 0; i < index->count && status == DELTAFS_OK; i++) {
        if (index->segment[i].footer.epoch >= r->manifest.epoch_count)
            continue;
        status = index_verify_segment(index, &index->segment[i], &damage);
        if (status == DELTAFS_ERR_DAMAGED)
            status = restore_segment(r, index, i, &damage, &other);
        if (status != DELTAFS_OK) {
            *whole = index->segment[i].footer.epoch;
            *e = status == damage.status ? damage : other;
        }
    }
    return status;
}

/* ---- Leaves ---- */

int restore_check_leaves(struct repair *r, struct index_reader *index, uint64_t *lost, struct error *e)
{
    struct window window = {.ahead = 256u << 10};
    struct buffer bytes = {0};
    struct leaf leaf = {0};
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < index->count && status == DELTAFS_OK; i++) {
        const struct segment *s = &index->segment[i];
        for (uint32_t k = 0; s->footer.epoch < r->manifest.epoch_count && s->fence.bytes && k < s->footer.leaves &&
                             status == DELTAFS_OK;
             k++) {
            size_t n = fence_leaf(&s->fence, k).length;
            status = index_read_leaf(index, s, k, &window, &bytes, &leaf, e);
            if (status == DELTAFS_ERR_DAMAGED && bytes.bytes && bytes.capacity >= n &&
                leaf_is_lost(bytes.bytes, n, index->seed)) {
                *lost = s->footer.epoch < *lost ? s->footer.epoch : *lost;
                status = DELTAFS_OK;
            }
        }
    }
    window_fini(&window);
    buffer_fini(&bytes);
    leaf_fini(&leaf);
    return status;
}

/* ---- Headers ---- */

/* Whether a data log is this partition's: by its first block, or because it has none. */
static int restore_knows_data(const struct index_reader *index, struct io_file *data)
{
    uint8_t h[BLOCK_HEADER_SIZE];
    struct buffer bytes = {0};
    uint64_t size = 0;
    size_t n;

    if (io_file_size(data, &size, error_ignored()) != DELTAFS_OK || size == LOG_HEADER_SIZE)
        return size == LOG_HEADER_SIZE;
    if (io_file_read(data, LOG_HEADER_SIZE, h, sizeof h, error_ignored()) != DELTAFS_OK)
        return 0;
    n = BLOCK_HEADER_SIZE + (size_t)get_u32(h + 8);
    int is_known = h[4] == FORMAT_BLOCK && n <= BLOCK_HEADER_SIZE + BLOCK_PAYLOAD_MAX &&
                   get_u32(h + 16) == index->partition &&
                   buffer_reserve(&bytes, n, "a block", error_ignored()) == DELTAFS_OK &&
                   io_file_read(data, LOG_HEADER_SIZE, bytes.bytes, n, error_ignored()) == DELTAFS_OK &&
                   log_is_sealed(index->seed, bytes.bytes, n);
    buffer_fini(&bytes);
    return is_known;
}

int restore_header(struct repair *r, const struct index_reader *index, const char *path, int kind, struct error *e)
{
    uint8_t h[LOG_HEADER_SIZE];
    struct io_file file;
    struct error damage;
    int status = io_file_open(&r->io, path, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? error_damaged(e, path, 0, "the file is missing") : status;
    status = log_check_header(&file, kind, index->partition, r->manifest.uuid, &damage);
    int is_known =
        status == DELTAFS_ERR_DAMAGED && (kind == LOG_KIND_INDEX ? index->count > 0 : restore_knows_data(index, &file));
    io_file_close(&file, error_ignored());
    if (status != DELTAFS_OK)
        *e = damage;
    if (!is_known)
        return status;
    log_put_header(h, kind, index->partition, r->manifest.uuid);
    status = r->options->dry_run ? DELTAFS_OK : repair_write(&r->io, path, 0, 0, h, sizeof h, e);
    if (status == DELTAFS_OK)
        repair_report(r, "%s; it is written again, from what the manifest says", damage.text);
    return status;
}
