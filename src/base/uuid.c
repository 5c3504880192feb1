#include <errno.h>
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

static const char digits[] = "0123456789abcdef";

void uuid_to_text(const uint8_t uuid[16], char text[UUID_TEXT_SIZE])
{
    char *p = text;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = digits[uuid[i] >> 4];
        *p++ = digits[uuid[i] & 15];
    }
    *p = '\0';
}

/* Its value, or -1. */
static int parse_digit(char c)
{
    const char *digit = c != '\0' ? strchr(digits, c) : NULL;

    return digit ? (int)(digit - digits) : -1;
}

int uuid_parse(const char *text, uint8_t uuid[16])
{
    char again[UUID_TEXT_SIZE];
    const char *p = text;

    for (int i = 0; i < 16; i++, p += 2) {
        p += *p == '-';
        int high = parse_digit(p[0]), low = high < 0 ? -1 : parse_digit(p[1]);
        if (low < 0)
            return -1;
        uuid[i] = (uint8_t)(high << 4 | low);
    }
    uuid_to_text(uuid, again);
    return strcmp(text, again) == 0 ? 0 : -1;
}
