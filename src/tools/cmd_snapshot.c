/* deltafs snapshot: publish what a namespace has, and use what was published. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <deltafs/deltafs_namespace.h>
#include "tools/cmd.h"
#include "tools/report.h"

/* The first member of every command's values: registries, joined by ':'. */
struct registries {
    char text[4 * PATH_MAX];
};

static const char *parse_registry(const char *text, void *out)
{
    struct registries *r = out;
    size_t used = strlen(r->text);
    int n = snprintf(r->text + used, sizeof r->text - used, "%s%s", used > 0 ? ":" : "", text);

    return n >= 0 && (size_t)n < sizeof r->text - used ? NULL : "is too much; give fewer registries";
}

#define REGISTRY_OPTION                                                                                                \
    {                                                                                                                  \
        "registry", 0, "REG",                                                                                          \
            "the folder that NAME is in; several are searched in this order. Without: DELTAFS_REGISTRY",               \
            parse_registry, 0                                                                                          \
    }

static const struct command_option registry_options[] = {REGISTRY_OPTION, {0}};

#define NAME_ROOM (5 * PATH_MAX)

static void free_names(char **names)
{
    for (char **n = names; *n; n++)
        free(*n);
    free(names);
}

/* The name of a snapshot, as the library takes it. */
static const char *full_name(const struct registries *r, const char *name, char full[NAME_ROOM])
{
    snprintf(full, NAME_ROOM, "%s%s%s", strchr(name, '@') ? "" : r->text, strchr(name, '@') ? "" : "@", name);
    return full;
}

/* ---- publish, withdraw ---- */

static int publish_run(const struct command_call *c)
{
    char full[NAME_ROOM];

    return text_of_call(deltafs_snapshot_publish(text_path(c->operand[0]), full_name(c->values, c->operand[1], full)));
}

static const struct command cmd_snapshot_publish = {
    .name = "publish",
    .usage = "NS NAME [OPTION...]",
    .text = "Publish what the namespace NS has now as a snapshot. The registry is created if it does not exist.",
    .missing = "NS and NAME must be given",
    .least = 2,
    .most = 2,
    .size = sizeof(struct registries),
    .option = registry_options,
    .run = publish_run};

static int withdraw_run(const struct command_call *c)
{
    char full[NAME_ROOM];
    int code = EXIT_OK;

    for (int i = 0; i < c->count; i++) {
        int one = text_of_call(deltafs_snapshot_withdraw(full_name(c->values, c->operand[i], full)));
        code = one != EXIT_OK ? one : code;
    }
    return code;
}

static const struct command cmd_snapshot_withdraw = {.name = "withdraw",
                                                     .usage = "NAME... [OPTION...]",
                                                     .text = "Remove snapshots. 'gc' then frees what only they needed.",
                                                     .missing = "NAME is missing",
                                                     .least = 1,
                                                     .size = sizeof(struct registries),
                                                     .option = registry_options,
                                                     .run = withdraw_run};

/* ---- list ---- */

static int list_run(const struct command_call *c)
{
    const struct registries *r = c->values;
    deltafs_snapshot_list *l;
    const char *name;

    if (c->count > 0)
        return text_fail(EXIT_USAGE, "list: takes no operand; give --registry %s", c->operand[0]);
    int status = deltafs_snapshot_list_open(r->text, &l);

    if (status != DELTAFS_OK)
        return text_of_call(status);
    while ((status = deltafs_snapshot_list_next(l, &name)) == DELTAFS_OK && name)
        text_say("%s", name);
    int code = text_of_call(status);
    deltafs_snapshot_list_close(l);
    return code;
}

static const struct command cmd_snapshot_list = {.name = "list",
                                                 .usage = "[OPTION...]",
                                                 .text =
                                                     "Print all snapshots of the registries, one REG@NAME per line.",
                                                 .size = sizeof(struct registries),
                                                 .option = registry_options,
                                                 .run = list_run};

/* ---- show ---- */

struct show {
    struct registries registries;
    int is_json;
};

static const char *const policies[] = {[DELTAFS_SNAPSHOT_NEWEST] = "newest",
                                       [DELTAFS_SNAPSHOT_FIRST] = "first",
                                       [DELTAFS_SNAPSHOT_LAST] = "last",
                                       [DELTAFS_SNAPSHOT_ERROR] = "error"};

static void show_inputs(const struct deltafs_snapshot_layer *l)
{
    for (size_t i = 0; i < l->inputs; i++)
        printf("%s%zu", i > 0 ? ", " : "", l->input[i]);
}

