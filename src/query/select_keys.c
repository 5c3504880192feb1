#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "directory/format/block.h"
#include "query/select_keys.h"

static int key_compare(const void *a, const void *b)
{
    const struct set_key *x = a, *y = b;
    int order = compare_two(x->partition, y->partition, x->number, y->number);

    if (order == 0)
        order = compare(x->size, y->size);
    return order == 0 && x->size > 0 ? memcmp(x->bytes, y->bytes, x->size) : order;
}

/* A key, and its partition by its hash; 0 where something else decides it, in each epoch in its own way. */
static struct set_key key_of(const struct manifest *m, uint64_t number, const void *bytes, size_t size)
{
    struct set_key k = {.number = number, .size = (uint16_t)size, .bytes = bytes};

    if (bytes)
        k.number = hash_bytes(bytes, size);
    if (m->partitioner == PARTITIONER_HASH)
        k.partition = partition_by_hash(k.number, m->partitions);
    return k;
}

struct set_key key_set_number(const struct manifest *m, uint64_t number)
{
    return key_of(m, number, NULL, 0);
}

/* ---- Making a set ---- */

#define KEY_BITS   96u  /* of a number, and its partition above it */
#define DIGIT_BITS 11u  /* of a pass */
#define FEW_KEYS   1024 /* are sorted otherwise: the counts of a pass take longer */

/* The bits of the number from bit `shift` on, or of the partition. */
static unsigned digit_of(uint64_t number, uint32_t partition, unsigned shift)
{
    return (unsigned)(shift < 64 ? number >> shift : partition >> (shift - 64)) & ((1u << DIGIT_BITS) - 1);
}

/* One pass of a radix sort, by the digit from bit `shift` on. */
static void keys_pass(const struct set_key *from, struct set_key *to, size_t n, unsigned shift)
{
    size_t histogram[1u << DIGIT_BITS] = {0}, at = 0;

    for (size_t i = 0; i < n; i++)
        histogram[digit_of(from[i].number, from[i].partition, shift)]++;
    for (unsigned value = 0; value < 1u << DIGIT_BITS; value++) {
        size_t count = histogram[value];
        histogram[value] = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++)
        to[histogram[digit_of(from[i].number, from[i].partition, shift)]++] = from[i];
}

/* Sort many keys that are numbers; digits in which none differs are left out. Without memory for a copy, as others. */
static void keys_sort(struct set_key *keys, size_t n)
{
    struct set_key *copy = n > FEW_KEYS && keys->bytes == NULL ? malloc(n * sizeof *copy) : NULL, *from = keys,
                   *to = copy;
    uint64_t number = 0;
    uint32_t partition = 0;

    if (!copy) {
        qsort(keys, n, sizeof *keys, key_compare);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        number |= keys[i].number ^ keys->number;
        partition |= keys[i].partition ^ keys->partition;
    }
    for (unsigned shift = 0, next; shift < KEY_BITS; shift = next) {
        next = shift < 64 && shift + DIGIT_BITS > 64 ? 64 : shift + DIGIT_BITS;
        if (digit_of(number, partition, shift) == 0)
            continue;
        keys_pass(from, to, n, shift);
        struct set_key *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
    free(copy);
}

void key_set_own(struct key_set *s, struct set_key *keys, size_t n)
{
    *s = (struct key_set){.is_given = 1, .key = keys};
    if (n > 0)
        keys_sort(keys, n);
    for (size_t i = 0; i < n; i++)
        if (s->count == 0 || key_compare(&keys[i], &keys[s->count - 1]) != 0)
            keys[s->count++] = keys[i];
        else
            keys[s->count - 1].record = keys[s->count - 1].is_sure = 0;
}

static int key_set_copy_bytes(struct key_set *s, const struct deltafs_key_list *keys, const struct manifest *m,
                              const char *name, struct error *e)
{
    size_t all = 0, at = 0;

    for (size_t i = 0; i < keys->count; i++) {
        if (!keys->bytes[i] || keys->size[i] < 1 || keys->size[i] > KEY_BYTES_MAX)
            return error_set(e, DELTAFS_ERR_INVALID, "%s: a key of %zu bytes; it has 1 to %d", name,
                             keys->bytes[i] ? keys->size[i] : 0, KEY_BYTES_MAX);
        all += keys->size[i];
    }
    s->bytes = malloc(all + 1);
    if (!s->bytes)
        return error_no_memory(e, all, "keys");
    for (size_t i = 0; i < keys->count; at += keys->size[i++]) {
        memcpy(s->bytes + at, keys->bytes[i], keys->size[i]);
        s->key[i] = key_of(m, 0, s->bytes + at, keys->size[i]);
    }
    return DELTAFS_OK;
}

int key_set_take(struct key_set *s, const struct deltafs_key_list *keys, const struct manifest *m, const char *name,
                 struct error *e)
{
    int is_bytes = m->keys == KEYS_BYTES, status = DELTAFS_OK;

    *s = (struct key_set){.is_given = keys != NULL};
    if (!keys || keys->count == 0)
        return DELTAFS_OK;
    if (is_bytes ? !keys->bytes || !keys->size : !keys->number)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: the keys of the directory are %s; give such keys", name,
                         is_bytes ? "bytes" : "numbers");
    s->key = calloc(keys->count, sizeof *s->key);
    if (!s->key)
        return error_no_memory(e, keys->count * sizeof *s->key, "keys");
    if (is_bytes)
        status = key_set_copy_bytes(s, keys, m, name, e);
    for (size_t i = 0; !is_bytes && i < keys->count; i++)
        s->key[i] = key_of(m, keys->number[i], NULL, 0);
    if (status != DELTAFS_OK) {
        key_set_fini(s);
        return status;
    }
    uint8_t *bytes = s->bytes;
    key_set_own(s, s->key, keys->count);
    s->bytes = bytes;
    return DELTAFS_OK;
}

void key_set_fini(struct key_set *s)
{
    free(s->key);
    free(s->bytes);
    *s = (struct key_set){0};
}

/* ---- Using it ---- */

static int key_set_find(const struct key_set *s, const struct set_key *k)
{
    return s->count > 0 && bsearch(k, s->key, s->count, sizeof *k, key_compare) != NULL;
}

int key_set_has(const struct key_set *s, const struct manifest *m, const struct deltafs_record *record)
{
    struct set_key k = key_of(m, record->key, record->key_bytes, record->key_size);

    return key_set_find(s, &k);
}

void key_set_filter(struct key_set *s, const struct key_set *other, int is_in)
{
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++)
        if (key_set_find(other, &s->key[i]) == is_in)
            s->key[n++] = s->key[i];
    s->count = n;
}

size_t key_set_from(const struct key_set *s, uint32_t partition, uint64_t number)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_two(s->key[middle].partition, partition, s->key[middle].number, number) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int key_set_part(const struct key_set *s, const struct manifest *m, uint32_t epoch, uint32_t partition, size_t *first,
                 size_t *end)
{
    const struct partitioner by = manifest_partitioner(m, epoch, NULL);
    uint64_t low, high;

    *first = *end = 0;
    if (m->partitioner == PARTITIONER_HASH) {
        *first = key_set_from(s, partition, 0);
        *end = key_set_from(s, partition + 1, 0);
        return 1;
    }
    if (!by.pivots) {
        *end = s->count;
        return 0;
    }
    if (!partition_keys(&by, partition, &low, &high))
        return 1;
    *first = key_set_from(s, 0, low);
    *end = high < UINT64_MAX ? key_set_from(s, 0, high + 1) : s->count;
    return 1;
}
