/* deltafs ns: create namespaces, and change what is in them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/place.h"

extern const struct command cmd_ns_cat, cmd_ns_cp, cmd_ns_du, cmd_ns_find, cmd_ns_ls, cmd_ns_stat;

static struct place_set set_to_change(void)
{
    return (struct place_set){.flags = O_RDWR};
}

static mode_t mask(void)
{
    mode_t m = umask(0);

    umask(m);
    return m;
}

/* ---- create ---- */

#define CREATE_ON_MAX 64

struct create {
    size_t count;
    const char *on[CREATE_ON_MAX];
    int policy;
};

static const char *parse_on(const char *text, void *out)
{
    struct create *c = out;

    if (!strchr(text, '@'))
        return "names no snapshot; give REG@NAME";
    if (c->count == CREATE_ON_MAX)
        return "is too much; 'deltafs snapshot merge' makes one of several";
    c->on[c->count++] = text;
    return NULL;
}

static int create_one(void *values, const char *path)
{
    const struct create *c = values;
    deltafs_namespace *ns = NULL;
    int flags = O_RDWR | O_CREAT | O_EXCL;
    int status = c->count > 0 ? deltafs_namespace_open_view(path, flags, c->count, c->on, c->policy, NULL, &ns)
                              : deltafs_namespace_open(path, flags, NULL, &ns);

    return text_of_call(status == DELTAFS_OK ? deltafs_namespace_close(ns) : status);
}

static const struct command_option create_options[] = {
    {"on", 0, "REG@NAME", "begin with what this snapshot has; several are merged", parse_on, 0},
    {"policy", 0, "P", "which snapshot counts where several are in conflict, as for 'snapshot merge'", cmd_parse_policy,
     offsetof(struct create, policy)},
    {0}};

static const struct command cmd_ns_create = {.name = "create",
                                             .usage = "NS... [OPTION...]",
                                             .text = "Create namespaces.",
                                             .missing = "NS is missing",
                                             .least = 1,
                                             .size = sizeof(struct create),
                                             .option = create_options,
                                             .each = create_one};

/* ---- compact ---- */

static int compact_one(void *values, const char *path)
{
    struct deltafs_namespace_compacted c = {.struct_size = sizeof c};
    int code = text_of_call(deltafs_namespace_compact(path, &c));

    (void)values;
    if (code != EXIT_OK)
        return code;
    if (c.tables == 0)
        text_say("%s: nothing to do", path);
    else
        text_say("%s: %" PRIu64 " record%s of %" PRIu64 " table%s, %" PRIu64 " left", path, c.records,
                 text_plural(c.records), c.tables, text_plural(c.tables), c.entries);
    return EXIT_OK;
}

static const struct command cmd_ns_compact = {
    .name = "compact",
    .usage = "NS...",
    .text = "Write all entries of a namespace into one new table, so that names are found with fewer reads.",
    .missing = "NS is missing",
    .least = 1,
    .each = compact_one};

/* ---- mkdir ---- */