static void show_layer(size_t i, const struct deltafs_snapshot_layer *l)
{
    printf("layer %zu: ", i);
    if (l->path)
        printf("%s (%zu table%s%s)%s", l->path, l->tables, text_plural(l->tables),
               l->is_complete ? ", with all names" : "", l->inputs > 0 ? " on " : "");
    else
        printf("merge of ");
    show_inputs(l);
    if (!l->path)
        printf(", policy %s", policies[l->policy]);
    putchar('\n');
}

static void show_layer_json(size_t i, const struct deltafs_snapshot_layer *l)
{
    printf("%s\n    {\"path\": ", i > 0 ? "," : "");
    if (l->path)
        report_json_text(stdout, l->path, strlen(l->path));
    else
        fputs("null", stdout);
    printf(", \"tables\": %zu, \"is_complete\": %s, \"policy\": ", l->tables, l->is_complete ? "true" : "false");
    printf(l->path ? "%s" : "\"%s\"", l->path ? "null" : policies[l->policy]);
    printf(", \"inputs\": [");
    show_inputs(l);
    printf("]}");
}

static int show_snapshot(const struct show *o, deltafs_snapshot *s)
{
    struct deltafs_snapshot_stat st = {.struct_size = sizeof st};
    struct deltafs_snapshot_layer l = {.struct_size = sizeof l};
    struct report r = {.is_json = o->is_json};
    char text[64] = "";
    int status = deltafs_snapshot_stat(s, &st);
    time_t seconds = (time_t)(st.time / 1000000000);
    struct tm tm;

    if (status != DELTAFS_OK)
        return text_of_call(status);
    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &tm);
    fputs(o->is_json ? "{" : "", stdout);
    report_text(&r, "snapshot", "snapshot", st.path);
    report_text(&r, "uuid", "uuid", st.uuid);
    report_text(&r, "published", "published", text);
    fputs(o->is_json ? ",\n  \"layers\": [" : "", stdout);
    for (size_t i = 0; i < st.layers && status == DELTAFS_OK; i++) {
        status = deltafs_snapshot_layer(s, i, &l);
        if (status == DELTAFS_OK)
            (o->is_json ? show_layer_json : show_layer)(i, &l);
    }
    fputs(o->is_json ? "]\n}\n" : "", stdout);
    return text_of_call(status);
}

static int show_run(const struct command_call *c)
{
    const struct show *o = c->values;
    char full[NAME_ROOM];
    deltafs_snapshot *s;
    int code = text_of_call(deltafs_snapshot_open(full_name(&o->registries, c->operand[0], full), &s));

    if (code != EXIT_OK)
        return code;
    code = show_snapshot(o, s);
    deltafs_snapshot_close(s);
    return code;
}

static const struct command_option show_options[] = {
    REGISTRY_OPTION, {"json", 0, NULL, "for programs", NULL, offsetof(struct show, is_json)}, {0}};

static const struct command cmd_snapshot_show = {.name = "show",
                                                 .usage = "NAME [OPTION...]",
                                                 .text =
                                                     "Print what a snapshot consists of; the last layer is the top.",
                                                 .missing = "NAME is missing",
                                                 .least = 1,
                                                 .most = 1,
                                                 .size = sizeof(struct show),
                                                 .option = show_options,
                                                 .run = show_run};

/* ---- merge ---- */

struct merge {
    struct registries registries;
    const char *output;
    int policy;
};

const char *cmd_parse_policy(const char *text, void *out)
{
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
        if (strcmp(text, policies[i]) == 0) {
            *(int *)out = (int)i;
            return NULL;
        }
    return "is none of first, last, newest and error";
}

/* The full names of all operands, to be freed; NULL: no memory, which was said. */
static char **full_names(const struct registries *r, const struct command_call *c)
{
    char full[NAME_ROOM], **names = calloc((size_t)c->count + 1, sizeof *names);

    for (int i = 0; i < c->count && names; i++) {
        names[i] = strdup(full_name(r, c->operand[i], full));
        if (!names[i]) {
            free_names(names);
            names = NULL;
        }
    }
    if (!names)
        text_fail(EXIT_TROUBLE, "no memory");
    return names;
}

static int merge_run(const struct command_call *c)
{
    const struct merge *m = c->values;
    char full[NAME_ROOM];

    if (!m->output)
        return text_fail(EXIT_USAGE, "merge: give -o NAME");
    char **names = full_names(&m->registries, c);
    if (!names)
        return EXIT_TROUBLE;
    int code = text_of_call(deltafs_snapshot_merge((size_t)c->count, (const char *const *)names, m->policy,
                                                   full_name(&m->registries, m->output, full)));
    free_names(names);
    return code;
}

