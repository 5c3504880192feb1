/* A data log's blocks: a byte (1: they get right checksums, 2: they are what the index says), a value size (u16; 65535:
 * any), then the log. A block is tried at every place where one seems to be. */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "fuzz_target.h"
#include "directory/format/block.h"
#include "directory/format/planes.h"
#include "io/io_format.h"
#include "structures.h"

#define SEED 7u

/* Each value is the same, alone and with all others. */
static void check_values(struct block *b)
{
    uint8_t *alone = NULL;
    size_t size = 0;
    struct error e;

    if (b->planes && b->count > 0) {
        size = (size_t)b->value_size;
        alone = malloc(size * b->count + 1);
        FUZZ_CHECK(alone != NULL);
        for (uint32_t i = 0; i < b->count; i++)
            memcpy(alone + i * size, block_value(b, i, &size), size);
    }
    FUZZ_CHECK(block_join(b, NULL, &e) == DELTAFS_OK);
    for (uint32_t i = 0; i < b->count; i++) {
        size_t here;
        const uint8_t *value = block_value(b, i, &here);
        FUZZ_CHECK(here <= BLOCK_VALUE_MAX);
        fuzz_touch(value, here);
        FUZZ_CHECK(!alone || (here == size && memcmp(alone + i * size, value, size) == 0));
    }
    free(alone);
}

static void try_block(struct block *b, const uint8_t *bytes, size_t n, uint64_t mode, int64_t value_size)
{
    struct block_id id = {0};
    uint32_t count = 1;
    struct error e;
    struct fuzz_input in = {bytes, n};
    /* As many strips as a value may have, but the last, of as few bytes. */
    struct strips strips = {.count = 0};
    uint32_t left = value_size > 0 ? (uint32_t)value_size : 0, least = left / STRIPS_COUNT_MAX + STRIPS_BYTES_MIN;
    for (; left > 0; left -= strips.bytes[strips.count++])
        strips.bytes[strips.count] = left < least ? left : least;
    const struct block_of of = {.value_size = value_size, .strips = &strips};
    uint8_t *alone = fuzz_bytes(&in, n, &n);

    if (mode & 2) {
        id = (struct block_id){get_u32(alone + 16), get_u32(alone + 20), get_u32(alone + 24), get_u32(alone + 28), 0};
        count = get_u16(alone + 6);
    }
    if (count > 0 && block_decode(b, alone, n, &id, SEED, &of, count, "d", 0, &e) == DELTAFS_OK)
        check_values(b);
    free(alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1), value_size = fuzz_number(&in, 2);
    uint8_t *log = fuzz_bytes(&in, SIZE_MAX, &n);
    struct block block = {0};

    if (mode & 1)
        structures_seal_log(SEED, log, n);
    for (size_t at = 0, length; at<n; at += length> 0 ? length : 1) {
        length = structure_length(log, n, at);
        if (length > 0 && log[at + 4] == FORMAT_BLOCK)
            try_block(&block, log + at, length, mode, value_size == 65535 ? -1 : (int64_t)value_size);
    }
    block_fini(&block);
    free(log);
    return 0;
}
