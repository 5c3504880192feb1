/* Makes the golden containers; see README. Each has a fixed UUID and fixed records, so that today's writer can be
 * compared with the one that made them.
 *
 *     make_corpus FOLDER [NAME...]     containers FOLDER/NAME, by default all; FOLDER exists, they do not
 *
 * Most come from the writer as every process has it. For those where the cut into runs and segments matters, which
 * there follows from the memory budget, the writer of one partition is driven by hand. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "directory/format/directory_format.h"
#include "directory/write/partition_writer.h"
#include "directory/write/writer.h"
#include "directory/format/partition.h"
#include "directory/format/planes.h"

#define TABLE_RECORDS 8192

struct maker {
    struct writer_config config;
    char path[512];
    struct error e;
    struct writer *writer; /* NULL: by hand */
    /* By hand: */
    struct io io;
    struct part_shared shared;
    struct partition_writer part;
    struct memtable table;
    struct io_file manifest;
    uint64_t manifest_size, epochs;
};

static void must(struct maker *m, int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "make_corpus: %s: %s\n", m->path, m->e.text);
    exit(3);
}

static void must_errno(struct maker *m, int failed)
{
    if (!failed)
        return;
    perror(m->path);
    exit(3);
}

/* ---- Making a container ---- */

static void make_folder(struct maker *m)
{
    struct manifest facts = {.keys = m->config.keys,
                             .partitions = m->config.partitions,
                             .value_size = m->config.caller_size,
                             .partitioner = m->config.partitioner,
                             .schema = (char *)(uintptr_t)m->config.schema,
                             .strips = m->config.strips,
                             .compacted = m->config.compacted,
                             .is_local = m->config.place == LAYOUT_LOCAL,
                             .job = &m->config.job};
    char bucket[600];

    must_errno(m, mkdir(m->path, 0777));
    for (uint32_t b = 0; b < m->config.partitions; b++) {
        snprintf(bucket, sizeof bucket, "%s/" BUCKET_NAME, m->path, b);
        must_errno(m, mkdir(bucket, 0777));
    }
    uuid_to_text(m->config.uuid, facts.uuid_text);
    must(m, manifest_create(&m->io, m->path, &facts, 0, &m->e));
}

/* A container of `partitions`, whose values have `value_size` bytes (-1: any). */
static void maker_configure(struct maker *m, const char *folder, const char *name, enum option_keys keys,
                            uint32_t partitions, int64_t value_size, const char *schema, enum option_codec codec,
                            uint64_t block)
{
    *m = (struct maker){.config = {.keys = keys,
                                   .partitions = partitions,
                                   .value_size = keys == KEYS_BYTES ? -1 : value_size,
                                   .caller_size = value_size,
                                   .schema = schema,
                                   .codec = codec,
                                   .sync = SYNC_NONE,
                                   .block = block,
                                   .memory = 64u << 20}};
    snprintf(m->path, sizeof m->path, "%s/%s", folder, name);
    m->config.path = m->path;
    m->io = io_default();
    /* As UUIDs are made, but for chance: of the name. */
    put_u64(m->config.uuid, hash_bytes(name, strlen(name)));
    put_u64(m->config.uuid + 8, hash_key(strlen(name)));
    m->config.uuid[6] = (uint8_t)((m->config.uuid[6] & 0x0f) | 0x40);
    m->config.uuid[8] = (uint8_t)((m->config.uuid[8] & 0x3f) | 0x80);
}

static void maker_init(struct maker *m, const char *folder, const char *name, enum option_keys keys,
                       uint32_t partitions, int64_t value_size, const char *schema, enum option_codec codec,
                       uint64_t block)
{
    maker_configure(m, folder, name, keys, partitions, value_size, schema, codec, block);
    make_folder(m);
}

/* With layout=local. */
static void maker_init_local(struct maker *m, const char *folder, const char *name, enum option_keys keys,
                             int64_t value_size, enum option_codec codec)
{
    maker_configure(m, folder, name, keys, 2, value_size, "", codec, 256);
    m->config.place = LAYOUT_LOCAL;
    m->config.value_size = POSITION_SIZE;
    must(m, deltafs_private_writer_share(&m->config, 1, &m->e));
    make_folder(m);
}

static void begin(struct maker *m)
{
    struct lease lease;

    must(m, lease_take(&lease, &m->io, m->path, 0, 0, &m->e));
    must(m, deltafs_private_writer_open(&m->config, 0, m->config.partitions, &lease, &m->writer, &m->e));
}

