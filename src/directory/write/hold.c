#include <string.h>
#include "base/coding.h"
#include "base/short_copy.h"
#include "directory/write/hold.h"

#define SIZE_BYTES sizeof(uint32_t)

int hold_init(struct hold *h, size_t room, int64_t value_size, struct memory *memory, struct error *e)
{
    int status = memory_take(memory, room, "the first records of an epoch", &h->bytes, e);

    h->memory = memory;
    h->room = status == DELTAFS_OK ? room : 0;
    h->value_size = value_size;
    hold_begin(h);
    return status;
}

void hold_fini(struct hold *h)
{
    memory_give(h->memory, h->bytes, h->room);
    *h = (struct hold){0};
}

void hold_begin(struct hold *h)
{
    h->used = 0;
    h->is_on = h->bytes != NULL;
}

size_t hold_room(const struct hold *h, size_t size)
{
    return h->is_on ? (h->room - h->used) / ((h->value_size < 0 ? SIZE_BYTES : 0) + sizeof(uint64_t) + size) : 0;
}

int hold_add(struct hold *h, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
             size_t value_stride, size_t size)
{
    size_t head = h->value_size < 0 ? SIZE_BYTES : 0;

    if (!h->is_on || n > h->room || n * (head + sizeof(uint64_t) + size) > h->room - h->used)
        return 0;
    uint8_t *to = h->bytes + h->used;
    for (size_t i = 0; i < n; i++, to += size) {
        if (head > 0)
            put_u32(to, (uint32_t)size);
        memcpy(to + head, keys + i * key_stride, sizeof(uint64_t));
        to += head + sizeof(uint64_t);
        if (size > 0)
            copy_short(to, values + i * value_stride, size);
    }
    h->used = (size_t)(to - h->bytes);
    return 1;
}

/* The key of the record at *at, which is moved to its value, of *size bytes. */
static const uint8_t *hold_next(const struct hold *h, size_t *at, size_t *size)
{
    *size = (size_t)h->value_size;
    if (h->value_size < 0) {
        *size = get_u32(h->bytes + *at);
        *at += SIZE_BYTES;
    }
    const uint8_t *key = h->bytes + *at;
    *at += sizeof(uint64_t);
    return key;
}

void hold_sample(const struct hold *h, struct key_sample *s)
{
    size_t size;

    for (size_t at = 0; at < h->used; at += size)
        sample_add(s, 1, hold_next(h, &at, &size), 0);
}

void hold_release(struct hold *h, hold_put_fn *put, void *arg)
{
    size_t size = sizeof(uint64_t) + (size_t)h->value_size;

    h->is_on = 0;
    if (h->value_size >= 0 && h->used > 0)
        put(arg, h->used / size, h->bytes, size, h->bytes + sizeof(uint64_t), size, (size_t)h->value_size);
    for (size_t at = 0; h->value_size < 0 && at < h->used; at += size) {
        const uint8_t *key = hold_next(h, &at, &size);
        put(arg, 1, key, 0, h->bytes + at, 0, size);
    }
    h->used = 0;
}
