/* After APPNOTE 6.3: each entry has a local header and its bytes; the list of all entries is at the end. An entry or an
 * offset that does not fit into 32 bits has an extra field with 64 bits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/zip.h"

#define LOCAL_MAGIC    0x04034b50u
#define LISTED_MAGIC   0x02014b50u
#define END64_MAGIC    0x06064b50u
#define END64_AT       0x07064b50u
#define END_MAGIC      0x06054b50u
#define CRC_AT         14 /* in a local header */
#define NEEDS          20 /* the version that a reader needs: 2.0 */
#define NEEDS_64       45
#define MADE_BY        (3 << 8 | NEEDS_64) /* Unix */
#define DATE           (1 << 5 | 1)        /* 1980-01-01: the same rows make the same file */
#define MODE           (0100644u << 16)
#define EXTRA_64       1
#define MAX_32         UINT32_MAX
#define MAX_16         UINT16_MAX
#define ROOM           128 /* for any header without a name */
#define CRC_POLYNOMIAL 0xedb88320u

/* ---- The checksum ---- */

#define CRC_TABLES 8

static uint32_t crc_table[CRC_TABLES][256];

static void crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
        crc_table[0][i] = crc;
    }
    for (int t = 1; t < CRC_TABLES; t++)
        for (int i = 0; i < 256; i++)
            crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 0xff];
}

/* Eight bytes at a time, with a table for the place of each. */
static uint32_t crc_update(uint32_t crc, const uint8_t *bytes, size_t n)
{
    crc = ~crc;
    for (; n >= CRC_TABLES; n -= CRC_TABLES, bytes += CRC_TABLES) {
        uint32_t next = 0;
        for (int i = 0; i < CRC_TABLES; i++) {
            uint8_t index = (uint8_t)(i < 4 ? bytes[i] ^ crc >> 8 * i : bytes[i]);
            next ^= crc_table[CRC_TABLES - 1 - i][index];
        }
        crc = next;
    }
    for (; n > 0; n--, bytes++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *bytes) & 0xff];
    return ~crc;
}

/* ---- Headers ---- */

struct header {
    uint8_t bytes[ROOM];
    size_t used;
};

static void put(struct header *h, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++)
        h->bytes[h->used++] = (uint8_t)(value >> 8 * i);
}

/* Write a header, in which a name follows the first `fixed` bytes. */
static int write_header(const struct zip *z, const struct header *h, size_t fixed, const char *name)
{
    size_t length = strlen(name);

    return fwrite(h->bytes, 1, fixed, z->file) == fixed && fwrite(name, 1, length, z->file) == length &&
                   fwrite(h->bytes + fixed, 1, h->used - fixed, z->file) == h->used - fixed
               ? 0
               : -1;
}

/* What both headers of an entry have in common, up to the size of its name. */
static void put_entry(struct header *h, const struct zip_entry *e)
{
    int is_large = e->size >= MAX_32;

    put(h, 2, is_large || e->offset >= MAX_32 ? NEEDS_64 : NEEDS);
    put(h, 2, 0); /* flags */
    put(h, 2, 0); /* stored */
    put(h, 2, 0); /* time */
    put(h, 2, DATE);
    put(h, 4, e->crc);
    put(h, 4, is_large ? MAX_32 : e->size);
    put(h, 4, is_large ? MAX_32 : e->size);
    put(h, 2, strlen(e->name));
}

static int write_local(const struct zip *z, const struct zip_entry *e)
{
    struct header h = {.used = 0};

    put(&h, 4, LOCAL_MAGIC);
    put_entry(&h, e);
    put(&h, 2, e->size >= MAX_32 ? 20 : 0);
    size_t fixed = h.used;
    if (e->size >= MAX_32) {
        put(&h, 2, EXTRA_64);
        put(&h, 2, 16);
        put(&h, 8, e->size);
        put(&h, 8, e->size);
    }
    return write_header(z, &h, fixed, e->name);
}

