#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "hdf5/h5match.h"

#define NAME_MAX_BYTES 1024

int h5match_parse(const char *text, struct h5pattern *out)
{
    char *rest;

    *out = (struct h5pattern){.text = strdup(text), .is_rooted = *text == '/'};
    if (!out->text)
        return -1;
    for (char *part = strtok_r(out->text, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (out->parts == H5MATCH_DEPTH)
            break;
        out->part[out->parts++] = part;
        if (!*rest)
            return 0;
    }
    h5match_fini(out);
    return -1;
}

void h5match_fini(struct h5pattern *p)
{
    free(p->text);
    *p = (struct h5pattern){0};
}

int h5match_may_enter(const struct h5pattern *p, const struct h5path *group)
{
    if (group->depth >= H5MATCH_DEPTH)
        return 0;
    if (!p->is_rooted)
        return 1;
    if (group->depth >= p->parts)
        return 0;
    for (size_t i = 0; i < group->depth; i++)
        if (fnmatch(p->part[i], group->name[i], 0) != 0)
            return 0;
    return 1;
}

/* The first `size` bytes of a part. */
static int match_beginning(const char *part, size_t size, const char *name)
{
    char beginning[NAME_MAX_BYTES];

    if (size >= sizeof beginning)
        return 0;
    memcpy(beginning, part, size);
    beginning[size] = '\0';
    return fnmatch(beginning, name, 0) == 0;
}

enum h5match h5match_dataset(const struct h5pattern *p, const struct h5path *dataset, int is_compound,
                             const char **member)
{
    const char *last = p->part[p->parts - 1], *name = dataset->name[dataset->depth - 1];

    *member = NULL;
    if (dataset->depth < p->parts || (p->is_rooted && dataset->depth != p->parts))
        return H5MATCH_NO;
    for (size_t i = 0; i + 1 < p->parts; i++)
        if (fnmatch(p->part[i], dataset->name[dataset->depth - p->parts + i], 0) != 0)
            return H5MATCH_NO;
    /* Names may have dots, too: the first that leaves a name of the dataset before it is the one. */
    for (size_t at = 1; is_compound && last[0] && last[at]; at++)
        if (last[at] == '.' && last[at + 1] && match_beginning(last, at, name)) {
            *member = last + at + 1;
            return H5MATCH_YES;
        }
    if (fnmatch(last, name, 0) != 0)
        return H5MATCH_NO;
    return is_compound ? H5MATCH_MEMBERLESS : H5MATCH_YES;
}

static int match_number(const char *name, uint64_t *label)
{
    size_t size = strlen(name), at = size;

    while (at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    errno = 0;
    unsigned long long number = strtoull(name + at, NULL, 10);
    if (at == size || errno != 0 || number == UINT64_MAX)
        return 0;
    *label = number;
    return 1;
}

int h5match_label(const struct h5pattern *p, const struct h5path *dataset, int is_compound, int is_spelled,
                  uint64_t *label)
{
    size_t above = dataset->depth - p->parts;

    for (size_t i = 0; i < dataset->depth - !is_compound; i++)
        if (is_spelled == (i >= above && !strpbrk(p->part[i - above], "*?[")) && match_number(dataset->name[i], label))
            return 1;
    return 0;
}
