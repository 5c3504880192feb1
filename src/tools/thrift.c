#include <stdlib.h>
#include <string.h>
#include "tools/thrift.h"

#define ROOM_MIN   256
#define TYPE_TRUE  1
#define TYPE_FALSE 2
#define TYPE_I8    3
#define TYPE_LIST  9

void thrift_clear(struct thrift *t)
{
    t->used = 0;
    t->depth = 0;
}

void thrift_fini(struct thrift *t)
{
    free(t->bytes);
}

static void put(struct thrift *t, const void *bytes, size_t n)
{
    size_t room = t->room > 0 ? t->room : ROOM_MIN;

    while (room - t->used < n)
        room *= 2;
    if (room != t->room) {
        uint8_t *grown = realloc(t->bytes, room);
        t->is_failed |= !grown;
        if (!grown)
            return;
        t->bytes = grown;
        t->room = room;
    }
    if (n > 0)
        memcpy(t->bytes + t->used, bytes, n);
    t->used += n;
}

static void put_byte(struct thrift *t, int byte)
{
    uint8_t b = (uint8_t)byte;

    put(t, &b, 1);
}

static void put_number(struct thrift *t, uint64_t n)
{
    for (; n > 0x7f; n >>= 7)
        put_byte(t, (int)(n & 0x7f) | 0x80);
    put_byte(t, (int)n);
}

/* Numbers with a sign: 0, -1, 1, -2, ... */
static void put_signed(struct thrift *t, int64_t n)
{
    put_number(t, n < 0 ? ~((uint64_t)n << 1) : (uint64_t)n << 1);
}

static void put_field(struct thrift *t, int field, int type)
{
    int more = field - t->last[t->depth];

    t->last[t->depth] = field;
    if (more > 0 && more < 16) {
        put_byte(t, more << 4 | type);
    } else {
        put_byte(t, type);
        put_signed(t, field);
    }
}

void thrift_i8(struct thrift *t, int field, int value)
{
    put_field(t, field, TYPE_I8);
    put_byte(t, value);
}

void thrift_i32(struct thrift *t, int field, int32_t value)
{
    put_field(t, field, THRIFT_I32);
    put_signed(t, value);
}

void thrift_i64(struct thrift *t, int field, int64_t value)
{
    put_field(t, field, THRIFT_I64);
    put_signed(t, value);
}

void thrift_bool(struct thrift *t, int field, int value)
{
    put_field(t, field, value ? TYPE_TRUE : TYPE_FALSE);
}

void thrift_binary(struct thrift *t, int field, const void *bytes, size_t n)
{
    put_field(t, field, THRIFT_BINARY);
    put_number(t, n);
    put(t, bytes, n);
}

void thrift_text(struct thrift *t, int field, const char *text)
{
    thrift_binary(t, field, text, strlen(text));
}

void thrift_begin(struct thrift *t, int field)
{
    put_field(t, field, THRIFT_STRUCT);
    thrift_add_begin(t);
}

void thrift_end(struct thrift *t)
{
    put_byte(t, 0);
    t->depth--;
}

void thrift_list(struct thrift *t, int field, enum thrift_type type, size_t count)
{
    put_field(t, field, TYPE_LIST);
    put_byte(t, (int)(count < 15 ? count : 15) << 4 | (int)type);
    if (count >= 15)
        put_number(t, count);
}

void thrift_add_i32(struct thrift *t, int32_t value)
{
    put_signed(t, value);
}

void thrift_add_text(struct thrift *t, const char *text)
{
    put_number(t, strlen(text));
    put(t, text, strlen(text));
}

void thrift_add_begin(struct thrift *t)
{
    t->last[++t->depth] = 0;
}