/* By hand, with one partition; fences of more than `tail_fences_max` bytes are left out of the tail. */
static void begin_by_hand(struct maker *m, size_t tail_fences_max)
{
    char path[600];

    m->shared = (struct part_shared){
        .config = &m->config, .data_buffer = 1 << 16, .index_buffer = 1 << 16, .tail_fences_max = tail_fences_max};
    must(m, memtable_init(&m->table, m->config.value_size, TABLE_RECORDS, NULL, &m->e));
    must(m, block_writer_init(&m->shared.block, m->config.value_size, &m->config.strips, m->config.codec,
                              m->config.block, NULL, &m->e));
    must(m, partition_writer_open(&m->part, &m->io, &m->config, 0, &m->shared, &m->e));
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, m->path);
    must(m, io_file_open(&m->io, path, O_RDWR, &m->manifest, &m->e));
    must(m, io_file_size(&m->manifest, &m->manifest_size, &m->e));
}

/* One rank appends a record that stays with it, to the partition of another. */
static void put_local(struct maker *m, struct writer *from, struct writer *to, uint64_t key, const void *value,
                      size_t size)
{
    const uint8_t *places;

    if (deltafs_private_writer_put_values(from, 1, (const uint8_t *)&key, 0, value, 0, size, &places) != 1) {
        error_set(&m->e, DELTAFS_ERR_IO, "a value was not taken");
        must(m, DELTAFS_ERR_IO);
    }
    deltafs_private_writer_put(to, 1, 1, (const uint8_t *)&key, 0, places, POSITION_SIZE, POSITION_SIZE);
}

static void put(struct maker *m, uint64_t key, const void *value, size_t size)
{
    if (m->writer && deltafs_private_writer_is_local(m->writer))
        put_local(m, m->writer, m->writer, key, value, size);
    else if (m->writer)
        deltafs_private_writer_put(m->writer, 1, 1, (const uint8_t *)&key, 0, value, 0, size);
    else
        memtable_put(&m->table, key, value, size);
}

static void put_name(struct maker *m, const void *name, size_t name_size, const void *value, size_t size)
{
    uint8_t stored[1 + KEY_BYTES_MAX + 1024];

    stored[0] = (uint8_t)name_size;
    memcpy(stored + 1, name, name_size);
    memcpy(stored + 1 + name_size, value, size);
    put(m, hash_bytes(name, name_size), stored, 1 + name_size + size);
}

static void end_run(struct maker *m)
{
    static uint64_t a[TABLE_RECORDS], b[TABLE_RECORDS];
    const struct partitioner by = {.partitions = 1};
    const struct sort_partitions all = {&by, 0, 1};
    const struct memtable *t = &m->table;
    const struct sort_input in = {t->count, t->keys, t->value_size >= 0 ? t->arena : NULL, (size_t)t->value_size};
    const struct sorted records = sort_records(&in, &all, a, b);

    must(m, partition_writer_run(&m->part, &m->table, &records, m->table.count, &m->e));
    memtable_clear(&m->table);
}

/* The runs so far; the epoch's end makes the last one. */
static void end_segment(struct maker *m)
{
    must(m, partition_writer_segment(&m->part, 0, &m->e));
    keys_clear(&m->shared.keys);
}

/* All of it but the line that commits. */
static void end_uncommitted(struct maker *m)
{
    if (m->writer) {
        struct writer_totals totals;
        deltafs_private_writer_end(m->writer, 0);
        must(m, deltafs_private_writer_wait_end(m->writer, &totals, &m->e));
        return;
    }
    must(m, partition_writer_seal(&m->part, &m->e));
    keys_clear(&m->shared.keys);
}

static void end_epoch(struct maker *m, uint64_t label)
{
    struct writer_totals totals;
    int is_commit_unknown;

    if (m->writer) {
        deltafs_private_writer_end(m->writer, label);
        must(m, deltafs_private_writer_wait_end(m->writer, &totals, &m->e));
        must(m, deltafs_private_writer_commit(m->writer, &totals, &is_commit_unknown, &m->e));
        deltafs_private_writer_keep(m->writer);
        return;
    }
    end_uncommitted(m);
    struct manifest_epoch epoch = {label, m->part.totals.records, m->part.totals.bytes_raw,
                                   m->part.totals.bytes_stored};
    must(m, manifest_append_epoch(&m->manifest, &m->manifest_size, m->epochs++, &epoch, 0, &m->e));
    partition_writer_next(&m->part);
    partition_writer_keep(&m->part);
}

