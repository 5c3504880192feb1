#include <stdlib.h>
#include <string.h>
#include "h5_image.h"

/* On disk: the specification's numbers. */
#define SUPERBLOCK_SIZE   48
#define UNDEFINED         UINT64_MAX
#define ATTRIBUTE_MAX     60000
#define MSG_DATASPACE     0x01
#define MSG_LINK_INFO     0x02
#define MSG_DATATYPE      0x03
#define MSG_FILL          0x05
#define MSG_LINK          0x06
#define MSG_LAYOUT        0x08
#define MSG_GROUP_INFO    0x0a
#define MSG_ATTRIBUTE     0x0c
#define TYPE_FIXED_POINT  0x30 /* the upper four bits are the version, 3 */
#define TYPE_FLOAT        0x31
#define TYPE_STRING       0x33
#define TYPE_OPAQUE       0x35
#define TYPE_COMPOUND     0x36
#define HEADER_CHUNK_U32  0x02 /* of an object header: the size of its chunk has 4 bytes */
#define STRING_NULL_PAD   0x01
#define FILL_LATE_IF_SET  0x0a
#define LAYOUT_CONTIGUOUS 1

/* ---- Bytes ---- */

static uint8_t *bytes_take(struct h5_bytes *b, size_t size)
{
    if (b->is_lacking)
        return NULL;
    if (size > b->room - b->used) {
        size_t room = b->room > SIZE_MAX / 4 || size > SIZE_MAX / 4 ? 0 : 2 * b->room + size + 256;
        uint8_t *grown = room ? realloc(b->bytes, room) : NULL;
        if (!grown) {
            b->is_lacking = 1;
            return NULL;
        }
        b->bytes = grown;
        b->room = room;
    }
    uint8_t *at = b->bytes + b->used;
    b->used += size;
    return at;
}

void h5_put(struct h5_bytes *b, const void *bytes, size_t size)
{
    uint8_t *at = bytes_take(b, size);

    if (at && size > 0)
        memcpy(at, bytes, size);
}

void h5_put_zeros(struct h5_bytes *b, size_t size)
{
    uint8_t *at = bytes_take(b, size);

    if (at)
        memset(at, 0, size);
}

void h5_put_number(struct h5_bytes *b, uint64_t number, size_t size)
{
    uint8_t *at = bytes_take(b, size);

    for (size_t i = 0; at && i < size; i++)
        at[i] = (uint8_t)(number >> 8 * i);
}

/* One number per digit of `sizes`, which is its size. */
static void put_numbers(struct h5_bytes *b, const char *sizes, const uint64_t *number)
{
    for (; *sizes; sizes++)
        h5_put_number(b, *number++, (size_t)(*sizes - '0'));
}

void h5_bytes_fini(struct h5_bytes *b)
{
    free(b->bytes);
    *b = (struct h5_bytes){0};
}

/* ---- The checksum ---- */

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* Jenkins' lookup3, which HDF5 protects its metadata with. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t a = 0xdeadbeef + (uint32_t)size, b = a, c = a, word[3];

    for (;;) {
        memset(word, 0, sizeof word);
        for (size_t i = 0; i < 12 && i < size; i++)
            word[i / 4] |= (uint32_t)bytes[i] << i % 4 * 8;
        a += word[0];
        b += word[1];
        c += word[2];
        if (size <= 12)
            break;
        a = (a - c) ^ rotate(c, 4), c += b;
        b = (b - a) ^ rotate(a, 6), a += c;
        c = (c - b) ^ rotate(b, 8), b += a;
        a = (a - c) ^ rotate(c, 16), c += b;
        b = (b - a) ^ rotate(a, 19), a += c;
        c = (c - b) ^ rotate(b, 4), b += a;
        bytes += 12;
        size -= 12;
    }
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    c = (c ^ b) - rotate(b, 24);
    return c;
}

/* The checksum of all from `at` on. */
static void put_checksum(struct h5_bytes *b, size_t at)
{
    if (!b->is_lacking)
        h5_put_number(b, checksum(b->bytes + at, b->used - at), 4);
}

/* ---- Types ---- */

void h5_put_type(struct h5_bytes *b, struct h5_type type)
{
    const uint64_t size = type.size;

    /* Class, bits and size; of a float, the places and sizes of exponent and mantissa, and the exponent's bias. */
    if (type.kind == 'f' && size == 4)
        put_numbers(b, "1342211114", (const uint64_t[]){TYPE_FLOAT, 0x1f20, 4, 0, 32, 23, 8, 0, 23, 127});
    else if (type.kind == 'f' && size == 8)
        put_numbers(b, "1342211114", (const uint64_t[]){TYPE_FLOAT, 0x3f20, 8, 0, 64, 52, 11, 0, 52, 1023});
    else if (type.kind == 'i' || type.kind == 'u')
        put_numbers(b, "13422", (const uint64_t[]){TYPE_FIXED_POINT, type.kind == 'i' ? 0x08 : 0, size, 0, 8 * size});
    else if (type.kind == 'S')
        put_numbers(b, "134", (const uint64_t[]){TYPE_STRING, STRING_NULL_PAD, size});
    else
        put_numbers(b, "134", (const uint64_t[]){TYPE_OPAQUE, 0, size});
}

void h5_put_compound(struct h5_bytes *b, size_t n, uint32_t size)
{
    put_numbers(b, "134", (const uint64_t[]){TYPE_COMPOUND, n, size});
}

