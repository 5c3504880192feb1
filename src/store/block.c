/* Values of one size are laid out in byte planes (byte 0 of every record, then byte 1, ...): a plane of sign and
 * exponent bytes, or of the upper bytes of an integer, is what Snappy can pack in numbers, and a schema's columns come
 * out of it without knowing the schema. Where packing does not help, the values stand as they are. */
#include <stdlib.h>
#include <snappy-c.h>
#include "base/coding.h"
#include "store/block.h"
#include "store/store_format.h"

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

static size_t block_payload_capacity(int64_t value_size, size_t target)
{
    size_t n = block_values_capacity(value_size, target);

    return value_size < 0 ? n + 3 * (size_t)block_records_max(value_size, target) : n;
}

size_t block_writer_memory(int64_t value_size, size_t target)
{
    size_t payload = block_payload_capacity(value_size, target);

    return block_values_capacity(value_size, target) + payload + BLOCK_HEADER_SIZE +
           snappy_max_compressed_length(payload) + 4 * (size_t)block_records_max(value_size, target);
}

int block_writer_init(struct block_writer *w, int64_t value_size, enum option_codec codec, size_t target,
                      struct error *e)
{
    size_t payload = block_payload_capacity(value_size, target);

    *w = (struct block_writer){.value_size = value_size, .codec = codec, .target = target};
    w->values = malloc(block_values_capacity(value_size, target) + 1);
    w->planes = malloc(payload + 1);
    w->out_capacity = BLOCK_HEADER_SIZE + snappy_max_compressed_length(payload);
    w->out = malloc(w->out_capacity);
    w->sizes = malloc(4 * (size_t)block_records_max(value_size, target));
    if (!w->values || !w->planes || !w->out || !w->sizes) {
        block_writer_fini(w);
        return error_no_memory(e, block_writer_memory(value_size, target), "a block");
    }
    return DELTAFS_OK;
}

void block_writer_fini(struct block_writer *w)
{
    free(w->values);
    free(w->planes);
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
    if (w->value_size >= 0) {
        size_t n = w->count, size = (size_t)w->value_size;
        for (size_t k = 0; k < size; k++)
            for (size_t i = 0; i < n; i++)
                w->planes[k * n + i] = w->values[i * size + k];
        return w->used;
    }
    uint8_t *p = w->planes;
    for (uint32_t i = 0; i < w->count; i++)
        p = put_varint(p, w->sizes[i]);
    memcpy(p, w->values, w->used);
    return (size_t)(p - w->planes) + w->used;
}

size_t block_writer_close(struct block_writer *w, const struct block_id *id, uint32_t seed)
{
    uint8_t *payload = w->out + BLOCK_HEADER_SIZE;
    size_t unpacked = block_lay_out(w), packed = w->out_capacity - BLOCK_HEADER_SIZE;
    uint8_t flags = w->value_size < 0 ? BLOCK_FLAG_VARIABLE : 0;

    if (w->codec == CODEC_SNAPPY && unpacked > 0 &&
        snappy_compress((const char *)w->planes, unpacked, (char *)payload, &packed) == SNAPPY_OK &&
        packed < unpacked - (unpacked >> BLOCK_MIN_GAIN_SHIFT)) {
        flags |= BLOCK_FLAG_SNAPPY | (w->value_size < 0 ? 0 : BLOCK_FLAG_PLANES);
    } else {
        packed = unpacked;
        memcpy(payload, w->value_size < 0 ? w->planes : w->values, unpacked);
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
    if (value_size >= 0 && unpacked != (uint64_t)value_size * count)
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
        size_t n = b->count, size = (size_t)b->value_size;
        for (size_t k = 0; k < size; k++)
            for (size_t i = 0; i < n; i++)
                b->values.bytes[i * size + k] = p[k * n + i];
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
    if (status == DELTAFS_OK && value_size < 0)
        status = buffer_reserve(&b->ends, 4 * (size_t)count, "a block", e);
    if (status != DELTAFS_OK)
        return status;
    b->count = count;
    b->value_size = value_size;
    wrong = block_unpack(b, bytes + BLOCK_HEADER_SIZE, n - BLOCK_HEADER_SIZE, unpacked, bytes[5]);
    return wrong ? error_damaged(e, path, offset, "%s", wrong) : DELTAFS_OK;
}