/* Create a folder, and with `has_parents` those above it; then it may exist. */
static int make_folder(struct place *p, int has_parents, mode_t mode)
{
    int status = DELTAFS_OK;
    struct stat st;

    for (char *slash = p->path; has_parents && status == DELTAFS_OK && (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        status = deltafs_namespace_mkdir(p->ns, p->path, mode | 0300);
        status = status == DELTAFS_ERR_EXISTS ? DELTAFS_OK : status;
        *slash = '/';
    }
    int code = text_of_call(status);
    if (code == EXIT_OK && has_parents)
        code = place_stat(p, 1, 1, &st);
    if (code != EXIT_OK || (has_parents && S_ISDIR(st.st_mode)))
        return code;
    return text_of_call(deltafs_namespace_mkdir(p->ns, p->path, mode));
}

static int mkdir_run(const struct command_call *c)
{
    const int *has_parents = c->values;
    struct place_set set = set_to_change();
    struct place p;
    int code = EXIT_OK;

    for (int i = 0; i < c->count; i++) {
        int one = place_must_find(&set, c->operand[i], &p);
        if (one == EXIT_OK)
            one = make_folder(&p, *has_parents, 0777 & ~mask());
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&set, code);
}

static const struct command_option mkdir_options[] = {
    {"parents", 'p', NULL, "also the folders above it; no error if it exists", NULL, 0}, {0}};

static const struct command cmd_ns_mkdir = {.name = "mkdir",
                                            .usage = "NS:/PATH... [OPTION...]",
                                            .text = "Create folders in a namespace.",
                                            .missing = "NS:/PATH is missing",
                                            .least = 1,
                                            .size = sizeof(int),
                                            .option = mkdir_options,
                                            .run = mkdir_run};

/* ---- rm ---- */

struct rm {
    int is_recursive, is_forced;
};

static int remove_tree(struct place *p, const struct stat *st, void *arg)
{
    if (!S_ISDIR(st->st_mode))
        return text_of_call(deltafs_namespace_unlink(p->ns, p->path));
    int code = place_each(p, remove_tree, arg);
    return code == EXIT_OK ? text_of_call(deltafs_namespace_rmdir(p->ns, p->path)) : code;
}

static int remove_one(const struct rm *r, struct place *p)
{
    char base[NAME_MAX + 1];
    struct stat st;
    int code = place_stat(p, 0, r->is_forced, &st);

    if (code != EXIT_OK || st.st_mode == 0)
        return code;
    if (S_ISDIR(st.st_mode) && !r->is_recursive)
        return place_refuse(p, "is a folder; -r removes it with what is in it");
    place_base(p->path, base);
    if (base[0] == '\0')
        return place_refuse(p, "is the root; 'rm -r' removes the folder of a namespace");
    if (strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return place_refuse(p, "ends in '.' or '..'; give the name of what is to be removed");
    return remove_tree(p, &st, NULL);
}

static int ns_rm_run(const struct command_call *c)
{
    const struct rm *r = c->values;
    struct place_set set = set_to_change();
    struct place p;
    int code = EXIT_OK;

    if (c->count == 0 && !r->is_forced)
        return text_fail(EXIT_USAGE, "rm: NS:/PATH is missing");
    for (int i = 0; i < c->count; i++) {
        int one = place_must_find(&set, c->operand[i], &p);
        if (one == EXIT_OK)
            one = remove_one(r, &p);
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&set, code);
}

static const struct command_option ns_rm_options[] = {
    {"recursive", 'r', NULL, "also folders, with what is in them", NULL, offsetof(struct rm, is_recursive)},
    {"force", 'f', NULL, "ignore what does not exist", NULL, offsetof(struct rm, is_forced)},
    {0}};

static const struct command cmd_ns_rm = {.name = "rm",
                                         .usage = "NS:/PATH... [OPTION...]",
                                         .text = "Remove files, symbolic links and folders of a namespace.",
                                         .size = sizeof(struct rm),
                                         .option = ns_rm_options,
                                         .run = ns_rm_run};

/* ---- mv ---- */

static int move_one(struct place_set *set, const char *name, struct place *to, int is_into)
{
    char base[NAME_MAX + 1];
    struct place from;
    size_t before = strlen(to->path);
    int code = place_must_find(set, name, &from);

    if (code != EXIT_OK)
        return code;
    if (from.ns != to->ns)
        return text_fail(EXIT_TROUBLE, "%s: in another namespace than the target; 'ns cp -r' copies it", name);
    place_base(from.path, base);
    if (is_into)
        code = place_enter(to, base, &before);
    if (code == EXIT_OK)
        code = text_of_call(deltafs_namespace_rename(from.ns, from.path, to->path));
    place_leave(to, before);
    return code;
}

static int ns_mv_run(const struct command_call *c)
{
    struct place_set set = set_to_change();
    struct place to;
    struct stat st = {.st_mode = 0};
    int code = place_must_find(&set, c->operand[c->count - 1], &to);

    if (code == EXIT_OK)
        code = place_stat(&to, 1, 1, &st);
    if (code == EXIT_OK && c->count > 2 && !S_ISDIR(st.st_mode))
        code = text_fail(EXIT_TROUBLE, "%s: no folder; several things cannot have one name", c->operand[c->count - 1]);
    for (int i = 0; i < c->count - 1 && code == EXIT_OK; i++)
        code = move_one(&set, c->operand[i], &to, S_ISDIR(st.st_mode));
    return place_close(&set, code);
}

static const struct command cmd_ns_mv = {.name = "mv",
                                         .usage = "NS:/FROM... NS:/TO",
                                         .text = "Rename within a namespace, or move into the folder TO.",
                                         .missing = "FROM and TO must be given",
                                         .least = 2,
                                         .run = ns_mv_run};

static const struct command *const subs[] = {&cmd_ns_create, &cmd_ns_ls,    &cmd_ns_stat,    &cmd_ns_cat,
                                             &cmd_ns_cp,     &cmd_ns_mkdir, &cmd_ns_rm,      &cmd_ns_mv,
                                             &cmd_ns_find,   &cmd_ns_du,    &cmd_ns_compact, NULL};

const struct command cmd_ns = {.name = "ns",
                               .usage = "COMMAND ...",
                               .text = "creates, reads and changes namespaces. NS:/a/b is /a/b in the namespace NS.",
                               .sub = subs};