void h5_put_member(struct h5_bytes *b, uint32_t compound_size, const char *name, uint32_t offset, struct h5_type type)
{
    size_t size = compound_size < 1u << 8 ? 1 : compound_size < 1u << 16 ? 2 : compound_size < 1u << 24 ? 3 : 4;

    h5_put(b, name, strlen(name) + 1);
    h5_put_number(b, offset, size);
    h5_put_type(b, type);
}

/* ---- Messages: each begins with its number, size and flags ---- */

void h5_group_begin(struct h5_bytes *o)
{
    *o = (struct h5_bytes){0};
    put_numbers(o, "121288", (const uint64_t[]){MSG_LINK_INFO, 18, 0, 0, UNDEFINED, UNDEFINED});
    put_numbers(o, "1212", (const uint64_t[]){MSG_GROUP_INFO, 2, 0, 0});
}

void h5_link(struct h5_bytes *o, const char *name, uint64_t address)
{
    size_t size = strlen(name);

    /* Version 1; the name's size has 2 bytes. */
    put_numbers(o, "121112", (const uint64_t[]){MSG_LINK, 4 + size + 8, 0, 1, 1, size});
    h5_put(o, name, size);
    h5_put_number(o, address, 8);
}

void h5_dataset_begin(struct h5_bytes *o, const struct h5_bytes *type, uint64_t n, uint64_t address, uint64_t size)
{
    *o = (struct h5_bytes){.is_lacking = type->is_lacking};
    /* Version 2, one dimension, simple. */
    put_numbers(o, "12111118", (const uint64_t[]){MSG_DATASPACE, 12, 0, 2, 1, 0, 1, n});
    put_numbers(o, "121", (const uint64_t[]){MSG_DATATYPE, type->used, 0});
    h5_put(o, type->bytes, type->used);
    put_numbers(o, "12111", (const uint64_t[]){MSG_FILL, 2, 0, 3, FILL_LATE_IF_SET});
    put_numbers(o, "1211188",
                (const uint64_t[]){MSG_LAYOUT, 18, 0, 3, LAYOUT_CONTIGUOUS, size > 0 ? address : UNDEFINED, size});
}

/* What comes before the value: `n` elements of a type of `type_size` bytes. One of them is no array. */
static void put_attribute(struct h5_bytes *o, const char *name, struct h5_type type, size_t type_size, size_t n)
{
    size_t name_size = strlen(name) + 1, space_size = n == 1 ? 4 : 12;

    /* Version 3; the sizes of name, type and dataspace; ASCII. */
    put_numbers(o, "121112221",
                (const uint64_t[]){MSG_ATTRIBUTE, 9 + name_size + type_size + space_size + type.size * n, 0, 3, 0,
                                   name_size, type_size, space_size, 0});
    h5_put(o, name, name_size);
    h5_put_type(o, type);
    /* Version 2: a scalar without dimensions; or one dimension, simple. */
    if (n == 1)
        h5_put_number(o, 2, 4);
    else
        put_numbers(o, "11118", (const uint64_t[]){2, 1, 0, 1, n});
}

void h5_attribute_numbers(struct h5_bytes *o, const char *name, char kind, const uint64_t *numbers, size_t n)
{
    if (n == 0 || n > ATTRIBUTE_MAX / 8)
        return;
    put_attribute(o, name, (struct h5_type){kind, 8}, kind == 'f' ? 20 : 12, n);
    for (size_t i = 0; i < n; i++)
        h5_put_number(o, numbers[i], 8);
}

void h5_attribute_number(struct h5_bytes *o, const char *name, uint64_t number)
{
    h5_attribute_numbers(o, name, 'u', &number, 1);
}

void h5_attribute_bytes(struct h5_bytes *o, const char *name, char kind, const void *bytes, size_t size)
{
    if (size == 0 || size > ATTRIBUTE_MAX)
        return;
    put_attribute(o, name, (struct h5_type){kind, (uint32_t)size}, 8, 1);
    h5_put(o, bytes, size);
}

/* An empty string has one byte in HDF5, a zero. */
void h5_attribute_text(struct h5_bytes *o, const char *name, const char *text)
{
    h5_attribute_bytes(o, name, 'S', text, *text ? strlen(text) : 1);
}

/* ---- Objects, and the file ---- */

uint64_t h5_object_end(struct h5_bytes *image, struct h5_bytes *o)
{
    h5_put_zeros(image, (8 - image->used % 8) % 8);
    size_t at = image->used;
    h5_put(image, "OHDR", 4);
    put_numbers(image, "114", (const uint64_t[]){2, HEADER_CHUNK_U32, o->used}); /* version 2 */
    h5_put(image, o->bytes, o->used);
    image->is_lacking |= o->is_lacking || o->used > UINT32_MAX;
    put_checksum(image, at);
    h5_bytes_fini(o);
    return at;
}

void h5_image_begin(struct h5_bytes *image)
{
    *image = (struct h5_bytes){0};
    h5_put_zeros(image, SUPERBLOCK_SIZE);
}

void h5_image_end(struct h5_bytes *image, uint64_t root)
{
    size_t size = image->used;

    image->used = 0; /* over the room for it */
    h5_put(image, "\211HDF\r\n\032\n", 8);
    /* Version 2; the sizes of an offset and of a length; flags; the base address. */
    put_numbers(image, "11118888", (const uint64_t[]){2, 8, 8, 0, 0, UNDEFINED, size, root});
    put_checksum(image, 0);
    image->used = size;
}
