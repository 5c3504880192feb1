/* deltafs ls: what is in a folder, and what each of it is.
 *
 * Entries that are of DeltaFS are opened, to say how much is in them. One that cannot be read is listed as such, with a
 * message, and the others are listed still. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/target.h"

struct ls {
    int is_long, is_all, is_json;
    int count; /* entries and titles printed */
};

/* What is shown of a path. */
struct entry {
    struct target target;     /* closed already */
    const char *kind, *state; /* the state is "open", "closed", "damaged" or "" */
    int has_facts;
    char link[PATH_MAX]; /* where a symbolic link leads that is shown as such, or "" */
};

/* Find out what `path` is. Returns the exit code; e->kind is NULL if nothing is there. */
static int ls_look(const char *path, struct entry *e)
{
    struct target *t = &e->target;
    struct stat st;
    int code = EXIT_OK;

    *e = (struct entry){.target = {.kind = TARGET_FOLDER}, .state = ""};
    if (*path == '\0')
        return target_refuse_empty();
    if (lstat(path, &st) != 0)
        return text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
    int is_link = S_ISLNK(st.st_mode), is_broken = is_link && stat(path, &st) != 0;
    /* A folder that the user may not read is listed as a folder. */
    if (!is_broken && (!S_ISDIR(st.st_mode) || access(path, R_OK | X_OK) == 0))
        code = target_open(path, t);
    if (code != EXIT_OK)
        e->state = "damaged";
    else if (t->file || t->dir)
        e->state = t->of_file.is_closed || t->of_dir.is_closed ? "closed" : "open";
    target_close(t);
    e->kind = target_word(t);
    if (is_link && e->state[0] == '\0') {
        e->kind = "link";
        ssize_t n = readlink(path, e->link, sizeof e->link - 1);
        e->link[n > 0 ? n : 0] = '\0';
    }
    if (t->kind == TARGET_FILE) {
        t->of_file.size = (uint64_t)t->stat.st_size;
        t->stored = (uint64_t)t->stat.st_blocks * 512;
    }
    e->has_facts = code == EXIT_OK && !e->link[0] && t->kind != TARGET_FOLDER && t->kind != TARGET_OTHER;
    return code;
}

/* A name, as a terminal shows it. */
static void ls_show(const char *text, const char *end)
{
    char shown[4 * PATH_MAX + 1];

    text_show(text, strlen(text), shown, sizeof shown);
    printf("%s%s", shown, end);
}

static void ls_json(const struct ls *l, const char *path, const struct entry *e)
{
    struct report r = {.is_json = 1};

    printf("%s\n{", l->count > 0 ? "," : "");
    report_text(&r, NULL, "path", path);
    report_text(&r, NULL, "kind", e->kind);
    if (e->link[0] != '\0')
        report_text(&r, NULL, "target", e->link);
    if (e->has_facts && e->target.is_index) {
        report_number(&r, NULL, "rows", e->target.rows);
    } else if (e->has_facts && e->target.kind == TARGET_DIRECTORY) {
        report_number(&r, NULL, "epochs", e->target.of_dir.epochs);
        report_number(&r, NULL, "records", e->target.of_dir.records);
    } else if (e->has_facts) {
        report_number(&r, NULL, "size", e->target.of_file.size);
    }
    if (e->has_facts)
        report_number(&r, NULL, "bytes_stored", e->target.stored);
    if (e->state[0] != '\0')
        report_text(&r, NULL, "state", e->state);
    putchar('}');
}

