/* Elias-Fano (Elias, JACM 1974; Fano, 1971): of n sorted numbers below u, the lower l = log2(u / n) bits of each stand
 * as they are; the upper parts, which rise slowly, stand in unary: number i with the upper part h sets bit h + i. That
 * is 2 + l bits a number, and a number is found by skipping h zeros. */
#include <stdlib.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "directory/format/leaf.h"

/* Functions that count bits exist twice: with the processor's instruction for that, and without. NAME is NAME_by with
 * the one that this processor has. */
#define LEAF_INLINE inline __attribute__((always_inline))
typedef unsigned (*leaf_count_fn)(uint64_t v);
#if defined(__x86_64__)
static LEAF_INLINE unsigned count_bits_popcnt(uint64_t v)
{
    return (unsigned)__builtin_popcountll(v);
}
#define LEAF_COUNTING(linkage, type, name, parameters, ...)                                                            \
    __attribute__((target("popcnt"))) static type name##_popcnt parameters                                             \
    {                                                                                                                  \
        return name##_by(__VA_ARGS__, count_bits_popcnt);                                                              \
    }                                                                                                                  \
    linkage type name parameters                                                                                       \
    {                                                                                                                  \
        return __builtin_cpu_supports("popcnt") ? name##_popcnt(__VA_ARGS__) : name##_by(__VA_ARGS__, count_bits);     \
    }
#else
#define LEAF_COUNTING(linkage, type, name, parameters, ...)                                                            \
    linkage type name parameters                                                                                       \
    {                                                                                                                  \
        return name##_by(__VA_ARGS__, count_bits);                                                                     \
    }
#endif

static unsigned leaf_bits_for(uint64_t v)
{
    return v == 0 ? 0 : 64u - (unsigned)__builtin_clzll(v);
}

static uint64_t leaf_mask(unsigned bits)
{
    return bits == 0 ? 0 : UINT64_MAX >> (64 - bits);
}

static unsigned leaf_low_bits(uint64_t universe, uint32_t count)
{
    uint64_t gap = universe / count;

    return gap == 0 ? 0 : leaf_bits_for(gap) - 1;
}

/* `bits` bits from bit `at`; up to 9 bytes from the one `at` is in are touched. */
static uint64_t leaf_get_bits(const uint8_t *p, uint64_t at, unsigned bits)
{
    unsigned shift = (unsigned)(at & 7);

    p += at >> 3;
    uint64_t v = get_u64(p) >> shift;
    if (shift + bits > 64)
        v |= (uint64_t)p[8] << (64 - shift);
    return v & leaf_mask(bits);
}

/* Numbers of less than 64 bits, one behind the other. */
struct leaf_bits {
    uint8_t *at; /* where the next 64 bits go, */
    uint64_t word;
    unsigned used; /* of which there are so many, below 64 */
};

static inline void leaf_bits_put(struct leaf_bits *b, unsigned bits, uint64_t v)
{
    b->word |= v << b->used;
    b->used += bits;
    if (b->used < 64)
        return;
    put_u64(b->at, b->word);
    b->at += sizeof b->word;
    b->used -= 64;
    b->word = b->used > 0 ? v >> (bits - b->used) : 0;
}

/* Only the bytes that have bits are written. */
static void leaf_bits_end(struct leaf_bits *b)
{
    for (; b->used > 0; b->word >>= 8, b->used -= b->used < 8 ? b->used : 8)
        *b->at++ = (uint8_t)b->word;
}

static uint64_t leaf_bytes(uint64_t bits)
{
    return bits / 8 + (bits % 8 != 0);
}

/* Take `n` records of the cursor's run, and return how many blocks they touch. */
static uint32_t leaf_blocks_of(const struct run_cursor *c, uint64_t n)
{
    uint32_t blocks = 0;
    uint64_t skip = c->skip;

    for (uint32_t b = c->block; n > 0; b++, blocks++) {
        uint64_t here = c->run->blocks[b].count - skip;
        n -= here < n ? here : n;
        skip = 0;
    }
    return blocks;
}

