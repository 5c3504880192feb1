/* Golden containers: where runs, segments and tails end, and the ends of keys and labels. */
#include "base/coding.h"
#include "corpus_maker.h"

/* Random keys, in three segments of one epoch. */
void make_segments(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_SNAPPY, 256);
    maker_begin_by_hand(m, 1 << 20);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t i = 0; i < 360; i++) {
            maker_put_noise(m, i % 9 == 0 ? 77 : maker_noise(i + 360 * epoch), i);
            if (i % 60 == 59)
                maker_end_run(m);
            if (i % 120 == 119 && i < 300)
                maker_end_segment(m);
        }
        maker_end_epoch(m, epoch);
    }
    maker_finish(m);
}

/* Five runs in one segment of two leaves, with keys that several of them have. */
void make_runs(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 2, "", CODEC_NONE, 256);
    maker_begin_by_hand(m, 1 << 20);
    for (uint64_t i = 0; i < 2500; i++) {
        maker_put_noise(m, maker_noise(i) % 3000, i);
        if (i % 500 == 499)
            maker_end_run(m);
    }
    maker_end_epoch(m, 12);
    maker_put_noise(m, 5, 1);
    maker_end_run(m);
    maker_end_epoch(m, 13);
    maker_finish(m);
}

/* Keys with many records each: at a leaf's edge, and one that fills leaves of its own. */
void make_repeats(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 1, "", CODEC_SNAPPY, 4096);
    maker_begin(m);
    for (uint64_t i = 0; i < 9000; i++) {
        uint8_t value = (uint8_t)(i / 64);
        maker_put(m, i < 3000 ? i / 50 : i < 7500 ? 1000 : 1001 + i % 10, &value, 1);
    }
    maker_end_epoch(m, 1);
    maker_finish(m);
}

/* The ends of what a key can be, and gaps that leave all of a key's bits to the lower ones. */
void make_ends(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 256);
    maker_begin(m);
    maker_put_noise(m, UINT64_MAX, 1);
    maker_put_noise(m, 0, 2);
    maker_end_epoch(m, 0);
    maker_put_noise(m, UINT64_MAX, 3);
    maker_put_noise(m, UINT64_MAX - 1, 4);
    maker_put_noise(m, UINT64_C(1) << 63, 5);
    maker_put_noise(m, UINT64_MAX, 6);
    maker_end_epoch(m, UINT64_MAX);
    maker_finish(m);
}

/* A tail of footers alone, as where all fences are too long for one. */
void make_no_fences(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 4096);
    maker_begin_by_hand(m, 0);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t i = 0; i < 30; i++)
            maker_put_noise(m, i * i, i + epoch);
        maker_end_run(m);
        maker_end_epoch(m, epoch + 1);
    }
    maker_finish(m);
}
