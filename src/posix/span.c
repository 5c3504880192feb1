#include "posix/span.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The number of the first span that ends at `at` or behind it. */
static size_t place_of(const struct spans *s, uint64_t at)
{
    size_t low = 0, high = s->count;

    if (high > 0 && s->span[high - 1].to < at)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->span[middle].to < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int make_room(struct spans *s)
{
    if (s->count < s->room)
        return 0;
    size_t room = s->room > 0 ? 2 * s->room : 4;
    struct span *span = realloc(s->span, room * sizeof *span);
    if (!span)
        return ENOMEM;
    s->span = span;
    s->room = room;
    return 0;
}

int spans_add(struct spans *s, uint64_t from, uint64_t to)
{
    size_t i = place_of(s, from), end = i;

    if (from >= to)
        return 0;
    for (; end < s->count && s->span[end].from <= to; end++) {
        from = s->span[end].from < from ? s->span[end].from : from;
        to = s->span[end].to > to ? s->span[end].to : to;
        s->bytes -= s->span[end].to - s->span[end].from;
    }
    if (end == i) {
        int error = make_room(s);
        if (error != 0)
            return error;
        memmove(s->span + i + 1, s->span + i, (s->count - i) * sizeof *s->span);
        s->count++;
    } else {
        memmove(s->span + i + 1, s->span + end, (s->count - end) * sizeof *s->span);
        s->count -= end - i - 1;
    }
    s->span[i] = (struct span){from, to};
    s->bytes += to - from;
    return 0;
}

void spans_cut(struct spans *s, uint64_t end)
{
    while (s->count > 0 && s->span[s->count - 1].from >= end) {
        s->count--;
        s->bytes -= s->span[s->count].to - s->span[s->count].from;
    }
    if (s->count > 0 && s->span[s->count - 1].to > end) {
        s->bytes -= s->span[s->count - 1].to - end;
        s->span[s->count - 1].to = end;
    }
}

void spans_clear(struct spans *s)
{
    s->count = 0;
    s->bytes = 0;
}

void spans_fini(struct spans *s)
{
    free(s->span);
}

const struct span *spans_find(const struct spans *s, uint64_t at)
{
    size_t i = place_of(s, at + 1);

    return i < s->count ? &s->span[i] : NULL;
}
