#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "directory/format/strips.h"

int strips_make(struct strips *p, const char *schema, struct error *e)
{
    deltafs_schema *s;

    *p = (struct strips){.count = 0};
    if (schema[0] == '\0')
        return DELTAFS_OK;
    int status = deltafs_schema_parse(schema, &s);
    if (status != DELTAFS_OK)
        return error_set(e, status, "%s", deltafs_errmsg(NULL));
    size_t size = deltafs_schema_size(s), least = (size + STRIPS_COUNT_MAX - 1) / STRIPS_COUNT_MAX;
    uint32_t bytes = 0;
    least = least > STRIPS_BYTES_MIN ? least : STRIPS_BYTES_MIN;
    for (size_t i = 0; i < deltafs_schema_count(s); i++) {
        bytes += deltafs_schema_field(s, i)->size;
        if (bytes < least && i + 1 < deltafs_schema_count(s))
            continue;
        p->bytes[p->count++] = bytes;
        bytes = 0;
    }
    p->count = p->count < 2 ? 0 : p->count;
    deltafs_schema_destroy(s);
    return DELTAFS_OK;
}

int strips_parse(struct strips *p, const char *text, int64_t value_size)
{
    uint64_t all = 0;

    *p = (struct strips){.count = 0};
    for (char *end; p->count < STRIPS_COUNT_MAX && *text >= '1' && *text <= '9'; text = end + 1) {
        uint64_t bytes = strtoull(text, &end, 10);
        if (bytes > (uint64_t)value_size - all)
            return -1;
        p->bytes[p->count++] = (uint32_t)bytes;
        all += bytes;
        if (*end == '\0')
            return p->count > 1 && all == (uint64_t)value_size ? 0 : -1;
        if (*end != ',')
            return -1;
    }
    return -1;
}

void strips_print(const struct strips *p, char *room)
{
    for (uint32_t i = 0; i < p->count; i++)
        room += sprintf(room, "%s%u", i > 0 ? "," : "", p->bytes[i]);
}
