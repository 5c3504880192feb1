/* Values of one size are laid out in bit planes before they are packed: a schema's columns come out of that without
 * knowing the schema. Where packing does not help, the values stand as they are. */
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/short_copy.h"
#include "directory/format/block.h"
#include "directory/format/pack.h"
#include "directory/format/directory_format.h"
#include "directory/format/noise.h"
#include "directory/format/planes.h"
#include "directory/format/strip_pack.h"

/* Fewer values than this are packed as they stand: planes would be filled up with more zeros than bits. */
#define BLOCK_PLANES_MIN 16

#define BLOCK_GROUP   32 /* values are laid out in planes fastest by that many */
#define BLOCK_WELL    64 /* and pack well from that many on: */
#define BLOCK_STRETCH 4  /* for these a block may be longer than asked for by this factor */

#define BLOCK_AHEAD 64 /* values that it is to fetch before they are needed, */
#define BLOCK_NEAR  2  /* into its second cache: more of them can be on their way there than to the first */

#define BLOCK_TABLE_MAX (STRIPS_COUNT_MAX * BLOCK_TABLE_ENTRY)

#define BLOCK_SIZE_BYTES 3 /* of the varint of a value's size, at most */

/* A packed payload must be shorter by this share, or reading it is not worth the unpacking. */
#define BLOCK_MIN_GAIN_SHIFT 5

uint32_t block_records(int64_t value_size, size_t target)
{
    size_t n = value_size > 0 ? target / (size_t)value_size : target;

    if (n < 1)
        n = 1;
    if (n < BLOCK_WELL && value_size > 0 && BLOCK_WELL * (size_t)value_size <= BLOCK_STRETCH * target)
        n = BLOCK_WELL;
    if (n > BLOCK_GROUP)
        n = (n + BLOCK_GROUP - 1) / BLOCK_GROUP * BLOCK_GROUP;
    return n > BLOCK_RECORDS_MAX ? BLOCK_RECORDS_MAX : (uint32_t)n;
}

/* What a block takes of each buffer at most. */
struct block_room {
    size_t values, sizes, layout, out;
};

static struct block_room block_room(int64_t value_size, size_t target)
{
    uint32_t n = block_records(value_size, target);
    size_t size = (size_t)value_size;
    struct block_room r = {.sizes = 4 * (size_t)n};

    if (value_size < 0) {
        /* The last value may stand out, and each has a size in front of all. */
        r.values = target + BLOCK_VALUE_MAX + VALUES_TAG_SIZE + PLANES_SLACK;
        r.layout = r.values + BLOCK_SIZE_BYTES * (size_t)n;
    } else {
        r.values = n * size + PLANES_SLACK;
        r.layout = n < BLOCK_PLANES_MIN ? n * size : planes_length(n, size);
    }
    r.out = BLOCK_HEADER_SIZE + BLOCK_TABLE_MAX + pack_max(r.layout) + VALUES_ALIGN;
    return r;
}

size_t block_writer_memory(int64_t value_size, size_t target)
{
    struct block_room r = block_room(value_size, target);

    return r.values + r.sizes + r.layout + r.out;
}

size_t block_writer_out_max(int64_t value_size, size_t target)
{
    return block_room(value_size, target).out;
}

int block_writer_init(struct block_writer *w, int64_t value_size, const struct strips *strips, enum option_codec codec,
                      size_t target, struct memory *memory, struct error *e)
{
    struct block_room r = block_room(value_size, target);

    *w = (struct block_writer){
        .value_size = value_size, .codec = codec, .target = target, .most = block_records(value_size, target)};
    if (strips)
        w->strips = *strips;
    w->values.memory = w->sizes.memory = w->layout.memory = w->out.memory = memory;
    struct buffer *const buffers[] = {&w->values, &w->sizes, &w->layout, &w->out};
    const size_t sizes[] = {r.values, r.sizes, r.layout, r.out};
    int status = DELTAFS_OK;
    for (int i = 0; i < 4 && status == DELTAFS_OK; i++)
        status = buffer_reserve(buffers[i], sizes[i], "a block", e);
    return status;
}

void block_writer_fini(struct block_writer *w)
{
    buffer_fini(&w->values);
    buffer_fini(&w->sizes);
    buffer_fini(&w->layout);
    buffer_fini(&w->out);
}

void block_writer_clear(struct block_writer *w)
{
    w->count = 0;
    w->used = 0;
    w->source = NULL;
}

