#include "io/log.h"
#include "unit_extents.h"

const uint8_t uuid[FORMAT_UUID_SIZE] = {1, 2, 3};

void write_some(struct history *h, uint64_t offset, uint64_t size)
{
    struct error e;

    if (h->count == h->capacity) {
        h->capacity = h->capacity ? 2 * h->capacity : 64;
        h->write = realloc(h->write, h->capacity * sizeof *h->write);
        CHECK(h->write != NULL);
    }
    CHECK_IS(extent_list_add(&h->list, offset, size, h->position, &e), DELTAFS_OK);
    h->write[h->count++] = (struct write){offset, size, h->position};
    h->position += size;
}

void history_fini(struct history *h)
{
    extent_list_fini(&h->list);
    free(h->write);
    *h = (struct history){.count = 0};
}

size_t make_batches(struct rng *r, struct buffer *out, size_t *n)
{
    struct history h = {.count = 0};
    struct error e;
    size_t first = 0;

    *n = 0;
    for (int batch = 0; batch < 2; batch++) {
        for (uint64_t i = 0; i < 5; i++)
            for (uint64_t k = 0; k < 3; k++)
                write_some(&h, 3000 * k + 100 * i, 10 + k);
        write_some(&h, rng_below(r, 10000), rng_below(r, 1000) + 1);
        CHECK_IS(extent_list_mark(&h.list, EXTENT_EXTEND, rng_below(r, 10000), h.position, &e), DELTAFS_OK);
        write_some(&h, rng_below(r, 10000), rng_below(r, 1000) + 1);
        CHECK_IS(extent_list_encode(&h.list, log_seed(uuid), 3, 4, (uint64_t)batch, h.position, batch, out, n, &e),
                 DELTAFS_OK);
        extent_list_clear(&h.list);
        first = batch == 0 ? *n : first;
    }
    history_fini(&h);
    return first;
}
