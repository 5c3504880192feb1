/* deltafs ls: what is in a folder, and what each of it is.
 *
 * Entries that are of DeltaFS are opened, to say how much is in them. One that cannot be read is listed as such, with a
 * message, and the others are listed still. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/target.h"
#include "tools/print.h"

#define WHAT_MAX   64
#define STORED_MAX 24

struct ls {
    int is_long, is_all, is_json;
    int is_first; /* nothing is printed yet */
    int code;
};

/* One line. */
struct entry {
    char *name; /* as it is shown */
    const char *kind;
    const char *state; /* "open", "closed", "damaged", or "" */
    int has_facts;
    uint64_t size, epochs, records, stored;
    char *target; /* of a symbolic link that is shown as such; else NULL */
};

static void ls_logical(struct ls *l, const char *path, struct entry *e)
{
    struct deltafs_logical_stat s = {.struct_size = sizeof s};
    deltafs_logical *f;

    e->state = "damaged";
    if (target_open(path, &f) != EXIT_OK) {
        l->code = EXIT_TROUBLE;
        return;
    }
    if (deltafs_logical_stat(f, &s) != DELTAFS_OK) {
        l->code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    } else {
        e->has_facts = 1;
        e->size = s.size;
        e->stored = s.bytes_stored;
        e->state = s.is_closed ? "closed" : "open";
    }
    deltafs_logical_close(f);
}

static void ls_directory(struct ls *l, const char *path, struct entry *e)
{
    struct deltafs_stat s = {.struct_size = sizeof s};
    deltafs_dir *d;

    e->state = "damaged";
    if (cmd_open(path, &d) != EXIT_OK) {
        l->code = EXIT_TROUBLE;
        return;
    }
    if (deltafs_stat(d, &s) != DELTAFS_OK || deltafs_bytes_stored(d, &e->stored) != DELTAFS_OK) {
        l->code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    } else {
        e->has_facts = 1;
        e->epochs = s.epochs;
        e->records = s.records;
        e->state = s.is_closed ? "closed" : "open";
    }
    deltafs_close(d);
}

static void ls_link(const char *path, struct entry *e)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target);

    e->kind = "link";
    e->target = n > 0 ? strndup(target, (size_t)n) : NULL;
}

/* See what `path` is. Returns -1, with a message, if nothing is there. */
static int ls_look(struct ls *l, const char *path, struct entry *e)
{
    struct target p = {.kind = TARGET_FOLDER};
    struct stat st;

    e->state = "";
    if (lstat(path, &st) != 0) {
        l->code = text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
        return -1;
    }
    int is_link = S_ISLNK(st.st_mode);
    if (is_link && stat(path, &st) != 0) {
        ls_link(path, e);
        return 0;
    }
    /* A folder that is closed to the user is nothing more to him. */
    if ((!S_ISDIR(st.st_mode) || access(path, R_OK | X_OK) == 0) && target_look(path, &p) != EXIT_OK) {
        l->code = EXIT_TROUBLE;
        e->state = "damaged";
    }
    e->kind = target_word(p.kind);
    if (p.kind == TARGET_LOGICAL)
        ls_logical(l, path, e);
    else if (p.kind == TARGET_DIRECTORY)
        ls_directory(l, path, e);
    else if (is_link)
        ls_link(path, e);
    else if (p.kind == TARGET_FILE) {
        e->has_facts = 1;
        e->size = (uint64_t)st.st_size;
        e->stored = (uint64_t)st.st_blocks * 512;
    }
    return 0;
}

/* ---- Printing ---- */

static void ls_json(struct ls *l, const char *path, const struct entry *e)
{
    printf("%s\n {\"path\": ", l->is_first ? "" : ",");
    print_json_text(path, strlen(path));
    printf(", \"kind\": \"%s\"", e->kind);
    if (e->target) {
        printf(", \"target\": ");
        print_json_text(e->target, strlen(e->target));
    }
    if (e->has_facts && strcmp(e->kind, "directory") == 0)
        printf(", \"epochs\": %" PRIu64 ", \"records\": %" PRIu64, e->epochs, e->records);
    else if (e->has_facts)
        printf(", \"size\": %" PRIu64, e->size);
    if (e->has_facts)
        printf(", \"bytes_stored\": %" PRIu64, e->stored);
    if (e->state[0] != '\0')
        printf(", \"state\": \"%s\"", e->state);
    putchar('}');
    l->is_first = 0;
}

static void ls_what(const struct entry *e, char what[WHAT_MAX], char stored[STORED_MAX])
{
    what[0] = stored[0] = '\0';
    if (!e->has_facts)
        return;
    if (strcmp(e->kind, "directory") == 0)
        snprintf(what, WHAT_MAX, "%" PRIu64 " epoch%s, %" PRIu64 " record%s", e->epochs, text_plural(e->epochs),
                 e->records, text_plural(e->records));
    else
        snprintf(what, WHAT_MAX, "%" PRIu64 " byte%s", e->size, text_plural(e->size));
    snprintf(stored, STORED_MAX, "%" PRIu64, e->stored);
}

