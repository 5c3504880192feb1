/* Golden containers as jobs leave them: without records, not closed, interrupted, with lines of a later version, with
 * attributes. */
#include <stdio.h>
#include <string.h>
#include "base/crc32c.h"
#include "corpus_maker.h"
#include "directory/format/directory_format.h"

/* Epochs without records, and partitions without. */
void make_empty(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 3, 8, "", CODEC_SNAPPY, 4096);
    maker_begin(m);
    maker_end_epoch(m, 0);
    maker_put_noise(m, 5, 1);
    maker_end_epoch(m, 1);
    maker_end_epoch(m, 2);
    maker_finish(m);
}

void make_none(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, -1, "", CODEC_SNAPPY, 4096);
    maker_begin(m);
    maker_finish(m);
}

/* With a copy of its manifest, which containers that were made before do not have. */
void make_copied(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 8, "", CODEC_NONE, 4096);
    maker_begin(m);
    for (uint64_t epoch = 0; epoch < 2; epoch++)
        maker_noise_epoch(m, 20, epoch, epoch + 1);
    maker_finish(m);
}

/* Not closed: a job that died between its epochs. */
void make_open(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 8, "", CODEC_NONE, 4096);
    maker_begin(m);
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        maker_noise_epoch(m, 40, epoch, 10 * epoch);
    maker_abandon(m);
}

/* A job that died while it committed: the epoch is in the logs, and a part of its line in the manifest. */
void make_torn(struct maker *m, const char *folder, const char *name)
{
    char path[600];

    maker_init(m, folder, name, KEYS_U64, 2, 8, "", CODEC_NONE, 4096);
    maker_begin(m);
    maker_noise_epoch(m, 40, 0, 10);
    for (uint64_t i = 0; i < 40; i++)
        maker_put_noise(m, 2 * i, i);
    maker_end_uncommitted(m);
    maker_abandon(m);
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, m->path);
    FILE *f = fopen(path, "ab");
    maker_must_errno(m, !f);
    maker_must_errno(m, fputs("Epoch number=1 label=20 records=40 raw=640 st", f) < 0);
    maker_must_errno(m, fclose(f));
}

/* What a later writer may add, and today's reader passes over: a word that begins with a small letter, a field. */
void make_later(struct maker *m, const char *folder, const char *name)
{
    static const char *const lines[] = {"weather fair", "Epoch number=1 label=9 records=0 raw=0 stored=0 mood=good",
                                        "close epochs=2 tail=4096 by=hand", "weather changing"};
    char path[600];

    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 4096);
    maker_begin_by_hand(m, 1 << 20);
    for (uint64_t i = 0; i < 5; i++)
        maker_put_noise(m, i, i);
    maker_end_run(m);
    maker_end_epoch(m, 8);
    maker_must(m, partition_writer_seal(&m->part, &m->e));
    partition_writer_next(&m->part);
    partition_writer_keep(&m->part);
    maker_must(m, partition_writer_finish(&m->part, 0, &m->epochs, &m->e));
    maker_abandon(m);
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, m->path);
    FILE *f = fopen(path, "ab");
    maker_must_errno(m, !f);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        maker_must_errno(m, fprintf(f, "%s ~%08x\n", lines[i], (unsigned)crc32c(0, lines[i], strlen(lines[i]))) < 0);
    maker_must_errno(m, fclose(f));
}

/* Attributes of every type, before, between and behind the epochs; one is set twice. */
void make_attributes(struct maker *m, const char *folder, const char *name)
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
    maker_begin(m);
    for (uint64_t i = 0; i < sizeof a / sizeof a[0]; i++) {
        maker_must(m, deltafs_private_writer_set_attribute(m->writer, &a[i], &m->e));
        if (i % 4 == 3) {
            maker_put_thousand(m, i);
            maker_end_epoch(m, 10 * (i / 4 + 1));
        }
    }
    maker_finish(m);
}