static const struct command_option merge_options[] = {
    REGISTRY_OPTION,
    {"output", 'o', "NAME", "the snapshot that is published", cmd_parse_text, offsetof(struct merge, output)},
    {"policy", 0, "P",
     "which snapshot counts where they are in conflict: first, last, newest (default), or error: the command fails",
     cmd_parse_policy, offsetof(struct merge, policy)},
    {0}};

static const struct command cmd_snapshot_merge = {.name = "merge",
                                                  .usage = "NAME NAME... -o NAME [OPTION...]",
                                                  .text = "Publish several snapshots as one. Nothing is copied.",
                                                  .missing = "NAME is missing; two or more can be merged",
                                                  .least = 2,
                                                  .size = sizeof(struct merge),
                                                  .option = merge_options,
                                                  .run = merge_run};

/* ---- conflicts, diff ---- */

static int print_paths(int status, deltafs_snapshot_paths *paths)
{
    const char *path;

    if (status != DELTAFS_OK)
        return text_of_call(status);
    while ((status = deltafs_snapshot_paths_next(paths, &path)) == DELTAFS_OK && path)
        text_say("%s", path);
    int code = text_of_call(status);
    deltafs_snapshot_paths_close(paths);
    return code;
}

static int conflicts_run(const struct command_call *c)
{
    deltafs_snapshot_paths *paths = NULL;
    char **names = full_names(c->values, c);

    if (!names)
        return EXIT_TROUBLE;
    int status = deltafs_snapshot_conflicts_open((size_t)c->count, (const char *const *)names, &paths);
    free_names(names);
    return print_paths(status, paths);
}

static const struct command cmd_snapshot_conflicts = {
    .name = "conflicts",
    .usage = "NAME NAME... [OPTION...]",
    .text = "Print the paths that snapshots have changed differently, one per line.",
    .missing = "NAME is missing; two or more can be in conflict",
    .least = 2,
    .size = sizeof(struct registries),
    .option = registry_options,
    .run = conflicts_run};

/* A name with a '/', and without '@', is the path of a namespace. */
static const char *path_or_name(const struct registries *r, const char *name, char full[NAME_ROOM])
{
    return strchr(name, '/') && !strchr(name, '@') ? text_path(name) : full_name(r, name, full);
}

static int diff_run(const struct command_call *c)
{
    char a[NAME_ROOM], b[NAME_ROOM];
    deltafs_snapshot_paths *paths = NULL;
    int status = deltafs_snapshot_diff_open(path_or_name(c->values, c->operand[0], a),
                                            path_or_name(c->values, c->operand[1], b), &paths);

    return print_paths(status, paths);
}

static const struct command cmd_snapshot_diff = {.name = "diff",
                                                 .usage = "A B [OPTION...]",
                                                 .text = "Print the paths that differ, one per line.",
                                                 .missing = "A and B must be given",
                                                 .least = 2,
                                                 .most = 2,
                                                 .size = sizeof(struct registries),
                                                 .option = registry_options,
                                                 .run = diff_run};

/* ---- gc ---- */

static int gc_one(void *values, const char *path)
{
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    int code = text_of_call(deltafs_namespace_collect(path, &c));

    (void)values;
    if (code != EXIT_OK)
        return code;
    if (c.is_kept)
        text_say(
            "%s: all is kept, for a snapshot that is being published; if none is, a process was killed then: remove "
            "the file PIN.UUID in there that has no line End",
            path);
    else
        text_say("%s: %" PRIu64 " bytes freed, %" PRIu64 " kept", path,
                 c.bytes_before > c.bytes_after ? c.bytes_before - c.bytes_after : 0, c.bytes_after);
    return EXIT_OK;
}

static const struct command cmd_snapshot_gc = {
    .name = "gc",
    .usage = "NS...",
    .text = "Free the bytes of files that neither the namespace nor a snapshot needs. Nobody may write meanwhile.",
    .missing = "NS is missing",
    .least = 1,
    .each = gc_one};

static const struct command *const subs[] = {&cmd_snapshot_publish,  &cmd_snapshot_list,      &cmd_snapshot_show,
                                             &cmd_snapshot_diff,     &cmd_snapshot_conflicts, &cmd_snapshot_merge,
                                             &cmd_snapshot_withdraw, &cmd_snapshot_gc,        NULL};

const struct command cmd_snapshot = {
    .name = "snapshot",
    .usage = "COMMAND ...",
    .text = "publishes and uses snapshots of namespaces. REG@NAME:/a/b is /a/b in a snapshot.",
    .option = registry_options,
    .sub = subs};
