#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs.h>
#include "tools/text.h"

#define MESSAGE_MAX 4096

const char *text_program = "deltafs";
int text_is_silent;
static char kept[MESSAGE_MAX];

size_t text_utf8_length(const char *text, size_t n)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

    if (length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

size_t text_character(const char *s, size_t n)
{
    size_t length = text_utf8_length(s, n);
    uint8_t c = (uint8_t)s[0];

    if (length == 0)
        return c >= 0xa0;
    int is_control = c < 0x20 || c == 0x7f || (c == 0xc2 && (uint8_t)s[1] < 0xa0);
    return is_control ? 0 : length;
}

void text_show(const char *bytes, size_t n, char *out, size_t room)
{
    size_t used = 0, length;

    for (size_t i = 0; i < n && used + 5 <= room; i += length) {
        unsigned char c = (unsigned char)bytes[i];
        length = text_character(bytes + i, n - i);
        if (length > 0) {
            memcpy(out + used, bytes + i, length);
            used += length;
            continue;
        }
        length = 1;
        if (c == '\n' || c == '\r' || c == '\t')
            used += (size_t)snprintf(out + used, room - used, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else
            used += (size_t)snprintf(out + used, room - used, "\\x%02x", c);
    }
    out[used] = '\0';
}

int text_fail(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(kept, sizeof kept, fmt, ap);
    va_end(ap);
    if (!text_is_silent)
        text_print_kept();
    return code;
}

int text_keep(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(kept, sizeof kept, fmt, ap);
    va_end(ap);
    return code;
}

const char *text_kept(void)
{
    return kept;
}

void text_say(const char *fmt, ...)
{
    va_list ap;
    char message[2 * MESSAGE_MAX], shown[4 * sizeof message + 1];

    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    text_show(message, strlen(message), shown, sizeof shown);
    puts(shown);
}

void text_print_kept(void)
{
    char shown[4 * MESSAGE_MAX + 1];

    fflush(stdout);
    text_show(kept, strlen(kept), shown, sizeof shown);
    if (shown[0] != '\0')
        fprintf(stderr, "%s: %s\n", text_program, shown);
    kept[0] = '\0';
}

int text_number(const char *text, uint64_t *out)
{
    int is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    char *end;

    if (is_hex ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
        return -1;
    errno = 0;
    unsigned long long v = strtoull(text, &end, is_hex ? 16 : 10);
    if (errno != 0 || *end != '\0')
        return -1;
    *out = v;
    return 0;
}

const char *text_path(const char *name)
{
    static const char prefix[] = "deltafs:";

    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

int text_is_in_namespace(const char *name)
{
    return strstr(text_path(name), ":/") != NULL;
}

const char *text_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int text_exit_code(int status)
{
    switch (status) {
    case DELTAFS_OK:
        return EXIT_OK;
    case DELTAFS_ERR_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case DELTAFS_ERR_INVALID:
    case DELTAFS_ERR_OPTION:
    case DELTAFS_ERR_SCHEMA:
        return EXIT_USAGE;
    default:
        return EXIT_TROUBLE;
    }
}

int text_of_call(int status)
{
    return status == DELTAFS_OK ? EXIT_OK : text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
}

int text_finish(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return text_fail(EXIT_TROUBLE, "cannot write to standard output: %s", strerror(errno));
    return EXIT_OK;
}

int text_ends_in_rank(const char *path)
{
    static const char digits[] = "0123456789";
    const char *slash = strrchr(path, '/'), *dot = strchr(slash ? slash : path, '.');

    for (; dot; dot = strchr(dot + 1, '.')) {
        size_t step = strspn(dot + 1, digits);
        const char *rank = dot + 1 + step;
        if (step == 0 || *rank != '.' || strspn(rank + 1, digits) == 0)
            continue;
        const char *end = rank + 1 + strspn(rank + 1, digits);
        if (*end == '\0' || (*end == '.' && !strchr(end + 1, '.')))
            return 1;
    }
    return 0;
}