/* The run table's row of one run, and the cursor moved over its records. Returns the byte behind. */
static uint8_t *leaf_put_run(uint8_t *p, struct run_cursor *c, uint64_t n, uint32_t previous)
{
    uint32_t blocks = leaf_blocks_of(c, n);

    p = put_varint(p, c->run->number - previous);
    p = put_varint(p, c->run->first_block + c->block);
    p = put_varint(p, c->skip);
    p = put_varint(p, c->offset);
    p = put_varint(p, blocks);
    for (uint32_t b = c->block; b < c->block + blocks; b++) {
        p = put_varint(p, c->run->blocks[b].count);
        p = put_varint(p, c->run->blocks[b].length);
    }
    while (n > 0) {
        uint64_t here = c->run->blocks[c->block].count - c->skip;
        if (n < here) {
            c->skip += (uint32_t)n;
            break;
        }
        n -= here;
        c->offset += c->run->blocks[c->block].length;
        c->block++;
        c->skip = 0;
    }
    return p;
}

/* The keys' upper parts, into zeroed bytes. Up to 7 bytes behind them are written, too. */
static void leaf_put_upper(uint8_t *upper, const struct leaf_input *in, unsigned low_bits)
{
    uint64_t word = 0, at = 0; /* the 64 bits that are collected, and their number */

    for (uint32_t i = 0; i < in->count; i++) {
        uint64_t bit = ((in->keys[i] - in->keys[0]) >> low_bits) + i;
        if (bit / 64 != at) {
            put_u64(upper + 8 * at, word);
            word = 0;
            at = bit / 64;
        }
        word |= UINT64_C(1) << bit % 64;
    }
    put_u64(upper + 8 * at, word);
}

static void leaf_put_lower(uint8_t *lower, const struct leaf_input *in, unsigned low_bits)
{
    struct leaf_bits b = {.at = lower};

    for (uint32_t i = 0; i < in->count && low_bits > 0; i++)
        leaf_bits_put(&b, low_bits, (in->keys[i] - in->keys[0]) & leaf_mask(low_bits));
    leaf_bits_end(&b);
}

/* The number in the run table of each record's run. */
static void leaf_put_numbers(uint8_t *numbers, const struct leaf_input *in, unsigned run_bits)
{
    struct leaf_bits b = {.at = numbers};

    for (uint32_t i = 0; i < in->count && run_bits > 0; i++)
        leaf_bits_put(&b, run_bits, in->scratch[in->cursors[i]]);
    leaf_bits_end(&b);
}

/* How many records each cursor has in the leaf goes to in->scratch; returns how many cursors have any. */
static uint32_t leaf_count_runs(const struct leaf_input *in)
{
    uint32_t present = 0;

    if (in->cursor_count == 1) {
        in->scratch[0] = in->count;
        return 1;
    }
    memset(in->scratch, 0, in->cursor_count * sizeof *in->scratch);
    for (uint32_t i = 0; i < in->count; i++)
        present += in->scratch[in->cursors[i]]++ == 0;
    return present;
}

/* The numbers of a leaf's fields, from its records. */
struct leaf_shape {
    unsigned low_bits, run_bits;
    uint64_t upper_bits, upper, lower, runs; /* the last three in bytes */
};

static struct leaf_shape leaf_shape(uint64_t universe, uint32_t count, uint32_t runs, unsigned low_bits)
{
    struct leaf_shape s = {.low_bits = low_bits, .run_bits = leaf_bits_for(runs - 1)};

    s.upper_bits = (universe >> low_bits) + count + 1;
    s.upper = leaf_bytes(s.upper_bits);
    s.lower = leaf_bytes((uint64_t)count * low_bits);
    s.runs = leaf_bytes((uint64_t)count * s.run_bits);
    return s;
}

