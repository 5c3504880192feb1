/* Golden containers: values of all kinds and sizes, and how blocks have them. */
#include <stdio.h>
#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "corpus_maker.h"
#include "directory/format/directory_format.h"
#include "directory/format/planes.h"

/* The one of deltafs-format(5). */
void make_example(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 4, "n:u4", CODEC_SNAPPY, 4096);
    maker_begin(m);
    for (uint64_t key = 48; key-- > 8;)
        if (hash_key(key) >> 63 == 0)
            maker_put_thousand(m, key);
    maker_put_thousand(m, 1);
    maker_end_epoch(m, 10);
    maker_put(m, 9, "\1\0\0\0", 4);
    maker_put(m, 8, "\2\0\0\0", 4);
    maker_put(m, 9, "\3\0\0\0", 4);
    maker_end_epoch(m, 20);
    maker_finish(m);
}

/* Dense keys, values that pack well in planes. */
void make_dense(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 16, "x:f4,y:f4,cell:i4,n:u4", CODEC_SNAPPY, 1024);
    maker_begin(m);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 700; i++) {
            uint64_t key = (i * 337 + epoch * 11) % 701; /* in no order, each once */
            uint8_t value[16];
            put_u32(value, maker_float_bits((float)(key + epoch) / 8));
            put_u32(value + 4, maker_float_bits((float)(maker_noise(key) >> 52) / -1024));
            put_u32(value + 8, (uint32_t)(epoch - key / 50));
            put_u32(value + 12, (uint32_t)i);
            maker_put(m, key, value, sizeof value);
        }
        maker_end_epoch(m, 100 * epoch);
    }
    maker_finish(m);
}

/* Values in strips: some that pack well, noise that is not packed, columns that share a strip. The first block is so
 * short that it has no planes; then comes a short one, and a long one. */
void make_strips(struct maker *m, const char *folder, const char *name)
{
    maker_configure(m, folder, name, KEYS_U64, 1, 19, "x:f4,noise:u4,rank:u2,kind:u2,n:u4,c:u1,d:u2", CODEC_SNAPPY,
                    40000);
    maker_must(m, strips_make(&m->config.strips, m->config.schema, &m->e));
    maker_folder(m);
    maker_begin(m);
    for (uint64_t i = 0; i < 1800; i++) {
        uint8_t value[19];
        put_u32(value, maker_float_bits((float)i / 8));
        put_u32(value + 4, (uint32_t)maker_noise(i));
        put_u16(value + 8, (uint16_t)(maker_noise(i) >> 62));
        put_u16(value + 10, 7);
        put_u32(value + 12, (uint32_t)(i * i));
        value[16] = (uint8_t)(i & 3);
        put_u16(value + 17, (uint16_t)(maker_noise(i) >> 60));
        maker_put(m, i, value, sizeof value);
        if (i == 2 || i == 52 || i == 1799)
            maker_end_epoch(m, i);
    }
    maker_finish(m);
}

/* Columns with error bounds. */
void make_bounds(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 14, "x:f4~1e-3,n:u2,y:f8~0.5", CODEC_NONE, 1024);
    maker_begin(m);
    for (uint64_t i = 0; i < 60; i++) {
        double y = (double)i * -3;
        uint8_t value[14];
        put_u32(value, maker_float_bits((float)(maker_noise(i) >> 54) / 512));
        put_u16(value + 4, (uint16_t)i);
        memcpy(value + 6, &y, sizeof y);
        maker_put(m, i, value, sizeof value);
    }
    maker_end_epoch(m, 1);
    maker_finish(m);
}

void make_plain(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 8, "", CODEC_NONE, 256);
    maker_begin(m);
    for (uint64_t i = 0; i < 100; i++)
        maker_put_noise(m, i * 7 % 101, i);
    maker_end_epoch(m, 1);
    maker_put_noise(m, 1u << 20, 7);
    maker_end_epoch(m, 2);
    maker_finish(m);
}

