#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "base/uuid.h"

int uuid_create(uint8_t uuid[16], struct error *e)
{
    ssize_t got;

    do
        got = getrandom(uuid, 16, 0);
    while (got < 0 && errno == EINTR);
    if (got != 16)
        return error_system(e, errno, "get random bytes for", "the directory's UUID");
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* RFC 4122: version 4, variant 1 */
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
    return DELTAFS_OK;
}

void uuid_to_text(const uint8_t uuid[16], char text[UUID_TEXT_SIZE])
{
    char *p = text;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        p += snprintf(p, 3, "%02x", uuid[i]);
    }
}

int uuid_parse(const char *text, uint8_t uuid[16])
{
    char again[UUID_TEXT_SIZE];
    const char *p = text;

    for (int i = 0; i < 16; i++) {
        unsigned byte;
        int n;
        p += *p == '-';
        if (sscanf(p, "%2x%n", &byte, &n) != 1)
            return -1;
        uuid[i] = (uint8_t)byte;
        p += n;
    }
    uuid_to_text(uuid, again);
    return strcmp(text, again) == 0 ? 0 : -1;
}