/* The epochs that are not as expected; returns the byte behind. */
static uint8_t *leaf_put_epochs(uint8_t *p, const struct leaf_input *in)
{
    uint32_t before = 0, expected = 0;

    for (uint32_t i = 0; i < in->count; i++) {
        if (i == 0 || in->keys[i] != in->keys[i - 1])
            expected = 0;
        if (in->epochs[i] != expected) {
            p = put_varint(p, i - before);
            p = put_varint(p, in->epochs[i]);
            before = i;
        }
        expected = in->epochs[i] + 1;
    }
    return p;
}

static void leaf_put_header(uint8_t *h, const struct leaf_id *id, const struct leaf_shape *s, uint8_t flags,
                            size_t length)
{
    h[4] = FORMAT_LEAF;
    h[5] = (uint8_t)s->low_bits;
    h[6] = (uint8_t)s->run_bits;
    h[7] = flags;
    put_u32(h + 8, (uint32_t)length);
    put_u32(h + 12, id->partition);
    put_u32(h + 16, id->epoch);
    put_u32(h + 20, id->segment);
    put_u32(h + 24, id->leaf);
}

int leaf_encode(const struct leaf_input *in, const struct leaf_id *id, uint32_t seed, struct buffer *out,
                size_t *length, struct error *e)
{
    uint64_t first = in->keys[0], last = in->keys[in->count - 1];
    uint32_t n = in->count, present = leaf_count_runs(in);
    struct leaf_shape s = leaf_shape(last - first, n, present, leaf_low_bits(last - first, n));
    size_t bits = (size_t)(s.upper + s.lower + s.runs) + LEAF_SLACK;
    size_t rows = (LEAF_ROW_MAX + LEAF_BLOCK_MAX + (in->epochs ? LEAF_EPOCH_MAX : 0u)) * (size_t)n;
    int status = buffer_reserve(out, LEAF_HEADER_SIZE + rows + bits, "a leaf", e);

    if (status != DELTAFS_OK)
        return status;
    memset(out->bytes, 0, LEAF_HEADER_SIZE);
    uint8_t *table = out->bytes + LEAF_HEADER_SIZE, *p = table;
    uint32_t previous = 0, number = 0;
    for (uint32_t c = 0; c < in->cursor_count; c++) {
        if (in->scratch[c] == 0)
            continue;
        p = leaf_put_run(p, &in->cursor[c], in->scratch[c], previous);
        previous = in->cursor[c].run->number;
        in->scratch[c] = number++; /* from here on: the run's index in the table */
    }
    size_t table_size = (size_t)(p - table);
    memset(p, 0, bits);
    leaf_put_upper(p, in, s.low_bits);
    leaf_put_lower(p + s.upper, in, s.low_bits);
    leaf_put_numbers(p + s.upper + s.lower, in, s.run_bits);
    uint8_t *end = p + s.upper + s.lower + s.runs;
    if (in->epochs)
        end = leaf_put_epochs(end, in);
    *length = (size_t)(end - out->bytes);
    leaf_put_header(out->bytes, id, &s, in->epochs ? in->flags | LEAF_FLAG_EPOCHS : in->flags, *length);
    put_u32(out->bytes + 28, n);
    put_u64(out->bytes + 32, first);
    put_u64(out->bytes + 40, last);
    put_u32(out->bytes + 48, present);
    put_u32(out->bytes + 52, (uint32_t)table_size);
    log_seal(seed, out->bytes, *length);
    return DELTAFS_OK;
}

void leaf_fini(struct leaf *leaf)
{
    buffer_fini(&leaf->runs);
    buffer_fini(&leaf->blocks);
}

static struct leaf_run *leaf_runs(const struct leaf *leaf)
{
    return (struct leaf_run *)(void *)leaf->runs.bytes;
}

static struct leaf_block *leaf_blocks(const struct leaf *leaf)
{
    return (struct leaf_block *)(void *)leaf->blocks.bytes;
}

