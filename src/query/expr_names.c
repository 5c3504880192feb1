/* Unknown names: the nearest one by the number of letters to insert, delete or replace. */
#include <stdio.h>
#include <string.h>
#include "query/expr_names.h"

#define NAME_MAX_LIKE 63 /* longer names are not compared */
#define NAMES_MAX     512

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t name_distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_LIKE + 1], n = strlen(b);

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(replaced, 1 + least(row[j], row[j + 1]));
        }
    }
    return row[n];
}

static const char *name_like(const struct expr_scope *scope, const char *name)
{
    size_t best = 2 + strlen(name) / 3; /* more is another name */
    const char *like = NULL, *other;

    if (strlen(name) > NAME_MAX_LIKE)
        return NULL;
    if (best > 1 + strlen(name))
        best = 1 + strlen(name);
    for (size_t i = 0; (other = scope->name(scope->context, i)) != NULL; i++) {
        size_t distance = strlen(other) <= NAME_MAX_LIKE ? name_distance(name, other) : best;
        if (distance >= best)
            continue;
        best = distance;
        like = other;
    }
    return like;
}

/* "a, b, c", as many as fit. */
static void names_list(const struct expr_scope *scope, char *out)
{
    const char *name;
    size_t used = 0;

    strcpy(out, "none");
    for (size_t i = 0; (name = scope->name(scope->context, i)) != NULL; i++) {
        if (used + strlen(name) + sizeof ", , ..." > NAMES_MAX) {
            strcpy(out + used, i > 0 ? ", ..." : "...");
            return;
        }
        used += (size_t)sprintf(out + used, "%s%s", i > 0 ? ", " : "", name);
    }
}

int expr_is_named(const struct expr_scope *scope, const char *name)
{
    const char *other;

    for (size_t i = 0; (other = scope->name(scope->context, i)) != NULL; i++)
        if (strcmp(other, name) == 0)
            return 1;
    return 0;
}

int expr_unknown(const struct expr_scope *scope, uint32_t offset, const char *name, struct error *e)
{
    const char *like = name_like(scope, name);
    char names[NAMES_MAX];

    if (expr_is_named(scope, name))
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "offset %u: the attribute '%.100s' is not set for this epoch",
                         offset, name);
    names_list(scope, names);
    return error_set(e, DELTAFS_ERR_INVALID,
                     "offset %u: no column or attribute is named '%.100s'; %s%s%s names are: %s", offset, name,
                     like ? "did you mean '" : "the", like ? like : "", like ? "'? The" : "", names);
}
