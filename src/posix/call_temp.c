/* Files and folders with names that are made up: mkstemp and its kin. The C library opens them without this library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "posix/begin.h"
#include "posix/next.h"
#include "posix/route.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define MADE_UP 6 /* letters */
#define TRIES   1000

/* Try to make what has a name. Returns a descriptor, or 0; or -1 with errno. */
typedef int making(const char *path, int flags);

static int make_file(const char *path, int flags)
{
    return open(path, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
}

static int make_folder(const char *path, int flags)
{
    (void)flags;
    return mkdir(path, S_IRWXU);
}

/* A name that is not there. */
static int make_name(const char *path, int flags)
{
    struct stat st;

    (void)flags;
    if (lstat(path, &st) == 0)
        return posix_result(EEXIST);
    return errno == ENOENT ? 0 : -1;
}

/* Put letters for the six X before the suffix, until `make` succeeds. */
static int make_up(char *template, int suffix, int flags, making *make)
{
    size_t n = strlen(template);
    unsigned char bytes[MADE_UP];

    if (suffix < 0 || n < MADE_UP + (size_t)suffix)
        return posix_result(EINVAL);
    char *x = template + n - MADE_UP - (size_t)suffix;
    if (memcmp(x, "XXXXXX", MADE_UP) != 0)
        return posix_result(EINVAL);
    for (int i = 0; i < TRIES; i++) {
        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
            return -1;
        for (int k = 0; k < MADE_UP; k++)
            x[k] = LETTERS[bytes[k] % (sizeof LETTERS - 1)];
        int result = make(template, flags);
        if (result >= 0 || errno != EEXIST)
            return result;
    }
    return posix_result(EEXIST);
}

static int is_inside(const char *template)
{
    struct route r;

    posix_begin();
    return route_find(&r, AT_FDCWD, template);
}

CALL int mkostemps(char *template, int suffix, int flags)
{
    return is_inside(template) ? make_up(template, suffix, flags, make_file) : next.mkostemps(template, suffix, flags);
}
CALL_ALIAS(mkostemps64, mkostemps);

CALL int mkostemp(char *template, int flags)
{
    return mkostemps(template, 0, flags);
}
CALL_ALIAS(mkostemp64, mkostemp);

CALL int mkstemps(char *template, int suffix)
{
    return mkostemps(template, suffix, 0);
}
CALL_ALIAS(mkstemps64, mkstemps);

CALL int mkstemp(char *template)
{
    return mkostemps(template, 0, 0);
}
CALL_ALIAS(mkstemp64, mkstemp);

CALL char *mkdtemp(char *template)
{
    if (!is_inside(template))
        return next.mkdtemp(template);
    return make_up(template, 0, 0, make_folder) == 0 ? template : NULL;
}

CALL char *mktemp(char *template)
{
    if (!is_inside(template))
        return next.mktemp(template);
    if (make_up(template, 0, 0, make_name) != 0)
        *template = '\0';
    return template;
}

/* ---- Names in a folder that is given ---- */

static int is_folder(const char *path)
{
    struct stat st;

    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK) == 0;
}

/* As that of the C library: the environment comes first, and the prefix has at most five letters. */
CALL char *tempnam(const char *folder, const char *prefix)
{
    const char *given = secure_getenv("TMPDIR");
    char *path = NULL;

    given = is_folder(given) ? given : is_folder(folder) ? folder : NULL;
    if (!given || !is_inside(given))
        return next.tempnam(folder, prefix);
    if (asprintf(&path, "%s/%.5sXXXXXX", given, prefix ? prefix : "file") < 0)
        return NULL;
    if (make_up(path, 0, 0, make_name) == 0)
        return path;
    free(path);
    return NULL;
}