/* `n` varints into `v`; returns the byte behind, or NULL. */
static const uint8_t *leaf_get_varints(const uint8_t *p, const uint8_t *end, uint64_t *v, int n)
{
    for (int i = 0; i < n && p; i++)
        p = get_varint(p, end, &v[i]);
    return p;
}

/* The head of a table's row, and the offset of its first block. Returns the byte behind, or NULL. */
static const uint8_t *leaf_parse_row(struct leaf_run *run, uint64_t *offset, const uint8_t *p, const uint8_t *end,
                                     uint32_t previous)
{
    uint64_t v[5];

    p = leaf_get_varints(p, end, v, 5);
    if (!p || v[0] > UINT32_MAX - previous || v[1] > UINT32_MAX || v[2] > BLOCK_RECORDS_MAX || v[4] == 0 ||
        v[4] > (uint64_t)(end - p) / 2 || v[4] > UINT32_MAX - v[1])
        return NULL;
    *run = (struct leaf_run){
        .run = previous + (uint32_t)v[0], .block = (uint32_t)v[1], .skip = (uint32_t)v[2], .blocks = (uint32_t)v[4]};
    *offset = v[3];
    return p;
}

/* One of a row's blocks; `offset` is moved behind it. Returns the byte behind, or NULL. */
static const uint8_t *leaf_parse_block(struct leaf_block *block, uint64_t *offset, const uint8_t *p, const uint8_t *end)
{
    uint64_t v[2];

    p = leaf_get_varints(p, end, v, 2);
    if (!p || v[0] == 0 || v[0] > BLOCK_RECORDS_MAX || v[1] < BLOCK_HEADER_SIZE ||
        v[1] > BLOCK_HEADER_SIZE + BLOCK_PAYLOAD_MAX || *offset > UINT64_MAX - v[1])
        return NULL;
    *block = (struct leaf_block){*offset, (uint32_t)v[1], (uint32_t)v[0]};
    *offset += v[1];
    return p;
}

void leaf_copy(struct leaf *to, const struct leaf *from, uint8_t *bytes)
{
    memcpy(bytes, from->bytes, from->size + LEAF_SLACK);
    *to = *from;
    to->runs = to->blocks = (struct buffer){0};
    to->bytes = bytes;
    to->table = bytes + (from->table - from->bytes);
    to->upper = bytes + (from->upper - from->bytes);
    to->lower = bytes + (from->lower - from->bytes);
    to->runs_of = bytes + (from->runs_of - from->bytes);
    to->epochs = from->epochs ? bytes + (from->epochs - from->bytes) : NULL;
}

int leaf_load(struct leaf *leaf, const char *path, uint64_t offset, struct error *e)
{
    const uint8_t *p = leaf->table, *end = p + leaf->table_size;
    uint32_t previous = 0;
    int status = buffer_reserve(&leaf->runs, leaf->run_count * sizeof(struct leaf_run), "a leaf", e);

    /* A block is there for a record, and takes 2 bytes or more: that bounds what a malformed table makes us allocate.
     */
    size_t most = leaf->table_size / 2 < leaf->count ? leaf->table_size / 2 : leaf->count;
    if (status == DELTAFS_OK)
        status = buffer_reserve(&leaf->blocks, most * sizeof(struct leaf_block), "a leaf", e);
    if (status != DELTAFS_OK)
        return status;
    leaf->block_count = 0;
    for (uint32_t r = 0; r < leaf->run_count && p; r++) {
        struct leaf_run *run = &leaf_runs(leaf)[r];
        uint64_t at;
        p = leaf_parse_row(run, &at, p, end, previous);
        if (!p || run->blocks > most - leaf->block_count)
            return error_damaged(e, path, offset, "the leaf's run table is malformed");
        run->first = leaf->block_count;
        previous = run->run;
        for (uint32_t b = 0; b < run->blocks && p; b++)
            p = leaf_parse_block(&leaf_blocks(leaf)[leaf->block_count++], &at, p, end);
    }
    return p == end ? DELTAFS_OK : error_damaged(e, path, offset, "the leaf's run table is malformed");
}

