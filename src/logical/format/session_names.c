#include <stdio.h>
#include <string.h>
#include "directory/format/manifest.h"
#include "fileindex/fileindex_format.h"
#include "logical/format/logical_format.h"
#include "logical/format/session_names.h"

/* `digits` hexadecimal digits, as we write them. */
static int name_number(const char *text, int digits, uint32_t *out)
{
    uint32_t v = 0;

    for (int i = 0; i < digits; i++) {
        const char *all = "0123456789abcdef", *p = text[i] ? strchr(all, text[i]) : NULL;
        if (!p)
            return 0;
        v = v << 4 | (uint32_t)(p - all);
    }
    *out = v;
    return 1;
}

/* Behind the name of a file: that it is a copy which a repair keeps. */
static int is_kept_end(const char *rest)
{
    size_t n = strlen(KEPT_SUFFIX);

    if (strncmp(rest, KEPT_SUFFIX, n) != 0)
        return 0;
    rest += n;
    return *rest == '\0' || (*rest == '.' && rest[1] != '\0' && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

int is_name_kept(const char *name)
{
    size_t n = strlen(MANIFEST_NAME);

    return strcmp(name, MANIFEST_NEW_NAME) == 0 || (strncmp(name, MANIFEST_NAME, n) == 0 && is_kept_end(name + n));
}

int is_name_aside(const char *name)
{
    size_t n = strlen(MANIFEST_NEW_NAME);

    return strncmp(name, MANIFEST_NEW_NAME "-", n + 1) == 0 && strlen(name + n + 1) == UUID_TEXT_SIZE - 1 &&
           strspn(name + n + 1, "0123456789abcdef-") == UUID_TEXT_SIZE - 1;
}

int is_name_session(const char *name, uint32_t *number)
{
    return name[0] == 's' && name_number(name + 1, 8, number) && name[9] == '\0';
}

int is_name_bucket(const char *name, uint32_t *bucket)
{
    return name_number(name, 2, bucket) && name[2] == '\0';
}

int is_name_log(const char *name, uint32_t *writer, int *kind)
{
    if (name[0] != 'w' || !name_number(name + 1, 8, writer))
        return 0;
    *kind = strcmp(name + 9, ".data") == 0 ? LOG_KIND_FRAMES : strcmp(name + 9, ".extents") == 0 ? LOG_KIND_EXTENTS : 0;
    return *kind != 0;
}

static int is_end(const char *rest)
{
    return *rest == '\0' || is_kept_end(rest);
}

int is_name_of_session(const char *name)
{
    static const char *const names[] = {SESSION_NAME, SESSION_NEW_NAME, SESSION_GONE_NAME, SESSION_INDEX_NAME,
                                        SESSION_INDEX_NEW};
    size_t n = strlen(SESSION_NAME);

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return strncmp(name, SESSION_NAME, n) == 0 && is_kept_end(name + n);
}

int is_name_of_keys(const char *name)
{
    static const char *const names[] = {MANIFEST_NEW_NAME, MANIFEST_NAME, SOURCES_NAME, LEASE_NAME};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0 && is_end(name + strlen(names[i])))
            return 1;
    return 0;
}

int is_name_log_of_keys(const char *name)
{
    uint32_t number;

    if ((name[0] != 'p' && name[0] != 'v') || !name_number(name + 1, 8, &number))
        return 0;
    if (name[0] == 'v')
        return strncmp(name + 9, ".values", 7) == 0 && is_end(name + 16);
    return (strncmp(name + 9, ".data", 5) == 0 && is_end(name + 14)) ||
           (strncmp(name + 9, ".index", 6) == 0 && is_end(name + 15));
}
