#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/coding.h"
#include "base/hash.h"
#include "corpus_maker.h"
#include "directory/format/directory_format.h"
#include "directory/format/planes.h"

#define TABLE_RECORDS 8192

void maker_must(struct maker *m, int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "make_corpus: %s: %s\n", m->path, m->e.text);
    exit(3);
}

void maker_must_errno(struct maker *m, int failed)
{
    if (!failed)
        return;
    perror(m->path);
    exit(3);
}

void maker_folder(struct maker *m)
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

    maker_must_errno(m, mkdir(m->path, 0777));
    for (uint32_t b = 0; b < m->config.partitions; b++) {
        snprintf(bucket, sizeof bucket, "%s/" BUCKET_NAME, m->path, b);
        maker_must_errno(m, mkdir(bucket, 0777));
    }
    uuid_to_text(m->config.uuid, facts.uuid_text);
    maker_must(m, manifest_create(&m->io, m->path, &facts, 0, &m->e));
}

void maker_configure(struct maker *m, const char *folder, const char *name, enum option_keys keys, uint32_t partitions,
                     int64_t value_size, const char *schema, enum option_codec codec, uint64_t block)
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

void maker_init(struct maker *m, const char *folder, const char *name, enum option_keys keys, uint32_t partitions,
                int64_t value_size, const char *schema, enum option_codec codec, uint64_t block)
{
    maker_configure(m, folder, name, keys, partitions, value_size, schema, codec, block);
    maker_folder(m);
}

void maker_begin(struct maker *m)
{
    struct lease lease;

    maker_must(m, lease_take(&lease, &m->io, m->path, 0, 0, &m->e));
    maker_must(m, deltafs_private_writer_open(&m->config, 0, m->config.partitions, &lease, &m->writer, &m->e));
}

void maker_begin_by_hand(struct maker *m, size_t tail_fences_max)
{
    char path[600];

    m->shared = (struct part_shared){
        .config = &m->config, .data_buffer = 1 << 16, .index_buffer = 1 << 16, .tail_fences_max = tail_fences_max};
    maker_must(m, memtable_init(&m->table, m->config.value_size, TABLE_RECORDS, NULL, &m->e));
    maker_must(m, block_writer_init(&m->shared.block, m->config.value_size, &m->config.strips, m->config.codec,
                                    m->config.block, NULL, &m->e));
    maker_must(m, partition_writer_open(&m->part, &m->io, &m->config, 0, &m->shared, &m->e));
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, m->path);
    maker_must(m, io_file_open(&m->io, path, O_RDWR, &m->manifest, &m->e));
    maker_must(m, io_file_size(&m->manifest, &m->manifest_size, &m->e));
}

void maker_put_local(struct maker *m, struct writer *from, struct writer *to, uint64_t key, const void *value,
                     size_t size)
{
    const uint8_t *places;

    if (deltafs_private_writer_put_values(from, 1, (const uint8_t *)&key, 0, value, 0, size, &places) != 1) {
        error_set(&m->e, DELTAFS_ERR_IO, "a value was not taken");
        maker_must(m, DELTAFS_ERR_IO);
    }
    deltafs_private_writer_put(to, 1, 1, (const uint8_t *)&key, 0, places, POSITION_SIZE, POSITION_SIZE);
}

void maker_put(struct maker *m, uint64_t key, const void *value, size_t size)
{
    if (m->writer && deltafs_private_writer_is_local(m->writer))
        maker_put_local(m, m->writer, m->writer, key, value, size);
    else if (m->writer)
        deltafs_private_writer_put(m->writer, 1, 1, (const uint8_t *)&key, 0, value, 0, size);
    else
        memtable_put(&m->table, key, value, size);
}

void maker_put_name(struct maker *m, const void *name, size_t name_size, const void *value, size_t size)
{
    uint8_t stored[1 + KEY_BYTES_MAX + 1024];

    stored[0] = (uint8_t)name_size;
    memcpy(stored + 1, name, name_size);
    memcpy(stored + 1 + name_size, value, size);
    maker_put(m, hash_bytes(name, name_size), stored, 1 + name_size + size);
}

