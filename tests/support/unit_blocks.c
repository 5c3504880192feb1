#include "unit_blocks.h"
#include "unit_help.h"

void unit_blocks_init(struct unit_blocks *b)
{
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < BLOCKS; i++)
        b->block[i].count = 1;
}

void unit_blocks_note(struct unit_blocks *b, size_t i, uint32_t version)
{
    struct unit_block *x = &b->block[i];

    if (x->count == VERSIONS_MAX)
        abort();
    x->version[x->count++] = version;
}

void unit_blocks_settle(struct unit_blocks *b, size_t i)
{
    struct unit_block *x = &b->block[i];

    x->version[0] = x->version[x->count - 1];
    x->count = 1;
}

int unit_blocks_is_settled(const struct unit_blocks *b, size_t i)
{
    return b->block[i].count == 1;
}

void unit_block_fill(uint8_t *bytes, size_t i, uint32_t version)
{
    struct rng r = rng_of(i * 1000 + version);

    rng_fill(&r, bytes, BLOCK_SIZE);
    if (version == 0)
        memset(bytes, 0, BLOCK_SIZE);
}

int unit_blocks_match(const struct unit_blocks *b, size_t i, const uint8_t *bytes)
{
    uint8_t want[BLOCK_SIZE];

    for (size_t k = 0; k < b->block[i].count; k++) {
        unit_block_fill(want, i, b->block[i].version[k]);
        if (memcmp(bytes, want, BLOCK_SIZE) == 0)
            return 1;
    }
    return 0;
}

int unit_blocks_write(struct unit_blocks *b, deltafs_logical *f, size_t i, uint32_t version)
{
    uint8_t bytes[BLOCK_SIZE];

    unit_block_fill(bytes, i, version);
    unit_blocks_note(b, i, version);
    return deltafs_logical_write(f, i * BLOCK_SIZE, bytes, BLOCK_SIZE);
}