/* The byte behind `n` varints, each of which ends with a byte below 128, or NULL. */
static const uint8_t *leaf_skip_varints(const uint8_t *p, const uint8_t *end, uint64_t n)
{
    for (; end - p >= 8; p += 8) {
        uint64_t ends = ~get_u64(p) & UINT64_C(0x8080808080808080),
                 here = (ends >> 7) * UINT64_C(0x0101010101010101) >> 56;
        if (here >= n) {
            for (; n > 1; n--)
                ends &= ends - 1;
            return n > 0 ? p + __builtin_ctzll(ends) / 8 + 1 : p;
        }
        n -= here;
    }
    for (; n > 0; p++) {
        if (p == end)
            return NULL;
        n -= *p < 0x80;
    }
    return p;
}

/* Skip a row and its blocks; the number of its run is added to *run. Returns the byte behind, or NULL. */
static const uint8_t *leaf_skip_row(const uint8_t *p, const uint8_t *end, uint32_t *run)
{
    uint64_t add, blocks;

    p = get_varint(p, end, &add);
    p = p ? leaf_skip_varints(p, end, 3) : NULL;
    p = p ? get_varint(p, end, &blocks) : NULL;
    if (!p || blocks > (uint64_t)(end - p) / 2)
        return NULL;
    *run += (uint32_t)add;
    return leaf_skip_varints(p, end, 2 * blocks);
}

int leaf_seek(const struct leaf *leaf, uint32_t r, uint32_t k, struct leaf_place *out)
{
    const uint8_t *p = leaf->table, *end = p + leaf->table_size;
    struct leaf_run run;
    struct leaf_block block;
    uint32_t before = 0;
    uint64_t at;

    if (r >= leaf->run_count)
        return -1;
    for (uint32_t i = 0; i < r && p; i++)
        p = leaf_skip_row(p, end, &before);
    p = p ? leaf_parse_row(&run, &at, p, end, before) : NULL;
    if (!p)
        return -1;
    uint64_t rest = (uint64_t)run.skip + k;
    for (uint32_t b = 0; b < run.blocks; b++) {
        p = leaf_parse_block(&block, &at, p, end);
        if (!p)
            return -1;
        if (rest < block.count) {
            *out = (struct leaf_place){.at = block, .run = run.run, .block = run.block + b, .record = (uint32_t)rest};
            return 0;
        }
        rest -= block.count;
    }
    return -1;
}

static const char *leaf_check_header(const uint8_t *h, size_t n, const struct leaf_id *id)
{
    if (h[4] != FORMAT_LEAF || (h[7] & ~(unsigned)LEAF_FLAG_EPOCHS) != 0)
        return "this is not a known kind of leaf";
    if (get_u32(h + 12) != id->partition || get_u32(h + 16) != id->epoch || get_u32(h + 20) != id->segment ||
        get_u32(h + 24) != id->leaf)
        return "the leaf belongs elsewhere";
    if (get_u32(h + 8) != n || get_u32(h + 28) == 0 || get_u32(h + 28) > LEAF_RECORDS_MAX || h[5] > 63 ||
        get_u64(h + 40) < get_u64(h + 32) || get_u32(h + 52) > n - LEAF_HEADER_SIZE)
        return "the leaf's sizes do not agree";
    return NULL;
}

/* Whether as many of the upper bits are set as there are records, the first and the last where those keys are. */
static LEAF_INLINE int leaf_upper_is_right_by(const struct leaf *leaf, leaf_count_fn count)
{
    uint64_t set = 0, at = 0;

    for (; at + 64 <= leaf->upper_bits; at += 64)
        set += count(get_u64(leaf->upper + at / 8));
    set += count(leaf_get_bits(leaf->upper, at, (unsigned)(leaf->upper_bits - at)));
    return set == leaf->count && leaf_get_bits(leaf->upper, 0, 1) == 1 &&
           leaf_get_bits(leaf->upper, leaf->upper_bits - 2, 2) == 1;
}