/* End as a job that dies does: what was not committed stays in the logs. */
static void abandon(struct maker *m)
{
    if (m->writer) {
        must(m, deltafs_private_writer_destroy(m->writer, &m->e));
        return;
    }
    must(m, partition_writer_close(&m->part, &m->e));
    must(m, io_file_close(&m->manifest, &m->e));
    memtable_fini(&m->table);
    block_writer_fini(&m->shared.block);
    buffer_fini(&m->shared.scratch.leaf);
    buffer_fini(&m->shared.scratch.fence);
}

static void finish(struct maker *m)
{
    uint64_t tail;

    if (m->writer) {
        must(m, deltafs_private_writer_finish(m->writer, &tail, &m->e));
        must(m, deltafs_private_writer_commit_close(m->writer, tail, &m->e));
    } else {
        must(m, partition_writer_finish(&m->part, 0, &tail, &m->e));
        must(m, manifest_append_close(&m->manifest, &m->manifest_size, m->epochs, tail, 0, &m->e));
    }
    abandon(m);
}

/* ---- What is in them ---- */

/* Noise: splitmix64 of `i`. */
static uint64_t noise(uint64_t i)
{
    uint64_t z = i * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 1000 above the key, in 4 bytes. */
static void put_thousand(struct maker *m, uint64_t key)
{
    uint8_t value[4];

    put_u32(value, (uint32_t)(1000 + key));
    put(m, key, value, sizeof value);
}

static void put_noise(struct maker *m, uint64_t key, uint64_t i)
{
    uint8_t value[8];

    put_u64(value, noise(i));
    put(m, key, value, (size_t)m->config.value_size);
}

/* The one of deltafs-format(5). */
static void make_example(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 4, "n:u4", CODEC_SNAPPY, 4096);
    begin(m);
    for (uint64_t key = 48; key-- > 8;)
        if (hash_key(key) >> 63 == 0)
            put_thousand(m, key);
    put_thousand(m, 1);
    end_epoch(m, 10);
    put(m, 9, "\1\0\0\0", 4);
    put(m, 8, "\2\0\0\0", 4);
    put(m, 9, "\3\0\0\0", 4);
    end_epoch(m, 20);
    finish(m);
}

static uint32_t float_bits(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, 4);
    return bits;
}

/* Dense keys, values that pack well in planes. */
static void make_dense(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 16, "x:f4,y:f4,cell:i4,n:u4", CODEC_SNAPPY, 1024);
    begin(m);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 700; i++) {
            uint64_t key = (i * 337 + epoch * 11) % 701; /* in no order, each once */
            uint8_t value[16];
            put_u32(value, float_bits((float)(key + epoch) / 8));
            put_u32(value + 4, float_bits((float)(noise(key) >> 52) / -1024));
            put_u32(value + 8, (uint32_t)(epoch - key / 50));
            put_u32(value + 12, (uint32_t)i);
            put(m, key, value, sizeof value);
        }
        end_epoch(m, 100 * epoch);
    }
    finish(m);
}

/* Values in strips: some that pack well, noise that is not packed, columns that share a strip. The first block is so
 * short that it has no planes; then comes a short one, and a long one. */
static void make_strips(struct maker *m, const char *folder, const char *name)
{
    maker_configure(m, folder, name, KEYS_U64, 1, 19, "x:f4,noise:u4,rank:u2,kind:u2,n:u4,c:u1,d:u2", CODEC_SNAPPY,
                    40000);
    must(m, strips_make(&m->config.strips, m->config.schema, &m->e));
    make_folder(m);
    begin(m);
    for (uint64_t i = 0; i < 1800; i++) {
        uint8_t value[19];
        put_u32(value, float_bits((float)i / 8));
        put_u32(value + 4, (uint32_t)noise(i));
        put_u16(value + 8, (uint16_t)(noise(i) >> 62));
        put_u16(value + 10, 7);
        put_u32(value + 12, (uint32_t)(i * i));
        value[16] = (uint8_t)(i & 3);
        put_u16(value + 17, (uint16_t)(noise(i) >> 60));
        put(m, i, value, sizeof value);
        if (i == 2 || i == 52 || i == 1799)
            end_epoch(m, i);
    }
    finish(m);
}

/* Three epochs that were compacted: keys that are in all of them, that one lacks, and that have several records in one.
 */
