#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "logical/format/logical_format.h"
#include "logical/format/names.h"

#define HEX  "[0123456789abcdef]"
#define HEX2 HEX HEX
#define HEX4 HEX2 HEX2
#define HEX8 HEX4 HEX4
#define UUID HEX8 "-" HEX4 "-" HEX4 "-" HEX4 "-" HEX8 HEX4

static const struct {
    enum name in;
    const char *pattern; /* of fnmatch */
    enum name name;
} names[] = {
    {NAME_CONTAINER, "s" HEX8, NAME_SESSION},
    {NAME_CONTAINER, MANIFEST_NAME, NAME_MANIFEST},
    {NAME_CONTAINER, MANIFEST_NEW_NAME "-" UUID, NAME_ASIDE},
    {NAME_CONTAINER, MANIFEST_NEW_NAME, NAME_FILE},
    {NAME_CONTAINER, LOCK_NAME, NAME_LOCK},
    {NAME_CONTAINER, FILEINDEX_FOLDER, NAME_INDEX},
    {NAME_CONTAINER, FILEINDEX_FOLDER FILEINDEX_NEXT, NAME_INDEX},
    {NAME_SESSION, "w" HEX8 ".data", NAME_FRAMES},
    {NAME_SESSION, "w" HEX8 ".extents", NAME_EXTENTS},
    {NAME_SESSION, HEX2, NAME_BUCKET},
    {NAME_SESSION, SESSION_NAME, NAME_FILE},
    {NAME_SESSION, SESSION_NEW_NAME, NAME_FILE},
    {NAME_SESSION, SESSION_GONE_NAME, NAME_REMOVED},
    {NAME_SESSION, SESSION_INDEX_NAME, NAME_FILE},
    {NAME_SESSION, SESSION_INDEX_NEW, NAME_FILE},
    {NAME_BUCKET, OWNER_NAME, NAME_OWNER},
    {NAME_BUCKET, "w" HEX8 ".data", NAME_FRAMES},
    {NAME_BUCKET, "w" HEX8 ".extents", NAME_EXTENTS},
    {NAME_INDEX, HEX2, NAME_INDEX_BUCKET},
    {NAME_INDEX, MANIFEST_NAME, NAME_FILE},
    {NAME_INDEX, MANIFEST_NEW_NAME, NAME_FILE},
    {NAME_INDEX, MANIFEST_COPY_NAME, NAME_FILE},
    {NAME_INDEX, SOURCES_NAME, NAME_FILE},
    {NAME_INDEX, LEASE_NAME, NAME_FILE},
    {NAME_INDEX_BUCKET, "p" HEX8 ".data", NAME_FILE},
    {NAME_INDEX_BUCKET, "p" HEX8 ".index", NAME_FILE},
    {NAME_INDEX_BUCKET, "v" HEX8 ".values", NAME_FILE},
};

/* Where the ending of a copy that a repair keeps begins, ".damaged" or ".damaged.N"; the end if there is none. */
static size_t name_stem(const char *text)
{
    const char *copy = strstr(text, KEPT_SUFFIX), *number = copy ? copy + strlen(KEPT_SUFFIX) : "?";

    if (*number == '.' && number[1] != '\0')
        number += 1 + strspn(number + 1, "0123456789");
    return *number == '\0' ? (size_t)(copy - text) : strlen(text);
}

enum name name_of(enum name in, const char *text, uint32_t *number)
{
    size_t n = name_stem(text), is_copy = text[n] != '\0';
    char stem[64]; /* longer than any of the names */

    snprintf(stem, sizeof stem, "%.*s", (int)n, text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].in != in || fnmatch(names[i].pattern, stem, 0) != 0)
            continue;
        *number = (uint32_t)strtoul(stem + (stem[0] == 's' || stem[0] == 'w'), NULL, 16);
        return !is_copy ? names[i].name : names[i].name >= NAME_MANIFEST ? NAME_FILE : NAME_FOREIGN;
    }
    return NAME_FOREIGN;
}

struct names_seen {
    enum name in;
    unsigned *seen;
};

static int names_add(void *arg, const char *text, struct error *e)
{
    const struct names_seen *n = arg;
    uint32_t number;

    (void)e;
    *n->seen |= 1u << name_of(n->in, text, &number);
    return DELTAFS_OK;
}

int names_in(struct io *io, const char *folder, enum name in, unsigned *seen, struct error *e)
{
    struct names_seen n = {in, seen};

    *seen = 0;
    return io_list(io, folder, names_add, &n, e);
}