void maker_end_run(struct maker *m)
{
    static uint64_t a[TABLE_RECORDS + PLANES_SLACK / 8], b[TABLE_RECORDS + PLANES_SLACK / 8];
    const struct partitioner by = {.partitions = 1};
    const struct sort_partitions all = {&by, 0, 1};
    const struct memtable *t = &m->table;
    const struct sort_input in = {.count = t->count,
                                  .keys = t->keys,
                                  .values = t->value_size >= 0 ? t->arena : NULL,
                                  .value_size = (size_t)t->value_size};
    const struct sorted records = sort_records(&in, &all, a, b);

    maker_must(m, partition_writer_run(&m->part, &m->table, &records, m->table.count, &m->e));
    memtable_clear(&m->table);
}

void maker_end_segment(struct maker *m)
{
    maker_must(m, partition_writer_segment(&m->part, 0, &m->e));
    keys_clear(&m->shared.keys);
}

void maker_end_uncommitted(struct maker *m)
{
    if (m->writer) {
        struct writer_totals totals;
        deltafs_private_writer_end(m->writer, 0);
        maker_must(m, deltafs_private_writer_wait_end(m->writer, &totals, &m->e));
        return;
    }
    maker_must(m, partition_writer_seal(&m->part, &m->e));
    keys_clear(&m->shared.keys);
}

void maker_end_epoch(struct maker *m, uint64_t label)
{
    struct writer_totals totals;
    int is_commit_unknown;

    if (m->writer) {
        deltafs_private_writer_end(m->writer, label);
        maker_must(m, deltafs_private_writer_wait_end(m->writer, &totals, &m->e));
        maker_must(m, deltafs_private_writer_commit(m->writer, &totals, &is_commit_unknown, &m->e));
        deltafs_private_writer_keep(m->writer);
        return;
    }
    maker_end_uncommitted(m);
    struct manifest_epoch epoch = {
        label, m->part.totals.records, m->part.totals.bytes_raw, m->part.totals.bytes_stored, 0, 0};
    maker_must(m, manifest_append_epoch(&m->manifest, &m->manifest_size, m->epochs++, &epoch, 0, &m->e));
    partition_writer_next(&m->part);
    partition_writer_keep(&m->part);
}

void maker_abandon(struct maker *m)
{
    if (m->writer) {
        maker_must(m, deltafs_private_writer_destroy(m->writer, &m->e));
        return;
    }
    maker_must(m, partition_writer_close(&m->part, &m->e));
    maker_must(m, io_file_close(&m->manifest, &m->e));
    memtable_fini(&m->table);
    block_writer_fini(&m->shared.block);
    buffer_fini(&m->shared.scratch.leaf);
    buffer_fini(&m->shared.scratch.fence);
}

void maker_finish(struct maker *m)
{
    uint64_t tail;

    if (m->writer) {
        maker_must(m, deltafs_private_writer_finish(m->writer, &tail, &m->e));
        maker_must(m, deltafs_private_writer_commit_close(m->writer, tail, &m->e));
    } else {
        maker_must(m, partition_writer_finish(&m->part, 0, &tail, &m->e));
        maker_must(m, manifest_append_close(&m->manifest, &m->manifest_size, m->epochs, tail, 0, &m->e));
    }
    maker_abandon(m);
}

uint64_t maker_noise(uint64_t i)
{
    uint64_t z = i * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void maker_put_thousand(struct maker *m, uint64_t key)
{
    uint8_t value[4];

    put_u32(value, (uint32_t)(1000 + key));
    maker_put(m, key, value, sizeof value);
}

void maker_put_noise(struct maker *m, uint64_t key, uint64_t i)
{
    uint8_t value[8];

    put_u64(value, maker_noise(i));
    maker_put(m, key, value, (size_t)m->config.value_size);
}

void maker_noise_epoch(struct maker *m, uint64_t n, uint64_t i, uint64_t label)
{
    for (uint64_t key = 0; key < n; key++)
        maker_put_noise(m, key, i + key);
    maker_end_epoch(m, label);
}

uint32_t maker_float_bits(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, 4);
    return bits;
}
