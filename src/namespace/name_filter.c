#include "base/hash.h"
#include "base/memory.h"
#include "namespace/name_filter.h"

#define WORDS 8 /* of a line: what a processor fetches at once */
#define BITS  6 /* set for a key */

int name_filter_init(struct name_filter *f, size_t bytes, struct error *e)
{
    size_t lines = bytes / (WORDS * sizeof *f->line);

    *f = (struct name_filter){.line = memory_map(lines * WORDS * sizeof *f->line), .lines = lines};
    return f->line ? DELTAFS_OK : error_no_memory(e, bytes, "a filter of names");
}

void name_filter_fini(struct name_filter *f)
{
    memory_unmap(f->line, f->lines * WORDS * sizeof *f->line);
}

/* The line of a key; *bits gets the numbers of its bits in there, nine binary digits each. */
static uint64_t *line_of(const struct name_filter *f, uint64_t key, uint64_t *bits)
{
    uint64_t hash = hash_key(key);

    *bits = hash * UINT64_C(0x9e3779b97f4a7c15);
    return f->line + (size_t)((unsigned __int128)hash * f->lines >> 64) * WORDS;
}

void name_filter_prefetch(const struct name_filter *f, uint64_t key)
{
    uint64_t bits, *line = line_of(f, key, &bits);

    __builtin_prefetch(line, 1);
}

void name_filter_add(struct name_filter *f, uint64_t key)
{
    uint64_t bits, *line = line_of(f, key, &bits);

    for (int i = 0; i < BITS; i++, bits >>= 9)
        line[bits / 64 % WORDS] |= UINT64_C(1) << bits % 64;
}

int name_filter_has(const struct name_filter *f, uint64_t key)
{
    uint64_t bits;

    if (f->lines == 0)
        return 0;
    const uint64_t *line = line_of(f, key, &bits);
    for (int i = 0; i < BITS; i++, bits >>= 9)
        if (!(line[bits / 64 % WORDS] >> bits % 64 & 1))
            return 0;
    return 1;
}
