#include <stdlib.h>
#include <string.h>
#include "h5_image.h"

/* On disk: the specification's numbers. */
#define SUPERBLOCK_SIZE   48
#define UNDEFINED         UINT64_MAX
#define MESSAGE_MAX       65535
#define ATTRIBUTE_MAX     60000
#define MSG_DATASPACE     0x01
#define MSG_LINK_INFO     0x02
#define MSG_DATATYPE      0x03
#define MSG_FILL          0x05
#define MSG_LINK          0x06
#define MSG_LAYOUT        0x08
#define MSG_GROUP_INFO    0x0a
#define MSG_ATTRIBUTE     0x0c
#define TYPE_VERSION      0x30 /* 3, in the upper four bits */
#define TYPE_FIXED_POINT  0x00
#define TYPE_FLOAT        0x01
#define TYPE_STRING       0x03
#define TYPE_OPAQUE       0x05
#define TYPE_COMPOUND     0x06
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

uint32_t h5_checksum(const uint8_t *bytes, size_t size)
{
    uint32_t a = 0xdeadbeef + (uint32_t)size, b = a, c = a, word[3];

    if (size == 0)
        return c;
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

/* ---- Types ---- */

static void put_type_head(struct h5_bytes *b, uint8_t class, uint32_t bits, uint32_t size)
{
    h5_put_number(b, TYPE_VERSION | class, 1);
    h5_put_number(b, bits, 3);
    h5_put_number(b, size, 4);
}

static void put_float(struct h5_bytes *b, uint32_t size)
{
    const uint8_t single[] = {23, 8, 0, 23}, twice[] = {52, 11, 0, 52}; /* place and size of exponent, of mantissa */
    uint32_t sign = 8 * size - 1;

    put_type_head(b, TYPE_FLOAT, 0x20 | sign << 8, size);
    h5_put_number(b, 0, 2);
    h5_put_number(b, 8 * size, 2);
    h5_put(b, size == 4 ? single : twice, 4);
    h5_put_number(b, size == 4 ? 127 : 1023, 4);
}

void h5_put_type(struct h5_bytes *b, struct h5_type type)
{
    if (type.kind == 'f' && (type.size == 4 || type.size == 8)) {
        put_float(b, type.size);
    } else if (type.kind == 'i' || type.kind == 'u') {
        put_type_head(b, TYPE_FIXED_POINT, type.kind == 'i' ? 0x08 : 0, type.size);
        h5_put_number(b, 0, 2);
        h5_put_number(b, 8 * (uint64_t)type.size, 2);
    } else if (type.kind == 'S') {
        put_type_head(b, TYPE_STRING, STRING_NULL_PAD, type.size);
    } else {
        put_type_head(b, TYPE_OPAQUE, 0, type.size);
    }
}

/* Of an offset within so many bytes. */
static size_t offset_size(uint32_t size)
{
    return size < 1u << 8 ? 1 : size < 1u << 16 ? 2 : size < 1u << 24 ? 3 : 4;
}

int h5_put_compound(struct h5_bytes *b, uint32_t size, size_t n, const struct h5_member *member)
{
    size_t before = b->used;

    put_type_head(b, TYPE_COMPOUND, (uint32_t)n & 0xffff, size);
    for (size_t i = 0; i < n; i++) {
        h5_put(b, member[i].name, strlen(member[i].name) + 1);
        h5_put_number(b, member[i].offset, offset_size(size));
        h5_put_type(b, member[i].type);
    }
    if (n <= 0xffff && b->used - before <= MESSAGE_MAX)
        return 0;
    b->used = before;
    return -1;
}

/* ---- Messages ---- */

static void put_message_head(struct h5_object *o, uint8_t type, size_t size)
{
    h5_put_number(&o->messages, type, 1);
    h5_put_number(&o->messages, size, 2);
    h5_put_number(&o->messages, 0, 1);
}

void h5_group_begin(struct h5_object *o)
{
    *o = (struct h5_object){{0}};
    put_message_head(o, MSG_LINK_INFO, 18);
    h5_put_number(&o->messages, 0, 2);
    h5_put_number(&o->messages, UNDEFINED, 8);
    h5_put_number(&o->messages, UNDEFINED, 8);
    put_message_head(o, MSG_GROUP_INFO, 2);
    h5_put_number(&o->messages, 0, 2);
}

void h5_link(struct h5_object *o, const char *name, uint64_t address)
{
    size_t size = strlen(name);

    put_message_head(o, MSG_LINK, 4 + size + 8);
    h5_put_number(&o->messages, 1, 1);
    h5_put_number(&o->messages, 1, 1); /* the name's size has 2 bytes */
    h5_put_number(&o->messages, size, 2);
    h5_put(&o->messages, name, size);
    h5_put_number(&o->messages, address, 8);
}

void h5_dataset_begin(struct h5_object *o, const struct h5_bytes *type, uint64_t n, uint64_t address, uint64_t size)
{
    *o = (struct h5_object){{0}};
    o->messages.is_lacking = type->is_lacking;
    put_message_head(o, MSG_DATASPACE, 12);
    h5_put_number(&o->messages, 2, 1); /* version */
    h5_put_number(&o->messages, 1, 1); /* one dimension */
    h5_put_number(&o->messages, 0, 1);
    h5_put_number(&o->messages, 1, 1); /* simple */
    h5_put_number(&o->messages, n, 8);
    put_message_head(o, MSG_DATATYPE, type->used);
    h5_put(&o->messages, type->bytes, type->used);
    put_message_head(o, MSG_FILL, 2);
    h5_put_number(&o->messages, 3, 1); /* version */
    h5_put_number(&o->messages, FILL_LATE_IF_SET, 1);
    put_message_head(o, MSG_LAYOUT, 18);
    h5_put_number(&o->messages, 3, 1); /* version */
    h5_put_number(&o->messages, LAYOUT_CONTIGUOUS, 1);
    h5_put_number(&o->messages, size > 0 ? address : UNDEFINED, 8);
    h5_put_number(&o->messages, size, 8);
}

static void put_attribute(struct h5_object *o, const char *name, struct h5_type type, const void *bytes)
{
    struct h5_bytes encoded = {0};
    size_t name_size = strlen(name) + 1;

    h5_put_type(&encoded, type);
    put_message_head(o, MSG_ATTRIBUTE, 9 + name_size + encoded.used + 4 + type.size);
    h5_put_number(&o->messages, 3, 1); /* version */
    h5_put_number(&o->messages, 0, 1);
    h5_put_number(&o->messages, name_size, 2);
    h5_put_number(&o->messages, encoded.used, 2);
    h5_put_number(&o->messages, 4, 2); /* bytes of the dataspace */
    h5_put_number(&o->messages, 0, 1); /* ASCII */
    h5_put(&o->messages, name, name_size);
    h5_put(&o->messages, encoded.bytes, encoded.used);
    h5_put_number(&o->messages, 2, 4); /* version 2, no dimensions, a scalar */
    h5_put(&o->messages, bytes, type.size);
    o->messages.is_lacking |= encoded.is_lacking;
    h5_bytes_fini(&encoded);
}

void h5_attribute_number(struct h5_object *o, const char *name, uint64_t number)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    put_attribute(o, name, (struct h5_type){'u', 8}, bytes);
}