/* Values of any size: none, some that pack, some that do not, and a long one. */
static void put_any(struct maker *m, uint64_t n)
{
    static uint8_t value[70000];

    for (uint64_t i = 0; i < n; i++) {
        size_t size = i % 5 == 0 ? 0 : i == 42 ? sizeof value : maker_noise(i) % 40;
        memset(value, (int)i, sizeof value);
        for (size_t k = 0; i % 3 == 0 && i != 42 && k < size; k++)
            value[k] = (uint8_t)maker_noise(1000 * i + k);
        maker_put(m, maker_noise(i) % 60, value, size);
    }
}

void make_any(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 3, -1, "", CODEC_SNAPPY, 512);
    maker_begin(m);
    put_any(m, 200);
    maker_end_epoch(m, 5);
    put_any(m, 20);
    maker_end_epoch(m, 6);
    maker_finish(m);
}

void make_any_plain(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, -1, "", CODEC_NONE, 256);
    maker_begin(m);
    put_any(m, 40);
    maker_put(m, 1000, "", 0);
    maker_end_epoch(m, 0);
    maker_finish(m);
}

/* No bytes of values at all: the keys are what there is to know. */
void make_nothing(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 2, 0, "", CODEC_SNAPPY, 256);
    maker_begin(m);
    for (uint64_t i = 0; i < 900; i++)
        maker_put(m, i * i, "", 0);
    maker_end_epoch(m, 1);
    maker_finish(m);
}

/* As particles are numbered: rank << 46 | counter. Leaves are cut where the rank changes. */
void make_structured(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 1, "", CODEC_SNAPPY, 4096);
    maker_begin(m);
    for (uint64_t i = 0; i < 5000; i++) {
        uint8_t value = (uint8_t)(i % 3);
        maker_put(m, i % 7 << 46 | i / 7, &value, 1);
    }
    maker_end_epoch(m, 3);
    maker_finish(m);
}

/* Wide values, more of them than a plane's bytes go into. */
void make_wide(struct maker *m, const char *folder, const char *name)
{
    maker_init(m, folder, name, KEYS_U64, 1, 41, "name:S9,bytes:V8,x:f8,a:i1,b:u2,c:i8,d:V5", CODEC_SNAPPY, 4096);
    maker_begin(m);
    for (uint64_t i = 0; i < 300; i++) {
        uint8_t value[41] = {'p', 'a', 'r', 't', (uint8_t)('a' + i % 26), i % 2 ? ',' : '\0'};
        put_u64(value + 9, i % 16 << 40);
        put_u64(value + 17, UINT64_C(0x3ff) << 52 | i << 44);
        value[25] = (uint8_t)i;
        put_u16(value + 26, (uint16_t)(i * i));
        put_u64(value + 28, 0 - i);
        maker_put(m, 3 * i, value, sizeof value);
    }
    maker_end_epoch(m, 1);
    maker_finish(m);
}

/* Bit planes that are not packed, which no writer of ours makes. */
void make_planes(struct maker *m, const char *folder, const char *name)
{
    enum { N = 32, SIZE = 8 };
    uint8_t block[BLOCK_HEADER_SIZE + N * SIZE], values[N * SIZE + PLANES_SLACK];
    char path[600];

    maker_init(m, folder, name, KEYS_U64, 1, SIZE, "", CODEC_NONE, N * SIZE);
    maker_begin(m);
    for (uint64_t i = 0; i < N; i++)
        maker_put_noise(m, i, i);
    maker_end_epoch(m, 1);
    maker_finish(m);
    snprintf(path, sizeof path, "%s/" LOG_NAME_DATA, m->path, 0u, 0u);
    FILE *f = fopen(path, "r+b");
    maker_must_errno(m, !f || fseek(f, LOG_HEADER_SIZE, SEEK_SET) != 0 || fread(block, sizeof block, 1, f) != 1);
    memcpy(values, block + BLOCK_HEADER_SIZE, N * SIZE);
    planes_split_from(values, 0, N, SIZE, block + BLOCK_HEADER_SIZE);
    block[5] = BLOCK_FLAG_PLANES;
    log_seal(log_seed(m->config.uuid), block, sizeof block);
    maker_must_errno(m, fseek(f, LOG_HEADER_SIZE, SEEK_SET) != 0 || fwrite(block, sizeof block, 1, f) != 1);
    maker_must_errno(m, fclose(f));
}