int block_writer_add(struct block_writer *w, const uint8_t *tag, const void *value, size_t size, struct error *e)
{
    size_t whole = size + (tag != NULL);
    int status = buffer_reserve(&w->values, w->used + whole + PLANES_SLACK, "a block", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->sizes, 4 * ((size_t)w->count + 1), "a block", e);
    if (status != DELTAFS_OK)
        return status;
    put_u32(w->sizes.bytes + 4 * (size_t)w->count++, (uint32_t)whole);
    if (tag)
        w->values.bytes[w->used] = *tag;
    if (size > 0)
        memcpy(w->values.bytes + w->used + whole - size, value, size);
    w->used += whole;
    return DELTAFS_OK;
}

int block_writer_is_full(const struct block_writer *w)
{
    return w->count == w->most || (w->value_size < 0 && w->used >= w->target);
}

/* Have the processor fetch a value. Always inlined, or some compilers take it for a function without an effect. */
__attribute__((always_inline)) static inline void block_prefetch(const uint8_t *value, size_t size)
{
    for (size_t at = 0; at < size; at += CACHE_LINE)
        __builtin_prefetch(value + at, 0, BLOCK_NEAR);
    __builtin_prefetch(value + (size > 0 ? size - 1 : 0), 0, BLOCK_NEAR);
}

/* The values lie anywhere, and reading one takes as long as copying many. */
static void block_gather(struct block_writer *w, const uint8_t *source, const uint32_t *order, uint32_t n,
                         uint64_t following)
{
    size_t size = (size_t)w->value_size;
    uint8_t *to = w->values.bytes;

    for (uint32_t i = 0; i < n; i++, to += size) {
        if (i + BLOCK_AHEAD < n + following)
            block_prefetch(source + order[i + BLOCK_AHEAD] * size, size);
        copy_short(to, source + order[i] * size, size);
    }
}

void block_writer_set(struct block_writer *w, const uint8_t *source, const uint32_t *order, uint32_t n,
                      uint64_t following)
{
    if (order)
        block_gather(w, source, order, n, following);
    w->source = order ? NULL : source;
    w->count = n;
    w->used = n * (size_t)w->value_size;
}

/* The values one after the other. */
static const uint8_t *block_values(const struct block_writer *w)
{
    return w->source ? w->source : w->values.bytes;
}

/* Lay out the values as they are to be packed; *length gets the layout's bytes. */
static int block_lay_out(struct block_writer *w, size_t *length, struct error *e)
{
    size_t size = (size_t)w->value_size;
    int is_variable = w->value_size < 0, is_planes = !is_variable && w->count >= BLOCK_PLANES_MIN;
    size_t room =
        is_planes ? planes_length(w->count, size) : w->used + (is_variable ? BLOCK_SIZE_BYTES * w->count : 0u);
    int status = buffer_reserve(&w->layout, room, "a block", e);

    if (status != DELTAFS_OK)
        return status;
    uint8_t *p = w->layout.bytes;
    if (is_planes) {
        planes_split(block_values(w), w->count, size, p);
        *length = room;
        return DELTAFS_OK;
    }
    for (uint32_t i = 0; is_variable && i < w->count; i++)
        p = put_varint(p, get_u32(w->sizes.bytes + 4 * (size_t)i));
    if (w->used > 0)
        memcpy(p, block_values(w), w->used);
    *length = (size_t)(p - w->layout.bytes) + w->used;
    return DELTAFS_OK;
}

/* Pack each strip by itself, if that helps it. */
static size_t block_pack_strips(const struct block_writer *w, const struct noise *noise, size_t plain, uint8_t *payload)
{
    const struct strips *strips = &w->strips;
    size_t at = 0;
    uint8_t *table = payload, *to = table + BLOCK_TABLE_ENTRY * strips->count;

    for (uint32_t i = 0; i < strips->count; i++, table += BLOCK_TABLE_ENTRY) {
        size_t size = strips->bytes[i];
        uint32_t entry =
            strip_pack(w->layout.bytes + planes_length(w->count, at), w->count, size, noise_front(noise, at, size), to);
        put_u32(table, entry);
        at += size;
        to += BLOCK_STRIP_LENGTH(entry);
    }
    size_t all = (size_t)(to - payload);
    return all < plain - (plain >> BLOCK_MIN_GAIN_SHIFT) ? all : 0;
}