static void make_compacted(struct maker *m, const char *folder, const char *name)
{
    uint64_t records[3] = {0};
    struct writer_totals totals;
    int is_commit_unknown;

    maker_configure(m, folder, name, KEYS_U64, 1, 4, "x:f4", CODEC_SNAPPY, 256);
    m->config.compacted = 3;
    make_folder(m);
    begin(m);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        deltafs_private_writer_stamp(m->writer, epoch);
        for (uint64_t key = 1; key <= 100; key++)
            for (uint64_t i = 0; i < (key % 7 == epoch ? 0 : key % 11 == 1 + epoch ? 2 : 1); i++) {
                uint8_t value[4];
                put_u32(value, float_bits((float)(1000 * key + 10 * epoch + i)));
                put(m, key, value, sizeof value);
                records[epoch]++;
            }
    }
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        deltafs_private_writer_end(m->writer, 100 + epoch);
        must(m, deltafs_private_writer_wait_end(m->writer, &totals, &m->e));
        totals = (struct writer_totals){records[epoch], 12 * records[epoch], totals.bytes_stored};
        must(m, deltafs_private_writer_commit(m->writer, &totals, &is_commit_unknown, &m->e));
        deltafs_private_writer_keep(m->writer);
    }
    finish(m);
}

static void make_plain(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 256);
    begin(m);
    for (uint64_t i = 0; i < 100; i++)
        put_noise(m, i * 7 % 101, i);
    end_epoch(m, 1);
    put_noise(m, 1u << 20, 7);
    end_epoch(m, 2);
    finish(m);
}

/* Values of any size: none, some that pack, some that do not, and a long one. */
static void put_any(struct maker *m, uint64_t n)
{
    static uint8_t value[70000];

    for (uint64_t i = 0; i < n; i++) {
        size_t size = i % 5 == 0 ? 0 : i == 42 ? sizeof value : noise(i) % 40;
        memset(value, (int)i, sizeof value);
        for (size_t k = 0; i % 3 == 0 && i != 42 && k < size; k++)
            value[k] = (uint8_t)noise(1000 * i + k);
        put(m, noise(i) % 60, value, size);
    }
}

static void make_any(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 3, -1, "", CODEC_SNAPPY, 512);
    begin(m);
    put_any(m, 200);
    end_epoch(m, 5);
    put_any(m, 20);
    end_epoch(m, 6);
    finish(m);
}

static void make_any_plain(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, -1, "", CODEC_NONE, 256);
    begin(m);
    put_any(m, 40);
    put(m, 1000, "", 0);
    end_epoch(m, 0);
    finish(m);
}

/* No bytes of values at all: the keys are what there is to know. */
static void make_nothing(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 0, "", CODEC_SNAPPY, 256);
    begin(m);
    for (uint64_t i = 0; i < 900; i++)
        put(m, i * i, "", 0);
    end_epoch(m, 1);
    finish(m);
}

/* Keys of 1 to 255 bytes of all kinds but a line's end, which `deltafs get --keys` takes for the end of one. */
static void make_names(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_BYTES, 2, -1, "", CODEC_SNAPPY, 1024);
    begin(m);
    for (uint64_t size = 1; size <= 255; size++) {
        uint8_t key[256] = {0};
        if (size > 40 && size % 8 > 1 && size < 240)
            continue;
        for (size_t k = 0; k < size; k++)
            key[k] = (uint8_t)(k < 12 ? noise(size * 256 + k) : size + k);
        for (size_t k = 0; k < size; k++)
            key[k] = key[k] == '\n' ? '"' : key[k];
        put_name(m, key, size, key + size / 2, size % 4);
    }
    end_epoch(m, 1);
    end_epoch(m, 2);
    put_name(m, "particle 1", 10, "", 0);
    put_name(m, "a,b", 3, "x", 1);
    put_name(m, "particle 1", 10, "again", 5);
    end_epoch(m, 3);
    finish(m);
}

static void make_names_fixed(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_BYTES, 1, 4, "n:u4", CODEC_NONE, 512);
    begin_by_hand(m, 1 << 20);
    for (uint64_t i = 0; i < 120; i++) {
        char key[32];
        uint8_t value[4];
        put_u32(value, (uint32_t)i);
        put_name(m, key, (size_t)snprintf(key, sizeof key, "ion-%u", (unsigned)(noise(i) % 50)), value, 4);
        if (i % 40 == 39)
            end_run(m);
        if (i == 79)
            end_segment(m);
    }
    end_epoch(m, 7);
    finish(m);
}