/* A name, as a terminal shows it. */
static void ls_show(const char *text, const char *end)
{
    char shown[4 * PATH_MAX + 1];

    text_show(text, strlen(text), shown, sizeof shown);
    printf("%s%s", shown, end);
}

static void ls_table(const struct ls *l, const struct entry *e, size_t n)
{
    char what[WHAT_MAX], stored[STORED_MAX];
    int wide_what = 8, wide_stored = 6;

    for (size_t i = 0; i < n; i++) {
        ls_what(&e[i], what, stored);
        wide_what = (int)strlen(what) > wide_what ? (int)strlen(what) : wide_what;
        wide_stored = (int)strlen(stored) > wide_stored ? (int)strlen(stored) : wide_stored;
    }
    if (l->is_long && n > 0)
        printf("%-9s  %*s  %*s  %-7s  name\n", "kind", wide_what, "contents", wide_stored, "stored", "state");
    for (size_t i = 0; i < n; i++) {
        ls_what(&e[i], what, stored);
        printf("%-9s  %*s  ", e[i].kind, wide_what, what);
        if (l->is_long)
            printf("%*s  %-7s  ", wide_stored, stored, e[i].state);
        ls_show(e[i].name, e[i].target ? " -> " : "\n");
        if (e[i].target)
            ls_show(e[i].target, "\n");
    }
}

/* ---- What to list ---- */

/* Look at `names` (in `folder`, or where they are), and print them; empty places among them are passed over. */
static void ls_print(struct ls *l, const char *folder, char **names, size_t n)
{
    struct entry *e = calloc(n + 1, sizeof *e);
    size_t count = 0;
    int has_slash = !folder || (folder[0] != '\0' && folder[strlen(folder) - 1] == '/');

    if (!e) {
        l->code = text_fail(EXIT_TROUBLE, "ls: no memory for %zu names", n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char path[2 * PATH_MAX];
        if (!names[i])
            continue;
        snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", has_slash ? "" : "/", names[i]);
        if (ls_look(l, path, &e[count]) != 0)
            continue;
        e[count].name = names[i];
        if (l->is_json)
            ls_json(l, path, &e[count]);
        count++;
    }
    if (!l->is_json)
        ls_table(l, e, count);
    l->is_first &= count == 0;
    for (size_t i = 0; i < count; i++)
        free(e[i].target);
    free(e);
}

static void ls_folder(struct ls *l, const char *path, int has_title)
{
    struct dirent **entry;
    size_t count = 0;
    int n = scandir(path, &entry, NULL, alphasort);

    if (n < 0) {
        l->code = text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
        return;
    }
    char **names = calloc((size_t)n + 1, sizeof *names);
    if (!names)
        l->code = text_fail(EXIT_TROUBLE, "ls: no memory for %d names", n);
    for (int i = 0; i < n && names; i++) {
        const char *name = entry[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && (l->is_all || name[0] != '.'))
            names[count++] = entry[i]->d_name;
    }
    if (names && has_title && !l->is_json) {
        fputs(l->is_first ? "" : "\n", stdout);
        ls_show(path, ":\n");
        l->is_first = 0;
    }
    if (names)
        ls_print(l, path, names, count);
    free(names);
    for (int i = 0; i < n; i++)
        free(entry[i]);
    free(entry);
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
static void ls_run(struct ls *l, char **operand, size_t n)
{
    char **folder = calloc(n + 1, sizeof *folder);

    if (!folder) {
        l->code = text_fail(EXIT_TROUBLE, "ls: no memory for %zu names", n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        operand[i] += text_path(operand[i]) - operand[i];
        if (!ls_is_folder(operand[i]))
            continue;
        folder[i] = operand[i];
        operand[i] = NULL;
    }
    ls_print(l, NULL, operand, n);
    for (size_t i = 0; i < n; i++)
        if (folder[i])
            ls_folder(l, folder[i], n > 1);
    free(folder);
}

int cmd_ls(int argc, char **argv)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"long", no_argument, NULL, 'l'},
                                            {NULL, 0, NULL, 0}};
    struct ls l = {.is_first = 1};
    char here[] = ".", *nothing[] = {here};
    int c;

    while ((c = getopt_long(argc, argv, "al", options, NULL)) != -1) {
        if (c == 'a')
            l.is_all = 1;
        else if (c == 'j')
            l.is_json = 1;
        else if (c == 'l')
            l.is_long = 1;
        else
            return cmd_usage("ls");
    }
    if (l.is_json)
        putchar('[');
    if (argc > optind)
        ls_run(&l, argv + optind, (size_t)(argc - optind));
    else
        ls_run(&l, nothing, 1);
    if (l.is_json)
        puts(l.is_first ? "]" : "\n]");
    return cmd_finish(l.code);
}
