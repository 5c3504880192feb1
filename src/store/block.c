/* Values of one size are laid out in bit planes before they are packed: a schema's columns come out of that without
 * knowing the schema. Where packing does not help, the values stand as they are. */
#include <stdlib.h>
#include <snappy-c.h>
#include "base/coding.h"
#include "store/block.h"
#include "store/planes.h"
#include "store/store_format.h"

/* Fewer values than this are packed as they stand: planes would be filled up with more zeros than bits. */
#define BLOCK_PLANES_MIN 16

/* A packed payload must be shorter by this share, or reading it is not worth the unpacking. */
#define BLOCK_MIN_GAIN_SHIFT 5

/* With values of different sizes a block is closed once it has `target` bytes, so its last value may stand out. */
static size_t block_values_capacity(int64_t value_size, size_t target)
{
    return target + (value_size < 0 ? BLOCK_VALUE_MAX : (size_t)value_size);
}

static uint32_t block_records_max(int64_t value_size, size_t target)
{
    size_t n = value_size > 0 ? target / (size_t)value_size : target;

    if (n < 1)
        n = 1;
    return n > BLOCK_RECORDS_MAX ? BLOCK_RECORDS_MAX : (uint32_t)n;
}

/* Bytes of the layout that is packed. */
static size_t block_layout_capacity(int64_t value_size, size_t target)
{
    size_t n = block_records_max(value_size, target);

    if (value_size < 0)
        return block_values_capacity(value_size, target) + 3 * n;
    return n < BLOCK_PLANES_MIN ? n * (size_t)value_size : planes_length(n, (size_t)value_size);
}

static size_t block_scratch_capacity(int64_t value_size, size_t target)
{
    return value_size < 0 ? 0 : planes_scratch(block_records_max(value_size, target), (size_t)value_size);
}

size_t block_writer_memory(int64_t value_size, size_t target)
{
    size_t layout = block_layout_capacity(value_size, target);

    return block_values_capacity(value_size, target) + layout + block_scratch_capacity(value_size, target) +
           BLOCK_HEADER_SIZE + snappy_max_compressed_length(layout) + 4 * (size_t)block_records_max(value_size, target);
}

int block_writer_init(struct block_writer *w, int64_t value_size, enum option_codec codec, size_t target,
                      struct error *e)
{
    size_t layout = block_layout_capacity(value_size, target);

    *w = (struct block_writer){.value_size = value_size, .codec = codec, .target = target};
    w->values = malloc(block_values_capacity(value_size, target) + 1);
    w->layout = malloc(layout + 1);
    w->scratch = malloc(block_scratch_capacity(value_size, target) + 1);
    w->out_capacity = BLOCK_HEADER_SIZE + snappy_max_compressed_length(layout);
    w->out = malloc(w->out_capacity);
    w->sizes = malloc(4 * (size_t)block_records_max(value_size, target));
    if (!w->values || !w->layout || !w->scratch || !w->out || !w->sizes) {
        block_writer_fini(w);
        return error_no_memory(e, block_writer_memory(value_size, target), "a block");
    }
    return DELTAFS_OK;
}

void block_writer_fini(struct block_writer *w)
{
    free(w->values);
    free(w->layout);
    free(w->scratch);
    free(w->out);
    free(w->sizes);
    *w = (struct block_writer){0};
}

void block_writer_add(struct block_writer *w, const void *value, size_t size)
{
    if (size > 0)
        memcpy(w->values + w->used, value, size);
    w->sizes[w->count++] = (uint32_t)size;
    w->used += size;
}

int block_writer_is_full(const struct block_writer *w)
{
    return w->used >= w->target || w->count == block_records_max(w->value_size, w->target);
}

/* Lay out the values as they are to be packed; returns the length. */
static size_t block_lay_out(const struct block_writer *w)
{
    if (w->value_size >= 0 && w->count < BLOCK_PLANES_MIN) {
        memcpy(w->layout, w->values, w->used);
        return w->used;
    }
    if (w->value_size >= 0) {
        planes_split(w->values, w->count, (size_t)w->value_size, w->layout, w->scratch);
        return planes_length(w->count, (size_t)w->value_size);
    }
    uint8_t *p = w->layout;
    for (uint32_t i = 0; i < w->count; i++)
        p = put_varint(p, w->sizes[i]);
    memcpy(p, w->values, w->used);
    return (size_t)(p - w->layout) + w->used;
}

/* Try to pack the payload into place; returns its length, or 0 if that does not help. `plain` is what it is without. */
static size_t block_pack(struct block_writer *w, size_t unpacked, size_t plain)
{
    size_t packed = w->out_capacity - BLOCK_HEADER_SIZE;

    if (w->codec != CODEC_SNAPPY || plain == 0 ||
        snappy_compress((const char *)w->layout, unpacked, (char *)w->out + BLOCK_HEADER_SIZE, &packed) != SNAPPY_OK)
        return 0;
    return packed < plain - (plain >> BLOCK_MIN_GAIN_SHIFT) ? packed : 0;
}