/* Whether to try to pack the payload; chooses the values to look at. */
static int block_may_pack(const struct block_writer *w, struct noise *noise)
{
    noise->size = 0;
    if (w->codec == CODEC_SNAPPY && w->value_size >= 0)
        noise_choose(noise, block_values(w), w->count, (size_t)w->value_size);
    return w->codec == CODEC_SNAPPY && !noise_is_all(noise);
}

/* Pack the payload to where it is to stand; returns its length, or 0 if that does not help. `plain` is what it is
 * without. */
static size_t block_pack(const struct block_writer *w, const struct noise *noise, uint8_t flags, size_t unpacked,
                         size_t plain, uint8_t *payload)
{
    if (plain == 0)
        return 0;
    if (flags & BLOCK_FLAG_STRIPS)
        return block_pack_strips(w, noise, plain, payload);
    size_t packed = pack_compress(w->layout.bytes, unpacked, 0, payload);
    return packed < plain - (plain >> BLOCK_MIN_GAIN_SHIFT) ? packed : 0;
}

/* Of a block that is packed. */
static uint8_t block_flags(const struct block_writer *w)
{
    if (w->value_size < 0)
        return BLOCK_FLAG_VARIABLE | BLOCK_FLAG_SNAPPY;
    if (w->count < BLOCK_PLANES_MIN)
        return BLOCK_FLAG_SNAPPY;
    return w->strips.count > 0 ? BLOCK_FLAG_STRIPS : BLOCK_FLAG_PLANES | BLOCK_FLAG_SNAPPY;
}

/* How much of a block the checksum in front covers: strips have their own, in the table. */
static size_t block_sealed(uint8_t flags, const struct strips *strips, size_t length)
{
    return flags & BLOCK_FLAG_STRIPS ? BLOCK_HEADER_SIZE + BLOCK_TABLE_ENTRY * strips->count : length;
}

static void block_seal_strips(const struct strips *strips, uint32_t seed, uint8_t *table)
{
    const uint8_t *strip = table + BLOCK_TABLE_ENTRY * strips->count;

    for (uint32_t i = 0; i < strips->count; i++, table += BLOCK_TABLE_ENTRY) {
        size_t n = BLOCK_STRIP_LENGTH(get_u32(table));
        put_u32(table + 4, crc32c(seed, strip, n));
        strip += n;
    }
}

int block_writer_close(struct block_writer *w, const struct block_id *id, uint32_t seed, size_t at, size_t *length,
                       struct error *e)
{
    struct noise noise;
    int is_variable = w->value_size < 0, may_pack = block_may_pack(w, &noise);
    uint8_t flags = block_flags(w);
    size_t unpacked = w->used;
    int status = DELTAFS_OK;

    if (is_variable || may_pack)
        status = block_lay_out(w, &unpacked, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->out, at + BLOCK_HEADER_SIZE + BLOCK_TABLE_MAX + pack_max(unpacked) + VALUES_ALIGN,
                                "a block", e);
    if (status != DELTAFS_OK)
        return status;
    size_t plain = is_variable ? unpacked : w->used;
    uint8_t *h = w->out.bytes + at;
    size_t packed = may_pack ? block_pack(w, &noise, flags, unpacked, plain, h + BLOCK_HEADER_SIZE) : 0;
    if (packed == 0) {
        flags &= BLOCK_FLAG_VARIABLE;
        packed = unpacked = plain;
        if (plain > 0)
            memcpy(h + BLOCK_HEADER_SIZE, is_variable ? w->layout.bytes : block_values(w), plain);
    }
    h[4] = id->is_values ? FORMAT_VALUES : FORMAT_BLOCK;
    h[5] = flags;
    put_u16(h + 6, (uint16_t)w->count);
    put_u32(h + 8, (uint32_t)packed);
    put_u32(h + 12, (uint32_t)unpacked);
    put_u32(h + 16, id->partition);
    put_u32(h + 20, id->epoch);
    put_u32(h + 24, id->run);
    put_u32(h + 28, id->block);
    *length = BLOCK_HEADER_SIZE + packed;
    for (; id->is_values && *length % VALUES_ALIGN != 0; ++*length)
        h[*length] = 0;
    if (flags & BLOCK_FLAG_STRIPS)
        block_seal_strips(&w->strips, seed, h + BLOCK_HEADER_SIZE);
    log_seal(seed, h, block_sealed(flags, &w->strips, *length));
    block_writer_clear(w);
    return DELTAFS_OK;
}