LEAF_COUNTING(static, int, leaf_upper_is_right, (const struct leaf *leaf), leaf)

int leaf_is_lost(const uint8_t *bytes, size_t n, uint32_t seed)
{
    return n >= LEAF_HEADER_SIZE && bytes[4] == FORMAT_LEAF && bytes[7] == LEAF_FLAG_LOST &&
           log_is_sealed(seed, bytes, n);
}

/* The leaf stands for records that are lost; its run table's first row says where they were. */
static int leaf_mark_lost(const uint8_t *bytes, size_t n, const char *path, uint64_t offset, struct error *e)
{
    struct leaf_run run;
    uint64_t at = 0;

    leaf_parse_row(&run, &at, bytes + LEAF_HEADER_SIZE, bytes + n, 0);
    return error_damaged(e, path, offset,
                         "records of keys (or hashes) from %llu to %llu are lost: the data log was damaged at offset "
                         "%llu when this index was rebuilt",
                         (unsigned long long)get_u64(bytes + 32), (unsigned long long)get_u64(bytes + 40),
                         (unsigned long long)at);
}

int leaf_parse(struct leaf *leaf, const uint8_t *bytes, size_t n, const struct leaf_id *id, uint32_t seed,
               const char *path, uint64_t offset, struct error *e)
{
    if (n < LEAF_HEADER_SIZE || !log_is_sealed(seed, bytes, n))
        return error_damaged(e, path, offset, "a leaf of %zu bytes does not match its checksum", n);
    if (leaf_is_lost(bytes, n, seed))
        return leaf_mark_lost(bytes, n, path, offset, e);
    const char *wrong = leaf_check_header(bytes, n, id);
    if (wrong)
        return error_damaged(e, path, offset, "%s", wrong);
    leaf->count = get_u32(bytes + 28);
    leaf->first_key = get_u64(bytes + 32);
    leaf->last_key = get_u64(bytes + 40);
    leaf->run_count = get_u32(bytes + 48);
    size_t table = get_u32(bytes + 52);
    leaf->bytes = bytes;
    leaf->size = n;
    leaf->table = bytes + LEAF_HEADER_SIZE;
    leaf->table_size = table;
    /* A run is there for a record, and its row takes 7 bytes or more. */
    if (leaf->run_count == 0 || leaf->run_count > leaf->count || leaf->run_count > table / 7)
        return error_damaged(e, path, offset, "the leaf's run table does not fit its records");
    if ((leaf->last_key - leaf->first_key) >> bytes[5] > 8 * (uint64_t)n)
        return error_damaged(e, path, offset, "the leaf's keys do not fit it");
    struct leaf_shape s = leaf_shape(leaf->last_key - leaf->first_key, leaf->count, leaf->run_count, bytes[5]);
    leaf->low_bits = s.low_bits;
    leaf->run_bits = s.run_bits;
    leaf->upper_bits = s.upper_bits;
    leaf->upper = bytes + LEAF_HEADER_SIZE + table;
    leaf->lower = leaf->upper + s.upper;
    leaf->runs_of = leaf->lower + s.lower;
    uint64_t used = LEAF_HEADER_SIZE + table + s.upper + s.lower + s.runs;
    leaf->epochs = bytes[7] & LEAF_FLAG_EPOCHS ? leaf->runs_of + s.runs : NULL;
    if (s.run_bits != bytes[6] || (leaf->epochs ? used > n : used != n) || !leaf_upper_is_right(leaf))
        return error_damaged(e, path, offset, "the leaf's keys do not fit it");
    return DELTAFS_OK;
}

