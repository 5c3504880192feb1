/* Writes Thrift's compact protocol into memory. */
#ifndef DELTAFS_TOOLS_THRIFT_H
#define DELTAFS_TOOLS_THRIFT_H

#include <stddef.h>
#include <stdint.h>

#define THRIFT_DEPTH 16 /* structs within structs */

enum thrift_type { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BINARY = 8, THRIFT_STRUCT = 12 };

struct thrift {
    uint8_t *bytes;
    size_t used, room;
    int is_failed; /* there was no memory */
    int last[THRIFT_DEPTH], depth;
};

/* The next bytes are those of a message of its own. */
void thrift_clear(struct thrift *t);
void thrift_fini(struct thrift *t);

/* Fields of a struct, in the order of their numbers. */
void thrift_i8(struct thrift *t, int field, int value);
void thrift_i32(struct thrift *t, int field, int32_t value);
void thrift_i64(struct thrift *t, int field, int64_t value);
void thrift_bool(struct thrift *t, int field, int value);
void thrift_binary(struct thrift *t, int field, const void *bytes, size_t n);
void thrift_text(struct thrift *t, int field, const char *text);
void thrift_begin(struct thrift *t, int field); /* a struct */
void thrift_end(struct thrift *t);
void thrift_list(struct thrift *t, int field, enum thrift_type type, size_t count);

/* Elements of a list. */
void thrift_add_i32(struct thrift *t, int32_t value);
void thrift_add_text(struct thrift *t, const char *text);
void thrift_add_begin(struct thrift *t); /* a struct, which thrift_end ends; also the message itself */

#endif