void block_fini(struct block *b)
{
    buffer_fini(&b->values);
    buffer_fini(&b->ends);
    buffer_fini(&b->payload);
}

/* The sizes in front of the values, of `most` bytes each, become ends; returns a text on what is wrong, or NULL. */
static const char *block_decode_variable(struct block *b, const uint8_t *p, size_t n, size_t most)
{
    const uint8_t *end = p + n;
    uint32_t *ends = (uint32_t *)(void *)b->ends.bytes;
    uint64_t total = 0, size;

    for (uint32_t i = 0; i < b->count; i++) {
        p = get_varint(p, end, &size);
        if (!p || size > most)
            return "a value's size is wrong";
        total += size;
        if (total > BLOCK_PAYLOAD_MAX)
            return "the values are too long";
        ends[i] = (uint32_t)total;
    }
    if ((uint64_t)(end - p) != total)
        return "the values' sizes do not add up";
    b->plain = p;
    return NULL;
}

static const char *block_check_header(const uint8_t *h, size_t n, const struct block_id *id, const struct block_of *of,
                                      uint32_t count)
{
    int64_t value_size = of->value_size;
    uint8_t layout = h[5] & (BLOCK_FLAG_PLANES | BLOCK_FLAG_STRIPS);
    uint64_t packed = get_u32(h + 8), unpacked = get_u32(h + 12);

    if (h[4] != (id->is_values ? FORMAT_VALUES : FORMAT_BLOCK) || (h[5] & ~BLOCK_FLAGS_KNOWN) != 0)
        return "this is not a known kind of block";
    if (get_u32(h + 16) != id->partition || get_u32(h + 20) != id->epoch || get_u32(h + 24) != id->run ||
        get_u32(h + 28) != id->block)
        return "the block belongs elsewhere";
    if (packed != n - BLOCK_HEADER_SIZE || unpacked > BLOCK_PAYLOAD_MAX || get_u16(h + 6) != count)
        return "the block's sizes are not those of the index";
    if (!(h[5] & (BLOCK_FLAG_SNAPPY | BLOCK_FLAG_STRIPS)) && packed != unpacked)
        return "the block's sizes do not agree";
    if ((value_size < 0) != ((h[5] & BLOCK_FLAG_VARIABLE) != 0) || (value_size < 0 && layout != 0) ||
        ((h[5] & BLOCK_FLAG_STRIPS) && (h[5] != BLOCK_FLAG_STRIPS || !of->strips || of->strips->count == 0)))
        return "the block's layout is not the directory's";
    if (value_size >= 0 &&
        unpacked != (layout ? planes_length(count, (size_t)value_size) : (uint64_t)value_size * count))
        return "the block's values are not of the directory's size";
    return NULL;
}

/* Find the strips by their table; returns a text on what is wrong, or NULL. */
static const char *block_find_strips(struct block *b, const uint8_t *payload, size_t packed)
{
    size_t at = BLOCK_TABLE_ENTRY * b->strips->count;
    const uint8_t *entry = payload;

    for (uint32_t i = 0; i < b->strips->count && at <= packed; i++, entry += BLOCK_TABLE_ENTRY) {
        struct block_strip *strip = &b->strip[i];
        *strip = (struct block_strip){.bytes = payload + at, .entry = get_u32(entry), .checksum = get_u32(entry + 4)};
        at += BLOCK_STRIP_LENGTH(strip->entry);
        if (at > packed || !strip_may_be(strip->entry, b->count, b->strips->bytes[i]))
            return "a strip of the block has a wrong length";
    }
    b->end = payload + packed;
    return at == packed ? NULL : "the lengths of the block's strips do not add up";
}

static int is_any_wanted(const uint8_t *wanted, size_t n)
{
    int is_any = !wanted;

    for (size_t i = 0; i < n && !is_any; i++)
        is_any = wanted[i];
    return is_any;
}

/* The planes of strip `i`, `n` bytes: where they are stored, or at `to`. */
static int block_open_strip(struct block *b, uint32_t i, uint8_t *to, size_t n, struct error *e)
{
    struct block_strip *strip = &b->strip[i];
    size_t length = BLOCK_STRIP_LENGTH(strip->entry);

    if (crc32c(b->seed, strip->bytes, length) != strip->checksum)
        return error_damaged(e, b->path, b->offset, "strip %u of the block does not match its checksum", i);
    if (length == n && !(strip->entry & BLOCK_STRIP_FLAGS) && b->end - (strip->bytes + n) >= PLANES_SLACK)
        strip->planes = strip->bytes;
    else if (strip_unpack(strip->entry, strip->bytes, b->count, b->strips->bytes[i], to) == 0)
        strip->planes = to;
    else
        return error_damaged(e, b->path, b->offset, "strip %u of the block cannot be unpacked", i);
    return DELTAFS_OK;
}