/* As particles are numbered: rank << 46 | counter. Leaves are cut where the rank changes. */
static void make_structured(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 1, "", CODEC_SNAPPY, 4096);
    begin(m);
    for (uint64_t i = 0; i < 5000; i++) {
        uint8_t value = (uint8_t)(i % 3);
        put(m, i % 7 << 46 | i / 7, &value, 1);
    }
    end_epoch(m, 3);
    finish(m);
}

/* Random keys, in three segments of one epoch. */
static void make_segments(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_SNAPPY, 256);
    begin_by_hand(m, 1 << 20);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t i = 0; i < 360; i++) {
            put_noise(m, i % 9 == 0 ? 77 : noise(i + 360 * epoch), i);
            if (i % 60 == 59)
                end_run(m);
            if (i % 120 == 119 && i < 300)
                end_segment(m);
        }
        end_epoch(m, epoch);
    }
    finish(m);
}

/* Five runs in one segment of two leaves, with keys that several of them have. */
static void make_runs(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 2, "", CODEC_NONE, 256);
    begin_by_hand(m, 1 << 20);
    for (uint64_t i = 0; i < 2500; i++) {
        put_noise(m, noise(i) % 3000, i);
        if (i % 500 == 499)
            end_run(m);
    }
    end_epoch(m, 12);
    put_noise(m, 5, 1);
    end_run(m);
    end_epoch(m, 13);
    finish(m);
}

/* Keys with many records each: at a leaf's edge, and one that fills leaves of its own. */
static void make_repeats(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 1, "", CODEC_SNAPPY, 4096);
    begin(m);
    for (uint64_t i = 0; i < 9000; i++) {
        uint8_t value = (uint8_t)(i / 64);
        put(m, i < 3000 ? i / 50 : i < 7500 ? 1000 : 1001 + i % 10, &value, 1);
    }
    end_epoch(m, 1);
    finish(m);
}

/* The ends of what a key can be, and gaps that leave all of a key's bits to the lower ones. */
static void make_ends(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 256);
    begin(m);
    put_noise(m, UINT64_MAX, 1);
    put_noise(m, 0, 2);
    end_epoch(m, 0);
    put_noise(m, UINT64_MAX, 3);
    put_noise(m, UINT64_MAX - 1, 4);
    put_noise(m, UINT64_C(1) << 63, 5);
    put_noise(m, UINT64_MAX, 6);
    end_epoch(m, UINT64_MAX);
    finish(m);
}

/* Epochs without records, and partitions without. */
static void make_empty(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 3, 8, "", CODEC_SNAPPY, 4096);
    begin(m);
    end_epoch(m, 0);
    put_noise(m, 5, 1);
    end_epoch(m, 1);
    end_epoch(m, 2);
    finish(m);
}

static void make_none(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, -1, "", CODEC_SNAPPY, 4096);
    begin(m);
    finish(m);
}

/* With the copy of its manifest, which the older ones have not. */
static void make_copied(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 8, "", CODEC_NONE, 4096);
    begin(m);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t i = 0; i < 20; i++)
            put_noise(m, i, i + epoch);
        end_epoch(m, epoch + 1);
    }
    finish(m);
}

/* Not closed: a job that died between its epochs. */
static void make_open(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 8, "", CODEC_NONE, 4096);
    begin(m);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 40; i++)
            put_noise(m, i, i + epoch);
        end_epoch(m, 10 * epoch);
    }
    abandon(m);
}

/* A job that died while it committed: the epoch is in the logs, and a part of its line in the manifest. */
static void make_torn(struct maker *m, const char *folder, const char *name)
{
    char path[600];

    maker_init(m, folder, name, KEYS_U64, 2, 8, "", CODEC_NONE, 4096);
    begin(m);
    for (uint64_t i = 0; i < 40; i++)
        put_noise(m, i, i);
    end_epoch(m, 10);
    for (uint64_t i = 0; i < 40; i++)
        put_noise(m, 2 * i, i);
    end_uncommitted(m);
    abandon(m);
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, m->path);
    FILE *f = fopen(path, "ab");
    must_errno(m, !f);
    must_errno(m, fputs("Epoch number=1 label=20 records=40 raw=640 st", f) < 0);
    must_errno(m, fclose(f));
}