/* The bit behind the `zeros`-th zero of the upper bits; there are that many. */
static LEAF_INLINE uint64_t leaf_skip_zeros_by(const struct leaf *leaf, uint64_t zeros, leaf_count_fn count)
{
    uint64_t at = 0;

    while (zeros > 0 && at + 64 <= leaf->upper_bits) {
        unsigned here = 64 - count(get_u64(leaf->upper + at / 8));
        if (here >= zeros)
            break;
        zeros -= here;
        at += 64;
    }
    if (zeros == 0)
        return at;
    uint64_t clear = ~get_u64(leaf->upper + at / 8); /* what is behind the upper bits is not reached */
    for (; zeros > 1; zeros--)
        clear &= clear - 1;
    return at + (unsigned)__builtin_ctzll(clear) + 1;
}

LEAF_COUNTING(static, uint64_t, leaf_skip_zeros, (const struct leaf *leaf, uint64_t zeros), leaf, zeros)

uint32_t leaf_find(const struct leaf *leaf, uint64_t key, uint32_t *first)
{
    uint32_t found = 0;

    if (key < leaf->first_key || key > leaf->last_key)
        return 0;
    uint64_t v = key - leaf->first_key, high = v >> leaf->low_bits, low = v & leaf_mask(leaf->low_bits);
    uint64_t at = leaf_skip_zeros(leaf, high);
    for (uint64_t i = at - high; at < leaf->upper_bits && leaf_get_bits(leaf->upper, at, 1) == 1; at++, i++) {
        uint64_t here = leaf_get_bits(leaf->lower, i * leaf->low_bits, leaf->low_bits);
        if (here > low)
            break;
        if (here == low && found++ == 0)
            *first = (uint32_t)i;
    }
    return found;
}

void leaf_keys(const struct leaf *leaf, uint64_t *keys)
{
    uint64_t i = 0;

    for (uint64_t at = 0; at < leaf->upper_bits; at += 32) {
        unsigned bits = leaf->upper_bits - at < 32 ? (unsigned)(leaf->upper_bits - at) : 32;
        for (uint64_t word = leaf_get_bits(leaf->upper, at, bits); word != 0; word &= word - 1, i++) {
            uint64_t high = at + (unsigned)__builtin_ctzll(word) - i;
            keys[i] = leaf->first_key +
                      (high << leaf->low_bits | leaf_get_bits(leaf->lower, i * leaf->low_bits, leaf->low_bits));
        }
    }
}

/* The `i`-th set bit of the upper bits; there are more than that. */
static LEAF_INLINE uint64_t leaf_key_by(const struct leaf *leaf, uint32_t i, leaf_count_fn count)
{
    uint64_t at = 0, word;
    uint32_t before = 0, here;

    for (; at + 64 <= leaf->upper_bits; at += 64, before += here) {
        here = count(get_u64(leaf->upper + at / 8));
        if (before + here > i)
            break;
    }
    uint64_t left = leaf->upper_bits - at;
    word = left >= 64 ? get_u64(leaf->upper + at / 8) : leaf_get_bits(leaf->upper, at, (unsigned)left);
    for (; before < i; before++)
        word &= word - 1;
    uint64_t high = at + (unsigned)__builtin_ctzll(word) - i;
    return leaf->first_key +
           (high << leaf->low_bits | leaf_get_bits(leaf->lower, (uint64_t)i * leaf->low_bits, leaf->low_bits));
}
LEAF_COUNTING(extern, uint64_t, leaf_key, (const struct leaf *leaf, uint32_t i), leaf, i)

uint32_t leaf_run_of(const struct leaf *leaf, uint32_t i)
{
    return (uint32_t)leaf_get_bits(leaf->runs_of, (uint64_t)i * leaf->run_bits, leaf->run_bits);
}

