/* Golden containers whose keys are bytes. */
#include <stdio.h>
#include <string.h>
#include "base/coding.h"
#include "corpus_maker.h"

/* Keys of 1 to 255 bytes of all kinds but a line's end, which `deltafs get --keys` takes for the end of one. */
void make_names(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_BYTES, 2, -1, "", CODEC_SNAPPY, 1024);
    maker_begin(m);
    for (uint64_t size = 1; size <= 255; size++) {
        uint8_t key[256] = {0};
        if (size > 40 && size % 8 > 1 && size < 240)
            continue;
        for (size_t k = 0; k < size; k++)
            key[k] = (uint8_t)(k < 12 ? maker_noise(size * 256 + k) : size + k);
        for (size_t k = 0; k < size; k++)
            key[k] = key[k] == '\n' ? '"' : key[k];
        maker_put_name(m, key, size, key + size / 2, size % 4);
    }
    maker_end_epoch(m, 1);
    maker_end_epoch(m, 2);
    maker_put_name(m, "particle 1", 10, "", 0);
    maker_put_name(m, "a,b", 3, "x", 1);
    maker_put_name(m, "particle 1", 10, "again", 5);
    maker_end_epoch(m, 3);
    maker_finish(m);
}

void make_names_fixed(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_BYTES, 1, 4, "n:u4", CODEC_NONE, 512);
    maker_begin_by_hand(m, 1 << 20);
    for (uint64_t i = 0; i < 120; i++) {
        char key[32];
        uint8_t value[4];
        put_u32(value, (uint32_t)i);
        maker_put_name(m, key, (size_t)snprintf(key, sizeof key, "ion-%u", (unsigned)(maker_noise(i) % 50)), value, 4);
        if (i % 40 == 39)
            maker_end_run(m);
        if (i == 79)
            maker_end_segment(m);
    }
    maker_end_epoch(m, 7);
    maker_finish(m);
}