/* A string of no bytes is not there in HDF5: it has one, a zero. */
void h5_attribute_text(struct h5_object *o, const char *name, const char *text)
{
    size_t size = strlen(text);

    if (size <= ATTRIBUTE_MAX)
        put_attribute(o, name, (struct h5_type){'S', (uint32_t)(size > 0 ? size : 1)}, text);
}

void h5_attribute_bytes(struct h5_object *o, const char *name, const void *bytes, size_t size)
{
    if (size > 0 && size <= ATTRIBUTE_MAX)
        put_attribute(o, name, (struct h5_type){'V', (uint32_t)size}, bytes);
}

/* ---- Objects, and the file ---- */

uint64_t h5_object_end(struct h5_bytes *image, struct h5_object *o)
{
    h5_put_zeros(image, (8 - image->used % 8) % 8);
    size_t at = image->used;
    h5_put(image, "OHDR", 4);
    h5_put_number(image, 2, 1); /* version */
    h5_put_number(image, HEADER_CHUNK_U32, 1);
    h5_put_number(image, o->messages.used, 4);
    h5_put(image, o->messages.bytes, o->messages.used);
    image->is_lacking |= o->messages.is_lacking || o->messages.used > UINT32_MAX;
    if (!image->is_lacking)
        h5_put_number(image, h5_checksum(image->bytes + at, image->used - at), 4);
    h5_bytes_fini(&o->messages);
    return at;
}

void h5_image_init(struct h5_bytes *image)
{
    *image = (struct h5_bytes){0};
    h5_put_zeros(image, SUPERBLOCK_SIZE);
}

int h5_image_end(struct h5_bytes *image, uint64_t root)
{
    struct h5_bytes head = {0};

    h5_put(&head, "\211HDF\r\n\032\n", 8);
    h5_put_number(&head, 2, 1); /* version */
    h5_put_number(&head, 8, 1); /* bytes of an offset, of a length */
    h5_put_number(&head, 8, 1);
    h5_put_number(&head, 0, 1);
    h5_put_number(&head, 0, 8); /* the base address */
    h5_put_number(&head, UNDEFINED, 8);
    h5_put_number(&head, image->used, 8);
    h5_put_number(&head, root, 8);
    if (!head.is_lacking)
        h5_put_number(&head, h5_checksum(head.bytes, head.used), 4);
    int is_lacking = head.is_lacking || image->is_lacking;
    if (!is_lacking)
        memcpy(image->bytes, head.bytes, SUPERBLOCK_SIZE);
    h5_bytes_fini(&head);
    return is_lacking ? -1 : 0;
}