void leaf_runs_of(const struct leaf *leaf, uint32_t *runs)
{
    unsigned bits = leaf->run_bits, step = bits > 0 ? 56 / bits : leaf->count;

    for (uint32_t i = 0; i < leaf->count;) {
        uint64_t v = bits > 0 ? leaf_get_bits(leaf->runs_of, (uint64_t)i * bits, step * bits) : 0;
        for (unsigned k = 0; k < step && i < leaf->count; k++, v >>= bits)
            runs[i++] = (uint32_t)(v & leaf_mask(bits));
    }
}

int leaf_place(const struct leaf *leaf, uint32_t r, uint32_t k, struct leaf_place *out)
{
    if (r >= leaf->run_count)
        return -1;
    const struct leaf_run *run = &leaf_runs(leaf)[r];
    const struct leaf_block *block = &leaf_blocks(leaf)[run->first];
    uint64_t rest = (uint64_t)run->skip + k;
    uint32_t b = 0;
    while (b < run->blocks && rest >= block[b].count)
        rest -= block[b++].count;
    if (b == run->blocks)
        return -1;
    *out = (struct leaf_place){.at = block[b], .run = run->run, .block = run->block + b, .record = (uint32_t)rest};
    return 0;
}

/* As many run numbers at a time as fit 56 bits: those that equal `r` become zero by XOR, and a zero is what does not
 * reach its highest bit when all bits below that are added to it (Warren, Hacker's Delight, 6-1). */
static LEAF_INLINE uint32_t leaf_rank_by(const struct leaf *leaf, uint32_t r, uint32_t i, leaf_count_fn count)
{
    unsigned bits = leaf->run_bits;
    uint32_t rank = 0, j = 0, step = bits > 0 ? 56 / bits : 0;
    uint64_t lowest = 0;

    if (bits == 0)
        return r == 0 ? i : 0;
    for (uint32_t k = 0; k < step; k++)
        lowest |= UINT64_C(1) << k * bits;
    uint64_t highest = lowest << (bits - 1), wanted = lowest * r, at = 0;
    for (; j + step <= i; j += step, at += step * bits) {
        /* What is above these numbers does not reach them. */
        uint64_t v = get_u64(leaf->runs_of + (at >> 3)) >> (at & 7) ^ wanted;
        uint64_t reached = ((v & ~highest) + (highest - lowest)) | v;
        rank += count(~reached & highest);
    }
    for (; j < i; j++)
        rank += leaf_run_of(leaf, j) == r;
    return rank;
}

LEAF_COUNTING(extern, uint32_t, leaf_rank, (const struct leaf *leaf, uint32_t r, uint32_t i), leaf, r, i)

/* Find the next record whose epoch is stored. */
static void leaf_epochs_step(struct leaf_epochs *s)
{
    uint64_t v[2] = {0};

    if (s->at == s->end) {
        s->next = UINT64_MAX;
        return;
    }
    s->at = leaf_get_varints(s->at, s->end, v, 2);
    if (s->at && v[0] <= LEAF_RECORDS_MAX && v[1] < UINT32_MAX) {
        s->next += v[0];
        s->stored = (uint32_t)v[1];
        return;
    }
    s->at = s->end;
    s->next = 0; /* of no record that follows */
    s->stored = UINT32_MAX;
}

struct leaf_epochs leaf_epochs_begin(const struct leaf *leaf)
{
    struct leaf_epochs s = {.at = leaf->epochs, .end = leaf->bytes + leaf->size};

    leaf_epochs_step(&s);
    return s;
}

uint32_t leaf_epochs_next(struct leaf_epochs *s, uint32_t i, int is_first_of_key)
{
    while (s->next < i && s->stored < UINT32_MAX)
        leaf_epochs_step(s);
    if (s->stored == UINT32_MAX)
        return UINT32_MAX;
    uint32_t epoch = is_first_of_key ? 0 : s->epoch;
    if (s->next == i) {
        epoch = s->stored;
        leaf_epochs_step(s);
    }
    s->epoch = epoch + 1;
    return epoch;
}
