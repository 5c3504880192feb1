/* The keys of written runs, kept in memory until their segment is merged into leaves: each as what it adds to the key
 * before it, a varint, which takes one or two bytes for dense keys. Where epochs are compacted, a varint of its epoch
 * is behind it: 0 if that is as expected, as in a leaf (directory_format.h), or one more than it is. All runs of a
 * process share one store; it is emptied as a whole. */
#ifndef DELTAFS_DIRECTORY_RUN_KEYS_H
#define DELTAFS_DIRECTORY_RUN_KEYS_H

#include "base/coding.h"
#include "base/memory.h"

#define KEYS_CHUNK (16u << 10)         /* bytes that the store grows by */
#define KEYS_TWO   (UINT64_C(1) << 14) /* varints below it, of one byte or two, are coded without a jump */

struct keys_chunk {
    struct keys_chunk *next;
    uint8_t bytes[KEYS_CHUNK - sizeof(struct keys_chunk *)];
};

/* No varint is cut by a chunk's end: behind this place the next chunk goes on. */
static inline const uint8_t *keys_last_place(const struct keys_chunk *c)
{
    return c->bytes + sizeof c->bytes - VARINT_MAX;
}

struct keys_store {
    struct keys_chunk *first, *last;
    uint8_t *at;    /* where the next key goes; NULL: there is no chunk yet */
    int has_epochs; /* epochs are compacted */
    struct memory *memory;
};

/* Where a run's keys begin, and how far they have been taken. */
struct keys_cursor {
    const struct keys_chunk *chunk;
    const uint8_t *at;
    uint64_t key;  /* taken last, 0 at first */
    uint64_t left; /* keys not taken yet */
    int has_epochs;
    uint32_t epoch; /* of that key */
};

#define KEYS_EPOCH_MAX 5 /* bytes of an epoch */

/* Bytes of the store that `n` keys in any number of runs, no more than `runs`, take at most, where all of a run's keys
 * lie within `range` of each other; without epochs. */
uint64_t keys_bound(uint64_t n, uint64_t runs, uint64_t range);

/* Begin a run of `n` keys. */
int keys_begin(struct keys_store *s, uint64_t n, struct keys_cursor *out, struct error *e);
int keys_grow(struct keys_store *s, struct error *e);
/* Forget all runs. */
void keys_clear(struct keys_store *s);

/* Returns the place behind. */
static inline uint8_t *keys_put_at(uint8_t *at, uint64_t add)
{
    unsigned is_two = add >= 0x80;

    if (add >= KEYS_TWO)
        return put_varint(at, add);
    at[0] = (uint8_t)(add | is_two << 7);
    at[1] = (uint8_t)(add >> 7);
    return at + 1 + is_two;
}

/* Add a key that is `add` above the one before (the first: above 0). */
static inline int keys_put(struct keys_store *s, uint64_t add, struct error *e)
{
    if (s->at > keys_last_place(s->last)) {
        int status = keys_grow(s, e);
        if (status != DELTAFS_OK)
            return status;
    }
    s->at = keys_put_at(s->at, add);
    return DELTAFS_OK;
}

/* Add a run's keys, sorted, of which there are no epochs. */
int keys_put_all(struct keys_store *s, const uint64_t *keys, uint64_t n, struct error *e);

/* The epoch that is expected of a key that is `add` above the one before, which has `epoch`. */
static inline uint32_t keys_expected(uint64_t add, uint32_t epoch)
{
    return add == 0 ? epoch + 1 : 0;
}

/* The epoch that counts as that of the key before a run's first. */
#define KEYS_NO_EPOCH UINT32_MAX

/* Add the epoch of the key that was put last. */
static inline int keys_put_epoch(struct keys_store *s, uint32_t epoch, uint32_t expected, struct error *e)
{
    return keys_put(s, epoch == expected ? 0 : epoch + UINT64_C(1), e);
}

static inline uint64_t keys_take(struct keys_cursor *c)
{
    if (c->at > keys_last_place(c->chunk)) {
        c->chunk = c->chunk->next;
        c->at = c->chunk->bytes;
    }
    uint64_t v = 0, is_two = c->at[0] >> 7, second = c->at[1];
    if (is_two & second >> 7) {
        c->at = get_varint(c->at, c->at + VARINT_MAX, &v);
        return v;
    }
    v = (c->at[0] & 0x7fu) | (second << 7 & (0 - is_two));
    c->at += 1 + is_two;
    return v;
}

/* Take the next key; there is one. */
static inline uint64_t keys_next(struct keys_cursor *c)
{
    uint64_t add = keys_take(c);

    if (c->has_epochs) {
        uint64_t stored = keys_take(c);
        c->epoch = stored == 0 ? keys_expected(add, c->epoch) : (uint32_t)(stored - 1);
    }
    c->left--;
    return c->key += add;
}

#endif
