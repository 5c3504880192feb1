#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/compose.h"

#define ROOM_MIN 256

static void compose_grow(struct compose *c, size_t n)
{
    size_t room = 2 * c->room + n + ROOM_MIN;
    char *text = realloc(c->text, room);

    c->is_lacking |= !text;
    c->room = text ? room : c->room;
    c->text = text ? text : c->text;
}

void compose(struct compose *c, const char *fmt, ...)
{
    va_list ap;

    for (int tries = 0; tries < 2 && !c->is_lacking; tries++) {
        va_start(ap, fmt);
        int n = vsnprintf(c->text ? c->text + c->used : NULL, c->room - c->used, fmt, ap);
        va_end(ap);
        if (n < 0) {
            c->is_lacking = 1;
        } else if ((size_t)n < c->room - c->used) {
            c->used += (size_t)n;
            return;
        } else {
            compose_grow(c, (size_t)n);
        }
    }
}

int compose_end(struct compose *c, const char *what, char **text, size_t *n, struct error *e)
{
    compose(c, "%s", ""); /* so that there is a text */
    if (c->is_lacking) {
        free(c->text);
        return error_no_memory(e, c->room, what);
    }
    *text = c->text;
    *n = c->used;
    return DELTAFS_OK;
}