/* Wide values, more of them than a plane's bytes go into. */
static void make_wide(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 41, "name:S9,bytes:V8,x:f8,a:i1,b:u2,c:i8,d:V5", CODEC_SNAPPY, 4096);
    begin(m);
    for (uint64_t i = 0; i < 300; i++) {
        uint8_t value[41] = {'p', 'a', 'r', 't', (uint8_t)('a' + i % 26), i % 2 ? ',' : '\0'};
        put_u64(value + 9, i % 16 << 40);
        put_u64(value + 17, UINT64_C(0x3ff) << 52 | i << 44);
        value[25] = (uint8_t)i;
        put_u16(value + 26, (uint16_t)(i * i));
        put_u64(value + 28, 0 - i);
        put(m, 3 * i, value, sizeof value);
    }
    end_epoch(m, 1);
    finish(m);
}

/* What a later writer may add, and today's reader passes over: a word that begins with a small letter, a field. */
static void make_later(struct maker *m, const char *folder, const char *name)
{
    static const char *const lines[] = {"weather fair", "Epoch number=1 label=9 records=0 raw=0 stored=0 mood=good",
                                        "close epochs=2 tail=4096 by=hand", "weather changing"};
    char path[600];

    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 4096);
    begin_by_hand(m, 1 << 20);
    for (uint64_t i = 0; i < 5; i++)
        put_noise(m, i, i);
    end_run(m);
    end_epoch(m, 8);
    must(m, partition_writer_seal(&m->part, &m->e));
    partition_writer_next(&m->part);
    partition_writer_keep(&m->part);
    must(m, partition_writer_finish(&m->part, 0, &m->epochs, &m->e));
    abandon(m);
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, m->path);
    FILE *f = fopen(path, "ab");
    must_errno(m, !f);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        must_errno(m, fprintf(f, "%s ~%08x\n", lines[i], (unsigned)crc32c(0, lines[i], strlen(lines[i]))) < 0);
    must_errno(m, fclose(f));
}

/* Bit planes that are not packed, which no writer of ours makes. */
static void make_planes(struct maker *m, const char *folder, const char *name)
{
    enum { N = 32, SIZE = 8 };
    uint8_t block[BLOCK_HEADER_SIZE + N * SIZE], values[N * SIZE + PLANES_SLACK];
    char path[600];

    maker_init(m, folder, name, KEYS_U64, 1, SIZE, "", CODEC_NONE, N * SIZE);
    begin(m);
    for (uint64_t i = 0; i < N; i++)
        put_noise(m, i, i);
    end_epoch(m, 1);
    finish(m);
    snprintf(path, sizeof path, "%s/" LOG_NAME_DATA, m->path, 0u, 0u);
    FILE *f = fopen(path, "r+b");
    must_errno(m, !f || fseek(f, LOG_HEADER_SIZE, SEEK_SET) != 0 || fread(block, sizeof block, 1, f) != 1);
    memcpy(values, block + BLOCK_HEADER_SIZE, N * SIZE);
    planes_split_from(values, NULL, 0, N, SIZE, block + BLOCK_HEADER_SIZE);
    block[5] = BLOCK_FLAG_PLANES;
    log_seal(log_seed(m->config.uuid), block, sizeof block);
    must_errno(m, fseek(f, LOG_HEADER_SIZE, SEEK_SET) != 0 || fwrite(block, sizeof block, 1, f) != 1);
    must_errno(m, fclose(f));
}

/* A tail of footers alone, as where all fences are too long for one. */
static void make_no_fences(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 4096);
    begin_by_hand(m, 0);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t i = 0; i < 30; i++)
            put_noise(m, i * i, i + epoch);
        end_run(m);
        end_epoch(m, epoch + 1);
    }
    finish(m);
}

/* The container as a second session finds it. */
static void reopen(struct maker *m, struct writer *writer[2], uint32_t split)
{
    struct manifest now;
    struct lease lease;

    must(m, manifest_read(&m->io, m->path, &now, &m->e));
    m->config.is_reopened = 1;
    m->config.epochs = (uint32_t)now.epoch_count;
    m->config.last_label = now.epoch[now.epoch_count - 1].label;
    m->config.manifest_size = now.size;
    m->config.job.first = manifest_writers(&now);
    manifest_fini(&now);
    must(m, deltafs_private_writer_share(&m->config, 2, &m->e));
    must(m, lease_take(&lease, &m->io, m->path, 0, 0, &m->e));
    must(m, deltafs_private_writer_open(&m->config, 0, split, &lease, &writer[0], &m->e));
    m->config.writer = 1;
    must(m, deltafs_private_writer_open(&m->config, split, m->config.partitions - split, NULL, &writer[1], &m->e));
    must(m, deltafs_private_writer_note_open(writer[0], &m->config, &m->e));
    for (int rank = 0; rank < 2; rank++)
        must(m, deltafs_private_writer_truncate(writer[rank], &m->e));
}