size_t block_head(const struct block_of *of)
{
    return BLOCK_HEADER_SIZE + (of->strips ? BLOCK_TABLE_ENTRY * of->strips->count : 0);
}

uint32_t block_parts(const uint8_t *head, size_t length, const struct block_of *of,
                     struct block_part parts[STRIPS_COUNT_MAX])
{
    const uint8_t *entry = head + BLOCK_HEADER_SIZE, *wanted = of->wanted;
    size_t at = block_head(of), end = 0;
    uint32_t n = 0;

    parts[0] = (struct block_part){at, length - at};
    if (!wanted || !(head[5] & BLOCK_FLAG_STRIPS))
        return 1;
    for (uint32_t i = 0; i < of->strips->count; i++, entry += BLOCK_TABLE_ENTRY) {
        size_t size = BLOCK_STRIP_LENGTH(get_u32(entry)), left = length - at;
        size = size < left ? size : left; /* of a damaged table */
        if (is_any_wanted(wanted, of->strips->bytes[i])) {
            if (n == 0 || at != end)
                parts[n++] = (struct block_part){at, 0};
            end = at + size;
            parts[n - 1].length = end - parts[n - 1].at;
        }
        at += size;
        wanted += of->strips->bytes[i];
    }
    return n;
}

int block_want(struct block *b, const uint8_t *wanted, struct error *e)
{
    size_t planes = planes_length(b->count, 1);
    uint8_t *to = b->payload.bytes;
    int status = DELTAFS_OK;

    for (uint32_t i = 0; b->strips && i < b->strips->count && status == DELTAFS_OK; i++) {
        size_t bytes = b->strips->bytes[i];
        if (!b->strip[i].planes && is_any_wanted(wanted, bytes))
            status = block_open_strip(b, i, to, planes * bytes, e);
        to += planes * bytes;
        wanted += wanted ? bytes : 0;
    }
    return status;
}

/* Let all planes that there are stand together, where b->planes says. */
static void block_settle(struct block *b)
{
    size_t planes = planes_length(b->count, 1);
    uint8_t *to = b->payload.bytes;

    for (uint32_t i = 0; b->strips && i < b->strips->count; i++) {
        size_t n = planes * b->strips->bytes[i];
        if (b->strip[i].planes && b->strip[i].planes != to) {
            memcpy(to, b->strip[i].planes, n);
            b->strip[i].planes = to;
        }
        to += n;
    }
}

static const char *block_unpack(struct block *b, const uint8_t *payload, size_t packed, size_t unpacked, uint8_t flags,
                                size_t most)
{
    const uint8_t *p = payload;

    if (flags & BLOCK_FLAG_STRIPS) {
        b->planes = b->payload.bytes;
        b->plain = NULL;
        return block_find_strips(b, payload, packed);
    }
    if (flags & BLOCK_FLAG_SNAPPY) {
        if (pack_decompress(payload, packed, b->payload.bytes, unpacked) != 0)
            return "the block cannot be unpacked";
        p = b->payload.bytes;
    } else if (flags & BLOCK_FLAG_PLANES) {
        memcpy(b->payload.bytes, payload, packed); /* to have PLANES_SLACK behind it */
        p = b->payload.bytes;
    }
    b->planes = flags & BLOCK_FLAG_PLANES ? p : NULL;
    b->plain = flags & BLOCK_FLAG_PLANES ? NULL : p;
    return flags & BLOCK_FLAG_VARIABLE ? block_decode_variable(b, p, unpacked, most) : NULL;
}

size_t block_values_length(const uint8_t *header)
{
    uint64_t n = BLOCK_HEADER_SIZE + (uint64_t)get_u32(header + 8);

    if (header[4] != FORMAT_VALUES || n > BLOCK_HEADER_SIZE + BLOCK_PAYLOAD_MAX)
        return 0;
    return (size_t)((n + VALUES_ALIGN - 1) / VALUES_ALIGN * VALUES_ALIGN);
}

