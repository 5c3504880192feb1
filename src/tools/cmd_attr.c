/* deltafs attr: the attributes of a directory. */
#include <stdlib.h>
#include <string.h>
#include "tools/attribute_text.h"
#include "tools/caret.h"
#include "tools/cmd.h"
#include "tools/target.h"

struct values {
    struct command_number from;
    struct attribute_unit unit;
};

/* All attributes, or those of one name. */
static int attr_show(const char *path, const char *name)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    deltafs_dir *dir;
    int code = target_open_directory(path, &dir);
    size_t found = 0;

    if (code != EXIT_OK)
        return code;
    for (size_t i = 0; deltafs_attribute_at(dir, i, &a) == DELTAFS_OK; i++)
        if (!name || strcmp(a.name, name) == 0) {
            attribute_print(&a, name ? SIZE_MAX : ATTRIBUTE_SHOWN);
            found++;
        }
    deltafs_close(dir);
    return name && found == 0 ? text_fail(EXIT_NOT_FOUND, "%s: has no attribute '%s'", path, name) : EXIT_OK;
}

/* With the place of a mistake in an expression. */
static int attr_fail(const struct deltafs_attribute *a)
{
    const char *message = deltafs_errmsg(NULL);
    int code = text_fail(EXIT_TROUBLE, "%s", message);
    char name[300];

    snprintf(name, sizeof name, "'%s'", a->name);
    caret_show(name, a->type == DELTAFS_ATTRIBUTE_EXPRESSION ? a->value : NULL, message);
    return code;
}

static void unit_put(struct deltafs_attribute *a, const struct attribute_unit *unit)
{
    a->unit_si = unit->si;
    memcpy(a->unit_dimension, unit->dimension, sizeof a->unit_dimension);
}

/* Give a computed column the unit from the label on, with the expression that it has. *found: how many expressions
 * there are. Of several, the first would remove the others: they are refused. */
static int attr_set_unit(const char *path, const char *name, const struct values *v, size_t *found)
{
    struct deltafs_attribute a = {.struct_size = sizeof a}, column = a;
    deltafs_dir *dir;
    int code = target_open_directory(path, &dir);

    if (code != EXIT_OK)
        return code;
    for (size_t i = 0; deltafs_attribute_at(dir, i, &a) == DELTAFS_OK; i++)
        if (a.type == DELTAFS_ATTRIBUTE_EXPRESSION && a.from >= v->from.value && strcmp(a.name, name) == 0) {
            column = a;
            ++*found;
        }
    unit_put(&column, &v->unit);
    if (*found > 1)
        code = text_fail(EXIT_USAGE,
                         "attr: '%s' has %zu expressions, from different labels on; set each with its unit: "
                         "%s==EXPRESSION --from LABEL --unit UNIT",
                         name, *found, name);
    else if (*found == 1 && deltafs_attribute_set_closed(path, &column) != DELTAFS_OK)
        code = attr_fail(&column);
    deltafs_close(dir);
    return code;
}

/* `name` is what stands before the '=', and `text` what is behind it. */
static int attr_set(const char *path, const char *name, const char *text, const struct values *v)
{
    struct deltafs_attribute a = {.struct_size = sizeof a, .name = name, .from = v->from.value};
    const char *wrong = attribute_parse_value(text, &a);
    size_t computed = 0;
    int code = EXIT_OK;

    if (!wrong && a.type == DELTAFS_ATTRIBUTE_COLUMN && !v->unit.is_given)
        a.type = DELTAFS_ATTRIBUTE_NONE;
    if (v->unit.is_given)
        unit_put(&a, &v->unit);
    if (wrong)
        code = text_fail(EXIT_USAGE, "attr: %s='%s' %s", name, text, wrong);
    else if (a.type == DELTAFS_ATTRIBUTE_COLUMN)
        code = attr_set_unit(path, name, v, &computed);
    if (code == EXIT_OK && computed == 0 && deltafs_attribute_set_closed(path, &a) != DELTAFS_OK)
        code = attr_fail(&a);
    free((void *)(uintptr_t)a.value);
    return code;
}

static int attr_run(const struct command_call *c)
{
    const struct values *v = c->values;
    const char *path = text_path(c->operand[0]), *name = c->count > 1 ? c->operand[1] : NULL;
    char *equals = name ? strchr(name, '=') : NULL;

    if (*path == '\0')
        return target_refuse_empty();
    if (!equals && (v->from.is_given || v->unit.is_given))
        return text_fail(EXIT_USAGE, "attr: --from and --unit need NAME=VALUE");
    if (!equals)
        return attr_show(path, name);
    char *before = strndup(name, (size_t)(equals - name));
    int code = before ? attr_set(path, before, equals + 1, v) : text_fail(EXIT_TROUBLE, "attr: no memory");
    free(before);
    return code;
}

static const struct command_option options[] = {
    {"from", 0, "LABEL", "the value is valid from this epoch on (default: for all)", cmd_parse_number,
     offsetof(struct values, from)},
    {"unit", 0, "UNIT", "such as m/s, \"1e-6 s\" or \"kg m s^-2\"; of a column: NAME= --unit UNIT",
     attribute_parse_unit, offsetof(struct values, unit)},
    {0}};

const struct command cmd_attr = {
    .name = "attr",
    .usage = "DIR [NAME[=VALUE]] [OPTION...]",
    .text = "Print the attributes of a directory, print one, set one, or remove one (NAME=). VALUE is a\n"
            "    number, numbers with commas between them, \"TEXT\" in double quotes, or =EXPRESSION, which\n"
            "    defines a computed column (attr DIR 'NAME==EXPRESSION').",
    .missing = "DIR must be given, and at most one NAME or NAME=VALUE",
    .least = 1,
    .most = 2,
    .size = sizeof(struct values),
    .option = options,
    .run = attr_run};