static int write_listed(const struct zip *z, const struct zip_entry *e)
{
    struct header h = {.used = 0};
    int is_large = e->size >= MAX_32, is_far = e->offset >= MAX_32;
    int extra = 16 * is_large + 8 * is_far;

    put(&h, 4, LISTED_MAGIC);
    put(&h, 2, MADE_BY);
    put_entry(&h, e);
    put(&h, 2, (uint64_t)(extra > 0 ? 4 + extra : 0));
    put(&h, 6, 0); /* comment, disk, attributes */
    put(&h, 4, MODE);
    put(&h, 4, is_far ? MAX_32 : e->offset);
    size_t fixed = h.used;
    if (extra > 0) {
        put(&h, 2, EXTRA_64);
        put(&h, 2, (uint64_t)extra);
    }
    if (is_large) {
        put(&h, 8, e->size);
        put(&h, 8, e->size);
    }
    if (is_far)
        put(&h, 8, e->offset);
    return write_header(z, &h, fixed, e->name);
}

/* ---- Calls ---- */

int zip_begin_entry(struct zip *z, const char *name, uint64_t size)
{
    off_t at = ftello(z->file);
    struct zip_entry *entry = realloc(z->entry, (z->count + 1) * sizeof *entry);

    if (z->count == 0)
        crc_init();
    if (!entry || at < 0)
        return -1;
    z->entry = entry;
    entry += z->count;
    *entry = (struct zip_entry){.name = strdup(name), .size = size, .offset = (uint64_t)at};
    if (!entry->name)
        return -1;
    z->count++;
    return write_local(z, entry);
}

int zip_write(struct zip *z, const void *bytes, size_t n)
{
    struct zip_entry *e = &z->entry[z->count - 1];

    e->crc = crc_update(e->crc, bytes, n);
    return fwrite(bytes, 1, n, z->file) == n ? 0 : -1;
}

/* The checksum, which is known only now, goes into the local header. */
int zip_end_entry(struct zip *z)
{
    const struct zip_entry *e = &z->entry[z->count - 1];
    struct header h = {.used = 0};

    put(&h, 4, e->crc);
    if (fseeko(z->file, (off_t)(e->offset + CRC_AT), SEEK_SET) != 0 || fwrite(h.bytes, 1, 4, z->file) != 4)
        return -1;
    return fseeko(z->file, 0, SEEK_END);
}

int zip_end(struct zip *z)
{
    struct header h = {.used = 0};
    off_t first = ftello(z->file), end;
    int failed = first < 0;

    for (size_t i = 0; i < z->count && !failed; i++)
        failed = write_listed(z, &z->entry[i]) != 0;
    end = failed ? -1 : ftello(z->file);
    if (end < 0)
        return -1;
    uint64_t size = (uint64_t)(end - first);
    int is_large = z->count >= MAX_16 || (uint64_t)end >= MAX_32;
    if (is_large) {
        put(&h, 4, END64_MAGIC);
        put(&h, 8, 44); /* bytes that follow */
        put(&h, 2, MADE_BY);
        put(&h, 2, NEEDS_64);
        put(&h, 8, 0); /* disks */
        put(&h, 8, z->count);
        put(&h, 8, z->count);
        put(&h, 8, size);
        put(&h, 8, (uint64_t)first);
        put(&h, 4, END64_AT);
        put(&h, 4, 0);
        put(&h, 8, (uint64_t)end);
        put(&h, 4, 1);
    }
    put(&h, 4, END_MAGIC);
    put(&h, 4, 0);
    put(&h, 2, is_large ? MAX_16 : z->count);
    put(&h, 2, is_large ? MAX_16 : z->count);
    put(&h, 4, is_large ? MAX_32 : size);
    put(&h, 4, is_large ? MAX_32 : (uint64_t)first);
    put(&h, 2, 0);
    return write_header(z, &h, h.used, "");
}

void zip_fini(struct zip *z)
{
    for (size_t i = 0; i < z->count; i++)
        free(z->entry[i].name);
    free(z->entry);
}