int block_decode(struct block *b, const uint8_t *bytes, size_t n, const struct block_id *id, uint32_t seed,
                 const struct block_of *of, uint32_t count, const char *path, uint64_t offset, struct error *e)
{
    int64_t value_size = of->value_size;
    size_t length = n;

    if (n >= BLOCK_HEADER_SIZE && id->is_values) {
        length = block_values_length(bytes);
        n = length <= n ? BLOCK_HEADER_SIZE + (size_t)get_u32(bytes + 8) : 0;
        count = get_u16(bytes + 6);
    }
    if (n < BLOCK_HEADER_SIZE || length == 0)
        return error_damaged(e, path, offset, "there is no block");
    size_t sealed = of->strips ? block_sealed(bytes[5], of->strips, length) : length;
    if (sealed > length || !log_is_sealed(seed, bytes, sealed))
        return error_damaged(e, path, offset, "a block of %zu bytes does not match its checksum", length);
    const char *wrong = block_check_header(bytes, n, id, of, count);
    if (wrong)
        return error_damaged(e, path, offset, "%s", wrong);
    size_t unpacked = get_u32(bytes + 12);
    int status = DELTAFS_OK;
    uint8_t is_in_planes = bytes[5] & (BLOCK_FLAG_PLANES | BLOCK_FLAG_STRIPS);
    if (is_in_planes || (bytes[5] & BLOCK_FLAG_SNAPPY))
        status = buffer_reserve(&b->payload, unpacked + PLANES_SLACK, "a block", e);
    if (status == DELTAFS_OK && is_in_planes)
        status = buffer_reserve(&b->values, (size_t)value_size + 1, "a block", e);
    if (status == DELTAFS_OK && value_size < 0)
        status = buffer_reserve(&b->ends, 4 * (size_t)count, "a block", e);
    if (status != DELTAFS_OK)
        return status;
    b->count = count;
    b->value_size = value_size;
    b->strips = bytes[5] & BLOCK_FLAG_STRIPS ? of->strips : NULL;
    b->seed = seed;
    b->path = path;
    b->offset = offset;
    wrong = block_unpack(b, bytes + BLOCK_HEADER_SIZE, n - BLOCK_HEADER_SIZE, unpacked, bytes[5],
                         BLOCK_VALUE_MAX + (id->is_values ? VALUES_TAG_SIZE : 0));
    return wrong ? error_damaged(e, path, offset, "%s", wrong) : block_want(b, of->wanted, e);
}

int block_join(struct block *b, const uint8_t *wanted, struct error *e)
{
    if (b->plain)
        return DELTAFS_OK;
    int status = buffer_reserve(&b->values, b->count * (size_t)b->value_size + 1, "a block", e);
    if (status == DELTAFS_OK) {
        block_settle(b);
        planes_join(b->planes, b->count, (size_t)b->value_size, wanted, b->values.bytes);
        b->plain = b->values.bytes;
    }
    return status;
}

/* The planes of the `size` bytes from `at` on in each value. */
static const uint8_t *block_planes(struct block *b, size_t at, size_t size)
{
    size_t start = 0;

    for (uint32_t i = 0; b->strips && i < b->strips->count; start += b->strips->bytes[i++])
        if (at >= start && at + size <= start + b->strips->bytes[i])
            return b->strip[i].planes + planes_length(b->count, at - start);
    block_settle(b);
    return b->planes + planes_length(b->count, at);
}

const uint8_t *block_column(struct block *b, size_t at, size_t size, uint8_t *to, size_t *stride)
{
    *stride = b->plain ? (size_t)b->value_size : size;
    if (b->plain)
        return b->plain + at;
    planes_join(block_planes(b, at, size), b->count, size, NULL, to);
    return to;
}

const uint8_t *block_value(struct block *b, uint32_t i, size_t *size)
{
    if (b->value_size < 0) {
        const uint32_t *ends = (const uint32_t *)(const void *)b->ends.bytes;
        uint32_t start = i > 0 ? ends[i - 1] : 0;
        *size = ends[i] - start;
        return b->plain + start;
    }
    *size = (size_t)b->value_size;
    if (b->plain)
        return b->plain + i * *size;
    uint8_t *to = b->values.bytes;
    for (uint32_t k = 0; b->strips && k < b->strips->count; to += b->strips->bytes[k++])
        if (b->strip[k].planes)
            planes_get(b->strip[k].planes, b->count, b->strips->bytes[k], i, to);
    if (!b->strips)
        planes_get(b->planes, b->count, *size, i, to);
    return b->values.bytes;
}
