/* Golden containers whose records are not where a hash of the key puts them, or not with their epoch. */
#include <string.h>
#include "base/coding.h"
#include "corpus_maker.h"

/* Three epochs that were compacted: keys that are in all of them, that one lacks, and that have several records in one.
 */
void make_compacted(struct maker *m, const char *folder, const char *name)
{
    uint64_t records[3] = {0};
    struct writer_totals totals;
    int is_commit_unknown;

    maker_configure(m, folder, name, KEYS_U64, 1, 4, "x:f4", CODEC_SNAPPY, 256);
    m->config.compacted = 3;
    maker_folder(m);
    maker_begin(m);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        deltafs_private_writer_stamp(m->writer, epoch);
        for (uint64_t key = 1; key <= 100; key++)
            for (uint64_t i = 0; i < (key % 7 == epoch ? 0 : key % 11 == 1 + epoch ? 2 : 1); i++) {
                uint8_t value[4];
                put_u32(value, maker_float_bits((float)(1000 * key + 10 * epoch + i)));
                maker_put(m, key, value, sizeof value);
                records[epoch]++;
            }
    }
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        deltafs_private_writer_end(m->writer, 100 + epoch);
        maker_must(m, deltafs_private_writer_wait_end(m->writer, &totals, &m->e));
        totals = (struct writer_totals){records[epoch], 12 * records[epoch], totals.bytes_stored};
        maker_must(m, deltafs_private_writer_commit(m->writer, &totals, &is_commit_unknown, &m->e));
        deltafs_private_writer_keep(m->writer);
    }
    maker_finish(m);
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
void make_ranges(struct maker *m, const char *folder, const char *name)
{
    static const uint64_t pivots[2][3] = {{1000, 2000, UINT64_MAX}, {500, 500, UINT64_C(1) << 40}};

    maker_configure(m, folder, name, KEYS_U64, 4, 8, "", CODEC_NONE, 4096);
    m->config.partitioner = PARTITIONER_RANGE;
    maker_folder(m);
    maker_begin(m);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 40; i++)
            maker_put_noise(m, i < 39 ? 997 * i % 3000 : UINT64_MAX, i + epoch);
        if (epoch < 2)
            place(m, pivots[epoch]);
        maker_end_epoch(m, epoch + 1);
    }
    maker_finish(m);
}
