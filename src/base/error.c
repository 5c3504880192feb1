#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"

/* The arguments may point into e->text. A text that is too long ends in "...", not in a part of a character. */
static void error_format(struct error *e, int status, const char *fmt, va_list ap)
{
    char text[ERROR_TEXT_MAX];
    int n = vsnprintf(text, sizeof text, fmt, ap);

    if (n >= (int)sizeof text) {
        size_t end = sizeof text - sizeof "...";
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
            end--;
        memcpy(text + end, "...", sizeof "...");
    }
    e->status = status;
    strcpy(e->text, text);
}

int error_set(struct error *e, int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_format(e, status, fmt, ap);
    va_end(ap);
    return status;
}

int error_system(struct error *e, int errnum, const char *what, const char *path)
{
    int status = DELTAFS_ERR_IO;

    if (errnum == ENOSPC || errnum == EDQUOT)
        status = DELTAFS_ERR_NO_SPACE;
    else if (errnum == ENOMEM)
        status = DELTAFS_ERR_MEMORY;
    errno = errnum; /* for %m */
    return error_set(e, status, "%s: cannot %s: %m", path, what);
}

int error_damaged(struct error *e, const char *path, uint64_t offset, const char *fmt, ...)
{
    va_list ap;
    struct error what;

    va_start(ap, fmt);
    error_format(&what, DELTAFS_ERR_DAMAGED, fmt, ap);
    va_end(ap);
    return error_set(e, DELTAFS_ERR_DAMAGED, "%s: damaged at offset %llu: %s", path, (unsigned long long)offset,
                     what.text);
}

int error_no_memory(struct error *e, size_t bytes, const char *what)
{
    return error_set(e, DELTAFS_ERR_MEMORY, "cannot allocate %zu bytes for %s", bytes, what);
}

struct error *error_ignored(void)
{
    static _Thread_local struct error e;

    return &e;
}