static void ls_line(const struct ls *l, const char *name, const struct entry *e)
{
    char contents[64] = "", stored[24] = "";

    if (e->has_facts && e->target.is_index)
        snprintf(contents, sizeof contents, "%" PRIu64 " row%s of other files", e->target.rows,
                 text_plural(e->target.rows));
    else if (e->has_facts && e->target.kind == TARGET_DIRECTORY)
        snprintf(contents, sizeof contents, "%" PRIu64 " epoch%s, %" PRIu64 " record%s", e->target.of_dir.epochs,
                 text_plural(e->target.of_dir.epochs), e->target.of_dir.records, text_plural(e->target.of_dir.records));
    else if (e->has_facts)
        snprintf(contents, sizeof contents, "%" PRIu64 " byte%s", e->target.of_file.size,
                 text_plural(e->target.of_file.size));
    if (e->has_facts)
        snprintf(stored, sizeof stored, "%" PRIu64, e->target.stored);
    printf("%-9s  %30s  ", e->kind, contents);
    if (l->is_long)
        printf("%15s  %-7s  ", stored, e->state);
    ls_show(name, e->link[0] ? " -> " : "\n");
    if (e->link[0])
        ls_show(e->link, "\n");
}

/* List `path` as `name`. */
static int ls_one(struct ls *l, const char *path, const char *name)
{
    struct entry e;
    int code = ls_look(path, &e);

    if (!e.kind)
        return code;
    if (l->is_json)
        ls_json(l, path, &e);
    else
        ls_line(l, name, &e);
    l->count++;
    return code;
}

/* List what is in a folder. */
static int ls_folder(struct ls *l, const char *path, int has_title)
{
    const char *slash = path[0] != '\0' && path[strlen(path) - 1] == '/' ? "" : "/";
    struct dirent **entry;
    int code = EXIT_OK, n = scandir(path, &entry, NULL, alphasort);

    if (n < 0)
        return text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
    if (has_title && !l->is_json) {
        fputs(l->count++ > 0 ? "\n" : "", stdout);
        ls_show(path, ":\n");
    }
    if (l->is_long && !l->is_json && n > 2)
        printf("%-9s  %30s  %15s  %-7s  name\n", "kind", "contents", "stored", "state");
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        char full[2 * PATH_MAX];
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && (l->is_all || name[0] != '.')) {
            snprintf(full, sizeof full, "%s%s%s", path, slash, name);
            int one = ls_one(l, full, name);
            code = one != EXIT_OK ? one : code;
        }
        free(entry[i]);
    }
    free(entry);
    return code;
}

/* Whether the contents of a given name are listed, not the name. */
static int ls_is_folder(const char *path)
{
    struct stat st;
    char kind;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           (access(path, R_OK | X_OK) != 0 || (deltafs_kind(path, &kind) == DELTAFS_OK && kind == '-'));
}

/* First what is listed itself, then what is in each folder. */
static int ls_run(const struct command_call *c)
{
    struct ls *l = c->values;
    char here[] = ".", *nothing[] = {here}, **operand = c->count > 0 ? c->operand : nothing;
    int n = c->count > 0 ? c->count : 1, code = EXIT_OK;

    fputs(l->is_json ? "[" : "", stdout);
    for (int folders = 0; folders <= 1; folders++)
        for (int i = 0; i < n; i++) {
            const char *path = text_path(operand[i]);
            if (ls_is_folder(path) != folders)
                continue;
            int one = folders ? ls_folder(l, path, n > 1) : ls_one(l, path, path);
            code = one != EXIT_OK ? one : code;
        }
    if (l->is_json)
        puts(l->count > 0 ? "\n]" : "]");
    return code;
}

static const struct command_option options[] = {
    {"long", 'l', NULL, "also the bytes on disk, and whether all writers have closed it", NULL,
     offsetof(struct ls, is_long)},
    {"all", 'a', NULL, "also names that begin with a dot", NULL, offsetof(struct ls, is_all)},
    {"json", 0, NULL, "for programs", NULL, offsetof(struct ls, is_json)},
    {0}};

extern const struct command cmd_ns_ls;

const struct command cmd_ls = {.name = "ls",
                               .usage = "[PATH...] [OPTION...]",
                               .text = "List a folder, and mark directories of DeltaFS and logical files.",
                               .size = sizeof(struct ls),
                               .option = options,
                               .in_namespace = &cmd_ns_ls,
                               .run = ls_run};