/* Both ranks end the epoch, and the first commits it. */
static void end_both(struct maker *m, struct writer *writer[2], uint64_t label)
{
    struct writer_totals all = {0}, own;
    int is_commit_unknown;

    for (int rank = 0; rank < 2; rank++)
        deltafs_private_writer_end(writer[rank], label);
    for (int rank = 0; rank < 2; rank++) {
        must(m, deltafs_private_writer_wait_end(writer[rank], &own, &m->e));
        all.records += own.records;
        all.bytes_raw += own.bytes_raw;
        all.bytes_stored += own.bytes_stored;
    }
    must(m, deltafs_private_writer_commit(writer[0], &all, &is_commit_unknown, &m->e));
    for (int rank = 0; rank < 2; rank++)
        deltafs_private_writer_keep(writer[rank]);
}

static void finish_both(struct maker *m, struct writer *writer[2])
{
    uint64_t most = 0, tail;

    for (int rank = 0; rank < 2; rank++) {
        must(m, deltafs_private_writer_finish(writer[rank], &tail, &m->e));
        most = tail > most ? tail : most;
    }
    must(m, deltafs_private_writer_commit_close(writer[0], most, &m->e));
    for (int rank = 0; rank < 2; rank++)
        must(m, deltafs_private_writer_destroy(writer[rank], &m->e));
}

/* Three partitions of one rank, and closed; then of two, and closed again. */
static void make_reopened(struct maker *m, const char *folder, const char *name)
{
    enum { PARTITIONS = 3, SPLIT = 2 };
    struct writer *writer[2];

    maker_init(m, folder, name, KEYS_U64, PARTITIONS, 8, "", CODEC_NONE, 256);
    begin(m);
    for (uint64_t epoch = 1; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 60; i++)
            put_noise(m, i, i + epoch);
        end_epoch(m, 10 * epoch);
    }
    finish(m);
    reopen(m, writer, SPLIT);
    for (uint64_t epoch = 3; epoch < 5; epoch++) {
        for (uint64_t i = 0; i < 60; i++) {
            m->writer = writer[partition_by_hash(2 * i, PARTITIONS) >= SPLIT];
            put_noise(m, 2 * i, i + epoch);
        }
        end_both(m, writer, 10 * epoch);
    }
    finish_both(m, writer);
}

/* Records that stay with their writers: one, then two, each of which appends to both partitions. */
static void make_local(struct maker *m, const char *folder, const char *name)
{
    struct writer *writer[2];

    maker_init_local(m, folder, name, KEYS_U64, 8, CODEC_SNAPPY);
    begin(m);
    for (uint64_t epoch = 1; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 100; i++)
            put_noise(m, i * 37 % 101, (i + epoch) % 5);
        end_epoch(m, 10 * epoch);
    }
    finish(m);
    reopen(m, writer, 1);
    for (uint64_t epoch = 3; epoch < 5; epoch++) {
        for (uint64_t i = 0; i < 60; i++) {
            uint64_t key = i * 37 % 101;
            uint8_t value[8];
            put_u64(value, noise(i + epoch));
            put_local(m, writer[i % 3 == 0], writer[partition_by_hash(key, 2)], key, value, sizeof value);
        }
        end_both(m, writer, 10 * epoch);
    }
    finish_both(m, writer);
}

/* The same with keys of bytes and values of any size, of one writer, not closed. */
static void make_local_names(struct maker *m, const char *folder, const char *name)
{
    static const uint8_t value[600];
    char text[32];

    maker_init_local(m, folder, name, KEYS_BYTES, -1, CODEC_NONE);
    begin(m);
    for (uint64_t epoch = 1; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 40; i++)
            put_name(m, text, (size_t)snprintf(text, sizeof text, "particle %d", (int)(i * 7 % 23)), value,
                     i == 11 ? sizeof value : (size_t)(i * epoch % 13));
        end_epoch(m, epoch);
    }
    abandon(m);
}