size_t block_writer_close(struct block_writer *w, const struct block_id *id, uint32_t seed)
{
    int is_variable = w->value_size < 0;
    uint8_t flags = is_variable ? BLOCK_FLAG_VARIABLE : 0;
    size_t unpacked = is_variable || w->codec == CODEC_SNAPPY ? block_lay_out(w) : w->used;
    size_t plain = is_variable ? unpacked : w->used, packed = block_pack(w, unpacked, plain);

    if (packed > 0) {
        flags |= BLOCK_FLAG_SNAPPY | (is_variable || w->count < BLOCK_PLANES_MIN ? 0 : BLOCK_FLAG_PLANES);
    } else {
        packed = unpacked = plain;
        memcpy(w->out + BLOCK_HEADER_SIZE, is_variable ? w->layout : w->values, plain);
    }
    w->out[4] = FORMAT_BLOCK;
    w->out[5] = flags;
    put_u16(w->out + 6, (uint16_t)w->count);
    put_u32(w->out + 8, (uint32_t)packed);
    put_u32(w->out + 12, (uint32_t)unpacked);
    put_u32(w->out + 16, id->partition);
    put_u32(w->out + 20, id->epoch);
    put_u32(w->out + 24, id->run);
    put_u32(w->out + 28, id->block);
    log_seal(seed, w->out, BLOCK_HEADER_SIZE + packed);
    w->count = 0;
    w->used = 0;
    return BLOCK_HEADER_SIZE + packed;
}

void block_fini(struct block *b)
{
    buffer_fini(&b->values);
    buffer_fini(&b->ends);
    buffer_fini(&b->scratch);
    buffer_fini(&b->planes);
}

/* The sizes in front of the values become ends; returns a text on what is wrong, or NULL. */
static const char *block_decode_variable(struct block *b, const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    uint32_t *ends = (uint32_t *)(void *)b->ends.bytes;
    uint64_t total = 0, size;

    for (uint32_t i = 0; i < b->count; i++) {
        p = get_varint(p, end, &size);
        if (!p || size > BLOCK_VALUE_MAX)
            return "a value's size is wrong";
        total += size;
        if (total > BLOCK_PAYLOAD_MAX)
            return "the values are too long";
        ends[i] = (uint32_t)total;
    }
    if ((uint64_t)(end - p) != total)
        return "the values' sizes do not add up";
    memcpy(b->values.bytes, p, total);
    return NULL;
}

static const char *block_check_header(const uint8_t *h, size_t n, const struct block_id *id, int64_t value_size,
                                      uint32_t count)
{
    uint64_t packed = get_u32(h + 8), unpacked = get_u32(h + 12);

    if (h[4] != FORMAT_BLOCK || (h[5] & ~BLOCK_FLAGS_KNOWN) != 0)
        return "this is no block of a kind known here";
    if (get_u32(h + 16) != id->partition || get_u32(h + 20) != id->epoch || get_u32(h + 24) != id->run ||
        get_u32(h + 28) != id->block)
        return "the block belongs elsewhere";
    if (packed != n - BLOCK_HEADER_SIZE || unpacked > BLOCK_PAYLOAD_MAX || get_u16(h + 6) != count)
        return "the block's sizes are not those of the index";
    if (!(h[5] & BLOCK_FLAG_SNAPPY) && packed != unpacked)
        return "the block's sizes do not agree";
    if ((value_size < 0) != ((h[5] & BLOCK_FLAG_VARIABLE) != 0) || (value_size < 0 && (h[5] & BLOCK_FLAG_PLANES)))
        return "the block's layout is not the directory's";
    if (value_size >= 0 && unpacked != (h[5] & BLOCK_FLAG_PLANES ? planes_length(count, (size_t)value_size)
                                                                 : (uint64_t)value_size * count))
        return "the block's values are not of the directory's size";
    return NULL;
}

static const char *block_unpack(struct block *b, const uint8_t *payload, size_t packed, size_t unpacked, uint8_t flags)
{
    const uint8_t *p = payload;

    if (flags & BLOCK_FLAG_SNAPPY) {
        size_t length = unpacked;
        if (snappy_uncompressed_length((const char *)payload, packed, &length) != SNAPPY_OK || length != unpacked ||
            snappy_uncompress((const char *)payload, packed, (char *)b->scratch.bytes, &length) != SNAPPY_OK)
            return "the block cannot be unpacked";
        p = b->scratch.bytes;
    }
    if (flags & BLOCK_FLAG_VARIABLE)
        return block_decode_variable(b, p, unpacked);
    if (flags & BLOCK_FLAG_PLANES) {
        planes_join(p, b->count, (size_t)b->value_size, b->values.bytes, b->planes.bytes);
    } else {
        memcpy(b->values.bytes, p, unpacked);
    }
    return NULL;
}

int block_decode(struct block *b, uint8_t *bytes, size_t n, const struct block_id *id, uint32_t seed,
                 int64_t value_size, uint32_t count, const char *path, uint64_t offset, struct error *e)
{
    if (n < BLOCK_HEADER_SIZE || !log_is_sealed(seed, bytes, n))
        return error_damaged(e, path, offset, "a block of %zu bytes does not match its checksum", n);
    const char *wrong = block_check_header(bytes, n, id, value_size, count);
    if (wrong)
        return error_damaged(e, path, offset, "%s", wrong);
    size_t unpacked = get_u32(bytes + 12);
    int status = buffer_reserve(&b->values, unpacked + 1, "a block", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&b->scratch, unpacked + 1, "a block", e);
    if (status == DELTAFS_OK && (bytes[5] & BLOCK_FLAG_PLANES))
        status = buffer_reserve(&b->planes, planes_scratch(count, (size_t)value_size) + 1, "a block", e);
    if (status == DELTAFS_OK && value_size < 0)
        status = buffer_reserve(&b->ends, 4 * (size_t)count, "a block", e);
    if (status != DELTAFS_OK)
        return status;
    b->count = count;
    b->value_size = value_size;
    wrong = block_unpack(b, bytes + BLOCK_HEADER_SIZE, n - BLOCK_HEADER_SIZE, unpacked, bytes[5]);
    return wrong ? error_damaged(e, path, offset, "%s", wrong) : DELTAFS_OK;
}
