/* Golden containers that several ranks or jobs have written. */
#include <stdio.h>
#include "base/coding.h"
#include "corpus_maker.h"
#include "directory/format/partition.h"

/* With layout=local. */
static void maker_init_local(struct maker *m, const char *folder, const char *name, enum option_keys keys,
                             int64_t value_size, enum option_codec codec)
{
    maker_configure(m, folder, name, keys, 2, value_size, "", codec, 256);
    m->config.place = LAYOUT_LOCAL;
    m->config.value_size = POSITION_SIZE;
    maker_must(m, deltafs_private_writer_share(&m->config, 1, &m->e));
    maker_folder(m);
}

/* The container as a second session finds it. */
static void reopen(struct maker *m, struct writer *writer[2], uint32_t split)
{
    struct manifest now;
    struct lease lease;

    maker_must(m, manifest_read(&m->io, m->path, &now, &m->e));
    m->config.is_reopened = 1;
    m->config.epochs = (uint32_t)now.epoch_count;
    m->config.last_label = now.epoch[now.epoch_count - 1].label;
    m->config.manifest_size = now.size;
    m->config.job.first = manifest_writers(&now);
    manifest_fini(&now);
    maker_must(m, deltafs_private_writer_share(&m->config, 2, &m->e));
    maker_must(m, lease_take(&lease, &m->io, m->path, 0, 0, &m->e));
    maker_must(m, deltafs_private_writer_open(&m->config, 0, split, &lease, &writer[0], &m->e));
    m->config.writer = 1;
    maker_must(m,
               deltafs_private_writer_open(&m->config, split, m->config.partitions - split, NULL, &writer[1], &m->e));
    maker_must(m, deltafs_private_writer_note_open(writer[0], &m->config, &m->e));
    for (int rank = 0; rank < 2; rank++)
        maker_must(m, deltafs_private_writer_truncate(writer[rank], &m->e));
}

/* Both ranks end the epoch, and the first commits it. */
static void end_both(struct maker *m, struct writer *writer[2], uint64_t label)
{
    struct writer_totals all = {0}, own;
    int is_commit_unknown;

    for (int rank = 0; rank < 2; rank++)
        deltafs_private_writer_end(writer[rank], label);
    for (int rank = 0; rank < 2; rank++) {
        maker_must(m, deltafs_private_writer_wait_end(writer[rank], &own, &m->e));
        all.records += own.records;
        all.bytes_raw += own.bytes_raw;
        all.bytes_stored += own.bytes_stored;
    }
    maker_must(m, deltafs_private_writer_commit(writer[0], &all, &is_commit_unknown, &m->e));
    for (int rank = 0; rank < 2; rank++)
        deltafs_private_writer_keep(writer[rank]);
}

static void finish_both(struct maker *m, struct writer *writer[2])
{
    uint64_t most = 0, tail;

    for (int rank = 0; rank < 2; rank++) {
        maker_must(m, deltafs_private_writer_finish(writer[rank], &tail, &m->e));
        most = tail > most ? tail : most;
    }
    maker_must(m, deltafs_private_writer_commit_close(writer[0], most, &m->e));
    for (int rank = 0; rank < 2; rank++)
        maker_must(m, deltafs_private_writer_destroy(writer[rank], &m->e));
}

/* Three partitions of one rank, and closed; then of two, and closed again. */
void make_reopened(struct maker *m, const char *folder, const char *name)
{
    enum { PARTITIONS = 3, SPLIT = 2 };
    struct writer *writer[2];

    maker_init(m, folder, name, KEYS_U64, PARTITIONS, 8, "", CODEC_NONE, 256);
    maker_begin(m);
    for (uint64_t epoch = 1; epoch < 3; epoch++)
        maker_noise_epoch(m, 60, epoch, 10 * epoch);
    maker_finish(m);
    reopen(m, writer, SPLIT);
    for (uint64_t epoch = 3; epoch < 5; epoch++) {
        for (uint64_t i = 0; i < 60; i++) {
            m->writer = writer[partition_by_hash(2 * i, PARTITIONS) >= SPLIT];
            maker_put_noise(m, 2 * i, i + epoch);
        }
        end_both(m, writer, 10 * epoch);
    }
    finish_both(m, writer);
}

/* Records that stay with their writers: one, then two, each of which appends to both partitions. */
void make_local(struct maker *m, const char *folder, const char *name)
{
    struct writer *writer[2];

    maker_init_local(m, folder, name, KEYS_U64, 8, CODEC_SNAPPY);
    maker_begin(m);
    for (uint64_t epoch = 1; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 100; i++)
            maker_put_noise(m, i * 37 % 101, (i + epoch) % 5);
        maker_end_epoch(m, 10 * epoch);
    }
    maker_finish(m);
    reopen(m, writer, 1);
    for (uint64_t epoch = 3; epoch < 5; epoch++) {
        for (uint64_t i = 0; i < 60; i++) {
            uint64_t key = i * 37 % 101;
            uint8_t value[8];
            put_u64(value, maker_noise(i + epoch));
            maker_put_local(m, writer[i % 3 == 0], writer[partition_by_hash(key, 2)], key, value, sizeof value);
        }
        end_both(m, writer, 10 * epoch);
    }
    finish_both(m, writer);
}

/* The same with keys of bytes and values of any size, of one writer, not closed. */
void make_local_names(struct maker *m, const char *folder, const char *name)
{
    static const uint8_t value[600];
    char text[32];

    maker_init_local(m, folder, name, KEYS_BYTES, -1, CODEC_NONE);
    maker_begin(m);
    for (uint64_t epoch = 1; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 40; i++)
            maker_put_name(m, text, (size_t)snprintf(text, sizeof text, "particle %d", (int)(i * 7 % 23)), value,
                           i == 11 ? sizeof value : (size_t)(i * epoch % 13));
        maker_end_epoch(m, epoch);
    }
    maker_abandon(m);
}