/* Attributes of every type, before, between and behind the epochs; one is set twice. */
static void make_attributes(struct maker *m, const char *folder, const char *name)
{
    static const double grid[] = {0.1, -0.0, 1e300, 5e-324, 2.5}, times[] = {0.5, 1.5, 1.25};
    static const int64_t integers[] = {INT64_MIN, 0, 3};
    static const uint64_t naturals[] = {UINT64_MAX};
    struct deltafs_attribute a[] = {
        {.name = "grid", .type = DELTAFS_ATTRIBUTE_F8, .count = 5, .value = grid, .unit_si = 1e-6},
        {.name = "i", .type = DELTAFS_ATTRIBUTE_I8, .count = 3, .value = integers},
        {.name = "u", .type = DELTAFS_ATTRIBUTE_U8, .count = 1, .value = naturals},
        {.name = "note", .type = DELTAFS_ATTRIBUTE_TEXT, .value = "100 % of\ntwo lines"},
        {.name = "half", .type = DELTAFS_ATTRIBUTE_EXPRESSION, .value = "n / 2"},
        {.name = "n", .type = DELTAFS_ATTRIBUTE_COLUMN, .unit_si = 1, .unit_dimension = {1, 0, -1}},
        {.name = "time", .from = 10, .type = DELTAFS_ATTRIBUTE_F8, .count = 1, .value = times},
        {.name = "time", .from = 20, .type = DELTAFS_ATTRIBUTE_F8, .count = 1, .value = times + 1},
        {.name = "time", .from = 20, .type = DELTAFS_ATTRIBUTE_F8, .count = 1, .value = times + 2},
    };

    maker_init(m, folder, name, KEYS_U64, 1, 4, "n:u4", CODEC_NONE, 4096);
    begin(m);
    for (uint64_t i = 0; i < sizeof a / sizeof a[0]; i++) {
        must(m, deltafs_private_writer_set_attribute(m->writer, &a[i], &m->e));
        if (i % 4 == 3) {
            put_thousand(m, i);
            end_epoch(m, 10 * (i / 4 + 1));
        }
    }
    finish(m);
}

/* The next epochs are placed by these pivots; *deltafs_private_writer_chosen has before them that they are chosen. */
static void place(struct maker *m, const uint64_t *pivots)
{
    size_t n;
    uint64_t *chosen = deltafs_private_writer_chosen(m->writer, &n);

    chosen[0] = 1;
    memcpy(chosen + 1, pivots, n - sizeof *chosen);
}

/* Partitions by ranges of keys: an epoch by hash, one that all four ranges have keys of, and one whose pivots leave two
 * of them empty. */
static void make_ranges(struct maker *m, const char *folder, const char *name)
{
    static const uint64_t pivots[2][3] = {{1000, 2000, UINT64_MAX}, {500, 500, UINT64_C(1) << 40}};

    maker_configure(m, folder, name, KEYS_U64, 4, 8, "", CODEC_NONE, 4096);
    m->config.partitioner = PARTITIONER_RANGE;
    make_folder(m);
    begin(m);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 40; i++)
            put_noise(m, i < 39 ? 997 * i % 3000 : UINT64_MAX, i + epoch);
        if (epoch < 2)
            place(m, pivots[epoch]);
        end_epoch(m, epoch + 1);
    }
    finish(m);
}

static const struct {
    const char *name;
    void (*make)(struct maker *m, const char *folder, const char *name); /* NULL: no longer written so */
} containers[] = {
    {"any", make_any},
    {"any_plain", make_any_plain},
    {"dense", make_dense},
    {"empty", make_empty},
    {"ends", make_ends},
    {"example", make_example},
    {"names", make_names},
    {"names_fixed", make_names_fixed},
    {"no_fences", make_no_fences},
    {"copied", make_copied},
    {"none", make_none},
    {"nothing", make_nothing},
    {"open", make_open},
    {"plain", make_plain},
    {"repeats", make_repeats},
    {"runs", make_runs},
    {"segments", make_segments},
    {"structured", make_structured},
    {"torn", make_torn},
    {"wide", make_wide},
    {"later", make_later},
    {"planes", make_planes},
    {"reopened", make_reopened},
    {"local", NULL}, /* its places depend on lengths that libsnappy packed to */
    {"local_packed", make_local},
    {"local_names", make_local_names},
    {"attributes", make_attributes},
    {"strips", make_strips},
    {"compacted", make_compacted},
    {"ranges", make_ranges},
};

int main(int argc, char **argv)
{
    static struct maker m;

    if (argc < 2) {
        fprintf(stderr, "make_corpus FOLDER [NAME...]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        int is_wanted = argc == 2;
        for (int a = 2; a < argc; a++)
            is_wanted |= strcmp(argv[a], containers[i].name) == 0;
        if (is_wanted && containers[i].make)
            containers[i].make(&m, argv[1], containers[i].name);
    }
    return 0;
}
